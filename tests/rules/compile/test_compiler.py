from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from policysched.rules.compile import compiler
from policysched.rules.compile.compiler import (
    MAX_CHARACTERS,
    MAX_LETS,
    MAX_METRICS,
    MAX_RULES,
    _texts,
    compile_policy,
)
from tests.rules.build import Spec, compiled, filtering, policy, scoring
from tests.work import calls

CHEAP = filtering("node.ready", "cheap")


def found(**spec: Any) -> list[tuple[str, str]]:
    """Codes and fields of what is wrong."""
    return [(one.code, one.field) for one in compile_policy(policy(**spec)).diagnostics]


def errors(**spec: Any) -> list[tuple[str, str]]:
    """Codes and fields of errors."""
    return [(code, field) for code, field in found(**spec) if code.startswith("E")]


MISTAKES: list[tuple[Spec, list[tuple[str, str]]]] = [
    ({"appliesTo": "pod.name"}, [("E0302", "spec.appliesTo")]),
    ({"appliesTo": "node.ready"}, [("E0405", "spec.appliesTo")]),
    ({"filters": filtering("1 +")}, [("E0100", "spec.filters[0].require")]),
    ({"filters": filtering("node.ready", when="node.ready")}, [("E0405", "spec.filters[0].when")]),
    ({"filters": [*CHEAP, *filtering('node.labels["a"] < "b"', "other")]}, [("E0304", "spec.filters[1].require")]),
    ({"filters": filtering("normalize(node.free.pods) > 1")}, [("E0506", "spec.filters[0].require")]),
    ({"scores": scoring("node.ready")}, [("E0505", "spec.scores[0].value")]),
    ({"scores": scoring("node.free.cpu")}, [("E0501", "spec.scores[0].value")]),
    ({"scores": scoring(101)}, [("E0502", "spec.scores[0].value")]),
    ({"scores": scoring(1, when="cluster.nodes > 1")}, [("E0405", "spec.scores[0].when")]),
    (
        {"scores": scoring(["node.ready → 1", "nod → 2", "else → 3", "else → 4"])},
        [("E0201", "spec.scores[0].cases[1]"), ("E0503", "spec.scores[0].cases[3]")],
    ),
    ({"scores": [{"name": "s"}]}, [("E0501", "spec.scores[0]")]),
    ({"scores": [{"name": "s", "cases": ["else → 1"], "value": 1}]}, [("E0501", "spec.scores[0]")]),
    ({"let": [{"name": "a", "value": "1 +"}]}, [("E0100", "spec.let[0].value")]),
    ({"let": [{"name": "node", "value": "1"}]}, [("E0208", "spec.let[0].name")]),
    ({"let": [{"name": "a-b", "value": "1"}]}, [("E0208", "spec.let[0].name")]),
    (
        {"let": [{"name": "a", "value": "b"}, {"name": "b", "value": "1"}, {"name": "a", "value": "2"}]},
        [("E0207", "spec.let[0].value"), ("E0207", "spec.let[2].name")],
    ),
    ({"let": [{"name": "a", "value": "nod"}], "filters": filtering("a > 1")}, [("E0201", "spec.let[0].value")]),
    ({"filters": [*CHEAP, *CHEAP]}, [("E0208", "spec.filters[1].name")]),
    ({"scores": [*scoring(1), *scoring(2)]}, [("E0208", "spec.scores[1].name")]),
    ({"metrics": [{"name": "sum", "query": "up"}]}, [("E0208", "spec.metrics[0].name")]),
    ({"metrics": [{"name": "a", "query": "up"}] * 2}, [("E0208", "spec.metrics[1].name")]),
    ({"schedulerNames": ["a", ""]}, [("E0312", "spec.schedulerNames[1]")]),
    ({"schedulerNames": [" "]}, [("E0312", "spec.schedulerNames[0]")]),
    ({"metrics": [{"name": "a", "query": " "}]}, [("E0312", "spec.metrics[0].query")]),
    ({"metrics": [{"name": "a", "query": "up", "nodeLabel": ""}]}, [("E0312", "spec.metrics[0].nodeLabel")]),
    ({"metrics": [{"name": "a", "query": "up", "unit": "byte"}]}, [("E0102", "spec.metrics[0].unit")]),
    ({"metrics": [{"name": "a", "query": "up", "maxAge": "2 minutes"}]}, [("E0100", "spec.metrics[0].maxAge")]),
    ({"metrics": [{"name": "a", "query": "up", "maxAge": "120"}]}, [("E0301", "spec.metrics[0].maxAge")]),
    ({"metrics": [{"name": "a", "query": "up", "maxAge": "pod.name"}]}, [("E0301", "spec.metrics[0].maxAge")]),
    ({"metrics": [{"name": "a", "query": "up", "maxAge": "0min"}]}, [("E0312", "spec.metrics[0].maxAge")]),
    ({"filters": filtering("node.ready", "Big Rule")}, [("E0208", "spec.filters[0].name")]),
    ({"scores": [*scoring(1, "-a"), *scoring(1, "-a")]}, [("E0208", f"spec.scores[{n}].name") for n in (0, 1)]),
    ({"name": "a.b"}, [("E0208", "metadata.name")]),
    ({"name": "a" * 64}, [("E0208", "metadata.name")]),
    (
        {"podSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
        [("E0312", "spec.podSelector.matchExpressions[0]")],
    ),
    (
        {"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Like", "values": ["b"]}]}},
        [("E0312", "spec.namespaceSelector.matchExpressions[0].operator")],
    ),
    (
        {
            "podSelector": {
                "matchLabels": {"a b": "c"},
                "matchExpressions": [
                    {"key": "a", "operator": "Exists"},
                    {"key": "a", "operator": "equals", "values": ["b"]},
                    {"key": "a b", "operator": "Exists"},
                ],
            }
        },
        [
            ("E0312", "spec.podSelector.matchLabels"),
            ("E0312", "spec.podSelector.matchExpressions[1].operator"),
            ("E0312", "spec.podSelector.matchExpressions[2]"),
        ],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "mistakes"), MISTAKES)
