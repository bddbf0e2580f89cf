"""Nodes for generated cases.

Knows nothing of the pod that will be scheduled. Whether a trait appears is decided per case (its
themes), not per node: a case about taints should have many of them, most others none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import affinity, images
from .quantities import Quantities, cpu, memory

if TYPE_CHECKING:
    from random import Random

GPUS: list[str | int] = ["1", "4", "8", 0]
PODS: list[str | int] = ["110", "110", "250", "8", 110]
FEATURES = [
    "RestartAllContainersOnContainerExits",
    "UserNamespacesHostNetworkSupport",
    "VolumeBindMountOptions",
    "FromTheFuture",
]


def node_count(rng: Random) -> int:
    """Draw a cluster size: mostly small, seldom more than a hundred nodes."""
    low, high = rng.choices([(1, 6), (7, 20), (21, 60), (200, 260)], [50, 35, 13, 2])[0]
    return rng.randint(low, high)


def allocatable(rng: Random, *, odd: bool) -> Quantities:
    """Draw what a node offers; an odd node lacks something or offers nothing of it.

    Units: cores, gibibytes, pieces.
    """
    found: Quantities = {
        "cpu": cpu(rng, rng.choice([1000, 2000, 4000, 7910, 8000, 64000])),
        "memory": memory(rng, rng.choice([1024, 2048, 7900, 8192, 16384, 262144])),
        "pods": rng.choice(PODS),
        "ephemeral-storage": memory(rng, rng.choice([10240, 102400])),
    }
    for name in ("example.com/gpu", "example.com/fpga"):
        if rng.random() < 0.4:
            found[name] = rng.choice(GPUS)
    if rng.random() < 0.3:
        found["hugepages-2Mi"] = rng.choice(["512Mi", "1Gi", "0"])
    if odd and rng.random() < 0.5:
        name = rng.choice(["cpu", "memory", "pods", "ephemeral-storage"])
        if rng.random() < 0.5:
            found[name] = "0"
        else:
            del found[name]
    return found


def node(rng: Random, name: str, themes: frozenset[str]) -> dict[str, Any]:
    """Make one node with the traits that the case is about."""
    capacity = "allocatable" if rng.random() < 0.9 else "capacity"
    spec: dict[str, Any] = {}
    status: dict[str, Any] = {capacity: allocatable(rng, odd="odd" in themes)}
    if "taints" in themes and (found := affinity.taints(rng)):
        spec["taints"] = found
    if "cordon" in themes and rng.random() < 0.4:
        spec["unschedulable"] = True
        if rng.random() < 0.5:
            cordoned = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
            spec["taints"] = [*spec.get("taints", []), cordoned]
    if "images" in themes:
        status["images"] = images.on_node(rng)
    if "features" in themes:
        status["declaredFeatures"] = sorted(rng.sample(FEATURES, rng.randint(0, len(FEATURES))))
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": affinity.labels(rng, name)},
        "spec": spec,
        "status": status,
    }
