"""Interfaces of plugins that decide about pod groups: PlacementFeasible and PodGroupPostFilter.

Source: k8s.io/kube-scheduler/framework/interface.go (PlacementFeasiblePlugin, PodGroupPostFilterPlugin).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from policysched.framework.binding import Undo
from policysched.framework.plugin import Plugin
from policysched.framework.post_filter import FailedDecision
from policysched.framework.status import Status
from policysched.model.objects import Pod, PodGroup
from policysched.state.cluster import Cluster


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


class PodGroupPostFilterPlugin(Plugin, ABC):
    """A plugin that is called for a pod group that does not fit."""

    @abstractmethod
    def pod_group_post_filter(self, group: PodGroup, pods: Sequence[Pod], cluster: Cluster) -> Status:
        """Return a rejection whose reasons are appended to the message of a pod group that does not fit.

        UNSCHEDULABLE_AND_UNRESOLVABLE ends the point and replaces the reasons of earlier plugins.

        Args:
            group: The group.
            pods: The members of the attempt.
            cluster: The cluster.
        """

    def cleanups(self, pod: Pod, failed: FailedDecision) -> tuple[Undo, ...]:  # noqa: ARG002 - for subclasses
        """Return the requests to send for a member without a feasible node if its group is rejected."""
        return ()
