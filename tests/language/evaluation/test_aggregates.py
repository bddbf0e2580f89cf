"""Aggregates and tallies over frames of all nodes and of placed pods."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest

from policysched.language import Input
from policysched.language.evaluation.columns import Depends, aggregate_over, depends, pod_aggregate_over
from policysched.language.ir.graph import Op, Typed, constant, make
from policysched.language.ir.types import BOOL, NUMBER, STRING, Gap, Kind, Shape, Type, Unit
from tests.language.frames import TableFrame

COLUMN = Type(Kind.QUANTITY, Unit.NUMBER, Shape.NODES)
PODS = make(Op.INPUT, (), COLUMN, Input("node", ("free", "pods")))
READY = make(Op.INPUT, (), Type(Kind.BOOL, None, Shape.NODES), Input("node", ("ready",)))
ZONE = make(Op.INPUT, (), Type(Kind.STRING, None, Shape.NODES, Gap.INPUT), Input("node", ("zone",)))
MAYBE = make(Op.ONLY, (READY, PODS), COLUMN.filled(Gap.OWN))


def aggregate(op: Op, inner: Typed, key: Typed | None = None) -> Typed:
    return make(op, (key,) if key else (), NUMBER.filled(Gap.OWN), inner=(inner,))


def rows(*found: tuple[float, bool, str | None]) -> TableFrame:
    return TableFrame([{"node.free.pods": n, "node.ready": ready, "node.zone": zone} for n, ready, zone in found])


THREE = rows((4, True, "a"), (1, False, "b"), (3, True, "a"), (10, True, None))


def numbers(value: Any) -> Any:
    found = np.asarray(value, np.float64).tolist()
    return [None if math.isnan(n) else n for n in found] if isinstance(found, list) else found


@pytest.mark.parametrize(
    ("op", "inner", "whole", "by_zone"),
    [
        (Op.COUNT_NODES, READY, 3, [2, 0, 2, None]),
        (Op.SUM_NODES, PODS, 18, [7, 1, 7, None]),
        (Op.SUM_NODES, MAYBE, 17, [7, 0, 7, None]),
        (Op.AVG_NODES, PODS, 4.5, [3.5, 1, 3.5, None]),
        (Op.AVG_NODES, MAYBE, 17 / 3, [3.5, None, 3.5, None]),
        (Op.MIN_NODES, PODS, 1, [3, 1, 3, None]),
        (Op.MAX_NODES, MAYBE, 10, [4, None, 4, None]),
    ],
)
def test_an_aggregate_reduces_all_rows_or_each_domain(op: Op, inner: Typed, whole: float, by_zone: list[Any]) -> None:
    assert aggregate_over(aggregate(op, inner), THREE) == whole
    assert numbers(aggregate_over(aggregate(op, inner, ZONE), THREE)) == by_zone


@pytest.mark.parametrize(
    ("op", "value"),
    [(Op.COUNT_NODES, 0), (Op.SUM_NODES, 0), (Op.AVG_NODES, None), (Op.MIN_NODES, None), (Op.MAX_NODES, None)],
)
def test_an_aggregate_of_nothing_is_0_or_missing(op: Op, value: float | None) -> None:
    inner = READY if op is Op.COUNT_NODES else PODS
    found = aggregate_over(aggregate(op, inner), TableFrame([]))
    assert (None if math.isnan(found) else found) == value
    assert numbers(aggregate_over(aggregate(op, inner, ZONE), TableFrame([]))) == []


def test_sums_of_fractions_do_not_show_the_order_of_rows() -> None:
    values = [0.1, 1e16, 0.2, -1e16, 0.7]
    for order in ([0, 1, 2, 3, 4], [1, 3, 0, 4, 2], [4, 1, 0, 2, 3]):
        frame = rows(*((values[i], True, "a") for i in order))
        assert aggregate_over(aggregate(Op.SUM_NODES, PODS), frame) == math.fsum(values)
        assert numbers(aggregate_over(aggregate(Op.SUM_NODES, PODS, ZONE), frame)) == [math.fsum(values)] * 5


@pytest.mark.parametrize("spread", [0, 5, 20, 40, 200, 900])
@pytest.mark.parametrize("number", [1, 2, 7, 300])
def test_sums_are_those_of_fsum_however_far_apart_the_magnitudes(spread: int, number: int) -> None:
    chance = random.Random(spread * 1000 + number)
    for _ in range(20):
        exponents = (-1060, 990) if spread == 900 else range(-spread, spread + 1)
        values = [math.ldexp(chance.uniform(-1, 1), chance.choice(exponents)) for _ in range(number)]
        zones = [chance.choice("abc") for _ in values]
        frame = rows(*((value, True, zone) for value, zone in zip(values, zones, strict=True)))
        assert aggregate_over(aggregate(Op.SUM_NODES, PODS), frame) == math.fsum(values)
        by_zone = {zone: math.fsum(v for v, z in zip(values, zones, strict=True) if z == zone) for zone in "abc"}
        found = numbers(aggregate_over(aggregate(Op.SUM_NODES, PODS, ZONE), frame))
        assert found == [by_zone[zone] for zone in zones]


def test_domains_with_codes_far_apart_are_numbered_anew() -> None:
    frame = rows((1, True, None), (2, True, "x"), (3, True, "y"), (4, True, "x"))
    for number in range(5000):
        frame.strings.code(f"unused-{number}")
    assert numbers(aggregate_over(aggregate(Op.SUM_NODES, PODS, ZONE), frame)) == [None, 6, 3, 6]
    present = rows((2, True, "x"), (3, True, "y"))
    for number in range(5000):
        present.strings.code(f"unused-{number}")
    assert numbers(aggregate_over(aggregate(Op.SUM_NODES, PODS, ZONE), present)) == [2, 3]


def test_a_domain_whose_key_is_missing_or_the_same_for_all() -> None:
    label = Input("node", ("labels",), "*")
    key = make(Op.INPUT, (), STRING.filled(Gap.INPUT), Input("pod", ("labels",), "x"))
    domain = make(Op.KEYED, (key,), ZONE.type, label)
    node = aggregate(Op.SUM_NODES, PODS, domain)
    assert numbers(aggregate_over(node, THREE)) == [None] * 4
    same = aggregate(Op.SUM_NODES, PODS, make(Op.CONSTANT, (), STRING, "a"))
    assert numbers(aggregate_over(same, THREE)) == [18] * 4


def test_a_tally_counts_the_pods_of_each_row_and_leaves_out_free_slots() -> None:
    pods = rows((4, True, "a"), (1, False, "b"), (3, True, "a"), (0.5, True, None), (9, True, "a"))
    places = np.array([2, 0, 2, 0, -1], np.int32)
    count = make(Op.COUNT_PODS, (), COLUMN, inner=(READY,))
    total = make(Op.SUM_PODS, (), COLUMN, inner=(MAYBE,))
    assert pod_aggregate_over(count, pods, places, 4).tolist() == [1, 0, 2, 0]
    assert pod_aggregate_over(total, pods, places, 4).tolist() == [0.5, 0, 7, 0]
    assert pod_aggregate_over(count, TableFrame([]), np.zeros(0, np.int32), 2).tolist() == [0, 0]


def test_only_aggregates_and_tallies_are_reduced() -> None:
    with pytest.raises(ValueError, match="no aggregate"):
        aggregate_over(PODS, THREE)
    with pytest.raises(ValueError, match="no aggregate over pods"):
        pod_aggregate_over(PODS, THREE, np.zeros(4, np.int32), 1)


def _reads(item: Input, *, of: Op = Op.COUNT_PODS) -> Typed:
    leaf = make(Op.INPUT, (), STRING, item)
    inner = make(Op.EQ, (leaf, constant("a", STRING)), BOOL)
    return make(of, (), COLUMN, inner=(inner,))


@pytest.mark.parametrize(
    ("item", "wanted"),
    [
        (Input("peer", ("labels",), "a"), Depends.PEER),
        (Input("pod", ("labels",), "a"), Depends.POD),
        (Input("pod", ("age",)), Depends.ROW),
        (Input("node", ("name",)), Depends.ROW),
        (Input("cluster", ("nodes",)), Depends.ROW),
        (Input("clock", ("now",)), Depends.ROW),
    ],
)
def test_a_tally_says_what_it_depends_on(item: Input, wanted: Depends) -> None:
    assert depends(_reads(item)) is wanted


def test_a_tally_with_an_aggregate_in_it_depends_on_all_rows() -> None:
    peers = make(Op.COUNT_PODS, (), COLUMN, inner=(constant(True, BOOL),))
    assert depends(peers) is Depends.PEER
    busiest = make(Op.GT, (aggregate(Op.MAX_NODES, peers), constant(1.0, NUMBER)), BOOL)
    assert depends(make(Op.COUNT_PODS, (), COLUMN, inner=(busiest,))) is Depends.ROW


def test_a_graph_names_the_inputs_of_what_it_reduces_and_knows_how_far_it_looks() -> None:
    node = aggregate(Op.SUM_NODES, MAYBE, ZONE)
    assert [item.text for item in node.inputs] == ["node.ready", "node.free.pods", "node.zone"]
    assert node.local is False
    total = make(Op.SUM_PODS, (), COLUMN, inner=(MAYBE,))
    assert (total.local, [item.text for item in total.inputs]) == (
        True,
        ["node.ready", "node.free.pods", "node.pods"],
    )
    assert make(Op.COUNT_PODS, (), COLUMN, inner=(make(Op.HAS, (node,), BOOL),)).local is False
    assert make(Op.SUM_PODS, (), COLUMN, inner=(PODS,)) is not total
