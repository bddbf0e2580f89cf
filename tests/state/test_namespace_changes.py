"""Names of namespaces whose labels changed are remembered, the latest ones for certain."""

from __future__ import annotations

import pytest

from policysched.model.objects import Metadata, Namespace
from policysched.state import object_tables
from policysched.state.cluster import Cluster
from policysched.state.object_tables import NamespaceChanges


def test_changes_since_a_position_are_named_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_tables, "MOST_REMEMBERED", 4)
    changes = NamespaceChanges()
    for name in ("a", "b", "a"):
        changes.note(name)
    assert changes.position == 3
    assert set(changes.since(1) or ()) == {"a", "b"}
    assert list(changes.since(3) or ()) == []
    for number in range(20):
        changes.note(f"n-{number}")
    assert changes.position == 23
    assert changes.since(3) is None
    assert list(changes.since(19) or ()) == ["n-16", "n-17", "n-18", "n-19"]


def test_only_other_labels_are_changes() -> None:
    cluster = Cluster()
    for labels in ({"team": "a"}, {"team": "a"}, {"team": "b"}):
        cluster.set_namespace(Namespace(metadata=Metadata(name="one", labels=labels)))
    assert cluster.namespace_changes.position == 2
    cluster.remove_namespace("one")
    cluster.remove_namespace("one")
    assert cluster.namespace_changes.position == 3
