"""Decoding of requests (origin, path, body, options), and handling of writes: post, put, patch, delete.

Every body becomes the same dict, from JSON, YAML or protobuf, so other modules do not know the formats. POST, PUT,
PATCH and DELETE take a target, a decoded body and the query, and return a status code with the entry or object of the
answer. Reviews are answered and not stored: they allow everything to every client.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import yaml

from policysched.apimachinery import Json, decode, encode, protobuf
from policysched.apimachinery.errors import NOT_ALLOWED, StatusError, invalid, success, unreadable_patch, wrong
from policysched.apimachinery.kinds import StrictError, check_kind, outward
from policysched.apimachinery.patches import apply_patch, json_patch, merge_patch, strategic_patch
from policysched.apimachinery.resources import PODS, ApiResource, Registry
from policysched.apimachinery.selectors import field_predicate, label_predicate
from policysched.reading import bounded_yaml
from policysched.reading.bounded_yaml import BoundsError, TooDeepError
from policysched.sandbox.storage.actions import DeleteOptions, bind, delete, evict, scale_of, scaled
from policysched.sandbox.storage.store import Backend, Stored
from policysched.sandbox.storage.writes import WriteOptions, create, fetch, update

Answer = tuple[int, Stored | Json]

_HOSTS = ("127.0.0.1", "localhost", "[::1]")
_HTTP = 80
_OWN_SITES = frozenset({"same-origin", "none"})
_PROTOBUF = "application/vnd.kubernetes.protobuf"
_FEW = 1000
_MOST_DIGITS = 19
_TRUE = frozenset({"true", "1", "True", "t"})
STRATEGIC, APPLY = "application/strategic-merge-patch+json", "application/apply-patch+yaml"
PATCHES = ("application/json-patch+json", "application/merge-patch+json", STRATEGIC, APPLY)
_USER = {"username": "sandbox", "groups": ["system:masters", "system:authenticated"]}
_ANY = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]
_ALLOWED = {"allowed": True, "reason": "the sandbox allows everything"}
_REVIEWS: dict[str, Json] = {
    "SelfSubjectAccessReview": _ALLOWED,
    "SubjectAccessReview": _ALLOWED,
    "SelfSubjectRulesReview": {
        "resourceRules": _ANY,
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
        "incomplete": False,
    },
    "TokenReview": {"authenticated": True, "user": _USER},
    "SelfSubjectReview": {"userInfo": _USER},
}


def check_origin(headers: Mapping[str, str], port: int) -> None:
    """Reject a request from a web page, or with a Host other than this machine.

    The sandbox has no authentication. Listening on loopback excludes other machines but not browsers: a page can send
    requests to any address, and can point its own host name to 127.0.0.1. Browsers send the page's origin in `Origin`
    and `Sec-Fetch-Site` and the host name in `Host`, and pages cannot change these headers.

    Raises:
        StatusError: status 403.
    """
    hosts = {f"{name}:{port}" for name in _HOSTS} | (set(_HOSTS) if port == _HTTP else set())
    if headers.get("Host", "").lower() not in hosts:
        raise _refused("Host", headers.get("Host", ""), port)
    origin = headers.get("Origin")
    if origin is not None and origin.lower() not in {f"http://{host}" for host in hosts}:
        raise _refused("Origin", origin, port)
    site = headers.get("Sec-Fetch-Site", "none")
    if site.lower() not in _OWN_SITES:
        raise _refused("Sec-Fetch-Site", site, port)


def _refused(header: str, value: str, port: int) -> StatusError:
    return StatusError(
        403, f"{header} {value[:200]!a} is refused; the sandbox accepts only requests of programs to 127.0.0.1:{port}"
    )


@dataclass(frozen=True, slots=True)
class Target:
    """The resource and object that a request's path names; without a name, all objects of the resource."""

    resource: ApiResource
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def target_of(registry: Registry, path: str) -> Target | None:
    """Return the resource and object that a path names; None if the sandbox does not serve the path."""
    parts = [part for part in path.split("/") if part]
    if parts[:1] == ["api"]:
        group, version, rest = "", parts[1] if len(parts) > 1 else "", parts[2:]
    elif parts[:1] == ["apis"] and len(parts) > 2:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces" and registry.find(group, version, rest[2]):
        namespace, rest = rest[1], rest[2:]
    resource = registry.find(group, version, rest[0]) if rest else None
    if resource is None or len(rest) > 3 or bool(namespace) > resource.namespaced:
        return None
    name, subresource = [*rest[1:], "", ""][:2]
    if subresource and subresource not in resource.subresources:
        return None
    return Target(resource, namespace, name, subresource)


