"""One oracle process a test process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .oracle import Oracle

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def oracle() -> Iterator[Oracle]:
    with Oracle() as running:
        yield running
