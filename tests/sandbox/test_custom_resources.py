from __future__ import annotations

import copy
import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from policysched.apimachinery import MAX_DEPTH
from policysched.apimachinery.schema import default, prune, validate
from tests.sandbox.bodies import DEFINITION, POLICIES, policy

if TYPE_CHECKING:
    from policysched.sandbox import Sandbox
    from tests.sandbox.conftest import Api

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture
def served(quiet: Sandbox, quiet_api: Api) -> Api:
    quiet.load([DEFINITION])
    return quiet_api


async def test_a_definition_is_served_at_once(quiet_api: Api) -> None:
    assert (await quiet_api.get(POLICIES))[0] == 404
    code, _ = await quiet_api.post(CRDS, DEFINITION)
    assert code == 201
    _, found = await quiet_api.get(f"{CRDS}/{DEFINITION['metadata']['name']}")
    conditions = {each["type"]: each["status"] for each in found["status"]["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}
    assert (await quiet_api.get(POLICIES))[1]["kind"] == "SchedulingPolicyList"
    _, resources = await quiet_api.get("/apis/policysched.io/v1beta1")
    assert [each["name"] for each in resources["resources"]] == [
        "schedulingpolicies",
        "schedulingpolicies/status",
    ]
    await quiet_api.delete(f"{CRDS}/{DEFINITION['metadata']['name']}")
    assert (await quiet_api.get(POLICIES))[0] == 404


async def test_a_definition_without_its_parts_is_invalid(quiet_api: Api) -> None:
    broken = copy.deepcopy(DEFINITION)
    broken["spec"]["versions"][0].pop("schema")
    broken["spec"].pop("scope")
    code, found = await quiet_api.post(CRDS, broken)
    assert code == 422
    fields = {cause["field"] for cause in found["details"]["causes"]}
    assert fields == {"spec.scope", "spec.versions[0].schema.openAPIV3Schema"}


async def test_defaults_are_filled_in_and_generations_count(served: Api) -> None:
    code, found = await served.post(POLICIES, policy(filters=[{"name": "f", "require": "true"}]))
    assert code == 201
    assert (found["spec"]["mode"], found["spec"]["weight"], found["spec"]["priority"]) == ("Enforce", 1, 0)
    _, found = await served.merge(f"{POLICIES}/p", {"spec": {"weight": 2}})
    assert found["metadata"]["generation"] == 2
    _, found = await served.merge(f"{POLICIES}/p", {"metadata": {"labels": {"a": "b"}}, "status": {"x": 1}})
    assert found["metadata"]["generation"] == 2
    assert found["status"] == {"observedGeneration": -1}


async def test_status_is_a_subresource(served: Api) -> None:
    await served.post(POLICIES, policy() | {"status": {"observedGeneration": 9}})
    _, found = await served.get(f"{POLICIES}/p")
    assert found["status"] == {"observedGeneration": -1}
    spec = {"mode": "Shadow", "whatever": {"deep": [1]}}
    change = {"status": {"observedGeneration": 1, "activeSpec": spec}, "spec": {"weight": 9}}
    code, found = await served.merge(f"{POLICIES}/p/status", change)
    assert code == 200
    assert found["status"] == {"observedGeneration": 1, "activeSpec": spec}
    assert (found["spec"]["weight"], found["metadata"]["generation"]) == (1, 1)


@pytest.mark.parametrize("depth", [700, 900])
async def test_status_nested_deep_is_patched_as_any_other(
    served: Api, depth: int, caplog: pytest.LogCaptureFixture
) -> None:
    await served.post(POLICIES, policy())
    path, spec = f"{POLICIES}/p", "/status/activeSpec"
    nested = json.loads('{"f": ' * depth + "1" + "}" * depth)
    writes: list[tuple[str, Any]] = [
        ("merge", {"status": {"activeSpec": nested}}),
        ("json", [{"op": "add", "path": f"{spec}/g", "value": nested}]),
        ("json", [{"op": "copy", "from": spec, "path": f"{spec}/h"}]),
        ("json", [{"op": "test", "path": f"{spec}/g", "value": nested}]),
    ]
    for kind, body in writes:
        media = f"application/{kind}-patch+json"
        code, answer = await served.call("PATCH", f"{path}/status", body, media=media)
        assert (code, answer) == (200, (await served.get(path))[1])
    assert not caplog.messages


async def test_patch_that_makes_an_object_too_deep_is_refused_and_changes_nothing(
    served: Api, caplog: pytest.LogCaptureFixture
) -> None:
    await served.post(POLICIES, policy())
    await served.merge(f"{POLICIES}/p/status", {"status": {"activeSpec": json.loads('{"f": ' * 600 + "1" + "}" * 600)}})
    _, before = await served.get(f"{POLICIES}/p")
    inside = "/status/activeSpec" + "/f" * 599 + "/g"
    for operation in ({"op": "add", "value": before["status"]}, {"op": "copy", "from": "/status"}):
        body, media = [operation | {"path": inside}], "application/json-patch+json"
        code, answer = await served.call("PATCH", f"{POLICIES}/p/status", body, media=media)
        assert (code, answer["reason"]) == (400, "BadRequest")
        assert (await served.get(f"{POLICIES}/p"))[1] == before
    assert not caplog.messages


@pytest.mark.parametrize(("more", "status"), [(0, 200), (1, 400)])
async def test_limit_of_nesting_is_the_same_on_every_python(served: Api, more: int, status: int) -> None:
    await served.post(POLICIES, policy())
    depth = MAX_DEPTH - 2 + more  # in the status, in activeSpec
    nested = json.loads('{"f": ' * depth + "1" + "}" * depth)
    code, answer = await served.merge(f"{POLICIES}/p/status", {"status": {"activeSpec": nested}})
    assert code == status
    assert more == 0 or answer["message"] == "error decoding the request's body: exceeded max depth"


RULE = {"name": "r", "require": "true"}


@pytest.mark.parametrize(
    ("spec", "field", "text"),
    [
        ({"mode": "Loud"}, "spec.mode", 'supported values: "Enforce", "Shadow", "Disabled"'),
        ({"weight": 101}, "spec.weight", "should be less than or equal to 100"),
        ({"weight": -1}, "spec.weight", "should be greater than or equal to 0"),
        ({"tier": 101}, "spec.tier", "should be less than or equal to 100"),
        ({"tier": -1}, "spec.tier", "should be greater than or equal to 0"),
        ({"weight": "1"}, "spec.weight", 'must be of type integer: "string"'),
        ({"includeSystemPods": "yes"}, "spec.includeSystemPods", 'must be of type boolean: "string"'),
        ({"filters": [RULE, RULE]}, "spec.filters[1]", 'Duplicate value: {"name":"r"}'),
        ({"filters": [{"name": "r"}]}, "spec.filters[0].require", "Required value"),
        ({"filters": [RULE | {"name": "R 1"}]}, "spec.filters[0].name", "should match"),
        ({"filters": [RULE | {"name": "r" * 64}]}, "spec.filters[0].name", "may not be more than 63"),
        ({"filters": [RULE | {"require": "x" * 4097}]}, "spec.filters[0].require", "may not be more than 4096"),
        ({"filters": [RULE | {"name": f"r{n}"} for n in range(65)]}, "spec.filters", "must have at most 64 items"),
        ({"scores": [{"name": "s", "value": True}]}, "spec.scores[0].value", "must be of type integer,string"),
        ({"scores": [{"name": "s", "normalize": "Min"}]}, "spec.scores[0].normalize", "Unsupported value"),
    ],
)  # fmt: skip
async def test_the_schema_refuses_wrong_shapes(served: Api, spec: dict[str, Any], field: str, text: str) -> None:
    code, found = await served.post(POLICIES, policy(**spec))
    assert code == 422, found
    causes = {cause["field"]: cause["message"] for cause in found["details"]["causes"]}
    assert text in causes[field]


async def test_a_wrong_expression_is_accepted(served: Api) -> None:
    spec: dict[str, Any] = {
        "filters": [RULE | {"require": 'node.labels["cores"] > 10 ))'}],
        "scores": [{"name": "s", "value": 80}, {"name": "t", "value": "1 +", "cases": ["nonsense"]}],
        "let": [{"name": "Bad Name", "value": 1}, {"name": "Bad Name", "value": 2}],
        "appliesTo": "",
    }
    assert (await served.post(POLICIES, policy(**spec)))[0] == 201


async def test_unknown_fields_are_pruned_or_refused(served: Api) -> None:
    _, found = await served.post(POLICIES, policy(wieght=3, filters=[RULE | {"wen": "x"}]))
    assert "wieght" not in found["spec"]
    assert found["spec"]["filters"] == [RULE]
    code, found = await served.post(POLICIES, policy("q", wieght=3), fieldValidation="Strict")
    assert code == 400
    assert 'strict decoding error: unknown field "spec.wieght"' in found["message"]
    code, found = await served.merge(f"{POLICIES}/p", {"spec": {"wieght": 3}}, fieldValidation="Strict")
    assert (code, found["reason"]) == (422, "Invalid")
    assert found["details"]["causes"][0]["field"] == "patch"


async def test_strategic_patches_are_for_built_in_kinds(served: Api) -> None:
    await served.post(POLICIES, policy())
    code, found = await served.strategic(f"{POLICIES}/p", {"spec": {"weight": 2}})
    assert (code, found["reason"]) == (415, "UnsupportedMediaType")


def test_prune_keeps_what_a_schema_leaves_open() -> None:
    schema = {
        "properties": {
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"a": {}}}},
            "list": {"type": "array", "items": {"type": "object", "properties": {"a": {}}}},
        }
    }
    value = {"kind": "K", "free": {"x": 1}, "map": {"k": {"a": 1, "b": 2}}, "list": [{"b": 1}], "no": 1}
    assert sorted(prune(value, schema)) == ["list[0].b", "map.k.b", "no"]
    assert value == {"kind": "K", "free": {"x": 1}, "map": {"k": {"a": 1}}, "list": [{}]}


