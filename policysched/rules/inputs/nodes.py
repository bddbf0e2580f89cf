"""What rules read of nodes: columns over the rows that are being evaluated, and what makes them change.

Shapes: R the rows asked for.
Units: cpu in millicores, durations in seconds, bytes and counts as they are; float64, exact up to 2^53.
Missing: −1 in code columns, NaN in metrics; resources a node does not know are 0.
Source: docs/language.md#names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policysched.framework import Aspect, ChangedRow, Rows
from policysched.language.ir.graph import ANY_KEY, Input
from policysched.model.objects import Pod
from policysched.model.pod_requirements import pod_images
from policysched.model.quantity import wrap
from policysched.rules.compile.policy import MetricInput
from policysched.state.cluster import Cluster
from policysched.state.tables.nodes import NodeTable

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
    "age": Aspect.AGE,
    "pods": Aspect.PODS,
    **dict.fromkeys(WELL_KNOWN_LABELS, Aspect.LABELS),
}
_ELSEWHERE = {
    ("cluster", "pods"): Aspect.PODS,
    ("pod", "image_bytes"): Aspect.IMAGES,
}


def aspect_of(item: Input) -> Aspect:
    """Say which aspects of rows change an input's value; a row that comes or goes may change any."""
    if item.root == "node":
        return _ASPECTS.get(item.path[0], Aspect.NONE)
    if item.root == "peer":
        return Aspect.PODS | (Aspect.IMAGES if item.path[0] == "image_bytes" else Aspect.NONE)
    if item.root == "metrics":
        return Aspect.METRICS
    return _ELSEWHERE.get((item.root, item.path[0]), Aspect.NONE)


def aspects_read(inputs: Iterable[Input]) -> Aspect:
    """Say which aspects of rows change what is made of these inputs."""
    aspects = Aspect.NONE
    for item in inputs:
        aspects |= aspect_of(item)
    return aspects


def node_column(cluster: Cluster, pod: Pod | None, item: Input, rows: Rows) -> NDArray[Any]:
    """Return an input's values on the rows, for the pod that is decided about.

    Shapes: (R,) int32 codes, float64 amounts or bool.
    """
    if isinstance(item, MetricInput):
        values = cluster.metrics.gauge(item.metric, item.max_age).data[rows]
        return values if item.scale == 1 else values * item.scale
    name = item.path[0]
    column = _COLUMNS.get(name)
    if column is not None:
        return column(cluster, item.key or "")[rows]
    if name == "cached_image_bytes":
        return _cached_bytes(cluster, pod, rows)
    if item.key is not None:
        return _by_key(cluster, item, rows)
    return _amount(cluster, name, RESOURCE_NAMES.get(item.path[1], item.path[1]), rows)


def is_node_column(item: Input) -> bool:
    """Return whether an input is a column of nodes that stays, whichever pod is decided about."""
    return item.root == "node" and item.key != ANY_KEY and item.path[0] not in {"age", "cached_image_bytes", "pods"}


def needed(pod: Pod | None) -> Pod:
    """Return the pod that is decided about.

    Raises:
        ValueError: there is none.
    """
    if pod is None:
        raise ValueError("a rule that reads no pod asked for one")
    return pod


def changed_amount(changed: ChangedRow, item: Input) -> float:
    """Return what an input of `node.requested` or `node.free` would be on a row whose pods were others."""
    nodes, row = changed.cluster.nodes, changed.row
    resource = item.key or RESOURCE_NAMES.get(item.path[1], item.path[1])
    if resource == "pods":
        allocatable, requested = nodes.pods_allowed.data.item(row), changed.pods_count
    else:
        allocatable, requested = nodes.allocatable(resource).item(row), changed.requested(resource)
    value = float(requested if item.path[0] == "requested" else wrap(allocatable - requested))
    return value / MILLIS if item.key == "cpu" else value


def _amount(cluster: Cluster, side: str, resource: str, rows: Rows) -> NDArray[np.float64]:
    nodes = cluster.nodes
    if resource == "pods":
        allocatable, requested = nodes.pods_allowed.data, nodes.pods_count.data[rows]
    else:
        allocatable, requested = nodes.allocatable(resource), nodes.requested(resource, rows)
    if side == "allocatable":
        amounts = allocatable[rows]
    elif side == "requested":
        amounts = requested
    else:
        amounts = allocatable[rows] - requested
    return np.asarray(amounts, np.float64)


def _by_key(cluster: Cluster, item: Input, rows: Rows) -> NDArray[np.float64]:
    """Return a resource whose name was computed: a plain number, cpu in cores."""
    amounts = _amount(cluster, item.path[0], item.key or "", rows)
    return amounts / MILLIS if item.key == "cpu" else amounts


def _has_taint(nodes: NodeTable, key: str) -> NDArray[np.bool_]:
    held = [any(taint.key == key for taint in taints or ()) for taints in nodes.taint_sets]
    return np.take(np.array(held, np.bool_), nodes.taints.data)


def _cached_bytes(cluster: Cluster, pod: Pod | None, rows: Rows) -> NDArray[np.float64]:
    total = np.zeros(cluster.nodes.columns.capacity, np.float64)
    for image in set(pod_images(needed(pod))):
        found = cluster.images.rows_with(image)
        if found is not None:
            total[found[0]] += found[1]
    return total[rows]


def _label(key: str) -> Callable[[Cluster, str], NDArray[Any]]:
    return lambda cluster, _: cluster.nodes.labels(key)


_COLUMNS: dict[str, Callable[[Cluster, str], NDArray[Any]]] = {
    "name": lambda cluster, _: cluster.nodes.name.data,
    "ready": lambda cluster, _: cluster.nodes.ready.data,
    "cordoned": lambda cluster, _: cluster.nodes.unschedulable.data,
    "age": lambda cluster, _: cluster.ages.held().data,
    "labels": lambda cluster, key: cluster.nodes.labels(key),
    "annotations": lambda cluster, key: cluster.nodes.annotations(key),
    "taints": lambda cluster, key: _has_taint(cluster.nodes, key),
    **{name: _label(key) for name, key in WELL_KNOWN_LABELS.items()},
}
