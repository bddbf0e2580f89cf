from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from policysched.framework import SKIP, Action, Cluster, Code, Resource, Status
from policysched.model.objects import Metadata, Namespace, Node, NodeCondition, Pod
from policysched.rules.plugin.guard import guard_of
from tests.build import cluster, node, pod
from tests.plugins.ask import filtered, rejected, scored
from tests.rules.build import Spec, filtering, plugin, scoring

X, Y, NONE = node("x", labels={"k": "x"}), node("y", labels={"k": "y"}), node("none")
NODES = (X, Y, NONE)
IS_X = 'node.labels["k"] == "x"'
NUMBER_ABOVE_1 = 'number(node.labels["k"]) > 1'


def reasons(made: Any, of: Pod | None = None, around: Cluster | None = None) -> dict[str, Status]:
    answer = filtered(made, of or pod(), around or cluster(*NODES))
    assert isinstance(answer, dict), answer
    return answer


def texts(made: Any, of: Pod | None = None, around: Cluster | None = None) -> dict[str, str]:
    return {name: status.message for name, status in reasons(made, of, around).items()}


# Which pods


NAMESPACES = {"gold": {"tier": "gold"}, "tin": {}}


@pytest.mark.parametrize(
    ("spec", "of", "applies"),
    [
        ({}, pod(), True),
        ({"schedulerNames": ["a", "b"]}, pod(scheduler_name="b"), True),
        ({"schedulerNames": ["a"]}, pod(scheduler_name="b"), False),
        ({"schedulerNames": []}, pod(scheduler_name="b"), True),
        ({"podSelector": {"matchLabels": {"a": "b"}}}, pod(labels={"a": "b", "c": "d"}), True),
        ({"podSelector": {"matchLabels": {"a": "b"}}}, pod(labels={"a": "c"}), False),
        ({"podSelector": {}}, pod(), True),
        ({"namespaceSelector": {"matchLabels": {"tier": "gold"}}}, pod(namespace="gold"), True),
        ({"namespaceSelector": {"matchLabels": {"tier": "gold"}}}, pod(namespace="tin"), False),
        ({"namespaceSelector": {}}, pod(namespace="unknown"), True),
        ({"appliesTo": 'pod.labels["a"] == "b"'}, pod(labels={"a": "b"}), True),
        ({"appliesTo": 'pod.labels["a"] == "b"'}, pod(), False),
        ({"appliesTo": 'pod.namespace_labels["tier"] == "gold"'}, pod(namespace="gold"), True),
        ({"appliesTo": "pod.requests.cpu >= 500m"}, pod(requests={"cpu": "500m"}), True),
        ({"appliesTo": "pod.requests.cpu >= 500m"}, pod(requests={"cpu": "499m"}), False),
    ],
)
def test_a_policy_acts_for_the_pods_it_selects(spec: Spec, of: Pod, applies: bool) -> None:
    made = plugin(filters=filtering("node.cordoned"), scores=scoring(1), **spec)
    around = cluster(*NODES)
    for name, labels in NAMESPACES.items():
        around.set_namespace(Namespace(metadata=Metadata(name=name, labels=labels)))
    assert (made.prepare_filter(of, around) is not SKIP) is applies
    assert (made.prepare_score(of, around) is not SKIP) is applies


UNKNOWN = 'number(pod.labels["n"]) > 1'


@pytest.mark.parametrize(
    "spec",
    [
        {"appliesTo": UNKNOWN, "filters": filtering(IS_X), "scores": scoring(1)},
        {"filters": filtering(IS_X, when=UNKNOWN), "scores": scoring(1, when=UNKNOWN)},
    ],
)
def test_where_it_is_unknown_whether_a_rule_applies_filters_do_and_scores_do_not(spec: Spec) -> None:
    made = plugin(**spec)
    assert rejected(made, pod(), cluster(*NODES)) == {"y", "none"}
    assert scored(made, pod(), cluster(*NODES)) is SKIP


def test_rules_that_are_not_meant_for_the_pod_are_silent() -> None:
    when_a, when_b = 'pod.name == "a"', 'pod.name == "b"'
    made = plugin(
        filters=[*filtering(IS_X, "a", when=when_a), *filtering("node.cordoned", "b", when=when_b)],
        scores=[*scoring(10, "a", when=when_a), *scoring(30, "b")],
    )
    assert rejected(made, pod("a"), cluster(*NODES)) == {"y", "none"}
    assert rejected(made, pod("b"), cluster(*NODES)) == {"x", "y", "none"}
    assert rejected(made, pod("c"), cluster(*NODES)) == set()
    assert scored(made, pod("a"), cluster(X)) == {"x": 20}
    assert scored(made, pod("b"), cluster(X)) == {"x": 30}


