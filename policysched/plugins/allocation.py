"""What scores of resource allocation start from: capacities, what is taken, and what the pod adds.

Knows columns of amounts. Two readings of "taken" exist in kube-scheduler: with what every pod weighs at least
(LeastAllocated), or as really requested (BalancedAllocation); the state remembers which.

Source: plugins/noderesources/resource_allocation.go, v1.36.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policysched.framework import Cluster, Rows, Scores
from policysched.model.names import is_scalar_resource_name
from policysched.model.objects import Pod
from policysched.model.requests import incoming_amount
from policysched.state.nodes import NodeTable

Amounts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ResourceWeight:
    """A resource that a score looks at."""

    name: str
    weight: int = 1


CPU_AND_MEMORY = (ResourceWeight("cpu"), ResourceWeight("memory"))


@dataclass(frozen=True, slots=True)
class WantedAmount:
    """What the pod adds of one scored resource."""

    name: str
    weight: int
    amount: int


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the pod adds of the scored resources that matter to it."""

    nodes: NodeTable
    amounts: tuple[WantedAmount, ...]
    nonzero: bool

    def capacity(self, resource: str, rows: Rows) -> Amounts:
        """Give what rows have, 0 where they do not know the resource."""
        return self.nodes.allocatable(resource)[rows]

    def taken(self, resource: str, rows: Rows) -> Amounts:
        """Give what is taken on rows without the pod."""
        if self.nonzero and resource == "cpu":
            return self.nodes.nonzero_cpu.data[rows]
        if self.nonzero and resource == "memory":
            return self.nodes.nonzero_memory.data[rows]
        return self.nodes.requested(resource)[rows]


Strategy = Callable[[Wanted, Rows], Scores]
"""How rows are scored by what is wanted, 0 to 100."""


def prepare_allocation(pod: Pod, cluster: Cluster, resources: Sequence[ResourceWeight], *, nonzero: bool) -> Wanted:
    """Work out the pod's amounts; extended resources that it does not request are left out."""
    amounts = tuple(
        WantedAmount(one.name, one.weight, incoming_amount(pod, one.name, nonzero=nonzero)) for one in resources
    )
    kept = tuple(one for one in amounts if one.amount or not is_scalar_resource_name(one.name))
    return Wanted(cluster.nodes, kept, nonzero)
