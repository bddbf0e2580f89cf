"""`refusal_of`: the reason why a pod group gets no cycle, such as members with different scheduler names.

Source: pkg/scheduler/schedule_one_podgroup.go (validatePodGroupHierarchy of v1.38, validatePodGroup of v1.37).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import chain
from typing import Final, NamedTuple

from policysched.model.objects import Pod, PodGroup
from policysched.model.pod_requirements import pod_priority

DEFAULT_POLICY: Final = "PreemptLowerPriority"


class Refusal(NamedTuple):
    """The reason why a pod group gets no cycle."""

    message: str
    is_invalid: bool
    """Whether the group's condition reports that the group or its members have to be changed."""


class _Texts(NamedTuple):
    """Message formats (for `str.format`) for members that do not match their pod group."""

    scheduler: str
    priority: str
    policy: str


_NAMED: Final = _Texts(
    "all pods in a pod group hierarchy should have the same .spec.schedulerName set, "
    'got: "{own}" ("{pod}") and "{common}" ("{of}")',
    "all pods in a pod group hierarchy should have the same priority as the root pod group's priority, "
    'got {own} ("{pod}") and {common} ("{of}")',
    'all pods in a pod group hierarchy should have the same preemption policy, got {own} ("{pod}") and {common}',
)
_UNNAMED: Final = _Texts(
    'all pods in a single pod group should have the same .spec.schedulerName set, got: "{own}" and "{common}"',
    "all pods in a single pod group should have the same priority as the pod group's priority, got {own} and {common}",
    "all pods in a single pod group should have the same preemption policy, got {own} and {common}",
)


def refusal_of(
    group: PodGroup, pods: Sequence[Pod], scheduled: Iterable[Pod], profiles: Collection[str], *, names_group: bool
) -> Refusal | None:
    """Return why a pod group gets no cycle; None if the group gets a cycle.

    Args:
        group: The group.
        pods: Its members that wait for a node; at least one.
        scheduled: Its members that have a node.
        profiles: The scheduler names of this process.
        names_group: See `Release.messages_name_pod_group`.
    """
    texts, first = (_NAMED if names_group else _UNNAMED), pods[0]
    policy = group.spec.preemption_policy if names_group else None
    policy = policy or _preemption_policy(first)
    for pod in chain(pods, scheduled):
        fault = _fault(pod, first, group, policy, texts)
        if fault:
            return Refusal(fault, is_invalid=names_group)
    name = first.spec.scheduler_name
    return None if name in profiles else Refusal(f'profile not found for scheduler name "{name}"', is_invalid=False)


def _fault(pod: Pod, first: Pod, group: PodGroup, policy: str, texts: _Texts) -> str:
    """Return a message about a field in which a member does not match its group; empty if the member matches."""
    name = pod.metadata.name
    own, common = pod.spec.scheduler_name, first.spec.scheduler_name
    if own != common:
        return texts.scheduler.format(own=own, pod=name, common=common, of=first.metadata.name)
    priority = pod_priority(pod)
    if priority != group.priority:
        return texts.priority.format(own=priority, pod=name, common=group.priority, of=f"podgroup/{group.key}")
    if (stated := _preemption_policy(pod)) != policy:
        return texts.policy.format(own=stated, pod=name, common=policy)
    return ""


def _preemption_policy(pod: Pod) -> str:
    return pod.spec.preemption_policy or DEFAULT_POLICY
