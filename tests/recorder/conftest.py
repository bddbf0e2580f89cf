"""One kube-scheduler with recorders a test process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.recorder.theirs import KubeScheduler


@pytest.fixture(scope="session")
def kube() -> Iterator[KubeScheduler]:
    with KubeScheduler() as running:
        yield running
