from __future__ import annotations

import json
import time
from typing import Any

import pytest

from policysched import check
from policysched.app.checking.check import check_documents
from policysched.app.checking.findings import Finding
from policysched.app.checking.schema import MOST
from policysched.errors import UsageError
from policysched.model.policy import API_VERSIONS, PolicyKey
from policysched.reading.documents import read
from policysched.reading.positions import SourcePosition

HEAD = "apiVersion: policysched.io/v1beta1\nkind: SchedulingPolicy\nmetadata: {name: p}\n"
KEYS = ["file", "policy", "severity", "code", "field", "line", "column", "endColumn", "message", "help"]


def _policy(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "policysched.io/v1beta1",
        "kind": "SchedulingPolicy",
        "metadata": {"name": "p"},
        "spec": spec,
    }


def _filter(require: object, **more: object) -> dict[str, Any]:
    return _policy(filters=[{"name": "a", "require": require, **more}])


def _found(spec: str) -> list[Finding]:
    return check_documents(read(f"{HEAD}spec:\n{spec}", "p.yaml"))


def test_good_policy_has_no_finding() -> None:
    assert check([_filter('node.zone == "a"')]) == []


@pytest.mark.parametrize("version", API_VERSIONS)
def test_each_version_has_the_same_findings(version: str) -> None:
    good, bad = (_filter(text) | {"apiVersion": version} for text in ('node.zone == "a"', "nod.ready"))
    assert check([good]) == []
    assert check([bad]) == check([_filter("nod.ready")])


def test_an_empty_scheduler_name_is_told_once_and_in_our_words() -> None:
    (found,) = check([_policy(schedulerNames=["a", ""], filters=[{"name": "a", "require": "node.ready"}])])
    assert (found.code, found.field) == ("E0312", "spec.schedulerNames[1]")
    assert (found.message, found.help) == (
        "the scheduler name is empty",
        "write the `schedulerName` of the pods, or remove `schedulerNames` to match all",
    )


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("a\u200b", "the text contains the invisible character U+200B (zero width space)", 16),
        ("\u200ba\u00a0\u2060", "the text contains the invisible character U+200B (zero width space) and 2 more", 15),
        ("a\u00a0b", "the text contains U+00A0 (no-break space), which looks like a space", 16),
        ("a\u3000\u200b", "the text contains U+3000 (ideographic space) and 1 more, which looks like a space", 16),
    ],
)
def test_characters_that_nobody_sees_are_told_once_for_a_text(text: str, message: str, column: int) -> None:
    (found,) = check([_filter(f'node.zone == "{text}"')])
    assert (found.code, found.message, found.column) == ("W0706", message, column)


@pytest.mark.parametrize(
    ("text", "codes"), [("attention\u00a0: a b", []), ("attention\u200b", ["W0706"]), ("straße\nzwei", [])]
)
def test_spaces_of_a_language_may_stand_in_what_is_for_people(text: str, codes: list[str]) -> None:
    assert [one.code for one in check([_filter("node.ready", message=text)])] == codes


def test_finding_has_the_keys_of_the_contract() -> None:
    [found] = [one.to_dict() for one in check([_filter('node.labels["cores"] > 10')])]
    assert list(found) == KEYS
    assert found == {
        "file": None,
        "policy": "p",
        "severity": "error",
        "code": "E0301",
        "field": "spec.filters[0].require",
        "line": 1,
        "column": 1,
        "endColumn": 26,
        "message": "cannot compare string with number",
        "help": "labels are strings; convert them with number(...)",
    }


def test_finding_has_its_place_in_the_file() -> None:
    (found,) = _found('  filters:\n  - name: a\n    require: node.labels["cores"] > 10\n')
    assert list(found.to_dict()) == [*KEYS, "fileLine", "fileColumn"]
    said = found.to_dict()
    assert (said["file"], said["fileLine"], said["fileColumn"]) == ("p.yaml", 7, 14)


