"""Conditions of a pod are written one after another, and never after its binding."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, cast

import pytest

from policysched.framework import ApiError, Client, Event, PodStatusChange
from policysched.model.objects import Pod
from policysched.model.policy import Policy
from policysched.schedule import pod_status_writes
from policysched.schedule.pod_status_writes import ConditionWrites
from policysched.state.placed.pods import pod_id
from tests.build import pod


class SlowClient:
    """A client that writes conditions when it is released, or raises an error."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.written: list[str] = []
        self.turn, self.go = asyncio.Event(), asyncio.Event()
        self.turn.set()
        self.refusal: ApiError | None = None

    async def set_pod_status(self, of: Pod, change: PodStatusChange) -> None:
        assert change.condition is not None
        text = f"{of.metadata.name} {change.condition['message']}"
        self.asked.append(text)
        await self.go.wait()
        if self.refusal is not None:
            raise self.refusal
        self.written.append(text)

    async def report_pod_status(self, of: Pod, newest: Callable[[], PodStatusChange]) -> None:
        await self.turn.wait()
        await self.set_pod_status(of, newest())

    async def bind(self, of: Pod, node: str) -> None:
        raise AssertionError(f"{of.key} is not to be bound to {node}")

    async def set_policy_status(self, policy: str, resource_version: str, status: dict[str, Any]) -> None:
        raise AssertionError(f"{policy} at {resource_version} has no status {status}")

    async def annotate_policy(self, policy: Policy, annotations: dict[str, str]) -> str:
        raise AssertionError(f"{policy.key} has no annotations {annotations}")

    def record(self, event: Event) -> None:
        raise AssertionError(f"{event} is not to be recorded")


def writing(client: SlowClient) -> ConditionWrites:
    """Return the writer of conditions with a client."""
    return ConditionWrites(cast("Client", client))


def start(writes: ConditionWrites, of: Pod, message: str) -> asyncio.Task[None]:
    return asyncio.create_task(writes.write(of, PodStatusChange({"message": message})))


async def turns(count: int = 10) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_newer_condition_waits_for_the_older_one_of_its_pod_alone() -> None:
    client = SlowClient()
    writes = writing(client)
    tasks = [start(writes, pod("a"), "1"), start(writes, pod("a"), "2"), start(writes, pod("b"), "1")]
    await turns()
    assert client.asked == ["a 1", "b 1"]
    client.go.set()
    await asyncio.gather(*tasks)
    assert client.written == ["a 1", "b 1", "a 2"]


async def test_settling_waits_for_the_condition_under_way() -> None:
    client = SlowClient()
    writes = writing(client)
    task = start(writes, pod("a"), "1")
    await turns()
    settled = asyncio.create_task(writes.settle(pod_id(pod("a"))))
    await writes.settle(pod_id(pod("b")))
    await turns()
    assert not settled.done()
    client.go.set()
    await settled
    assert task.done()
    assert client.written == ["a 1"]


async def test_settling_drops_a_condition_that_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_status_writes, "PATIENCE", 0.01)
    client = SlowClient()
    writes = writing(client)
    task = start(writes, pod("a"), "1")
    await turns()
    await writes.settle(pod_id(pod("a")))
    client.go.set()
    await turns()
    assert task.cancelled()
    assert client.written == []


@pytest.mark.parametrize(("status", "level"), [(404, "DEBUG"), (422, "DEBUG"), (403, "WARNING"), (0, "WARNING")])
async def test_refused_condition_is_logged_and_over(status: int, level: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "policysched")
    client = SlowClient()
    client.go.set()
    client.refusal = ApiError(status, "Reason", "no")
    writes = writing(client)
    await writes.write(pod("a"), PodStatusChange({"message": "1"}))
    assert [(one.levelname, one.getMessage()) for one in caplog.records] == [
        (level, 'could not write the status of pod "default/a": no')
    ]
    await writes.settle(pod_id(pod("a")))


async def test_of_conditions_that_wait_only_the_newest_is_written() -> None:
    client = SlowClient()
    writes = writing(client)
    tasks = [start(writes, pod("a"), str(number)) for number in range(100)]
    await turns()
    client.go.set()
    await asyncio.gather(*tasks)
    assert client.written == ["a 0", "a 99"]


async def test_conditions_do_not_pile_up_while_the_server_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_status_writes, "PATIENCE", 0.01)
    writes = writing(SlowClient())
    tasks = []
    for number in range(100):
        tasks.append(start(writes, pod("a"), str(number)))
        await asyncio.sleep(0.001)
    for _ in range(500):
        if sum(not task.done() for task in tasks) == 1:
            break
        await asyncio.sleep(0.01)
    assert sum(not task.done() for task in tasks) == 1
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_what_waits_for_its_turn_takes_along_what_is_newer_and_keeps_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pod_status_writes, "PATIENCE", 0.0)
    client = SlowClient()
    client.turn.clear()
    client.go.set()
    writes = writing(client)
    first = start(writes, pod("a"), "1")
    await turns()
    for number in range(2, 5):
        await writes.write(pod("a"), PodStatusChange({"message": str(number)}))
    await turns()
    assert not first.done()
    client.turn.set()
    await first
    assert client.written == ["a 4"]


async def test_settling_drops_at_once_what_waits_for_its_turn() -> None:
    client = SlowClient()
    client.turn.clear()
    writes = writing(client)
    task = start(writes, pod("a"), "1")
    await turns()
    await writes.settle(pod_id(pod("a")))
    await turns()
    assert task.cancelled()
    client.turn.set()
    client.go.set()
    await start(writes, pod("a"), "2")
    assert client.written == ["a 2"]


async def test_what_a_binding_waits_for_goes_first_with_what_waited() -> None:
    client = SlowClient()
    client.turn.clear()
    client.go.set()
    writes = writing(client)
    task = start(writes, pod("a"), "1")
    await turns()
    await writes.write(pod("a"), PodStatusChange(nominated_node="n"), first=True)
    await turns()
    assert client.written == ["a 1"]
    assert task.cancelled()
