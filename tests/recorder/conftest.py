"""One kube-scheduler with recorders for each minor in a test process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.controlplane.releases import RELEASES, chosen
from tests.recorder.theirs import KubeScheduler


@pytest.fixture(scope="session")
def kube(request: pytest.FixtureRequest) -> Iterator[KubeScheduler]:
    """Run kube-scheduler of the chosen release, or of the minor by which a test is parametrized."""
    with KubeScheduler(RELEASES[getattr(request, "param", chosen().minor)]) as running:
        yield running


@pytest.fixture(scope="session")
def orderly(request: pytest.FixtureRequest) -> Iterator[KubeScheduler]:
    """Run kube-scheduler of the minor by which a test is parametrized; a script always goes the same."""
    with KubeScheduler(RELEASES[request.param], is_orderly=True) as running:
        yield running
