"""`GroupResult`: the result of a pod group's attempt, with the failures of members that are not bound.

Source: pkg/scheduler/schedule_one_podgroup.go (submitPodGroupResult, completePodGroupAlgorithmResult,
applyPodGroupPostFilterResult), schedule_one.go (handleSchedulingFailure), v1.37 and v1.38.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from policysched.framework import Code, FailedDecision, Status, unschedulable
from policysched.framework.binding import Undo
from policysched.framework.cycle_state import CycleState
from policysched.framework.pod_groups import PodGroupPostFilterPlugin, PodGroupPostFilterResult, RejectedGroup
from policysched.framework.profile import Profile
from policysched.model.objects import Pod
from policysched.schedule.binding import Failure
from policysched.schedule.groups.cycle import REJECTED, Evaluated, GroupDecision, Verdict
from policysched.schedule.observer import AttemptResult, GroupVerdict
from policysched.schedule.timing import POD_GROUP, POD_GROUP_POST_FILTER, Timing

ENDING: Final = (Code.SUCCESS, Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
"""The status codes with which a plugin ends PodGroupPostFilter."""


NOT_ANSWERED: Final = PodGroupPostFilterResult(
    unschedulable("pod group preemption: members or nodes changed while extenders were called")
)
"""PodGroupPostFilter's result if preemption is abandoned because the stored answers of extenders are outdated."""


@dataclass(frozen=True, slots=True)
class GroupResult:
    """The result of a pod group's attempt, from which the failure of each member is derived.

    Args:
        name: The name of the group.
        decision: The decision of its cycle.
        message: The message of the decision, with the reasons of PodGroupPostFilter.
        names_group: See `Release.messages_name_pod_group`.
        waits: Whether the group waits for the pods that it preempts.
        nominated: The nominated nodes of members by the identity of the pod, if the group waits.
        victims: The pods that are evicted for the group.
        cleanups: The requests of PodGroupPostFilter plugins to send after the attempt.
    """

    name: str
    decision: GroupDecision
    message: str
    names_group: bool
    waits: bool = False
    nominated: Mapping[str, str] = field(default_factory=dict)
    victims: Sequence[Pod] = ()
    cleanups: tuple[Undo, ...] = ()

    @property
    def nodes(self) -> Mapping[str, str]:
        """The node of each member that fits, by pod identity."""
        members = self.decision.members
        return {one.queued.identity: one.placement.assumed.node for one in members if one.placement is not None}

    @property
    def verdict(self) -> GroupVerdict:
        """The decision about the group, for observers."""
        return GroupVerdict(self.result, self.message, self.nodes, self.nominated, self.victims)

    @property
    def result(self) -> AttemptResult:
        """The result of the group's attempt."""
        return self.decision.verdict.result

    def failure_of(self, member: Evaluated) -> Failure | None:
        """Return the failure of an evaluated member; None if the member is to be bound."""
        failure = self._failure_of(member)
        node = self.nominated.get(member.queued.identity)
        return failure if failure is None or node is None else replace(failure, nominated=node)

    def _failure_of(self, member: Evaluated) -> Failure | None:
        match self.result:
            case AttemptResult.SCHEDULED:
                return member.failure
            case AttemptResult.ERROR:
                failed = member.failure is not None and member.failure.result is AttemptResult.ERROR
                return member.failure if failed else self._error()
            case _:
                return member.failure or self._rejection(nominated=None if self.waits else "", fits=True)

    def failure_of_other(self, identity: str) -> Failure:
        """Return the failure of a member that the cycle of the group did not evaluate."""
        if self.result is AttemptResult.ERROR:
            return self._error()
        return self._rejection(nominated=self.nominated.get(identity), fits=False)

    def _error(self) -> Failure:
        message = self.message
        if self.names_group:
            message = f'parent pod group "{self.name}" encountered an error'
        return Failure(AttemptResult.ERROR, message)

    def _rejection(self, nominated: str | None, *, fits: bool) -> Failure:
        """Return the failure of a member of a rejected group; `nominated` is the node to nominate for the member."""
        verdict = self.decision.verdict
        if self.names_group and not verdict.is_of_members:
            message = f'parent pod group "{self.name}" is unschedulable'
            return Failure(AttemptResult.UNSCHEDULABLE, message, verdict.rejectors, nominated=nominated)
        message = verdict.message
        if fits:
            message = self.message if self.waits else f"{REJECTED}, {self.message}"
        return Failure(AttemptResult.UNSCHEDULABLE, message, nominated=nominated)


def note_member(profile: Profile, pod: Pod, failed: FailedDecision, state: CycleState) -> None:
    """Call `note_member` of the PodGroupPostFilter plugins.

    Args:
        profile: The profile of the group's members.
        pod: An evaluated member.
        failed: The decision about it.
        state: The state of the group's cycle.
    """
    for plugin in profile.pod_group_post_filters:
        plugin.note_member(pod, failed, state)


def post_filtered(profile: Profile, rejected: RejectedGroup, timing: Timing | None = None) -> PodGroupPostFilterResult:
    """Run the PodGroupPostFilter plugins for a rejected pod group.

    Args:
        profile: The profile of the group's members.
        rejected: The group.
        timing: Measures the plugins.

    Returns:
        The result of the plugin that ended the point; otherwise the reasons of all.
    """
    reasons: list[str] = []
    cleanups: tuple[Undo, ...] = ()
    for plugin in profile.pod_group_post_filters:
        result = _answer(plugin, rejected, timing)
        status, cleanups = result.status, (*cleanups, *result.cleanups)
        if status.code in ENDING:
            return replace(result, cleanups=cleanups)
        if status.code is not Code.UNSCHEDULABLE:
            why = f'error in "{plugin.name}" PodGroupPostFilter plugins: {status.message}'
            return PodGroupPostFilterResult(Status(Code.ERROR, (why,)))
        reasons += status.reasons
    return PodGroupPostFilterResult(unschedulable(*reasons), cleanups=cleanups)


def _answer(
    plugin: PodGroupPostFilterPlugin, rejected: RejectedGroup, timing: Timing | None
) -> PodGroupPostFilterResult:
    if timing is None:
        return plugin.pod_group_post_filter(rejected)
    began = timing.now()
    result = plugin.pod_group_post_filter(rejected)
    seconds, code = timing.now() - began, result.status.code
    timing.plugin(plugin.name, POD_GROUP_POST_FILTER, code, seconds)
    if result.searched:
        timing.searched(POD_GROUP, code, seconds)
    return result


def rejection(
    name: str, decision: GroupDecision, result: PodGroupPostFilterResult, *, names_group: bool
) -> GroupResult:
    """Return the result of a rejected pod group's attempt, including the result of PodGroupPostFilter.

    Args:
        name: The name of the group.
        decision: The decision of its cycle.
        result: The result of PodGroupPostFilter.
        names_group: See `Release.messages_name_pod_group`.
    """
    status = result.status
    if status.code is Code.ERROR:
        failed = replace(decision, verdict=Verdict(AttemptResult.ERROR, status.message))
        return GroupResult(name, failed, status.message, names_group)
    message = ", ".join((decision.verdict.message, *status.reasons))
    waits, victims = status.code is Code.SUCCESS, tuple(result.victims)
    return GroupResult(name, decision, message, names_group, waits, result.nominated, victims, result.cleanups)
