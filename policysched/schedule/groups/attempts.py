"""`GroupAttempts`: scheduling attempts of pod groups; each attempt decides about all members of a group.

An exception ends the attempt of the group with an error: its members are retried together after a backoff.

Source: pkg/scheduler/schedule_one_podgroup.go (scheduleOnePodGroup, podGroupCycle, submitPodGroupAlgorithmResult).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from policysched.framework import Client, Clock
from policysched.framework.cycle_state import CycleState
from policysched.framework.pod_groups import CandidatePlacement
from policysched.framework.profile import Profile
from policysched.klog import V3
from policysched.model.objects import PodCondition, PodGroup
from policysched.schedule.attempts import Attempts
from policysched.schedule.binding import Binder, Failure
from policysched.schedule.cluster_changes import ClusterChanges
from policysched.schedule.cycle.decision import Decision
from policysched.schedule.groups.conditions import INVALID, GroupConditions, condition_for
from policysched.schedule.groups.cycle import Evaluated, GroupDecision, MemberPlacement, Steps, TriedPlacement
from policysched.schedule.groups.outcomes import NOT_ANSWERED, GroupResult, note_member, post_filtered, rejection
from policysched.schedule.groups.placements import run_cycle
from policysched.schedule.groups.simulation import RejectedPodGroup
from policysched.schedule.groups.validation import refusal_of
from policysched.schedule.observer import AttemptResult, GroupAttempt, Observers, PlacementSearch, notify
from policysched.schedule.queue.group_queue import GroupQueue
from policysched.schedule.queue.queued_pod import QueuedPod, Stage
from policysched.schedule.queue.queued_pod_group import GroupOutcome, QueuedPodGroup
from policysched.schedule.timing import POD_GROUP, POD_GROUP_POST_FILTER
from policysched.state.cluster import Cluster
from policysched.state.pod_groups import PodGroups

log = logging.getLogger(__name__)
OUTCOMES: Final = {
    AttemptResult.SCHEDULED: GroupOutcome.SCHEDULED,
    AttemptResult.UNSCHEDULABLE: GroupOutcome.REJECTED,
    AttemptResult.ERROR: GroupOutcome.ERROR,
}
"""The queue's `GroupOutcome` for each result of a group's attempt."""
Open = dict[str, QueuedPod]
"""The members, by pod identity, whose binding has not begun while the attempt of their group runs."""


class GroupAttempts:
    """Runs the scheduling attempts of pod groups.

    Args:
        attempts: Decides about single pods, binds and rejects them.
        cluster: The cluster, in which pods are assumed.
        groups: The pod groups of the cluster.
        queue: The queue, to which rejected groups return.
        profiles: The profiles by name.
        binder: Runs Reserve plugins.
        changes: Sets the time of the cluster.
        client: Writes to the API server.
        clock: The time.
        observers: Receive the attempts.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - dependencies are passed in
        self,
        attempts: Attempts,
        cluster: Cluster,
        groups: PodGroups,
        queue: GroupQueue,
        profiles: Mapping[str, Profile],
        binder: Binder,
        changes: ClusterChanges,
        client: Client,
        clock: Clock,
        observers: Observers,
    ) -> None:
        self._attempts, self._cluster, self._groups, self._queue = attempts, cluster, groups, queue
        self._profiles, self._binder, self._changes, self._clock = profiles, binder, changes, clock
        self._observers = observers
        self._names_group = cluster.release.messages_name_pod_group
        renews = cluster.release.group_generation_is_renewed
        self._conditions = GroupConditions(groups, client, clock, renews_generation=renews)

    async def make(self, queued: QueuedPodGroup) -> None:
        """Run the cycle of a popped group, and start the bindings of its members or return the group to the queue."""
        members: Open = {member.identity: member for member in queued.members}
        result = AttemptResult.ERROR
        try:
            result = await self._try(queued, members)
        except Exception as error:
            log.exception('the scheduling cycle of pod group "%s" failed; the group is retried', queued.key)
            failure = Failure(AttemptResult.ERROR, f"the scheduling cycle failed: {error!r}")
            for member in members.values():
                self._cluster.forget(member.identity)  # its binding has not begun
                self._fail(member, failure)
            self._set_condition(queued.group, condition_for(result, failure.message))
        finally:
            self._queue.end_group(queued, OUTCOMES[result])

    async def _try(self, queued: QueuedPodGroup, members: Open) -> AttemptResult:
        """Check that a popped group is valid, run its cycle, and bind or reject its members."""
        began = self._clock.monotonic()
        self._changes.update_time()
        group = self._valid(queued, members)
        if group is None:
            return AttemptResult.ERROR
        for member in queued.members:
            if self._attempts.skips(member):
                self._queue.done(members.pop(member.identity))
        if not members:
            return AttemptResult.SCHEDULED
        count = len(members)
        claims, in_order = self._cluster.resource_claims, list(members.values())
        if self._observers:
            notify(self._observers, lambda one: one.on_group_cycle(queued, in_order))
        claims.share(begins=True)
        try:
            outcome = await self._observed(group, in_order)
            decided = self._clock.monotonic()
            admitted = self._submit(outcome, members)
        finally:
            claims.share(begins=False)
        if outcome.cleanups:
            self._attempts.start(group.key, self._binder.undo(in_order[0].pod, outcome.cleanups))
        self._set_condition(group, condition_for(outcome.result, outcome.message))
        if self._observers:
            placed, ended = len(admitted), self._clock.monotonic()
            counts, seconds = (placed, count - placed), (decided - began, ended - began)
            attempt = GroupAttempt(queued, outcome.result, outcome.message, *counts, *seconds, waits=outcome.waits)
            notify(self._observers, lambda one: one.on_group_attempt(attempt))
        await self._bind(admitted, members)
        return outcome.result

    def _valid(self, queued: QueuedPodGroup, members: Open) -> PodGroup | None:
        """Return a group's PodGroup object; if it is missing or a member does not match it, fail all members."""
        state = self._groups.get(queued.key)
        if state is None or (group := state.group) is None:
            self._fail_all(members, f"pod group object not found for pod group podgroup/{queued.key}")
            return None
        pods = [member.pod for member in queued.members]
        refusal = refusal_of(group, pods, state.scheduled, self._profiles, names_group=self._names_group)
        if refusal is None:
            return group
        self._fail_all(members, refusal.message)
        reason = INVALID if refusal.is_invalid else ""
        self._set_condition(group, condition_for(AttemptResult.ERROR, refusal.message, reason))
        return None

    async def _observed(self, group: PodGroup, members: Sequence[QueuedPod]) -> GroupResult:
        """Decide about a group and notify observers of the decision."""
        if not self._observers:
            return await self._decide(group, members)
        outcome: GroupResult | None = None
        try:
            outcome = await self._decide(group, members)
        finally:
            verdict = None if outcome is None else outcome.verdict
            notify(self._observers, lambda one: one.on_group_decision(verdict))
        return outcome

    async def _decide(self, group: PodGroup, members: Sequence[QueuedPod]) -> GroupResult:
        """Run the cycle of a group, and PodGroupPostFilter if the group does not fit."""
        if log.isEnabledFor(V3):
            log.log(V3, "Attempting to schedule pod group", {"podGroupType": "podgroup", "podGroup": group.key})
        profile = self._attempts.engine_of(members[0].profile).profile
        decision = await run_cycle(group, partial(self._scheduled, group.key), members, self._steps(profile))
        if decision.verdict.result is not AttemptResult.UNSCHEDULABLE:
            return GroupResult(group.metadata.name, decision, decision.verdict.message, self._names_group)
        return await self._post_filtered(group, members, decision)

    async def _post_filtered(
        self, group: PodGroup, members: Sequence[QueuedPod], decision: GroupDecision
    ) -> GroupResult:
        """Run PodGroupPostFilter for a rejected group, and start the writes of its result."""
        engine, scheduled = self._attempts.engine_of(members[0].profile), partial(self._scheduled, group.key)
        profile = engine.profile
        rejected = RejectedPodGroup(group, scheduled, members, engine, self._steps(profile), decision.state)
        run = partial(
            self._binder.at, POD_GROUP_POST_FILTER, profile, post_filtered, profile, rejected, self._binder.timing
        )
        result = await rejected.answers.run(run, partial(self._is_current, members)) or NOT_ANSWERED
        if result.victims:
            self._attempts.shadows.look(profile.shadow_guards, members[0].pod, self._cluster, result.victims)
        if self._observers and result.disruption is not None:
            notify(self._observers, lambda one: one.on_group_preemption(group, result))
        if result.act is not None:
            self._attempts.make_room(group.key, POD_GROUP, result.act)
        return rejection(group.metadata.name, decision, result, names_group=self._names_group)

    def _is_current(self, members: Iterable[QueuedPod]) -> bool:
        """Return whether all members are still pending; the cluster may have changed while extenders were called."""
        self._changes.update_time()
        placed = self._cluster.pods.by_id
        return all(self._queue.get(one.identity) is one and one.identity not in placed for one in members)

    def _scheduled(self, key: str) -> int:
        """Return the number of a group's members that are placed or assumed on a node."""
        state = self._groups.get(key)
        return 0 if state is None else state.scheduled_count

    def _fail_all(self, members: Open, message: str) -> None:
        """End the attempts of all members of a group that gets no cycle, with one failure."""
        failure = Failure(AttemptResult.ERROR, message)
        for identity in list(members):
            self._fail(members[identity], failure)
            del members[identity]

    def _steps(self, profile: Profile) -> Steps:
        return Steps(
            cluster=self._cluster,
            profile=profile,
            rng=self._attempts.rng,
            decide=self._decide_member,
            note=self._note_member,
            reserve=partial(self._binder.reserve, profile=profile),
            unreserve=partial(self._binder.unreserve, profile=profile),
            now=self._clock.monotonic,
            measure=self._binder.at,
            names_group=self._names_group,
            searched=partial(self._note_search, profile.scheduler_name),
        )

    def _note_search(self, profile: str, generated: int, tried: Sequence[TriedPlacement]) -> None:
        """Report to observers that a search for a group's placement ended."""
        if self._observers:
            found = [(one.verdict.fits, one.seconds) for one in tried if one.verdict.result is not AttemptResult.ERROR]
            search = PlacementSearch(profile, generated, found)
            notify(self._observers, lambda one: one.on_placement_search(search))

    async def _decide_member(self, member: QueuedPod, placement: CandidatePlacement) -> Decision | None:
        member.tried_at = self._clock.monotonic()
        return await self._attempts.decide(member, placement.limit(self._cluster))

    def _note_member(self, member: QueuedPod, decision: Decision, state: CycleState) -> None:
        """Call `note_member` of the PodGroupPostFilter plugins for an evaluated member."""
        if decision.cluster.nodes.count:
            failed = self._attempts.failed_cycle(member, decision)
            note_member(self._profiles[member.profile], member.pod, failed, state)

    def _submit(self, outcome: GroupResult, members: Open) -> Sequence[Evaluated]:
        """Assume the members that fit and return them for binding; fail the other members."""
        admitted = []
        for one in outcome.decision.members:
            member, failure = one.queued, outcome.failure_of(one)
            member.tried_at = self._clock.monotonic() - one.seconds
            if failure is None and one.placement is not None:
                if self._admit(one.queued, one.placement, is_assumed=outcome.decision.stays):
                    admitted.append(one)
                    continue
            elif failure is not None:
                self._fail(member, failure)
            del members[member.identity]
        bound = {one.queued.identity for one in admitted}
        for identity in [identity for identity in members if identity not in bound]:
            self._fail(members[identity], outcome.failure_of_other(identity))
            del members[identity]
        return admitted

    def _admit(self, member: QueuedPod, placement: MemberPlacement, *, is_assumed: bool) -> bool:
        """Assume a member on its node; if Reserve or Permit rejects the member, end its attempt and return False."""
        assumed = placement.assumed
        if not is_assumed:
            self._cluster.assume(assumed.pod, self._cluster.nodes.row_of[assumed.node], placement.resources)
        return self._attempts.admit(member, assumed)

    async def _bind(self, admitted: Sequence[Evaluated], members: Open) -> None:
        for one in admitted:
            if one.placement is not None:
                await self._attempts.bind(one.queued, one.placement.assumed)
                del members[one.queued.identity]

    def _fail(self, member: QueuedPod, failure: Failure) -> None:
        """End the attempt of a member that failed; drop the member if it was deleted or placed during the attempt."""
        if member.stage is not Stage.IN_FLIGHT:
            return
        if self._queue.get(member.identity) is not member or member.identity in self._cluster.pods.by_id:
            self._queue.done(member)
        else:
            self._attempts.fail(member, failure)

    def _set_condition(self, group: PodGroup, told: PodCondition) -> None:
        if self._conditions.request(group, told):
            self._attempts.start(group.key, self._conditions.write(group))
