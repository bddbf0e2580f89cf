"""`GroupResult`: the end of a pod group's attempt, with the failures of the members that are not bound.

Source: pkg/scheduler/schedule_one_podgroup.go (submitPodGroupResult, completePodGroupAlgorithmResult,
applyPodGroupPostFilterResult), schedule_one.go (handleSchedulingFailure), v1.37 and v1.38.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from policysched.framework import Cluster, Code, Status, unschedulable
from policysched.framework.profile import Profile
from policysched.model.objects import Pod, PodGroup
from policysched.schedule.binding import Failure
from policysched.schedule.groups.cycle import REJECTED, Evaluated, GroupDecision
from policysched.schedule.observer import AttemptResult


@dataclass(frozen=True, slots=True)
class GroupResult:
    """The result of a pod group's attempt, with the failures of its members.

    Args:
        name: The name of the group.
        decision: The decision of its cycle.
        message: The message of the decision, with the reasons of PodGroupPostFilter.
        names_group: See `Release.messages_name_pod_group`.
    """

    name: str
    decision: GroupDecision
    message: str
    names_group: bool

    @property
    def result(self) -> AttemptResult:
        """The result of the group's attempt."""
        return self.decision.verdict.result

    def failure_of(self, member: Evaluated) -> Failure | None:
        """Return the failure of an evaluated member; None if the member is to be bound."""
        match self.result:
            case AttemptResult.SCHEDULED:
                return member.failure
            case AttemptResult.ERROR:
                failed = member.failure is not None and member.failure.result is AttemptResult.ERROR
                return member.failure if failed else self._error()
            case _:
                return member.failure or self._rejection(nominated="")

    def failure_of_others(self) -> Failure:
        """Return the failure of members that were not evaluated."""
        return self._error() if self.result is AttemptResult.ERROR else self._rejection(nominated=None)

    def _error(self) -> Failure:
        message = self.message
        if self.names_group:
            message = f'parent pod group "{self.name}" encountered an error'
        return Failure(AttemptResult.ERROR, message)

    def _rejection(self, nominated: str | None) -> Failure:
        """Return the failure of a member that its group's rejection causes; `nominated` is its new nominated node."""
        verdict = self.decision.verdict
        if self.names_group:
            message = f'parent pod group "{self.name}" is unschedulable'
            return Failure(AttemptResult.UNSCHEDULABLE, message, verdict.rejectors, nominated=nominated)
        message = verdict.message if nominated is None else f"{REJECTED}, {self.message}"
        return Failure(AttemptResult.UNSCHEDULABLE, message, nominated=nominated)


def post_filtered(profile: Profile, group: PodGroup, pods: Sequence[Pod], cluster: Cluster) -> Status:
    """Run the PodGroupPostFilter plugins for a rejected pod group; return the reasons of all, or of the last alone."""
    reasons: list[str] = []
    for plugin in profile.pod_group_post_filters:
        status = plugin.pod_group_post_filter(group, pods, cluster)
        if status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return status
        reasons += status.reasons
    return unschedulable(*reasons)
