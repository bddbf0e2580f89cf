"""The objects of the soak: nodes, devices, classes, budgets, pods and pod groups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from bench.cluster.devices import CLAIMS, RESOURCE, Supply

Json = dict[str, Any]
ME: Final = "default-scheduler"
NAMESPACE: Final = "default"
ZONE, HOST, RACK = "topology.kubernetes.io/zone", "kubernetes.io/hostname", "example.com/rack"
CPUS: Final = 16
"""Processors of a node."""
GIB_PER_CPU: Final = 3
NODES_PER_RACK: Final = 50
DEVICES_EVERY: Final = 10
"""One node in so many has ten devices."""
PRIORITIES: Final = {"batch": 0, "group": 500, "service": 1000, "critical": 2000}
APPS: Final = 200
BATCH_APPS: Final = 10
BUDGETS: Final = {
    **{f"service-{number}": 0.9 for number in range(20)},
    **{f"batch-{number}": 0.5 for number in range(5)},
}
"""Share of the pods of an app that its PodDisruptionBudget keeps, by app."""
TEMPLATES: Final = ("one", "matched")


@dataclass(frozen=True, slots=True)
class Shape:
    """The part of a pod that stays when the pod is replaced.

    `life` is the time from the binding to the end of the pod, in seconds; 0 if the group of the pod ends it.
    """

    kind: str
    app: str
    cpu: int
    life: float
    group: str = ""
    claim: str = ""
    """Name of the ResourceClaimTemplate; empty for a pod without devices."""
    spread: str = ""
    """`zones` or `hosts` for a topology spread constraint or anti-affinity among the pods of the app."""


def namespaced(name: str) -> Json:
    """Return metadata in the namespace of the soak."""
    return {"name": name, "namespace": NAMESPACE}


def node_name(number: int) -> str:
    """Return the name of a node."""
    return f"node-{number:05}"


def node(number: int) -> Json:
    """Return a node; each tenth has devices."""
    amounts = {"cpu": str(CPUS), "memory": f"{CPUS * GIB_PER_CPU + 8}Gi", "pods": "110"}
    name = node_name(number)
    labels = {HOST: name, ZONE: f"zone{number % 3 + 1}", RACK: f"rack-{number // NODES_PER_RACK:03}"}
    kinds = {"MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False", "Ready": "True"}
    conditions = [{"type": kind, "status": status, "lastHeartbeatTime": None} for kind, status in kinds.items()]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {},
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": conditions},
    }


def has_devices(number: int) -> bool:
    """Return whether a node has devices."""
    return number % DEVICES_EVERY == 0


def devices(*names: str) -> Iterator[Json]:
    """Yield the device class and a slice of ten devices for each node."""
    return Supply(slices="roots").objects(names)


def settings() -> Iterator[Json]:
    """Yield namespace, priority classes, claim templates and budgets."""
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    for name, value in PRIORITIES.items():
        yield {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
        }
    for name in TEMPLATES:
        yield {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": namespaced(name),
            "spec": {"spec": {"devices": CLAIMS[name]}},
        }
    for app in BUDGETS:
        yield {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": namespaced(app),
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": app}}},
        }


def pod(name: str, shape: Shape, on: str = "") -> Json:
    """Return a pod of a shape, placed if a node is given."""
    amounts = {"cpu": str(shape.cpu), "memory": f"{GIB_PER_CPU * shape.cpu}Gi"}
    container: Json = {"name": "main", "image": f"registry.example/{shape.app}:1", "resources": {"requests": amounts}}
    spec: Json = {"schedulerName": ME, "priorityClassName": shape.kind, "containers": [container]}
    if shape.claim:
        spec["resourceClaims"] = [{"name": RESOURCE, "resourceClaimTemplateName": shape.claim}]
        container["resources"]["claims"] = [{"name": RESOURCE}]
    if shape.group:
        spec["schedulingGroup"] = {"podGroupName": shape.group}
    spec |= _apart(shape)
    if on:
        spec["nodeName"] = on
    metadata = namespaced(name) | {"labels": {"app": shape.app, "kind": shape.kind}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _apart(shape: Shape) -> Json:
    """Return the constraints of a pod with respect to the pods of its app."""
    selector = {"matchLabels": {"app": shape.app}}
    if shape.spread == "zones":
        about = {"maxSkew": 2, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway"}
        return {"topologySpreadConstraints": [about | {"labelSelector": selector}]}
    if shape.spread == "hosts":
        term = {"topologyKey": HOST, "labelSelector": selector}
        return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    return {}


def group(name: str, size: int, key: str) -> Json:
    """Return a gang; with a topology key, all its pods must be in one domain."""
    spec: Json = {"schedulingPolicy": {"gang": {"minCount": size}}, "priorityClassName": "group"}
    spec["priority"] = PRIORITIES["group"]
    if key:
        spec["schedulingConstraints"] = {"topology": [{"key": key}]}
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": namespaced(name),
        "spec": spec,
    }
