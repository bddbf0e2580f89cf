"""Creating and updating objects: metadata, generations, conflicts, and what an update keeps of the old object.

It knows the rules common to all kinds and asks decoding and admission for those of one. A write to the main resource
cannot change status, and a write to status changes nothing else. An update that changes nothing is not written, so that
nobody is told of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from policysched.sandbox.objects import Json
from policysched.sandbox.objects.decoding import check_kind, drop_unknown, inward, outward, validated
from policysched.sandbox.objects.errors import (
    STALE,
    Cause,
    StatusError,
    already_exists,
    conflict,
    invalid,
    not_found,
    precondition_failed,
    required,
    wrong,
)
from policysched.sandbox.objects.kinds import complete
from policysched.sandbox.objects.resources import ApiResource
from policysched.sandbox.storage.admission import admit
from policysched.sandbox.storage.store import Backend, Stored

_GENERATIONS = frozenset(
    {
        "pods",
        "deployments.apps",
        "replicasets.apps",
        "statefulsets.apps",
        "daemonsets.apps",
        "replicationcontrollers",
        "poddisruptionbudgets.policy",
        "priorityclasses.scheduling.k8s.io",
        "customresourcedefinitions.apiextensions.k8s.io",
        "resourceslices.resource.k8s.io",
        "deviceclasses.resource.k8s.io",
    }
)
_SYSTEM = (
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
)
_FIXED = dict.fromkeys(
    ("deployments.apps", "replicasets.apps", "statefulsets.apps", "daemonsets.apps"), ("spec", "selector")
) | {
    "priorityclasses.scheduling.k8s.io": ("value",),
    "storageclasses.storage.k8s.io": ("provisioner",),
}
_IMMUTABLE = "field is immutable"
_POD_MUTABLE = (
    "spec.containers[*].image`",
    "spec.initContainers[*].image`",
    "spec.activeDeadlineSeconds`",
    "spec.tolerations` (only additions to existing tolerations)",
    "spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
)


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
    options.warnings += drop_unknown(resource, obj, options.field_validation)
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
    if counts_generations(resource):
        metadata["generation"] = 1


def update(
    backend: Backend, resource: ApiResource, old: Stored, body: Any, subresource: str, options: WriteOptions
) -> Stored:
    """Store a changed object; `subresource` is "" or "status"."""
    obj = check_kind(resource, body)
    options.warnings += drop_unknown(resource, obj, options.field_validation)
    complete(resource, obj)
    obj = inward(resource, obj)
    _guard(resource, old.object, obj)
    obj = prepare_for_update(resource, old.object, obj, subresource)
    shown = outward(resource)
    validated(resource, shown(obj) if shown else obj, immutable(resource, old.object, obj))
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
        why = precondition_failed(resource.plural, (before.get("namespace", ""), name), "UID", uid, before["uid"])
        raise conflict(resource.group, resource.plural, name, why)
    if (metadata.get("resourceVersion") or before["resourceVersion"]) != before["resourceVersion"]:
        raise conflict(resource.group, resource.plural, name, STALE)


def same(old: Json, new: Json) -> bool:
    """Whether two versions are equal but for the resource version."""
    before = old["metadata"] | {"resourceVersion": ""}
    after = new["metadata"] | {"resourceVersion": ""}
    return before == after and old | {"metadata": 0} == new | {"metadata": 0}


def counts_generations(resource: ApiResource) -> bool:
    """Whether the kind's metadata has a generation."""
    return resource.custom is not None or resource.key in _GENERATIONS


def prepare_for_update(resource: ApiResource, old: Json, new: Json, subresource: str) -> Json:
    """Put what this write may not change back: system metadata, and status or everything else; count the generation."""
    if subresource == "status":
        return _prepare_status(resource, old, new)
    new = new | {"metadata": _metadata(old, new["metadata"])}
    if (resource.has_status and resource.key != "nodes") or resource.key == "nodes":
        new = _with(new, "status", old.get("status"))
    if counts_generations(resource) and _changed(resource, old, new):
        new["metadata"]["generation"] = old["metadata"].get("generation", 1) + 1
    return new


def _prepare_status(resource: ApiResource, old: Json, new: Json) -> Json:
    kept = _metadata(old, new["metadata"])
    if resource.custom is not None:
        kept = dict(old["metadata"])
    kept["ownerReferences"] = old["metadata"].get("ownerReferences")
    kept = {name: value for name, value in kept.items() if value is not None}
    return _with(old | {"metadata": kept}, "status", new.get("status"))


def _with(obj: Json, name: str, value: Any) -> Json:
    rest = {key: item for key, item in obj.items() if key != name}
    return rest if value is None else rest | {name: value}


def _metadata(old: Json, metadata: Json) -> Json:
    before = old["metadata"]
    kept = {name: value for name, value in metadata.items() if name not in _SYSTEM and name != "managedFields"}
    return {name: before[name] for name in _SYSTEM if name in before} | kept


def _changed(resource: ApiResource, old: Json, new: Json) -> bool:
    ignored = {"metadata", "status"} if resource.custom is None or resource.has_status else {"metadata"}
    before = {name: value for name, value in old.items() if name not in ignored}
    return before != {name: value for name, value in new.items() if name not in ignored}


def immutable(resource: ApiResource, old: Json, new: Json) -> list[Cause]:
    """Return a cause for each immutable field that the update changes."""
    if resource.key == "pods":
        return _pod(old["spec"], new["spec"])
    path = _FIXED.get(resource.key)
    return _fixed(old, new, path) if path else []


def _fixed(old: Json, new: Json, path: tuple[str, ...]) -> list[Cause]:
    before: Any = old
    after: Any = new
    for step in path:
        before, after = (before or {}).get(step), (after or {}).get(step)
    if before == after:
        return []
    if path == ("value",):
        return [Cause("value", "FieldValueForbidden", "Forbidden: may not be changed in an update.")]
    return [wrong(".".join(path), after, _IMMUTABLE)]


def _pod(old: Json, new: Json) -> list[Cause]:
    if old == new:
        return []
    gates_before = [gate["name"] for gate in old.get("schedulingGates") or ()]
    gates = [gate["name"] for gate in new.get("schedulingGates") or ()]
    if set(gates) - set(gates_before):
        text = "Forbidden: only deletion is allowed, but found new scheduling gate"
        added = sorted(set(gates) - set(gates_before))[0]
        return [Cause("spec.schedulingGates", "FieldValueForbidden", f"{text} '{added}'")]
    if _masked(old, gated=bool(gates_before)) == _masked(new, gated=bool(gates_before)):
        return _tolerations(old, new)
    fields = ",".join(f"`{field}" for field in _POD_MUTABLE)
    text = f"Forbidden: pod updates may not change fields other than {fields}"
    return [Cause("spec", "FieldValueForbidden", text)]


def _masked(spec: Json, *, gated: bool) -> Json:
    """Take out what may change; a gated pod may also be directed to nodes."""
    free = {"activeDeadlineSeconds", "tolerations", "schedulingGates", "terminationGracePeriodSeconds"}
    if gated:
        free |= {"nodeSelector", "affinity"}
    kept = {name: value for name, value in spec.items() if name not in free}
    for name in ("containers", "initContainers"):
        kept[name] = [container | {"image": ""} for container in spec.get(name) or ()]
    return kept


def _tolerations(old: Json, new: Json) -> list[Cause]:
    after = new.get("tolerations") or []
    if all(each in after for each in old.get("tolerations") or ()):
        return []
    text = "Forbidden: existing toleration can not be modified except its tolerationSeconds"
    return [Cause("spec.tolerations", "FieldValueForbidden", text)]