def test_text_shows_the_line_of_the_file_with_carets() -> None:
    (found,) = _found('  filters:\n  - name: a\n    require: node.labels["cores"] > 10\n')
    assert found.text() == (
        "error[E0301]: cannot compare string with number\n"
        "  --> p.yaml:7:14\n"
        "   |\n"
        ' 7 |     require: node.labels["cores"] > 10\n'
        "   |              ^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "   = in p spec.filters[0].require:1:1\n"
        "   = help: labels are strings; convert them with number(...)"
    )


def test_text_without_a_file_names_the_field() -> None:
    found = Finding(PolicyKey("p"), _found("  filters:\n  - {name: a, require: nod}\n")[0].diagnostic)
    assert found.text().startswith("error[E0201]: unknown name `nod`\n  --> p spec.filters[0].require:1:1")


@pytest.mark.parametrize(
    ("spec", "place", "code"),
    [
        ('  filters:\n  - name: a\n    require: "has(node.zone) and nod.name == \\"z\\""\n', (7, 34), "E0201"),
        ("  filters:\n  - name: a\n    require: |\n      has(node.zone) and\n        nod == 1\n", (9, 9), "E0201"),
        ("  filters:\n  - name: a\n    require: >-\n      has(node.zone)\n      and nod == 1\n", (9, 11), "E0201"),
        ("  filters:\n  - name: a\n    require: node.name ==\n", (7, 26), "E0100"),
        ("  scores:\n  - name: a\n    cases:\n    - has(node.zone) → 80\n    - else → 180\n", (9, 14), "E0502"),
        ("  appliesTo: node.ready\n", (5, 14), "E0405"),
        ("  let:\n  - {name: node, value: 1}\n  filters:\n  - {name: a, require: node.ready}\n", (6, 12), "E0208"),
    ],
)
def test_place_in_the_file_is_that_of_the_mistake(spec: str, place: tuple[int, int], code: str) -> None:
    found = _found(spec)[0].to_dict()
    assert (found["fileLine"], found["fileColumn"]) == place
    assert found["code"] == code


