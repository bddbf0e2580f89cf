"""Objects of Kubernetes' scheduler_perf as dicts, under the names of their templates.

Source: test/integration/scheduler_perf/templates, v1.36; test/utils/runners.go for names and volumes.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Final

Json = dict[str, Any]
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
DRIVER: Final = "ebs.csi.aws.com"
DEVOPS: Final = {"team": "devops"}
"""Labels of the namespaces that selectors match."""
APP: Final = {"app": "scheduler-perf"}
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_NAMED: Final = {"namespaces": ["sched-1", "sched-0"]}
_SELECTED: Final = {"namespaceSelector": {"matchLabels": DEVOPS}}


def _resources(cpu: str, memory: str, *, limited: bool = True) -> Json:
    amounts = {"cpu": cpu, "memory": memory}
    return {"requests": amounts, "limits": amounts} if limited else {"requests": amounts}


def _pod(resources: Json | None = None, labels: Json | None = None, **spec: Any) -> Json:
    container: Json = {"name": "pause", "image": "registry.k8s.io/pause:3.10.1"}
    if resources:
        container |= {"ports": [{"containerPort": 80}], "resources": resources}
    return {"labels": labels or {}, "spec": {"containers": [container], **spec}}


_STANDARD: Final = _resources("100m", "500Mi")


def _affine(kind: str, when: str, color: str, key: str, namespaces: Mapping[str, Any]) -> Json:
    """Return a pod template with one affinity term for pods of the same color."""
    labels = {"color": color}
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": key, **namespaces}
    stated = term if when == _REQUIRED else {"weight": 1, "podAffinityTerm": term}
    return _pod(_STANDARD, labels, affinity={kind: {when: [stated]}})


def _spread(action: str) -> Json:
    labels = {"color": "blue"}
    selector = {"matchLabels": labels}
    constraint = {"maxSkew": 5, "topologyKey": ZONE, "whenUnsatisfiable": action, "labelSelector": selector}
    return _pod(_STANDARD, labels, topologySpreadConstraints=[constraint])


def _in_zones(*zones: str) -> Json:
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": list(zones)}]}
    return {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": [term]}}}


PODS: Final[Mapping[str, Json]] = {
    "pod-default": _pod(_STANDARD),
    "pod-with-node-affinity": _pod(_STANDARD, affinity=_in_zones("zone1", "zone2")),
    "pod-with-pod-affinity": _affine("podAffinity", _REQUIRED, "blue", ZONE, _NAMED),
    "pod-with-pod-anti-affinity": _affine("podAntiAffinity", _REQUIRED, "green", HOST, _NAMED),
    "pod-with-preferred-pod-affinity": _affine("podAffinity", _PREFERRED, "red", HOST, _NAMED),
    "pod-with-preferred-pod-anti-affinity": _affine("podAntiAffinity", _PREFERRED, "yellow", HOST, _NAMED),
    "pod-affinity-ns-selector": _affine("podAffinity", _REQUIRED, "blue", ZONE, _SELECTED),
    "pod-anti-affinity-ns-selector": _affine("podAntiAffinity", _REQUIRED, "green", HOST, _SELECTED),
    "pod-preferred-affinity-ns-selector": _affine("podAffinity", _PREFERRED, "red", HOST, _SELECTED),
    "pod-preferred-anti-affinity-ns-selector": _affine("podAntiAffinity", _PREFERRED, "green", HOST, _SELECTED),
    "pod-with-topology-spreading": _spread("DoNotSchedule"),
    "pod-with-preferred-topology-spreading": _spread("ScheduleAnyway"),
    "pod-with-label": _pod(labels=APP),
    "pod-low-priority": _pod(_resources("900m", "500Mi"), terminationGracePeriodSeconds=0),
    "pod-high-priority": _pod(_resources("3000m", "500Mi"), priority=10),
    "pod-high-priority-large-cpu": _pod(_resources("9", "500Mi", limited=False), priority=10),
    "gated-pod": _pod(schedulingGates=[{"name": "test.k8s.io/hold"}]),
    "pod-claiming": _pod(),
    "pod-of-group": _pod({"requests": {"cpu": "100m", "memory": "100Mi"}}),
    "pod-tenth-of-node": _pod({"requests": {"cpu": "40m"}}, terminationGracePeriodSeconds=0),
    "pod-taking-a-node": _pod({"requests": {"cpu": "3970m"}}, priority=10),
    "light-pod": _pod(terminationGracePeriodSeconds=0),
    "pod-with-secret-volume": _pod(_STANDARD, volumes=[{"name": "secret", "secret": {"secretName": "secret"}}]),
}
"""Labels and spec of each pod template."""
VOLUMES: Final[Mapping[str, Json]] = {
    "pv-aws": {"awsElasticBlockStore": {"volumeID": "<volume-id>"}},
    "pv-csi": {"csi": {"driver": DRIVER}},
}
"""Sources of each volume template."""


def pod(template: str, name: str, namespace: str, labels: Json | None = None, **spec: Any) -> Json:
    """Return a pod of a template; `spec` adds fields."""
    made = deepcopy(PODS[template])
    metadata = {"name": name, "namespace": namespace, "labels": made["labels"] | (labels or {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": made["spec"] | spec}


def priority(template: str) -> int:
    """Return the priority of the pods of a template."""
    stated: int = PODS[template]["spec"].get("priority", 0)
    return stated


def pod_group(name: str, namespace: str, least: int | None, of_priority: int) -> Json:
    """Return a pod group: a gang of at least `least` pods, or a basic group."""
    policy: Json = {"basic": {}} if least is None else {"gang": {"minCount": least}}
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"schedulingPolicy": policy, "priority": of_priority},
    }


def node(name: str, zone: str = "", pods: str = "110") -> Json:
    """Return a Ready node."""
    labels = {HOST: name} | ({ZONE: zone} if zone else {})
    amounts = {"pods": pods, "cpu": "4", "memory": "32Gi"}
    status = {"capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}], "phase": "Running"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}


def csi_node(name: str) -> Json:
    """Return a CSINode with a volume limit of the driver, including migrated in-tree volumes."""
    migrated = {"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/aws-ebs"}
    driver = {"name": DRIVER, "nodeID": name, "allocatable": {"count": 39}}
    metadata = {"name": name, "annotations": migrated}
    return {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": metadata, "spec": {"drivers": [driver]}}


def volume(template: str, name: str, namespace: str) -> tuple[Json, Json, Json]:
    """Return a claim, its bound volume, and the fields of a pod spec that use them."""
    source = deepcopy(VOLUMES[template])
    if "csi" in source:
        source["csi"]["volumeHandle"] = name
    room = {"storage": "1Gi"}
    shared = {"accessModes": ["ReadOnlyMany"]}
    of = {"kind": "PersistentVolumeClaim", "namespace": namespace, "name": name, "apiVersion": "v1"}
    kept = {"capacity": room, "persistentVolumeReclaimPolicy": "Retain", "claimRef": of, **shared, **source}
    bound = {"annotations": {"pv.kubernetes.io/bind-completed": "true"}}
    claimed = {"resources": {"requests": room}, "volumeName": name, **shared}
    claim = {"metadata": {"name": name, "namespace": namespace, **bound}, "spec": claimed}
    return (
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **claim},
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": kept},
        {"volumes": [{"name": "vol", "persistentVolumeClaim": {"claimName": name}}]},
    )


def namespace(name: str, labels: Json | None = None) -> Json:
    """Return a namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels or {}}}


def service(name: str, namespace: str, selector: Json, port: int = 80) -> Json:
    """Return a Service."""
    ports = [{"protocol": "TCP", "port": port, "targetPort": 8000}]
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"selector": selector, "ports": ports}}


def secret(name: str, namespace: str) -> Json:
    """Return an empty Secret."""
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace}}
