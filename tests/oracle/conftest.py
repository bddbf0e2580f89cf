"""One oracle process for each minor in a test process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.controlplane.releases import RELEASES, chosen

from .oracle import Oracle

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def oracle(request: pytest.FixtureRequest) -> Iterator[Oracle]:
    """Run the oracle of the chosen release, or that of the minor by which a test is parametrized."""
    with Oracle(RELEASES[getattr(request, "param", chosen().minor)]) as running:
        yield running
