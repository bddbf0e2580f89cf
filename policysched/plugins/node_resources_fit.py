"""NodeResourcesFit: what a pod requests must be free on its node; how full that leaves the node makes its score.

Knows amounts by resource name. A reason code is a set of bits: one for the number of pods, one for each resource
that the pod requests, and one that says that the pod would not fit on the empty node either.

Source: plugins/noderesources/fit.go, v1.36.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from policysched.framework import (
    Action,
    Aspect,
    Cluster,
    Code,
    Codes,
    Hint,
    Mask,
    Resource,
    Rows,
    Scores,
    Status,
    unresolvable,
)
from policysched.model.names import is_extended_resource_name
from policysched.model.objects import Pod
from policysched.model.requests import incoming_requests
from policysched.plugins.allocation import (
    CPU_AND_MEMORY,
    WIDEST,
    OnRow,
    ResourceWeight,
    SharedScores,
    Strategy,
    prepare_allocation,
)
from policysched.plugins.bases import FinalScores
from policysched.plugins.kept import Kept, Shared
from policysched.plugins.least_allocated import least_allocated, least_allocated_on_row
from policysched.plugins.resource_hints import device_class_helps, node_helps, pod_helps
from policysched.plugins.resource_names import by_name
from policysched.state.amounts import Amounts, at
from policysched.state.nodes import NodeTable

PODS, UNRESOLVABLE = 1, 1 << 30
MOST_RESOURCES = 29
"""How many resources a reason code has bits for."""
ON_ROW: Final[dict[Strategy, OnRow]] = {least_allocated: least_allocated_on_row}
"""The strategies that score one row without arrays."""


@dataclass(frozen=True, slots=True, eq=False)
class Requested:
    """All that the pod requests.

    Delegated resources have a device class: nodes that do not have the resource themselves are not asked for it.
    Shapes: k resources; `amounts` and `delegated` are (k, 1).
    """

    nodes: NodeTable
    resources: tuple[str, ...]
    amounts: Amounts
    delegated: Mask | None
    """None where no resource is."""

    def codes(self, rows: Rows) -> Codes:
        """Give the reason codes of rows.

        Shapes: (R,).
        """
        nodes, tables = self.nodes, self.nodes.amounts
        codes = (nodes.pods_count.data[rows] >= nodes.pods_allowed.data[rows]).astype(np.int32)
        places = tables.places(self.resources)
        allocatable = at(tables.allocatable, places, rows)
        short = self.amounts > allocatable - at(tables.requested, places, rows)
        if not np.count_nonzero(short):
            return codes
        if self.delegated is not None:
            short &= ~(self.delegated & (allocatable <= 0))
        for position, missing in enumerate(short.astype(np.int32)):
            codes |= missing << (position + 1)
        codes[(short & (self.amounts > allocatable)).any(axis=0)] |= UNRESOLVABLE
        return codes

    def code(self, row: int) -> int | None:
        """Give the code of one row, without arrays; None where 64 bits might wrap around."""
        nodes, tables = self.nodes, self.nodes.amounts
        places = tables.places(self.resources)
        have, taken = tables.allocatable[places, row].tolist(), tables.requested[places, row].tolist()
        if max((*have, *taken), default=0) > WIDEST:
            return None
        code = PODS if nodes.pods_count.data[row] >= nodes.pods_allowed.data[row] else 0
        for position, amount in enumerate(self.amounts[:, 0].tolist()):
            capacity = have[position]
            if amount > capacity - taken[position] and not self._delegates(position, capacity):
                code |= PODS << (position + 1) | (UNRESOLVABLE if amount > capacity else 0)
        return code

    def _delegates(self, position: int, capacity: int) -> bool:
        """Tell whether a resource is left to its device class on a node that has so much of it."""
        return self.delegated is not None and bool(self.delegated[position, 0]) and capacity <= 0


@dataclass(frozen=True, slots=True, eq=False)
class Fitting:
    """Where a pod fits."""

    resources: tuple[str, ...]
    kept: Kept

    @property
    def nbytes(self) -> int:
        """The memory that it takes. Units: bytes."""
        return self.kept.nbytes


class NodeResourcesFit(FinalScores):
    """The plugin.

    Args:
        resources: the resources that scores look at, with their weights.
        strategy: how rows are scored by these.
        ignored: extended resources that the filter overlooks.
        ignored_groups: prefixes (before the slash) of such resources.
    """

    name = "NodeResourcesFit"
    filter_reads = Aspect.CAPACITY | Aspect.USAGE
    score_reads = Aspect.CAPACITY | Aspect.USAGE

    def __init__(
        self,
        resources: Sequence[ResourceWeight] = CPU_AND_MEMORY,
        *,
        strategy: Strategy = least_allocated,
        ignored: frozenset[str] = frozenset(),
        ignored_groups: frozenset[str] = frozenset(),
    ) -> None:
        self._resources = tuple(resources)
        self._verdicts = Shared()
        self._scores = SharedScores(strategy, ON_ROW.get(strategy))
        self._ignored = ignored
        self._ignored_groups = ignored_groups

    def prepare_filter(self, pod: Pod, cluster: Cluster) -> Any:
        """List what the pod requests."""
        requests = by_name(incoming_requests(pod))
        wanted = {name: amount for name, amount in requests.items() if amount > 0 and not self._ignores(name)}
        if len(wanted) > MOST_RESOURCES:
            return unresolvable(f"policysched counts at most {MOST_RESOURCES} kinds of resources of one pod")
        amounts = np.array(list(wanted.values()), np.int64).reshape(-1, 1)
        delegated = np.array([[name in cluster.mapped_resources] for name in wanted], np.bool_)
        requested = Requested(cluster.nodes, tuple(wanted), amounts, delegated if delegated.any() else None)
        key = (requested.resources, amounts.tobytes(), delegated.tobytes())
        kept = self._verdicts.of(cluster, key, lambda: Kept(cluster, requested.codes, requested.code, np.int32))
        return Fitting(requested.resources, kept)

    def filter(self, state: Fitting, rows: Rows) -> Codes:
        """Reject rows where a resource or the number of pods is short."""
        return state.kept.of(rows)

    def reason(self, state: Fitting, code: int) -> Status:
        """List everything that is short."""
        reasons = ["Too many pods"] if code & PODS else []
        for position, resource in enumerate(state.resources):
            if code & PODS << (position + 1):
                reasons.append(f"Insufficient {resource}")
        kind = Code.UNSCHEDULABLE_AND_UNRESOLVABLE if code & UNRESOLVABLE else Code.UNSCHEDULABLE
        return Status(kind, tuple(reasons))

    def prepare_score(self, pod: Pod, cluster: Cluster) -> Any:
        """Work out the pod's amounts of the scored resources."""
        return self._scores.of(prepare_allocation(pod, cluster, self._resources, nonzero=True), cluster)

    score_alone = prepare_score

    def score(self, state: Kept, rows: Rows) -> Scores:
        """Score rows by how full they would be."""
        return state.of(rows).astype(np.int64)

    def epoch(self, cluster: Cluster) -> Hashable:
        """Give the resources with a device class: whether one is delegated is decided when preparing."""
        return tuple(cluster.mapped_resources)

    def events(self) -> Sequence[Hint]:
        """Freed resources help, grown and new nodes, and device classes for what is requested."""
        frees = Action.DELETE | Action.UPDATE_POD_SCALE_DOWN
        return (
            Hint(Resource.ASSIGNED_POD, frees, pod_helps),
            Hint(Resource.PENDING_POD, frees, pod_helps),
            Hint(Resource.NODE, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE, node_helps),
            Hint(Resource.DEVICE_CLASS, Action.ADD | Action.UPDATE, device_class_helps),
        )

    def _ignores(self, resource: str) -> bool:
        if not is_extended_resource_name(resource):
            return False
        return resource in self._ignored or resource.partition("/")[0] in self._ignored_groups
