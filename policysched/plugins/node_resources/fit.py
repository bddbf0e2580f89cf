"""NodeResourcesFit: what a pod requests must be free on its node; how full that leaves the node makes its score.

Knows amounts by resource name; what is short on which row, and how a reason code says so, is in `resource_shortages`.

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
    ChangedRow,
    Cluster,
    Code,
    Codes,
    Hint,
    Resource,
    Rows,
    Scores,
    Status,
)
from policysched.model.objects import Pod
from policysched.model.requests import incoming_requests
from policysched.model.selection.names import is_extended_resource_name
from policysched.plugins.helper.bases import FinalScores
from policysched.plugins.node_resources.allocation import (
    CPU_AND_MEMORY,
    OnRow,
    ResourceWeight,
    SharedScores,
    Strategy,
    prepare_allocation,
)
from policysched.plugins.node_resources.hints import by_name, device_class_helps, node_helps, pod_helps
from policysched.plugins.node_resources.kept import Kept, Shared
from policysched.plugins.node_resources.shortages import Requested, Shortage, requested
from policysched.plugins.node_resources.strategies import least_allocated, least_allocated_on_row
from policysched.state.memory import part_of

ON_ROW: Final[dict[Strategy, OnRow]] = {least_allocated: least_allocated_on_row}
"""The strategies that score one row without arrays."""


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Fitting:
    """Where a pod fits."""

    requested: Requested
    kept: Kept

    @property
    def nbytes(self) -> int:
        """The memory that it takes. Units: bytes."""
        return self.requested.nbytes + part_of(self.kept)


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
        self._verdicts: Shared[Fitting] = Shared()
        self._scores = SharedScores(strategy, ON_ROW.get(strategy))
        self._ignored = ignored
        self._ignored_groups = ignored_groups

    def prepare_filter(self, pod: Pod, cluster: Cluster) -> Any:
        """List what the pod requests."""
        requests = by_name(incoming_requests(pod))
        wanted = {name: amount for name, amount in requests.items() if amount > 0 and not self._ignores(name)}
        delegated = frozenset(cluster.mapped_resources.keys() & wanted.keys())
        asked = requested(cluster.nodes, wanted, delegated)
        return self._verdicts.of(cluster, asked.key, lambda: Fitting(asked, asked.keep(cluster)))

    def filter(self, state: Fitting, rows: Rows) -> Codes:
        """Reject rows where a resource or the number of pods is short."""
        return state.kept.of(rows)

    def filter_changed(self, state: Fitting, changed: ChangedRow) -> Status | None:
        """Tell what would be short."""
        short = state.requested.on_row(changed.row, changed.requested, changed.pods_count)
        return self._status(state, short) if short.pods or short.resources else None

    def reason(self, state: Fitting, code: int) -> Status:
        """List everything that is short."""
        return self._status(state, state.requested.shortage(code))

    @staticmethod
    def _status(state: Fitting, short: Shortage) -> Status:
        reasons = ["Too many pods"] if short.pods else []
        reasons += [f"Insufficient {state.requested.resources[position]}" for position in short.resources]
        kind = Code.UNSCHEDULABLE_AND_UNRESOLVABLE if short.unresolvable else Code.UNSCHEDULABLE
        return Status(kind, tuple(reasons))

    def prepare_score(self, pod: Pod, cluster: Cluster) -> Any:
        """Work out the pod's amounts of the scored resources."""
        return self._scores.of(prepare_allocation(pod, cluster, self._resources, nonzero=True), cluster)

    score_alone = prepare_score

    def stays_in_range(self, state: Kept) -> bool:
        """Tell whether all amounts that were looked at are ordinary."""
        return state.narrow

    def score(self, state: Kept, rows: Rows) -> Scores:
        """Score rows by how full they would be."""
        return state.of(rows).astype(np.int64)

    def generation(self, cluster: Cluster) -> Hashable:
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
        if not (self._ignored or self._ignored_groups) or not is_extended_resource_name(resource):
            return False
        return resource in self._ignored or resource.partition("/")[0] in self._ignored_groups
