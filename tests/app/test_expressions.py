from __future__ import annotations

import re
from typing import Any

import pytest

from policysched import check
from policysched.app.checking.findings import expressions, is_policy, with_expressions
from policysched.app.checking.schema import policy_schema

POLICY: dict[str, Any] = {
    "apiVersion": "policysched.io/v1beta1",
    "kind": "SchedulingPolicy",
    "metadata": {"name": "p", "annotations": {"when": "a"}},
    "spec": {
        "appliesTo": "?",
        "let": [{"name": "a", "value": "?"}, {"name": "b", "value": 5}],
        "filters": [{"name": "a", "when": "?", "require": "?", "message": "m"}],
        "preemption": {"require": "?", "message": "m"},
        "scores": [{"name": "a", "when": "?", "value": "?"}, {"name": "b", "cases": ["?", "?"]}],
        "placement": {
            "topologyKey": "k",
            "filters": [{"name": "a", "when": "?", "require": "?", "message": "m"}],
            "scores": [{"name": "a", "when": "?", "value": "?"}, {"name": "b", "cases": ["?"]}],
        },
    },
}
FIELDS = [
    "spec.appliesTo",
    "spec.let[0].value",
    "spec.filters[0].when",
    "spec.filters[0].require",
    "spec.preemption.require",
    "spec.scores[0].when",
    "spec.scores[0].value",
    "spec.scores[1].cases[0]",
    "spec.scores[1].cases[1]",
    "spec.placement.filters[0].when",
    "spec.placement.filters[0].require",
    "spec.placement.scores[0].when",
    "spec.placement.scores[0].value",
    "spec.placement.scores[1].cases[0]",
]


def test_expressions_are_the_texts_that_are_compiled() -> None:
    found = [one.field for one in expressions(POLICY)]
    assert found == FIELDS
    assert {one.field for one in check([POLICY])} == set(FIELDS)


def test_cases_are_cases_and_all_others_are_not() -> None:
    starts = {re.sub(r"\[\d\]", "", one.field): one.start for one in expressions(POLICY)}
    assert {field for field, start in starts.items() if start == "case"} == {
        "spec.scores.cases",
        "spec.placement.scores.cases",
    }


def test_every_text_of_the_resource_that_may_be_long_is_an_expression_but_for_queries() -> None:
    def long_texts(schema: dict[str, Any], path: str) -> list[str]:
        found = [path] if schema.get("maxLength") == 4096 else []
        for name, below in schema.get("properties", {}).items():
            found += long_texts(below, f"{path}.{name}")
        return found + (long_texts(schema["items"], path) if "items" in schema else [])

    known = {re.sub(r"\[\d\]", "", field) for field in FIELDS}
    assert set(long_texts(policy_schema()["properties"]["spec"], "spec")) - known == {"spec.metrics.query"}


def test_changing_expressions_leaves_the_rest_and_the_given_policy_alone() -> None:
    before = repr(POLICY)
    made = with_expressions(POLICY, lambda one: f"{one.text}!")
    assert [one.text for one in expressions(made)] == ["?!"] * len(FIELDS)
    assert made["spec"]["let"][1] == {"name": "b", "value": 5}
    assert made["spec"]["filters"][0]["message"] == "m"
    assert made["metadata"] == POLICY["metadata"]
    assert repr(POLICY) == before


@pytest.mark.parametrize(
    "spec", [None, 5, [], {"filters": 5}, {"filters": [5, {"require": 5}]}, {"scores": [{"cases": "a"}]}]
)
def test_misshapen_policies_have_fewer_expressions(spec: Any) -> None:
    assert list(expressions({**POLICY, "spec": spec})) == []


@pytest.mark.parametrize(
    ("raw", "ours"),
    [
        (POLICY, True),
        ({**POLICY, "apiVersion": "policysched.io/v1"}, True),
        ({**POLICY, "apiVersion": "example.com/v1"}, False),
        ({"kind": "SchedulingPolicy"}, False),
        ({**POLICY, "kind": "Pod"}, False),
    ],
)
def test_policies_are_those_of_our_group(raw: dict[str, Any], ours: bool) -> None:
    assert is_policy(raw) == ours
