"""Trouble while pods are bound: every pod that can run is bound, and the nodes are filled exactly to the brim.

The pods of these tests fill all nodes. A scheduler that forgot an assumed pod would overfill a node, one that kept
a pod too many would leave the last one pending.
"""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from policysched.app.configuration.election import NO_ELECTION
from policysched.app.running.process import EVENTS_DEADLINE
from policysched.app.running.run import run_scheduler
from policysched.app.running.run_options import RunOptions
from policysched.errors import OutOfMemoryError
from policysched.model.objects import Pod
from policysched.sandbox import Sandbox
from policysched.schedule.scheduler import LAST_WORDS, Scheduler
from tests.e2e.conftest import Spawning
from tests.e2e.objects import NAME, Json, node, pod, unfit
from tests.e2e.proxy import Proxy, proxied, quiet
from tests.e2e.schedulers import InProcess, in_process
from tests.e2e.server import Server, scheduled_condition
from tests.e2e.stuttering import network
from tests.e2e.waiting import DEADLINE, until, until_true

A_NODE = 20
"""How many of the pods fill a node."""
BINDING = "/binding"
PODS = "/api/v1/pods"
PODS_OF_DEFAULT = "/api/v1/namespaces/default/pods"


def full_house(nodes: int) -> tuple[list[Json], list[Json]]:
    """Nodes, and as many pods as just fit on them."""
    pods = [pod(f"p{number:03}", requests={"cpu": "200m"}) for number in range(nodes * A_NODE)]
    return [node(f"n{number}") for number in range(nodes)], pods


async def all_are_bound(server: Server, nodes: int) -> None:
    """Wait until all pods are placed, and check that every node is full."""
    found = await server.placed()
    assert len(found) == nodes * A_NODE
    assert Counter(found.values()) == {f"n{number}": A_NODE for number in range(nodes)}
    conditions = [scheduled_condition(one)["status"] for one in await server.objects("Pod")]
    assert set(conditions) == {"True"}


async def scheduled_events(server: Server) -> Counter[str]:
    """Count the Scheduled events of each pod."""
    events = [one for one in await server.objects("Event") if one["reason"] == "Scheduled"]
    assert not [one for one in events if one.get("series")]
    return Counter(one["regarding"]["name"] for one in events)


async def each_is_announced_once(server: Server) -> None:
    """Wait until every pod has a Scheduled event, and check that none has two."""
    names = set(await server.nodes_of())
    counts = await until(lambda: scheduled_events(server), lambda seen: set(seen) == names)
    assert set(counts.values()) == {1}


async def bound_so_far(server: Server) -> int:
    """Count the pods that have a node."""
    return sum(map(bool, (await server.nodes_of()).values()))


async def test_server_that_goes_away_in_the_middle_is_waited_for(
    server: Server, sandbox: Sandbox, scheduler: InProcess
) -> None:
    nodes, pods = full_house(5)
    await server.load(*nodes)
    sandbox.faults.delay("POST", BINDING, 20, times=40)
    await server.load(*pods)
    await until(lambda: bound_so_far(server), lambda count: count == 60)
    port = int(server.url.rpartition(":")[2])
    await sandbox.stop()
    sandbox.faults.clear()
    await until_true(lambda: len(scheduler.saying("cannot determine whether pod")) == 40)
    await sandbox.start(port)
    await all_are_bound(server, 5)
    await each_is_announced_once(server)


async def test_sigterm_in_the_middle_loses_no_pod(server: Server, sandbox: Sandbox, spawning: Spawning) -> None:
    nodes, pods = full_house(10)
    await server.load(*nodes)
    sandbox.faults.fail("POST", "/pods/p0[0-4].*/binding", 503, times=None)
    sandbox.faults.delay("POST", "/pods/p0[5-9].*/binding", 1, times=None)
    async with spawning() as scheduler:
        loading = asyncio.create_task(server.load(*pods))
        await until(lambda: bound_so_far(server), lambda count: count >= 20)
        assert await scheduler.end() == 0
        await loading
    sandbox.faults.clear()
    assert await bound_so_far(server) <= 150
    assert set(await scheduled_events(server)) == {name for name, at in (await server.nodes_of()).items() if at}
    async with spawning():
        await all_are_bound(server, 10)
        await each_is_announced_once(server)


