"""How far back the store remembers."""

from __future__ import annotations

import pytest

from policysched.sandbox.storage import store


def test_history_is_bounded_by_what_its_versions_take_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "HISTORY_BYTES", 10_000)
    kept = store.ObjectStore(history=1000)
    for number in range(50):
        kept.write("pods", {"metadata": {"name": "large", "namespace": "n"}, "data": f"{number:0900}"})
    assert kept.since("pods", kept.revision - 9) is not None
    assert kept.since("pods", kept.revision - 12) is None
    kept.write("pods", {"metadata": {"name": "huge", "namespace": "n"}, "data": "x" * 20_000})
    assert kept.since("pods", kept.revision) == []
    assert kept.since("pods", kept.revision - 1) is None
