"""NodeResourcesFit: rejects nodes without the requested resources, and scores nodes by their allocation.

`shortages` computes the missing resources of each row and their reason codes. Queueing hints compare the requests of
two pods, or two versions of a node, without the rest of the cluster: a hint may retry a pod in vain.

Source: plugins/noderesources/fit.go, pkg/scheduler/apis/config/v1/defaults.go,
apis/config/validation/validation_pluginargs.go, v1.36, v1.37 and v1.38.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
from msgspec.structs import force_setattr
from numpy.typing import NDArray

from policysched.framework import (
    Action,
    Aspect,
    Change,
    ChangedRow,
    ChangedRows,
    Cluster,
    Code,
    Codes,
    Hint,
    Incremental,
    Resource,
    Rows,
    ScorePlugin,
    Scores,
    SizedState,
    Status,
    WhatIfFilter,
)
from policysched.framework.pod_groups import FeasiblePlacement, PlacementScorePlugin, PodGroupContext
from policysched.model.objects import Node, Pod
from policysched.model.requests import Allocatable, Requests, allocatable, incoming_requests, placed_requests
from policysched.model.selection.name_validation import is_extended_resource_name, is_qualified_name
from policysched.plugins.arguments import Fault, Given, PluginArguments
from policysched.plugins.columns import SharedByCluster
from policysched.plugins.curves import ShapePoint, shape_faults
from policysched.plugins.hint_parts import has_place, nodes_of, pods_of, updates_itself
from policysched.plugins.node_resources.allocation import (
    CPU_AND_MEMORY,
    SCORED_BY_DEFAULT,
    OnRow,
    RequestedToCapacityRatio,
    ResourceWeight,
    ScoredResource,
    SharedScores,
    Strategy,
    least_allocated,
    least_allocated_on_row,
    most_allocated,
    prepare_allocation,
    weighted,
)
from policysched.plugins.node_resources.answer_cache import CachedAnswers
from policysched.plugins.node_resources.device_amounts import with_devices
from policysched.plugins.node_resources.placement_score import placement_scores
from policysched.plugins.node_resources.shortages import Shortage, ShortageTest, shortage_test
from policysched.state.tables.columns import RowNumbers, memory_of

NATIVE: Final = ("cpu", "memory", "ephemeral-storage")
"""The resources that every node has, such as cpu and memory."""
FREES: Final = Action.DELETE | Action.UPDATE_POD_SCALE_DOWN
RESOURCES_PER_ARRAY: Final = 32
"""Number of requested resources whose cached results use as much memory as one array over all nodes."""
ON_ROW: Final[dict[Strategy, OnRow]] = {least_allocated: least_allocated_on_row}
"""Functions that score one node without arrays, by the name of the scoring strategy; some strategies have none."""


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class FitState(SizedState):
    """The filter's state of NodeResourcesFit for a pod's requests."""

    requested: ShortageTest
    kept: CachedAnswers

    def memory(self, rows: int) -> int:
        """Estimate the memory of codes, scores and one bit per requested resource. Units: bytes."""
        return memory_of(1 + len(self.requested.resources) // RESOURCES_PER_ARRAY, rows)


def _pod_helps(pod: Pod, change: Change, cluster: Cluster) -> bool:
    """Return whether a deleted or scaled-down pod frees a resource that the waiting pod requests."""
    old, new = pods_of(change)
    if new is None:
        return old is not None and has_place(old)
    if updates_itself(pod, change):
        return True
    if old is None or not new.spec.node_name:
        return False
    before, after = (by_name(placed_requests(one, cluster.amounts_in_use)) for one in (old, new))
    return any(before.get(name, 0) > after.get(name, 0) for name in _requested(pod))


def _node_helps(pod: Pod, change: Change, cluster: Cluster) -> bool:
    """Return whether the waiting pod fits the empty node, and the node is new or has more of a requested resource."""
    old, new = nodes_of(change)
    if new is None or not _fits_empty(pod, new, cluster):
        return False
    return old is None or _has_more(pod, old, new, cluster)


def _node_helps_or_shrank(pod: Pod, change: Change, cluster: Cluster) -> bool:
    """Return whether a node change helps the pod; if its nominated node shrank, preemption can help when run again.

    Extended resources are left out, because a device plugin that restarts reports none for a moment.
    """
    old, new = nodes_of(change)
    if old is not None and new is not None and pod.status.nominated_node_name == new.metadata.name:
        has = by_name(allocatable(new))
        wanted = by_name(incoming_requests(pod))
        if any(wanted[name] > has[name] for name in NATIVE) and _fits_empty(pod, old, cluster):
            return True
    return _node_helps(pod, change, cluster)


def _device_class_helps(pod: Pod, change: Change, cluster: Cluster) -> bool:  # noqa: ARG001 - a hint's signature
    """Return whether the changed device class provides a resource that the waiting pod requests."""
    return any(name in cluster.devices.mapped_resources for name in _requested(pod))


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
    return resource in cluster.devices.mapped_resources and amounts.get(resource, 0) <= 0


def by_name(amounts: Requests | Allocatable) -> dict[str, int]:
    """Return requested or allocatable amounts by resource name.

    Units: cpu in thousandths, other resources in whole units.
    """
    return {
        "cpu": amounts.cpu_millis,
        "memory": amounts.memory_bytes,
        "ephemeral-storage": amounts.ephemeral_bytes,
        **dict(amounts.scalars),
    }


class NodeResourcesFit(
    WhatIfFilter[FitState], ScorePlugin[CachedAnswers], Incremental[CachedAnswers], PlacementScorePlugin
):
    """The NodeResourcesFit plugin: rejects nodes without room for the pod's requests, and scores their allocation.

    Args:
        resources: the scored resources with their weights.
        strategy: scores rows by these resources.
        ignored: extended resources that the filter ignores.
        ignored_groups: prefixes (before the slash) of extended resources that the filter ignores.
        scores_pod_level: whether scores count the pod-level requests and the resize of the pod.
        shrinking_wakes: whether a pod is retried if its nominated node becomes too small.
    """

    name = "NodeResourcesFit"
    filter_reads = Aspect.CAPACITY | Aspect.USAGE
    score_reads = Aspect.CAPACITY | Aspect.USAGE
    scores_alone = True

    def __init__(
        self,
        resources: Sequence[ResourceWeight] = CPU_AND_MEMORY,
        *,
        strategy: Strategy = least_allocated,
        ignored: frozenset[str] = frozenset(),
        ignored_groups: frozenset[str] = frozenset(),
        scores_pod_level: bool = False,
        shrinking_wakes: bool = False,
    ) -> None:
        node_helps = _node_helps_or_shrank if shrinking_wakes else _node_helps
        self.hints = (
            Hint(Resource.ASSIGNED_POD, FREES, _pod_helps),
            Hint(Resource.PENDING_POD, FREES, _pod_helps),
            Hint(Resource.NODE, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE, node_helps),
            Hint(Resource.DEVICE_CLASS, Action.ADD | Action.UPDATE, _device_class_helps),
        )
        self._scores_pod_level = scores_pod_level
        self._resources = tuple(resources)
        self._verdicts: SharedByCluster[FitState] = SharedByCluster()
        self._scores = SharedScores(strategy, ON_ROW.get(strategy))
        self._ignored = ignored
        self._ignored_groups = ignored_groups

    def prepare_filter(self, pod: Pod, cluster: Cluster) -> FitState:
        """Return the filter's state for the pod's requests; pods with equal requests share the state."""
        requests = by_name(incoming_requests(pod))
        wanted = {name: amount for name, amount in requests.items() if amount > 0 and not self._ignores(name)}
        delegated = frozenset(cluster.devices.mapped_resources.keys() & wanted.keys())
        asked = shortage_test(cluster.nodes, wanted, delegated)
        return self._verdicts.of(cluster, asked.key, lambda: FitState(asked, asked.keep(cluster)))

    def filter(self, state: FitState, rows: Rows) -> Codes:
        """Reject nodes on which a requested resource or the number of allowed pods is insufficient."""
        return state.kept.of(rows)

    def reads_other_rows(self, state: FitState) -> bool:  # noqa: ARG002 - the same for all states
        """Return False: the result for a node depends on this node alone."""
        return False

    def filter_changed(self, state: FitState, changed: ChangedRow) -> Status | None:
        """Return the status with the resources that are insufficient on a simulated node, else None."""
        short = state.requested.on_row(changed.row, changed.requested, changed.pods_count)
        return self._status(state, short) if short.pods or short.resources else None

    def filter_changed_rows(self, state: FitState, changed: ChangedRows) -> Codes | None:
        """Return the reason codes (0 accepts) of simulated nodes; None if nodes can only be evaluated one by one."""
        return state.requested.codes_changed(changed)

    def most_pods(self, state: FitState, rows: RowNumbers) -> NDArray[np.int64]:
        """Return for each node the largest number of other pods that may be on it: its allowed pods minus 1."""
        return state.requested.nodes.pods_allowed.data[rows] - 1

    def reason(self, state: FitState, code: int) -> Status:
        """Return the rejection status that a reason code of the filter stands for, with all insufficient resources."""
        return self._status(state, state.requested.shortage(code))

    @staticmethod
    def _status(state: FitState, short: Shortage) -> Status:
        reasons = ["Too many pods"] if short.pods else []
        reasons += [f"Insufficient {state.requested.resources[position]}" for position in short.resources]
        kind = Code.UNSCHEDULABLE_AND_UNRESOLVABLE if short.unresolvable else Code.UNSCHEDULABLE
        return Status(kind, tuple(reasons))

    def prepare_score(self, pod: Pod, cluster: Cluster) -> CachedAnswers:
        """Return the scores for the pod's requests, computed when they are read."""
        wanted = prepare_allocation(pod, cluster, self._resources, nonzero=True, pod_level=self._scores_pod_level)
        if any(name in cluster.devices.mapped_resources for name in wanted.resources):
            return self._scores.apart(with_devices(wanted, cluster), cluster)
        return self._scores.of(wanted, cluster)

    def stays_in_range(self, state: CachedAnswers) -> bool:
        """Return whether scores are within 0 to 100, because no amount so far was large enough for an overflow."""
        return state.narrow

    def score(self, state: CachedAnswers, rows: Rows) -> Scores:
        """Score nodes by their resource allocation after placing the pod."""
        return state.of(rows).astype(np.int64)

    def score_placements(self, context: PodGroupContext, feasible: Sequence[FeasiblePlacement]) -> Scores:
        """Return the scores of a pod group's placements: the more of their resources is allocated, the higher.

        The scoring strategy of nodes does not apply.
        """
        return placement_scores(feasible, context.cluster, self._resources, pod_level=self._scores_pod_level)

    def stamp(self, cluster: Cluster) -> Hashable:
        """Return a value that changes when a resource's device class or a scored device changes."""
        mapped = cluster.devices.mapped_resources
        if mapped:
            for one in self._resources:
                if one.name in mapped:
                    return mapped.stamp, cluster.devices.objects_stamp, cluster.devices.allocated.stamp
        return mapped.stamp

    def _ignores(self, resource: str) -> bool:
        if not (self._ignored or self._ignored_groups) or not is_extended_resource_name(resource):
            return False
        return resource in self._ignored or resource.partition("/")[0] in self._ignored_groups


