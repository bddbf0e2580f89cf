"""One judge a test process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.devices.judge import Judge, judge


@pytest.fixture(scope="session")
def kubernetes() -> Iterator[Judge]:
    with judge() as running:
        yield running
