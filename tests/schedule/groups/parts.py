"""Schedulers that schedule by pod groups, and questions about them."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from policysched.framework import Cluster
from policysched.model.objects import Pod, PodGroup
from tests.groups import GATED, GATED_38, member
from tests.schedule.stand import Stand

RELEASES = (GATED, GATED_38)
NO_VICTIMS = "pod group preemption: No preemption victims found for incoming preemptor"
CLAIMS_DONE = "deallocation and deletion of ResourceClaims completed"
PARENT = 'parent pod group "g" is unschedulable'


def below(least: int, scheduled: int, unschedulable: int, remaining: int) -> str:
    """The message of v1.38 for a group below its minimum count."""
    return (
        f"scheduling policy's minimum threshold ({least}) cannot be satisfied: {scheduled} scheduled, "
        f"{unschedulable} unschedulable, {remaining} not-evaluated"
    )


def members(count: int, of: str = "g", **fields: Any) -> list[Pod]:
    """Members of a group, each with a request of one CPU by default: four fit on a node."""
    fields.setdefault("requests", {"cpu": 1})
    return [member(f"p{number}", of, **fields) for number in range(count)]


def of_group(one: Pod) -> Pod:
    """The pod as a member of the group g."""
    return structs.replace(one, spec=structs.replace(one.spec, scheduling_group=member().spec.scheduling_group))


async def submit(stand: Stand, group: PodGroup, *pods: Pod) -> None:
    """Create a group and its members, and let the scheduler try them."""
    stand.scheduler.take(group)
    await stand.settled(*pods)


def conditions(stand: Stand) -> list[tuple[str, str, str]]:
    """Status, reason and message of each condition of a group that was written."""
    return [(one["status"], one["reason"], one["message"]) for _, one in stand.client.group_conditions]


def messages(stand: Stand) -> dict[str, str]:
    """The last message of each pod that was not scheduled."""
    return {key.removeprefix("default/"): one["message"] for key, one in stand.client.conditions}


def is_clean(cluster: Cluster) -> bool:
    """Whether the nodes have exactly the amounts of the placed pods, and no claim is in flight."""
    fresh = Cluster(release=cluster.release)
    for node in cluster.nodes.nodes:
        if node is not None:
            fresh.set_node(node)
    for placed in cluster.pods.by_id.values():
        fresh.assume(placed.pod, fresh.nodes.row_for(cluster.nodes.names[placed.row]))
    return _amounts(fresh) == _amounts(cluster) and not cluster.resource_claims.in_flight


def _amounts(cluster: Cluster) -> dict[str, list[int]]:
    resources = ("cpu", "memory", "pods")
    return {
        name: [int(cluster.nodes.requested(one)[row]) for one in resources]
        for name, row in cluster.nodes.row_of.items()
    }
