"""Deleting objects: preconditions, grace periods of pods, finalizers, and which owners take what with them.

It marks or removes; who follows afterwards (the kubelet, the garbage collector) hears of it from the store.
A pod that is bound to no node has nobody to stop it, so it goes at once, as in the API server.
"""

from __future__ import annotations

from dataclasses import dataclass

from policysched.sandbox.objects import Json
from policysched.sandbox.objects.errors import conflict
from policysched.sandbox.objects.resources import ApiResource
from policysched.sandbox.storage.store import Backend, Stored
from policysched.sandbox.storage.writes import store_update

_RECREATED = "The object might have been deleted and then recreated"
_MODIFIED = "The object might have been modified"
_PROPAGATION = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """What a request says about a deletion; None leaves the choice to the kind."""

    grace_seconds: int | None = None
    propagation: str = ""
    uid: str = ""
    resource_version: str = ""
    dry_run: bool = False


def delete(backend: Backend, resource: ApiResource, entry: Stored, options: DeleteOptions) -> tuple[Stored, bool]:
    """Delete an object; tells its last version and whether it is gone already."""
    _check(resource, entry.object, options)
    grace = _grace(resource, entry.object, options)
    finalizers = _finalizers(backend, resource, entry, options)
    if options.dry_run:
        return entry, not finalizers
    if grace == 0 and not finalizers:
        namespace, name = entry.key
        return backend.store.remove(resource.key, namespace, name, _ended(entry.object)), True
    return _mark(backend, resource, entry, grace, finalizers), False


def _ended(obj: Json) -> Json:
    """Return the last version of an object: one that was still terminating ends with no grace left."""
    metadata = obj["metadata"]
    if "deletionTimestamp" not in metadata:
        return obj
    return obj | {"metadata": metadata | {"deletionGracePeriodSeconds": 0}}


def _check(resource: ApiResource, obj: Json, options: DeleteOptions) -> None:
    metadata = obj["metadata"]
    pairs = (
        ("UID", options.uid, metadata["uid"], _RECREATED),
        ("ResourceVersion", options.resource_version, metadata["resourceVersion"], _MODIFIED),
    )
    for word, wanted, found, after in pairs:
        if wanted and wanted != found:
            why = f"the {word} in the precondition ({wanted}) does not match the {word} in record ({found}). "
            raise conflict(resource.group, resource.kind, metadata["name"], why + after)


def _grace(resource: ApiResource, obj: Json, options: DeleteOptions) -> int:
    if resource.key != "pods":
        return 0
    spec, phase = obj["spec"], (obj.get("status") or {}).get("phase")
    if not spec.get("nodeName") or phase in ("Failed", "Succeeded"):
        return 0
    grace = options.grace_seconds
    return int(spec.get("terminationGracePeriodSeconds", 30)) if grace is None else max(grace, 0)


def _finalizers(backend: Backend, resource: ApiResource, entry: Stored, options: DeleteOptions) -> list[str]:
    metadata = entry.object["metadata"]
    found = list(metadata.get("finalizers") or ())
    added = _PROPAGATION.get(options.propagation)
    if added and added not in found and _owns(backend, resource, metadata["uid"]):
        found.append(added)
    if resource.key == "namespaces":
        found.append("kubernetes")
    return found


def _owns(backend: Backend, resource: ApiResource, uid: str) -> bool:
    if resource.key in ("pods", "nodes", "events"):
        return False
    owners = (
        reference["uid"]
        for key in backend.store.resources()
        for entry in backend.store.values(key)
        for reference in entry.object["metadata"].get("ownerReferences") or ()
    )
    return uid in owners


def _mark(backend: Backend, resource: ApiResource, entry: Stored, grace: int, finalizers: list[str]) -> Stored:
    metadata = entry.object["metadata"]
    marked = metadata.get("deletionTimestamp")
    if marked and metadata.get("deletionGracePeriodSeconds", 0) <= grace:
        return entry
    kept = [name for name in finalizers if name != "kubernetes"]
    metadata = metadata | {"deletionTimestamp": backend.timestamp(grace), "deletionGracePeriodSeconds": grace}
    if kept:
        metadata["finalizers"] = kept
    if "generation" in metadata and not marked:
        metadata["generation"] += 1
    obj = entry.object | {"metadata": metadata}
    if resource.key == "namespaces":
        obj["status"] = {"phase": "Terminating"}
    return store_update(backend, resource, obj)