def test_default_fills_every_depth() -> None:
    inner = {"type": "object", "properties": {"d": {"default": [1]}}}
    schema = {"properties": {"o": inner, "l": {"items": inner}, "m": {"additionalProperties": inner}}}
    value: dict[str, Any] = {"o": {}, "l": [{}, {"d": [2]}], "m": {"k": {"d": None}}}
    default(value, schema)
    assert value == {"o": {"d": [1]}, "l": [{"d": [1]}, {"d": [2]}], "m": {"k": {"d": [1]}}}


@pytest.mark.parametrize(
    ("schema", "value", "text"),
    [
        ({"type": "string", "minLength": 2}, "a", "should be at least 2 chars long"),
        ({"type": "array", "minItems": 1}, [], "should have at least 1 items"),
        ({"type": "array", "x-kubernetes-list-type": "set"}, ["a", "a"], 'Duplicate value: "a"'),
        ({"type": "object"}, [], 'must be of type object: "array"'),
        ({"type": "number"}, {}, 'must be of type number: "object"'),
        ({"type": "integer"}, 1.5, 'must be of type integer: "number"'),
        ({"type": "string"}, True, 'must be of type string: "boolean"'),
        ({"type": "boolean"}, 1, 'must be of type boolean: "integer"'),
        ({"type": "string"}, None, 'must be of type string: "null"'),
    ],
)
def test_validate_names_the_fault(schema: dict[str, Any], value: Any, text: str) -> None:
    (cause,) = validate(value, schema, "f")
    assert text in cause.text