def test_every_mistake_is_found_at_its_field(spec: Spec, mistakes: list[tuple[str, str]]) -> None:
    result = compile_policy(policy(**spec))
    assert [(one.code, one.field) for one in result.diagnostics if one.severity == "error"] == mistakes
    assert result.policy is None
    assert result.errors == len(mistakes)


def test_mistakes_of_all_fields_come_together() -> None:
    spec: Spec = {
        "appliesTo": "pod.nam",
        "let": [{"name": "a", "value": "nod"}],
        "filters": [*filtering("yes", "one", when="no"), *filtering("maybe", "two")],
        "scores": scoring("perhaps"),
    }
    assert [field for _, field in found(**spec)] == [
        "spec.let[0].value",
        "spec.appliesTo",
        "spec.filters[0].when",
        "spec.filters[0].require",
        "spec.filters[1].require",
        "spec.scores[0].value",
    ]


def test_a_filter_and_a_score_may_share_a_name() -> None:
    assert found(filters=CHEAP, scores=scoring("node.free.pods", "cheap")) == []


def test_a_warning_does_not_stop_a_policy() -> None:
    result = compile_policy(policy(filters=filtering('number(node.labels["a"]) > 1')))
    assert [(one.code, one.field, one.severity) for one in result.diagnostics] == [
        ("W0701", "spec.filters[0].require", "warning")
    ]
    assert result.policy is not None
    assert result.errors == 0


@pytest.mark.parametrize(
    ("filters", "scores", "allowed"), [(64, 0, True), (32, 32, True), (65, 0, False), (1, 64, False)]
)
def test_a_policy_has_at_most_64_rules(filters: int, scores: int, allowed: bool) -> None:
    spec: Spec = {
        "filters": [rule for number in range(filters) for rule in filtering("node.ready", f"f{number}")],
        "scores": [rule for number in range(scores) for rule in scoring("node.free.pods", f"s{number}")],
    }
    assert found(**spec) == ([] if allowed else [("E0601", "spec")])
    if not allowed:
        message = compile_policy(policy(**spec)).diagnostics[0].message
        assert message == f"the policy has {filters + scores} rules, more than the limit of {MAX_RULES}"


@pytest.mark.parametrize(("lets", "allowed"), [(MAX_LETS, True), (MAX_LETS + 1, False)])
def test_a_policy_has_a_bounded_number_of_lets(lets: int, allowed: bool) -> None:
    spec: Spec = {"let": [{"name": f"a{number}", "value": number} for number in range(lets)], "filters": CHEAP}
    assert errors(**spec) == ([] if allowed else [("E0601", "spec")])


