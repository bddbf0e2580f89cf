"""Preemption with out-of-tree plugins: victims help only if the plugins accept the node as well."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from policysched.app.configuration.profiles import configured_profiles
from policysched.framework import Code, Status, unresolvable, unschedulable
from policysched.framework.profile import Profile
from policysched.framework.registry import PluginRegistry
from policysched.model.objects import Pod
from tests.build import node, pod
from tests.schedule.out_of_tree import SKIPPED, Scripted
from tests.schedule.stand import ME, running

LOW = [pod(f"low-{name}", on=name, requests={"cpu": 3}, priority=0) for name in ("n1", "n2")]
HIGH = pod("high", requests={"cpu": 3}, priority=100)
NODES = [node("n1"), node("n2")]


def profile_of(plugin: Any) -> Profile:
    registry = PluginRegistry()
    registry.register("X", lambda _args, _handle: plugin)
    enabled = {"multiPoint": {"enabled": [{"name": "X"}]}}
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": ME, "plugins": enabled}],
    }
    return configured_profiles(config, registry)[ME]


def without_low(state: Any, _of: Pod, on: Any) -> Status | None:
    """Accept a node without pods, after checking that the cycle state has the same count as the node."""
    assert state.read("count")[on.name] == on.pods_count
    return unschedulable("others are here") if on.pods_count else None


def counting(**answers: Any) -> Scripted:
    def count(state: Any, _of: Pod, nodes: Any) -> None:
        state.write("count", {one.name: one.pods_count for one in nodes})

    def more(by: int) -> Any:
        def changed(state: Any, _of: Pod, _other: Pod, on: Any) -> None:
            state.read("count")[on.name] += by

        return changed

    return Scripted(
        **{"pre_filter": count, "add_pod": more(1), "remove_pod": more(-1), "filter": without_low, **answers}
    )


@pytest.mark.parametrize(
    ("answers", "nodes"),
    [
        ({}, {"n1", "n2"}),
        ({"filter": lambda _state, _of, on: unresolvable("never") if on.name == "n1" else None}, {"n2"}),
        ({"filter": lambda _state, _of, on: unschedulable("never") if on.name == "n2" else None}, {"n1"}),
        ({"filter": unschedulable("never")}, set()),
        ({"remove_pod": ValueError("a bug")}, set()),
    ],
)
async def test_victims_are_sought_where_out_of_tree_filters_would_pass(
    answers: dict[str, Any], nodes: set[str]
) -> None:
    plugin = counting(**answers)
    async with running(*NODES, of=profile_of(plugin)) as stand:
        for one in LOW:
            stand.scheduler.set_pod(one)
        await stand.settled(HIGH)
        kept = stand.scheduler.cluster.nominations.get("default.high")
        assert (kept is None) is not bool(nodes)
        assert kept is None or kept.node in nodes
        assert len(stand.client.deleted) == bool(nodes)
        assert stand.bound == {}


@pytest.mark.parametrize(
    ("answers", "nodes"),
    [
        ({"filter": {"n1": unschedulable("never")}}, ["n2"]),
        ({"filter": {"n2": unresolvable("never")}}, ["n1"]),
        ({"filter": unschedulable("never")}, []),
        ({"filter": ValueError("a bug")}, []),
    ],
)
async def test_plugin_that_rejected_a_pod_at_pre_filter_is_asked_which_victims_help(
    answers: dict[str, Any], nodes: list[str]
) -> None:
    plugin = Scripted(pre_filter=unschedulable("not yet"), **answers)
    async with running(*NODES, of=profile_of(plugin)) as stand:
        for one in LOW:
            stand.scheduler.set_pod(one)
        await stand.settled(HIGH)
        kept = stand.scheduler.cluster.nominations.get("default.high")
        assert ([kept.node] if kept else []) == nodes
        assert len(stand.client.deleted) == len(nodes)
        assert {"X.filter n1", "X.filter n2"} <= set(plugin.log)


async def test_error_of_a_filter_in_what_preemption_tries_names_the_plugin() -> None:
    plugin = Scripted(pre_filter=unschedulable("not yet"), filter=Status(Code.ERROR, ("broken",)))
    async with running(*NODES, of=profile_of(plugin)) as stand:
        for one in LOW:
            stand.scheduler.set_pod(one)
        await stand.settled(HIGH)
        [note] = stand.notes
        assert note == '0/2 nodes are available: not yet. preemption: running "X" filter plugin: broken'


async def test_plugin_that_skipped_a_pod_at_pre_filter_is_not_asked_which_victims_help() -> None:
    plugin = Scripted(pre_filter=SKIPPED, filter=unschedulable("never"))
    async with running(*NODES, of=profile_of(plugin)) as stand:
        for one in LOW:
            stand.scheduler.set_pod(one)
        await stand.settled(HIGH)
        assert len(stand.client.deleted) == 1
        assert not [call for call in plugin.log if "filter n" in call and "pre_filter" not in call]


class Binding:
    """A plugin with work in PreBind for one pod, until the work is released or cancelled."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.heard: list[str] = []

    def pre_bind_pre_flight(self, _state: Any, of: Pod, _on: str) -> Status | None:
        return None if of.metadata.name == "low" else Status(Code.SKIP)

    def reserve(self, *_: Any) -> None:
        pass

    def unreserve(self, *_: Any) -> None:
        self.heard.append("unreserved")


class InThread(Binding):
    def pre_bind(self, *_: Any) -> None:
        self.go.wait(10)
        self.heard.append("ended")


class OnLoop(Binding):
    async def pre_bind(self, *_: Any) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.heard.append("cancelled")
            raise


@pytest.mark.parametrize(("plugin", "end"), [(InThread(), "ended"), (OnLoop(), "cancelled")])
async def test_pre_bind_of_a_victim_is_cancelled_on_the_loop_and_waited_for_in_a_thread(
    plugin: Binding, end: str
) -> None:
    async with running(node("n1"), of=profile_of(plugin)) as stand:
        await stand.settled(pod("low", requests={"cpu": 3}, priority=0))
        await stand.settled(HIGH)
        plugin.go.set()
        for _ in range(2000):
            if "unreserved" in plugin.heard:
                break
            await asyncio.sleep(0.005)
        await stand.pass_time(2)
        assert plugin.heard == [end, "unreserved"]
        assert (stand.client.deleted, stand.bound) == ([], {"high": "n1"})
