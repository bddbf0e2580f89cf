"""Nodes as out-of-tree plugins see them say what the objects say, also in what-ifs."""

from __future__ import annotations

import numpy as np
import pytest

from policysched.framework import Cluster
from policysched.framework.out_of_tree.node_info import NodeArrays, NodeInfo, NodeInfos
from policysched.model.objects import ContainerPort, Taint
from policysched.model.pod_requirements import ANY_ADDRESS
from policysched.state.what_if import ChangedRow
from tests.build import cluster, node, pod

TAINTED = node("b", labels={"zone": "z1"}, taints=[Taint(key="t")], unschedulable=True, allocatable={"cpu": "2500m"})
ON_B = pod("one", on="b", requests={"cpu": "500m"}, ports=[ContainerPort(host_port=80)])


def around() -> Cluster:
    made = cluster(node("a"), TAINTED, node("gone"), ON_B, pod("stray", on="nowhere"))
    made.remove_node("gone")
    return made


def test_node_info_says_what_the_objects_say() -> None:
    info = NodeInfos.of_all(around())[1]
    assert (info.name, info.node, repr(info)) == ("b", TAINTED, "NodeInfo('b')")
    assert (info.labels, info.annotations, info.unschedulable) == ({"zone": "z1"}, {}, True)
    assert list(info.taints) == [Taint(key="t")]
    assert (info.pods, info.pods_count, info.pods_allowed) == ([ON_B], 1, 110)
    assert (info.allocatable("cpu"), info.allocatable("gpu"), info.requested("cpu")) == (2500, 0, 500)
    assert info.used_ports == {(ANY_ADDRESS, "TCP", 80)}


def test_nodes_that_are_not_there_are_not_listed() -> None:
    infos = NodeInfos.of_all(around())
    assert [one.name for one in infos] == ["a", "b"]
    assert (len(infos), [one.name for one in infos[1:]], repr(infos[:1])) == (2, ["b"], "NodeInfos(['a'])")


def test_a_node_that_went_has_no_object() -> None:
    made = around()
    info = NodeInfo(made, made.nodes.row_of["nowhere"])
    with pytest.raises(LookupError, match='node "nowhere" is deleted'):
        _ = info.node


def test_arrays_say_what_single_nodes_say() -> None:
    made = around()
    rows = np.array([made.nodes.row_of[name] for name in ("b", "a")])
    arrays, infos = NodeArrays(made, rows), list(NodeInfos(made, rows))
    assert len(arrays) == 2
    assert arrays.names == [one.name for one in infos]
    assert arrays.unschedulable.tolist() == [one.unschedulable for one in infos]
    assert arrays.ready.tolist() == [False, False]
    assert arrays.pods_count.tolist() == [one.pods_count for one in infos]
    assert arrays.pods_allowed.tolist() == [one.pods_allowed for one in infos]
    for resource in ("cpu", "gpu"):
        assert arrays.allocatable(resource).tolist() == [one.allocatable(resource) for one in infos]
        assert arrays.requested(resource).tolist() == [one.requested(resource) for one in infos]
    assert arrays.label("zone") == [one.labels.get("zone") for one in infos] == ["z1", None]
    assert arrays.has_label("zone").tolist() == arrays.label_is("zone", "z1").tolist() == [True, False]
    assert arrays.label_is("zone", "never-seen").tolist() == arrays.has_label("other").tolist() == [False, False]


def test_what_if_shows_the_pods_that_there_would_be() -> None:
    made = around()
    row = made.nodes.row_of["b"]
    changed = ChangedRow(made, row)
    coming = pod("two", requests={"cpu": 2})
    changed.remove(ON_B)
    changed.add(coming)
    info, arrays = NodeInfo(made, row, changed), NodeArrays(made, np.array([row]), changed)
    assert (info.pods, info.pods_count, info.requested("cpu"), info.used_ports) == ([coming], 1, 2000, frozenset())
    assert (arrays.pods_count.tolist(), arrays.requested("cpu").tolist()) == ([1], [2000])
    assert NodeInfo(made, row).pods == [ON_B]
