"""Texts of nodes that are no labels: their columns are built at the first read, and follow the nodes."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from policysched.model.objects import Node as NodeObject
from policysched.model.objects import NodeAddress, NodeCondition, NodeStatus, NodeSystemInfo, Taint
from policysched.state.cluster import Cluster
from policysched.state.tables import node_texts
from policysched.state.tables.interner import MISSING
from policysched.state.tables.node_texts import NodeText
from tests.build import cluster, node


def reporting(name: str, **status: object) -> NodeObject:
    return replace(node(name), status=NodeStatus(**status))  # type: ignore[arg-type]


def read(made: Cluster, name: str, kind: str, key: str = "") -> str | None:
    code = int(made.nodes.text(NodeText(kind, key))[made.nodes.row_of[name]])
    return None if code == MISSING else made.strings.text(code)


def test_a_column_follows_the_nodes() -> None:
    made = cluster(node("a"), reporting("b", conditions=[NodeCondition(type="DiskPressure", status="True")]))
    assert [read(made, name, "conditions", "DiskPressure") for name in "ab"] == [None, "True"]
    made.set_node(reporting("a", conditions=[NodeCondition(type="DiskPressure", status="False")]))
    made.remove_node("b")
    made.set_node(node("c"))
    assert [read(made, name, "conditions", "DiskPressure") for name in "ac"] == ["False", None]


def test_of_several_taints_with_a_key_the_strongest_is_read() -> None:
    taints = [
        Taint(key="k", value="1", effect="PreferNoSchedule"),
        Taint(key="k", value="2", effect="NoExecute"),
        Taint(key="k", value="3", effect="NoSchedule"),
        Taint(key="l", effect="NoSchedule"),
    ]
    made = cluster(node("a", taints=taints))
    assert [read(made, "a", kind, "k") for kind in ("taint value", "taint effect")] == ["2", "NoExecute"]
    assert [read(made, "a", kind, "l") for kind in ("taint value", "taint effect")] == ["", "NoSchedule"]
    made.set_node(node("a", taints=taints[:1]))
    assert [read(made, "a", kind, "k") for kind in ("taint value", "taint effect")] == ["1", "PreferNoSchedule"]


@pytest.mark.parametrize(
    ("written", "name", "version"),
    [
        ("containerd://2.1.4", "containerd", "2.1.4"),
        ("docker", "docker", None),
        ("", None, None),
        ("://1", None, "1"),
    ],
)
def test_a_runtime_has_a_name_and_a_version(written: str, name: str | None, version: str | None) -> None:
    made = cluster(reporting("a", node_info=NodeSystemInfo(container_runtime_version=written)))
    assert (read(made, "a", "container_runtime"), read(made, "a", "container_runtime_version")) == (name, version)


def test_of_several_addresses_of_a_type_the_first_is_read() -> None:
    addresses = [NodeAddress(type="InternalIP", address=text) for text in ("10.0.0.1", "fd00::1")]
    made = cluster(reporting("a", addresses=addresses))
    assert read(made, "a", "addresses", "InternalIP") == "10.0.0.1"
    made.set_node(reporting("a", addresses=addresses[1:]))
    assert read(made, "a", "addresses", "InternalIP") == "fd00::1"


def test_only_the_texts_read_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_texts, "MAX_KEYS", 2)
    made = cluster(reporting("a", conditions=[NodeCondition(type="x", status="True")]))
    first = made.nodes.text(NodeText("conditions", "x"))
    made.nodes.text(NodeText("conditions", "y"))
    assert made.nodes.text(NodeText("conditions", "x")) is first
    made.nodes.text(NodeText("conditions", "z"))
    assert made.nodes.text(NodeText("conditions", "x")) is first
    assert read(made, "a", "conditions", "y") is None
