"""The steps of Kubernetes' integration tests of topologies of pod groups."""

from __future__ import annotations

from typing import Any, Final

import pytest

from policysched.model.release import RELEASES
from tests.oracle.minors import WITH_GROUPS
from tests.recorder import ours
from tests.recorder.group_scripts import place_by_topology
from tests.recorder.group_tables import Case, failures, script_of
from tests.recorder.group_topology_tables import BASIC, DIVIDED, GANGS, LIMITED, NOMINATED
from tests.recorder.judge import disagreement
from tests.recorder.theirs import KubeScheduler

COMMON: Final = {**GANGS, **BASIC}
OF_1_38: Final = {**NOMINATED, **DIVIDED}
RANKS: Final = {name: number for number, name in enumerate(("r1", "r2", "r3", "r4", "z1", "z2", "r1/a", "r2/a"))}


def script(name: str, case: Case) -> Any:
    """Write a case as a script."""
    made = script_of(name, case)
    place_by_topology(made, RANKS, "pool" if name in DIVIDED else "")
    return made


def limited(name: str) -> Any:
    """Write a case in which one feasible placement is enough, with the default plugins for placements."""
    made = script_of(name, LIMITED[name])
    made["gates"]["TopologyAwareWorkloadScheduling"] = True
    made["config"]["percentageOfPlacementsToScore"] = 1
    return made


@pytest.mark.oracle
@WITH_GROUPS
@pytest.mark.parametrize("name", [*COMMON, *OF_1_38])
def test_kube_scheduler_does_what_the_tables_say(orderly: KubeScheduler, name: str) -> None:
    if name in OF_1_38 and orderly.release.minor == "1.37":
        return
    case = (COMMON | OF_1_38)[name]
    assert not list(failures(case, orderly.play(script(name, case))))
    assert disagreement(orderly, script(name, case), runs=1) == []


@pytest.mark.oracle
@WITH_GROUPS
@pytest.mark.parametrize("name", LIMITED)
def test_kube_scheduler_ends_the_search_early(orderly: KubeScheduler, name: str) -> None:
    if orderly.release.minor != "1.37":
        assert not list(failures(LIMITED[name], orderly.play(limited(name))))


@pytest.mark.parametrize("minor", ["1.37", "1.38"])
@pytest.mark.parametrize("name", COMMON)
def test_tables(minor: str, name: str) -> None:
    outcome = ours.play(script(name, COMMON[name]), RELEASES[minor])
    assert not list(failures(COMMON[name], outcome))


@pytest.mark.parametrize("name", OF_1_38)
def test_tables_of_1_38(name: str) -> None:
    outcome = ours.play(script(name, OF_1_38[name]), RELEASES["1.38"])
    assert not list(failures(OF_1_38[name], outcome))


@pytest.mark.parametrize("name", LIMITED)
def test_limited_search(name: str) -> None:
    assert not list(failures(LIMITED[name], ours.play(limited(name), RELEASES["1.38"])))
