"""What a reloader passes on besides policies: to followers of policies, and from changes of inputs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from policysched.framework import MetricAnswer, MetricKey
from policysched.rules.policy_set.policy_set import PolicySet
from policysched.schedule import reload
from tests.rules.build import filtering, policy
from tests.schedule.reloading import GOOD, Stand, running

LOAD = MetricKey("up", "node")
READING: dict[str, Any] = {
    "metrics": [{"name": "load", "query": "up"}],
    "filters": filtering("(metrics.load < 1) ?? true"),
}


def problems(stand: Stand) -> list[str]:
    """Return the problem in each written status."""
    inputs = [status["instances"][0].get("inputs", [{}])[0] for _, _, status in stand.client.statuses]
    return [item.get("problem", "") for item in inputs]


def say(stand: Stand, problem: str) -> None:
    stand.scheduler.set_metric(MetricAnswer(LOAD, None, problem))
    stand.reloader.check_soon()


async def test_news_is_told_before_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reload, "NEWS_GATHER", 0.01)
    async with running(policy("p", **READING)) as stand:
        assert problems(stand) == [""]
        say(stand, "down")
        await stand.until(lambda: len(stand.client.statuses) == 2)
        assert problems(stand) == ["", "down"]


async def test_news_is_gathered_so_that_a_crowd_of_it_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reload, "NEWS_GATHER", 0.1)
    async with running(policy("p", **READING)) as stand:
        for number in range(5):
            say(stand, f"problem {number}")
            await asyncio.sleep(0.005)
        await stand.until(lambda: len(stand.client.statuses) == 2)
        await asyncio.sleep(0.2)
        assert problems(stand) == ["", "problem 4"]


async def test_news_that_is_none_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reload, "NEWS_GATHER", 0.01)
    async with running(policy("p", **READING)) as stand:
        stand.reloader.check_soon()
        await asyncio.sleep(0.1)
        assert problems(stand) == [""]


async def test_the_first_status_knows_what_came_before_it() -> None:
    stand = Stand()
    await stand.reloader.start([policy("p", **READING)])
    stand.scheduler.set_metric(MetricAnswer(LOAD, None, "down"))
    task = asyncio.create_task(stand.reloader.run())
    await stand.settled()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert problems(stand) == ["down"]


async def test_who_else_follows_policies_is_told_of_each_swap() -> None:
    told: list[list[str]] = []

    def follow(policies: PolicySet) -> None:
        told.append([plugin.policy.key for plugin in policies.active])

    async with running() as stand:
        stand.reloader.on_swap = follow
        await stand.settled(policy("a", **GOOD))
        await stand.settled(policy("b", **GOOD), "a")
    assert told == [["a"], ["a", "b"], ["b"]]
