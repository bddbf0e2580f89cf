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

    from .oracle import Oracle

AT_EACH_MINOR: Final = pytest.mark.parametrize("oracle", compared(), indirect=True)
"""Mark of a test that runs once for each compared minor, with that minor's oracle."""


def release_of(oracle: Oracle) -> Release:
    """Return the release that our side follows beside an oracle."""
    return RELEASES[oracle.minor]


def share(oracle: Oracle, cases: Sequence[int]) -> Sequence[int]:
    """Return an oracle's share of the cases: every case belongs to one of the compared minors."""
    minors = compared()
    return cases[minors.index(oracle.minor) :: len(minors)]
