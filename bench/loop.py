"""Longest time without yielding to the event loop, for the whole scheduler.

The scheduler of `policysched run` runs in this process; an API server in memory and its clients run in another.
Phases: start, policies applied, edited and deleted, pods created and deleted, waiting pods that one change helps,
changed nodes. Times are processor time of the scheduler's thread. Prints a table by phase, and the longest chunks
with their tasks.

    python -m bench.loop [--nodes 5000] [--pods 2000] [--policies 20] [--waiting 2000]
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import sys
import time
from asyncio import events
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

from bench import rules
from policysched.app.clock import SystemClock
from policysched.app.configuration.election import NO_ELECTION
from policysched.app.demo.sandbox_setup import new_sandbox, start, written_kubeconfig
from policysched.app.demo.scheduled_sandbox import Api
from policysched.app.running.run import run_scheduler
from policysched.app.running.run_options import RunOptions
from policysched.kube.connection import Connection
from policysched.kube.transport import Transport
from policysched.model.policy import API_VERSION, KIND
from policysched.sandbox import Sandbox

Object = dict[str, Any]
AT_ONCE = 32
"""Largest number of concurrent requests of the clients."""
LIMIT = 0.010
"""Target for the longest time without yielding to the event loop. Units: seconds."""


@dataclass
class Pieces:
    """The processor times of the event loop's callbacks, by phase of the benchmark."""

    phase: str = "start"
    taken: dict[str, list[tuple[float, str]]] = field(default_factory=dict)
    """Processor time (seconds) and name of each callback, by phase."""
    _collecting: float = 0.0

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Measure every callback of the event loop during the block, including garbage collections."""
        run = events.Handle._run

        def timed(handle: events.Handle) -> None:
            begin = time.thread_time()
            run(handle)
            taken = time.thread_time() - begin
            what = (
                f"{_name(handle)}, {self._collecting * 1000:.0f} of it garbage" if self._collecting else _name(handle)
            )
            self.taken.setdefault(self.phase, []).append((taken, what))
            self._collecting = 0.0

        def collected(phase: str, _: dict[str, int]) -> None:
            self._collecting += time.thread_time() * (1 if phase == "stop" else -1)

        events.Handle._run = timed  # type: ignore[assignment,method-assign]
        gc.callbacks.append(collected)
        try:
            yield
        finally:
            gc.callbacks.remove(collected)
            events.Handle._run = run  # type: ignore[method-assign]


def _name(handle: events.Handle) -> str:
    """Return the name of a callback: the coroutine of its task, or the function."""
    called = handle._callback  # type: ignore[attr-defined]
    task = getattr(called, "__self__", None)
    if isinstance(task, asyncio.Task):
        return str(getattr(task.get_coro(), "__qualname__", "task"))
    return str(getattr(called, "__qualname__", type(called).__name__))


def node(index: int) -> Object:
    """Return a node."""
    return {"apiVersion": "v1", "kind": "Node", **rules.node(index)}


def pod(index: int, name: str, **spec: Any) -> Object:
    """Return a pod of a class of `bench.rules`."""
    made = msgspec.to_builtins(rules.pod(index % rules.CLASSES, index))
    metadata = {"name": name, "namespace": "default", "labels": made["metadata"]["labels"]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": made["spec"] | spec}


def policy(number: int, version: int = 0) -> Object:
    """Return a policy, whose constants depend on the version."""
    made = rules.policies(number + 1)[number]
    spec = rules._filled(msgspec.to_builtins(made.spec), 0)
    spec["filters"][0] = {"name": "f0", "require": f'node.name != "none-{number}-{version}"'}
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": made.key}, "spec": spec}


class Users:
    """The clients of the API server, which create objects and wait for the scheduler."""

    def __init__(self, sandbox: Sandbox, api: Api) -> None:
        self.sandbox, self.api = sandbox, api

    async def each(self, work: Iterable[Callable[[], Awaitable[Any]]]) -> None:
        """Send requests, some concurrently."""
        room = asyncio.Semaphore(AT_ONCE)

        async def one(ask: Callable[[], Awaitable[Any]]) -> None:
            async with room:
                await ask()

        await asyncio.gather(*map(one, work))

    async def create(self, objects: Iterable[Object]) -> None:
        """Create objects."""
        await self.each([partial(self.api.create, made) for made in objects])

    async def until(self, so: Callable[[], bool], what: str, seconds: float = 600.0) -> None:
        """Wait until a condition is true.

        Raises:
            SystemExit: it was not true in time.
        """
        end = time.monotonic() + seconds
        while not so():
            if time.monotonic() > end:
                raise SystemExit(f"{what}: not so after {seconds:g} s")
            await asyncio.sleep(0.5)

    def settled(self, prefix: str, placed: bool) -> bool:
        """Return whether all pods with a name prefix have a node, or a reason if they should have none."""
        pods = [one for one in self.sandbox.objects("Pod") if one["metadata"]["name"].startswith(prefix)]
        return all(one["spec"].get("nodeName") or (not placed and one["status"].get("conditions")) for one in pods)

    def observed(self) -> bool:
        """Return whether the latest generation of every policy is in force."""
        found = ((one["metadata"]["generation"], one.get("status") or {}) for one in self.sandbox.objects(KIND))
        return all(status.get("activeGeneration") == generation for generation, status in found)


async def use(users: Users, given: argparse.Namespace) -> None:
    """Run all phases."""

    async def phase(name: str, work: Awaitable[None], so: Callable[[], bool]) -> None:
        say(name)
        await work
        await users.until(so, name)

    edited = [policy(number, 1) for number in range(given.policies)]
    big = {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"example.com/none": "1"}}}]}
    waiting = [pod(number, f"waiting-{number}", **big) for number in range(given.waiting)]
    names = [f"node-{number}" for number in range(0, given.nodes, max(1, given.nodes // 500))]
    await phase("first decisions", users.create([pod(0, "first")]), lambda: users.settled("first", True))
    await phase("policies come", users.create(map(policy, range(given.policies))), users.observed)
    pods = [pod(number, f"pod-{number}") for number in range(given.pods)]
    await phase("pods come", users.create(pods), lambda: users.settled("pod-", True))
    edits = users.each(
        [partial(users.api.patch, KIND, one["metadata"]["name"], {"spec": one["spec"]}) for one in edited]
    )
    await phase("policies are edited", edits, users.observed)
    await phase("pods wait", users.create(waiting), lambda: users.settled("waiting-", False))
    labels = {"metadata": {"labels": {"rack": "other", "price": "7"}}}
    changes = users.each([partial(users.api.patch, "Node", name, labels) for name in names])
    await phase("nodes change", changes, users.observed)
    helped = users.create([_roomy("helps", 2 * given.waiting)])
    await phase("waiting pods are helped", helped, lambda: users.settled("waiting-", True))
    gone = users.each(
        [partial(users.api.delete, "Pod", name) for name in (one["metadata"]["name"] for one in pods[::2])]
    )
    await phase("pods go", gone, users.observed)
    removed = users.each([partial(users.api.delete, KIND, one["metadata"]["name"]) for one in edited])
    await phase("policies go", removed, lambda: not users.sandbox.objects(KIND))


def _roomy(name: str, pods: int) -> Object:
    """Return a node with room for many pods and the extended resource that the waiting pods request."""
    made = node(0)
    amounts = {"cpu": "9999", "memory": "99Ti", "pods": str(pods), "example.com/none": str(pods)}
    return {
        **made,
        "metadata": {**made["metadata"], "name": name},
        "status": {**made["status"], "allocatable": amounts},
    }


async def serve(given: argparse.Namespace) -> None:
    """Serve the API and run its clients in a separate process; the phases are written to the standard output."""
    sandbox = new_sandbox(kubelet_seconds=None)
    sandbox.load([node(number) for number in range(given.nodes)])
    sandbox.load(pod(n, f"placed-{n}", nodeName=f"node-{n % given.nodes}") for n in range(given.placed))
    await start(sandbox)
    connection = Connection(sandbox.url, SystemClock())
    try:
        with written_kubeconfig(sandbox.kubeconfig()) as path:
            say(str(path))
            await use(Users(sandbox, Api(Transport(connection))), given)
            say("end")
            await asyncio.to_thread(sys.stdin.read)
    finally:
        await connection.close()
        await sandbox.stop()


def say(line: str) -> None:
    """Write a line to the scheduler's process."""
    print(line, flush=True)