def test_validate_takes_null_where_the_schema_does() -> None:
    assert not list(validate(None, {"type": "string", "nullable": True}, "f"))
    assert not list(validate("80%", {"x-kubernetes-int-or-string": True}, "f"))


@pytest.mark.parametrize(
    "pattern",
    [
        "^(a+)+$", "^(a|a)*$", "^(a?){64}$", "(a*)*b", "a*a*a*a*a*b", "^" + "a?" * 40 + "a" * 40 + "$", "^(?x)(a+) +$",
        "^(a+)(?#b)+$", "[[]" * 4 + "(a+)+[^]]", "(a|b|ab)*c", "^(?:a|aa)+$", "^((a{0,40}){0,40}){0,40}$", "(a",
    ],
)  # fmt: skip
def test_a_pattern_never_takes_long(pattern: str) -> None:
    begun = time.process_time()
    for text in ("a" * 26 + "!", "a" * 300 + "!", "a" * 5000 + "!"):
        list(validate({"name": text}, {"properties": {"name": {"type": "string", "pattern": pattern}}}))
    assert time.process_time() - begun < 2


@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [
        (r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "web-1", "web_1"),
        (r"^\d{4}-\d{2}-\d{2}$", "2026-01-31", "31.1.2026"),
        (r"^(cpu|memory)\(?\)?[*+]$", "cpu()*", "cpu"),
        (r"^[^\]()*]+$", "abc", "a]"),
        (r"^(?:ssd|hdd)$", "ssd", "ssds"),
        ("b{2,3}$", "abb", "ab"),
    ],
)
def test_patterns_without_repeated_groups_are_checked(pattern: str, good: str, bad: str) -> None:
    schema = {"type": "string", "pattern": pattern}
    assert [len(list(validate(text, schema, "name"))) for text in (good, bad)] == [0, 1]
