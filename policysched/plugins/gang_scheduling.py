"""GangScheduling: gates pods of a gang until enough exist, and rejects the gang unless enough of them fit.

Source: plugins/gangscheduling/gangscheduling.go, v1.37 and v1.38.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from typing import Final

from policysched.framework import (
    Action,
    AssumedPod,
    Change,
    Cluster,
    Code,
    Handle,
    Hint,
    HintIndex,
    PermitPlugin,
    PreEnqueuePlugin,
    Resource,
    Status,
    Wait,
    unresolvable,
    unschedulable,
)
from policysched.framework.pod_groups import (
    CandidatePlacement,
    PlacementFeasiblePlugin,
    PlacementProgress,
    PodGroupContext,
)
from policysched.model.objects import Pod, PodGroup
from policysched.state.pod_groups import group_key

LONGEST_WAIT: Final = 5 * 60.0
"""Longest time that a member waits at Permit for other members. Units: seconds."""


def _keys_of_pod(pod: Pod) -> Iterable[Hashable]:
    return (group_key(pod),)


def _keys_of_change(change: Change, _: Collection[Hashable]) -> Collection[Hashable]:
    return (_group_of(change),)


def _group_of(change: Change) -> str:
    """Return the key of the pod group that a change concerns; empty if it concerns no pod group."""
    return change.new.key if isinstance(change.new, PodGroup) else group_key(change.new)


def _concerns_group(pod: Pod, change: Change, _: Cluster) -> bool:
    key = group_key(pod)
    return bool(key) and key == _group_of(change)


def _needs_fewer(pod: Pod, change: Change, cluster: Cluster) -> bool:
    """Return whether a change reduces the minimum count of a pod's gang."""
    before, after = (one.spec.scheduling_policy.gang for one in (change.old, change.new))
    needs_fewer = before is not None and after is not None and after.min_count < before.min_count
    return needs_fewer and _concerns_group(pod, change, cluster)


_INDEX = HintIndex(_keys_of_pod, _keys_of_change)


class GangScheduling(PreEnqueuePlugin, PlacementFeasiblePlugin):
    """The GangScheduling plugin: PreEnqueue and PlacementFeasible for gangs.

    Args:
        names_group: Whether messages have the form of v1.38: they name the pod group.
    """

    name = "GangScheduling"
    hints = (
        Hint(Resource.PENDING_POD, Action.ADD, _concerns_group, _INDEX),
        Hint(Resource.ASSIGNED_POD, Action.ADD, _concerns_group, _INDEX),
        Hint(Resource.POD_GROUP, Action.ADD, _concerns_group, _INDEX),
        Hint(Resource.POD_GROUP, Action.UPDATE, _needs_fewer, _INDEX),
    )

    def __init__(self, *, names_group: bool = True) -> None:
        self._names_group = names_group

    def pre_enqueue(self, pod: Pod, cluster: Cluster) -> Status | None:
        """Gate a pod whose pod group does not exist or has fewer pods than its minimum count."""
        key = group_key(pod)
        if not key or cluster.pod_groups is None:
            return None
        state = cluster.pod_groups.get(key)
        if state is None or state.group is None:
            return unresolvable(self._missing(key.partition("/")[2]))
        return None if state.has_quorum else unresolvable(self._too_few(key))

    def placement_feasible(
        self,
        context: PodGroupContext,
        placement: CandidatePlacement,  # noqa: ARG002 - the same for all
        progress: PlacementProgress,
    ) -> Status | None:
        """Reject a gang that can no longer reach its minimum count; return WAIT while it has not reached it."""
        least, scheduled = context.group.min_count, progress.scheduled
        if scheduled >= least:
            return None
        if scheduled + progress.remaining >= least:
            return Status(Code.WAIT, (self._too_few_placed(least, "is not yet satisfied", progress),))
        return unschedulable(self._too_few_placed(least, "cannot be satisfied", progress))

    def _too_few_placed(self, least: int, state: str, progress: PlacementProgress) -> str:
        if self._names_group:
            return (
                f"scheduling policy's minimum threshold ({least}) {state}: {progress.scheduled} scheduled, "
                f"{progress.unschedulable} unschedulable, {progress.remaining} not-evaluated"
            )
        return f"minCount ({least}) {state}: {progress.scheduled} scheduled, {progress.remaining} remaining"

    def _missing(self, name: str) -> str:
        if self._names_group:
            return f'pod group "{name}" or one of its composite pod group ancestors has not been created yet'
        return f'waiting for pods\'s pod group "{name}" to appear in scheduling queue'

    def _too_few(self, key: str) -> str:
        if self._names_group:
            return f"waiting for podgroup/{key} to meet its quorum"
        return "waiting for minCount pods from a gang to appear in scheduling queue"


class WaitingGangScheduling(GangScheduling, PermitPlugin):
    """GangScheduling in which the members of a gang also wait at Permit until enough members have a node."""

    awaits_group_only = True

    def permit(self, assumed: AssumedPod, handle: Handle) -> Wait | None:
        """Let a member wait until its gang's minimum count has nodes; then allow all waiting members.

        The other members are in flight with this one, so none of them has to be activated.
        """
        groups = assumed.cluster.pod_groups
        state = None if groups is None else groups.of_pod(assumed.pod)
        if state is None or state.group is None or state.group.spec.scheduling_policy.gang is None:
            return None
        if state.scheduled_count < state.group.min_count:
            return Wait(LONGEST_WAIT)
        held = handle.waiting.keys() & state.assumed.keys()
        for identity in state.assumed if held else ():
            if identity in held:
                handle.waiting[identity].allow(self.name)
        return None
