"""`QueuedPodGroup`: a queued pod group with its members. `HeldMembers`: members that are not in a queued group.

Source: pkg/scheduler/framework/types.go (QueuedPodGroupInfo), pkg/scheduler/backend/queue/pod_group_member_pods.go.
"""

from __future__ import annotations

from bisect import insort
from enum import Enum

from msgspec.structs import replace

from policysched.model.objects import Pod, PodGroup
from policysched.model.pod_requirements import pod_priority
from policysched.schedule.queue.queued_pod import QueuedPod, Stage


class GroupOutcome(Enum):
    """The outcome of a pod group's attempt, before its PostFilter plugins run."""

    SCHEDULED = "scheduled"
    REJECTED = "rejected"
    ERROR = "error"


class QueuedPodGroup(QueuedPod, eq=False, weakref=True, kw_only=True):
    """A pod group in the queue; the queue treats it like a pod.

    The field `pod` is the member that gates the group, otherwise the first member, with the priority of the group.
    Plugins that reject the group are noted in its members.
    """

    key: str
    """`namespace/name` of the group."""
    group: PodGroup
    members: list[QueuedPod]
    """The group's pods that are scheduled together, in the order of evaluation."""

    def add(self, member: QueuedPod) -> None:
        """Add a member at its place in the order of evaluation."""
        insort(self.members, member, key=evaluation_key)
        member.stage = Stage.IN_GROUP
        self.represent()

    def remove(self, member: QueuedPod) -> None:
        """Remove a member; another member may then represent the group."""
        self.members.remove(member)
        if self.members:
            self.represent()

    def gate(self, member: QueuedPod) -> None:
        """Gate the group because a PreEnqueue plugin gates one of its members."""
        self.gated_by = member.gated_by
        self.represent()

    def represent(self) -> None:
        """Make a member the representative of the group in the queue: `pod` becomes the member's pod."""
        gating = (one for one in self.members if one.gated_by) if self.gated_by else iter(())
        self.pod = standing_for(self.group, next(gating, self.members[0]).pod)


def standing_for(group: PodGroup, pod: Pod) -> Pod:
    """Return a copy of a pod with the priority of its pod group, to represent the group in the queue."""
    return pod if pod_priority(pod) == group.priority else replace(pod, spec=replace(pod.spec, priority=group.priority))


def evaluation_key(member: QueuedPod) -> tuple[int, int, float, str]:
    """Return the sort key of a group's members: priority, attempts, queueing time, name."""
    return -pod_priority(member.pod), -member.attempts, member.queued_at, member.pod.metadata.name


class HeldMembers:
    """Pods that belong to pod groups but are not in a queued group, by `namespace/name` of the group."""

    __slots__ = ("_members", "_stage")

    def __init__(self, stage: Stage) -> None:
        """Create an empty collection.

        Args:
            stage: The stage of its members.
        """
        self._stage = stage
        self._members: dict[str, dict[str, QueuedPod]] = {}

    def add(self, key: str, member: QueuedPod) -> None:
        """Add a member of the group with the key `namespace/name`."""
        member.stage = self._stage
        self._members.setdefault(key, {})[member.identity] = member

    def discard(self, key: str, identity: str) -> None:
        """Remove a member of a group, if the collection has the member."""
        members = self._members.get(key, {})
        members.pop(identity, None)
        if not members:
            self._members.pop(key, None)

    def take(self, key: str) -> list[QueuedPod]:
        """Remove and return the members of a group, in the order in which they were added."""
        return list(self._members.pop(key, {}).values())

    def __len__(self) -> int:
        return sum(map(len, tuple(self._members.values())))