@pytest.mark.parametrize(
    ("spec", "priority", "spared"),
    [
        ({}, 2_000_000_000, True),
        ({}, 2_000_001_000, True),
        ({}, 1_999_999_999, False),
        ({"includeSystemPods": True}, 2_000_000_000, False),
    ],
)
def test_filters_spare_system_pods_unless_told_otherwise_and_scores_never(
    spec: Spec, priority: int, spared: bool
) -> None:
    made = plugin(filters=filtering(IS_X), scores=scoring(7), **spec)
    of = pod(priority=priority)
    assert rejected(made, of, cluster(*NODES)) == (set() if spared else {"y", "none"})
    assert scored(made, of, cluster(X)) == {"x": 7}


# Reasons


def test_the_first_rule_that_fails_gives_the_reason() -> None:
    made = plugin(
        "pol",
        filters=[
            *filtering('node.labels["k"] != "y"', "not-y", message="y is for others"),
            *filtering(IS_X, "is-x"),
            *filtering("node.cordoned", "last"),
        ],
    )
    assert texts(made) == {
        "x": "policy pol/last: node.cordoned",
        "y": "policy pol/not-y: y is for others",
        "none": 'policy pol/is-x: node.labels["k"] == "x"',
    }


def test_without_a_message_the_canonical_text_is_cut_to_80_characters() -> None:
    long = " && ".join(f'node.labels["k{number}"]=="x"' for number in range(9))
    exact = 'node.labels["' + "k" * 59 + '"] == "x"'
    assert len(exact) == 81
    made = plugin(filters=[*filtering(exact.replace("k", "", 1), "exact"), *filtering(long, "long")])
    of = replace(NONE, metadata=Metadata(name="n", labels={"k" * 58: "x"}))
    assert texts(made, None, cluster(NONE))["none"] == "policy p/exact: " + exact.replace("k", "", 1)
    text = texts(made, None, cluster(of))["n"].removeprefix("policy p/long: ")
    assert len(text) == 80
    assert text.startswith('node.labels["k0"] == "x" and ')
    assert text.endswith("…")


MISSING: list[tuple[str, str]] = [
    (NUMBER_ABOVE_1, 'node.labels["k"] is missing'),
    ('number(node.labels["a"]) > 1 and number(node.labels["b"]) > 1', 'node.labels["a"] is missing'),
    ('node.cordoned or number(node.labels["b"]) > 1', 'node.labels["b"] is missing'),
    ('has(node.labels["a"]) or number(node.labels["b"]) > 1', 'node.labels["b"] is missing'),
    ('number(node.labels[pod.labels["key"]]) > 1', 'node.labels["disk"] is missing'),
    ('number(node.labels[pod.labels["nokey"]]) > 1', 'pod.labels["nokey"] is missing'),
    ('number(pod.annotations["a"]) > node.free.pods', 'pod.annotations["a"] is missing'),
    ('number(node.annotations["a"]) > 1', 'node.annotations["a"] is missing'),
    ('number(node.zone) > 1', "node.zone is missing"),
    ('node.free.cpu / node.allocatable["x.io/y"] > 1m', 'node.free.cpu / node.allocatable["x.io/y"] > 1m is unknown '
     '(division by node.allocatable["x.io/y"], which is 0)'),
    ("1 / (node.requested.pods - node.requested.pods) > 1",
     "1 / (node.requested.pods - node.requested.pods) > 1 is unknown (division by 0)"),
    ("number(node.name) > 1", "number(node.name) > 1 is unknown (node.name is not a number)"),
    ('version(concat(node.name, "x")) > version("1")',
     'version(concat(node.name, "x")) > version("1") is unknown (a string is not a version)'),
    ("node.pods.max(peer.priority) < 5",
     "node.pods.max(peer.priority) < 5 is unknown (min and max of no pods are missing)"),
]  # fmt: skip


@pytest.mark.parametrize(("require", "text"), MISSING)
def test_an_unknown_condition_rejects_and_names_what_is_missing(require: str, text: str) -> None:
    made = plugin(filters=filtering(require, message="not this one"))
    assert texts(made, pod(labels={"key": "disk"}), cluster(NONE)) == {"none": f"policy p/r: {text}"}


