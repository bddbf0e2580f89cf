"""Creation and update of objects: metadata, admission, generations, conflicts, and fields an update cannot change.

A write to the main resource cannot change the status, and a write to the status changes nothing else. An update without
a change is not stored and causes no event. Admission completes a new object with data from the cluster, as the API
server does: priority from its class, default service account, usual tolerations, labels for matchLabelKeys, initial
status. Loaded objects keep their status.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from policysched.apimachinery import Json
from policysched.apimachinery.errors import (
    STALE,
    Cause,
    StatusError,
    already_exists,
    conflict,
    forbidden,
    invalid,
    not_found,
    precondition_failed,
    required,
    wrong,
)
from policysched.apimachinery.kinds import (
    all_containers,
    check_kind,
    complete,
    drop_unknown,
    fill,
    inward,
    outward,
    validated,
)
from policysched.apimachinery.resources import ApiResource
from policysched.model.defaults import merge_label_keys
from policysched.sandbox.storage.store import Backend, ObjectStore, Stored

POD_GROUPS = "podgroups.scheduling.k8s.io"
PRIORITY_CLASSES, STORAGE_CLASSES = "priorityclasses.scheduling.k8s.io", "storageclasses.storage.k8s.io"
_WORKLOADS = ("deployments.apps", "replicasets.apps", "statefulsets.apps", "daemonsets.apps")
_SYSTEM = (
    "name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation",
)  # fmt: skip
_FIXED = dict.fromkeys(_WORKLOADS, ("spec", "selector")) | {
    PRIORITY_CLASSES: ("value",),
    STORAGE_CLASSES: ("provisioner",),
}
_KEEPS_STATUS = frozenset({"nodes", "persistentvolumes", "persistentvolumeclaims", "namespaces", "services"})
_FIRST_STATUS: dict[str, Json] = {
    "replicasets.apps": {"replicas": 0},
    "replicationcontrollers": {"replicas": 0},
    "statefulsets.apps": {"replicas": 0, "availableReplicas": 0},
    "poddisruptionbudgets.policy": dict.fromkeys(
        ("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods"), 0
    ),
    "daemonsets.apps": dict.fromkeys(
        ("currentNumberScheduled", "desiredNumberScheduled", "numberMisscheduled", "numberReady"), 0
    ),
}
_POD_MUTABLE = (
    "spec.containers[*].image`",
    "spec.initContainers[*].image`",
    "spec.activeDeadlineSeconds`",
    "spec.tolerations` (only additions to existing tolerations)",
    "spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
)


@dataclass(slots=True)
class WriteOptions:
    """Options of a write, from the query of its request, and the warnings to return to the client."""

    dry_run: bool = False
    field_validation: str = "Warn"
    loaded: bool = False
    manager: str = ""
    warnings: list[str] = field(default_factory=list)


def fetch(backend: Backend, resource: ApiResource, namespace: str, name: str) -> Stored:
    """Return a stored object, or raise a 404 error."""
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
    _admit(backend.store, resource, obj, backend.timestamp(), loaded=options.loaded)
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
    if resource.counts_generations:
        metadata["generation"] = 1


def _admit(store: ObjectStore, resource: ApiResource, obj: Json, now: str, *, loaded: bool) -> None:
    """Set the initial status and admission defaults of a new object, or reject the object."""
    if not loaded and resource.has_status and resource.key not in _KEEPS_STATUS:
        obj.pop("status", None)
    if resource.key == "pods":
        _admit_pod(store, obj, now, loaded=loaded)
    elif resource.key == "persistentvolumeclaims":
        _admit_claim(store, obj)
    elif resource.key == "services":
        _admit_service(store, obj)
    elif resource.has_status and resource.custom is None:
        obj.setdefault("status", dict(_FIRST_STATUS.get(resource.key, {})))
    elif resource.has_status:
        complete(resource, obj)  # sets the defaults of the status, after the request's status was removed


def _admit_pod(store: ObjectStore, pod: Json, now: str, *, loaded: bool) -> None:
    spec = pod["spec"]
    merge_label_keys(spec, pod["metadata"].get("labels", {}))
    _service_account(store, pod, loaded=loaded)
    _priority(store, pod, loaded=loaded)
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        _tolerate(spec, key)
    status = pod.setdefault("status", {}) if loaded else {}
    fill(status, phase="Pending", qosClass=qos_class(spec))
    if spec.get("schedulingGates") and not status.get("conditions"):
        gated = {"lastProbeTime": None, "lastTransitionTime": now, "reason": "SchedulingGated", "status": "False"}
        gated |= {"message": "Scheduling is blocked due to non-empty scheduling gates", "type": "PodScheduled"}
        status["conditions"] = [gated]
    pod["status"] = status


def _refused(pod: Json, why: str) -> StatusError:
    """Return the error for a rejected pod; the error shows the generateName of a pod without a name."""
    return forbidden("", "pods", pod["metadata"].get("generateName") or pod["metadata"]["name"], why)


def _service_account(store: ObjectStore, pod: Json, *, loaded: bool) -> None:
    spec = pod["spec"]
    fill(spec, serviceAccountName="default")
    fill(spec, serviceAccount=spec["serviceAccountName"])
    account, namespace = spec["serviceAccountName"], pod["metadata"]["namespace"]
    if not loaded and account != "default" and not store.get("serviceaccounts", namespace, account):
        why = f'error looking up service account {namespace}/{account}: serviceaccount "{account}" not found'
        raise _refused(pod, why)


def _priority(store: ObjectStore, pod: Json, *, loaded: bool) -> None:
    spec = pod["spec"]
    found = _priority_class(store, spec.get("priorityClassName", ""))
    if found is None and spec.get("priorityClassName"):
        if loaded:
            fill(spec, priority=0, preemptionPolicy="PreemptLowerPriority")
            return
        why = f"no PriorityClass with name {spec['priorityClassName']} was found"
        raise _refused(pod, why)
    value = found["value"] if found else 0
    if not loaded and spec.get("priority", value) != value:
        why = (
            f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; "
            f"priority admission controller computed {value} from the given PriorityClass name"
        )
        raise _refused(pod, why)
    policy = (found or {}).get("preemptionPolicy", "PreemptLowerPriority")
    if not loaded and spec.get("preemptionPolicy", policy) != policy:
        why = (
            f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) must not be provided in pod spec; "
            f"priority admission controller computed {policy} from the given PriorityClass name"
        )
        raise _refused(pod, why)
    if found:
        fill(spec, priorityClassName=found["metadata"]["name"])
    fill(spec, priority=value, preemptionPolicy=policy)


def _priority_class(store: ObjectStore, name: str) -> Json | None:
    if name:
        entry = store.get(PRIORITY_CLASSES, "", name)
        return entry.object if entry else None
    defaults = [entry.object for entry in store.values(PRIORITY_CLASSES) if entry.object.get("globalDefault")]
    return min(defaults, key=lambda found: int(found["value"]), default=None)


def _tolerate(spec: Json, key: str) -> None:
    tolerations = spec.setdefault("tolerations", [])
    either = ((key, None, ""), ("NoExecute", None, ""))
    if not any(each.get("key") in either[0] and each.get("effect") in either[1] for each in tolerations):
        tolerations.append({"effect": "NoExecute", "key": key, "operator": "Exists", "tolerationSeconds": 300})


def qos_class(spec: Json) -> str:
    """Return the quality-of-service class from the containers' cpu and memory requests and limits."""
    requests = limits = False
    guaranteed = True
    for container in all_containers(spec):
        resources = container.get("resources") or {}
        asked, bound = _counted(resources.get("requests")), _counted(resources.get("limits"))
        requests, limits = requests or bool(asked), limits or bool(bound)
        guaranteed = guaranteed and set(bound) == {"cpu", "memory"} and asked == bound
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