@pytest.mark.parametrize(("metrics", "allowed"), [(MAX_METRICS, True), (MAX_METRICS + 1, False)])
def test_a_policy_has_a_bounded_number_of_metrics(metrics: int, allowed: bool) -> None:
    declared = [{"name": f"m{number}", "query": "q"} for number in range(metrics)]
    assert errors(metrics=declared, filters=CHEAP) == ([] if allowed else [("E0601", "spec")])


@pytest.mark.parametrize("over", [0, 1])
def test_the_expressions_of_a_policy_have_a_bounded_length_together(over: int, monkeypatch: pytest.MonkeyPatch) -> None:
    text, case = "node.ready".ljust(4096), "node.ready → 1".ljust(1024)
    spec: dict[str, Any] = {
        "appliesTo": "pod.priority > 1".ljust(4096),
        "let": [{"name": "a", "value": "1".ljust(4096)}],
        "filters": filtering(text, when="pod.priority > 1".ljust(4096 + over)),
        "scores": scoring([case, *[f"node.free.cpu > {n} → 1".ljust(1024) for n in range(47)]]),
    }
    assert sum(map(len, _texts(policy(**spec).spec))) == MAX_CHARACTERS + over
    asked: list[object] = []
    for name in ("compile_expression", "compile_cases"):
        compile_text = getattr(compiler, name)

        def counted(text: object, *given: Any, compile_text: Any = compile_text) -> Any:
            asked.append(text)
            return compile_text(text, *given)

        monkeypatch.setattr(compiler, name, counted)
    codes = [code for code, _ in errors(**spec)]
    assert codes == (["E0601"] if over else [])
    assert len(asked) == (0 if over else 4)  # nothing of a policy that is too large is compiled


def expensive(operations: int) -> list[Spec]:
    parts = [f'node.labels["k{number}"] == "x"' for number in range(operations)]
    return [
        rule
        for start in range(0, operations, 16)
        for rule in filtering(" or ".join(parts[start : start + 16]), f"f{start}")
    ]


def test_a_policy_over_the_cost_limit_is_refused() -> None:
    # 16 comparisons and 15 operators a rule
    assert compile_policy(policy(filters=expensive(128))).cost.nodes == 8 * 31
    assert found(filters=expensive(128)) == []
    assert found(filters=expensive(144)) == [("E0601", "spec")]


def test_equal_parts_of_rules_cost_once() -> None:
    once = compile_policy(policy(filters=expensive(16))).cost
    twice = compile_policy(policy(filters=[*expensive(16), *filtering(expensive(16)[0]["require"], "again")])).cost
    assert once == twice


def test_a_value_may_be_a_number_or_a_text() -> None:
    for value in (50, "50"):
        made = compiled(scores=scoring(value))
        assert made.scores[0].value.constant == 50.0


def test_normalizing_by_the_maximum_allows_any_constant() -> None:
    assert found(scores=scoring(["node.ready → 5000"], normalize="Max")) == []


def test_lets_are_known_below_and_everywhere() -> None:
    lets = [{"name": "free", "value": "node.free.cpu / 1000m"}, {"name": "twice", "value": "free * 2"}]
    made = compiled(
        let=[*lets, {"name": "team", "value": 'pod.labels["team"] ?? "none"'}],
        appliesTo='team == "a"',
        filters=filtering("twice > 1", when='team != "b"'),
        scores=scoring("clamp(free, 0, 100)"),
    )
    assert [item.text for item in made.inputs] == ['pod.labels["team"]', "node.free.cpu"]


def test_the_arm_for_missing_is_kept_apart() -> None:
    cases = ['number(node.labels["a"]) > 1 → 5', "else → 6", "missing → 7"]
    rule = compiled(scores=scoring(cases, weight=3)).scores[0]
    assert (rule.missing, rule.has_missing_arm, rule.weight) == (7.0, True, 3)
    rule = compiled(scores=scoring(["node.ready → 5", "else → 6"])).scores[0]
    assert (rule.missing, rule.has_missing_arm, rule.weight) == (0.0, False, 1)


@pytest.mark.parametrize(
    ("require", "resolvable"),
    [
        ("node.free.cpu > 1", True),
        ("node.requested.cpu > 1", True),
        ('node.free["x.io/y"] > 1', True),
        ("cluster.pods < 5", True),
        ("node.ready and node.requested.pods < 5", True),
        ("node.allocatable.cpu > 1", False),
        ("node.allocatable.pods > 1", False),
        ("cluster.nodes > 1", False),
        ("pod.requests.pods > 1 or node.ready", False),
        ('node.labels["free"] == "x"', False),
    ],
)
def test_removing_pods_can_help_where_a_rule_reads_what_they_take(require: str, resolvable: bool) -> None:
    assert compiled(filters=filtering(require)).filters[0].resolvable is resolvable


