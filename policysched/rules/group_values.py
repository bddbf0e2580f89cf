"""Values of the group to which the scheduled pod belongs: inputs `group.*` and `node.group_members`.

The cluster's pod groups have them; without the feature gate GenericWorkload no pod has a group. Members that were
assumed in the cycle of the group have a node.

Shapes: R rows.
Missing: None; the sizes and requests of a pod without a group are 0.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from policysched.framework import Cluster, Rows
from policysched.language.ir.graph import Input
from policysched.model.objects import Pod
from policysched.rules.amounts import MILLIS, amount, resource_of
from policysched.state.placed.pods import PlacedPod, pod_id
from policysched.state.pod_groups import GroupState, group_key

PODS_PER_ROW: Final = 32
"""Number of group members that take as long to count as the pods of one node."""
NO_GROUP: Final = GroupState("")


def group_of(pod: Pod, cluster: Cluster) -> GroupState:
    """Return the pod group to which a pod belongs; `NO_GROUP` if it belongs to none."""
    return NO_GROUP if cluster.pod_groups is None else cluster.pod_groups.of_pod(pod) or NO_GROUP


def group_version(pod: Pod, cluster: Cluster) -> Hashable:
    """Return a value that changes with all `group.*` inputs of a pod, except if members are placed."""
    state = group_of(pod, cluster)
    return None if state is NO_GROUP else (state.key, state.version)


def group_value(pod: Pod, item: Input, cluster: Cluster) -> str | float | None:
    """Return the value of a `group.` input for a pod."""
    state = group_of(pod, cluster)
    if item.path[0] == "requests":
        return amount(state.requests, item)
    return _FIELDS[item.path[0]](state, item.key or "")


def _label(state: GroupState, key: str) -> str | None:
    return None if state.group is None else state.group.metadata.labels.get(key)


def _min_count(state: GroupState, _: str) -> float | None:
    gang = None if state.group is None else state.group.spec.scheduling_policy.gang
    return None if gang is None else float(gang.min_count)


_FIELDS: Final[Mapping[str, Callable[[GroupState, str], str | float | None]]] = {
    "name": lambda state, _: state.key.partition("/")[2] or None,
    "labels": _label,
    "min_count": _min_count,
    "size": lambda state, _: float(state.count),
    "placed": lambda state, _: float(state.scheduled_count),
}


def members_on(pod: Pod, cluster: Cluster, rows: Rows) -> NDArray[np.float64]:
    """Return how many members of the pod's group are on each of the given nodes.

    Shapes: (R,).
    Cost: O(members), or O(pods of the rows) if that is less.
    """
    state, pods = group_of(pod, cluster), cluster.pods
    if isinstance(rows, np.ndarray) and rows.size * PODS_PER_ROW < state.scheduled_count:
        found = [sum(group_key(one.pod) == state.key for one in pods.on_row(row)) for row in rows.tolist()]
        return np.array(found, np.float64)
    members = (pods.by_id.get(pod_id(one)) for one in state.scheduled)
    counts = np.zeros(cluster.nodes.columns.capacity, np.float64)
    np.add.at(counts, [placed.row for placed in members if placed is not None], 1.0)
    return counts[rows]


class MemberWeights(NamedTuple):
    """By how much each pod that a simulation adds or removes changes an input: 0 for pods outside of the group."""

    key: Hashable
    """The key that identifies these weights in caches."""
    weigh: Callable[[PlacedPod], int]
    divisor: float
    """The number by which sums of these weights are divided to get the unit of the input."""


def member_weights(item: Input, pod: Pod | None, cluster: Cluster) -> MemberWeights | None:
    """Return by how much each placed pod changes an input; None if the input does not depend on the pod's group."""
    if pod is None or (item.root, item.path[0]) not in _CHANGED_BY_MEMBERS:
        return None
    state = group_of(pod, cluster)
    if state is NO_GROUP:
        return None
    resource = resource_of(item) if item.path[0] == "requests" else ""

    def weigh(placed: PlacedPod) -> int:
        if group_key(placed.pod) != state.key:
            return 0
        return -({"pods": 1} | dict(placed.pod_resources.amounts)).get(resource, 0) if resource else 1

    return MemberWeights(("group", state.key, resource), weigh, MILLIS if item.key == "cpu" else 1)


_CHANGED_BY_MEMBERS: Final = frozenset((("node", "group_members"), ("group", "placed"), ("group", "requests")))
