from __future__ import annotations

import base64
import json
import re
import tracemalloc
import zlib
from typing import Any

import pytest

from policysched.model.decode import ObjectError
from policysched.model.policy import (
    COMPRESSED,
    LARGEST_LAST_GOOD,
    LAST_GOOD,
    MOST_STATUS,
    LastGood,
    Policy,
    PolicySpec,
    PolicyStatus,
    decode_last_good,
    decode_policy,
    keeps,
    last_good_text,
)

FULL: dict[str, Any] = {
    "apiVersion": "policysched.io/v1beta1",
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
    assert (policy.key, policy.spec.mode, policy.spec.weight, policy.spec.priority) == (
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


def kept(text: str, generation: int = 4) -> Policy:
    metadata = {"name": "p", "uid": "u", "generation": generation, "annotations": {LAST_GOOD: text}}
    return decode_policy({"metadata": metadata})


def packed(plain: bytes, level: int = 9) -> str:
    return COMPRESSED + base64.b64encode(zlib.compress(plain, level)).decode()


def test_last_good_generation_is_read_as_it_was_written() -> None:
    policy = decode_policy(FULL | {"metadata": {"name": "p", "uid": "u", "generation": 4}})
    found = decode_last_good(kept(last_good_text(policy, 3, policy.spec)))
    assert found == LastGood(uid="u", generation=3, spec=policy.spec)
    assert decode_last_good(policy) is None


def test_last_good_generation_of_a_policy_of_147_kb_takes_a_tenth_of_that() -> None:
    teams = [f"team-{number:06}-of-the-other-department" for number in range(3800)]
    raw = {"podSelector": {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": teams}]}}
    spec = decode_policy({"spec": raw}).spec
    plain = json.dumps({"uid": "u", "generation": 1, "spec": raw})
    assert len(plain) > 147_000
    text = last_good_text(kept(""), 1, spec)
    assert len(text) < len(plain) / 10
    assert decode_last_good(kept(text)) == decode_last_good(kept(plain)) == LastGood(uid="u", generation=1, spec=spec)


@pytest.mark.parametrize("level", [0, 1, 9])
def test_last_good_generation_is_kept_whatever_wrote_it(level: int) -> None:
    spec = decode_policy(FULL).spec
    text = packed(b'{"uid":"u","generation":3,"spec":%b}' % json.dumps(FULL["spec"]).encode(), level)
    assert keeps(kept(text), 3, spec)
    assert not keeps(kept(text), 4, spec)
    assert not keeps(kept(text), 3, PolicySpec())
    assert not keeps(kept("{"), 3, spec)


def test_last_good_generation_that_is_huge_is_refused_with_little_memory() -> None:
    bomb = packed(b'{"uid":"u",' + b" " * (200 << 20), 9)
    assert len(bomb) < 300_000
    tracemalloc.start()
    try:
        with pytest.raises(ObjectError, match="it is larger than 3 MiB"):
            decode_last_good(kept(bomb))
        assert tracemalloc.get_traced_memory()[1] < 4 * LARGEST_LAST_GOOD
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not valid JSON"),
        ("[" * 5000, "not valid JSON"),
        ("5", "expected object, got int"),
        ('{"uid":"u","generation":3}', "object missing required field `spec`"),
        ('{"uid":"u","generation":3,"spec":{"filters":5}}', "expected array, got int"),
        ('{"uid":"other","generation":3,"spec":{}}', "it belongs to another object"),
        ('{"uid":"u","generation":5,"spec":{}}', "generation 5 does not exist yet"),
        ('{"uid":"u","generation":0,"spec":{}}', "generation 0 does not exist yet"),
        ('{"uid":"u","generation":1e400,"spec":{}}', "not valid JSON"),
        (COMPRESSED, "it cannot be decompressed: it is incomplete"),
        (f"{COMPRESSED}AAAA", "it cannot be decompressed: Error -3"),
        (f"{COMPRESSED}?", "it cannot be decompressed: "),
        (
            COMPRESSED + base64.b64encode(zlib.compress(b"{}")[:-4]).decode(),
            "it cannot be decompressed: it is incomplete",
        ),
        (COMPRESSED + base64.b64encode(zlib.compress(b"[]")).decode(), "expected object, got array"),
    ],
)
def test_last_good_generation_that_cannot_be_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ObjectError, match=re.escape(reason)):
        decode_last_good(kept(text))


@pytest.mark.parametrize(
    "status",
    [5, {"conditions": 5}, {"observedGeneration": "x"}, {"activeSpec": 5}, {"diagnostics": [{"line": 1.5}]}],
)
def test_damaged_status_counts_as_empty_and_leaves_the_policy(status: Any) -> None:
    policy = decode_policy(FULL | {"status": status})
    assert policy == decode_policy({key: value for key, value in FULL.items() if key != "status"})


def test_active_spec_that_is_nested_too_deeply_leaves_the_policy_readable() -> None:
    deep = b'{"a":' * 5000 + b"1" + b"}" * 5000
    raw = b'{"metadata":{"name":"p"},"spec":{"weight":7},"status":{"activeGeneration":1,"activeSpec":' + deep + b"}}"
    assert decode_policy(raw).spec.weight == 7


@pytest.mark.parametrize(
    ("spec", "field", "reason"),
    [
        ({"mode": "Audit"}, "spec.mode", "invalid enum value 'Audit'"),
        ({"weight": 101}, "spec.weight", "expected `int` <= 100"),
        ({"weight": -1}, "spec.weight", "expected `int` >= 0"),
        ({"tier": 101}, "spec.tier", "expected `int` <= 100"),
        ({"tier": -1}, "spec.tier", "expected `int` >= 0"),
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


@pytest.mark.parametrize(("length", "read"), [(MOST_STATUS - 200, True), (MOST_STATUS, False)])
def test_status_that_is_longer_than_ours_counts_as_empty(length: int, read: bool) -> None:
    raw = json.dumps(FULL | {"status": {"activeGeneration": 3, "junk": "x" * length}}).encode()
    decoded = decode_policy(raw)
    assert decoded.status == (PolicyStatus(active_generation=3) if read else PolicyStatus())
    assert decoded.spec == decode_policy(FULL).spec


def test_long_policy_with_a_long_status_that_is_no_json_is_refused() -> None:
    with pytest.raises(ObjectError):
        decode_policy(b'{"metadata":{"name":"a"},"status":{"a":"' + b"x" * MOST_STATUS)
