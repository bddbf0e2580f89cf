"""What rules read of a pod: one value for all nodes, found by the input's name.

Units: cpu in millicores, bytes and counts as they are. Absent labels, annotations, class and owner are None, absent
resources 0.
Source: docs/language.md#names.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

from policysched.language.typed import Input
from policysched.model.images import pod_images
from policysched.model.objects import OwnerReference, Pod
from policysched.model.priority import pod_priority, qos_class
from policysched.model.requests import incoming_requests
from policysched.rules.node_inputs import MILLIS, RESOURCE_NAMES
from policysched.state.cluster import Cluster

Scalar = str | float | bool | None

BEYOND_CLASS = frozenset(("name", "annotations", "owner_kind", "owner_name", "qos"))
"""The fields of `pod.` that a pod class does not hold by itself."""


def pod_value(pod: Pod, item: Input, cluster: Cluster) -> Scalar:
    """Give the value of a `pod.` or `cluster.` input."""
    if item.root == "cluster":
        return float(cluster.nodes.count if item.path[0] == "nodes" else len(cluster.pods))
    name = item.path[0]
    if name in _MAPS:
        return _MAPS[name](pod, cluster).get(item.key or "")
    if name == "requests":
        return _requested(pod, item)
    if name == "image_bytes":
        return float(sum(cluster.images.total(image) or 0 for image in pod_images(pod)))
    return _FIELDS[name](pod)


def class_values(inputs: Iterable[Input]) -> Callable[[Pod], Hashable] | None:
    """Give a function from a pod to those values of the inputs that its class does not hold; None if there are none."""
    beyond = sorted(
        {(item.path[0], item.key) for item in inputs if item.root == "pod" and item.path[0] in BEYOND_CLASS},
        key=str,
    )
    if not beyond:
        return None

    def values(pod: Pod) -> Hashable:
        return tuple(_beyond_class(pod, name, key) for name, key in beyond)

    return values


def _beyond_class(pod: Pod, name: str, key: str | None) -> Hashable:
    if name != "annotations":
        return _FIELDS[name](pod)
    if key == "*":
        return tuple(sorted(pod.metadata.annotations.items()))
    return pod.metadata.annotations.get(key or "")


def _requested(pod: Pod, item: Input) -> float:
    requests = incoming_requests(pod)
    amounts = {
        "cpu": requests.cpu_millis,
        "memory": requests.memory_bytes,
        "ephemeral-storage": requests.ephemeral_bytes,
        "pods": 1,
        **dict(requests.scalars),
    }
    if item.key is None:
        return float(amounts[RESOURCE_NAMES.get(item.path[1], item.path[1])])
    amount = float(amounts.get(item.key, 0))
    return amount / MILLIS if item.key == "cpu" else amount


def _owner(pod: Pod) -> OwnerReference | None:
    return next((owner for owner in pod.metadata.owner_references if owner.controller), None)


def _owner_kind(pod: Pod) -> str | None:
    owner = _owner(pod)
    return owner.kind if owner else None


def _owner_name(pod: Pod) -> str | None:
    owner = _owner(pod)
    return owner.name if owner else None


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
    "owner_kind": _owner_kind,
    "owner_name": _owner_name,
}
