"""Columns of nodes and fields of pods that rules read, and the changes of a node (`Aspect`) that affect them.

An input has a column of values for the evaluated rows, or one value for all nodes. Its aspects name the changes of a
node that can change the values. A `PodInputs` object serves all pods of a pod class: if a rule reads a field in which
pods of a class may differ, the key of the class contains the field. The pod's age is computed when the object is
created, because the key of the class contains the values that rules compute from it at that time.

The scheduled pod is the pod of the current decision, `pod.` in rules; placed pods are `peer.` or `victim.`.

Shapes: R the evaluated rows.
Units: cpu in millicores, durations in seconds, bytes and counts unscaled; float64, exact up to 2^53.
Missing: −1 in code columns, NaN in metrics; 0 for resources that a node does not have. Labels, annotations, class and
owner that a pod does not have are None, resources that it does not request are 0.
Source: docs/reference/language.md#names.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from policysched.framework import Aspect, ChangedRow, ChangedRows, Rows
from policysched.language.ir.graph import ANY_KEY, Input
from policysched.language.ir.types import NODE_INFO, WELL_KNOWN_LABELS
from policysched.model.objects import Pod, Taint
from policysched.model.objects.meta import seconds_of
from policysched.model.objects.storage import claim_name
from policysched.model.pod_requirements import pod_images, pod_priority, qos_class
from policysched.model.quantity import wrap
from policysched.model.requests import incoming_requests, pod_limits
from policysched.rules.amounts import MILLIS, RESOURCE_NAMES, amount, resource_of
from policysched.rules.compile.graphs import VOLATILE, reads_group, reads_pod
from policysched.rules.compile.policy import MetricInput
from policysched.rules.group_values import group_value, group_version, members_on
from policysched.state.cluster import Cluster
from policysched.state.placed.pods import PlacedPod
from policysched.state.tables.ages import age
from policysched.state.tables.node_texts import NodeText
from policysched.state.tables.nodes import NodeTable

Scalar = str | float | bool | tuple[str, ...] | None
BEYOND_CLASS = frozenset(("name", "annotations", "owner_kind", "owner_name", "qos", "claims", "storage_classes"))
"""The fields of `pod.` in which equal pods (one pod class) may differ, unless a policy reads the field."""
BEYOND_SIGNATURE = frozenset(("name", "image_bytes", "annotations", "phase", "age", "group"))
"""The fields of `peer.` and `victim.` in which placed pods that are otherwise equal may differ."""
_ASPECTS = {
    "addresses": Aspect.INFO,
    "annotations": Aspect.LABELS,
    "conditions": Aspect.CONDITIONS,
    "labels": Aspect.LABELS,
    "ready": Aspect.CONDITIONS,
    "cordoned": Aspect.TAINTS,
    "taints": Aspect.TAINTS,
    "allocatable": Aspect.CAPACITY,
    "requested": Aspect.USAGE,
    "free": Aspect.CAPACITY | Aspect.USAGE,
    "cached_image_bytes": Aspect.IMAGES,
    "group_members": Aspect.PODS,
    "age": Aspect.AGE,
    "pods": Aspect.PODS,
    **dict.fromkeys(WELL_KNOWN_LABELS, Aspect.LABELS),
    **dict.fromkeys(NODE_INFO, Aspect.INFO),
}
_OF_PEERS = {
    "image_bytes": Aspect.IMAGES,
    "age": Aspect.AGE,
    **dict.fromkeys(("annotations", "phase"), Aspect.POD_DETAILS),
}
_ELSEWHERE = {
    ("cluster", "pods"): Aspect.PODS,
    ("pod", "image_bytes"): Aspect.IMAGES,
    ("group", "placed"): Aspect.PODS,
    ("group", "requests"): Aspect.PODS,
}


def aspect_of(item: Input) -> Aspect:
    """Return which changes of a node (`Aspect`) can change the value of an input on this node."""
    if item.root == "node":
        return _ASPECTS.get(item.path[0], Aspect.NONE)
    if item.root == "peer":
        return Aspect.PODS | _OF_PEERS.get(item.path[0], Aspect.NONE)
    if item.root == "metrics":
        return Aspect.METRICS
    return _ELSEWHERE.get((item.root, item.path[0]), Aspect.NONE)


def aspects_read(inputs: Iterable[Input]) -> Aspect:
    """Return which changes of a node (`Aspect`) can change a value computed from the given inputs."""
    aspects = Aspect.NONE
    for item in inputs:
        aspects |= aspect_of(item)
    return aspects


def node_column(cluster: Cluster, pod: Pod | None, item: Input, rows: Rows) -> NDArray[Any]:
    """Return the values of a `node.` or `metrics.` input on the given nodes, for the scheduled pod.

    Shapes: (R,) int32 codes, float64 amounts or bool.
    """
    if isinstance(item, MetricInput):
        values = cluster.metrics.column(item.metric, item.max_age).data[rows]
        return values if item.scale == 1 else values * item.scale
    name = item.path[0]
    column = _COLUMNS.get(item.path)
    if column is not None:
        return column(cluster, item.key or "")[rows]
    if name == "cached_image_bytes":
        return _cached_bytes(cluster, pod, rows)
    if name == "group_members":
        return members_on(needed(pod), cluster, rows)
    if item.key is not None:
        return _by_key(cluster, item, rows)
    return _amount(cluster, name, RESOURCE_NAMES.get(item.path[1], item.path[1]), rows)


def needed(pod: Pod | None) -> Pod:
    """Return the scheduled pod; raise an error if rules are evaluated without a pod.

    Raises:
        ValueError: there is no scheduled pod.
    """
    if pod is None:
        raise ValueError("a rule that reads no pod asked for one")
    return pod


def changed_amount(changed: ChangedRow, item: Input) -> float:
    """Return the value of an input of `node.requested` or `node.free` on a simulated node."""
    nodes, row = changed.cluster.nodes, changed.row
    resource = resource_of(item)
    if resource == "pods":
        allocatable, requested = nodes.pods_allowed.data.item(row), changed.pods_count
    else:
        allocatable, requested = nodes.allocatable(resource).item(row), changed.requested(resource)
    value = float(requested if item.path[0] == "requested" else wrap(allocatable - requested))
    return value / MILLIS if item.key == "cpu" else value


def changed_amounts(changed: ChangedRows, item: Input) -> NDArray[np.float64]:
    """Return the values of an input of `node.requested` or `node.free` on simulated nodes.

    Shapes: (R,).
    """
    nodes, rows = changed.cluster.nodes, changed.rows
    resource = resource_of(item)
    if resource == "pods":
        allocatable, requested = nodes.pods_allowed.data[rows], nodes.pods_count.data[rows] + changed.more_pods()
    else:
        allocatable = nodes.allocatable(resource)[rows]
        requested = nodes.requested(resource, rows) + changed.more(resource)
    amounts = requested if item.path[0] == "requested" else allocatable - requested
    values = np.asarray(amounts, np.float64)
    return values / MILLIS if item.key == "cpu" else values


def _amount(cluster: Cluster, side: str, resource: str, rows: Rows) -> NDArray[np.float64]:
    amounts: NDArray[np.int64]
    if side == "allocatable":
        amounts = _allocatable(cluster.nodes, resource, rows)
    elif side == "requested":
        amounts = _requested(cluster.nodes, resource, rows)
    else:
        amounts = _allocatable(cluster.nodes, resource, rows) - _requested(cluster.nodes, resource, rows)
    return np.asarray(amounts, np.float64)


def _allocatable(nodes: NodeTable, resource: str, rows: Rows) -> NDArray[np.int64]:
    return (nodes.pods_allowed.data if resource == "pods" else nodes.allocatable(resource))[rows]


def _requested(nodes: NodeTable, resource: str, rows: Rows) -> NDArray[np.int64]:
    return nodes.pods_count.data[rows] if resource == "pods" else nodes.requested(resource, rows)


def _by_key(cluster: Cluster, item: Input, rows: Rows) -> NDArray[np.float64]:
    """Return amounts of the resource that an input names in brackets, as plain numbers; cpu is in cores."""
    amounts = _amount(cluster, item.path[0], item.key or "", rows)
    return amounts / MILLIS if item.key == "cpu" else amounts


def _has_taint(nodes: NodeTable, wanted: Callable[[Taint], bool]) -> NDArray[np.bool_]:
    held = [any(map(wanted, taints or ())) for taints in nodes.taint_sets]
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


def _text(kind: str) -> Callable[[Cluster, str], NDArray[Any]]:
    return lambda cluster, key: cluster.nodes.text(NodeText(kind, key))


_COLUMNS: dict[tuple[str, ...], Callable[[Cluster, str], NDArray[Any]]] = {
    ("name",): lambda cluster, _: cluster.nodes.name.data,
    ("ready",): lambda cluster, _: cluster.nodes.ready.data,
    ("cordoned",): lambda cluster, _: cluster.nodes.unschedulable.data,
    ("age",): lambda cluster, _: cluster.ages.held().data,
    ("labels",): lambda cluster, key: cluster.nodes.labels(key),
    ("annotations",): lambda cluster, key: cluster.nodes.annotations(key),
    ("taints", "has"): lambda cluster, key: _has_taint(cluster.nodes, lambda taint: taint.key == key),
    ("taints", "has_effect"): lambda cluster, key: _has_taint(cluster.nodes, lambda taint: taint.effect == key),
    ("taints", "value"): _text("taint value"),
    ("taints", "effect"): _text("taint effect"),
    **{(name,): _label(key) for name, key in WELL_KNOWN_LABELS.items()},
    **{(name,): _text(name) for name in ("conditions", "addresses", *NODE_INFO)},
}


class PodInputs:
    """The values of a scheduled pod's inputs, each computed once; also without a pod, for rules that read no pod."""

    __slots__ = ("__weakref__", "_age", "_amounts", "_cluster", "_known", "found", "given", "scalars")

    def __init__(self, pod: Pod | None, cluster: Cluster) -> None:
        self.given = pod
        """The scheduled pod; None for rules that do not read the pod."""
        self._cluster = cluster
        self._age = _age(pod, cluster)
        self._amounts: dict[str, int] | None = None
        self._known: dict[Input, Scalar] = {}
        self.scalars: dict[Any, Any] = {}
        """Values of expressions that only the pod decides, which every evaluation for the pod starts with."""
        self.found: WeakValueDictionary[Hashable, Any] = WeakValueDictionary()
        """Pod counters, aggregates and shared values of expressions, cached while they are referenced elsewhere."""

    @property
    def pod(self) -> Pod:
        """The scheduled pod; raises an error if the rules are evaluated without a pod.

        Raises:
            ValueError: there is no pod.
        """
        return needed(self.given)

    def value(self, item: Input) -> Scalar:
        """Return the value of a `pod.` or `cluster.` input."""
        if (item.root, item.path[0]) in VOLATILE:
            if item.root != "cluster":
                return self._find(item)
            return float(self._cluster.nodes.count if item.path[0] == "nodes" else len(self._cluster.pods))
        known = self._known.get(item, self)
        if isinstance(known, PodInputs):
            known = self._known[item] = self._find(item)
        return known

    def key(self, inputs: Iterable[Input]) -> Hashable:
        """Return a key for the inputs that depend on the pod: pods with equal keys have equal values."""
        return tuple(self._part(item) for item in inputs if reads_pod(item))

    def _part(self, item: Input) -> Hashable:
        if reads_group(item):
            return group_version(self.pod, self._cluster)
        if item.path[0] in {"cached_image_bytes", "image_bytes"}:
            return pod_images(self.pod)
        if item.key != ANY_KEY:
            return self.value(item)
        if item.path[0] in _WHOLE:
            return _WHOLE[item.path[0]](self.pod)
        return tuple(sorted(_MAPS[item.path[0]](self.pod, self._cluster).items()))

    def _find(self, item: Input) -> Scalar:
        name = item.path[0]
        if item.root == "group":
            return group_value(self.pod, item, self._cluster)
        if name == "age":
            return self._age
        if name != "requests":
            return _value(self.pod, item, self._cluster)
        if self._amounts is None:
            self._amounts = incoming_requests(self.pod).by_name
        return amount(self._amounts, item)


