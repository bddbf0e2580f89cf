"""Why a policy has no say about a pod."""

from __future__ import annotations

from typing import Any

import pytest

from policysched.model.defaults import NAME_LABEL
from policysched.model.objects import Metadata, Namespace
from policysched.model.policy import decode_policy
from policysched.rules.compile.compiler import compile_policy
from policysched.rules.plugin.record import why_not_applied
from tests.build import cluster, node, pod

FILTERS = [{"name": "f", "require": "true"}]
SCORES = [{"name": "s", "value": "1"}]
SYSTEM = "its filters ignore pods of priority 2000000000 and above: includeSystemPods is not set"


def why(of: dict[str, Any] | None = None, **spec: Any) -> str:
    policy = compile_policy(decode_policy({"metadata": {"name": "p"}, "spec": {"filters": FILTERS, **spec}})).policy
    assert policy is not None
    return why_not_applied(policy, pod(**(of or {})), cluster(node("a")))


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({}, ""),
        ({"scores": SCORES, "filters": []}, ""),
        ({"mode": "Shadow"}, ""),
        ({"mode": "Disabled"}, "mode is Disabled"),
        ({"filters": []}, "the policy has no filters and no scores"),
        ({"schedulerNames": ["a", "b"]}, 'schedulerNames (a, b) do not contain "mine"'),
        ({"podSelector": {"matchLabels": {"app": "web"}}}, "podSelector does not match the pod's labels"),
        (
            {"scores": SCORES, "filters": [], "namespaceSelector": {"matchLabels": {"team": "a"}}},
            'namespaceSelector does not match the labels of namespace "default", of which none are known: '
            "its Namespace object is missing",
        ),
        ({"appliesTo": 'pod.name  == "x"'}, 'appliesTo is false: pod.name == "x"'),
        ({"appliesTo": f'pod.name == "{"x" * 90}"'}, f'appliesTo is false: pod.name == "{"x" * 66}…'),
        (
            {"scores": SCORES, "filters": [], "appliesTo": 'number(pod.labels["a"]) > 1'},
            'appliesTo is unknown: number(pod.labels["a"]) > 1',
        ),
        ({"filters": [{"name": "f", "when": "false", "require": "true"}]}, "no rule's `when` is true"),
    ],
)
def test_the_first_reason_is_said(spec: dict[str, Any], said: str) -> None:
    assert why({"scheduler_name": "mine"}, **spec) == said


@pytest.mark.parametrize(("labels", "more"), [({"team": "b"}, ""), ({NAME_LABEL: "default"}, ": it has none")])
def test_labels_of_a_known_namespace_are_not_said_to_be_unknown(labels: dict[str, str], more: str) -> None:
    spec = {"scores": SCORES, "namespaceSelector": {"matchLabels": {"team": "a"}}}
    policy = compile_policy(decode_policy({"metadata": {"name": "p"}, "spec": spec})).policy
    around = cluster(node("a"))
    around.set_namespace(Namespace(metadata=Metadata(name="default", labels=labels)))
    assert policy is not None
    said = why_not_applied(policy, pod(), around)
    assert said == f'namespaceSelector does not match the labels of namespace "default"{more}'


def test_filters_leave_pods_of_the_system_alone_and_say_so() -> None:
    of = {"priority": 2_000_000_000}
    assert why(of) == SYSTEM
    assert why(of, scores=SCORES) == SYSTEM
    assert why(of, includeSystemPods=True) == ""
    assert why(of, scores=SCORES, filters=[]) == ""
