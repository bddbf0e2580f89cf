"""Which nodes selectors of slices select: as if each node were asked, and without asking them."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final

import msgspec
import pytest

from policysched.devices.inventory.known_nodes import KnownNode, KnownNodes
from policysched.devices.inventory.pool_views import NodeGroup
from policysched.devices.inventory.row_bits import rows_of
from policysched.model.objects import NodeSelector
from policysched.model.selection.node_selectors import NodeSelectorMatcher, lenient_node_selector
from tests.work import calls

KEYS: Final = ("host", "rack", "size", "rare", "none")
VALUES: Final = ("a", "b", "c", "1", "2", "-7", "10", "")
GROUP: Final = NodeGroup(())


def selector(*terms: dict[str, Any]) -> NodeSelectorMatcher:
    return lenient_node_selector(msgspec.convert({"nodeSelectorTerms": [*terms]}, NodeSelector))


def some_requirement(rng: random.Random) -> dict[str, Any]:
    operator = rng.choice(("In", "NotIn", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
    values = {
        "In": lambda: rng.sample(VALUES, rng.choice((1, 2, 5))),
        "NotIn": lambda: rng.sample(VALUES, rng.choice((1, 2, 5))),
        "Gt": lambda: [str(rng.randrange(12))],
        "Lt": lambda: [str(rng.randrange(12))],
    }.get(operator, list)()
    return {"key": rng.choice(KEYS), "operator": operator, "values": values}


def some_selector(rng: random.Random) -> NodeSelectorMatcher:
    made = selector(
        *(
            {
                "matchExpressions": [some_requirement(rng) for _ in range(rng.choice((0, 1, 1, 2, 3, 15)))],
                "matchFields": [
                    {
                        "key": rng.choice(("metadata.name", "metadata.name", "spec.podCIDR")),
                        "operator": rng.choice(("In", "NotIn")),
                        "values": [rng.choice(("n1", "n2", "n3", "", "unknown"))],
                    }
                    for _ in range(rng.choice((0, 0, 0, 1, 2)))
                ],
            }
            for _ in range(rng.choice((0, 1, 1, 2, 4)))
        )
    )
    exactly = {rng.choice(KEYS): rng.choice(VALUES)} if rng.random() < 0.2 else {}
    return NodeSelectorMatcher(exactly, None if exactly and rng.random() < 0.5 else made.terms)


def some_labels(rng: random.Random) -> dict[str, str]:
    given = {key: rng.choice(VALUES) for key in KEYS[:3] if rng.random() < 0.7}
    return given | ({"rare": rng.choice(VALUES)} if rng.random() < 0.05 else {})


@pytest.mark.parametrize("seed", range(20))
def test_selector_selects_the_nodes_that_it_matches(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("policysched.devices.inventory.known_nodes._MOST_REQUIREMENTS", 40)
    rng, nodes = random.Random(seed), KnownNodes()
    selectors = [some_selector(rng) for _ in range(40)]
    for _ in range(150):
        row = rng.randrange(30)
        if row not in nodes.by_row:
            nodes.add(row, KnownNode(f"n{row}" if row else "", some_labels(rng), GROUP))
        elif rng.random() < 0.7:
            nodes.relabel(row, some_labels(rng))
        else:
            nodes.remove(row)
        assert rows_of(nodes.all) == sorted(nodes.by_row)
        for one in rng.sample(selectors, 5):
            naive = sorted(row for row, node in nodes.by_row.items() if one.matches(node.name, node.labels))
            assert rows_of(nodes.selected(one)) == naive
        key, values = rng.choice(KEYS), rng.sample(VALUES, 3)
        having = sorted(row for row, node in nodes.by_row.items() if node.labels.get(key) in values)
        assert rows_of(nodes.having(key, values)) == having


def many_nodes(count: int) -> KnownNodes:
    nodes = KnownNodes()
    for row in range(count):
        nodes.add(row, KnownNode(f"n{row}", {"host": f"n{row}", "rack": f"r{row % 3}", "size": str(row % 9)}, GROUP))
    return nodes


SHAPES: Final[dict[str, Callable[[int], dict[str, Any]]]] = {
    "labels that no node has": lambda number: {"key": f"k{number}", "operator": "NotIn", "values": ["x"]},
    "one label, other values": lambda number: {"key": "rack", "operator": "NotIn", "values": [f"x{number}"]},
    "a label that each node has": lambda _: {"key": "host", "operator": "Exists"},
    "a label that none has": lambda _: {"key": "none", "operator": "DoesNotExist"},
    "numbers": lambda number: {"key": "size", "operator": "Lt", "values": [str(9 + number)]},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_nodes_are_not_asked_one_by_one(shape: str) -> None:
    def work(nodes: int, requirements: int) -> int:
        known = many_nodes(nodes)
        made = selector({"matchExpressions": [SHAPES[shape](number) for number in range(requirements)]})
        known.selected(selector({"matchExpressions": [SHAPES[shape](0)]}))  # what nodes have is known
        hash(made)
        assert len(rows_of(known.selected(made))) == nodes
        known.relabel(0, {**known.by_row[0].labels, "other": "x"})
        return calls(lambda: known.selected(made))

    assert work(600, 100) <= work(60, 100) + 50  # what many nodes have is put into a number by value
    assert work(60, 1000) <= work(60, 100) + 10


def test_a_relabelled_node_costs_its_own_labels() -> None:
    def work(nodes: int) -> int:
        known = many_nodes(nodes)
        for key in ("host", "rack", "size"):
            known.selected(selector({"matchExpressions": [{"key": key, "operator": "NotIn", "values": ["x"]}]}))
        return calls(lambda: known.relabel(3, {**known.by_row[3].labels, "rack": "other"}))

    assert work(600) == work(60)
