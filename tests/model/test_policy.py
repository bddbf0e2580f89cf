from __future__ import annotations

import json
from typing import Any

import pytest

from policysched.model.decode import ObjectError
from policysched.model.policy import PolicySpec, decode_active_spec, decode_policy

FULL: dict[str, Any] = {
    "apiVersion": "policysched.io/v1alpha1",
    "kind": "SchedulingPolicy",
    "metadata": {"name": "cool-gpu-nodes", "generation": 4},
    "spec": {
        "mode": "Shadow",
        "includeSystemPods": True,
        "schedulerNames": ["policysched"],
        "podSelector": {"matchLabels": {"team": "ml"}},
        "namespaceSelector": {},
        "appliesTo": 'pod.requests["nvidia.com/gpu"] > 0',
        "priority": 5,
        "weight": 3,
        "metrics": [{"name": "load", "query": "q", "nodeLabel": "instance", "unit": "cpu", "maxAge": "30s"}],
        "let": [{"name": "gpus_free", "value": 'node.free["nvidia.com/gpu"]'}, {"name": "five", "value": 5}],
        "filters": [{"name": "enough", "when": "true", "require": "gpus_free > 0", "message": "not enough"}],
        "scores": [
            {"name": "pin", "weight": 2, "normalize": "Max", "cases": ['node.name == "n1" → 80', "else → 20"]},
            {"name": "flat", "value": 7, "normalize": "None"},
        ],
    },
    "status": {
        "observedGeneration": 4,
        "activeGeneration": 3,
        "activeSpec": {"filters": [{"name": "old", "require": "true"}]},
        "conditions": [{"type": "Compiled", "status": "False", "reason": "TypeError", "message": "1 error"}],
        "diagnostics": [{"severity": "error", "code": "E0301", "field": "spec.filters[0].require", "line": 1}],
        "cost": {"scalar": 2, "nodes": 14, "pods": 4},
        "instances": [
            {"name": "kube-system/policysched", "activeGeneration": 3, "inputs": [{"name": "i", "total": 5}]}
        ],
    },
}


def test_policy_decodes_alike_from_bytes_and_dict() -> None:
    policy = decode_policy(FULL)
    assert policy == decode_policy(json.dumps(FULL).encode())
    assert (policy.name, policy.spec.mode, policy.spec.weight, policy.spec.priority) == (
        "cool-gpu-nodes",
        "Shadow",
        3,
        5,
    )
    assert policy.spec.pod_selector is not None
    assert policy.spec.pod_selector.match_labels == {"team": "ml"}
    assert policy.spec.metrics[0].node_label == "instance"
    assert [one.value for one in policy.spec.let] == ['node.free["nvidia.com/gpu"]', 5]
    assert policy.spec.filters[0].message == "not enough"
    pin, flat = policy.spec.scores
    assert (pin.weight, pin.normalize, pin.cases[1], pin.value) == (2, "Max", "else → 20", None)
    assert (flat.weight, flat.value) == (1, 7)
    assert policy.status.cost is not None
    assert policy.status.cost.nodes == 14
    assert policy.status.instances[0].inputs[0].total == 5


def test_policy_has_its_documented_defaults() -> None:
    spec = decode_policy({"metadata": {"name": "p"}, "spec": {}}).spec
    assert spec == PolicySpec()
    assert (spec.mode, spec.include_system_pods, spec.weight, spec.priority) == ("Enforce", False, 1, 0)
    assert (spec.pod_selector, spec.namespace_selector, spec.applies_to) == (None, None, None)
    assert decode_policy({"metadata": {"name": "p"}}).spec == spec


def test_active_spec_is_decoded_apart_from_the_policy() -> None:
    active = decode_active_spec(decode_policy(FULL))
    assert active is not None
    assert [one.name for one in active.filters] == ["old"]
    assert decode_active_spec(decode_policy({"metadata": {"name": "p"}})) is None


def test_damaged_active_spec_leaves_the_policy_readable() -> None:
    policy = decode_policy({"metadata": {"name": "p"}, "status": {"activeSpec": {"filters": 5}}})
    with pytest.raises(ObjectError, match=r'^scheduling policy "p": spec\.filters: expected array, got int'):
        decode_active_spec(policy)


@pytest.mark.parametrize(
    ("spec", "field", "reason"),
    [
        ({"mode": "Audit"}, "spec.mode", "invalid enum value 'Audit'"),
        ({"weight": 101}, "spec.weight", "expected `int` <= 100"),
        ({"weight": -1}, "spec.weight", "expected `int` >= 0"),
        ({"appliesTo": True}, "spec.appliesTo", "expected text, got bool: quote it"),
        ({"filters": {}}, "spec.filters", "expected array, got object"),
        ({"filters": [{"require": "true"}]}, "spec.filters[0]", "object missing required field `name`"),
        ({"filters": [{"name": "a"}]}, "spec.filters[0]", "object missing required field `require`"),
        (
            {"filters": [{"name": "a", "require": True}]},
            "spec.filters[0].require",
            "expected text, got bool: quote it",
        ),
        ({"scores": [{"name": "a", "value": 0.5}]}, "spec.scores[0].value", "expected text, got float: quote it"),
        (
            {"scores": [{"name": "a", "cases": [{"x": 1}]}]},
            "spec.scores[0].cases[0]",
            "expected text, got object: quote it",
        ),
        ({"scores": [{"name": "a", "normalize": "Min"}]}, "spec.scores[0].normalize", "invalid enum value 'Min'"),
        ({"let": [{"name": "x"}]}, "spec.let[0]", "object missing required field `value`"),
    ],
)
def test_policy_of_a_wrong_shape_is_refused_with_its_field(spec: dict[str, Any], field: str, reason: str) -> None:
    with pytest.raises(ObjectError) as caught:
        decode_policy({"metadata": {"name": "p"}, "spec": spec})
    assert (caught.value.field, caught.value.reason, caught.value.key) == (field, reason, "p")