def _age(pod: Pod | None, cluster: Cluster) -> float:
    created = seconds_of(pod.metadata.creation_timestamp) if pod is not None else None
    return 0.0 if created is None else age(created, cluster.time.seconds)


def peer_value(placed: PlacedPod, item: Input, cluster: Cluster) -> Scalar:
    """Return the value of a `peer.` or `victim.` input of a placed pod."""
    if item.path[0] == "requests":
        return amount({"pods": 1, **dict(placed.pod_resources.amounts)}, item)
    if item.path[0] == "group":
        return group_value(placed.pod, Input("group", item.path[1:], item.key), cluster)
    return _value(placed.pod, item, cluster)


def _value(pod: Pod, item: Input, cluster: Cluster) -> Scalar:
    name = item.path[0]
    if name in _MAPS:
        return _MAPS[name](pod, cluster).get(item.key or "")
    if name in _CALLED:
        return _CALLED[name](pod, item)
    if name == "storage_classes":
        return _storage_classes(pod, cluster)
    if name == "age":
        created = seconds_of(pod.metadata.creation_timestamp)
        return math.nan if created is None else age(created, cluster.time.seconds)
    if name == "image_bytes":
        return float(sum(cluster.images.total(image) or 0 for image in pod_images(pod)))
    return _FIELDS[name](pod)