async def test_kill_in_the_middle_loses_no_pod(server: Server, sandbox: Sandbox, spawning: Spawning) -> None:
    nodes, pods = full_house(5)
    await server.load(*nodes)
    sandbox.faults.delay("POST", BINDING, 20, times=50)
    async with spawning() as scheduler:
        await server.load(*pods)
        await until(lambda: bound_so_far(server), lambda count: count == 50)
        assert await scheduler.end(signal.SIGKILL) == -signal.SIGKILL
    sandbox.faults.clear()
    async with spawning():
        await all_are_bound(server, 5)


async def test_end_does_not_wait_for_a_server_that_does_not_answer(
    server: Server, sandbox: Sandbox, scheduler: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert LAST_WORDS + EVENTS_DEADLINE < 20, "a pod has 30 seconds to end by default"
    monkeypatch.setattr("policysched.schedule.scheduler.Scheduler.last_words", 0.2)
    await server.load(node("n1"))
    sandbox.faults.delay("POST", BINDING, 60)
    await server.load(pod("web"))
    await until_true(lambda: sandbox.faults.seen == 1)
    await scheduler.stop()
    assert scheduler.saying("stopped before the API server answered 1 binding or status request(s)")


Trouble = Callable[[Sandbox], None]


def too_old(sandbox: Sandbox) -> None:
    sandbox.forget_history()
    sandbox.close_watches()


def half_a_line(sandbox: Sandbox) -> None:
    for resource in ("pods", "nodes"):
        sandbox.faults.cut_watch(f"/api/v1/{resource}", after=1)
    sandbox.close_watches()


def broken_watches(make: Trouble) -> Trouble:
    def trouble(sandbox: Sandbox) -> None:
        make(sandbox)
        sandbox.close_watches()

    return trouble


def broken_lists(make: Trouble) -> Trouble:
    def trouble(sandbox: Sandbox) -> None:
        make(sandbox)
        too_old(sandbox)

    return trouble


BUSY = {"Retry-After": "1"}
TROUBLE: dict[str, Trouble] = {
    "bindings fail": lambda box: box.faults.fail("POST", BINDING, 500, times=10),
    "bindings are too many": lambda box: box.faults.fail("POST", BINDING, 429, times=10, headers=BUSY),
    "bindings are reset": lambda box: box.faults.reset("POST", BINDING, times=10),
    "answers to bindings are lost": lambda box: box.faults.reset("POST", BINDING, times=10, handled=True),
    "bindings are answered by a proxy": lambda box: box.faults.html("POST", BINDING, times=10),
    "bindings are answered by a page of status 200": lambda box: box.faults.html("POST", BINDING, 200, times=1),
    "watches are too old": too_old,
    "watches end": lambda box: box.close_watches(),
    "watches end in the middle of a line": half_a_line,
    "watches are reset": broken_watches(lambda box: box.faults.reset("GET", "/api/v1/(pods|nodes)", times=2)),
    "watches are answered by a proxy": broken_watches(
        lambda box: box.faults.html("GET", "/api/v1/(pods|nodes)", times=2)
    ),
    "watches get a page of status 200": broken_watches(
        lambda box: box.faults.html("GET", "/api/v1/(pods|nodes).*watch", 200, times=2)
    ),
    "lists fail": broken_lists(lambda box: box.faults.fail("GET", "/api/v1/pods.limit", 500)),
    "lists are too many": broken_lists(lambda box: box.faults.fail("GET", "/api/v1/pods", 429, headers=BUSY)),
    "lists get a page of status 200": broken_lists(lambda box: box.faults.html("GET", "/api/v1/pods.limit", 200)),
    "events fail": lambda box: box.faults.fail("POST", "/events", 500, times=3),
    "events are forbidden": lambda box: box.faults.deny("/events"),
}


@pytest.mark.parametrize("trouble", TROUBLE.values(), ids=TROUBLE)
async def test_trouble_of_the_server_costs_no_pod(
    server: Server, sandbox: Sandbox, scheduler: InProcess, trouble: Trouble
) -> None:
    nodes, pods = full_house(2)
    await server.load(*nodes, *pods[:A_NODE])
    await until(lambda: bound_so_far(server), lambda count: count == A_NODE)
    trouble(sandbox)
    await server.load(*pods[A_NODE:])
    await all_are_bound(server, 2)
    assert not scheduler.saying("ERROR"), scheduler.lines


@pytest.mark.usefixtures("sandbox")
async def test_network_that_stutters_and_breaks_costs_no_pod(server: Server, tmp_path: Path) -> None:
    nodes, pods = full_house(3)
    port = int(server.url.rpartition(":")[2])
    async with network(port, tmp_path) as (between, kubeconfig), in_process(kubeconfig) as scheduler:
        between.stutters = True
        await server.load(*nodes, *pods)
        await all_are_bound(server, 3)
        assert between.broken
        between.stutters = False
        assert not scheduler.saying("ERROR"), scheduler.lines


async def test_place_of_a_lost_binding_is_kept_while_the_server_refuses_to_tell_of_its_pod(
    server: Server, sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("policysched.plugins.default_binder.READ_AGAIN", 0.1)
    await server.load(node("n1"), *(pod(name, requests={"cpu": "3"}) for name in ("one", "two")))
    await server.patch("Node", "n1", {"spec": {"unschedulable": True}})
    async with proxied(server, tmp_path, Proxy) as (between, kubeconfig), in_process(kubeconfig) as scheduler:
        for name in ("one", "two"):
            await until(partial(server.events, name), bool)
        # the answer to the binding is lost, the watch tells nothing of it, and the pod may not be read
        await between.strike(quiet, PODS)
        await until_true(lambda: between.struck[PODS] > 0)
        sandbox.faults.reset("POST", BINDING, handled=True)
        sandbox.faults.fail("GET", f"{PODS_OF_DEFAULT}/(one|two)$", 403, times=None)
        await server.patch("Node", "n1", {"spec": {"unschedulable": None}})
        await until_true(lambda: sandbox.faults.seen >= 5)
        await scheduler.said("cannot determine whether pod")
        # both ask for more than half of the node
        assert sorted((await server.nodes_of()).values()) == ["", "n1"]
        sandbox.faults.clear()
        [bound] = [name for name, at in (await server.nodes_of()).items() if at]
        await until(lambda: server.events(bound), lambda seen: "Scheduled" in {one["reason"] for one in seen})
        await between.heal()
        [left] = {"one", "two"} - {bound}
        await server.turned_away(left, unfit(1, "1 Insufficient cpu"))
        assert await server.nodes_of() == {bound: "n1", left: ""}


async def test_process_ends_with_a_line_where_no_memory_is_left_for_an_object(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    take = Scheduler.take

    def exhausted(scheduler: Scheduler, obj: object) -> None:
        if isinstance(obj, Pod) and obj.metadata.name == "large":
            raise MemoryError
        take(scheduler, obj)

    monkeypatch.setattr(Scheduler, "take", exhausted)
    options = RunOptions(kubeconfig=server.kubeconfig, scheduler_names=(NAME,), leader_election=NO_ELECTION)
    running = asyncio.create_task(run_scheduler(options, asyncio.Event()))
    await server.load(node("n1"), pod("small"))
    assert await server.placed("small") == {"small": "n1"}
    await server.load(pod("large"))
    with pytest.raises(OutOfMemoryError, match="no memory is left for a Pod"):
        await asyncio.wait_for(running, DEADLINE)