def test_another_spec_is_compiled_under_the_name_with_its_generation() -> None:
    newest = policy("p", generation=7, filters=filtering("nonsense"))
    remembered = policy("other", filters=CHEAP).spec
    result = compile_policy(newest, remembered, 5)
    assert result.policy is not None
    assert (result.policy.key, result.policy.generation, result.policy.spec) == ("p", 5, remembered)


def test_a_finding_about_a_name_spans_it() -> None:
    one = compile_policy(policy(filters=[*CHEAP, *CHEAP])).diagnostics[0]
    assert (one.line, one.column, one.end_column, one.message) == (1, 1, 6, 'two filters have the name "cheap"')


def test_a_wrong_unit_names_the_ones_there_are() -> None:
    for unit, hint in (("byte", "did you mean `bytes`?"), ("X", "write one of number, cpu, bytes, duration")):
        one = compile_policy(policy(metrics=[{"name": "a", "query": "up", "unit": unit}])).diagnostics[0]
        assert (one.message, one.help, one.end_column) == (f"unknown unit `{unit}`", hint, 1 + len(unit))


def test_an_invalid_selector_says_why() -> None:
    spec: Spec = {"podSelector": {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}}
    assert re.search("Exists|values", compile_policy(policy(**spec)).diagnostics[0].message)


LOAD = {"name": "load", "query": "up"}
USED = {"name": "a", "value": "node.free.cpu"}
WEIGHTLESS = [{"name": "none", "weight": 0, "value": "node.allocatable.pods"}]


def selecting(*requirements: tuple[str, ...], **labels: str) -> Spec:
    """Return a selector that speaks of the label `a` alone."""
    stated = [{"key": "a", "operator": one, "values": list(values)} for one, *values in requirements]
    return {"matchLabels": labels, "matchExpressions": stated}


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ({}, [("W0710", "spec")]),
        ({"let": [USED], "filters": CHEAP}, [("W0709", "spec.let[0].name")]),
        ({"metrics": [LOAD], "filters": CHEAP}, [("W0709", "spec.metrics[0].name")]),
        ({"metrics": [LOAD], "filters": filtering("(metrics.load > 1) ?? false")}, []),
        ({"metrics": [LOAD], "filters": filtering("sum(metrics.load) > 1")}, []),
        ({"metrics": [LOAD], "scores": scoring(["metrics.load > 1 → 5", "else → 80", "missing → 2"])}, []),
        (
            {"metrics": [LOAD], "let": [{"name": "a", "value": "metrics.load"}], "filters": CHEAP},
            [("W0709", "spec.let[0].name")],
        ),
        ({"let": [USED], "filters": filtering("a > 1")}, []),
        ({"let": [USED], "scores": scoring(["a > 1 → 5", "else → 80"])}, []),
        ({"let": [USED, {"name": "b", "value": "a"}], "filters": filtering("b > 1")}, []),
        ({"let": [{"name": "a", "value": "pod.priority"}], "appliesTo": "a > 1", "filters": CHEAP}, []),
        ({"let": [USED], "filters": filtering("nod")}, [("E0201", "spec.filters[0].require")]),
        ({"weight": 0, "filters": CHEAP}, []),
        ({"filters": CHEAP, "podSelector": selecting(("In", "b"), a="c")}, [("W0713", "spec.podSelector")]),
        ({"filters": CHEAP, "podSelector": selecting(("NotIn", "b"), a="b")}, [("W0713", "spec.podSelector")]),
        ({"filters": CHEAP, "podSelector": selecting(("DoesNotExist",), a="b")}, [("W0713", "spec.podSelector")]),
        (
            {"filters": CHEAP, "namespaceSelector": selecting(("Exists",), ("DoesNotExist",))},
            [("W0713", "spec.namespaceSelector")],
        ),
        (
            {"filters": CHEAP, "podSelector": selecting(("In", "b", "c"), ("NotIn", "c", "b"))},
            [("W0713", "spec.podSelector")],
        ),
        ({"filters": CHEAP, "podSelector": selecting(("In", "b"), ("In", "c"))}, [("W0713", "spec.podSelector")]),
        ({"filters": CHEAP, "podSelector": selecting(("In", "b", "c"), ("NotIn", "c"), ("Exists",), a="b")}, []),
        ({"filters": CHEAP, "podSelector": selecting(("NotIn", "b"), ("DoesNotExist",))}, []),
        ({"filters": CHEAP, "podSelector": {}}, []),
        ({"tier": 1, "filters": CHEAP}, [("W0712", "spec.tier")]),
        ({"tier": 1, "scores": scoring(["node.ready → 5"])}, []),
        ({"weight": 0, "scores": WEIGHTLESS}, [("W0711", "spec.weight")]),
        ({"scores": [*scoring(["node.ready → 5"]), *WEIGHTLESS]}, [("W0711", "spec.scores[1].weight")]),
    ],
)
def test_what_does_nothing_is_warned_of(spec: Spec, wanted: list[tuple[str, str]]) -> None:
    assert found(**spec) == wanted


