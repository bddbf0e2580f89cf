"""The stamp of namespaces changes with their labels."""

from __future__ import annotations

from policysched.model.objects import Metadata, Namespace
from policysched.state.cluster import Cluster


def test_only_other_labels_are_changes() -> None:
    cluster = Cluster()
    for labels in ({"team": "a"}, {"team": "a"}, {"team": "b"}):
        cluster.set_namespace(Namespace(metadata=Metadata(name="one", labels=labels)))
    assert cluster.namespaces_stamp == 2
    cluster.remove_namespace("one")
    cluster.remove_namespace("one")
    assert cluster.namespaces_stamp == 3
