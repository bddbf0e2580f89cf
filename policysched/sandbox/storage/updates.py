"""What an update keeps from the old object: system metadata, status or everything else, immutable fields.

Functions here return new dictionaries and touch neither the store nor the old object. They follow one rule: a
write to the main resource cannot change status, and a write to status changes nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from policysched.sandbox.objects import Json
from policysched.sandbox.objects.errors import Cause, wrong

if TYPE_CHECKING:
    from policysched.sandbox.objects.resources import ApiResource

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


def counts_generations(resource: ApiResource) -> bool:
    """Tell whether the kind's metadata has a generation."""
    return resource.custom is not None or resource.key in _GENERATIONS


def carried(resource: ApiResource, old: Json, new: Json, subresource: str) -> Json:
    """Put the parts that this write may not change back to what they were."""
    if subresource == "status":
        return _only_status(resource, old, new)
    new = new | {"metadata": _metadata(old, new["metadata"])}
    if (resource.has_status and resource.key != "nodes") or resource.key == "nodes":
        new = _with(new, "status", old.get("status"))
    if counts_generations(resource) and _changed(resource, old, new):
        new["metadata"]["generation"] = old["metadata"].get("generation", 1) + 1
    return new


def _only_status(resource: ApiResource, old: Json, new: Json) -> Json:
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
    """Name what the update changes and must not."""
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
