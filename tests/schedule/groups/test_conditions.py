"""The condition PodGroupInitiallyScheduled: what is written, in which order, and what is not written again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec import structs

from policysched.framework import ApiError
from policysched.model.objects import PodCondition, PodGroup, PodGroupStatus
from policysched.model.release import Release
from policysched.schedule.groups.conditions import GroupConditions, condition_for
from policysched.schedule.observer import AttemptResult
from policysched.state.pod_groups import PodGroups
from tests.build import node
from tests.groups import GATED, GATED_38, group, member
from tests.schedule.groups.parts import conditions, members, submit
from tests.schedule.parts import FakeClient, refused
from tests.schedule.queue_parts import StandingClock
from tests.schedule.stand import running

FITS = condition_for(AttemptResult.SCHEDULED, "")
FAILS = condition_for(AttemptResult.UNSCHEDULABLE, "no")
ERROR = condition_for(AttemptResult.ERROR, "broken")


class Writes:
    """Conditions of one group, over a client that can be stopped."""

    def __init__(self, of: PodGroup, *, renews: bool = False) -> None:
        self.groups, self.client = PodGroups(), FakeClient()
        self.groups.put(of)
        self.tested = GroupConditions(self.groups, self.client, StandingClock(), renews_generation=renews)
        self._tasks: list[asyncio.Task[None]] = []

    async def request(self, of: PodGroup, *told: PodCondition) -> None:
        for one in told:
            if self.tested.request(of, one):
                self._tasks.append(asyncio.create_task(self.tested.write(of)))
        await asyncio.gather(*self._tasks)

    @property
    def written(self) -> list[str]:
        return [one["reason"] for _, one in self.client.group_conditions]


def with_condition(of: PodGroup, told: PodCondition, **metadata: Any) -> PodGroup:
    return structs.replace(
        of, status=PodGroupStatus(conditions=[told]), metadata=structs.replace(of.metadata, **metadata)
    )


async def test_known_condition_is_not_written_again() -> None:
    of = with_condition(group(), FAILS)
    tested = Writes(of)
    await tested.request(of, FAILS)
    assert tested.written == []
    await tested.request(of, ERROR)
    [(_, condition)] = tested.client.group_conditions
    assert "lastTransitionTime" not in condition
    assert condition["message"] == "broken"


async def test_of_conditions_that_wait_the_newest_is_written() -> None:
    of = group()
    tested = Writes(of)
    await tested.request(of, FAILS, ERROR, FITS, FAILS)
    assert tested.written == ["Scheduled"]


async def test_scheduled_group_stays_scheduled() -> None:
    of = group()
    tested = Writes(of)
    await tested.request(of, FITS)
    await tested.request(of, FAILS)
    assert tested.written == ["Scheduled"]
    tested = Writes(of := with_condition(group(), FITS))
    await tested.request(of, FAILS)
    assert tested.written == []


async def test_failed_write_is_repeated_by_the_next_attempt() -> None:
    of = group()
    tested = Writes(of)
    tested.client.errors["group"] = [refused(500), ApiError(404, "NotFound", "gone"), RuntimeError("lost")]
    for _ in range(4):
        await tested.request(of, FITS)
    assert tested.written == ["Scheduled"]


async def test_deleted_and_recreated_groups_are_not_written() -> None:
    of = group()
    tested = Writes(group(uid="other"))
    await tested.request(of, FITS)
    tested.groups.drop(of)
    await tested.request(of, FITS)
    assert tested.written == []


@pytest.mark.parametrize(("release", "generations"), [(GATED, [0, 3]), (GATED_38, [0])], ids=["1.37", "1.38"])
async def test_generation_of_a_scheduled_group(release: Release, generations: list[int]) -> None:
    async with running(node("n1"), release=release) as stand:
        await submit(stand, group(least=1), *members(1))
        newer = with_condition(group(least=1), FITS, generation=3)
        stand.scheduler.take(newer)
        await stand.settled(member("late", requests={"cpu": 1}))
        assert stand.bound.keys() == {"p0", "late"}
        assert [one["observedGeneration"] for _, one in stand.client.group_conditions] == generations
        assert {one[:2] for one in conditions(stand)} == {("True", "Scheduled")}
