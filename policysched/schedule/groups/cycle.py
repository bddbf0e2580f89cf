"""`run_cycle`: decides about the members of a pod group one by one, with the earlier members assumed on nodes.

A member that fits is assumed in the cluster, and its Reserve plugins run, until the end of the cycle. At the end, all
members are removed again: the caller places the members of a group that fits. If the group fits and no Reserve or
Permit plugin applies to a member, this would change nothing: then the members stay.

Source: pkg/scheduler/algorithm_podgroup.go (podGroupSchedulingDefaultAlgorithm, podGroupPotentiallyFeasible),
framework/runtime/framework.go (RunPlacementFeasiblePlugins), v1.37 and v1.38.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from policysched.framework import AssumedPod, Code, Status
from policysched.framework.binding import Undo
from policysched.framework.pod_groups import PlacementFeasiblePlugin, PlacementProgress
from policysched.framework.profile import Profile
from policysched.model.objects import PodGroup
from policysched.schedule.binding import Failure
from policysched.schedule.cycle.decision import Decision
from policysched.schedule.observer import AttemptResult
from policysched.schedule.queue.queued_pod import NO_PLUGINS, QueuedPod
from policysched.schedule.timing import PLACEMENT_FEASIBLE
from policysched.state.cluster import Cluster
from policysched.state.nominated.columns import Nomination
from policysched.state.tables.amounts import PodResources

log = logging.getLogger(__name__)
REJECTED: Final = "pod group is unschedulable"
NOTHING_PLACED: Final = "no pods were schedulable"
CHANGED: Final = "a member of the pod group or its node was deleted while extenders were called"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a pod group can still be scheduled, during and after its cycle."""

    result: AttemptResult
    message: str = ""
    rejectors: frozenset[str] = NO_PLUGINS
    """The plugins that reject the group."""
    proceeds: bool = False
    """Whether to evaluate the next member."""


PROCEED: Final = Verdict(AttemptResult.SCHEDULED, proceeds=True)


@dataclass(frozen=True, slots=True)
class Placement:
    """The node on which a member fits."""

    assumed: AssumedPod
    resources: PodResources


@dataclass(frozen=True, slots=True)
class Evaluated:
    """A member that was evaluated: it has either a placement or a failure."""

    queued: QueuedPod
    seconds: float
    """Duration of the evaluation of the member."""
    placement: Placement | None = None
    failure: Failure | None = None
    cleanups: tuple[Undo, ...] = ()
    """The requests to send if the member's group is rejected."""


@dataclass(frozen=True, slots=True)
class GroupDecision:
    """The outcome of a pod group's cycle, with the results of its members."""

    verdict: Verdict
    members: tuple[Evaluated, ...] = ()
    """The evaluated members in the order of evaluation; the cycle may end before all are evaluated."""
    stays: bool = False
    """Whether the members are still assumed on their nodes after the cycle."""


@dataclass(frozen=True, slots=True)
class Steps:
    """The functions of the scheduler that a pod group's cycle calls."""

    cluster: Cluster
    profile: Profile
    decide: Callable[[QueuedPod], Awaitable[Decision | None]]
    """Runs the filters and scores for a member; None if the member was deleted or placed during the cycle."""
    cleanups: Callable[[QueuedPod, Decision], tuple[Undo, ...]]
    """Returns the requests to send for a rejected member if its group is rejected."""
    reserve: Callable[[AssumedPod], Status | None]
    unreserve: Callable[[AssumedPod], tuple[Undo, ...]]
    now: Callable[[], float]
    """A monotonic clock. Units: seconds."""
    measure: Callable[..., Status | None]
    """Calls a function of an extension point and records its duration under the point and the profile."""
    names_group: bool
    """Whether messages name the pod group as a parent; if not, `REJECTED` precedes the reason."""


async def run_cycle(
    group: PodGroup, scheduled: Callable[[], int], members: Sequence[QueuedPod], steps: Steps
) -> GroupDecision:
    """Decide about a pod group; restore the cluster afterwards, except for members that stay on their nodes.

    Args:
        group: The group.
        scheduled: Returns the number of its members that are placed or assumed now.
        members: The members to place, in order of evaluation.
        steps: The steps of the cycle.
    """
    cycle = GroupCycle(group, steps)
    stays = False
    try:
        decision = await cycle.run(scheduled, members)
        stays = decision.verdict.result is AttemptResult.SCHEDULED and cycle.may_stay()
    finally:
        if not stays:
            cycle.undo()
    return replace(decision, stays=stays)


