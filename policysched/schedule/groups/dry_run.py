"""`GroupDryRun`: decides about a pod group without placing it, and restores the cluster afterwards.

The decision is that of a running scheduler. Nothing is written, and scheduling gates of members are ignored.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from msgspec.structs import replace

from policysched.errors import UsageError
from policysched.framework import Status
from policysched.framework.cycle_state import CycleState
from policysched.framework.pod_groups import CandidatePlacement, PodGroupContext
from policysched.model.objects import GangSchedulingPolicy, Pod, PodGroup, PodGroupSchedulingPolicy
from policysched.model.objects.meta import seconds_of
from policysched.schedule.binding_points import reserve, unreserve
from policysched.schedule.cycle.decision import Decision, drawn
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.post_filter import FailedCycle, at_once
from policysched.schedule.groups.cycle import Evaluated, GroupCycle, GroupDecision, Steps
from policysched.schedule.groups.extender_answers import ExtenderAnswers
from policysched.schedule.groups.outcomes import GroupResult, note_member, post_filtered, rejection
from policysched.schedule.groups.placement_points import all_nodes
from policysched.schedule.groups.placements import decide_group
from policysched.schedule.groups.simulation import RejectedPodGroup
from policysched.schedule.groups.validation import refusal_of
from policysched.schedule.observer import AttemptResult
from policysched.schedule.queue.queued_pod import QueuedPod
from policysched.schedule.queue.queued_pod_group import evaluation_key
from policysched.state.placed.pods import pod_id
from policysched.state.pod_groups import GroupState, group_key

Observe = Callable[[QueuedPod, Decision, CandidatePlacement], object]
"""Callback for the decision about a member on a placement, called while earlier members are assumed on nodes."""


Draw = Callable[[QueuedPod, Decision], Decision]
"""Function that chooses one of a member's equally good nodes and returns the decision for the chosen node."""


def _by_name(rng: random.Random) -> Draw:
    """Return a `Draw` that selects a random node in the order of names; a seed reproduces the node."""
    return lambda _member, decision: drawn(decision, rng)


def by_engine(_member: QueuedPod, decision: Decision) -> Decision:
    """Return the decision unchanged: a `Draw` that keeps the node that the engine selected."""
    return decision


def _ignore(_member: QueuedPod, _decision: Decision, _placement: CandidatePlacement) -> None:
    """Do nothing: the callback for decisions about members if the caller passes none."""


@dataclass(frozen=True, slots=True)
class DecidedGroup:
    """The decision of a dry run about a pod group."""

    group: PodGroup
    members: Sequence[QueuedPod]
    """The members for which the dry run decides (they have no node yet), in the order of evaluation."""
    placed: int
    """Number of members that were already placed before the dry run."""
    result: AttemptResult
    message: str
    outcome: GroupResult | None = None
    """The result of the cycle; None if the group got no cycle."""

    @property
    def nodes(self) -> Mapping[str, str]:
        """The node of each member that fits, by pod identity."""
        return {} if self.outcome is None else self.outcome.nodes

    @property
    def victims(self) -> Sequence[Pod]:
        """The pods that would be evicted for the group."""
        return () if self.outcome is None else self.outcome.victims


@dataclass(frozen=True, slots=True)
class MostMembers:
    """The placement on which the largest number of a pod group's members fit, with the results of all members."""

    placement: CandidatePlacement | None
    """The placement; None without topology-aware scheduling."""
    members: Sequence[Evaluated]

    @property
    def count(self) -> int:
        """Number of members that fit on the placement."""
        return sum(one.placement is not None for one in self.members)

    @property
    def name(self) -> str:
        """The name of the placement; empty for the placement of all nodes."""
        return "" if self.placement is None else self.placement.name

    @property
    def failed(self) -> Evaluated | None:
        """The first member that fits no node."""
        return next((one for one in self.members if one.failure is not None), None)


