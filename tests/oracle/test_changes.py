"""kube-scheduler's verdicts about a cluster that changes between the pods of a sequence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from . import configs
from .objects import node, requesting

if TYPE_CHECKING:
    from .oracle import Oracle

pytestmark = pytest.mark.oracle

THREE = [requesting(f"web-{number}", cpu="3") for number in range(3)]


def bests(oracle: Oracle, *between: list[Any], nodes: str = "ab") -> list[Any]:
    """Decide about three pods of three cores each, with these changes before each of them."""
    question = {"objects": [node(name) for name in nodes], "sequence": THREE, "config": configs.base()}
    records = oracle.decide_sequence(question | {"between": list(between)})
    return [record.get("best") for record in records]


def named(name: str) -> dict[str, Any]:
    return {"remove": requesting(name)}


def test_nothing_happens_by_itself(oracle: Oracle) -> None:
    assert bests(oracle) == [["a", "b"], ["b"], None]


def test_nodes_come_and_go(oracle: Oracle) -> None:
    assert bests(oracle, [], [], [{"set": node("c")}]) == [["a", "b"], ["b"], ["c"]]
    assert bests(oracle, [], [{"remove": node("b")}]) == [["a", "b"], None, None]
    returned = bests(oracle, [], [{"remove": node("a")}], [{"set": node("a")}])
    assert returned == [["a", "b"], ["b"], None], "the pod on it was there all the time"


def test_node_is_updated(oracle: Oracle) -> None:
    large = node("a", allocatable={"cpu": "8", "memory": "8Gi", "pods": "110"})
    assert bests(oracle, [], [{"set": large}], nodes="a") == [["a"], ["a"], None]


@pytest.mark.parametrize("confirmed", [False, True], ids=["assumed", "confirmed"])
def test_pods_of_the_sequence_go(oracle: Oracle, confirmed: bool) -> None:
    confirmation = [{"set": THREE[0]}] if confirmed else []
    assert bests(oracle, [], confirmation, [named("web-0")]) == [["a", "b"], ["b"], ["a"]]


def test_pods_that_finish_hold_nothing(oracle: Oracle) -> None:
    done = THREE[1] | {"status": {"phase": "Succeeded"}}
    assert bests(oracle, [], [], [{"set": done}]) == [["a", "b"], ["b"], ["b"]]


def test_others_come_change_and_go(oracle: Oracle) -> None:
    small, large = (requesting("other", node_name="a", cpu=cpu) for cpu in ("1", "4"))
    assert bests(oracle, [{"set": small}]) == [["b"], ["a"], None]
    assert bests(oracle, [{"set": small}, {"set": large}]) == [["b"], None, None]
    assert bests(oracle, [{"set": large}], [named("other")]) == [["b"], ["a"], None]


def test_pods_without_a_place_are_nothing_to_the_caches(oracle: Oracle) -> None:
    pending = requesting("pending", cpu="4")
    assert bests(oracle, [{"set": pending}, named("nobody"), {"remove": node("nowhere")}]) == [["a", "b"], ["b"], None]
