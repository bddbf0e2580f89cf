"""What POST, PUT, PATCH and DELETE do, by the path they name.

Each function takes a target, a decoded body and the query and gives a status code and the entry or object to
answer with. Reviews are answered and not stored: whoever reaches the sandbox may do everything, and it says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from policysched.sandbox.api.reading import encode_entry, selection
from policysched.sandbox.api.requests import Target, delete_options
from policysched.sandbox.objects import Json, decode, encode
from policysched.sandbox.objects.decoding import StrictError, check_kind
from policysched.sandbox.objects.errors import NOT_ALLOWED, StatusError, invalid, success, unreadable_patch, wrong
from policysched.sandbox.objects.patches import apply_patch, json_patch, merge_patch, strategic_patch
from policysched.sandbox.objects.resources import PODS
from policysched.sandbox.storage.deletion import delete
from policysched.sandbox.storage.store import Backend, Stored
from policysched.sandbox.storage.subresources import bind, evict, scale_of, scaled
from policysched.sandbox.storage.writes import WriteOptions, create, fetch, update

Answer = tuple[int, Stored | Json]
_JSON, _MERGE = "application/json-patch+json", "application/merge-patch+json"
_STRATEGIC, _APPLY = "application/strategic-merge-patch+json", "application/apply-patch+yaml"
_USER = {"username": "sandbox", "groups": ["system:masters", "system:authenticated"]}
_ANY = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]
_REVIEWS: dict[str, Json] = {
    "SelfSubjectAccessReview": {"allowed": True, "reason": "the sandbox allows everything"},
    "SubjectAccessReview": {"allowed": True, "reason": "the sandbox allows everything"},
    "SelfSubjectRulesReview": {
        "resourceRules": _ANY,
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
        "incomplete": False,
    },
    "TokenReview": {"authenticated": True, "user": _USER},
    "SelfSubjectReview": {"userInfo": _USER},
}


def post(backend: Backend, target: Target, body: Any, query: Mapping[str, str], options: WriteOptions) -> Answer:
    """Create an object, bind or evict a pod, or answer a review."""
    resource = target.resource
    if target.subresource == "binding" or resource.plural == "bindings":
        name = target.name or ((body or {}).get("metadata") or {}).get("name", "")
        return 201, bind(backend, target.namespace, name, body, dry_run=options.dry_run)
    if target.subresource == "eviction":
        found = delete_options(query, (body or {}).get("deleteOptions"))
        evict(backend, target.namespace, target.name, found)
        return 201, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
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
    workload = scaled(target.resource, copy_of(target, old), body or {})
    entry = update(backend, target.resource, old, workload, "", options)
    return 200, scale_of(entry.object)


def copy_of(target: Target, entry: Stored) -> Json:
    """Copy an object, in the target's version, for changing."""
    copied: Json = decode(encode_entry(target.resource, entry))
    return copied


def patch(backend: Backend, target: Target, body: Any, media: str, options: WriteOptions) -> Answer:
    """Patch an object, its status or its scale."""
    if media == _APPLY:
        return _apply(backend, target, body, options)
    old = fetch(backend, target.resource, target.namespace, target.name)
    before = scale_of(copy_of(target, old)) if target.subresource == "scale" else copy_of(target, old)
    patched = _patched(target, before, body, media)
    _same_uid(target, before, patched)
    shown = encode(patched) if options.field_validation == "Strict" else b""
    try:
        return _replace(backend, target, old, patched, options)
    except StrictError as error:
        raise unreadable_patch(shown.decode(), error.why) from error


def _same_uid(target: Target, before: Json, patched: Any) -> None:
    resource, uid = target.resource, (patched.get("metadata") or {}).get("uid") if isinstance(patched, dict) else ""
    if uid and uid != before["metadata"]["uid"]:
        raise invalid(resource.group, resource.kind, target.name, [wrong("metadata.uid", uid, "field is immutable")])


def _apply(backend: Backend, target: Target, body: Any, options: WriteOptions) -> Answer:
    """Merge a manager's configuration into an object, or create the object from it."""
    applied = check_kind(target.resource, body)
    present = backend.store.get(target.resource.key, target.namespace, target.name)
    if present is None and not target.subresource:
        made = decode(encode(applied))
        made["metadata"] = made["metadata"] | {"name": target.name}
        code, entry = 201, create(backend, target.resource, target.namespace, made, options)
    else:
        old = fetch(backend, target.resource, target.namespace, target.name)
        last = backend.applied.get((old.object["metadata"]["uid"], options.manager), {})
        merged = apply_patch(copy_of(target, old), last, applied, target.resource.schema)
        entry = update(backend, target.resource, old, decode(encode(merged)), target.subresource, options)
        code = 200
    if not options.dry_run:
        backend.applied[entry.object["metadata"]["uid"], options.manager] = applied
    return code, entry


def _patched(target: Target, before: Json, body: Any, media: str) -> Any:
    match media:
        case "application/json-patch+json":
            return json_patch(before, body)
        case "application/merge-patch+json":
            return merge_patch(before, body)
        case "application/strategic-merge-patch+json" if target.resource.custom is None:
            schema = target.resource.schema if target.subresource != "scale" else {}
            return strategic_patch(before, body, schema)
    known = [_JSON, _MERGE] + ([] if target.resource.custom else [_STRATEGIC]) + [_APPLY]
    text = "the body of the request was in an unknown format - accepted media types include: "
    raise StatusError(415, text + ", ".join(known))


def remove(backend: Backend, target: Target, body: Any, query: Mapping[str, str]) -> Answer:
    """Delete one object; a pod is answered as it was last, others with a Status when they are gone."""
    entry = fetch(backend, target.resource, target.namespace, target.name)
    resource = target.resource
    last, is_gone = delete(backend, resource, entry, delete_options(query, body))
    if not is_gone or resource == PODS:
        return 200, last
    details = {"name": target.name} | ({"group": resource.group} if resource.group else {})
    return 200, success(details | {"kind": resource.plural, "uid": entry.object["metadata"]["uid"]})


def remove_all(backend: Backend, target: Target, body: Any, query: Mapping[str, str]) -> Answer:
    """Delete what a collection's request selects."""
    selects, resource = selection(target, query), target.resource
    entries = backend.store.entries(resource.key, target.namespace)
    options = delete_options(query, body)
    chosen = [entry for entry in entries if selects is None or selects(entry.object)]
    items = [delete(backend, resource, entry, options)[0].object for entry in chosen]
    metadata = {"resourceVersion": str(backend.store.revision)}
    head = {"kind": resource.list_kind, "apiVersion": resource.api_version, "metadata": metadata}
    return 200, head | {"items": items}
