"""OpenAPI v3: the index and one document for each group and version.

Built-in schemas come from the field table and custom ones from their definitions. Only what kubectl reads is
there: kinds, fields, patch keys, and the query parameter that tells it that the server validates.
"""

from __future__ import annotations

import hashlib

from policysched.sandbox.objects import Json, encode
from policysched.sandbox.objects.errors import NO_SUCH, StatusError
from policysched.sandbox.objects.fields import GO_TYPE, STRUCT
from policysched.sandbox.objects.resources import ApiResource, Registry

_PATCHES = ("application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml")
# A protobuf of `swagger: "2.0"` and an info: kubectl wants the older document for files with a List, and
# checks nothing against kinds that are not in it; the server validates every item anyway.
EMPTY_V2 = b"\x0a\x032.0\x12\x15\x0a\x0aKubernetes\x12\x07v1.36.2"
V2_MEDIA = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
STRATEGIC = "application/strategic-merge-patch+json"


def index(registry: Registry) -> Json:
    """List the documents; the hash in an address changes with its document."""
    paths = {}
    for group, versions in registry.groups().items():
        for version in versions:
            name = f"apis/{group}/{version}" if group else f"api/{version}"
            digest = hashlib.sha256(encode(document(registry, group, version))).hexdigest().upper()
            paths[name] = {"serverRelativeURL": f"/openapi/v3/{name}?hash={digest}"}
    return {"paths": paths}


def document(registry: Registry, group: str, version: str) -> Json:
    """Describe one group and version."""
    rows = [row for row in registry if (row.group, row.version) == (group, version)]
    if not rows:
        raise StatusError(404, NO_SUCH, details={})
    schemas: dict[str, Json] = {}
    paths: dict[str, Json] = {}
    for row in rows:
        paths |= _paths(row)
        _add_root(schemas, row)
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1.36.2"},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _gvk(row: ApiResource) -> Json:
    return {"group": row.group, "kind": row.kind, "version": row.version}


def _paths(row: ApiResource) -> dict[str, Json]:
    collection = row.path("{namespace}" if row.namespaced else "")
    one = row.path("{namespace}" if row.namespaced else "", "{name}")
    found = {collection: {"post": _operation(row, "post"), "get": _operation(row, "list")}}
    if "patch" in row.verbs:
        found[one] = {"patch": _operation(row, "patch")} | {
            verb: _operation(row, verb) for verb in ("get", "put", "delete")
        }
    return found


def _operation(row: ApiResource, action: str) -> Json:
    reference = {"$ref": f"#/components/schemas/{_root_name(row)}"}
    found: Json = {
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": _gvk(row),
        "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": reference}}}},
    }
    if action in ("post", "put", "patch"):
        names = ("dryRun", "fieldManager", "fieldValidation")
        found["parameters"] = [{"name": name, "in": "query", "schema": {"type": "string"}} for name in names]
    if action == "patch":
        media = (*_PATCHES, STRATEGIC) if row.custom is None else _PATCHES
        found["requestBody"] = {"required": True, "content": {name: {"schema": {}} for name in media}}
    elif action in ("post", "put"):
        found["requestBody"] = {"content": {"application/json": {"schema": reference}}}
    return found


def _root_name(row: ApiResource) -> str:
    if row.custom is None:
        return row.schema.get(STRUCT) or f"reviews.{row.kind}"
    return f"{'.'.join(reversed(row.group.split('.')))}.{row.version}.{row.kind}"


def _add_root(schemas: dict[str, Json], row: ApiResource) -> None:
    name, found = _root_name(row), {"type": "object"} | row.schema
    _add(schemas, name, found)
    schemas[name] |= {"x-kubernetes-group-version-kind": [_gvk(row)]}


def _add(schemas: dict[str, Json], name: str, schema: Json) -> None:
    """Describe a struct and those that it contains."""
    if name not in schemas:
        schemas[name] = {}
        schemas[name] |= _parts(schemas, schema)


def _shown(schemas: dict[str, Json], schema: Json) -> Json:
    if STRUCT not in schema:
        return _parts(schemas, schema)
    _add(schemas, schema[STRUCT], schema)
    return {"allOf": [_reference(schema[STRUCT])]}


def _parts(schemas: dict[str, Json], schema: Json) -> Json:
    found = {name: value for name, value in schema.items() if name not in (GO_TYPE, STRUCT)}
    if "properties" in found:
        found["properties"] = {name: _shown(schemas, each) for name, each in found["properties"].items()}
    for name in ("items", "additionalProperties"):
        if isinstance(found.get(name), dict):
            found[name] = _shown(schemas, found[name])
    return found


def _reference(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}
