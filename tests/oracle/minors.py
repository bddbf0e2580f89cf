"""Comparisons with kube-scheduler at each compared minor of Kubernetes.

The minors share the cases of a comparison, so that a run takes as long with two minors as with one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import pytest

from policysched.model.release import RELEASES
from tests.controlplane.releases import compared

if TYPE_CHECKING:
    from collections.abc import Sequence

    from policysched.model.release import Release
    from tests.devices.judge import Judge
    from tests.recorder.theirs import KubeScheduler

    from .oracle import Oracle

    Theirs: TypeAlias = Oracle | KubeScheduler | Judge
    """Kubernetes' side of a comparison."""

AT_EACH_MINOR: Final = pytest.mark.parametrize("oracle", compared(), indirect=True)
"""Mark of a test that runs once for each compared minor, with that minor's oracle."""
JUDGED_AT_EACH_MINOR: Final = pytest.mark.parametrize("kubernetes", compared(), indirect=True)
"""Mark of a test that runs once for each compared minor, with that minor's device judge."""
WITH_EACH_MINOR: Final = pytest.mark.parametrize("kube", compared(), indirect=True)
"""Mark of a test that runs once for each compared minor, with that minor's recorder."""

WITH_GROUPS: Final = pytest.mark.parametrize(
    "orderly", [minor for minor in compared() if minor != "1.36"] or ["1.37"], indirect=True
)
"""Mark of a test that runs with the orderly recorder of each compared minor with pod groups, at least that of 1.37."""


def release_of(theirs: Theirs) -> Release:
    """Return the release that our side follows beside Kubernetes' side."""
    return RELEASES[theirs.release.minor]


def share(theirs: Theirs, cases: Sequence[int]) -> Sequence[int]:
    """Return the cases for the minor of Kubernetes' side: every case belongs to one of the compared minors."""
    minors = compared()
    return cases[minors.index(theirs.release.minor) :: len(minors)]
