"""Nodes to try things on.

They are plain objects as kubectl prints them, ready and labelled. Zones are dealt in turn, so that any few
nodes already differ in their zone.
"""

from __future__ import annotations

from policysched.sandbox.objects import Json

ZONES = ("zone-a", "zone-b", "zone-c")
_INFO = {
    "architecture": "amd64",
    "operatingSystem": "linux",
    "kubeletVersion": "v1.36.2",
    "kubeProxyVersion": "",
    "osImage": "sandbox",
    "containerRuntimeVersion": "sandbox://1",
    "kernelVersion": "0",
}
_CONDITIONS = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)


def sandbox_nodes(count: int) -> list[Json]:
    """Make nodes `node-1` … of 4 CPUs, 32Gi and 110 pods over three zones."""
    return [_node(f"node-{index + 1}", ZONES[index % len(ZONES)]) for index in range(count)]


def _node(name: str, zone: str) -> Json:
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "topology.kubernetes.io/zone": zone,
        "topology.kubernetes.io/region": "sandbox",
    }
    capacity = {"cpu": "4", "memory": "32Gi", "ephemeral-storage": "100Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {},
        "status": {
            "capacity": capacity,
            "allocatable": dict(capacity),
            "conditions": [_condition(*row) for row in _CONDITIONS],
            "addresses": [{"type": "Hostname", "address": name}],
            "nodeInfo": _INFO | dict.fromkeys(("machineID", "systemUUID", "bootID"), name),
        },
    }


def _condition(kind: str, status: str, reason: str, message: str) -> Json:
    return {"type": kind, "status": status, "reason": reason, "message": message}
