"""Objects with long lists and maps: the work grows at most in proportion to the size of the object.

Work is counted as executed lines of Python, which are the same on every machine.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from policysched.model import kinds
from policysched.model.decode import decode_pod
from policysched.schedule.cycle.engine import Engine
from policysched.state.cluster import Cluster
from tests.schedule.every_list import FORMS, KINDS, Object, everything, made, shown
from tests.schedule.test_object_costs import engine, ordinary, place
from tests.work import lines

NODES = 6
FEW, MANY = 32, 128
"""Numbers of entries in the compared collections."""
GROWTH = 4.5
"""Largest growth of the work for four times as many entries."""
SLACK = 300
"""Additional lines that are allowed. Units: lines."""


def of_a_pod(raw: Object) -> Iterator[tuple[str, int]]:
    """Yield the lines executed for each step with a pending pod and with a placed copy of it."""
    at_work = engine(NODES)
    decoded = []
    yield "decode", lines(lambda: decoded.append(decode_pod(raw)))
    [one] = decoded
    yield "decide", lines(lambda: at_work.decide(one))
    placed = replace(one, metadata=replace(one.metadata, name="p-1", uid="p-1"))
    yield "place", lines(lambda: place(at_work.cluster, placed))
    yield "decide beside it", lines(lambda: at_work.decide(one))
    yield "decide for another", lines(lambda: at_work.decide(ordinary(10)))
    yield "remove", lines(lambda: at_work.cluster.remove_pod("p-1"))


def take(cluster: Cluster, kind: str, raw: Object) -> None:
    cluster.take(kinds.KINDS[kind].decode(raw))


def of_another(kind: str, raw: Object, changed: Object) -> Iterator[tuple[str, int]]:
    """Yield the lines executed for each step with an object that is added and changed between decisions."""
    at_work: Engine = engine(NODES)
    yield "take", lines(lambda: take(at_work.cluster, kind, raw))
    yield "decide", lines(lambda: at_work.decide(ordinary(10)))
    yield "change", lines(lambda: take(at_work.cluster, kind, changed))
    yield "decide again", lines(lambda: at_work.decide(ordinary(11)))


def too_steep(less: Iterator[tuple[str, int]], more: Iterator[tuple[str, int]]) -> list[str]:
    return [
        f"{step}: {few} lines, then {many}"
        for (step, few), (_, many) in zip(less, more, strict=True)
        if many > GROWTH * few + SLACK
    ]


@pytest.mark.parametrize("form", FORMS["Pod"], ids=shown)
def test_work_for_a_pod_grows_no_faster_than_a_collection_of_it(form: tuple[tuple[str, ...], str]) -> None:
    list(of_a_pod(made("Pod", *form, 4)))
    assert too_steep(*(of_a_pod(made("Pod", *form, count)) for count in (FEW, MANY))) == []


def test_work_for_a_pod_grows_no_faster_than_all_its_collections_together() -> None:
    list(of_a_pod(everything(4)))
    assert too_steep(*(of_a_pod(everything(count)) for count in (FEW, MANY))) == []


@pytest.mark.parametrize(
    ("kind", "form"), [(kind, form) for kind in KINDS if kind != "Pod" for form in FORMS[kind]], ids=shown
)
def test_work_for_other_objects_grows_no_faster_than_a_collection_of_them(
    kind: str, form: tuple[tuple[str, ...], str]
) -> None:
    list(of_another(kind, made(kind, *form, 4), made(kind, *form, 5)))
    few, many = (of_another(kind, made(kind, *form, count), made(kind, *form, count + 1)) for count in (FEW, MANY))
    assert too_steep(few, many) == []


def test_a_product_of_two_collections_would_be_found() -> None:
    def of(count: int) -> Iterator[tuple[str, int]]:
        yield "multiply", lines(lambda: [first for first in range(count) for _ in range(count)])

    assert too_steep(of(FEW), of(MANY)) != []
