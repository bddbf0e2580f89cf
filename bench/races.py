"""Double-booked pods of two schedulers on the same nodes, beside kube-scheduler.

Two schedulers with the default plugins run on a real API server. Each gets every second pod. The nodes are nearly full:
for each binding, the oldest placed pod is deleted, so that about 5 % of the places stay free. A pod is double-booked if
its binding is stored when its node has no free place. A kubelet would reject the pod. There are no kubelets, so the
bench deletes it. The watch of the API server has the order of bindings and deletions.

    python -m bench.races [--nodes 500] [--seconds 60] [--rates 50 200 500] [--pairs KIND+KIND …] [-o json]

Requires the Kubernetes programs that `make test` builds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from bench.cluster.client import Client, Json
from bench.cluster.schedulers import RunningScheduler
from bench.cluster.workloads import KUBE, OURS
from policysched.app.dry_run.tables import plain_table
from policysched.cli.rich_output import print_parts
from tests.controlplane.plane import ControlPlane
from tests.e2e.objects import node, pod
from tests.requeueing.control_plane import bare_plane

PLACES: Final = 10
"""Pods that fit on a node."""
FREE: Final = 0.05
"""Part of all places that stays free."""
PAIRS: Final = ((KUBE, KUBE), (OURS, KUBE), (OURS, OURS))
PATIENCE: Final = 120.0
"""Longest wait for the first bindings. Units: seconds."""
STALL: Final = 20.0
"""Longest wait for a binding after the last new pod. Units: seconds."""
DELETED_AT_ONCE: Final = {"gracePeriodSeconds": 0}
PODS: Final = "/api/v1/namespaces/default/pods"


@dataclass(slots=True)
class Bookings:
    """Placed pods by node, in the order in which the API server stored bindings and deletions."""

    places: int
    nodes: dict[str, set[str]] = field(default_factory=dict)
    oldest: deque[str] = field(default_factory=deque)
    """Placed pods, the oldest first; deleted pods stay until they are the oldest."""
    placed: dict[str, str] = field(default_factory=dict)
    """Node of each placed pod."""
    leaving: set[str] = field(default_factory=set)
    """Placed pods whose deletion was requested."""
    bound: set[str] = field(default_factory=set)
    """Pods whose binding was seen."""
    double: set[str] = field(default_factory=set)
    """Double-booked pods."""

    def take(self, kind: str, name: str, node_name: str) -> bool:
        """Record an event of a pod; return whether it shows a double booking."""
        if kind == "DELETED":
            self.nodes.get(self.placed.pop(name, ""), set()).discard(name)
            self.leaving.discard(name)
            return False
        if not node_name or name in self.bound:
            return False
        self.bound.add(name)
        there = self.nodes.setdefault(node_name, set())
        if len(there) >= self.places:
            self.double.add(name)
            return True
        there.add(name)
        self.placed[name] = node_name
        self.oldest.append(name)
        return False

    def leave(self, most: int) -> str | None:
        """Return the oldest placed pod, which is to be deleted; None if at most this number of pods stays."""
        while len(self.placed) - len(self.leaving) > most:
            if (name := self.oldest.popleft()) in self.placed:
                self.leaving.add(name)
                return name
        return None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The figures of one pair of schedulers at one rate."""

    schedulers: tuple[str, ...]
    rate: int
    """New pods per second, as requested."""
    reached: float
    """Bindings per second from the first new pod to the last binding."""
    pods: int
    bound: int
    double: int
    by_scheduler: tuple[int, ...]
    """Double-booked pods by scheduler, in the order of `schedulers`."""
    delay_ms: float
    """Median time from the creation of a pod to its event at a client; more for a busy machine. Units: ms."""

    @property
    def per_10_000(self) -> float:
        """Double-booked pods per 10,000 bound pods."""
        return 10_000 * self.double / max(1, self.bound)


class _Metadata(msgspec.Struct):
    name: str
    resourceVersion: str = ""  # noqa: N815


class _Spec(msgspec.Struct):
    nodeName: str = ""  # noqa: N815 - the API's name