RATIO: Final = "RequestedToCapacityRatio"
SIMPLE: Final[dict[str, Strategy]] = {"LeastAllocated": least_allocated, "MostAllocated": most_allocated}
"""The scoring strategies that have no parameters."""


class RatioParameters(Given, frozen=True):
    """The parameters of the scoring strategy RequestedToCapacityRatio."""

    shape: tuple[ShapePoint, ...] = ()


class ScoringStrategy(Given, frozen=True):
    """The scoring strategy of NodeResourcesFit."""

    type: str = ""
    resources: tuple[ScoredResource, ...] = ()
    requested_to_capacity_ratio: RatioParameters | None = None

    def __post_init__(self) -> None:
        """Set the default resources: cpu and memory."""
        force_setattr(self, "resources", self.resources or SCORED_BY_DEFAULT)

    def faults(self) -> Iterator[Fault]:
        """Yield the invalid fields of the strategy, each with the reason."""
        for index, one in enumerate(self.resources):
            if not 1 <= one.weight <= 100:
                yield f"resources[{index}].weight", f"{one.weight} is not between 1 and 100"
        parameters = self.requested_to_capacity_ratio
        if self.type == RATIO and parameters is None:
            yield "requestedToCapacityRatio", f"is required for type {RATIO}"
        elif self.type == RATIO and parameters is not None:
            for field, why in shape_faults(parameters.shape):
                yield f"requestedToCapacityRatio.{field}", why
        elif self.type not in SIMPLE:
            known = ", ".join(sorted((*SIMPLE, RATIO)))
            yield "type", f'"{self.type}" is not a strategy; use {known}'
        elif parameters is not None:
            yield "requestedToCapacityRatio", f"is allowed only for type {RATIO}"


