"""Ports, images and nodes by row."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from policysched.framework import Cluster
from policysched.model.objects import Metadata, Node, NodeCondition, NodeStatus, Taint
from policysched.state.tables.amounts import HostPort, PortTable, WantedPorts
from policysched.state.tables.columns import FIRST_CAPACITY
from policysched.state.tables.interner import MISSING
from policysched.state.tables.nodes import KEPT, ImageTable
from tests.build import MIB, cluster, node
from tests.holdings import holdings

ANY, ONE, OTHER = "0.0.0.0", "10.0.0.1", "10.0.0.2"  # noqa: S104 - compared, not bound


def where(table: PortTable, *ports: HostPort) -> list[int]:
    """The rows of twenty where a port is taken, asked at once, a few at a time and in between."""
    wanted = WantedPorts(ports)
    at_once = table.taken(wanted, slice(0, 20), 20)
    few = [table.taken(wanted, np.array([row]), 20)[0] for row in range(20)]
    assert at_once.tolist() == few == table.taken(wanted, np.arange(20), 20).tolist()
    return at_once.nonzero()[0].tolist()


@pytest.mark.parametrize(
    ("used", "wanted", "conflicts"),
    [
        (ANY, ANY, True),
        (ANY, ONE, True),
        (ONE, ANY, True),
        (ONE, ONE, True),
        (ONE, OTHER, False),
    ],
)
def test_the_wildcard_address_meets_all_others_themselves(used: str, wanted: str, conflicts: bool) -> None:
    table = PortTable()
    table.add(2, [(used, "TCP", 80)])
    assert where(table, (wanted, "TCP", 80)) == ([2] if conflicts else [])
    table.add(2, [(used, "TCP", 80)], -1)
    assert where(table, (wanted, "TCP", 80)) == []
    assert len(table) == 0


def test_ports_are_forgotten_with_the_last_use_however_many_are_asked_about() -> None:
    table = PortTable()
    wanted = [(address, "TCP", number) for number in range(1, 100) for address in (ANY, ONE)]
    assert where(table, *wanted) == []
    assert not holdings([table]).total()
    for _ in range(2):
        table.add(3, wanted)
    assert (where(table, (OTHER, "TCP", 7)), len(table)) == ([3], 99)
    for _ in range(2):
        table.add(3, wanted, -1)
    assert not holdings([table]).total()


def test_rows_of_images_are_kept_for_the_last_ones_and_go_with_them() -> None:
    table = ImageTable()
    images = {f"i{number}": number for number in range(2 * KEPT)}
    table.replace(0, {}, images)
    assert {lying(table, name) == ([0], size) for name, size in images.items()} == {True}
    assert holdings([table])["ImageTable._rows"] == KEPT
    table.replace(0, images, {})
    assert not holdings([table]).total()


@pytest.mark.parametrize("other", [(ANY, "UDP", 80), (ANY, "TCP", 81)])
def test_protocol_and_number_tell_ports_apart(other: HostPort) -> None:
    table = PortTable()
    table.add(0, [(ANY, "TCP", 80)])
    assert where(table, other) == []


def test_a_port_used_twice_is_free_after_two_returns() -> None:
    table = PortTable()
    port = (ONE, "TCP", 80)
    for count in (1, 1, -1):
        table.add(0, [port], count)
    assert where(table, port) == [0]
    table.add(0, [port], -1)
    assert where(table, port) == []


def lying(table: ImageTable, name: str) -> tuple[list[int], int] | None:
    found = table.rows_with(name)
    return None if found is None else (sorted(found[0].tolist()), found[1])


def test_images_are_known_while_some_row_has_them() -> None:
    table = ImageTable()
    assert (lying(table, "a"), table.total("a")) == (None, None)
    table.replace(0, {}, {"a": 5})
    assert (lying(table, "a"), table.total("a")) == (([0], 5), 5)
    table.replace(1, {}, {"a": 5, "b": 7})
    assert lying(table, "a") == ([0, 1], 5)
    table.replace(0, {"a": 5}, {"b": 7})
    assert (lying(table, "a"), lying(table, "b")) == (([1], 5), ([0, 1], 7))
    table.replace(1, {"a": 5, "b": 7}, {})
    assert (lying(table, "a"), table.total("b")) == (None, 7)


def test_the_first_row_to_report_an_image_gives_its_size() -> None:
    table = ImageTable()
    table.replace(0, {}, {"a": 5})
    table.replace(1, {}, {"a": 9})
    assert table.total("a") == 5
    table.replace(0, {"a": 5}, {})
    assert lying(table, "a") == ([1], 5)
    table.replace(1, {"a": 9}, {"a": 11})
    assert table.total("a") == 11


def test_the_generation_of_images_moves_with_every_change_of_them_alone() -> None:
    made = cluster(node("n1", images={"a": MIB}))
    generations = [made.images.stamp]
    for changed in (node("n2"), node("n2", images={"a": MIB}), node("n1")):
        made.set_node(changed)
        generations.append(made.images.stamp)
    made.remove_node("n2")
    generations.append(made.images.stamp)
    assert all(one < other for one, other in pairwise(generations))
    made.set_node(node("n1", labels={"a": "b"}))
    assert made.images.stamp == generations[-1]


def test_a_node_writes_its_row_and_its_replacement_everything_anew() -> None:
    made = cluster(
        node(
            "n1",
            labels={"a": "x"},
            taints=[Taint(key="k", effect="NoSchedule")],
            unschedulable=True,
            allocatable={"gpu.io/a": 3, "ephemeral-storage": "1Gi"},
            features=["RestartAllContainersOnContainerExits"],
        )
    )
    nodes = made.nodes
    assert nodes.labels("a")[0] == made.strings.find("x")
    assert (nodes.allocatable("cpu")[0], nodes.allocatable("gpu.io/a")[0], nodes.pods_allowed.data[0]) == (4000, 3, 110)
    assert nodes.unschedulable.data[0]
    assert nodes.taints.data[0] != nodes.taint_sets.code(())
    made.set_node(node("n1", allocatable={"cpu": "1", "pods": 0}))
    assert nodes.labels("a")[0] == MISSING
    assert (nodes.allocatable("cpu")[0], nodes.allocatable("gpu.io/a")[0], nodes.pods_allowed.data[0]) == (1000, 0, 0)
    assert not nodes.unschedulable.data[0]
    assert nodes.taints.data[0] == nodes.taint_sets.code(())
    assert nodes.features.data[0] == nodes.feature_sets.code(frozenset())


@pytest.mark.parametrize(
    ("conditions", "ready"),
    [
        ([], False),
        ([("Ready", "False")], False),
        ([("Ready", "Unknown")], False),
        ([("Other", "True")], False),
        ([("Other", "False"), ("Ready", "True")], True),
    ],
)
def test_only_the_condition_ready_makes_a_node_ready(conditions: list[tuple[str, str]], ready: bool) -> None:
    status = NodeStatus(conditions=[NodeCondition(type=kind, status=value) for kind, value in conditions])
    made = cluster(Node(metadata=Metadata(name="n1"), status=status))
    assert bool(made.nodes.ready.data[0]) is ready


def test_a_node_without_allocatable_has_nothing() -> None:
    made = cluster(Node(metadata=Metadata(name="n1")))
    assert [made.nodes.allocatable(name)[0] for name in ("cpu", "memory", "ephemeral-storage", "x.io/y")] == [0] * 4
    assert made.nodes.pods_allowed.data[0] == 0


def test_reading_an_unknown_resource_makes_no_column_and_sees_it_later() -> None:
    made = cluster(node("n1"))
    before = made.nodes.allocatable("x.io/one")
    assert np.shares_memory(made.nodes.allocatable("x.io/two"), before)
    made.set_node(node("n1", allocatable={"x.io/one": 2}))
    assert made.nodes.allocatable("x.io/one")[0] == 2
    assert not before.any()


def test_rows_beyond_the_capacity_grow_every_column() -> None:
    made = Cluster()
    made.set_node(node("n0", labels={"a": "x"}, images={"i": 3}))
    made.nodes.labels("a")
    assert lying(made.images, "i") == ([0], 3)
    for number in range(1, 2 * FIRST_CAPACITY + 1):
        made.set_node(node(f"n{number}", labels={"a": f"{number}"}))
    assert made.nodes.columns.capacity == 4 * FIRST_CAPACITY
    codes = made.nodes.labels("a")[: made.nodes.size].tolist()
    assert [made.strings.text(code) for code in codes] == ["x", *map(str, range(1, 2 * FIRST_CAPACITY + 1))]
    assert lying(made.images, "i") == ([0], 3)
