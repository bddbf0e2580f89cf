"""Trouble of a real control plane while pods are bound: none is lost, none is counted twice, none stays counted.

After each trouble the scheduler's state must be what a fresh list of the server gives, pod by pod and node by node.
"""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from pathlib import Path

import pytest

from tests.controlplane.plane import ControlPlane
from tests.e2e.holding import Watched, watched
from tests.e2e.objects import Json, node, pod, unfit
from tests.e2e.server import Server
from tests.e2e.test_permissions import POLICIES, SCHEDULING, rule
from tests.e2e.waiting import DEADLINE, until_true

pytestmark = pytest.mark.controlplane

A_NODE = 20
"""How many of the pods fill a node."""
PATIENCE = 50.0
"""How long the pauses of a scheduler may take that found no server for a while. Units: seconds."""


def nodes(count: int) -> list[Json]:
    return [node(f"n{number:02}") for number in range(count)]


def pods(first: int, end: int) -> list[Json]:
    return [pod(f"p{number:03}", requests={"cpu": "200m"}) for number in range(first, end)]


async def no_node_is_overfull(server: Server, but: str = "") -> Counter[str]:
    """Check that no node holds more than it can; give how many pods each has, but those on one or on none."""
    counts = Counter(at for at in (await server.nodes_of()).values() if at not in {"", but})
    assert max(counts.values()) <= A_NODE, counts
    return counts


async def announced(server: Server) -> Counter[str]:
    """Count each pod's Scheduled events."""
    return Counter(one["regarding"]["name"] for one in await server.objects("Event") if one["reason"] == "Scheduled")


async def away_for_ten_seconds(server: Server, plane: ControlPlane, scheduler: Watched, number: signal.Signals) -> None:
    """Stop the API server in the middle of 300 pods, start it again, and wait until all is well.

    The last hundred are made once it is back, so that it is the middle even if the end lets all bindings be answered.
    """
    await until_true(lambda: scheduler.confirmed() >= 20)
    await asyncio.to_thread(plane.stop_apiserver, number)
    await asyncio.sleep(10)
    await asyncio.to_thread(plane.start_apiserver)
    await server.load(*pods(200, 300))
    assert len(await server.placed(seconds=PATIENCE)) == 300
    await scheduler.holds_what_is_listed(server, PATIENCE)


async def test_server_that_is_away_for_ten_seconds_costs_no_pod(
    real_server: Server, control_plane: ControlPlane
) -> None:
    await real_server.load(*nodes(15), *pods(0, 200))
    async with watched(real_server.kubeconfig) as scheduler:
        await away_for_ten_seconds(real_server, control_plane, scheduler, signal.SIGTERM)
    assert set((await no_node_is_overfull(real_server)).values()) == {A_NODE}


async def test_killed_server_costs_no_pod(real_server: Server, control_plane: ControlPlane) -> None:
    await real_server.load(*nodes(15), *pods(0, 200))
    async with watched(real_server.kubeconfig) as scheduler:
        await away_for_ten_seconds(real_server, control_plane, scheduler, signal.SIGKILL)
        await scheduler.said("cannot determine whether pod")
    assert set((await no_node_is_overfull(real_server)).values()) == {A_NODE}


async def test_history_that_expired_costs_no_pod(real_server: Server, control_plane: ControlPlane) -> None:
    await real_server.load(*nodes(5), *pods(0, 60))
    async with watched(real_server.kubeconfig) as scheduler:
        await real_server.placed()
        await asyncio.to_thread(control_plane.expire)
        gone = [one["metadata"]["name"] for one in pods(0, 20)]
        await asyncio.gather(*(real_server.delete("Pod", name) for name in gone))
        await real_server.load(*pods(60, 120))
        assert len(await real_server.placed(seconds=PATIENCE)) == 100
        await scheduler.holds_what_is_listed(real_server, PATIENCE)
        assert scheduler.saying("too old"), scheduler.lines
    assert set((await no_node_is_overfull(real_server)).values()) == {A_NODE}


