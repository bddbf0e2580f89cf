"""The steps of Kubernetes' integration tests of pod groups."""

from __future__ import annotations

from typing import Final

import pytest

from tests.oracle.minors import WITH_GROUPS
from tests.recorder.group_queueing_tables import INTERLEAVING, QUEUEING, REMAINING, RETRIES
from tests.recorder.group_tables import ANTI_AFFINITY, SCHEDULING, failures, script_of
from tests.recorder.theirs import KubeScheduler

CASES: Final = {**SCHEDULING, **ANTI_AFFINITY, **QUEUEING, **RETRIES, **REMAINING, **INTERLEAVING}


@pytest.mark.oracle
@WITH_GROUPS
@pytest.mark.parametrize("name", CASES)
def test_kube_scheduler_does_what_the_tables_say(kube: KubeScheduler, name: str) -> None:
    assert not list(failures(CASES[name], kube.play(script_of(name, CASES[name]))))
