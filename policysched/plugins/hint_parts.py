"""Helpers of queueing hints: versions of a changed node or pod, and whether a change concerns the waiting pod.

Pods are compared by UID (name without a UID), because an update contains another version of the same pod.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable

from policysched.framework import Change, Cluster
from policysched.model.objects import Node, Pod
from policysched.state.placed.pods import pod_id
from policysched.state.placed.selector_index import index_keys_met


def nodes_of(change: Change) -> tuple[Node | None, Node | None]:
    """Return the old and the new version of the node in a change; None if the node is added or deleted."""
    old, new = change.old, change.new
    return old if isinstance(old, Node) else None, new if isinstance(new, Node) else None


def pods_of(change: Change) -> tuple[Pod | None, Pod | None]:
    """Return the old and the new version of the pod in a change; None if the pod is added or deleted."""
    old, new = change.old, change.new
    return old if isinstance(old, Pod) else None, new if isinstance(new, Pod) else None


def index_keys_of_change(change: Change, filed: Collection[Hashable]) -> set[Hashable]:
    """Return those keys of an index of waiting pods that a changed pod matches in its old or new version."""
    pods = [one.metadata for one in pods_of(change) if one is not None]
    return {key for one in pods for key in index_keys_met(one.namespace, one.labels, filed)}


def updates_itself(pod: Pod, change: Change, cluster: Cluster | None = None) -> bool:  # noqa: ARG001 - may be a hint
    """Return whether a change is an update of the waiting pod itself."""
    new = pods_of(change)[1]
    return new is not None and pod_id(new) == pod_id(pod)


def has_place(pod: Pod) -> bool:
    """Return whether a pod is on a node or is nominated to a node."""
    return bool(pod.spec.node_name or pod.status.nominated_node_name)