def body_of(raw: bytes, content_type: str) -> Any:
    """Decode a request's body by its media type."""
    media = content_type.partition(";")[0].strip().lower()
    if media == _PROTOBUF or raw[:4] == protobuf.MAGIC:
        return protobuf.decode(raw)
    if not raw:
        return None
    try:
        return _yaml(raw) if media.endswith("yaml") else decode(raw)
    except (TooDeepError, RecursionError) as error:
        raise StatusError(400, "error decoding the request's body: exceeded max depth") from error
    except (msgspec.DecodeError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise StatusError(400, f"error decoding the request's body: {error}") from error


def _yaml(raw: bytes) -> Any:
    """Decode YAML; reject a document whose aliases expand to more values than it has characters."""
    try:
        value = bounded_yaml.load(raw)
    except TooDeepError:
        raise
    except BoundsError as error:
        raise _excessive() from error
    if _values(value, {}) > len(raw) + _FEW:
        raise _excessive()
    return value


def _excessive() -> StatusError:
    return StatusError(400, "error decoding the request's body: yaml: document contains excessive aliasing")


def _values(value: Any, known: dict[int, int]) -> int:
    """Return the number of values nested in a YAML value, with aliases expanded."""
    if not isinstance(value, dict | list):
        return 1
    if id(value) not in known:
        inner = value.values() if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_values(one, known) for one in inner)
    return known[id(value)]


def flag(query: Mapping[str, str], name: str) -> bool:
    """Return a boolean parameter of the query."""
    return query.get(name, "") in _TRUE


def number(query: Mapping[str, str], name: str) -> int:
    """Return an integer parameter of the query; 0 if absent."""
    text = query.get(name, "") or "0"
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
        raise StatusError(400, f'strconv.ParseInt: parsing "{text}": invalid syntax')
    return int(text)


def options_of(query: Mapping[str, str]) -> WriteOptions:
    """Return the options of a write from the query."""
    return WriteOptions(
        dry_run=query.get("dryRun") == "All",
        field_validation=query.get("fieldValidation") or "Warn",
        manager=query.get("fieldManager", ""),
    )


def delete_options(query: Mapping[str, str], body: Any) -> DeleteOptions:
    """Return the options of a deletion from a request's body and query; fields of the body take precedence."""
    found = body if isinstance(body, dict) else {}
    grace = found.get("gracePeriodSeconds")
    if grace is None and "gracePeriodSeconds" in query:
        grace = number(query, "gracePeriodSeconds")
    propagation = found.get("propagationPolicy") or query.get("propagationPolicy", "")
    if found.get("orphanDependents"):
        propagation = "Orphan"
    wanted = found.get("preconditions") or {}
    return DeleteOptions(
        grace_seconds=grace,
        propagation=propagation,
        uid=wanted.get("uid") or "",
        resource_version=wanted.get("resourceVersion") or "",
        dry_run=bool(found.get("dryRun")) or query.get("dryRun") == "All",
    )


def selection(target: Target, query: Mapping[str, str]) -> Callable[[Json], bool] | None:
    """Compile the selectors of a query into a function; None if the query has no selectors."""
    labels = label_predicate(query.get("labelSelector", ""))
    fields = field_predicate(query.get("fieldSelector", ""), target.resource)
    if target.name:
        name = target.name
        return lambda obj: obj["metadata"]["name"] == name
    if labels is None or fields is None:
        return labels or fields
    return lambda obj: labels(obj) and fields(obj)


def post(backend: Backend, target: Target, body: Any, query: Mapping[str, str], options: WriteOptions) -> Answer:
    """Create an object, bind or evict a pod, or answer a review."""
    resource = target.resource
    if target.subresource == "binding" or resource.plural == "bindings":
        name = target.name or ((body or {}).get("metadata") or {}).get("name", "")
        return 201, bind(backend, target.namespace, name, body, dry_run=options.dry_run)
    if target.subresource == "eviction":
        found = delete_options(query, (body or {}).get("deleteOptions"))
        evict(backend, target.namespace, target.name, found)
        return 201, success(code=201)
    if target.name:
        raise StatusError(405, NOT_ALLOWED, details={})
    if resource.plural.endswith("reviews"):
        known = {"kind": resource.kind, "apiVersion": resource.api_version, "status": _REVIEWS[resource.kind]}
        return 201, {"metadata": {}} | (body or {}) | known
    return 201, create(backend, resource, target.namespace, body, options)


def put(backend: Backend, target: Target, body: Any, options: WriteOptions) -> Answer:
    """Replace an object, its status or its scale."""
    old = fetch(backend, target.resource, target.namespace, target.name)
    return _replace(backend, target, old, body, options)


