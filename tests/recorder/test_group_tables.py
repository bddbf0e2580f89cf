"""The steps of Kubernetes' integration tests of pod groups."""

from __future__ import annotations

from typing import Final

import pytest

from policysched.model.release import RELEASES
from tests.oracle.minors import WITH_GROUPS
from tests.recorder import ours
from tests.recorder.group_queueing_tables import INTERLEAVING, QUEUEING, REMAINING, RETRIES
from tests.recorder.group_tables import ANTI_AFFINITY, SCHEDULING, VOLUMES, failures, script_of
from tests.recorder.judge import disagreement
from tests.recorder.theirs import KubeScheduler

CASES: Final = {**SCHEDULING, **ANTI_AFFINITY, **VOLUMES, **QUEUEING, **RETRIES, **REMAINING, **INTERLEAVING}


@pytest.mark.oracle
@WITH_GROUPS
@pytest.mark.parametrize("name", CASES)
def test_kube_scheduler_does_what_the_tables_say(orderly: KubeScheduler, name: str) -> None:
    script = script_of(name, CASES[name])
    assert not list(failures(CASES[name], orderly.play(script)))
    assert disagreement(orderly, script, runs=1) == []


@pytest.mark.parametrize("minor", ["1.37", "1.38"])
@pytest.mark.parametrize("name", CASES)
def test_tables(minor: str, name: str) -> None:
    outcome = ours.play(script_of(name, CASES[name]), RELEASES[minor])
    assert not list(failures(CASES[name], outcome))
