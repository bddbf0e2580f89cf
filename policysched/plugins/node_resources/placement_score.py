"""The score of NodeResourcesFit for a pod group's placements: the used percentage of each placement's nodes.

Source: plugins/noderesources/resource_allocation.go (scorePlacement), most_allocated.go, v1.37 and v1.38.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from policysched.framework import MAX_NODE_SCORE, Cluster, Scores
from policysched.framework.pod_groups import FeasiblePlacement
from policysched.model.objects import Pod
from policysched.model.requests import incoming_nonzero
from policysched.model.selection.name_validation import is_scalar_resource_name
from policysched.plugins.node_resources.allocation import ResourceWeight


def placement_scores(
    feasible: Sequence[FeasiblePlacement], cluster: Cluster, resources: Sequence[ResourceWeight], *, pod_level: bool
) -> Scores:
    """Return for each placement the weighted mean of the used percentages of the resources, with all members placed.

    Args:
        feasible: The placements.
        cluster: The cluster, without the members.
        resources: The scored resources.
        pod_level: Whether pod-level requests and a resize count.

    Shapes: P placements -> (P,).
    Missing: resources that no node of a placement has, and extended resources that no member requests, are ignored; a
        placement without any scores 0.
    """
    names, in_use = tuple(one.name for one in resources), cluster.amounts_in_use if pod_level else None
    known: dict[int, list[int]] = {}

    def amounts(pod: Pod) -> list[int]:
        found = known.get(id(pod))
        if found is None:
            found = known[id(pod)] = incoming_nonzero(pod, names, in_use)
        return found

    tables = cluster.nodes.amounts
    places = tables.places(names)
    found = []
    for one in feasible:
        wanted = [sum(column) for column in zip(*map(amounts, one.pods), strict=True)] or [0] * len(names)
        capacity = tables.allocatable[places][:, one.placement.rows]
        used = np.where(capacity != 0, tables.counted[places][:, one.placement.rows], 0)
        found.append(_mean_percentage(resources, wanted, capacity.sum(axis=1).tolist(), used.sum(axis=1).tolist()))
    return np.array(found, np.int64)


def _mean_percentage(
    resources: Sequence[ResourceWeight], wanted: Sequence[int], capacity: Sequence[int], used: Sequence[int]
) -> int:
    """Return the weighted mean of the used percentages of resources, after pods with the wanted amounts are added."""
    total = weight = 0
    for resource, asked, have, taken in zip(resources, wanted, capacity, used, strict=True):
        if not have or (not asked and is_scalar_resource_name(resource.name)):
            continue
        total += min(asked + taken, have) * MAX_NODE_SCORE // have * resource.weight
        weight += resource.weight
    return total // max(weight, 1)
