"""The cases of Kubernetes' integration test of preemption by pod groups."""

from __future__ import annotations

from typing import Final

import pytest

from policysched.model.release import RELEASES
from tests.oracle.minors import WITH_GROUPS
from tests.recorder import ours
from tests.recorder.group_preemption_tables import BOTH, PREEMPTION, failures, script_of
from tests.recorder.theirs import KubeScheduler

BY_MINOR: Final = [(minor, name) for name, case in PREEMPTION.items() for minor in BOTH if minor in case.minors]
WITHOUT_PLUGINS: Final = [name for name, case in PREEMPTION.items() if not case.plugins]
"""The Go recorder has no plugin that counts pods."""


@pytest.mark.oracle
@WITH_GROUPS
def test_kube_scheduler_does_what_the_table_says(orderly: KubeScheduler) -> None:
    of_minor = {name: PREEMPTION[name] for name in WITHOUT_PLUGINS if orderly.release.minor in PREEMPTION[name].minors}
    found = {name: list(failures(case, orderly.play(script_of(name, case)))) for name, case in of_minor.items()}
    assert len(found) > 20
    assert not {name: wrong for name, wrong in found.items() if wrong}


@pytest.mark.parametrize(("minor", "name"), BY_MINOR)
def test_table(minor: str, name: str) -> None:
    case = PREEMPTION[name]
    assert not list(failures(case, ours.play(script_of(name, case), RELEASES[minor])))
