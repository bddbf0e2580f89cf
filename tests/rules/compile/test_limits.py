"""Policies with everything in them as large as it may be: an answer, in bounded time."""

from __future__ import annotations

import time
from typing import Any

import pytest

from policysched.language import load_grammar
from policysched.language.syntax.parser import MAX_CHARACTERS
from policysched.rules.compile.compiler import MAX_CHARACTERS as MOST_TOGETHER
from policysched.rules.compile.compiler import compile_policy
from policysched.rules.compile.policy import REQUIREMENTS_PER_UNIT
from policysched.rules.policy_status.status import MAX_DIAGNOSTICS
from tests.rules.build import filtering, policy, scoring
from tests.work import calls

pytestmark = pytest.mark.usefixtures("others_apart")
LONGEST = 1.0
"""Units: seconds of the processor for a policy."""
DEEPEST = 29
WORDS = 235
LONG_RULES = MOST_TOGETHER // MAX_CHARACTERS
load_grammar()


def _condition(number: int) -> str:
    """A condition of about as many words, levels and characters as a text may have, another one each time."""
    deep = "(" * DEEPEST + f"node.free.cpu >= {number}" + ")" * DEEPEST
    return " and ".join([deep, *["node.ready"] * WORDS])


def _padded(text: str) -> str:
    return text + " " * (MAX_CHARACTERS - len(text))


def _result(**spec: Any) -> Any:
    """Compile a policy within the longest time."""
    begin = time.process_time()
    result = compile_policy(policy(**spec))
    assert time.process_time() - begin < LONGEST
    return result


def test_a_policy_at_every_limit_is_told_its_cost() -> None:
    half = LONG_RULES // 2
    filters = [rule for n in range(half) for rule in filtering(_padded(_condition(n)), f"f{n}")]
    scores = [rule for n in range(half) for rule in scoring(_padded(f"if({_condition(n)}, 1, 20)"), f"s{n}")]
    result = _result(filters=filters, scores=scores)
    assert [(one.code, one.field) for one in result.diagnostics] == [("E0601", "spec")]


@pytest.mark.parametrize(
    "text", ["(" * MAX_CHARACTERS, "not " * 1000 + "true", '"\0\u202e' * 1000, "“a” " * 1000, "- " * 512]
)
def test_every_rule_that_makes_no_sense_gets_one_error(text: str) -> None:
    filters = [rule for n in range(LONG_RULES) for rule in filtering(text, f"f{n}")]
    result = _result(filters=filters)
    assert [one.field for one in result.diagnostics] == [f"spec.filters[{n}].require" for n in range(LONG_RULES)]
    assert {one.severity for one in result.diagnostics} == {"error"}


def test_lets_in_a_circle_get_one_error_each() -> None:
    lets = [{"name": f"a{n}", "value": f"a{(n + 1) % MAX_DIAGNOSTICS}"} for n in range(MAX_DIAGNOSTICS)]
    result = _result(let=lets, filters=filtering("a0 > 1"))
    assert [one.code for one in result.diagnostics] == ["E0207"] * (MAX_DIAGNOSTICS - 1)


def _expressions(count: int, values: int = 1) -> list[dict[str, Any]]:
    listed = [f"v{number}" for number in range(values)]
    return [{"key": f"k{number}", "operator": "NotIn", "values": listed} for number in range(count)]


@pytest.mark.parametrize(
    ("pods", "namespaces", "said"),
    [
        ({"matchLabels": {f"k{n}": "v" for n in range(257)}}, None, "257 requirements in its selectors"),
        ({"matchExpressions": _expressions(200)}, {"matchExpressions": _expressions(57)}, "257 requirements"),
        ({"matchExpressions": _expressions(2, 4097)}, None, "8194 values in its selectors"),
    ],
)
def test_selectors_are_counted_before_they_are_compiled(pods: Any, namespaces: Any, said: str) -> None:
    result = _result(podSelector=pods, namespaceSelector=namespaces, filters=filtering("true"))
    assert [(one.code, one.field) for one in result.diagnostics] == [("E0601", "spec")]
    assert f"the policy has {said}" in result.diagnostics[0].message


def test_requirements_of_selectors_take_room() -> None:
    small = _result(filters=filtering("node.ready")).policy
    large = _result(filters=filtering("node.ready"), podSelector={"matchExpressions": _expressions(256)}).policy
    assert large.units == small.units + 256 // REQUIREMENTS_PER_UNIT


@pytest.mark.parametrize("word", ["or", "and"])
def test_what_many_cases_share_is_looked_at_once(word: str) -> None:
    wide = [
        {"name": f"m{one}", "value": f" {word} ".join(f'node.labels["{one}x{label}"] != ""' for label in range(60))}
        for one in range(10)
    ]
    shared = [*wide, {"name": "shared", "value": f" {word} ".join(one["name"] for one in wide)}]

    def work(count: int) -> int:
        cases = [f'shared and node.name != "{one}" → 1' for one in range(count)]
        return calls(lambda: compile_policy(policy(let=shared, scores=[{"name": "s", "cases": cases}])))

    assert work(80) < 1.7 * work(40)


@pytest.mark.parametrize("step", ["if({0} ?? false, {0}, node.cordoned)", "({0} or node.ready) and node.cordoned"])
def test_conditions_may_stand_in_each_other_as_often_as_lines_allow(step: str) -> None:
    lines = [{"name": "l0", "value": 'node.labels["a"] == "x"'}]
    lines += [{"name": f"l{one}", "value": step.format(f"l{one - 1}")} for one in range(1, 250)]
    found = compile_policy(policy(let=lines, filters=[{"name": "f", "require": "l249 ?? false"}]))
    assert {one.code for one in found.diagnostics} <= {"E0601"}