def beyond_class(inputs: Iterable[Input]) -> tuple[tuple[str, str | None], ...]:
    """Return the pod fields, with keys, that inputs read although equal pods (one pod class) may differ in them."""
    beyond = {(item.path[0], item.key) for item in inputs if item.root == "pod" and item.path[0] in BEYOND_CLASS}
    return tuple(sorted(beyond, key=str))


def value_beyond_class(pod: Pod, name: str, key: str | None, cluster: Cluster) -> Hashable:
    """Return a pod's value of a field in which equal pods (one pod class) may differ."""
    if name == "storage_classes":
        return _storage_classes(pod, cluster)
    if name != "annotations":
        return _FIELDS[name](pod)
    if key == ANY_KEY:
        return tuple(sorted(pod.metadata.annotations.items()))
    return pod.metadata.annotations.get(key or "")


def _controller(pod: Pod) -> tuple[str | None, str | None]:
    """Return the kind and the name of a pod's controller."""
    return next(((owner.kind, owner.name) for owner in pod.metadata.owner_references if owner.controller), (None, None))


def _limit(pod: Pod, item: Input) -> float | None:
    """Return a pod's limit of a resource: cpu is in millicores, or in cores if the input has a key."""
    resource = resource_of(item)
    found = pod_limits(pod).get(resource)
    if found is None:
        return None
    amount = float(found.scaled(-3 if resource == "cpu" else 0))
    return amount / MILLIS if item.key == "cpu" else amount