GENERATIONS: list[Spec] = [
    {"let": [USED], "filters": filtering("a > 1"), "scores": scoring(["node.ready → 5", "else → 90"], weight=2)},
    {"let": [USED], "filters": filtering("a > 1"), "scores": scoring(["node.ready → 5", "else → 90"], weight=7)},
    {"let": [USED], "filters": filtering("node.ready"), "scores": scoring(["node.ready → 5", "else → 90"])},
    {"let": [USED | {"value": "node.free.pods"}], "filters": filtering("a > 1"), "appliesTo": "true", "weight": 0},
    {"filters": filtering("a > 1"), "scores": scoring("node.free.cpu", normalize="Max")},
    {"filters": filtering("metrics.a > 1"), "scores": scoring("node.free.cpu")},
    {"metrics": [{"name": "a", "query": "up"}], "filters": filtering("metrics.a > 1"), "scores": scoring("metrics.a")},
    {"metrics": [{"name": "a", "query": "down"}], "filters": filtering("metrics.a > 1"), "scores": scoring("1 +")},
    {"filters": filtering("node.ready", when="node.ready"), "preemption": {"require": "victim.priority < 5"}},
    {"filters": filtering("node.ready"), "preemption": {"require": "victim.priority < 6"}},
]


@pytest.mark.parametrize("first", range(len(GENERATIONS)))
def test_a_generation_after_another_compiles_as_it_would_by_itself(first: int) -> None:
    before = compile_policy(policy(**GENERATIONS[first]))
    for spec in GENERATIONS:
        newest = policy(generation=2, **spec)
        assert compile_policy(newest, before=before) == compile_policy(newest)


def test_an_edit_compiles_the_texts_that_it_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    spec: Spec = {"filters": [*CHEAP, *filtering("node.free.cpu > 1")], "scores": scoring(["else → 90"])}
    before = compile_policy(policy(**spec))
    asked: list[object] = []
    for name in ("compile_expression", "compile_cases"):
        compile_text = getattr(compiler, name)

        def counted(text: object, *given: Any, compile_text: Any = compile_text) -> Any:
            asked.append(text)
            return compile_text(text, *given)

        monkeypatch.setattr(compiler, name, counted)

    def texts(**edit: Any) -> list[object]:
        asked.clear()
        assert compile_policy(policy(**spec | edit), before=before).policy is not None
        return [*asked]

    assert texts(weight=7) == texts(priority=3, mode="Shadow", podSelector={}) == []
    assert texts(filters=[*filtering("node.free.cpu > 2"), *CHEAP]) == ["node.free.cpu > 2"]
    assert texts(scores=scoring(["else → 80"])) == [("else → 80",)]
    assert len(texts(let=[{"name": "b", "value": "1"}])) == 3


@pytest.mark.parametrize(
    "line",
    [
        'l{n} and node.labels["b"] == "x" or l{n} and node.labels["c"] == "y"',
        "if(l{n} ?? false, l{n}, not l{n})",
        "(l{n} ?? false) and (l{n} or l{n} ?? false)",
    ],
)
def test_filter_of_parts_that_stand_in_it_ever_more_often_takes_no_longer(line: str) -> None:
    def compiled_with(count: int) -> Callable[[], object]:
        lines = [f'l0 := node.labels["a{count}"] == "x"', *(f"l{n + 1} := {line.format(n=n)}" for n in range(count))]
        lets = [dict(zip(("name", "value"), one.split(" := "), strict=True)) for one in lines]
        return lambda: compile_policy(policy(let=lets, filters=filtering(f"(l{count} ?? false)")))

    few, many = (calls(compiled_with(count)) for count in (12, 24))
    assert many < 3 * few


