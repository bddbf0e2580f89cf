from __future__ import annotations

from typing import Any

import pytest

from policysched.app.dry_run.tables import decision_parts
from tests.app.showing import lines

POD = {"pod": "default/web", "schedulerName": "policysched"}
SCHEDULED = POD | {"result": "Scheduled", "selected": "n1", "best": ["n1"]}


def _lines(record: dict[str, Any]) -> list[str]:
    return [line for part in decision_parts(record) for line in lines(part)]


def test_error_is_said() -> None:
    record = POD | {"result": "Error", "error": 'running PreFilter plugin "X": no'}
    assert _lines(record) == [
        'pod default/web: scheduling failed (profile policysched): running PreFilter plugin "X": no'
    ]


def test_rejection_before_the_nodes_is_said() -> None:
    said = "0/1 nodes are available: pod affinity terms conflict."
    status = {"plugin": "NodeAffinity", "code": "UnschedulableAndUnresolvable", "reasons": ["x"]}
    record = POD | {"result": "Unschedulable", "preFilter": status, "fitError": said}
    assert _lines(record) == ["pod default/web fits no node (profile policysched)", said]


def test_draw_among_equals_names_them() -> None:
    record = SCHEDULED | {"best": ["n1", "n2"], "scores": {"n1": {"A": 1}, "n2": {"A": 1}}, "total": {"n1": 1, "n2": 1}}
    assert _lines(record)[1] == "chosen at random from 2 nodes with the highest score: n1, n2"


def test_values_of_a_rule_on_many_nodes_are_grouped() -> None:
    values: dict[str, float | None] = {f"n{number:02}": 0 for number in range(10)}
    values |= {f"g{number:02}": 100 for number in range(12)} | {"x": 50, "y": None}
    rules = {"p": {"mode": "Enforce", "scores": {"a": values}}}
    assert _lines(SCHEDULED | {"rules": rules})[-1].split(maxsplit=2)[2] == (
        "gives 100: 12 nodes; 50: x; 0: 10 nodes; no score: y"
    )


def test_scores_of_tiers_order_nodes_before_their_totals() -> None:
    nodes = [f"n{number}" for number in range(1, 23)]
    record = SCHEDULED | {
        "scores": {name: {"A": 1, "P": 5} for name in nodes},
        "total": {name: number for number, name in enumerate(nodes)},
        "tiers": {name: {"9": 5, "10": 7 if name == "n1" else 2} for name in nodes},
    }
    found = _lines(record)
    assert [line.split() for line in found[2:7:2]] == [
        ["node", "A", "P", "tier", "10", "tier", "9", "total"], ["n1", "1", "5", "7", "5", "0"],
        ["n21", "1", "5", "2", "5", "20"],
    ]  # fmt: skip
    assert found[-1].strip() == "… and 2 nodes that rank lower"


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ({"mode": "Enforce"}, ["p all reject no node"]),
        ({"mode": "Enforce", "waits": "namespace unknown"}, ["p all reject all nodes: namespace unknown"]),
        (
            {"mode": "Shadow", "filters": {"a": {"n2": "false", "n1": "missing"}}},
            ["p (Shadow, no effect) a rejects n1 (missing value), n2"],
        ),
        (
            {"mode": "Enforce", "scores": {"a": {"n1": None, "n2": 33.333333, "n3": 70, "n4": 0.5}}},
            ["p a gives n3 70, n2 33.33, n4 0.5, n1 no score"],
        ),
    ],
)
def test_rules_are_said_one_a_line(policy: dict[str, Any], expected: list[str]) -> None:
    shown = _lines(SCHEDULED | {"rules": {"p": policy}})
    assert shown[shown.index("policy rule result") + 2 :] == expected


def test_scores_that_are_not_computed_are_explained() -> None:
    record = POD | {"result": "Unschedulable", "fitError": "0/1", "rules": {"p": {"mode": "Enforce"}}}
    assert _lines(record)[-1] == "p all reject no node; scores are only computed if a node fits"
