"""Comparisons with kube-scheduler at each compared minor of Kubernetes.

The minors share the cases of a comparison, so that a run takes as long with two minors as with one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from policysched.model.release import RELEASES
from tests.controlplane.releases import compared

if TYPE_CHECKING:
    from collections.abc import Sequence

    from policysched.model.release import Release
    from tests.recorder.theirs import KubeScheduler

    from .oracle import Oracle

AT_EACH_MINOR: Final = pytest.mark.parametrize("oracle", compared(), indirect=True)
"""Mark of a test that runs once for each compared minor, with that minor's oracle."""
WITH_EACH_MINOR: Final = pytest.mark.parametrize("kube", compared(), indirect=True)
"""Mark of a test that runs once for each compared minor, with that minor's recorder."""

WITH_GROUPS: Final = pytest.mark.parametrize(
    "kube", [minor for minor in compared() if minor != "1.36"] or ["1.37"], indirect=True
)
"""Mark of a test that runs with the recorder of each compared minor that schedules groups of pods, at least 1.37."""


def release_of(theirs: Oracle | KubeScheduler) -> Release:
    """Return the release that our side follows beside an oracle or a recorder."""
    return RELEASES[theirs.release.minor]


def share(theirs: Oracle | KubeScheduler, cases: Sequence[int]) -> Sequence[int]:
    """Return the share of the cases of an oracle or a recorder: every case belongs to one of the compared minors."""
    minors = compared()
    return cases[minors.index(theirs.release.minor) :: len(minors)]