class _Pod(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec = msgspec.field(default_factory=_Spec)


class _Event(msgspec.Struct):
    type: str
    object: _Pod


class _List(msgspec.Struct):
    metadata: dict[str, Any]
    items: list[_Pod]


_event = msgspec.json.Decoder(_Event).decode
_list = msgspec.json.Decoder(_List).decode


class Race:
    """One run: creates pods at a rate, follows the watch, and deletes the oldest pods.

    Args:
        client: A client of the API server, for requests.
        watcher: Another client, for the watch.
        profiles: The `schedulerName` of each scheduler.
        most: Number of placed pods above which the oldest is deleted.
    """

    def __init__(self, client: Client, watcher: Client, profiles: Sequence[str], most: int) -> None:
        self._client, self._watcher, self._profiles, self._most = client, watcher, profiles, most
        self.bookings = Bookings(PLACES)
        self._deletions: set[asyncio.Task[None]] = set()
        self._created: dict[str, float] = {}
        self.delays: list[float] = []
        """Times from the request that creates a pod to its event. Units: seconds."""
        self.last_binding = 0.0

    async def follow(self) -> None:
        """Follow all pods until cancelled."""
        found = _list(await self._watcher.send("GET", PODS))
        for one in found.items:
            self._take("ADDED", one)
        version = found.metadata["resourceVersion"]
        while True:  # the API server ends watches of slow clients
            async for line in self._watcher.lines(f"{PODS}?watch=true&resourceVersion={version}"):
                event = _event(line)
                version = event.object.metadata.resourceVersion
                self._take(event.type, event.object)

    def _take(self, kind: str, one: _Pod) -> None:
        before = len(self.bookings.bound)
        name = one.metadata.name
        if kind == "ADDED" and name in self._created:
            self.delays.append(time.monotonic() - self._created.pop(name))
        if self.bookings.take(kind, name, one.spec.nodeName):
            self._delete(name)
        if len(self.bookings.bound) > before:
            self.last_binding = time.monotonic()
            if leaving := self.bookings.leave(self._most):
                self._delete(leaving)

    def _delete(self, name: str) -> None:
        body = msgspec.json.encode(DELETED_AT_ONCE)
        task = asyncio.create_task(self._send("DELETE", f"{PODS}/{name}", body))
        self._deletions.add(task)
        task.add_done_callback(self._deletions.discard)

    async def _send(self, method: str, path: str, body: bytes) -> None:
        await self._client.send(method, path, body)

    async def wait_for(self, names: Sequence[str], seconds: float) -> None:
        """Wait until pods are bound, or no binding was seen for some seconds."""
        self.last_binding = time.monotonic()
        while not self.bookings.bound.issuperset(names) and time.monotonic() < self.last_binding + seconds:
            await asyncio.sleep(0.05)

    async def finish(self) -> None:
        """Wait for the requested deletions.

        Raises:
            RequestError: the API server rejected a deletion.
        """
        await asyncio.gather(*self._deletions)

    async def feed(self, pods: int, rate: float) -> float:
        """Create pods at a rate, for each scheduler in turn; return the time of the first. Units: seconds."""
        began = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for index in range(pods):
                await asyncio.sleep(max(0.0, began + index / rate - time.monotonic()))
                self._created[pod_name(index)] = time.monotonic()
                group.create_task(self._client.create(new_pod(index, self._profiles)))
        return began


def pod_name(index: int) -> str:
    """Return the name of a measured pod."""
    return f"new-{index:06}"


def new_pod(index: int, profiles: Sequence[str]) -> Json:
    """Return a pod that takes one place."""
    return pod(pod_name(index), requests={"cpu": "1"}, scheduler=profiles[index % len(profiles)])


def standing(nodes: int) -> Iterator[Json]:
    """Yield nodes, and placed pods that take all places but the free part, spread evenly."""
    for number in range(nodes):
        yield node(f"node-{number:04}", cpu=str(PLACES))
    for number in range(int(nodes * PLACES * (1 - FREE))):
        yield pod(f"old-{number:06}", requests={"cpu": "1"}, nodeName=f"node-{number % nodes:04}")


async def run(kubeconfig: Path, profiles: Sequence[str], nodes: int, pods: int, rate: int) -> tuple[Race, float]:
    """Measure running schedulers; return the race and the bindings per second.

    Raises:
        TimeoutError: a scheduler binds nothing.
    """
    async with Client(kubeconfig) as client, Client(kubeconfig) as watcher:
        race = Race(client, watcher, profiles, int(nodes * PLACES * (1 - FREE)))
        following = asyncio.create_task(race.follow())
        first = [f"first-{profile}" for profile in profiles]
        for name, profile in zip(first, profiles, strict=True):
            await client.create(pod(name, requests={"cpu": "1"}, scheduler=profile))
        await race.wait_for(first, PATIENCE)
        if not race.bookings.bound.issuperset(first):
            raise TimeoutError(f"a scheduler binds no pod within {PATIENCE:.0f} s")
        began = await race.feed(pods, rate)
        await race.wait_for([pod_name(index) for index in range(pods)], STALL)
        if following.done():
            following.result()  # raises the error that ended it
        await race.finish()
        following.cancel()
        bound = sum(name.startswith("new-") for name in race.bookings.bound)
        return race, bound / max(1e-9, race.last_binding - began)


def measure(schedulers: Sequence[str], plane: ControlPlane, nodes: int, pods: int, rate: int) -> Outcome:
    """Run schedulers on a control plane with standing objects, and return their figures."""
    profiles = [f"scheduler-{number}" for number in range(1, len(schedulers) + 1)]
    with ExitStack() as stack:
        for name, profile in zip(schedulers, profiles, strict=True):
            stack.enter_context(RunningScheduler(name, plane, profile))
        race, reached = asyncio.run(run(plane.kubeconfig(), profiles, nodes, pods, rate))
    bookings, delay = race.bookings, 1000 * statistics.median(race.delays)
    numbers = [int(name.removeprefix("new-")) for name in bookings.double if name.startswith("new-")]
    by_scheduler = tuple(sum(one % len(profiles) == place for one in numbers) for place in range(len(profiles)))
    bound = sum(name.startswith("new-") for name in bookings.bound)
    return Outcome(tuple(schedulers), rate, reached, pods, bound, len(numbers), by_scheduler, round(delay, 1))


async def _load(kubeconfig: Path, nodes: int) -> None:
    objects = [*standing(nodes)]
    async with Client(kubeconfig) as client:
        await client.create_all(objects[:nodes])
        await client.create_all(objects[nodes:])


def measure_all(pairs: Sequence[Sequence[str]], rates: Sequence[int], nodes: int, seconds: float) -> Iterator[Outcome]:
    """Run each pair at each rate on a fresh copy of the same objects."""
    with bare_plane() as plane:
        asyncio.run(_load(plane.kubeconfig(), nodes))
        kept = plane.folder / "kept"
        plane.save(kept)
        for schedulers in pairs:
            for rate in rates:
                plane.restore(kept)
                yield measure(schedulers, plane, nodes, int(rate * seconds), rate)


def report(outcomes: Sequence[Outcome]) -> None:
    """Print one line for each pair and rate."""
    heads = ["schedulers", "pods/s", "reached", "bound", "double-booked", "per 10,000", "delay, ms"]
    rows = [
        [
            " + ".join(one.schedulers),
            str(one.rate),
            f"{one.reached:.0f}",
            f"{one.bound:,}",
            " + ".join(map(str, one.by_scheduler)),
            f"{one.per_10_000:.1f}",
            f"{one.delay_ms:.0f}",
        ]
        for one in outcomes
    ]
    print_parts([plain_table(None, heads, rows, range(1, len(heads)))])


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.races", description="Count pods that two schedulers place on full nodes."
    )
    parser.add_argument("--nodes", type=int, default=500, help=f"nodes, with {PLACES} places each")
    parser.add_argument("--seconds", type=float, default=60, help="how long pods are created in each run")
    parser.add_argument("--rates", type=int, nargs="+", default=[50, 200, 500], help="new pods per second")
    parser.add_argument(
        "--pairs", nargs="+", metavar="KIND+KIND", help=f"{KUBE} or {OURS}; one name runs one scheduler"
    )
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table", help="format of the output")
    given = parser.parse_args(arguments)
    pairs = [one.split("+") for one in given.pairs] if given.pairs else PAIRS
    outcomes = []
    for one in measure_all(pairs, given.rates, given.nodes, given.seconds):
        outcomes.append(one)
        print(asdict(one), file=sys.stderr, flush=True)
    if given.output == "json":
        print(json.dumps([asdict(one) for one in outcomes], indent=2))
    else:
        report(outcomes)


if __name__ == "__main__":
    main()
