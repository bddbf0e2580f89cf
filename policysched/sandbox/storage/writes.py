"""Creating and updating objects: metadata, generations, status apart from the rest, conflicts.

It knows the rules common to all kinds and asks decoding and admission for those of one. An update that changes
nothing is not written, so that nobody is told of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from policysched.sandbox.objects import Json
from policysched.sandbox.objects.decoding import check_kind, clean, complete, inward, outward, validated
from policysched.sandbox.objects.errors import (
    STALE,
    StatusError,
    already_exists,
    conflict,
    invalid,
    not_found,
    required,
    unlike,
)
from policysched.sandbox.storage import updates
from policysched.sandbox.storage.admission import admit
from policysched.sandbox.storage.store import Stored

if TYPE_CHECKING:
    from policysched.sandbox.objects.resources import ApiResource
    from policysched.sandbox.storage.backend import Backend


@dataclass(slots=True)
class WriteOptions:
    """What a request's query asks of a write; warnings are collected here."""

    dry_run: bool = False
    field_validation: str = "Warn"
    loaded: bool = False
    manager: str = ""
    warnings: list[str] = field(default_factory=list)


def fetch(backend: Backend, resource: ApiResource, namespace: str, name: str) -> Stored:
    """Return an object or fail with 404."""
    entry = backend.store.get(resource.key, namespace, name)
    if entry is None:
        raise not_found(resource.group, resource.plural, name)
    return entry


def create(backend: Backend, resource: ApiResource, namespace: str, body: Any, options: WriteOptions) -> Stored:
    """Store a new object."""
    obj = check_kind(resource, body)
    options.warnings += clean(resource, obj, options.field_validation)
    _place(backend, resource, namespace, obj)
    _new_metadata(backend, resource, obj, options)
    complete(resource, obj)
    if backend.store.get(resource.key, namespace, obj["metadata"]["name"]):
        raise already_exists(resource.group, resource.plural, obj["metadata"]["name"])
    admit(backend.store, resource, obj, backend.timestamp(), loaded=options.loaded)
    validated(resource, obj)
    obj = inward(resource, obj)
    if options.dry_run:
        return Stored(obj, backend.store.revision)
    return backend.store.write(resource.key, obj)


def _place(backend: Backend, resource: ApiResource, namespace: str, obj: Json) -> None:
    metadata = obj["metadata"]
    if not resource.namespaced:
        metadata.pop("namespace", None)
        return
    if metadata.setdefault("namespace", namespace) != namespace:
        raise StatusError(400, "the namespace of the provided object does not match the namespace sent on the request")
    found = backend.store.get("namespaces", "", namespace)
    if found is None:
        raise not_found("", "namespaces", namespace)
    if found.object["metadata"].get("deletionTimestamp"):
        name = metadata.get("name", "")
        why = f"unable to create new content in namespace {namespace} because it is being terminated"
        raise StatusError(403, f'{resource.qualified} "{name}" is forbidden: {why}')


def _new_metadata(backend: Backend, resource: ApiResource, obj: Json, options: WriteOptions) -> None:
    metadata = obj["metadata"]
    if metadata.get("resourceVersion") and not options.loaded:
        raise StatusError(500, "resourceVersion should not be set on objects to be created", "")
    if not metadata.get("name"):
        prefix = metadata.get("generateName")
        if not prefix:
            cause = required("metadata.name", "name or generateName is required")
            raise invalid(resource.group, resource.kind, "", [cause])
        metadata["name"] = prefix + backend.suffix()
    for name in ("managedFields", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"):
        metadata.pop(name, None)
    uid, created = metadata.pop("uid", ""), metadata.pop("creationTimestamp", "")
    kept = options.loaded
    metadata["uid"] = (kept and uid) or backend.new_uid()
    metadata["creationTimestamp"] = (kept and created) or backend.timestamp()
    metadata.pop("generation", None)
    if updates.counts_generations(resource):
        metadata["generation"] = 1


def update(
    backend: Backend, resource: ApiResource, old: Stored, body: Any, subresource: str, options: WriteOptions
) -> Stored:
    """Store a changed object; `subresource` is "" or "status"."""
    obj = check_kind(resource, body)
    options.warnings += clean(resource, obj, options.field_validation)
    complete(resource, obj)
    obj = inward(resource, obj)
    _guard(resource, old.object, obj)
    obj = updates.carried(resource, old.object, obj, subresource)
    shown = outward(resource)
    validated(resource, shown(obj) if shown else obj, updates.immutable(resource, old.object, obj))
    if same(old.object, obj) or options.dry_run:
        return old if same(old.object, obj) else Stored(obj, old.revision)
    return store_update(backend, resource, obj)


def store_update(backend: Backend, resource: ApiResource, obj: Json) -> Stored:
    """Write a changed object, or take it out when it only waited for its last finalizer."""
    metadata = obj["metadata"]
    if metadata.get("deletionTimestamp") and _may_go(resource, obj):
        return backend.store.remove(resource.key, metadata.get("namespace", ""), metadata["name"], obj)
    return backend.store.write(resource.key, obj)


def _may_go(resource: ApiResource, obj: Json) -> bool:
    metadata = obj["metadata"]
    waiting = resource.key == "pods" and metadata.get("deletionGracePeriodSeconds", 0) > 0
    return not metadata.get("finalizers") and not waiting and resource.key != "namespaces"


def _guard(resource: ApiResource, old: Json, obj: Json) -> None:
    """Refuse an update that was made for another object or another version."""
    before, metadata = old["metadata"], obj["metadata"]
    name = before["name"]
    if metadata.get("name", name) != name:
        raise StatusError(
            400, f"the name of the object ({metadata['name']}) does not match the name on the URL ({name})"
        )
    if metadata.get("namespace", before.get("namespace")) != before.get("namespace"):
        raise StatusError(400, "the namespace of the provided object does not match the namespace sent on the request")
    uid = metadata.get("uid") or before["uid"]
    if uid != before["uid"]:
        why = unlike(resource.plural, (before.get("namespace", ""), name), "UID", uid, before["uid"])
        raise conflict(resource.group, resource.plural, name, why)
    if (metadata.get("resourceVersion") or before["resourceVersion"]) != before["resourceVersion"]:
        raise conflict(resource.group, resource.plural, name, STALE)


def same(old: Json, new: Json) -> bool:
    """Tell whether two versions are equal but for the version itself."""
    before = old["metadata"] | {"resourceVersion": ""}
    after = new["metadata"] | {"resourceVersion": ""}
    return before == after and old | {"metadata": 0} == new | {"metadata": 0}