class GroupDryRun:
    """Decides about a pod group, and afterwards restores the state of the cluster.

    Args:
        engine: The engine of the members' profile.
        pods: The members without a node, in the order of their creation; at least one.
        rng: Chooses among equally good placements, and among equally good nodes in the order of their names.
        draw: Selects one of equally good nodes, instead of `rng`.
        stated: The members under their own scheduler names, if `pods` have another name.
        observe: Called with the decision about each member.
        answers: The known answers of extenders; default: none is known.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - dependencies are passed in
        self,
        engine: Engine,
        pods: Iterable[Pod],
        rng: random.Random,
        draw: Draw | None = None,
        stated: Sequence[Pod] = (),
        observe: Observe = _ignore,
        answers: ExtenderAnswers | None = None,
    ) -> None:
        self._engine, self._cluster, self._observe = engine, engine.cluster, observe
        self._rng, self._draw = rng, draw or _by_name(rng)
        queued = (QueuedPod(_ungated(pod), pod_id(pod), float(time)) for time, pod in enumerate(pods))
        self.members = sorted(queued, key=evaluation_key)
        """The members, in the order of evaluation."""
        self._stated = stated or [one.pod for one in self.members]
        self._answers = answers or ExtenderAnswers(engine, rng, len(self.members))

    def decide(self) -> DecidedGroup:
        """Decide about the group without placing it, and return the decision.

        Raises:
            UsageError: the cluster has no PodGroup object of the group.
            UnansweredError: the answers of extenders are needed.
        """
        with self._counted() as state:
            group = state.group
            if group is None:
                raise UsageError(f'pod group "{state.key}" is not among the objects')
            placed = state.scheduled_count
            gated = self._gate()
            if gated is not None:
                return DecidedGroup(group, self.members, placed, AttemptResult.UNSCHEDULABLE, gated.message)
            named, known = self._cluster.release.messages_name_pod_group, {self._stated[0].spec.scheduler_name}
            refusal = refusal_of(group, self._stated, tuple(state.scheduled), known, names_group=named)
            if refusal is not None:
                return DecidedGroup(group, self.members, placed, AttemptResult.ERROR, refusal.message)
            with self._shared_claims():
                outcome = self._outcome(group)
            return DecidedGroup(group, self.members, placed, outcome.result, outcome.message, outcome)

    def attempt(self) -> GroupResult | None:
        """Run the cycle of a group whose members are not gated; return None if there is no PodGroup object."""
        with self._counted() as state, self._shared_claims():
            return None if state.group is None else self._outcome(state.group)

    def most(self) -> MostMembers:
        """Return the placement on which the most members fit at the same time; the group's minimum count is ignored."""
        with self._counted() as state, self._shared_claims():
            decision = self._cycle(with_min_count(state.group or PodGroup(), 1), self._steps())
        tried = [MostMembers(one.placement, one.members) for one in decision.tried]
        return max(tried or [MostMembers(None, decision.members)], key=lambda one: one.count)

    @contextmanager
    def counted(self) -> Iterator[PodGroupContext]:
        """Add the members to the pod group in the cluster inside this context, as pods without a node."""
        with self._counted() as state:
            pods = [one.pod for one in self.members]
            yield PodGroupContext(state.group or PodGroup(), pods, self._cluster, CycleState())

    @contextmanager
    def with_earlier_members(self, identity: str, placement: CandidatePlacement | None = None) -> Iterator[None]:
        """Keep the members that precede a given member assumed on their nodes inside this context.

        Args:
            identity: The identity of the member.
            placement: The placement on which they are evaluated; default: all nodes.
        """
        with self._counted() as state, self._shared_claims():
            cycle = GroupCycle(state.group or PodGroup(), self.members, self._steps())
            try:
                for member in self.members:
                    if member.identity == identity:
                        break
                    at_once(cycle.evaluate(member, placement or all_nodes(self._cluster)))
                yield
            finally:
                cycle.undo()

    def _outcome(self, group: PodGroup) -> GroupResult:
        """Run the group's cycle; if the group does not fit, run PodGroupPostFilter too."""
        steps = self._steps(self._observe)
        name, named = group.metadata.name, self._cluster.release.messages_name_pod_group
        decision = self._cycle(group, steps)
        if decision.verdict.result is not AttemptResult.UNSCHEDULABLE:
            return GroupResult(name, decision, decision.verdict.message, named)
        rejected = RejectedPodGroup(
            group, self._scheduled, self.members, self._engine, steps, decision.state, self._answers
        )
        result = post_filtered(self._engine.profile, rejected)
        return rejection(name, decision, result, names_group=named)

    def _cycle(self, group: PodGroup, steps: Steps) -> GroupDecision:
        """Run the group's cycle, and remove the assumed members afterwards."""
        cycle = GroupCycle(group, self.members, steps)
        try:
            return at_once(decide_group(cycle, self._scheduled))
        finally:
            cycle.undo()

    @contextmanager
    def _counted(self) -> Iterator[GroupState]:
        """Add the members to the pod group in the cluster inside this context; yield the group."""
        groups, first = self._cluster.pod_groups, self.members[0].pod
        if groups is None:
            raise UsageError(f'pod group "{group_key(first)}" cannot be decided: pods are scheduled one by one')
        before = groups.of_pod(first)
        known = () if before is None else tuple(before.unscheduled)
        new = [member for member in self.members if member.identity not in known]
        for member in new:
            groups.await_pod(member.pod)
        try:
            yield groups.of_pod(first) or GroupState(group_key(first))
        finally:
            for member in new:
                groups.remove(member.identity)

    @contextmanager
    def _shared_claims(self) -> Iterator[None]:
        """Let several members use the same new allocation of a resource claim inside this context."""
        claims = self._cluster.resource_claims
        claims.share(begins=True)
        try:
            yield
        finally:
            claims.share(begins=False)

    def _scheduled(self) -> int:
        """Return the number of the group's members that are placed or assumed on a node."""
        groups = self._cluster.pod_groups
        state = None if groups is None else groups.of_pod(self.members[0].pod)
        return 0 if state is None else state.scheduled_count

    def _gate(self) -> Status | None:
        """Return the status of the first PreEnqueue plugin that rejects a member."""
        plugins = self._engine.profile.pre_enqueue
        answers = (one.pre_enqueue(member.pod, self._cluster) for member in self.members for one in plugins)
        return next((answer for answer in answers if answer is not None), None)

    def _note_member(self, member: QueuedPod, decision: Decision, state: CycleState) -> None:
        """Call `note_member` of the PodGroupPostFilter plugins for an evaluated member."""
        if decision.cluster.nodes.count:
            note_member(self._engine.profile, member.pod, FailedCycle(decision, self._rng), state)

    def _steps(self, observe: Observe = _ignore) -> Steps:
        profile = self._engine.profile

        async def decide(member: QueuedPod, placement: CandidatePlacement) -> Decision:
            rows = placement.limit(self._cluster)
            if profile.extenders:
                extended = self._answers.applied(member.pod, self._engine.find(member.pod, rows=rows))
                decision = extended if isinstance(extended, Decision) else self._engine.choose(extended)
            else:
                decision = self._engine.decide(member.pod, rows=rows)
            decision = self._draw(member, decision)
            observe(member, decision, placement)
            return decision

        return Steps(
            cluster=self._cluster,
            profile=profile,
            rng=self._rng,
            decide=decide,
            note=self._note_member,
            reserve=lambda assumed: reserve(assumed, profile.reserving(assumed.pod, assumed.cluster)),
            unreserve=lambda assumed: unreserve(assumed, profile),
            now=lambda: 0.0,
            measure=lambda _point, _profile, run, *arguments: run(*arguments),
            names_group=self._cluster.release.messages_name_pod_group,
            searched=lambda _generated, _tried: None,
        )


def creation_key(pod: Pod) -> tuple[float, str]:
    """Return a sort key that orders pods by the time of their creation."""
    seconds = seconds_of(pod.metadata.creation_timestamp)
    return (math.inf if seconds is None else seconds, pod.metadata.name)


def with_min_count(group: PodGroup, count: int) -> PodGroup:
    """Return a copy of a pod group that requires a minimum number of pods to fit together (gang policy)."""
    policy = PodGroupSchedulingPolicy(gang=GangSchedulingPolicy(min_count=count))
    return replace(group, spec=replace(group.spec, scheduling_policy=policy))


def _ungated(pod: Pod) -> Pod:
    """Return a copy of a pod without scheduling gates."""
    return replace(pod, spec=replace(pod.spec, scheduling_gates=[])) if pod.spec.scheduling_gates else pod