SHAPES: list[tuple[dict[str, Any], str, str, str | None]] = [
    (_filter(True), "spec.filters[0].require", "expected text, got true or false", "quote it"),
    (_filter(5), "spec.filters[0].require", "expected text, got a whole number", "quote it"),
    (_filter(["a"]), "spec.filters[0].require", "expected text, got a list", None),
    (
        _filter(None),
        "spec.filters[0].require",
        "expected text, got nothing",
        "write an expression; an empty value in YAML is null",
    ),
    (
        _policy(scores=[{"name": "a", "cases": [{'concat("a': 'b") → 1'}]}]),
        "spec.scores[0].cases[0]",
        "expected text, got an object",
        'quote it: YAML reads the text before ": " as a key',
    ),
    (
        _policy(scores=[{"name": "a", "value": 0.5}]),
        "spec.scores[0].value",
        "expected text or a whole number, got a number",
        "quote it",
    ),
    (_policy(filters=[{"name": "a"}]), "spec.filters[0].require", "`require` is missing", None),
    (
        _policy(scores=[{"name": "a", "cases": [{"node.ready": 80}]}]),
        "spec.scores[0].cases[0]",
        "expected text, got an object",
        'write `→` instead of ":"; YAML reads the text before ":" as a key',
    ),
    (_policy(filters=[{"require": "node.ready"}]), "spec.filters[0].name", "`name` is missing", None),
    (_policy(filters={}), "spec.filters", "expected a list, got an object", "write `- ` before each item"),
    (
        _policy(filters=["node.ready"]),
        "spec.filters[0]",
        "expected an object, got a text",
        "write `{name: ..., require: 'node.ready'}`",
    ),
    (
        _policy(filters=["node.ready -> 80"]),
        "spec.filters[0]",
        "expected an object, got a text",
        "write it under `scores`: `{name: ..., cases: ['node.ready → 80']}`",
    ),
    (_policy(scores=["50"]), "spec.scores[0]", "expected an object, got a text", "write `{name: ..., value: '50'}`"),
    (
        _policy(scores=["node.ready -> 80"]),
        "spec.scores[0]",
        "expected an object, got a text",
        "write `{name: ..., cases: ['node.ready → 80']}`",
    ),
    (
        _policy(scores=["else → 80"]),
        "spec.scores[0]",
        "expected an object, got a text",
        "write `{name: ..., cases: ['else → 80']}`",
    ),
    (
        _policy(let=["a = node.free.cpu"], scores=[{"name": "s", "value": "scale(a, 0, 8)"}]),
        "spec.let[0]",
        "expected an object, got a text",
        "write `{name: a, value: 'node.free.cpu'}`",
    ),
    (
        _policy(let={"a": "node.free.cpu"}, scores=[{"name": "s", "value": "scale(a, 0, 8)"}]),
        "spec.let",
        "expected a list, got an object",
        "write `- {name: a, value: 'node.free.cpu'}`",
    ),
    (
        _policy(scores=[{"name": "s", "cases": "node.ready → 10"}]),
        "spec.scores[0].cases",
        "expected a list, got a text",
        "write `- ` before each item",
    ),
    (
        _policy(scores=[{"name": "s", "cases": {"when": "node.ready", "value": 10}}]),
        "spec.scores[0].cases",
        "expected a list, got an object",
        "write `node.ready → 10`: a case has the form `guard → number`",
    ),
    (
        _policy(scores=[{"name": "s", "require": "node.ready"}]),
        "spec.scores[0].require",
        'unknown field "require"',
        "write a number under `value`, or the condition under `filters`",
    ),
    (
        _policy(scores=[{"name": "s", "points": ["a"]}]),
        "spec.scores[0].points",
        'unknown field "points"',
        "write `value`",
    ),
    (
        _policy(podSelector={"matchLabels": "a=b"}),
        "spec.podSelector.matchLabels",
        "expected an object, got a text",
        "write `{a: b}`",
    ),
    (_policy(scores=[5]), "spec.scores[0]", "expected an object, got a whole number", None),
    (_policy(metrics=["up"]), "spec.metrics[0]", "expected an object, got a text", None),
    (_policy(let=[{"name": "a"}]), "spec.let[0].value", "`value` is missing", None),
    (
        _policy(podSelector={"app": "web"}),
        "spec.podSelector.app",
        'unknown field "app"',
        "write labels under `matchLabels`",
    ),
    (_policy(weigth=1), "spec.weigth", 'unknown field "weigth"', 'did you mean "weight"?'),
    (_policy(xyz=1), "spec.xyz", 'unknown field "xyz"', None),
    (
        _filter("node.ready", requires="x"),
        "spec.filters[0].requires",
        'unknown field "requires"',
        'did you mean "require"?',
    ),
    (_policy(tier=101), "spec.tier", "invalid value: 101: should be less than or equal to 100", None),
    (_policy(weight=101), "spec.weight", "invalid value: 101: should be less than or equal to 100", None),
    (
        _policy(mode="enforce"),
        "spec.mode",
        'unsupported value: "enforce": supported values: "Enforce", "Shadow", "Disabled"',
        "write `Enforce`",
    ),
    (
        _policy(mode="Dry-Run"),
        "spec.mode",
        'unsupported value: "Dry-Run": supported values: "Enforce", "Shadow", "Disabled"',
        "write `Shadow`",
    ),
    (
        _policy(mode="never"),
        "spec.mode",
        'unsupported value: "never": supported values: "Enforce", "Shadow", "Disabled"',
        None,
    ),
    (_policy(mode=False), "spec.mode", "expected text, got true or false", "write `Disabled`"),
    (_policy(mode=None), "spec.mode", "expected text, got nothing", "write `Enforce`, `Shadow` or `Disabled`"),
    (
        _policy(scores=[{"name": "a", "value": "node.allocatable.pods", "normalize": "max"}]),
        "spec.scores[0].normalize",
        'unsupported value: "max": supported values: "None", "Max"',
        "write `Max`",
    ),
    (
        _policy(scores=[{"name": "a", "value": None}]),
        "spec.scores[0].value",
        "expected text or a whole number, got nothing",
        "write an expression; an empty value in YAML is null",
    ),
    (_filter("node.ready", message=None), "spec.filters[0].message", "expected text, got nothing", None),
    (
        _policy(filters=[{"name": "A", "require": "node.ready"}]),
        "spec.filters[0].name",
        "invalid value: \"A\": should match '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'",
        "use at most 63 lower-case letters, digits and `-`",
    ),
    (
        {**_policy(), "apiVersion": "policysched.io/v1"},
        "apiVersion",
        'expected policysched.io/v1beta1, got "policysched.io/v1"',
        None,
    ),
    ({**_policy(), "apiVersion": None}, "apiVersion", "expected policysched.io/v1beta1", None),
    ({**_policy(), "metadata": {}}, "metadata.name", "`name` is missing", None),
    ({**_policy(), "metadata": {"name": 5}}, "metadata.name", "expected text", "quote it"),
    (
        {**_policy(), "metadata": {"name": "a.b"}},
        "metadata.name",
        '"a.b" is not a DNS label',
        "use at most 63 lower-case letters, digits and `-`",
    ),
]