def _replace(backend: Backend, target: Target, old: Stored, body: Any, options: WriteOptions) -> Answer:
    if target.subresource != "scale":
        return 200, update(backend, target.resource, old, body, target.subresource, options)
    workload = scaled(target.resource, _copy_of(target, old), body or {})
    entry = update(backend, target.resource, old, workload, "", options)
    return 200, scale_of(entry.object)


def _copy_of(target: Target, entry: Stored) -> Json:
    """Return a copy of an object in the target's API version; the caller may change the copy."""
    copied: Json = decode(entry.encoded(target.resource.api_version, outward(target.resource)))
    return copied


def patch(backend: Backend, target: Target, body: Any, media: str, options: WriteOptions) -> Answer:
    """Patch an object, its status or its scale."""
    if media == APPLY:
        return _apply(backend, target, body, options)
    old = fetch(backend, target.resource, target.namespace, target.name)
    before = scale_of(_copy_of(target, old)) if target.subresource == "scale" else _copy_of(target, old)
    patched = _patched(target, before, body, media)
    resource, uid = target.resource, (patched.get("metadata") or {}).get("uid") if isinstance(patched, dict) else ""
    if uid and uid != before["metadata"]["uid"]:
        raise invalid(resource.group, resource.kind, target.name, [wrong("metadata.uid", uid, "field is immutable")])
    shown = encode(patched) if options.field_validation == "Strict" else b""
    try:
        return _replace(backend, target, old, patched, options)
    except StrictError as error:
        raise unreadable_patch(shown.decode(), error.why) from error


def _apply(backend: Backend, target: Target, body: Any, options: WriteOptions) -> Answer:
    """Merge a manager's applied configuration into an object, or create the object from it."""
    applied = check_kind(target.resource, body)
    present = backend.store.get(target.resource.key, target.namespace, target.name)
    if present is None and not target.subresource:
        made = decode(encode(applied))
        made["metadata"] = made["metadata"] | {"name": target.name}
        code, entry = 201, create(backend, target.resource, target.namespace, made, options)
    else:
        old = fetch(backend, target.resource, target.namespace, target.name)
        last = backend.applied.get(old.object["metadata"]["uid"], {}).get(options.manager, {})
        merged = apply_patch(_copy_of(target, old), last, applied, target.resource.schema)
        entry = update(backend, target.resource, old, decode(encode(merged)), target.subresource, options)
        code = 200
    # The object is gone if the last finalizer was removed; then there is nothing to record.
    if not options.dry_run and backend.store.get(target.resource.key, *entry.key) is not None:
        backend.applied.setdefault(entry.object["metadata"]["uid"], {})[options.manager] = applied
    return code, entry


def _patched(target: Target, before: Json, body: Any, media: str) -> Any:
    match media:
        case "application/json-patch+json":
            return json_patch(before, body)
        case "application/merge-patch+json":
            return merge_patch(before, body)
        case "application/strategic-merge-patch+json" if target.resource.custom is None:
            return strategic_patch(before, body, target.resource.schema if target.subresource != "scale" else {})
    known = [media for media in PATCHES if media != STRATEGIC or target.resource.custom is None]
    text = "the body of the request was in an unknown format - accepted media types include: "
    raise StatusError(415, text + ", ".join(known))


def remove(backend: Backend, target: Target, body: Any, query: Mapping[str, str]) -> Answer:
    """Delete one object; answer with the last version of a pod, and with a Status for other deleted objects."""
    entry = fetch(backend, target.resource, target.namespace, target.name)
    resource = target.resource
    last, is_gone = delete(backend, resource, entry, delete_options(query, body))
    if not is_gone or resource == PODS:
        return 200, last
    details = {"name": target.name} | ({"group": resource.group} if resource.group else {})
    return 200, success(details=details | {"kind": resource.plural, "uid": entry.object["metadata"]["uid"]})


def remove_all(backend: Backend, target: Target, body: Any, query: Mapping[str, str]) -> Answer:
    """Delete all objects that match the selectors of a collection request."""
    selects, resource = selection(target, query), target.resource
    entries = backend.store.entries(resource.key, target.namespace)
    options = delete_options(query, body)
    chosen = [entry for entry in entries if selects is None or selects(entry.object)]
    items = [delete(backend, resource, entry, options)[0].object for entry in chosen]
    metadata = {"resourceVersion": str(backend.store.revision)}
    head = {"kind": resource.list_kind, "apiVersion": resource.api_version, "metadata": metadata}
    return 200, head | {"items": items}
