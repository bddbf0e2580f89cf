"""`GroupCycle`: decides about a pod group's members one by one, while earlier members are assumed on their nodes.

Each call of `run` decides about one placement, a set of nodes; `placements` decides which placements are tried. A
member that fits is assumed in the cluster, and its Reserve plugins run, until `undo` removes all members again.

Source: pkg/scheduler/algorithm_podgroup.go (podGroupSchedulingDefaultAlgorithm, podGroupPotentiallyFeasible),
framework/runtime/framework.go (RunPlacementFeasiblePlugins), v1.37 and v1.38.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from policysched.framework import AssumedPod, Code, Status
from policysched.framework.binding import Undo
from policysched.framework.cycle_state import CycleState
from policysched.framework.pod_groups import (
    CandidatePlacement,
    PlacementFeasiblePlugin,
    PlacementProgress,
    PodGroupContext,
)
from policysched.framework.profile import Profile
from policysched.model.objects import PodGroup
from policysched.schedule.binding import Failure
from policysched.schedule.cycle.decision import Decision
from policysched.schedule.observer import AttemptResult
from policysched.schedule.queue.queued_pod import NO_PLUGINS, QueuedPod
from policysched.schedule.timing import PLACEMENT_FEASIBLE
from policysched.state.cluster import Cluster
from policysched.state.nominated.columns import Nomination
from policysched.state.placed.pods import pod_id
from policysched.state.tables.amounts import PodResources

log = logging.getLogger(__name__)
REJECTED: Final = "pod group is unschedulable"
CHANGED: Final = "a member of the pod group or its node was deleted while extenders were called"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a pod group can still be scheduled, during and after its cycle."""

    result: AttemptResult
    message: str = ""
    rejectors: frozenset[str] = NO_PLUGINS
    """The names of the plugins that reject the group."""
    proceeds: bool = False
    """Whether the cycle of the pod group evaluates the next member."""
    is_of_members: bool = False
    """Whether members that were not evaluated report this message too, instead of only naming their pod group."""

    @property
    def fits(self) -> bool:
        """Whether the pod group fits."""
        return self.result is AttemptResult.SCHEDULED


PROCEED: Final = Verdict(AttemptResult.SCHEDULED, proceeds=True)


@dataclass(frozen=True, slots=True)
class MemberPlacement:
    """The node on which a member of a pod group fits."""

    assumed: AssumedPod
    resources: PodResources


@dataclass(frozen=True, slots=True)
class Evaluated:
    """A member of a pod group that was evaluated; either its placement or its failure is set."""

    queued: QueuedPod
    seconds: float
    """Duration of the member's evaluation. Units: seconds."""
    placement: MemberPlacement | None = None
    failure: Failure | None = None


@dataclass(frozen=True, slots=True, eq=False)
class TriedPlacement:
    """A placement (set of nodes) on which a pod group was tried, with the results of the group's members."""

    placement: CandidatePlacement
    verdict: Verdict
    members: tuple[Evaluated, ...]
    """The evaluated members, in the order of evaluation; a cycle may end before all members are evaluated."""
    seconds: float
    """Duration of the evaluation of all members on the placement. Units: seconds."""
    scores: dict[str, int] = field(default_factory=dict)
    """The weighted scores of the placement by plugin; empty if the placement was not scored."""

    @property
    def places(self) -> bool:
        """Whether at least one member fits a node of the placement."""
        return any(one.placement is not None for one in self.members)


@dataclass(frozen=True, slots=True)
class GroupDecision:
    """The outcome of a pod group's cycle, with the results of its members."""

    verdict: Verdict
    members: tuple[Evaluated, ...] = ()
    """The evaluated members on the chosen placement, or on the first placement if the group fits none, in order."""
    stays: bool = False
    """Whether the members are still assumed on their nodes after the cycle and need not be assumed again."""
    tried: tuple[TriedPlacement, ...] = ()
    """The placements that were tried, in the order of trial; empty without topology-aware scheduling."""
    chosen: TriedPlacement | None = None
    """The placement on which the group is placed; None if the group does not fit."""
    state: CycleState = field(default_factory=CycleState)
    """The state that plugins share during the cycle."""

    @property
    def reported(self) -> TriedPlacement | None:
        """The placement on which `members` were evaluated; None without topology-aware scheduling."""
        return self.chosen or next((one for one in self.tried if one.members is self.members), None)