def _counted(resources: Json | None) -> Json:
    found = {name: str(value) for name, value in (resources or {}).items() if name in ("cpu", "memory")}
    return {name: value for name, value in found.items() if value.strip("0.") != ""}


def _admit_claim(store: ObjectStore, claim: Json) -> None:
    if "storageClassName" in claim["spec"]:
        return
    for entry in store.values(STORAGE_CLASSES):
        annotations = entry.object["metadata"].get("annotations") or {}
        if annotations.get("storageclass.kubernetes.io/is-default-class") == "true":
            claim["spec"]["storageClassName"] = entry.key[1]
            return


def _admit_service(store: ObjectStore, service: Json) -> None:
    spec = service["spec"]
    if spec["type"] == "ExternalName" or spec.get("clusterIP"):
        fill(spec, clusterIPs=[spec["clusterIP"]] if spec.get("clusterIP") else [])
        return
    used = {entry.object["spec"].get("clusterIP") for entry in store.values("services")}
    free = (f"10.0.{index // 256}.{index % 256}" for index in range(1, 65_000))
    address = next((each for each in free if each not in used), None)
    if address is None:
        raise StatusError(500, "Internal error occurred: failed to allocate a serviceIP: range is full")
    spec["clusterIP"], spec["clusterIPs"] = address, [address]


