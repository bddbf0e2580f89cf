"""What out-of-tree plugins reach the scheduler with, from the loop and from other threads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from policysched.errors import NotConnectedError
from policysched.framework import AssumedPod, Cluster, Code, Handle, Status, Wait, WaitingPod
from policysched.framework.out_of_tree.handle import PluginHandle
from tests.build import cluster, node, pod
from tests.schedule.parts import FakeClient
from tests.schedule.queue_parts import StandingClock

POD = pod()


class Around:
    """A handle with all that it reaches."""

    def __init__(self) -> None:
        self.client = FakeClient()
        self.activated: list[str] = []
        self.waiting: dict[str, WaitingPod] = {}
        self.cluster: Cluster = cluster(node("a"), pod("placed", on="a"), pod("stray", on="nowhere"))
        self.handle = PluginHandle("mine")
        services = Handle(self.client, StandingClock(), asyncio.sleep, self.waiting, self.activated.extend)
        self.handle.connect(self.cluster, services)

    def wait(self) -> WaitingPod:
        waits = {"A": Wait(60), "B": Wait(60)}
        made = self.waiting["default.p"] = WaitingPod(AssumedPod(POD, "a", self.cluster), waits)
        return made


async def here(ask: Callable[[], Any]) -> Any:
    return ask()


WAYS = pytest.mark.parametrize("way", [here, asyncio.to_thread])


async def test_nodes_and_pods_are_those_of_the_cluster() -> None:
    handle = Around().handle
    assert handle.profile_name == "mine"
    assert [one.name for one in handle.nodes] == ["a"]
    found = handle.node("a")
    assert found is not None
    assert found.name == "a"
    assert handle.node("nowhere") is handle.node("never") is None
    assert [one.metadata.name for one in handle.pods] == ["placed", "stray"]


@WAYS
async def test_pods_are_activated_and_events_written_from_any_thread(way: Any) -> None:
    around = Around()
    await way(lambda: around.handle.activate([POD]))
    await way(lambda: around.handle.record(POD, "Warning", "Late", "it is late"))
    await asyncio.sleep(0)
    assert around.activated == ["default.p"]
    assert around.client.told == [("default/p", "Late", "it is late")]
    assert around.client.events[0].at == around.handle.clock.now()


@WAYS
async def test_waiting_pods_are_allowed_from_any_thread(way: Any) -> None:
    around = Around()
    waiting = around.wait()
    assert around.handle.waiting_pods() == [waiting]
    assert around.handle.get_waiting_pod("default.p") is waiting
    assert (around.handle.get_waiting_pod("other"), waiting.pod) == (None, POD)
    for name in "AB":
        assert name in waiting.pending
        await way(lambda name=name: waiting.allow(name))
    assert await waiting.outcome() is None


@WAYS
async def test_waiting_pods_are_rejected_from_any_thread_and_once(way: Any) -> None:
    around = Around()
    waiting = around.wait()
    assert await way(lambda: around.handle.reject_waiting_pod("default.p"))
    assert await waiting.outcome() == Status(Code.UNSCHEDULABLE, ("removed",))
    assert not await way(lambda: waiting.reject("A", "again"))
    assert not await way(lambda: around.handle.reject_waiting_pod("other"))


async def test_code_in_a_thread_of_its_own_waits_for_the_client() -> None:
    around = Around()
    await asyncio.to_thread(lambda: around.handle.wait_for(around.client.bind(POD, "a")))
    assert around.client.bound == [("default/p", "a")]


async def test_code_on_the_loop_cannot_wait_for_the_loop() -> None:
    around = Around()
    with pytest.raises(NotConnectedError, match="wait_for works only in PreBind, Bind and PostBind"):
        around.handle.wait_for(around.client.bind(POD, "a"))


def test_handle_that_is_not_connected_says_so() -> None:
    handle = PluginHandle()
    with pytest.raises(NotConnectedError, match="the scheduler has not started"):
        _ = handle.nodes
    handle.connect(cluster())
    assert list(handle.nodes) == []
    with pytest.raises(NotConnectedError, match="no scheduler is running"):
        handle.activate([POD])