@pytest.mark.parametrize(("policy", "field", "message", "help_text"), SHAPES)
def test_shape_is_checked_as_kubectl_apply_would(
    policy: dict[str, Any], field: str, message: str, help_text: str | None
) -> None:
    (found,) = check([policy])
    assert (found.code, found.field, found.message, found.help) == ("E0001", field, message, help_text)


def test_long_texts_are_cut_in_findings_and_their_length_is_said() -> None:
    name, key = "n" * 250_000, "k" * 250_000
    both = [{**_filter(f'node.labels["{key}"] > 1'), "metadata": {"name": name}}, _policy(**{key: 1})]
    found = [one.to_dict() for one in check(both)]
    assert len(json.dumps(found)) < 60_000
    assert {one["policy"][4090:] for one in found} == {"nnnnnn… (250000 characters)", ""}
    assert any(one["field"] == f"spec.{'k' * 4091}… (250005 characters)" for one in found)
    assert any(one["message"].endswith("k… (250016 characters)") for one in found)


def test_policy_without_a_spec_is_told_so() -> None:
    policy = _policy()
    del policy["spec"]
    assert [one.message for one in check([policy])] == ["`spec` is missing"]


def test_misshapen_field_does_not_hide_mistakes_in_others() -> None:
    policy = _policy(weight=200, filters=[{"name": "a", "require": True}, {"name": "b", "require": "nod.name"}])
    assert [one.code for one in check([policy])] == ["E0001", "E0001", "E0201"]


@pytest.mark.parametrize(
    "spec",
    [
        {"filters": [{"name": "a", "requires": 5}, {"name": "b", "require": "nod.name"}]},
        {"filters": [{"require": "node.ready"}, {"name": "b", "require": "nod.name"}]},
        {"filters": ["node.ready", {"name": "b", "require": "nod.name"}]},
        {"scores": [{"name": "a", "cases": [{"node.ready": 80}, "nod.name → 1"]}]},
        {"scores": ["5"], "appliesTo": "nod.name"},
        {"let": [{"name": "a"}, {"value": "nod.name"}]},
        {"metrics": [{"name": "a"}], "appliesTo": "nod.name"},
    ],
)
def test_an_item_that_lacks_something_does_not_hide_mistakes_in_others(spec: dict[str, Any]) -> None:
    found = [one.code for one in check([_policy(**spec)])]
    assert found.count("E0201") == 1
    assert set(found) == {"E0001", "E0201"}


