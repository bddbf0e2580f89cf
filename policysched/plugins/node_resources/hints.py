"""Queueing hints of NodeResourcesFit: which changes can help a pod that a node had too little for.

Knows requests of the two pods and the two versions of a node at hand, never the rest of the cluster: a hint is
cheap and may be wrong in favour of trying again.

Source: plugins/noderesources/fit.go (isSchedulableAfter…), v1.36.
"""

from __future__ import annotations

from policysched.framework import Change, Cluster
from policysched.model.objects import Node, Pod
from policysched.model.requests import Allocatable, Requests, allocatable, incoming_requests, placed_requests
from policysched.plugins.helper.hints import leaves_a_place, nodes_of, pods_of, updates_itself


def pod_helps(pod: Pod, change: Change, cluster: Cluster) -> bool:  # noqa: ARG001 - a hint's signature
    """Tell whether a pod's deletion or scaling down frees something that is requested."""
    old, new = pods_of(change)
    if new is None:
        return old is not None and leaves_a_place(old)
    if updates_itself(pod, change):
        return True
    if old is None or not new.spec.node_name:
        return False
    before, after = by_name(placed_requests(old)), by_name(placed_requests(new))
    return any(before.get(name, 0) > after.get(name, 0) for name in _requested(pod))


def node_helps(pod: Pod, change: Change, cluster: Cluster) -> bool:
    """Tell whether a node, were it empty, has room and is new or has more than before of what is requested."""
    old, new = nodes_of(change)
    if new is None or not _fits_empty(pod, new, cluster):
        return False
    return old is None or _has_more(pod, old, new, cluster)


def device_class_helps(pod: Pod, change: Change, cluster: Cluster) -> bool:  # noqa: ARG001 - a hint's signature
    """Tell whether a device class stands for something that is requested."""
    return any(name in cluster.mapped_resources for name in _requested(pod))


def _requested(pod: Pod) -> dict[str, int]:
    return {name: amount for name, amount in by_name(incoming_requests(pod)).items() if amount > 0}


def _fits_empty(pod: Pod, node: Node, cluster: Cluster) -> bool:
    room = allocatable(node)
    amounts = by_name(room)
    return room.pods >= 1 and all(
        amount <= amounts.get(name, 0) or _delegated(name, amounts, cluster) for name, amount in _requested(pod).items()
    )


def _has_more(pod: Pod, old: Node, new: Node, cluster: Cluster) -> bool:
    before, after = allocatable(old), allocatable(new)
    if after.pods > before.pods:
        return True
    had, has = by_name(before), by_name(after)
    return any(has.get(name, 0) > had.get(name, 0) or _delegated(name, has, cluster) for name in _requested(pod))


def _delegated(resource: str, amounts: dict[str, int], cluster: Cluster) -> bool:
    return resource in cluster.mapped_resources and amounts.get(resource, 0) <= 0


def by_name(amounts: Requests | Allocatable) -> dict[str, int]:
    """Give the amounts by resource name.

    Units: cpu in thousandths, the others whole.
    """
    return {
        "cpu": amounts.cpu_millis,
        "memory": amounts.memory_bytes,
        "ephemeral-storage": amounts.ephemeral_bytes,
        **dict(amounts.scalars),
    }
