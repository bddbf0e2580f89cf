from __future__ import annotations

import copy
from typing import Any

import pytest

from policysched.apimachinery.errors import StatusError
from policysched.apimachinery.patches import json_patch, merge_patch, strategic_patch
from policysched.apimachinery.resources import struct

POD = struct("core.Pod") or {}
NODE = struct("core.Node") or {}


@pytest.mark.parametrize(
    ("value", "patch", "result"),
    [
        ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ({"a": 1}, {"a": None}, {}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": None}}, {"a": {"c": 2}}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"a": 1}, {"a": {"b": None, "c": 1}}, {"a": {"c": 1}}),
        ({"a": 1}, {"z": None}, {"a": 1}),
    ],
)
def test_merge_patch_follows_the_rfc(value: Any, patch: Any, result: Any) -> None:
    before = copy.deepcopy(value)
    assert merge_patch(value, patch) == result
    assert value == before


def op(name: str, path: str, value: Any = None, **more: Any) -> dict[str, Any]:
    return {"op": name, "path": path, "value": value} | more


@pytest.mark.parametrize(
    ("value", "operations", "result"),
    [
        ({"a": 1}, [op("add", "/b", 2)], {"a": 1, "b": 2}),
        ({"a": [1, 3]}, [op("add", "/a/1", 2)], {"a": [1, 2, 3]}),
        ({"a": [1]}, [op("add", "/a/-", 2)], {"a": [1, 2]}),
        ({"a": [1, 2]}, [op("remove", "/a/0")], {"a": [2]}),
        ({"a": 1}, [op("replace", "/a", 2)], {"a": 2}),
        ({"a": 1}, [op("move", "/b", **{"from": "/a"})], {"b": 1}),
        ({"a": {"x": 1}}, [op("copy", "/b", **{"from": "/a"})], {"a": {"x": 1}, "b": {"x": 1}}),
        ({"a": 1}, [op("test", "/a", 1), op("add", "/b", 2)], {"a": 1, "b": 2}),
        ({"a": 1}, [op("test", "/b"), op("add", "/b", 2)], {"a": 1, "b": 2}),
        ({"a/b": {"c~d": 1}}, [op("replace", "/a~1b/c~0d", 2)], {"a/b": {"c~d": 2}}),
        ({"a": 1}, [op("replace", "", {"b": 2})], {"b": 2}),
    ],
)
def test_json_patch_follows_the_rfc(value: Any, operations: Any, result: Any) -> None:
    before = copy.deepcopy(value)
    assert json_patch(value, operations) == result
    assert value == before


@pytest.mark.parametrize(
    ("operations", "code"),
    [
        ([op("replace", "/no", 1)], 422),
        ([op("remove", "/no/x")], 422),
        ([op("test", "/a", 2)], 422),
        ([op("add", "/list/9", 2)], 422),
        ([op("add", "/list/x", 2)], 422),
        ([{"op": "jump", "path": "/a"}], 422),
        ({"a": 1}, 400),
    ],
)
def test_json_patch_refuses_what_does_not_apply(operations: Any, code: int) -> None:
    with pytest.raises(StatusError) as caught:
        json_patch({"a": 1, "list": []}, operations)
    assert caught.value.code == code


def containers(*items: dict[str, Any]) -> dict[str, Any]:
    return {"spec": {"containers": list(items)}}


A, B = {"name": "a", "image": "1"}, {"name": "b", "image": "1"}
TAINT = {"key": "k", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("schema", "value", "patch", "result"),
    [
        (POD, containers(A, B), containers({"name": "b", "image": "2"}), containers(A, B | {"image": "2"})),
        (POD, containers(A), containers(B), containers(A, B)),
        (POD, containers(A, B), containers({"name": "a", "$patch": "delete"}), containers(B)),
        (POD, containers(A, B), containers({"$patch": "replace"}, B), containers(B)),
        (POD, containers(A), containers({"name": "a", "image": None}), containers({"name": "a"})),
        (
            POD,
            containers(A, B),
            {"spec": {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}},
            containers(B, A),
        ),
        (POD, {"metadata": {"labels": {"a": "1"}}}, {"metadata": {"labels": {"b": "2"}}},
         {"metadata": {"labels": {"a": "1", "b": "2"}}}),
        (POD, {"metadata": {"labels": {"a": "1"}}}, {"metadata": {"labels": None}}, {"metadata": {}}),
        (POD, {"metadata": {"finalizers": ["a"]}}, {"metadata": {"finalizers": ["b", "a"]}},
         {"metadata": {"finalizers": ["a", "b"]}}),
        (POD, {"metadata": {"finalizers": ["a", "b"]}}, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}},
         {"metadata": {"finalizers": ["b"]}}),
        (POD, {"spec": {"tolerations": [{"key": "a"}]}}, {"spec": {"tolerations": [{"key": "b"}]}},
         {"spec": {"tolerations": [{"key": "b"}]}}),
        (POD, {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}},
         {"spec": {"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}}]}},
         {"spec": {"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]}}),
        (POD, {"spec": {"nodeSelector": {"a": "1"}}}, {"spec": {"nodeSelector": {"$patch": "replace", "b": "2"}}},
         {"spec": {"nodeSelector": {"b": "2"}}}),
        (NODE, {"spec": {"taints": [TAINT]}}, {"spec": {"taints": [TAINT | {"key": "j"}]}},
         {"spec": {"taints": [TAINT | {"key": "j"}]}}),
        (NODE, {"status": {"conditions": [{"type": "Ready", "status": "True"}]}},
         {"status": {"conditions": [{"type": "Ready", "status": "False"}, {"type": "Disk", "status": "True"}]}},
         {"status": {"conditions": [{"type": "Ready", "status": "False"}, {"type": "Disk", "status": "True"}]}}),
        ({}, {"a": [1]}, {"a": [2]}, {"a": [2]}),
    ],
)  # fmt: skip
def test_strategic_patch_merges_by_key(schema: dict[str, Any], value: Any, patch: Any, result: Any) -> None:
    before = copy.deepcopy(value)
    assert strategic_patch(value, patch, schema) == result
    assert value == before


@pytest.mark.parametrize("patch", [containers({"image": "2"}), []])
def test_strategic_patch_refuses_what_has_no_key(patch: Any) -> None:
    with pytest.raises(StatusError):
        strategic_patch(containers(A), patch, POD)


def test_json_patch_copies_and_does_only_so_much() -> None:
    doubling = [op("copy", f"/a/{number}", **{"from": "/a"}) for number in range(40)]
    with pytest.raises(StatusError, match="accumulated size") as refused:
        json_patch({"a": {"x": "y" * 1000}}, doubling)
    assert refused.value.code == 422
    with pytest.raises(StatusError, match="10000, got 10001") as refused:
        json_patch({"a": 1}, [op("test", "/a", 1)] * 10_001)
    assert refused.value.code == 413