def test_findings_of_a_file_are_in_its_order_and_show_names_that_are_unknown() -> None:
    found = _found(
        "  lets:\n  - x\n  filters:\n  - name: a\n    require: nod.name\n    when: nod.name\n  weight: 200\n"
    )
    places = [(one.diagnostic.field, one.place(), one.end(one.place() or SourcePosition(0, 0))) for one in found]
    assert [(field, place and place[1], end) for field, place, end in places] == [
        ("spec.lets", 3, 7),
        ("spec.filters[0].require", 14, 17),
        ("spec.filters[0].when", 11, 14),
        ("spec.weight", 11, 14),
    ]


def test_name_of_two_rules_is_one_finding() -> None:
    rule = {"name": "a", "require": "node.ready"}
    assert [one.code for one in check([_policy(filters=[rule, rule])])] == ["E0208"]


def test_field_is_not_reported_twice() -> None:
    assert len(check([_filter(5)])) == 1


def test_text_cut_by_a_comment_is_explained() -> None:
    (found,) = _found('  filters:\n  - name: a\n    require: node.name == "a #1"\n')
    assert found.diagnostic.code == "E0104"
    assert found.diagnostic.help is not None
    assert found.diagnostic.help.endswith('; YAML treats everything after " #" as a comment: quote the text')


@pytest.mark.parametrize("given", [{"kind": "Pod"}, {}, 5, None])
def test_check_refuses_what_is_no_policy(given: Any) -> None:
    with pytest.raises(UsageError, match=r"^expected an object of kind SchedulingPolicy$"):
        check([given])


def test_check_leaves_other_objects_of_a_file_alone() -> None:
    assert check_documents(read("kind: Pod\nspec: 5", "p.yaml")) == []


def test_check_never_changes_what_it_is_given() -> None:
    policy = _filter(True, weigth=2)
    before = repr(policy)
    check([policy])
    assert repr(policy) == before


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ('weight: "5"', ("spec.weight", "write `5` without quotes")),
        ('includeSystemPods: "true"', ("spec.includeSystemPods", "write `true` without quotes")),
        ("podSelector: a=b", ("spec.podSelector", "write `{matchLabels: {a: b}}`")),
        ("podSelector: a in b", ("spec.podSelector", None)),
        ('podSelector: "a==b"', ("spec.podSelector", "write `{matchLabels: {a: b}}`")),
        ('podSelector: "a=b,c=true"', ("spec.podSelector", 'write `{matchLabels: {a: b, c: "true"}}`')),
        ('podSelector: "app: web"', ("spec.podSelector", "write `{matchLabels: {app: web}}`")),
        ("podSelector: [a=b]", ("spec.podSelector", "write `{matchLabels: {a: b}}`")),
        (
            'podSelector: "a in (b,c), d!=e"',
            (
                "spec.podSelector",
                "write `{matchExpressions: [{key: a, operator: In, values: [b, c]}, "
                "{key: d, operator: NotIn, values: [e]}]}`",
            ),
        ),
        (
            'podSelector: "!a"',
            ("spec.podSelector", "write `{matchExpressions: [{key: a, operator: DoesNotExist}]}`"),
        ),
        (
            "namespaceSelector: team",
            ("spec.namespaceSelector", "write `{matchExpressions: [{key: team, operator: Exists}]}`"),
        ),
        ('podSelector: "a=b=c"', ("spec.podSelector", None)),
        ('podSelector: "a_/b=c"', ("spec.podSelector", None)),
        ("weight: 5.5", ("spec.weight", "write a whole number from 0 to 100")),
        ("weight: high", ("spec.weight", "write a whole number from 0 to 100")),
        ("priority: high", ("spec.priority", "write a whole number")),
        (
            "filters: [{name: a, deny: node.ready or node.cordoned}]",
            (
                "spec.filters[0].deny",
                "write `require: not (node.ready or node.cordoned)`: a filter is a condition that nodes must meet",
            ),
        ),
        ("filters: [{name: a, allow: node.ready}]", ("spec.filters[0].allow", "write `require`")),
        (
            "namespaceSelector: {matchExpressions: [{key: x, operator: Equals, values: [a]}]}",
            ("spec.namespaceSelector.matchExpressions[0].operator", "write `In`, `NotIn`, `Exists` or `DoesNotExist`"),
        ),
        (
            "podSelector: {matchExpressions: [{key: x, operator: In}]}",
            (
                "spec.podSelector.matchExpressions[0]",
                "write at least one value, as in `values: [a]`, or use the operator `Exists` or `DoesNotExist`",
            ),
        ),
        (
            "rules: []",
            ("spec.rules", "write `filters` to reject nodes, `scores` to prefer nodes"),
        ),
        ("filters: [{name: f, expression: node.ready}]", ("spec.filters[0].expression", "write `require`")),
        ("filters: [{name: f, requires: node.ready}]", ("spec.filters[0].requires", 'did you mean "require"?')),
        ("scores: [{name: s, expression: node.free.pods}]", ("spec.scores[0].expression", "write `value`")),
        ('let: [{name: a, expr: "1"}]', ("spec.let[0].expr", "write `value`")),
        (
            "filters: [{name: f, require: node.ready, appliesTo: pod.priority > 0}]",
            ("spec.filters[0].appliesTo", "write `when`"),
        ),
        ("filters: [{name: f, when: pod.priority > 0, then: node.ready}]", ("spec.filters[0].then", "write `require`")),
        ("nodeSelector: {a: b}", ("spec.nodeSelector", "write `filters`")),
        ("enabled: true", ("spec.enabled", "write `mode`")),
        ("metrics: [{name: m, promql: up}]", ("spec.metrics[0].promql", "write `query`")),
        ("selector: {matchLabels: {a: b}}", ("spec.selector", "write `podSelector`")),
        (
            "scores: [{name: s, cases: [{when: node.ready, value: 10}]}]",
            ("spec.scores[0].cases[0]", "write `node.ready → 10`: a case has the form `guard → number`"),
        ),
        (
            "scores: [{name: s, cases: [{when: node.ready}]}]",
            ("spec.scores[0].cases[0]", "a case has the form `guard → number`"),
        ),
    ],
)
def test_one_mistake_of_shape_is_one_error_and_says_what_to_write(spec: str, said: tuple[str, str | None]) -> None:
    [found] = _found(f"  {spec}\n")
    assert (found.diagnostic.field, found.diagnostic.help) == said