async def test_pods_that_another_client_binds_stay_there(real_server: Server) -> None:
    taken = {"key": "theirs", "effect": "NoSchedule"}
    await real_server.load(*nodes(5), node("theirs", taints=[taken]), *pods(0, 100))
    wanted = [one["metadata"]["name"] for one in reversed(pods(0, 100))][::3]
    async with watched(real_server.kubeconfig) as scheduler:
        await until_true(lambda: bool(scheduler.saying('"Attempting to bind pod to node"')))
        answers = await asyncio.gather(*(real_server.bind(name, "theirs") for name in wanted), return_exceptions=True)
        refused = [error for error in answers if error is not None]
        assert all(isinstance(error, AssertionError) and "already assigned" in str(error) for error in refused)
        won = {name for name, error in zip(wanted, answers, strict=True) if error is None}
        found = await real_server.placed()
        assert {name for name, at in found.items() if at == "theirs"} == won
        await scheduler.holds_what_is_listed(real_server, DEADLINE)
        await real_server.load(*pods(100, 100 + len(won)), pod("late", requests={"cpu": "200m"}))
        await real_server.turned_away("late", unfit(6, "1 node(s) had untolerated taint(s)", "5 Insufficient cpu"))
        await scheduler.holds_what_is_listed(real_server, DEADLINE)
    assert won
    assert await no_node_is_overfull(real_server, but="theirs") == {f"n{number:02}": A_NODE for number in range(5)}
    assert not set(await announced(real_server)) & won


async def test_bindings_that_were_forbidden_succeed_once_they_are_allowed(
    real_server: Server, control_plane: ControlPlane, tmp_path: Path
) -> None:
    binding = rule("", "pods/binding", "create")
    control_plane.allow("binder", *(each for each in SCHEDULING if each != binding), *POLICIES)
    await real_server.load(*nodes(2), *pods(0, 2 * A_NODE))
    async with watched(control_plane.certificate_kubeconfig(tmp_path / "config", "binder")) as scheduler:
        for name in await real_server.nodes_of():
            refusal = f'pods "{name}" is forbidden: User "binder" cannot create resource "pods/binding"'
            message = f'running Bind plugin "DefaultBinder": {refusal} in API group "" in the namespace "default"'
            assert (await real_server.turned_away(name, message))["reason"] == "SchedulerError"
        assert set((await real_server.nodes_of()).values()) == {""}
        await asyncio.to_thread(control_plane.allow, "binder", binding, name="binding")
        assert len(await real_server.placed()) == 2 * A_NODE
        await scheduler.holds_what_is_listed(real_server, DEADLINE)
    assert await no_node_is_overfull(real_server) == {"n00": A_NODE, "n01": A_NODE}
    assert await announced(real_server) == dict.fromkeys(await real_server.nodes_of(), 1)


async def test_what_is_deleted_while_pods_are_bound_is_not_counted(real_server: Server) -> None:
    await real_server.load(*nodes(10), *pods(0, 180))
    gone = [one["metadata"]["name"] for one in reversed(pods(0, 180))][::3]
    async with watched(real_server.kubeconfig) as scheduler:
        await until_true(lambda: bool(scheduler.saying('"Attempting to bind pod to node"')))
        await asyncio.gather(real_server.delete("Node", "n09"), *(real_server.delete("Pod", name) for name in gone))
        found = await real_server.placed()
        assert len(found) == 120
        await scheduler.holds_what_is_listed(real_server, DEADLINE)
        room = 9 * A_NODE - sum(at != "n09" for at in found.values())
        await real_server.load(*pods(180, 180 + room), pod("late", requests={"cpu": "200m"}))
        await real_server.turned_away("late", unfit(9, "9 Insufficient cpu"))
        await scheduler.holds_what_is_listed(real_server, DEADLINE)
    filled = await no_node_is_overfull(real_server, but="n09")
    assert filled == {f"n{number:02}": A_NODE for number in range(9)}