@dataclass(frozen=True, slots=True)
class Steps:
    """The functions that a pod group's cycle calls; they differ between attempt, dry run and simulation."""

    cluster: Cluster
    profile: Profile
    rng: random.Random
    """Random generator that chooses among equal placements and shuffles placements."""
    decide: Callable[[QueuedPod, CandidatePlacement], Awaitable[Decision | None]]
    """Runs filters and scores for a member on a placement; None if the member was meanwhile deleted or placed."""
    note: Callable[[QueuedPod, Decision, CycleState], None]
    """Calls `note_member` of the PodGroupPostFilter plugins for an evaluated member."""
    reserve: Callable[[AssumedPod], Status | None]
    unreserve: Callable[[AssumedPod], tuple[Undo, ...]]
    now: Callable[[], float]
    """A monotonic clock. Units: seconds."""
    measure: Callable[..., Any]
    """Calls a function that runs an extension point, and records the function's duration."""
    names_group: bool
    """Whether messages of members name their pod group; if not, the text `REJECTED` precedes the reason."""
    searched: Callable[[int, Sequence[TriedPlacement]], None]
    """Called after a search for a placement, with the number of generated placements and the tried placements."""


class GroupCycle:
    """The cycle of a pod group, in which members that fit are assumed on nodes until `undo`.

    Args:
        group: The group.
        members: The members to place, in order of evaluation.
        steps: The steps of the cycle.
    """

    def __init__(self, group: PodGroup, members: Sequence[QueuedPod], steps: Steps) -> None:
        self.steps, self.members, self._cluster = steps, members, steps.cluster
        self.context = PodGroupContext(group, [one.pod for one in members], steps.cluster, CycleState())
        self._placed: list[tuple[QueuedPod, AssumedPod]] = []
        """The members that are assumed on a node."""
        self._nominations: list[Nomination] = []
        """The nominations of members that were removed for the duration of the cycle."""

    def begin(self) -> None:
        """Remove the members' nominations, so that members leave no room for each other's nominations."""
        nominations = self._cluster.nominations
        if nominations:
            removed = (nominations.discard(one.identity) for one in self.members)
            self._nominations = [one for one in removed if one is not None]

    def end(self) -> None:
        """Restore the nominations of members that are still pending and got no new nomination."""
        cluster, state = self._cluster, None
        if self._nominations and cluster.pod_groups is not None:
            state = cluster.pod_groups.get(self.context.group.key)
        waiting = () if state is None else state.unscheduled
        for one in self._nominations:
            identity = pod_id(one.pod)
            if identity in waiting and cluster.nominations.get(identity) is None:
                cluster.nominations.set(one.pod, one.node)
        self._nominations = []

    async def run(self, scheduled: Callable[[], int], placement: CandidatePlacement) -> TriedPlacement:
        """Decide about the members one after another; afterwards, the members that fit are assumed on their nodes.

        Args:
            scheduled: Returns the number of members that are placed or assumed now.
            placement: The nodes that members may use.
        """
        began = self.steps.now()
        verdict, members = await self._evaluate(scheduled, placement)
        return TriedPlacement(placement, verdict, members, self.steps.now() - began)

    async def _evaluate(
        self, scheduled: Callable[[], int], placement: CandidatePlacement
    ) -> tuple[Verdict, tuple[Evaluated, ...]]:
        progress = PlacementProgress(scheduled(), 0, len(self.members))
        verdict, found = self.feasible(placement, progress, is_first=True), list[Evaluated]()
        if not verdict.proceeds:
            return verdict, ()
        for member in self.members:
            one = await self.evaluate(member, placement)
            if one is None:
                progress = progress._replace(remaining=progress.remaining - 1)
            else:
                found.append(one)
                if one.failure is not None and one.failure.result is AttemptResult.ERROR:
                    verdict = error_verdict(f"failed to schedule other pod from a pod group: {one.failure.message}")
                    break
                progress = progress.after(fits=one.failure is None)
            verdict = self.feasible(placement, progress)
            if not verdict.proceeds:
                break
        if verdict.fits and self._placed and not self._is_in_place(is_smaller=scheduled() < progress.scheduled):
            verdict = error_verdict(CHANGED)
        return verdict, tuple(found)

    def feasible(
        self, placement: CandidatePlacement, progress: PlacementProgress, *, is_first: bool = False
    ) -> Verdict:
        """Return whether the group can still be scheduled; `is_first` is true before any member is evaluated."""
        steps = self.steps
        status = steps.measure(PLACEMENT_FEASIBLE, steps.profile, self._status, placement, progress)
        if status is None:
            return PROCEED
        if status.code is Code.ERROR:
            return error_verdict(f"failed to evaluate placement feasibility: {status.message}")
        message, waits = status.message, status.code is Code.WAIT
        if (waits or is_first) and not steps.names_group:
            message = f"{REJECTED}, {message}"
        return Verdict(AttemptResult.UNSCHEDULABLE, message, frozenset((status.plugin,)), proceeds=waits)

    def _status(self, placement: CandidatePlacement, progress: PlacementProgress) -> Status | None:
        """Run PlacementFeasible plugins; return the first rejection or failure, else the last Wait, else None."""
        waiting: Status | None = None
        for plugin in self.steps.profile.placement_feasible:
            status = _answer(plugin, self.context, placement, progress)
            if status is None or status.code is Code.SUCCESS:
                continue
            if status.code is not Code.WAIT:
                return status if status.code is Code.UNSCHEDULABLE else Status(Code.ERROR, (_fault(status),))
            waiting = status
        return waiting

    async def evaluate(self, member: QueuedPod, placement: CandidatePlacement) -> Evaluated | None:
        """Decide about a member and assume it if it fits; return None if the member was deleted or placed meanwhile."""
        began = self.steps.now()
        decision = await self.steps.decide(member, placement)
        if decision is None:
            return None
        place, failure = None, _failure_of(decision)
        if self._is_noted(failure):
            self.steps.note(member, decision, self.context.state)
        if failure is None:
            assumed = AssumedPod(member.pod, decision.node, self._cluster, decision.state)
            place = MemberPlacement(assumed, decision.evaluation.pod_resources)
            failure = self._place(member, place, decision.row)
        seconds = self.steps.now() - began
        return Evaluated(member, seconds, place if failure is None else None, failure)

    def _is_noted(self, failure: Failure | None) -> bool:
        """Return whether PodGroupPostFilter plugins need to know about a member with a failure, or one that fits."""
        if failure is None:
            return self._cluster.release.workload_claims
        return failure.result is AttemptResult.UNSCHEDULABLE

    def _place(self, member: QueuedPod, placement: MemberPlacement, row: int) -> Failure | None:
        """Assume a member on its node and run Reserve; if Reserve fails, remove the member and return the failure."""
        assumed = placement.assumed
        self._cluster.assume(assumed.pod, row, placement.resources)
        self._placed.append((member, assumed))
        status = self.steps.reserve(assumed)
        if status is None:
            return None
        self._remove(*self._placed.pop())
        return Failure.at_permit(status)

    def hold(self, members: Iterable[Evaluated]) -> tuple[Evaluated, ...]:
        """Assume the members that have a node and are not assumed yet; return all assumed members."""
        placed = [one for one in members if one.placement is not None]
        if self._placed:
            return tuple(placed)
        row_of = self._cluster.nodes.row_of
        again = ((one, one.placement) for one in placed)
        return tuple(one for one, at in again if at and self._place(one.queued, at, row_of[at.assumed.node]) is None)

    def _is_in_place(self, *, is_smaller: bool) -> bool:
        """Return whether all assumed members and their nodes still exist after extenders were called."""
        return not is_smaller and all(self._stays(member, assumed) for member, assumed in self._placed)

    def _stays(self, member: QueuedPod, assumed: AssumedPod) -> bool:
        nodes = self._cluster.nodes
        row = nodes.row_of.get(assumed.node, -1)
        return row >= 0 and bool(nodes.present.data[row]) and self._cluster.is_assumed(member.identity)

    def may_stay(self) -> bool:
        """Return whether members can stay assumed until they are bound, because no Reserve plugin applies to them.

        A Permit plugin might act between the placements of two members, unless it only awaits members.
        """
        profile = self.steps.profile
        if not self._placed or not all(one.awaits_group_only for one in profile.permits):
            return False
        return not any(profile.reserving(assumed.pod, self._cluster) for _, assumed in self._placed)

    def undo(self) -> None:
        """Remove the assumed members from their nodes, in reverse order."""
        while self._placed:
            self._remove(*self._placed.pop())

    def _remove(self, member: QueuedPod, assumed: AssumedPod) -> None:
        """Remove an assumed member from its node.

        Nothing was written to the API server for the member: the requests that Unreserve returns are dropped.
        """
        self.steps.unreserve(assumed)
        self._cluster.forget(member.identity)