def test_what_a_renamed_field_holds_is_checked_too() -> None:
    codes = {one.diagnostic.code for one in _found("  filters: [{name: f, expression: node.nam}]\n")}
    assert codes == {"E0001", "E0202"}


@pytest.mark.parametrize("kind", ["SchedulerPolicy", "SchedulingPolicies", "schedulingpolicy"])
def test_a_kind_that_was_to_be_a_policy_is_one(kind: str) -> None:
    text = HEAD.replace("SchedulingPolicy", kind)
    [found] = check_documents(read(f"{text}spec: {{}}\n", "p.yaml"))
    assert (found.diagnostic.field, found.diagnostic.message) == ("kind", "expected SchedulingPolicy")
    assert found.diagnostic.help == "did you mean `SchedulingPolicy`?"


def test_other_kinds_are_no_policies() -> None:
    assert check_documents(read("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n", "p.yaml")) == []


@pytest.mark.parametrize("field", ["filters", "scores", "let"])
@pytest.mark.parametrize("item", [None, 1, {"x": 1}])
def test_very_many_items_that_are_none_are_told(field: str, item: object) -> None:
    [first, *_] = check([_policy(**{field: [item] * 300})])
    assert first.field.startswith(f"spec.{field}")
    assert first.severity == "error"


def test_of_very_many_wrong_fields_the_first_are_told() -> None:
    names = [f"n{number}" for number in range(30_000)]
    begin = time.process_time()
    found = check([_policy(**dict.fromkeys(names, 1), schedulerNames=names)])
    assert time.process_time() - begin < 20
    assert {one.message for one in found if not one.field} == {
        f"more than {MOST} fields have errors; the others are not shown"
    }
    assert len(found) == MOST + 2
