"""`spec.placement` as it is compiled: its fields, its mistakes, and what it costs."""

from __future__ import annotations

from typing import Any

import pytest

from policysched.rules.compile.compiler import MAX_RULES, compile_policy
from tests.rules.build import compiled, filtering, policy, scoring

SUM = "placement.nodes.sum(node.free.cpu)"


def found(**spec: Any) -> list[tuple[str, str]]:
    """The code and field of each diagnostic of a policy."""
    return [(one.code, one.field) for one in compile_policy(policy(**spec)).diagnostics]


@pytest.mark.parametrize(
    ("placement", "code", "field"),
    [
        ({"topologyKey": "a b"}, "E0312", "topologyKey"),
        ({"filters": filtering("node.free.cpu > 1")}, "E0406", "filters[0].require"),
        ({"filters": filtering("placement.size > 1", when="pod.priority > 1")}, "E0405", "filters[0].when"),
        ({"filters": [*filtering("placement.size > 1")] * 2}, "E0208", "filters[1].name"),
        ({"filters": filtering("placement.size > 1", name="A")}, "E0208", "filters[0].name"),
        ({"scores": [*scoring("placement.size")] * 2}, "E0208", "scores[1].name"),
        ({"scores": scoring("normalize(placement.size)")}, "E0506", "scores[0].value"),
        (
            {"scores": scoring(["placement.size > 1 → 5", "else → node.free.cpu / 1000m"])},
            "E0406",
            "scores[0].cases[1]",
        ),
        ({"scores": [{"name": "s"}]}, "E0501", "scores[0]"),
        ({"scores": scoring("50")}, "W0707", "scores[0].value"),
        ({"filters": filtering("true")}, "W0703", "filters[0].require"),
        ({"filters": filtering("placement.size > 1", message="{{ x }}")}, "W0714", "filters[0].message"),
    ],
    ids=str,
)
def test_mistakes_are_found(placement: dict[str, Any], code: str, field: str) -> None:
    assert found(placement=placement) == [(code, f"spec.placement.{field}")]


def test_let_names_and_metrics_can_be_used() -> None:
    let = [{"name": "cores", "value": "node.free.cpu"}, {"name": "total", "value": "sum(cores)"}]
    metrics = [{"name": "load", "query": "load"}]
    require = "placement.nodes.sum(cores) > total / 10 and placement.nodes.count(metrics.load < 0.5) > 0"
    assert found(let=let, metrics=metrics, placement={"filters": filtering(require)}) == []
    outside = found(let=let, placement={"filters": filtering("cores > total")})
    assert outside == [("E0406", "spec.placement.filters[0].require")]
    of_pod = [{"name": "wanted", "value": "pod.requests.cpu"}]
    assert found(let=of_pod, placement={"filters": filtering(f"{SUM} > wanted")}) == [
        ("E0406", "spec.placement.filters[0].require")
    ]


def test_rules_count_and_cost_as_those_of_nodes() -> None:
    rules = {"filters": filtering(f"{SUM} > 1"), "scores": scoring(f"{SUM} / 1000m")}
    made = compiled(placement=rules)
    assert made.rules_count == 2
    assert made.units > compiled(placement={"filters": filtering("placement.size > 1")}).units > 0
    assert [item.text for item in made.inputs] == ["node.free.cpu"]
    many = [*(one for number in range(MAX_RULES + 1) for one in filtering("placement.size > 1", name=f"r{number}"))]
    assert ("E0601", "spec") in found(placement={"filters": many})


def test_policy_with_placement_rules_only_has_rules() -> None:
    assert found(placement={"topologyKey": "example.com/rack"}) == []
