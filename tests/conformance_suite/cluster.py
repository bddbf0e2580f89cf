"""The cluster that the specs find: four nodes in two zones, and the pods of a system that they wait for.

Pure data. With more nodes than four one spec gets tight: it fills every node up with pods of its own.
"""

from __future__ import annotations

from typing import Any, Final

Json = dict[str, Any]
NODES: Final = 4
ZONES: Final = 2
SYSTEM: Final = ("kube-proxy", "fluentd-elasticsearch", "node-problem-detector")
"""Serial specs wait for a minute where a node lacks a pod that is named so."""
_ROOM: Final = {"cpu": "4", "memory": "32Gi", "pods": "110", "ephemeral-storage": "100Gi"}


def nodes() -> list[Json]:
    """Make all nodes."""
    return [node(number) for number in range(NODES)]


def system_pods() -> list[Json]:
    """Make all pods of the system."""
    return [system_pod(name, number) for number in range(NODES) for name in SYSTEM]


def node(number: int) -> Json:
    """Make a node; our kubelets say that it is Ready."""
    name = f"node-{number}"
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "topology.kubernetes.io/region": "region-0",
        "topology.kubernetes.io/zone": f"zone-{number % ZONES}",
    }
    addresses = [
        {"type": "InternalIP", "address": f"10.0.1.{number + 1}"},
        {"type": "Hostname", "address": name},
    ]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": _ROOM, "allocatable": _ROOM, "addresses": addresses},
    }


def system_pod(name: str, number: int) -> Json:
    """Make a pod of the system, which asks for nothing; as those of DaemonSets it wants one node, and is scheduled."""
    own = {"key": "metadata.name", "operator": "In", "values": [f"node-{number}"]}
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [own]}]}}
    container = {"name": "app", "image": "registry.example.com/app:1"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{name}-{number}", "namespace": "kube-system"},
        "spec": {
            "priorityClassName": "system-node-critical",
            "affinity": {"nodeAffinity": rule},
            "containers": [container],
        },
    }
