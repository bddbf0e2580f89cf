"""What the plugins' queueing hints have in common: taking a change apart.

It knows changes and objects, no plugin. Pods are compared by identity (UID, else name), because an update carries
another version of the same pod.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable

from policysched.framework import Change
from policysched.model.objects import Node, Pod
from policysched.state.placed.pods import pod_id
from policysched.state.placed.selector_index import index_keys_met


def nodes_of(change: Change) -> tuple[Node | None, Node | None]:
    """Give the old and the new version of a node."""
    old, new = change.old, change.new
    return old if isinstance(old, Node) else None, new if isinstance(new, Node) else None


def pods_of(change: Change) -> tuple[Pod | None, Pod | None]:
    """Give the old and the new version of a pod."""
    old, new = change.old, change.new
    return old if isinstance(old, Pod) else None, new if isinstance(new, Pod) else None


def index_keys_of_change(change: Change, filed: Collection[Hashable]) -> set[Hashable]:
    """Find the index keys, of those under which anything is filed, of a pod that changed, before and after."""
    pods = [one.metadata for one in pods_of(change) if one is not None]
    return {index_key for one in pods for index_key in index_keys_met(one.namespace, one.labels, filed)}


def updates_itself(pod: Pod, change: Change) -> bool:
    """Tell whether the change is an update of the pod that waits."""
    new = pods_of(change)[1]
    return new is not None and pod_id(new) == pod_id(pod)


def leaves_a_place(pod: Pod) -> bool:
    """Tell whether a deleted pod had a node, or one kept for it."""
    return bool(pod.spec.node_name or pod.status.nominated_node_name)
