"""Admission: what the API server does to a new object with a look at the rest of the cluster.

Priority from its class, the default service account, the usual tolerations, what matchLabelKeys stand for, the first
status of a pod. It reads the store and changes only the object at hand. Objects that are loaded keep the status they
come with.
"""

from __future__ import annotations

from policysched.model.defaults import merge_label_keys
from policysched.sandbox.objects import Json
from policysched.sandbox.objects.errors import StatusError, forbidden
from policysched.sandbox.objects.kinds import all_containers, fill
from policysched.sandbox.objects.resources import ApiResource
from policysched.sandbox.storage.store import ObjectStore

PRIORITY_CLASSES = "priorityclasses.scheduling.k8s.io"
GATED = "Scheduling is blocked due to non-empty scheduling gates"
_NOT_READY, _UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
_KEEPS_STATUS = frozenset({"nodes", "persistentvolumes", "persistentvolumeclaims", "namespaces", "services"})


def admit(store: ObjectStore, resource: ApiResource, obj: Json, now: str, *, loaded: bool) -> None:
    """Complete or refuse a new object."""
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


_FIRST_STATUS: dict[str, Json] = {
    "replicasets.apps": {"replicas": 0},
    "replicationcontrollers": {"replicas": 0},
    "statefulsets.apps": {"replicas": 0, "availableReplicas": 0},
    "poddisruptionbudgets.policy": {
        "currentHealthy": 0,
        "desiredHealthy": 0,
        "disruptionsAllowed": 0,
        "expectedPods": 0,
    },
    "daemonsets.apps": {
        "currentNumberScheduled": 0,
        "desiredNumberScheduled": 0,
        "numberMisscheduled": 0,
        "numberReady": 0,
    },
}


def _admit_pod(store: ObjectStore, pod: Json, now: str, *, loaded: bool) -> None:
    spec = pod["spec"]
    merge_label_keys(spec, pod["metadata"].get("labels", {}))
    _service_account(store, pod, loaded=loaded)
    _priority(store, pod, loaded=loaded)
    for key in (_NOT_READY, _UNREACHABLE):
        _tolerate(spec, key)
    status = pod.setdefault("status", {}) if loaded else {}
    fill(status, phase="Pending", qosClass=qos_class(spec))
    if spec.get("schedulingGates") and not status.get("conditions"):
        status["conditions"] = [gated_condition(now)]
    pod["status"] = status


def gated_condition(now: str) -> Json:
    """Write the condition of a pod that must not be scheduled yet."""
    return {
        "lastProbeTime": None,
        "lastTransitionTime": None,
        "message": GATED,
        "reason": "SchedulingGated",
        "status": "False",
        "type": "PodScheduled",
    } | {"lastTransitionTime": now}


def _shown(pod: Json) -> str:
    """Name a pod in a refusal: a generated name is not known yet when admission refuses it."""
    metadata = pod["metadata"]
    name: str = metadata.get("generateName") or metadata["name"]
    return name


def _service_account(store: ObjectStore, pod: Json, *, loaded: bool) -> None:
    spec = pod["spec"]
    fill(spec, serviceAccountName="default")
    fill(spec, serviceAccount=spec["serviceAccountName"])
    account, namespace = spec["serviceAccountName"], pod["metadata"]["namespace"]
    if not loaded and account != "default" and not store.get("serviceaccounts", namespace, account):
        why = f'error looking up service account {namespace}/{account}: serviceaccount "{account}" not found'
        raise forbidden("", "pods", _shown(pod), why)


def _priority(store: ObjectStore, pod: Json, *, loaded: bool) -> None:
    spec = pod["spec"]
    found = _priority_class(store, spec.get("priorityClassName", ""))
    if found is None and spec.get("priorityClassName"):
        if loaded:
            fill(spec, priority=0, preemptionPolicy="PreemptLowerPriority")
            return
        why = f"no PriorityClass with name {spec['priorityClassName']} was found"
        raise forbidden("", "pods", _shown(pod), why)
    value = found["value"] if found else 0
    if not loaded and spec.get("priority", value) != value:
        why = (
            f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; "
            f"priority admission controller computed {value} from the given PriorityClass name"
        )
        raise forbidden("", "pods", _shown(pod), why)
    if found:
        fill(spec, priorityClassName=found["metadata"]["name"])
    fill(spec, priority=value)
    fill(spec, preemptionPolicy=(found or {}).get("preemptionPolicy", "PreemptLowerPriority"))


def _priority_class(store: ObjectStore, name: str) -> Json | None:
    if name:
        entry = store.get(PRIORITY_CLASSES, "", name)
        return entry.object if entry else None
    defaults = [entry.object for entry in store.values(PRIORITY_CLASSES) if entry.object.get("globalDefault")]
    return min(defaults, key=lambda found: int(found["value"]), default=None)


def _tolerate(spec: Json, key: str) -> None:
    tolerations = spec.setdefault("tolerations", [])
    for each in tolerations:
        if each.get("key") in (key, None, "") and each.get("effect") in ("NoExecute", None, ""):
            return
    each = {"effect": "NoExecute", "key": key, "operator": "Exists", "tolerationSeconds": 300}
    tolerations.append(each)


def qos_class(spec: Json) -> str:
    """Name the quality-of-service class: the containers' requests and limits of cpu and memory decide."""
    requests = limits = False
    guaranteed = True
    for container in all_containers(spec):
        resources = container.get("resources") or {}
        asked = _counted(resources.get("requests"))
        bound = _counted(resources.get("limits"))
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
    for entry in store.values("storageclasses.storage.k8s.io"):
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