class FitArguments(PluginArguments, frozen=True):
    """The arguments of NodeResourcesFit."""

    checked_when_made: ClassVar[bool] = True

    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy = ScoringStrategy(type="LeastAllocated")

    def faults(self) -> Iterator[Fault]:
        """Yield the invalid fields of the arguments, each with the reason."""
        for index, name in enumerate(self.ignored_resources):
            if not is_qualified_name(name):
                yield f"ignoredResources[{index}]", f'"{name}" is not a resource name'
        for index, name in enumerate(self.ignored_resource_groups):
            if "/" in name or not is_qualified_name(name):
                yield f"ignoredResourceGroups[{index}]", f'"{name}" is not a resource name prefix'
        for field, why in self.scoring_strategy.faults():
            yield f"scoringStrategy.{field}", why


def node_resources_fit(given: FitArguments, *, scores_pod_level: bool, shrinking_wakes: bool) -> NodeResourcesFit:
    """Create NodeResourcesFit from its plugin arguments."""
    chosen = given.scoring_strategy
    strategy: Strategy
    if chosen.type == RATIO:
        points = chosen.requested_to_capacity_ratio.shape if chosen.requested_to_capacity_ratio else ()
        strategy = RequestedToCapacityRatio(points)
    else:
        strategy = SIMPLE[chosen.type]
    return NodeResourcesFit(
        weighted(chosen.resources),
        strategy=strategy,
        ignored=frozenset(given.ignored_resources),
        ignored_groups=frozenset(given.ignored_resource_groups),
        scores_pod_level=scores_pod_level,
        shrinking_wakes=shrinking_wakes,
    )
