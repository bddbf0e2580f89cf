"""What rules read of pods: of the one that is decided about one value for all nodes, and of those placed on nodes.

`PodInputs` stand for a pod class: what siblings may differ in is in the class's key where a rule reads it. The pod's
age is that of the time when they were made, because the key holds what rules make of it then.

Units: cpu in millicores, bytes and counts as they are. Absent labels, annotations, class and owner are None, absent
resources 0.
Source: docs/language.md#names.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any
from weakref import WeakValueDictionary

from policysched.language.ir.graph import ANY_KEY, Input
from policysched.model.objects import Pod
from policysched.model.objects.meta import seconds_of
from policysched.model.pod_requirements import pod_images, pod_priority, qos_class
from policysched.model.requests import incoming_requests
from policysched.rules.compile.graphs import VOLATILE
from policysched.rules.inputs.nodes import MILLIS, RESOURCE_NAMES, needed
from policysched.state.cluster import Cluster
from policysched.state.placed.pods import PlacedPod
from policysched.state.tables.ages import age

Scalar = str | float | bool | None

BEYOND_CLASS = frozenset(("name", "annotations", "owner_kind", "owner_name", "qos"))
"""The fields of `pod.` that a pod class does not hold by itself."""
BEYOND_SIGNATURE = frozenset(("name", "image_bytes"))
"""The fields of `peer.` that placed pods of one kind may differ in."""


class PodInputs:
    """A pod's values, each found once; without a pod, for rules that read none of it."""

    __slots__ = ("__weakref__", "_age", "_amounts", "_cluster", "_known", "found", "given", "scalars")

    def __init__(self, pod: Pod | None, cluster: Cluster) -> None:
        self.given = pod
        """The pod, None for rules that read nothing of it."""
        self._cluster = cluster
        self._age = _age(pod, cluster)
        self._amounts: dict[str, int] | None = None
        self._known: dict[Input, Scalar] = {}
        self.scalars: dict[Any, Any] = {}
        """What programs made of the pod and the time alone, by graph node; frames begin with it."""
        self.found: WeakValueDictionary[Hashable, Any] = WeakValueDictionary()
        """The counters and aggregates of graph nodes, as long as somebody holds them."""

    @property
    def pod(self) -> Pod:
        """The pod.

        Raises:
            ValueError: there is none.
        """
        return needed(self.given)

    def value(self, item: Input) -> Scalar:
        """Return a `pod.` or `cluster.` input."""
        if (item.root, item.path[0]) in VOLATILE:
            if item.root != "cluster":
                return self._find(item)
            return float(self._cluster.nodes.count if item.path[0] == "nodes" else len(self._cluster.pods))
        known = self._known.get(item, self)
        if isinstance(known, PodInputs):
            known = self._known[item] = self._find(item)
        return known

    def key(self, inputs: Iterable[Input]) -> Hashable:
        """Return the pod's part of some inputs: inputs with equal keys are the same to who reads only them."""
        return tuple(self._part(item) for item in inputs if item.root == "pod" or item.path[0] == "cached_image_bytes")

    def _part(self, item: Input) -> Hashable:
        if item.path[0] in {"cached_image_bytes", "image_bytes"}:
            return pod_images(self.pod)
        if item.key != ANY_KEY:
            return self.value(item)
        if item.path[0] == "requests":
            return tuple(sorted(requested(self.pod).items()))
        return tuple(sorted(_MAPS[item.path[0]](self.pod, self._cluster).items()))

    def _find(self, item: Input) -> Scalar:
        name = item.path[0]
        if name == "age":
            return self._age
        if name != "requests":
            return _value(self.pod, item, self._cluster)
        if self._amounts is None:
            self._amounts = requested(self.pod)
        return amount(self._amounts, item)


def _age(pod: Pod | None, cluster: Cluster) -> float:
    created = seconds_of(pod.metadata.creation_timestamp) if pod is not None else None
    return 0.0 if created is None else age(created, cluster.time.seconds)


def peer_value(placed: PlacedPod, item: Input, cluster: Cluster) -> Scalar:
    """Return the value of a `peer.` input of a placed pod."""
    if item.path[0] == "requests":
        return amount({"pods": 1, **dict(placed.pod_resources.amounts)}, item)
    return _value(placed.pod, item, cluster)


def _value(pod: Pod, item: Input, cluster: Cluster) -> Scalar:
    name = item.path[0]
    if name in _MAPS:
        return _MAPS[name](pod, cluster).get(item.key or "")
    if name == "image_bytes":
        return float(sum(cluster.images.total(image) or 0 for image in pod_images(pod)))
    return _FIELDS[name](pod)


def class_values(inputs: Iterable[Input]) -> Callable[[Pod], Hashable] | None:
    """Return a function from a pod to the values of inputs that its class does not hold; None if there are none."""
    beyond = sorted(
        {(item.path[0], item.key) for item in inputs if item.root == "pod" and item.path[0] in BEYOND_CLASS},
        key=str,
    )
    if not beyond:
        return None

    def value(pod: Pod, name: str, key: str | None) -> Hashable:
        if name != "annotations":
            return _FIELDS[name](pod)
        if key == ANY_KEY:
            return tuple(sorted(pod.metadata.annotations.items()))
        return pod.metadata.annotations.get(key or "")

    return lambda pod: tuple(value(pod, name, key) for name, key in beyond)


def requested(pod: Pod) -> dict[str, int]:
    """Return what a pod requests by resource. Units: cpu in millicores, the others whole."""
    requests = incoming_requests(pod)
    return {
        "cpu": requests.cpu_millis,
        "memory": requests.memory_bytes,
        "ephemeral-storage": requests.ephemeral_bytes,
        "pods": 1,
        **dict(requests.scalars),
    }


def amount(amounts: Mapping[str, int], item: Input) -> float:
    """Return the amount of the resource that an input names: cpu in millicores, in cores where the key was computed."""
    if item.key is None:
        return float(amounts.get(RESOURCE_NAMES.get(item.path[1], item.path[1]), 0))
    found = float(amounts.get(item.key, 0))
    return found / MILLIS if item.key == "cpu" else found


def _controller(pod: Pod) -> tuple[str | None, str | None]:
    """Return the kind and the name of a pod's controller."""
    return next(((owner.kind, owner.name) for owner in pod.metadata.owner_references if owner.controller), (None, None))


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
    "owner_kind": lambda pod: _controller(pod)[0],
    "owner_name": lambda pod: _controller(pod)[1],
}