async def schedule(arguments: Sequence[str], pieces: Pieces) -> None:
    """Run the scheduler until the clients have finished."""
    command = (sys.executable, "-m", "bench.loop", "--serve", *arguments)
    pipe = asyncio.subprocess.PIPE
    users = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
    stop, said = asyncio.Event(), users.stdout or asyncio.StreamReader()

    async def follow() -> None:
        async for line in said:
            pieces.phase = line.decode().strip()
            if pieces.phase == "end":
                break
        stop.set()

    path = Path((await said.readline()).decode().strip())
    with pieces.watched():
        following = asyncio.create_task(follow())
        await run_scheduler(RunOptions(kubeconfig=path, leader_election=NO_ELECTION), stop)
        await following
    await users.communicate(b"")


def show(pieces: Pieces) -> None:
    """Print the callbacks of each phase, and the longest callbacks."""
    table = Table(title="pieces of work between two turns of the loop, ms of processor time")
    for title in ("phase", "pieces", "median", "p99", "longest", f"over {LIMIT * 1000:g} ms"):
        table.add_column(title, justify="left" if title == "phase" else "right")
    for phase, taken in pieces.taken.items():
        times = sorted(seconds for seconds, _ in taken)
        over = sum(seconds > LIMIT for seconds in times)
        shown = (_at(times, 0.5), _at(times, 0.99), times[-1])
        table.add_row(phase, f"{len(times):,}", *(f"{one * 1000:.2f}" for one in shown), str(over))
    console = Console(width=120)
    console.print(table)
    longest = sorted(((s, phase, name) for phase, taken in pieces.taken.items() for s, name in taken), reverse=True)
    for seconds, phase, name in longest[:12]:
        console.print(f"{seconds * 1000:8.2f} ms  {phase}: {name}", highlight=False)


def _at(times: Sequence[float], share: float) -> float:
    return times[min(len(times) - 1, int(share * len(times)))]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=5000, help="number of nodes")
    parser.add_argument("--placed", type=int, default=10_000, help="number of placed pods")
    parser.add_argument("--pods", type=int, default=2000, help="number of pods")
    parser.add_argument("--policies", type=int, default=20, help="number of policies")
    parser.add_argument("--waiting", type=int, default=2000, help="number of waiting pods")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    logging.getLogger("policysched").setLevel(logging.ERROR)
    if given.serve:
        asyncio.run(serve(given))
        return
    pieces = Pieces()
    asyncio.run(schedule(sys.argv[1:], pieces))
    show(pieces)


if __name__ == "__main__":
    main()
