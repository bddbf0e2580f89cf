from __future__ import annotations

from typing import Any

import pytest

from policysched.apimachinery.resources import BUILTIN, GO_TYPE, STRUCT, rows, struct
from policysched.apimachinery.schema import default, merge_keys

REVIEWS_WITHOUT_FIELDS = {"TokenReview", "SelfSubjectReview"}


def test_every_resource_has_a_schema_of_known_types() -> None:
    kinds = [row for row in BUILTIN if row.kind not in REVIEWS_WITHOUT_FIELDS]
    assert len(kinds) > 30
    seen: dict[str, Any] = {}
    for row in kinds:
        assert {"apiVersion", "kind", "metadata"} <= set(row.schema["properties"]), row.kind
        _collect(row.schema, seen)
    assert {"core.PodSpec", "meta.LabelSelector", "apiextensions.JSONSchemaProps"} <= set(seen)
    assert all((struct(name) or {})["properties"] is schema["properties"] for name, schema in seen.items())


def _collect(schema: dict[str, Any], seen: dict[str, Any]) -> None:
    assert schema[GO_TYPE]
    if schema.get(STRUCT) in seen:
        return
    if STRUCT in schema:
        seen[schema[STRUCT]] = schema
    inner = [*schema.get("properties", {}).values(), schema.get("items"), schema.get("additionalProperties")]
    for each in inner:
        if each is not None:
            _collect(each, seen)


@pytest.mark.parametrize(
    ("name", "field", "go_type", "keys"),
    [
        ("core.Pod", "spec", "v1.PodSpec", None),
        ("core.PodSpec", "containers", "[]v1.Container", ("name",)),
        ("core.PodSpec", "tolerations", "[]v1.Toleration", None),
        ("core.PodSpec", "nodeSelector", "map[string]string", None),
        ("meta.ObjectMeta", "finalizers", "[]string", ()),
        ("core.ConfigMapKeySelector", "name", "string", None),
        ("core.VolumeMount", "bindMountOptions", "[]string", None),
        ("core.PodSpec", "evictionResponders", "[]v1.EvictionResponder", ("name",)),
        ("storage.CSIDriverSpec", "preventPodSchedulingIfMissing", "bool", None),
    ],
)
def test_fields_have_their_types_and_merge_keys(
    name: str, field: str, go_type: str, keys: tuple[str, ...] | None
) -> None:
    schema = (struct(name) or {})["properties"][field]
    assert (schema[GO_TYPE], merge_keys(schema)) == (go_type, keys)


def test_rows_know_numbers_and_what_is_inline() -> None:
    inline, key, optional = rows("core.ConfigMapKeySelector")
    assert (inline.name, inline.number, inline.schema[STRUCT]) == ("", 1, "core.LocalObjectReference")
    assert (key.name, key.number, key.pointer) == ("key", 2, False)
    assert optional.pointer


def test_defaults_are_parts_of_the_schemas() -> None:
    spec: dict[str, Any] = {"containers": [{"ports": [{}]}], "dnsPolicy": "None"}
    default(spec, struct("core.PodSpec") or {})
    assert (spec["restartPolicy"], spec["dnsPolicy"], spec["securityContext"]) == ("Always", "None", {})
    assert spec["containers"][0]["ports"] == [{"protocol": "TCP"}]
    assert "default" not in (struct("core.PodSpec") or {})
