"""Interfaces of plugins that decide about pod groups: PlacementFeasible and PodGroupPostFilter.

Source: k8s.io/kube-scheduler/framework/interface.go (PlacementFeasiblePlugin, PodGroupPostFilterPlugin).
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
from policysched.framework.plugin import Plugin
from policysched.framework.post_filter import FailedDecision, VictimGuard
from policysched.framework.status import Status
from policysched.model.objects import Pod, PodGroup
from policysched.state.cluster import Cluster
from policysched.state.placed.pods import PlacedPod


class PlacementProgress(NamedTuple):
    """The number of members of a pod group by their state during the group's cycle."""

    scheduled: int
    """Members that are on a node, or got a node in this cycle."""
    unschedulable: int
    """Members that were rejected in this cycle."""
    remaining: int
    """Members that are not evaluated yet."""

    def after(self, *, fits: bool) -> PlacementProgress:
        """Return the progress after one more member was evaluated."""
        return PlacementProgress(self.scheduled + fits, self.unschedulable + (not fits), self.remaining - 1)


class PlacementFeasiblePlugin(Plugin, ABC):
    """A plugin that decides during the cycle of a pod group whether the group can still be scheduled."""

    @abstractmethod
    def placement_feasible(self, group: PodGroup, progress: PlacementProgress) -> Status | None:
        """Return None if enough members of the group have a node; else a rejection, or WAIT to try the next member.

        Otherwise return a rejection (UNSCHEDULABLE), which ends the cycle, or WAIT to continue with the next member;
        WAIT after the last member rejects the group.
        """


class NodeRanks(Protocol):
    """Ranks of nodes for the members of a pod group: a member is placed on a node of the lowest rank that it fits."""

    def ranks(self) -> NDArray[np.intp]:
        """Return the ranks by row.

        Shapes: (C,).
        """

    def place(self, row: int) -> None:
        """Note that a member is placed on a row."""


class GroupSimulation(Protocol):
    """A pod group that is placed in the cluster without some other pods."""

    @property
    def failure(self) -> Status | None:
        """The reason why the group does not fit; None if it does."""

    @property
    def nodes(self) -> Mapping[str, str]:
        """The nodes of the placed members, by the identity of the pod."""

    @property
    def reads_other_nodes(self) -> bool:
        """Whether pods affect members on other nodes, so that each restoration evaluates all members."""

    def restore(self, pods: Sequence[PlacedPod]) -> bool:
        """Restore removed pods and return True if all placed members still fit, else remove the pods again."""


class RejectedGroup(Protocol):
    """A pod group that does not fit. Its methods are valid until the cluster changes."""

    @property
    def group(self) -> PodGroup:
        """The group."""

    @property
    def pods(self) -> Sequence[Pod]:
        """The members of the attempt, in the order of evaluation."""

    @property
    def cluster(self) -> Cluster:
        """The cluster."""

    @property
    def victim_guards(self) -> Sequence[VictimGuard]:
        """The guards of placed pods; a pod may be evicted if no guard protects it."""

    @property
    def is_extended(self) -> bool:
        """Whether extenders are interested in members."""

    def without(
        self, pods: Sequence[PlacedPod], ranks: NodeRanks | None = None
    ) -> AbstractContextManager[GroupSimulation]:
        """Simulate the cycle of the group without some pods; afterwards the cluster is as before.

        Args:
            pods: The pods, placed on existing nodes.
            ranks: The ranks of nodes; without them, all nodes have one rank.
        """


@dataclass(frozen=True, slots=True)
class PodGroupPostFilterResult:
    """Result of a plugin at PodGroupPostFilter."""

    status: Status
    """A success if the group waits for the effect of `act`; an error; or a rejection, whose reasons are appended to the
    message of the group. SUCCESS and UNSCHEDULABLE_AND_UNRESOLVABLE end the point and replace earlier reasons."""
    nominated: Mapping[str, str] = field(default_factory=dict)
    """The nominated nodes of members by the identity of the pod; empty to clear a nomination."""
    act: Callable[[Handle], Awaitable[bool]] | None = None
    """Starts writes to the API server and returns an awaitable; False as its result means failure."""
    victims: Sequence[Pod] = ()
    """The victims."""


class PodGroupPostFilterPlugin(Plugin, ABC):
    """A plugin that is called for a pod group that does not fit."""

    @abstractmethod
    def pod_group_post_filter(self, rejected: RejectedGroup) -> PodGroupPostFilterResult:
        """Look for a way to make a pod group fit."""

    def cleanups(self, pod: Pod, failed: FailedDecision) -> tuple[Undo, ...]:  # noqa: ARG002 - for subclasses
        """Return the requests to send for a member without a feasible node if its group is rejected."""
        return ()
