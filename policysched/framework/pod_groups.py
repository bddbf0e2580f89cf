"""Base classes of plugins that decide about pod groups: placements of a group, and PodGroupPostFilter.

A placement is a set of nodes on which all members of a group are to be placed. Plugins generate the placements of a
group, reject placements, and score those that the group fits.

Shapes: K nodes of a placement, P feasible placements.
Source: k8s.io/kube-scheduler/framework/interface.go (PlacementGeneratePlugin, PlacementFeasiblePlugin,
PlacementScorePlugin, PodGroupPostFilterPlugin).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from policysched.framework.binding import Handle, Undo
from policysched.framework.cycle_state import CycleState
from policysched.framework.plugin import Plugin, Scores
from policysched.framework.post_filter import FailedDecision, VictimGuard
from policysched.framework.status import Status
from policysched.model.objects import Pod, PodGroup
from policysched.state.cluster import Cluster
from policysched.state.placed.pods import PlacedPod
from policysched.state.tables.columns import RowNumbers


@dataclass(frozen=True, slots=True, eq=False)
class PodGroupContext:
    """The data about a pod group that plugins read during the group's cycle."""

    group: PodGroup
    pods: Sequence[Pod]
    """The members without a node, in the order of evaluation; at least one."""
    cluster: Cluster
    state: CycleState
    """The CycleState that out-of-tree plugins share during the cycle."""


@dataclass(frozen=True, slots=True, eq=False)
class CandidatePlacement:
    """A set of nodes on which all members of a pod group are to be placed."""

    name: str
    """The value of the topology key that all nodes have; empty for the placement of all nodes."""
    rows: RowNumbers
    """The rows of the nodes in ascending order, without duplicates. Shapes: (K,)."""

    def limit(self, cluster: Cluster) -> RowNumbers | None:
        """Return the rows of the placement's nodes; None if the placement contains all nodes of the cluster."""
        return None if self.rows.size == cluster.nodes.count else self.rows


@dataclass(frozen=True, slots=True, eq=False)
class FeasiblePlacement:
    """A placement that a pod group fits, with the nodes of its members."""

    placement: CandidatePlacement
    pods: Sequence[Pod]
    """The members that fit the placement, in the order of evaluation."""
    nodes: Sequence[str]
    """The names of the nodes of the members in `pods`."""


class PlacementProgress(NamedTuple):
    """The numbers of a pod group's members by state, while a placement is evaluated."""

    scheduled: int
    """Number of members that have a node, from this cycle or before."""
    unschedulable: int
    """Number of members that were rejected in this cycle."""
    remaining: int
    """Number of members that are not evaluated yet."""
    evaluated: int = 0
    """Number of members that were evaluated on this placement."""

    def after(self, *, fits: bool) -> PlacementProgress:
        """Return the progress after one more member was evaluated; `fits` states whether the member fits."""
        rejected = self.unschedulable + (not fits)
        return PlacementProgress(self.scheduled + fits, rejected, self.remaining - 1, self.evaluated + 1)


class PlacementGeneratePlugin(Plugin, ABC):
    """A plugin that generates the placements of a pod group."""

    @abstractmethod
    def generate_placements(
        self, context: PodGroupContext, parent: CandidatePlacement
    ) -> Sequence[CandidatePlacement] | Status:
        """Return placements whose nodes are in the placement `parent`; return `parent` for no constraint.

        Returns:
            Placements with different names without "/"; none to reject the group. A status rejects the group or fails.
        """


class PlacementFeasiblePlugin(Plugin, ABC):
    """A plugin that decides whether a pod group can still be scheduled on a placement."""

    @abstractmethod
    def placement_feasible(
        self, context: PodGroupContext, placement: CandidatePlacement, progress: PlacementProgress
    ) -> Status | None:
        """Return None if enough members have a node, WAIT to evaluate the next member, or a rejection.

        Called before the first member and after each. A rejection (UNSCHEDULABLE) ends the evaluation of the
        placement. WAIT continues with the next member; WAIT after the last member rejects the placement.
        """


class PlacementScorePlugin(Plugin, ABC):
    """A plugin that scores the placements that a pod group fits, if there are several."""

    tier: int = 0
    """The tier of the scores: scores of a higher tier decide before scores of lower tiers."""

    @abstractmethod
    def score_placements(self, context: PodGroupContext, feasible: Sequence[FeasiblePlacement]) -> Scores | Status:
        """Return the scores of placements, or a failure; in the cluster, members are not on nodes now.

        Shapes: (P,).
        """

    def normalize_placements(
        self,
        context: PodGroupContext,  # noqa: ARG002 - for subclasses
        feasible: Sequence[FeasiblePlacement],  # noqa: ARG002 - for subclasses
        scores: Scores,
    ) -> Scores | Status:
        """Return the final scores, 0 to 100, or a failure; by default, the scores are not changed.

        Shapes: (P,) -> (P,).
        """
        return scores