@pytest.mark.parametrize(
    ("require", "message", "text"),
    [
        (f"({NUMBER_ABOVE_1}) ?? false", None, f'({NUMBER_ABOVE_1}) ?? false (node.labels["k"] is missing)'),
        (f"({NUMBER_ABOVE_1}) ?? false", "too small", 'too small (node.labels["k"] is missing)'),
        (f"node.cordoned or (({NUMBER_ABOVE_1}) ?? false)", "no", 'no (node.labels["k"] is missing)'),
        (f"(({NUMBER_ABOVE_1}) ?? false) and not node.cordoned", "no", 'no (node.labels["k"] is missing)'),
        (f"not (({NUMBER_ABOVE_1}) ?? true)", "no", "no"),
        (f"(({NUMBER_ABOVE_1}) ?? false) and number(node.zone) > 1", "no", 'no (node.labels["k"] is missing)'),
    ],
)
def test_what_is_missing_behind_a_default_is_named_too(require: str, message: str | None, text: str) -> None:
    made = plugin(filters=filtering(require, message=message) if message else filtering(require))
    assert texts(made, None, cluster(NONE)) == {"none": f"policy p/r: {text}"}


def test_a_label_that_is_no_number_is_not_missing() -> None:
    assert texts(plugin(filters=filtering(NUMBER_ABOVE_1)), None, cluster(X)) == {
        "x": f'policy p/r: {NUMBER_ABOVE_1} is unknown (node.labels["k"] is not a number)'
    }


def test_what_is_missing_is_found_row_by_row() -> None:
    """Two rows lack the same labels, and another one of them decides on each."""
    branches = 'if(node.ready, number(node.labels["a"]) > 1, number(node.labels["b"]) > 1)'
    made = plugin(filters=filtering(f'({branches}) and number(node.labels["c"] ?? "2") > 1'))
    condition = NodeCondition(type="Ready", status="True")
    ready = Node(metadata=Metadata(name="ready"), status=replace(NONE.status, conditions=[condition]))
    assert texts(made, None, cluster(ready, NONE, node("more"))) == {
        "ready": 'policy p/r: node.labels["a"] is missing',
        "none": 'policy p/r: node.labels["b"] is missing',
        "more": 'policy p/r: node.labels["b"] is missing',
    }


def test_any_number_of_computed_keys_is_named() -> None:
    made = plugin(filters=filtering('number(node.labels[concat("data-", pod.name)]) > 1'))
    around = cluster(NONE)
    for number in range(200):
        expected = f'policy p/r: node.labels["data-p{number}"] is missing'
        assert texts(made, pod(f"p{number}"), around) == {"none": expected}


@pytest.mark.parametrize(
    ("require", "code"),
    [
        ("node.free.cpu > 100", Code.UNSCHEDULABLE),
        ("cluster.pods > 100", Code.UNSCHEDULABLE),
        (IS_X, Code.UNSCHEDULABLE_AND_UNRESOLVABLE),
        ("node.allocatable.cpu > 100", Code.UNSCHEDULABLE_AND_UNRESOLVABLE),
    ],
)
def test_the_code_says_whether_removing_pods_can_help(require: str, code: Code) -> None:
    assert reasons(plugin(filters=filtering(require)), None, cluster(NONE))["none"].code is code


@pytest.mark.parametrize("offered", [{}, {"x.io/a": "2"}], ids=["nobody has it", "another node has it"])
def test_rules_read_what_is_requested_of_a_resource_whether_or_not_a_node_has_it(offered: dict[str, str]) -> None:
    made = cluster(node("n1"), node("n2"), node("n3", allocatable=offered))
    for name, on, amount in (("a", "n1", 2), ("b", "n1", 3), ("c", "n2", 4)):
        made.set_pod(pod(name, on=on, requests={"x.io/a": amount}))
    few = plugin(filters=[{"name": "few", "require": 'node.requested["x.io/a"] < 5'}])
    assert rejected(few, pod(), made) == {"n1"}
    free = plugin(filters=[{"name": "free", "require": 'node.free["x.io/a"] >= -4'}])
    assert rejected(free, pod(), made) == {"n1"}
    made.remove_pod("default.a")
    made.set_pod(pod("d", on="n2", requests={"x.io/a": 1}))
    assert rejected(few, pod(), made) == rejected(free, pod(), made) == {"n2"}


@pytest.mark.parametrize(
    ("text", "actions"),
    [
        ('victim.labels["a"] == "b"', Action.UPDATE_POD_LABEL),
        ('victim.annotations["a"] == "b"', Action.UPDATE_OTHER),
        ('victim.phase == "Running" and victim.labels["a"] == "b"', Action.UPDATE_POD_LABEL | Action.UPDATE_OTHER),
        ("victim.priority > 1", Action.NONE),
    ],
)
def test_a_condition_on_victims_names_the_changes_of_pods_that_it_reads(text: str, actions: Action) -> None:
    guard = guard_of(plugin(preemption={"name": "keep", "require": text}))
    assert guard is not None
    found = [hint.actions for hint in guard.events() if hint.resource is Resource.ASSIGNED_POD]
    assert found == ([actions] if actions else [])
