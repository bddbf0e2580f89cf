"""Discovery and OpenAPI documents of the served resources.

The documents are built from the registry at each request: requests are rare, and a new CustomResourceDefinition must
show at once. OpenAPI contains only what kubectl reads: kinds, fields, patch keys, and the query parameter which shows
that the server validates.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

from policysched.apimachinery import Json, encode
from policysched.apimachinery.errors import NO_SUCH, StatusError
from policysched.apimachinery.resources import DEFAULTS, GO_TYPE, STRUCT, ApiResource, Registry
from policysched.model.release import minor_of
from policysched.sandbox.api.requests import PATCHES, STRATEGIC

JSON = "application/json"
_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_V2 = re.compile(r"v=v2(?:[;,]|$)")
_SUB_VERBS = {"binding": ("create",), "eviction": ("create",), "finalize": ("update",)}
_SUB_KINDS = {
    "scale": ("autoscaling", "v1", "Scale"),
    "eviction": ("policy", "v1", "Eviction"),
    "binding": ("", "v1", "Binding"),
}
OPENAPI_V2 = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"


def document(registry: Registry, path: str, accept: str, version: str) -> tuple[bytes, str]:
    """Return the discovery or OpenAPI document at a path, and its media type.

    Args:
        registry: The served resources.
        path: The path of the request.
        accept: The accepted media types.
        version: The version of Kubernetes that the documents state, such as v1.37.2.

    Raises:
        StatusError: status 404, there is no document at the path.
    """
    parts = [part for part in path.split("/") if part]
    match parts:
        case ["version"]:
            return encode(_version(version)), JSON
        case ["openapi", "v2"]:
            return _openapi_v2(version), OPENAPI_V2
        case ["openapi", "v3", *rest]:
            made = _openapi(registry, version, *_group_version(rest)) if rest else _openapi_index(registry, version)
            return encode(made), JSON
        case ["api" | "apis" as root] if "as=APIGroupDiscoveryList" in accept and _V2.search(accept):
            return encode(_aggregated(registry, core=root == "api")), _AGGREGATED
    return encode(_plain(registry, parts)), JSON


def _version(version: str) -> Json:
    major, minor = minor_of(version).split(".")
    told = {"major": major, "minor": minor, "gitVersion": f"{version}+policysched-sandbox", "gitTreeState": "clean"}
    return told | dict.fromkeys(("gitCommit", "buildDate", "goVersion", "compiler", "platform"), "")


def _openapi_v2(version: str) -> bytes:
    """Return a minimal OpenAPI v2 document as protobuf, which kubectl requests when it applies a file with a List.

    kubectl requires the older document for files with a List, and does not validate kinds that are missing in it; the
    server validates every item anyway.
    """
    info = _text(b"\x0a", b"Kubernetes") + _text(b"\x12", version.encode())
    return _text(b"\x0a", b"2.0") + _text(b"\x12", info)


def _text(tag: bytes, content: bytes) -> bytes:
    """Encode a text of less than 128 bytes as a field of a protobuf message."""
    return tag + bytes([len(content)]) + content


def _group_version(parts: list[str]) -> tuple[str, str]:
    match parts:
        case ["api", version]:
            return "", version
        case ["apis", group, version]:
            return group, version
    raise StatusError(404, NO_SUCH, details={})


def _plain(registry: Registry, parts: list[str]) -> Json:
    groups = registry.groups()
    match parts:
        case ["api"]:
            addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1"}]
            return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses}
        case ["apis"]:
            listed = [_group(group, versions) for group, versions in groups.items() if group]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}
        case ["apis", group] if group in groups:
            return {"kind": "APIGroup", "apiVersion": "v1"} | _group(group, groups[group])
    return _resource_list(registry, *_group_version(parts))


def _rows(registry: Registry, group: str, version: str) -> list[ApiResource]:
    rows = [row for row in registry if (row.group, row.version) == (group, version)]
    if not rows:
        raise StatusError(404, NO_SUCH, details={})
    return rows


def _aggregated(registry: Registry, *, core: bool) -> Json:
    """Return the aggregated discovery document of the core group, or of all other groups."""
    items = []
    for group, versions in registry.groups().items():
        if core == (not group):
            resources = {version: [_discovered(row) for row in _rows(registry, group, version)] for version in versions}
            metadata = ({"name": group} if group else {}) | {"creationTimestamp": None}
            listed = [{"version": each, "resources": resources[each], "freshness": "Current"} for each in versions]
            items.append({"metadata": metadata, "versions": listed})
    head = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}}
    return head | {"items": items}


def _discovered(row: ApiResource) -> Json:
    found: Json = {
        "resource": row.plural,
        "responseKind": _gvk(row),
        "scope": "Namespaced" if row.namespaced else "Cluster",
        "singularResource": row.singular,
        "verbs": list(row.verbs),
    } | _other_names(row)
    subs = [{"subresource": name, "responseKind": kind, "verbs": verbs} for name, kind, verbs in _subresources(row)]
    return found | ({"subresources": subs} if subs else {})


def _subresources(row: ApiResource) -> Iterator[tuple[str, Json, list[str]]]:
    for name in sorted(row.subresources):
        group, version, kind = _SUB_KINDS.get(name, (row.group, row.version, row.kind))
        verbs = list(_SUB_VERBS.get(name, ("get", "patch", "update")))
        yield name, {"group": group, "version": version, "kind": kind}, verbs


def _other_names(row: ApiResource) -> Json:
    found = {"shortNames": list(row.short_names), "categories": list(row.categories)}
    return {name: listed for name, listed in found.items() if listed}


def _group(group: str, versions: list[str]) -> Json:
    listed = [{"groupVersion": f"{group}/{version}", "version": version} for version in versions]
    return {"name": group, "versions": listed, "preferredVersion": listed[0]}


def _resource_list(registry: Registry, group: str, version: str) -> Json:
    resources = [each for row in _rows(registry, group, version) for each in _listed(row)]
    name = f"{group}/{version}" if group else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": name, "resources": resources}


def _listed(row: ApiResource) -> Iterator[Json]:
    known: Json = {"name": row.plural, "singularName": row.singular, "namespaced": row.namespaced, "kind": row.kind}
    yield known | {"verbs": list(row.verbs)} | _other_names(row)
    for name, kind, verbs in _subresources(row):
        sub = {"name": f"{row.plural}/{name}", "singularName": "", "namespaced": row.namespaced}
        sub |= {"kind": kind["kind"], "verbs": verbs}
        foreign = (kind["group"], kind["version"]) != (row.group, row.version)
        yield sub | ({"group": kind["group"], "version": kind["version"]} if foreign else {})


def _openapi_index(registry: Registry, kubernetes: str) -> Json:
    """Return the index of OpenAPI documents; each address contains the hash of its document."""
    paths = {}
    for group, versions in registry.groups().items():
        for version in versions:
            name = f"apis/{group}/{version}" if group else f"api/{version}"
            digest = hashlib.sha256(encode(_openapi(registry, kubernetes, group, version))).hexdigest().upper()
            paths[name] = {"serverRelativeURL": f"/openapi/v3/{name}?hash={digest}"}
    return {"paths": paths}


def _openapi(registry: Registry, kubernetes: str, group: str, version: str) -> Json:
    schemas: dict[str, Json] = {}
    paths: dict[str, Json] = {}
    for row in _rows(registry, group, version):
        paths |= _paths(row)
        _describe(schemas, _root_name(row), {"type": "object"} | row.schema)
        schemas[_root_name(row)] |= {"x-kubernetes-group-version-kind": [_gvk(row)]}
    info = {"title": "Kubernetes", "version": kubernetes}
    return {"openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": schemas}}


def _gvk(row: ApiResource) -> Json:
    return {"group": row.group, "version": row.version, "kind": row.kind}


def _paths(row: ApiResource) -> dict[str, Json]:
    root = f"/apis/{row.api_version}" if row.group else f"/api/{row.version}"
    collection = f"{root}/namespaces/{{namespace}}/{row.plural}" if row.namespaced else f"{root}/{row.plural}"
    found = {collection: {"post": _operation(row, "post"), "get": _operation(row, "list")}}
    if "patch" in row.verbs:
        found[f"{collection}/{{name}}"] = {verb: _operation(row, verb) for verb in ("patch", "get", "put", "delete")}
    return found


def _operation(row: ApiResource, action: str) -> Json:
    reference = _reference(_root_name(row))
    found: Json = {
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": _gvk(row),
        "responses": {"200": {"description": "OK", "content": {JSON: {"schema": reference}}}},
    }
    if action in ("post", "put", "patch"):
        names = ("dryRun", "fieldManager", "fieldValidation")
        found["parameters"] = [{"name": name, "in": "query", "schema": {"type": "string"}} for name in names]
    if action == "patch":
        media = PATCHES if row.custom is None else [each for each in PATCHES if each != STRATEGIC]
        found["requestBody"] = {"required": True, "content": {name: {"schema": {}} for name in media}}
    elif action in ("post", "put"):
        found["requestBody"] = {"content": {JSON: {"schema": reference}}}
    return found


def _root_name(row: ApiResource) -> str:
    if row.custom is None:
        return row.schema.get(STRUCT) or f"reviews.{row.kind}"
    return f"{'.'.join(reversed(row.group.split('.')))}.{row.version}.{row.kind}"


def _describe(schemas: dict[str, Json], name: str, schema: Json) -> None:
    """Add the schema of a kind or struct to an OpenAPI document, with the structs that it contains."""
    if name not in schemas:
        schemas[name] = {}
        schemas[name] |= _inner(schemas, schema)


def _shown(schemas: dict[str, Json], schema: Json) -> Json:
    if STRUCT not in schema:
        return _inner(schemas, schema)
    _describe(schemas, schema[STRUCT], schema)
    return {"allOf": [_reference(schema[STRUCT])]}


def _inner(schemas: dict[str, Json], schema: Json) -> Json:
    found = {name: value for name, value in schema.items() if name not in (GO_TYPE, STRUCT, DEFAULTS)}
    if "properties" in found:
        found["properties"] = {name: _shown(schemas, each) for name, each in found["properties"].items()}
    for name in ("items", "additionalProperties"):
        if isinstance(found.get(name), dict):
            found[name] = _shown(schemas, found[name])
    return found


def _reference(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}