READS = 'starts_with(node.name, pod.annotations["p"])'
SHARES = "node.free.cpu / pod.requests.cpu > 2"
NUMBERS = 'number(pod.annotations["p"]) > 3'
HAS = 'has(pod.annotations["p"])'


@pytest.mark.parametrize(
    ("spec", "helps"),
    [
        ({"filters": [{"name": "a", "require": READS}]}, ["be missing"]),
        ({"filters": [{"name": "a", "when": HAS, "require": READS}]}, []),
        ({"appliesTo": HAS, "filters": [{"name": "a", "require": READS}]}, []),
        ({"appliesTo": 'pod.annotations["p"] == "x"', "filters": [{"name": "a", "require": READS}]}, []),
        ({"appliesTo": 'pod.annotations["p"] != "x"', "filters": [{"name": "a", "require": READS}]}, ["be missing"]),
        ({"filters": [{"name": "a", "when": 'pod.annotations["p"] in ["x", "y"]', "require": READS}]}, []),
        (
            {"filters": [{"name": "a", "when": 'starts_with(pod.annotations["p"], "x")', "require": READS}]},
            ["be missing"],  # in `when` alone
        ),
        ({"filters": [{"name": "a", "require": SHARES}]}, ["be 0"]),
        ({"filters": [{"name": "a", "when": "pod.requests.cpu > 0", "require": SHARES}]}, []),
        (
            {"filters": [{"name": "a", "require": "node.pods.max(peer.age) < 1h"}]},
            ["be missing on a node without pods"],
        ),
        ({"filters": [{"name": "a", "when": HAS, "require": NUMBERS}]}, ["not be a number"]),
        ({"filters": [{"name": "a", "when": HAS, "require": READS}, {"name": "b", "require": READS}]}, ["be missing"]),
        ({"scores": [{"name": "a", "when": HAS, "cases": [f"{READS} → 10", "else → 0"]}]}, []),
        ({"scores": [{"name": "a", "when": HAS, "value": 'number(pod.annotations["p"])'}]}, ["not be a number"]),
        ({"preemption": {"name": "a", "require": READS.replace("node.name", "victim.name")}, "appliesTo": HAS}, []),
        (
            {
                "podSelector": {"matchLabels": {"x": "y"}, "matchExpressions": [{"key": "z", "operator": "Exists"}]},
                "filters": [
                    {"name": letter, "require": f'starts_with(node.name, pod.labels["{letter}"])'} for letter in "xzq"
                ],
            },
            ["be missing"],
        ),
        (
            {
                "namespaceSelector": {"matchExpressions": [{"key": "x", "operator": "NotIn", "values": ["a"]}]},
                "filters": [{"name": "a", "require": 'starts_with(node.name, pod.namespace_labels["x"])'}],
            },
            ["be missing"],
        ),
        (
            {
                "namespaceSelector": {"matchLabels": {"x": "a"}},
                "filters": [{"name": "a", "require": 'starts_with(node.name, pod.namespace_labels["x"])'}],
            },
            [],
        ),
    ],
)
def test_a_value_that_selectors_and_conditions_require_is_never_missing(spec: Spec, helps: list[str]) -> None:
    found = [one for one in compile_policy(policy(**spec)).diagnostics if one.code == "W0701"]
    assert [str(one.help).partition("may ")[2].partition(";")[0] for one in found] == helps


HELM = "{{ .Values.x }}"


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"schedulerNames": ["a", HELM]}, "schedulerNames[1]"),
        ({"filters": filtering("node.ready", message=f"no {HELM}")}, "filters[0].message"),
        ({"preemption": {"require": "victim.priority < 5", "message": HELM}}, "preemption.message"),
        ({"metrics": [{"name": "a", "query": f'up{{job="{HELM}"}}'}]}, "metrics[0].query"),
        ({"metrics": [{"name": "a", "query": "up", "nodeLabel": HELM}]}, "metrics[0].nodeLabel"),
    ],
)
def test_a_helm_template_outside_of_expressions_is_reported(spec: Spec, field: str) -> None:
    found = [one for one in compile_policy(policy(**spec)).diagnostics if one.code == "W0714"]
    assert [one.field for one in found] == [f"spec.{field}"]
    assert found[0].message == "the string is a Helm template that is not rendered"


def test_braces_of_a_query_are_no_template() -> None:
    spec: Spec = {"filters": CHEAP, "metrics": [{"name": "a", "query": 'up{job="b"}'}]}
    assert "W0714" not in {one.code for one in compile_policy(policy(**spec)).diagnostics}
