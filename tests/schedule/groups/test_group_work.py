"""The work for a pod in function calls: the gate of pod groups adds little, and so does a group for its members."""

from __future__ import annotations

import asyncio

from policysched.model.objects import Pod, PodGroup
from policysched.model.release import V1_37, Release
from tests.build import node, pod
from tests.groups import GATED, group, member
from tests.schedule.groups.parts import RELEASES
from tests.schedule.stand import Stand
from tests.work import calls

SIZE = 100
"""Number of pods that are scheduled in a measurement."""


def work(release: Release, *groups: PodGroup, pods: list[Pod]) -> float:
    """Return the calls for each pod, from its creation to its binding, after a first pod of its kind."""
    stand = Stand(release=release)
    for number in range(20):
        stand.scheduler.set_node(node(f"n{number}"))

    async def bind(created: list[Pod]) -> None:
        wanted = len(stand.client.bound) + len(created)
        running = asyncio.create_task(stand.scheduler.run())
        for one in created:
            stand.scheduler.take(one)
        while len(stand.client.bound) < wanted:
            await asyncio.sleep(0)
        running.cancel()
        await asyncio.wait((running,))

    with asyncio.Runner() as runner:
        runner.run(bind([pod("first", requests={"cpu": "10m"})]))
        for one in groups:
            stand.scheduler.take(one)
        return calls(lambda: runner.run(bind(pods))) / len(pods)


def alone() -> list[Pod]:
    return [pod(f"p{number}", requests={"cpu": "10m"}) for number in range(SIZE)]


def in_group() -> list[Pod]:
    return [member(f"p{number}", requests={"cpu": "10m"}) for number in range(SIZE)]


def test_gate_and_groups_add_few_calls() -> None:
    plain = work(V1_37, pods=alone())
    assert work(GATED, pods=alone()) <= 1.15 * plain
    for release in RELEASES:
        assert work(release, group(least=SIZE), pods=in_group()) <= 1.8 * plain