def _answer(
    plugin: PlacementFeasiblePlugin,
    context: PodGroupContext,
    placement: CandidatePlacement,
    progress: PlacementProgress,
) -> Status | None:
    try:
        status = plugin.placement_feasible(context, placement, progress)
    except Exception as error:
        log.exception('PlacementFeasible plugin "%s" failed', plugin.name)
        return Status(Code.ERROR, (repr(error),), plugin.name)
    return None if status is None else status.by(plugin.name)


def _fault(status: Status) -> str:
    if status.code is Code.ERROR:
        return f"running PlacementFeasible plugin: {status.message}"
    return f"unexpected status code ({status.code.text}) from PlacementFeasible plugin: {status.message}"


def error_verdict(message: str) -> Verdict:
    """Return the verdict on a pod group whose cycle failed."""
    return Verdict(AttemptResult.ERROR, message)


def _failure_of(decision: Decision) -> Failure | None:
    """Return the failure of a member without a feasible node; keep the member's nomination if preemption may help."""
    if decision.row >= 0:
        return None
    if decision.failed:
        return Failure(AttemptResult.ERROR, decision.error())
    nominated = None if decision.evaluation.node_count else ""
    return Failure(
        AttemptResult.UNSCHEDULABLE,
        decision.fit_error(),
        decision.rejectors(),
        decision.pending(),
        nominated=nominated,
    )
