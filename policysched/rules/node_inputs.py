"""What rules read of nodes: columns over the rows that are being evaluated, and what makes them change.

Shapes: R the rows asked for.
Units: cpu in millicores, bytes and counts as they are; float64, exact up to 2^53.
Missing: −1 in code columns; resources a node does not know are 0.
Source: docs/language.md#names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policysched.framework import Aspect, Rows
from policysched.language.typed import Input
from policysched.model.images import pod_images
from policysched.model.objects import Pod
from policysched.state.cluster import Cluster
from policysched.state.nodes import NodeTable

WELL_KNOWN_LABELS = {
    "arch": "kubernetes.io/arch",
    "os": "kubernetes.io/os",
    "zone": "topology.kubernetes.io/zone",
    "region": "topology.kubernetes.io/region",
    "instance_type": "node.kubernetes.io/instance-type",
}
MILLIS = 1000
RESOURCE_NAMES = {"ephemeral_storage": "ephemeral-storage"}
_ASPECTS = {
    "annotations": Aspect.LABELS,
    "labels": Aspect.LABELS,
    "ready": Aspect.CONDITIONS,
    "cordoned": Aspect.TAINTS,
    "taints": Aspect.TAINTS,
    "allocatable": Aspect.CAPACITY,
    "requested": Aspect.USAGE,
    "free": Aspect.CAPACITY | Aspect.USAGE,
    "cached_image_bytes": Aspect.IMAGES,
}


def aspect_of(item: Input) -> Aspect:
    """Say which aspect of a row changes an input's value there."""
    if item.root != "node":
        return Aspect.NONE
    name = item.path[0]
    return Aspect.LABELS if name in WELL_KNOWN_LABELS else _ASPECTS.get(name, Aspect.NONE)


def node_column(cluster: Cluster, pod: Pod, item: Input, rows: Rows) -> NDArray[Any]:
    """Give an input's values on the rows.

    Shapes: (R,) int32 codes, float64 amounts or bool.
    """
    name = item.path[0]
    if name in _FLAGS:
        return _FLAGS[name](cluster.nodes)[rows]
    if name in _TEXTS:
        return _TEXTS[name](cluster.nodes, item.key or "")[rows]
    if name in WELL_KNOWN_LABELS:
        return cluster.nodes.labels(WELL_KNOWN_LABELS[name])[rows]
    if name == "cached_image_bytes":
        return _cached_bytes(cluster, pod, rows)
    if item.key is not None:
        return _by_key(cluster, item, rows)
    return _amount(cluster, name, RESOURCE_NAMES.get(item.path[1], item.path[1]), rows)


def _amount(cluster: Cluster, side: str, resource: str, rows: Rows) -> NDArray[np.float64]:
    nodes = cluster.nodes
    if resource == "pods":
        allocatable, requested = nodes.pods_allowed.data, nodes.pods_count.data
    else:
        allocatable, requested = nodes.allocatable(resource), nodes.requested(resource)
    if side == "allocatable":
        amounts = allocatable[rows]
    elif side == "requested":
        amounts = requested[rows]
    else:
        amounts = allocatable[rows] - requested[rows]
    return np.asarray(amounts, np.float64)


def _by_key(cluster: Cluster, item: Input, rows: Rows) -> NDArray[np.float64]:
    """Give a resource whose name was computed: a plain number, cpu in cores."""
    amounts = _amount(cluster, item.path[0], item.key or "", rows)
    return amounts / MILLIS if item.key == "cpu" else amounts


def _has_taint(nodes: NodeTable, key: str) -> NDArray[np.bool_]:
    sets = nodes.taint_sets
    held = [any(taint.key == key for taint in sets.value(code)) for code in range(len(sets))]
    return np.take(np.array(held, np.bool_), nodes.taints.data)


def _cached_bytes(cluster: Cluster, pod: Pod, rows: Rows) -> NDArray[np.float64]:
    total = np.zeros(cluster.nodes.name.data[rows].size, np.float64)
    for image in set(pod_images(pod)):
        found = cluster.images.column(image)
        if found is not None:
            total += found[0].data[rows]
    return total


_FLAGS: dict[str, Callable[[NodeTable], NDArray[Any]]] = {
    "name": lambda nodes: nodes.name.data,
    "ready": lambda nodes: nodes.ready.data,
    "cordoned": lambda nodes: nodes.unschedulable.data,
}
_TEXTS: dict[str, Callable[[NodeTable, str], NDArray[Any]]] = {
    "labels": NodeTable.labels,
    "annotations": NodeTable.annotations,
    "taints": _has_taint,
}
