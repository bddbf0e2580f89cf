"""What tests expect: each expectation holds where it should, fails where it should, and says why."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.app.policy_tests.folders import SPEC, result_of, results

BOTH = "rejected: {big: [n1]}"
GOOD = [
    f"{{{BOTH}, result: Scheduled, selected: n2, best: [n2], ties: 1}}",
    "{rules: {big: {kept: [n2, n3], false: [n1], missing: []}}}",
    f"{{{BOTH}, scores: {{even: {{n2: 50}}}}}}",
    "{rejected: {policy/big: ['?1']}, scores: {policy/even: {'*': 50.004}}}",
    f"{{{BOTH}, plugins: {{SchedulingPolicy/policy: {{n2: 50}}}}, total: {{'n2': 447}}}}",
    f"{{{BOTH}, nodes: {{n3: {{feasible: false, plugin: TaintToleration, reason: {{contains: untolerated}}}}}}}}",
    f"{{{BOTH}, nodes: {{n1: {{code: UnschedulableAndUnresolvable, reason: 'policy policy/big: too small'}}}}}}",
    f"{{{BOTH}, nodes: {{n2: {{feasible: true}}}}}}",
]
BAD = [
    (f"{{{BOTH}, result: Unschedulable}}", "result", "Unschedulable", "Scheduled"),
    (f"{{{BOTH}, selected: n3}}", "selected", "n3", "n2"),
    (f"{{{BOTH}, best: [n2, n3]}}", "best", "n2, n3", "n2"),
    (f"{{{BOTH}, ties: 2}}", "ties", "2", "1"),
    ("{best: [n2]}", "", "none, because `rejected` is not given", "n1"),
    ("{rejected: {big: [n1, n2]}}", "rejected.big", "n1, n2", "n1"),
    (f"{{{BOTH}, rules: {{fresh: {{kept: [n1]}}}}}}", "rules.fresh.kept", "n1", "n1, n2, n3"),
    ("{rules: {big: {false: []}}}", "rules.big.false", "none", "n1"),
    ("{rules: {big: {missing: [n1]}}}", "rules.big.missing", "n1", "none"),
    (f"{{{BOTH}, scores: {{}}}}", "scores", "none", "policy/even"),
    (f"{{{BOTH}, scores: {{even: {{n2: 51}}}}}}", "scores.even", "n2 51", "n2 50"),
    (f"{{{BOTH}, scores: {{even: {{n2: null}}}}}}", "scores.even", "n2 no score", "n2 50"),
    (f"{{{BOTH}, scores: {{even: {{n2: 50, n3: 50}}}}}}", "scores.even", "n3 50", "n3 none"),
    (f"{{{BOTH}, scores: {{even: {{}}}}}}", "scores.even", "n2 none", "n2 50"),
    (f"{{{BOTH}, plugins: {{ImageLocality: {{n2: 1}}}}}}", "plugins.ImageLocality", "n2 1", "n2 0"),
    (f"{{{BOTH}, total: {{n2: 1}}}}", "total", "n2 1", "n2 447"),
    (f"{{{BOTH}, nodes: {{n2: {{feasible: false}}}}}}", "nodes.n2.feasible", "false", "true"),
    (f"{{{BOTH}, nodes: {{n3: {{plugin: NodeName}}}}}}", "nodes.n3.plugin", "NodeName", "TaintToleration"),
    (f"{{{BOTH}, nodes: {{n2: {{reason: too small}}}}}}", "nodes.n2.reason", "too small", "none"),
    (f"{{{BOTH}, reason: {{contains: available}}}}", "reason", "… available …", "none"),
    (f"{{{BOTH}, error: {{equals: boom}}}}", "error", "boom", "none"),
    (f"{{{BOTH}, notApplied: {{policy: {{contains: ''}}}}}}", "notApplied.policy", "…  …", "it applies"),
    (f"{{{BOTH}, protected: [default/new]}}", "protected", "default/new", "none"),
    (f"{{{BOTH}, nominated: {{n2: [default/new]}}}}", "nominated", "default/new on n2", "none"),
]
UNKNOWN = [
    ("{best: [n22]}", "no node `n22`; did you mean `n2`?"),
    ("{best: ['x*']}", "no node `x*`; known: n1, n2, n3"),
    ("{selected: m}", "no node `m`; known: n1, n2, n3"),
    ("{rejected: {bigg: []}}", "no rule `bigg`; did you mean `big`?"),
    ("{rules: {even: {}}}", "`even` is a score, not a filter"),
    ("{rejected: {policy/even: [n1]}}", "`policy/even` is a score, not a filter"),
    ("{scores: {big: {n1: 1}}}", "`big` is a filter, not a score"),
    ("{rules: {evn: {}}}", "no rule `evn`"),
    ("{scores: {evn: {}}}", "no rule `evn`; did you mean `even`?"),
    ("{scores: {even: {n9: 1}}}", "no node `n9`"),
    ("{plugins: {ImageLocalty: {n2: 1}}}", "no plugin `ImageLocalty`; did you mean `ImageLocality`?"),
    ("{nodes: {n9: {}}}", "no node `n9`"),
    ("{notApplied: {polcy: a}}", "no policy `polcy`; did you mean `policy`?"),
    ("{protected: [web]}", "no pod `web`; known: default/new"),
    ("{nominated: {n9: []}}", "no node `n9`"),
    ("{tiers: {'2': {n2: 1}}}", "no tier `2`; the test has no tier"),
]


@pytest.mark.parametrize("expect", GOOD)
def test_what_is_so_passes(tmp_path: Path, expect: str) -> None:
    found = result_of(tmp_path, expect)
    assert found.passed, (found.problem, found.differences)


@pytest.mark.parametrize(("expect", "field", "expected", "got"), BAD)
def test_what_is_not_so_is_one_difference(tmp_path: Path, expect: str, field: str, expected: str, got: str) -> None:
    found = result_of(tmp_path, expect)
    assert found.problem == ""
    [one] = found.differences
    assert one.field == f"tests[0].expect.{field}".rstrip(".")
    assert (one.expected, one.got) == (expected, got)


@pytest.mark.parametrize(("expect", "problem"), UNKNOWN)
def test_a_name_that_is_not_there_is_an_error_with_its_place(tmp_path: Path, expect: str, problem: str) -> None:
    found = result_of(tmp_path, expect)
    place, _, text = found.problem.partition(": ")
    assert place.startswith(f"{tmp_path}/tests.yaml:8:")
    assert text.startswith(problem)


def test_a_reason_that_differs_is_given_once(tmp_path: Path) -> None:
    spec = "filters: [{name: none, require: 'false'}]"
    found = result_of(tmp_path, "{rejected: {none: ['*']}, reason: {contains: nonsense}}", spec)
    [one] = [one for one in found.differences if one.what == "reason"]
    assert one.got.startswith("0/3 nodes are available")
    assert one.got not in one.reasons


def test_sums_of_tiers_are_expected_by_tier(tmp_path: Path) -> None:
    spec = f"tier: 3\n{SPEC}"
    good = result_of(tmp_path, f"{{{BOTH}, tiers: {{'3': {{'*': 50}}}}, total: {{n2: 397}}}}", spec)
    assert good.passed, (good.problem, good.differences)
    [one] = result_of(tmp_path, f"{{{BOTH}, tiers: {{'3': {{n2: 5}}}}}}", spec).differences
    assert (one.field, one.expected, one.got) == ("tests[0].expect.tiers.3", "n2 5", "n2 50")
    assert one.reasons[0].startswith("n2 has 50 in tier 3, 397: ")
    problem = result_of(tmp_path, f"{{{BOTH}, tiers: {{'2': {{n2: 1}}}}}}", spec).problem
    assert problem.endswith("no tier `2`; known: 3")


def test_a_rule_of_two_policies_is_named_with_its_policy(tmp_path: Path) -> None:
    text = """\
    cluster:
      nodes: [{name: n1, allocatable: {cpu: 2}}, {name: n2}]
      objects:
      - apiVersion: policysched.io/v1beta1
        kind: SchedulingPolicy
        metadata: {name: other}
        spec: {filters: [{name: big, require: node.ready}]}
    tests:
    - {given: a, expect: {rejected: {big: []}}}
    - {given: b, expect: {rejected: {policy/big: [n1]}, rules: {other/big: {kept: [n1, n2]}}}}
    """
    first, second = results(tmp_path, text)
    assert "several policies have a rule `big`; write other/big or policy/big" in first.problem
    assert second.passed


def test_a_difference_says_what_became_of_the_nodes(tmp_path: Path) -> None:
    [found] = result_of(tmp_path, "{rejected: {big: [n1]}, best: [n3]}").differences
    assert found.reasons[0].startswith("n2 has 447: TaintToleration 300, ")
    assert found.reasons[1:] == ("n3 is rejected by TaintToleration: node(s) had untolerated taint(s)",)
