"""Pods of groups are scheduled as by kube-scheduler: random scripts about pod groups.

They are others for each state of the package. `POLICYSCHED_SCRIPTS` says how many, `POLICYSCHED_SEED` which ones.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from policysched.model.release import RELEASES
from tests.oracle.minors import WITH_GROUPS
from tests.oracle.seed import seed
from tests.recorder import ours
from tests.recorder.group_scripts import group_scripts, written_group, written_member, written_script
from tests.recorder.judge import disagreement, shrink
from tests.recorder.scripts import written_node
from tests.recorder.theirs import KubeScheduler

SEED = seed()
FEW = 0.01
"""What part of the scripts may differ: those in which a binding fails while a group is in flight."""
COUNT = int(os.environ.get("POLICYSCHED_SCRIPTS") or "200")


@pytest.mark.oracle
@WITH_GROUPS
@pytest.mark.parametrize("eventful", [False, True], ids=["groups that come", "groups that change"])
def test_random_groups(orderly: KubeScheduler, tmp_path: Path, *, eventful: bool) -> None:
    compare(orderly, list(group_scripts(SEED, range(COUNT), eventful=eventful)), tmp_path)


@pytest.mark.oracle
@WITH_GROUPS
@pytest.mark.parametrize("eventful", [False, True], ids=["groups that come", "groups that change"])
def test_random_topologies(orderly: KubeScheduler, tmp_path: Path, *, eventful: bool) -> None:
    generators = 1 if orderly.release.minor == "1.37" else 2
    scripts = group_scripts(SEED, range(COUNT), eventful=eventful, generators=generators)
    compare(orderly, list(scripts), tmp_path)


def compare(orderly: KubeScheduler, scripts: list[Any], folder: Path) -> None:
    """Play scripts on both sides, and fail if too many differ."""
    differing = [script for script in scripts if disagreement(orderly, script, runs=1)]
    if differing:  # kube-scheduler may do something else when its goroutines run side by side
        with KubeScheduler(orderly.release) as kube:
            differing = [script for script in differing if disagreement(kube, script)]
    if len(differing) > COUNT * FEW:
        pytest.fail(report(orderly, differing, folder), pytrace=False)


def report(orderly: KubeScheduler, differing: list[Any], folder: Path) -> str:
    """Describe the scripts that differ, and write the first one to a file, as small as it gets."""
    small = shrink(differing[0], lambda one: bool(disagreement(orderly, one, runs=1)))
    kept = folder / "script.json"
    kept.write_text(json.dumps(small, indent=1), encoding="utf-8")
    named = f"POLICYSCHED_SEED={SEED} POLICYSCHED_SCRIPTS={COUNT}: {[script['id'] for script in differing]} differ"
    diff = "\n".join(disagreement(orderly, small, runs=1))
    return f"{named}; python -m tests.recorder.judge {kept}\n{diff}"


def waiting_member() -> Any:
    """Write a script: a member waits at Permit in vain, and meanwhile a better node comes."""
    things = [written_node("n1"), written_group("g"), written_member("p", "g"), written_node("n2")]
    steps = [{"at": 0.5173 + number, "set": thing} for number, thing in enumerate(things)]
    script = written_script("waiting", {"n1": 1, "n2": 2}, steps, until=30.0, recorded=True)
    script["plugins"][-1]["answers"] = {"permit": {"p": [{"code": "Wait", "timeout": 2.0}]}}
    return script


@pytest.mark.parametrize("minor", ["1.37", "1.38"])
def test_member_that_is_tried_again_at_once_is_free_to_take_another_node(minor: str) -> None:
    outcome = ours.play(waiting_member(), RELEASES[minor])
    assert [one["node"] for one in outcome["pods"]] == ["n2"]


@pytest.mark.oracle
@WITH_GROUPS
def test_member_that_is_tried_again_at_once_goes_as_in_kube_scheduler(orderly: KubeScheduler) -> None:
    assert disagreement(orderly, waiting_member(), runs=1) == []


def lonely_gang() -> Any:
    """Write a script: a gang comes to a cluster without nodes."""
    things = [written_group("g", 2), written_member("p", "g"), written_member("q", "g")]
    steps = [{"at": 0.5173 + number, "set": thing} for number, thing in enumerate(things)]
    return written_script("lonely", {}, steps, until=9.0)


@pytest.mark.parametrize("minor", ["1.37", "1.38"])
def test_gang_without_nodes_is_unschedulable(minor: str) -> None:
    """The reason is Unschedulable, to which cluster autoscalers react."""
    outcome = ours.play(lonely_gang(), RELEASES[minor])
    assert [one["condition"][:2] for one in (*outcome["pods"], *outcome["groups"])] == [["False", "Unschedulable"]] * 3


@pytest.mark.oracle
@WITH_GROUPS
def test_gang_without_nodes_is_an_error_of_kube_scheduler(orderly: KubeScheduler) -> None:
    outcome = orderly.play(lonely_gang())
    assert [one["condition"][1] for one in (*outcome["pods"], *outcome["groups"])] == ["SchedulerError"] * 3


def test_scripts_have_groups_of_every_fate() -> None:
    fates: Counter[str] = Counter()
    for script in chain(group_scripts(0, range(30)), group_scripts(0, range(30), eventful=True)):
        outcome = ours.play(script, RELEASES["1.37"])
        fates.update((one["condition"] or ["", "waits"])[1] for one in outcome["groups"])
        members = (one for one in outcome["pods"] if one["pod"].startswith("g"))
        fates.update("bound" if one["node"] else "left" for one in members)
    assert min(fates[one] for one in ("Scheduled", "Unschedulable", "SchedulerError", "waits")) > 1
    assert min(fates["bound"], fates["left"]) > 100
