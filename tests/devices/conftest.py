"""One judge for each minor in a test process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.controlplane.releases import RELEASES
from tests.devices.judge import Judge, judge


@pytest.fixture(scope="session")
def kubernetes(request: pytest.FixtureRequest) -> Iterator[Judge]:
    """Run the judge of the minor by which a test is parametrized."""
    with judge(RELEASES[request.param]) as running:
        yield running