def update(
    backend: Backend, resource: ApiResource, old: Stored, body: Any, subresource: str, options: WriteOptions
) -> Stored:
    """Validate and store a changed object, or only its status if `subresource` is "status"."""
    obj = check_kind(resource, body)
    options.warnings += drop_unknown(resource, obj, options.field_validation)
    complete(resource, obj)
    obj = inward(resource, obj)
    _guard(resource, old.object, obj)
    obj = _prepared(resource, old.object, obj, subresource)
    shown = outward(resource)
    validated(resource, shown(obj) if shown else obj, _immutable(resource, old.object, obj))
    metadata = obj["metadata"] | {"resourceVersion": old.object["metadata"]["resourceVersion"]}
    if obj | {"metadata": metadata} == old.object:
        return old
    return Stored(obj, old.revision) if options.dry_run else store_update(backend, resource, obj)


def store_update(backend: Backend, resource: ApiResource, obj: Json) -> Stored:
    """Store a changed object, or remove the object if it is being deleted and has no finalizers left."""
    metadata = obj["metadata"]
    waiting = resource.key == "pods" and metadata.get("deletionGracePeriodSeconds", 0) > 0
    held = metadata.get("finalizers") or waiting or resource.key == "namespaces"
    if metadata.get("deletionTimestamp") and not held:
        return backend.store.remove(resource.key, metadata.get("namespace", ""), metadata["name"], obj)
    return backend.store.write(resource.key, obj)


def _guard(resource: ApiResource, old: Json, obj: Json) -> None:
    """Reject an update whose name, namespace, UID or resourceVersion differs from the stored object's."""
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


def _prepared(resource: ApiResource, old: Json, new: Json, subresource: str) -> Json:
    """Return the new object with the old values of fields that the write must not change, such as system metadata.

    Increment the generation.
    """
    before = old["metadata"]
    metadata = {name: before[name] for name in _SYSTEM if name in before}
    metadata |= {name: new["metadata"][name] for name in new["metadata"] if name not in (*_SYSTEM, "managedFields")}
    if subresource == "status":
        kept = (metadata if resource.custom is None else before) | {"ownerReferences": before.get("ownerReferences")}
        kept = {name: value for name, value in kept.items() if value is not None}
        return _with_status(old | {"metadata": kept}, new.get("status"))
    new = new | {"metadata": metadata}
    if resource.has_status:
        new = _with_status(new, old.get("status"))
    ignored = ("metadata", "status") if resource.custom is None or resource.has_status else ("metadata",)
    blank = dict.fromkeys(ignored)
    if resource.counts_generations and old | blank != new | blank:
        metadata["generation"] = before.get("generation", 1) + 1
    return new


def _with_status(obj: Json, status: Any) -> Json:
    rest = {name: value for name, value in obj.items() if name != "status"}
    return rest if status is None else rest | {"status": status}


def _immutable(resource: ApiResource, old: Json, new: Json) -> list[Cause]:
    """Return an error cause for each immutable field that an update changes."""
    if resource.key == "pods":
        return _pod(old["spec"], new["spec"])
    if resource.key == POD_GROUPS:
        return _pod_group(old["spec"], new["spec"])
    path = _FIXED.get(resource.key, ())
    before: Any = old
    after: Any = new
    for step in path:
        before, after = (before or {}).get(step), (after or {}).get(step)
    if not path or before == after:
        return []
    if path == ("value",):
        return [Cause("value", "FieldValueForbidden", "Forbidden: may not be changed in an update.")]
    return [wrong(".".join(path), after, "field is immutable")]


def _pod_group(old: Json, new: Json) -> list[Cause]:
    """Return an error cause for each changed field of a PodGroup; only the minCount of a gang may change."""
    names = [name for name in {**old, **new} if name != "schedulingPolicy" and old.get(name) != new.get(name)]
    if old["schedulingPolicy"].keys() != new["schedulingPolicy"].keys():
        names.append("schedulingPolicy")
    return [wrong(f"spec.{name}", new.get(name), "field is immutable") for name in names]


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
    """Return a pod's spec without the fields that an update may change; a gated pod has more such fields."""
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