class GroupCycle:
    """A cycle under way, with the members that are in place until `undo`."""

    def __init__(self, group: PodGroup, steps: Steps) -> None:
        self._group, self._steps, self._cluster = group, steps, steps.cluster
        self._placed: list[tuple[QueuedPod, AssumedPod, Nomination | None]] = []
        """The members in place, with their nominations before."""

    async def run(self, scheduled: Callable[[], int], members: Sequence[QueuedPod]) -> GroupDecision:
        """Decide about the members one after another; the arguments are those of `run_cycle`."""
        progress = PlacementProgress(scheduled(), 0, len(members))
        verdict, found = self.feasible(progress, is_first=True), list[Evaluated]()
        if not verdict.proceeds:
            return GroupDecision(verdict)
        for member in members:
            one = await self.evaluate(member)
            if one is None:
                progress = progress._replace(remaining=progress.remaining - 1)
            else:
                found.append(one)
                if one.failure is not None and one.failure.result is AttemptResult.ERROR:
                    verdict = _error(f"failed to schedule other pod from a pod group: {one.failure.message}")
                    break
                progress = progress.after(fits=one.failure is None)
            verdict = self.feasible(progress)
            if not verdict.proceeds:
                break
        if verdict.result is AttemptResult.SCHEDULED:
            verdict = self.last_verdict(is_smaller=scheduled() < progress.scheduled)
        return GroupDecision(verdict, tuple(found))

    def feasible(self, progress: PlacementProgress, *, is_first: bool = False) -> Verdict:
        """Return whether the group can still be scheduled; `is_first` means before the first member."""
        status = self._steps.measure(PLACEMENT_FEASIBLE, self._steps.profile, self._status, progress)
        if status is None:
            return PROCEED
        if status.code is Code.ERROR:
            return _error(f"failed to evaluate placement feasibility: {status.message}")
        message, waits = status.message, status.code is Code.WAIT
        if (waits or is_first) and not self._steps.names_group:
            message = f"{REJECTED}, {message}"
        return Verdict(AttemptResult.UNSCHEDULABLE, message, frozenset((status.plugin,)), proceeds=waits)

    def _status(self, progress: PlacementProgress) -> Status | None:
        """Run the PlacementFeasible plugins; a rejection or failure ends the point, otherwise the last Wait applies."""
        waiting: Status | None = None
        for plugin in self._steps.profile.placement_feasible:
            status = _answer(plugin, self._group, progress)
            if status is None or status.code is Code.SUCCESS:
                continue
            if status.code is not Code.WAIT:
                return status if status.code is Code.UNSCHEDULABLE else Status(Code.ERROR, (_fault(status),))
            waiting = status
        return waiting

    async def evaluate(self, member: QueuedPod) -> Evaluated | None:
        """Decide about a member and assume it if it fits; return None if it was deleted or placed meanwhile."""
        began = self._steps.now()
        decision = await self._steps.decide(member)
        if decision is None:
            return None
        placement, failure = None, _failure_of(decision)
        cleanups: tuple[Undo, ...] = ()
        if failure is not None and failure.result is AttemptResult.UNSCHEDULABLE:
            cleanups = self._steps.cleanups(member, decision)
        elif failure is None:
            assumed = AssumedPod(member.pod, decision.node, self._cluster, decision.state)
            placement = Placement(assumed, decision.evaluation.pod_resources)
            failure = self._place(member, placement, decision.row)
        seconds = self._steps.now() - began
        return Evaluated(member, seconds, placement if failure is None else None, failure, cleanups)

    def _place(self, member: QueuedPod, placement: Placement, row: int) -> Failure | None:
        """Assume a member on its node and run Reserve; return the failure of Reserve, or None."""
        assumed, nomination = placement.assumed, self._cluster.nominations.get(member.identity)
        self._cluster.assume(assumed.pod, row, placement.resources)
        self._placed.append((member, assumed, nomination))
        status = self._steps.reserve(assumed)
        if status is None:
            return None
        self._remove(*self._placed.pop())
        return Failure.at_permit(status)

    def last_verdict(self, *, is_smaller: bool) -> Verdict:
        """Return the final verdict on a group that passed: a member must be assumed, and none may have been deleted.

        Args:
            is_smaller: Whether fewer members have a node than the cycle counted.
        """
        if not self._placed:
            message = NOTHING_PLACED if self._steps.names_group else REJECTED
            return Verdict(AttemptResult.UNSCHEDULABLE, message)
        stay = (self._is_in_place(member, assumed) for member, assumed, _ in self._placed)
        return PROCEED if all(stay) and not is_smaller else _error(CHANGED)

    def _is_in_place(self, member: QueuedPod, assumed: AssumedPod) -> bool:
        nodes = self._cluster.nodes
        row = nodes.row_of.get(assumed.node, -1)
        return row >= 0 and bool(nodes.present.data[row]) and self._cluster.is_assumed(member.identity)

    def may_stay(self) -> bool:
        """Return whether no Reserve or Permit plugin applies to the assumed members, so that they can stay."""
        profile = self._steps.profile
        if profile.permits:
            return False
        return not any(profile.reserving(assumed.pod, self._cluster) for _, assumed, _ in self._placed)

    def undo(self) -> None:
        """Remove the assumed members from their nodes, in reverse order."""
        while self._placed:
            self._remove(*self._placed.pop())

    def _remove(self, member: QueuedPod, assumed: AssumedPod, nomination: Nomination | None) -> None:
        """Remove a member from its node, and restore its nomination.

        Nothing was written to the API server for the member: the requests that Unreserve returns are dropped.
        """
        self._steps.unreserve(assumed)
        change = self._cluster.forget(member.identity)
        if nomination is not None and not change.nothing:
            self._cluster.nominations.set(nomination.pod, nomination.node)


def _answer(plugin: PlacementFeasiblePlugin, group: PodGroup, progress: PlacementProgress) -> Status | None:
    try:
        status = plugin.placement_feasible(group, progress)
    except Exception as error:
        log.exception('PlacementFeasible plugin "%s" failed', plugin.name)
        return Status(Code.ERROR, (repr(error),), plugin.name)
    return None if status is None else status.by(plugin.name)


def _fault(status: Status) -> str:
    if status.code is Code.ERROR:
        return f"running PlacementFeasible plugin: {status.message}"
    return f"unexpected status code ({status.code.text}) from PlacementFeasible plugin: {status.message}"


def _error(message: str) -> Verdict:
    return Verdict(AttemptResult.ERROR, message)


def _failure_of(decision: Decision) -> Failure | None:
    """Return the failure of a member without a feasible node; keep its nomination if nodes may become feasible."""
    if decision.row >= 0:
        return None
    if decision.failed:
        return Failure(AttemptResult.ERROR, decision.error())
    nominated = None if decision.cluster.nodes.count else ""
    return Failure(
        AttemptResult.UNSCHEDULABLE,
        decision.fit_error(),
        decision.rejectors(),
        decision.pending(),
        nominated=nominated,
    )
