"""Nodes that would lack resources if all pods of a plan were placed on the nodes found for each pod alone."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from policysched.app.amounts import quantity
from policysched.app.plan.reading import ReadPod
from policysched.app.plan.results import Excess, PodEffect
from policysched.state.cluster import Cluster

PODS: Final = "pods"


def excesses(
    effects: Iterable[PodEffect], cluster: Cluster, pods: Mapping[str, ReadPod]
) -> dict[str, tuple[Excess, ...]]:
    """Return, by node, the resources of which affected pods would request more than the node has.

    Args:
        effects: Effects of the change; running pods are on their nodes in the cluster, others where they land.
        cluster: The cluster with the change.
        pods: Its pods, by `namespace/name`.
    """
    requests: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for one in effects:
        if one.runs and one.node != one.after:
            amounts = {**dict(pods[one.pod].resources.amounts), PODS: 1}
            if one.after:
                requests[one.after].update(amounts)
            requests[one.node].subtract(amounts)
    found = {name: tuple(_excesses(cluster, name, more)) for name, more in requests.items()}
    return {name: over for name, over in found.items() if over}


def _excesses(cluster: Cluster, name: str, more: Mapping[str, int]) -> Iterable[Excess]:
    """Yield the resources of a node for which existing and additional requests exceed the allocatable amount."""
    nodes = cluster.nodes
    row = nodes.row_of[name]
    for resource in sorted(more):
        if more[resource] <= 0:
            continue
        if resource == PODS:
            there, has = int(nodes.pods_count.data[row]), int(nodes.pods_allowed.data[row])
        else:
            place = nodes.amounts.place(resource)
            there = nodes.amounts.requested_on(row, resource)
            has = int(nodes.amounts.allocatable[place, row]) if place else 0
        if there + more[resource] > has:
            yield Excess(resource, quantity(resource, there + more[resource]), quantity(resource, has))
