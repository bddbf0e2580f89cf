from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.app.plugins.distributions import Site


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A folder where distributions can be installed."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    made = Site(folder)
    yield made
    made.forget()