class NodeRanks(Protocol):
    """A rank for each node: a member of a pod group is placed on a feasible node of the lowest rank."""

    def ranks(self) -> NDArray[np.intp]:
        """Return the rank of each node, by row.

        Shapes: (C,).
        """

    def place(self, member: str, row: int) -> None:
        """Record that a member, given by pod identity, is placed on the node of a row."""

    def remove(self, member: str) -> None:
        """Record that a member is no longer placed; do nothing if `place` was not called for the member."""


class GroupSimulation(Protocol):
    """A simulated cycle of a pod group, in the cluster without some placed pods (possible victims)."""

    @property
    def failure(self) -> Status | None:
        """The reason why the group does not fit; None if the group fits."""

    @property
    def nodes(self) -> Mapping[str, str]:
        """The names of the nodes of the placed members, by pod identity."""

    def reaches(self, pods: Sequence[PlacedPod]) -> bool:
        """Return whether removed pods affect members on other nodes, so that `restore` evaluates all members."""

    def restore(self, pods: Sequence[PlacedPod], *, locally: bool = False) -> bool:
        """Restore removed pods; if a placed member then no longer fits, remove the pods again and return False.

        Args:
            pods: The pods.
            locally: Whether only the members on the nodes of the pods are evaluated.
        """

    def all_fit(self) -> bool:
        """Return whether all placed members fit, one after another."""

    def remove(self, pods: Sequence[PlacedPod]) -> None:
        """Remove pods again that `restore` restored."""


class RejectedGroup(Protocol):
    """A pod group that does not fit; the methods are valid until the cluster changes."""

    @property
    def group(self) -> PodGroup:
        """The PodGroup object of the rejected group."""

    @property
    def pods(self) -> Sequence[Pod]:
        """The members for which the group's cycle decided, in the order of evaluation."""

    @property
    def cluster(self) -> Cluster:
        """The cluster in which the group was rejected."""

    @property
    def state(self) -> CycleState:
        """The state of the group's cycle, in which plugins store data at `note_member`."""

    @property
    def victim_guards(self) -> Sequence[VictimGuard]:
        """The guards that protect placed pods; a pod may be evicted if no guard protects it."""

    def without(
        self, pods: Sequence[PlacedPod], ranks: NodeRanks | None = None
    ) -> AbstractContextManager[GroupSimulation]:
        """Inside this context, simulate the group's cycle in the cluster without some placed pods.

        Args:
            pods: The pods, placed on existing nodes.
            ranks: The ranks of nodes; without them, all nodes have one rank.
        """


class Disruption(NamedTuple):
    """Counts of what the eviction of victims disrupts, for metrics."""

    groups: int
    """Number of pod groups that are victims."""
    pods: int
    """Number of single pods that are victims."""
    violations: int
    """Number of pods whose eviction violates a disruption budget."""


@dataclass(frozen=True, slots=True)
class PodGroupPostFilterResult:
    """The result of a plugin at PodGroupPostFilter."""

    status: Status
    """A success if the group waits for the effect of `act`; else an error or a rejection.

    The reasons of a rejection are appended to the message of the group. SUCCESS and UNSCHEDULABLE_AND_UNRESOLVABLE
    end the point and replace earlier reasons.
    """
    nominated: Mapping[str, str] = field(default_factory=dict)
    """The nominated nodes of members by pod identity; an empty name clears a nomination."""
    act: Callable[[Handle], Awaitable[bool]] | None = None
    """Function that starts writes to the API server; its result, once awaited, is False after a failure."""
    victims: Sequence[Pod] = ()
    """The pods to evict."""
    searched: bool = False
    """Whether the plugin searched for victims."""
    disruption: Disruption | None = None
    """Counts of what the eviction of the victims disrupts; None if no victims were chosen."""
    cleanups: tuple[Undo, ...] = ()
    """The requests to send after the attempt, unless the group's attempt ends with an error."""


class PodGroupPostFilterPlugin(Plugin, ABC):
    """A plugin that is called for a pod group that does not fit."""

    @abstractmethod
    def pod_group_post_filter(self, rejected: RejectedGroup) -> PodGroupPostFilterResult:
        """Return how the pod group can be made to fit, or why not."""

    def note_member(self, pod: Pod, failed: FailedDecision, state: CycleState) -> None:
        """Store in the state of the group's cycle what `pod_group_post_filter` needs about an evaluated member.

        Called for members without a feasible node; with the feature gate DRAWorkloadResourceClaims, for all members.
        """