def _toleration(pod: Pod, item: Input) -> Scalar:
    """Return the value of an input that reads the pod's first toleration of a key."""
    found = next((one for one in pod.spec.tolerations if one.key == item.key), None)
    if item.path[1] == "has":
        return found is not None
    return None if found is None else found.value if item.path[1] == "value" else found.effect


def _claims(pod: Pod) -> tuple[str, ...]:
    names = (claim_name(pod, volume) for volume in pod.spec.volumes)
    return tuple(dict.fromkeys(name for name in names if name))


def _storage_classes(pod: Pod, cluster: Cluster) -> tuple[str, ...]:
    """Return the StorageClasses of a pod's claims, without unknown claims and claims without a class."""
    claims = (cluster.storage.claims.get(f"{pod.metadata.namespace}/{name}") for name in _claims(pod))
    names = (claim.spec.storage_class_name for claim in claims if claim is not None)
    return tuple(dict.fromkeys(name for name in names if name))


_CALLED: dict[str, Callable[[Pod, Input], Scalar]] = {"limits": _limit, "tolerations": _toleration}
"""For each field of `pod.` that has a part or a key, the function that reads the part or key."""
_WHOLE: dict[str, Callable[[Pod], Hashable]] = {
    "requests": lambda pod: tuple(sorted(incoming_requests(pod).by_name.items())),
    "limits": lambda pod: tuple(sorted((name, amount.scaled(-3)) for name, amount in pod_limits(pod).items())),
    "tolerations": lambda pod: tuple(pod.spec.tolerations),
}
"""For each field of `pod.` with a computed key, the function that returns the whole field."""
_MAPS: dict[str, Callable[[Pod, Cluster], dict[str, str]]] = {
    "labels": lambda pod, _: pod.metadata.labels,
    "annotations": lambda pod, _: pod.metadata.annotations,
    "namespace_labels": lambda pod, cluster: dict(cluster.namespaces.get(pod.metadata.namespace, {})),
}
_FIELDS: dict[str, Callable[[Pod], Scalar]] = {
    "name": lambda pod: pod.metadata.name,
    "namespace": lambda pod: pod.metadata.namespace,
    "qos": qos_class,
    "service_account": lambda pod: pod.spec.service_account_name or "default",
    "priority": lambda pod: float(pod_priority(pod)),
    "priority_class": lambda pod: pod.spec.priority_class_name or None,
    "containers": lambda pod: float(len(pod.spec.containers)),
    "images": lambda pod: tuple(dict.fromkeys(pod_images(pod))),
    "claims": _claims,
    "phase": lambda pod: pod.status.phase or "Pending",
    "owner_kind": lambda pod: _controller(pod)[0],
    "owner_name": lambda pod: _controller(pod)[1],
}
