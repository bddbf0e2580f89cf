"""A day of a large cluster, played to one scheduler faster than real time.

    python -m bench.day [--hours 24] [--speed 36] [--minutes 40] [--nodes N] [--pods N] [--policies N] [--name NAME]
    python -m bench.day --publish bench/results/NAME.json

The scheduler runs in its own process; this process is the API server, as in `bench.start`. Every node reports its
status every ten seconds of the day. Each minute one node is cordoned, and uncordoned ten minutes later. Pods of 200
apps arrive in groups of 1 to 20, more by day than at night. A pod has four events: created, bound, running, deleted.
Watches end at the time that the scheduler asked for, and resume with the missed events.

The latency of a decision is the time from sending the pod to receiving its binding: wall-clock time, and processor time
of all threads of the scheduler. Memory is resident memory at the end of each hour. After each hour, the figures so far
are written to bench/results/ as JSON. The run ends after `--minutes` and reports the hours played until then.
`--publish` writes the table to bench/results/.
"""

from __future__ import annotations

import argparse
import asyncio
import heapq
import math
import random
import socket
import sys
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from bench.cluster import policies
from bench.cluster.figures import quantile
from bench.cluster.machine import memory_of
from bench.start import ME, VERSION, Lists, Server, Sizes, compile_modules, cpu_of, node, pod, scheduler
from policysched.model.kinds import NODES, PODS

RESULTS: Final = Path(__file__).resolve().parent / "results"
REPORTED_EVERY: Final = 10.0
"""Interval between two status reports of a node. Units: seconds of the simulated day, as below."""
CORDONED_EVERY, CORDONED_FOR = 60.0, 600.0
LIFE: Final = 7200.0
"""Mean lifetime of a pod."""
STARTING: Final = 2.0
"""Time from a pod's binding until it runs."""
LARGEST_GROUP: Final = 20
APPS: Final = 200
DAY, HOUR = 86_400.0, 3_600.0
STEP: Final = 0.25
"""Largest part of the day that is simulated without a pause for the scheduler."""
REPLAYED: Final = 50_000
"""Number of latest events that are kept for new watches; a watch cannot start before them."""
BUFFER: Final = 1 << 18
"""Size of the send buffer of a watch. Units: bytes."""
PAUSE: Final = 0.002
"""Pause after each step. Units: seconds of wall-clock time."""
PROGRESS: Final = 15.0
"""Interval of progress messages. Units: seconds of wall-clock time."""
STUCK: Final = 120.0
"""Longest time without a binding while pods are pending; then the run fails. Units: seconds of wall-clock time."""


class Stream:
    """The events of one list: the latest events, and the connected watches."""

    def __init__(self) -> None:
        self.version = int(VERSION)
        self._events: deque[tuple[int, bytes]] = deque(maxlen=REPLAYED)
        self._watching: set[asyncio.StreamWriter] = set()
        self._due: list[bytes] = []
        self.begun = asyncio.Event()

    def tell(self, kind: bytes, made: bytes) -> None:
        """Append an event; `flush` sends it."""
        self.version += 1
        line = b'{"type":"%b","object":%b}\n' % (kind, made.replace(b'"RV"', b'"%d"' % self.version, 1))
        self._events.append((self.version, line))
        self._due.append(line)

    async def flush(self) -> None:
        """Send appended events, and wait until the watches have read nearly all of them."""
        data, self._due = b"".join(self._due), []
        for writer in [*self._watching]:
            if data:
                writer.write(_chunk(data))
            await writer.drain()

    async def serve(self, query: Mapping[str, str], writer: asyncio.StreamWriter) -> None:
        """Serve a watch for its requested time, from the client's resource version."""
        since = int(query.get("resourceVersion") or VERSION)
        unsent = len(self._due)
        known = [*self._events]
        missed = b"".join(line for version, line in known[: len(known) - unsent] if version > since)
        if missed:
            writer.write(_chunk(missed))
        # Small buffers: buffered events would be late by a second of the day or more.
        writer.transport.set_write_buffer_limits(0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)
        self._watching.add(writer)
        self.begun.set()
        try:
            await asyncio.sleep(float(query.get("timeoutSeconds", DAY)))
        finally:
            self._watching.discard(writer)
        writer.write(b"0\r\n\r\n")
        await writer.drain()


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


@dataclass
class Hour:
    """The figures of one hour of the day. Units: seconds; milliseconds for latencies; MiB."""

    hour: int
    until: float = 0.0
    """Time of the day at the end of the hour or of the run."""
    reports: int = 0
    """Number of node events."""
    pod_events: int = 0
    bound: int = 0
    placed: int = 0
    """Number of running pods at the end."""
    took: float = 0.0
    """Wall-clock time of the hour."""
    cpu: float = 0.0
    """Processor time of the scheduler."""
    mib: float = 0.0
    latency: dict[str, float] = field(default_factory=dict)
    """Wall-clock latencies: p50, p99, worst."""
    own: dict[str, float] = field(default_factory=dict)
    """Latencies in processor time of the scheduler: p50, p99, worst."""


class Day(Server):
    """An API server that simulates a day of nodes and pods."""

    def __init__(self, sizes: Sizes, per_day: int, in_force: Iterable[Mapping[str, Any]]) -> None:
        super().__init__(Lists(sizes, in_force))
        self._streams = {NODES.path: Stream(), PODS.path: Stream()}
        self._nodes = [_as_told(_reporting(index)) for index in range(sizes.nodes)]
        self._cordoned = [_as_told(_reporting(index, cordoned=True)) for index in range(sizes.nodes)]
        self._is_cordoned = bytearray(sizes.nodes)
        self._names = [node(index)["metadata"]["name"] for index in range(sizes.nodes)]
        self._groups_per_day = per_day / ((1 + LARGEST_GROUP) / 2)
        self._rng = random.Random(7)
        self._reported = self._turn = 0
        self._number = sizes.waiting + sizes.placed
        self._due: list[tuple[float, int, str, int, str]] = []
        """Heap of future events: time, serial number, kind, number of the pod or node, node of the pod."""
        self._waiting: dict[str, tuple[int, float, float]] = {}
        """Number, creation time and scheduler's processor time then of each pending pod, by name."""
        self._last_binding = 0.0
        self._latencies: list[tuple[float, float]] = []
        self._placed = sizes.placed
        self.now = 0.0
        """Time of the day. Units: seconds."""
        self.hours: list[Hour] = []
        self._hour = Hour(0)
        for index in range(sizes.placed):
            self._later(self._rng.random() * LIFE * 2, "gone", index, self._names[index % sizes.nodes])
        self._later(0.0, "group", 0, "")
        self._later(CORDONED_EVERY, "cordon", 0, "")

    async def watch(self, path: str, query: Mapping[str, str], writer: asyncio.StreamWriter) -> None:
        """Serve a watch; only nodes and pods have events."""
        stream = self._streams.get(path)
        await (stream.serve(query, writer) if stream else super().watch(path, query, writer))

    def written(self, path: str, body: bytes) -> None:
        """Record a binding, and send the pod's events."""
        super().written(path, body)
        if not path.endswith("/binding"):
            return
        known = self._waiting.pop(path.split("/")[-2], None)
        if known is None:
            return
        number, told, used = known
        self._last_binding = time.monotonic()
        self._latencies.append((self._last_binding - told, cpu_of(self.pid) - used))
        on = msgspec.json.decode(body)["target"]["name"]
        self._hour.bound += 1
        self._placed += 1
        self._tell_of_pod(b"MODIFIED", number, on, runs=False)
        self._later(self.now + STARTING, "runs", number, on)

    async def play(self, until: float, speed: float, deadline: float) -> None:
        """Simulate the day until a time, at most `speed` times as fast as real time.

        Raises:
            RuntimeError: pods are pending and none is bound any more.
        """
        for stream in self._streams.values():
            await stream.begun.wait()
        began = mark = self._last_binding = time.monotonic()
        used = cpu_of(self.pid)
        while self.now < until and time.monotonic() < deadline:
            self.now = min(until, self.now + STEP, (time.monotonic() - began) * speed)
            self._report()
            while self._due and self._due[0][0] <= self.now:
                self._happen(heapq.heappop(self._due))
            for stream in self._streams.values():
                await stream.flush()
            clock = time.monotonic()
            if self._waiting and clock - max(self._last_binding, min(one[1] for one in self._waiting.values())) > STUCK:
                raise RuntimeError(f"{len(self._waiting)} pods wait and none is bound")
            if self.now >= (self._hour.hour + 1) * HOUR:
                now = cpu_of(self.pid)
                self._end_hour(clock - mark, now - used)
                mark, used = clock, now
            # lost time is not made up
            began = max(began, clock - self.now / speed - STEP)
            await asyncio.sleep(PAUSE)
        if self.now > self._hour.hour * HOUR:
            self._end_hour(time.monotonic() - mark, cpu_of(self.pid) - used)

    def _report(self) -> None:
        """Send the status of each node whose report is due."""
        stream, due = self._streams[NODES.path], int(self.now / REPORTED_EVERY * len(self._nodes))
        stamp = datetime.fromtimestamp(1_793_491_200 + self.now, UTC).strftime('"%Y-%m-%dT%H:%M:%SZ"').encode()
        for place in range(self._reported, due):
            index = place % len(self._nodes)
            made = (self._cordoned if self._is_cordoned[index] else self._nodes)[index]
            stream.tell(b"MODIFIED", made.replace(b'"HB"', stamp))
        self._hour.reports += due - self._reported
        self._reported = due

    def _happen(self, event: tuple[float, int, str, int, str]) -> None:
        _, _, what, number, on = event
        if what == "group":
            self._come()
        elif what == "runs":
            self._tell_of_pod(b"MODIFIED", number, on, runs=True)
            self._later(self.now + self._rng.expovariate(1 / LIFE), "gone", number, on)
        elif what == "gone":
            self._placed -= 1
            self._tell_of_pod(b"DELETED", number, on, runs=True)
        elif what == "cordon":
            index = self._rng.randrange(len(self._nodes))
            self._is_cordoned[index] = 1
            self._later(self.now + CORDONED_FOR, "uncordon", index, "")
            self._later(self.now + CORDONED_EVERY, "cordon", 0, "")
        elif what == "uncordon":
            self._is_cordoned[number] = 0

    def _come(self) -> None:
        """Create a group of pods and schedule the next group: half the mean rate at night, more by day."""
        for _ in range(self._rng.randint(1, LARGEST_GROUP)):
            number = self._number
            self._number += 1
            self._waiting[_name(number)] = number, time.monotonic(), cpu_of(self.pid)
            self._tell_of_pod(b"ADDED", number, "", runs=False)
        rate = self._groups_per_day / DAY * (1 - 0.5 * math.cos(2 * math.pi * self.now / DAY))
        self._later(self.now + self._rng.expovariate(rate), "group", 0, "")

    def _tell_of_pod(self, kind: bytes, number: int, on: str, *, runs: bool) -> None:
        made = pod(number, on)
        app = number // LARGEST_GROUP % APPS
        made["metadata"] |= {"labels": {"app": f"app-{app}"}, "resourceVersion": "RV"}
        amounts = {"cpu": f"{100 + app % 7 * 10}m", "memory": f"{400 + app % 5 * 20}Mi"}
        made["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
        if on and not runs:
            made["status"] = {"phase": "Pending", "qosClass": "Guaranteed"}
        self._hour.pod_events += 1
        self._streams[PODS.path].tell(kind, msgspec.json.encode(made))

    def _later(self, when: float, what: str, number: int, on: str) -> None:
        self._turn += 1
        heapq.heappush(self._due, (when, self._turn, what, number, on))

    def _end_hour(self, took: float, cpu: float) -> None:
        hour = self._hour
        hour.until, hour.placed, hour.took, hour.cpu = self.now, self._placed, took, cpu
        hour.mib = memory_of(self.pid)[1]
        for place, name in enumerate(("latency", "own")):
            setattr(hour, name, _spread([1000 * one[place] for one in self._latencies]))
        self.hours.append(hour)
        self._hour, self._latencies = Hour(hour.hour + 1), []


def _name(number: int) -> str:
    return f"pod-{number:06}"


def _reporting(index: int, *, cordoned: bool = False) -> dict[str, Any]:
    """Return a node as its kubelet reports it, with placeholders for version and time."""
    made = node(index)
    made["metadata"]["resourceVersion"] = "RV"
    if cordoned:
        taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
        made["spec"] = {"unschedulable": True, "taints": [taint]}
    kinds = {"MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False", "Ready": "True"}
    made["status"]["conditions"] = [
        {"type": kind, "status": status, "lastHeartbeatTime": "HB", "lastTransitionTime": "2026-11-01T00:00:00Z"}
        for kind, status in kinds.items()
    ]
    return made


def _as_told(made: dict[str, Any]) -> bytes:
    return msgspec.json.encode(made)


def _spread(values: list[float]) -> dict[str, float]:
    values.sort()
    if not values:
        return {}
    return {"p50": quantile(values, 0.5), "p99": quantile(values, 0.99), "worst": values[-1]}


async def run(given: argparse.Namespace) -> list[Hour]:
    """Simulate a day, and write the figures so far after each hour."""
    compile_modules()
    placed = int(given.pods / DAY * LIFE)
    day = Day(Sizes(given.nodes, 1, placed), given.pods, policies.make(given.policies))
    async with scheduler(day):
        deadline, told = time.monotonic() + 60 * given.minutes, 0
        playing = asyncio.create_task(day.play(given.hours * HOUR, given.speed, deadline))
        while not playing.done():
            await asyncio.wait([playing], timeout=PROGRESS)
            sys.stderr.write(f"{datetime.now(UTC):%H:%M:%S} played: {day.now / HOUR:.2f} h\n")
            if len(day.hours) > told:
                told = len(day.hours)
                _write(given, day.hours)
                sys.stderr.write(f"{as_markdown([asdict(one) for one in day.hours])}\n")
        await playing
    return day.hours


def _write(given: argparse.Namespace, hours: Sequence[Hour]) -> None:
    sizes = {name: getattr(given, name) for name in ("nodes", "pods", "policies", "speed")}
    given.results.mkdir(parents=True, exist_ok=True)
    found = {**sizes, "scheduler": ME, "hours": [asdict(one) for one in hours]}
    (given.results / f"{given.name}.json").write_bytes(msgspec.json.format(msgspec.json.encode(found)))


def as_markdown(hours: Sequence[Mapping[str, Any]]) -> str:
    """Return the table with a row for each hour and the totals."""
    heads = ("until", "node events", "pod events", "bound", "placed", "CPU s", "MiB", "p50 ms", "p99 ms", "worst ms")
    own = ("own p50 ms", "own p99 ms", "own worst ms")
    lines = ["| " + " | ".join((*heads, *own)) + " |", "|" + "--:|" * (len(heads) + len(own))]
    for one in hours:
        counts = (one["reports"], one["pod_events"], one["bound"], one["placed"])
        minutes = round(one["until"] / 60)
        parts = [
            f"{minutes // 60}:{minutes % 60:02}",
            *(f"{count:,}" for count in counts),
            f"{one['cpu']:.0f}",
            f"{one['mib']:.0f}",
        ]
        parts += [
            f"{one[kind].get(name, math.nan):.1f}" for kind in ("latency", "own") for name in ("p50", "p99", "worst")
        ]
        lines.append("| " + " | ".join(parts) + " |")
    total = {name: sum(one[name] for one in hours) for name in ("reports", "pod_events", "bound", "took", "cpu")}
    played = max((one["until"] for one in hours), default=0.0) / HOUR
    totals = f"{total['reports']:,} node events, {total['pod_events']:,} pod events, {total['bound']:,} pods bound"
    times = f"{total['cpu']:,.0f} s of processor time, played in {total['took'] / 60:.0f} minutes"
    lines += ["", f"{played:.1f} hours, {totals}: {times}."]
    return "\n".join(lines)


def publish(found: Mapping[str, Any], source: str) -> None:
    """Write the table of a run into bench/results/."""
    text = f"# A day of a large cluster\n\n{as_markdown(found['hours'])}\n"
    (RESULTS / source).with_suffix(".md").write_text(text, "utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulate a day and print the figures, or publish a run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=5000, help="number of nodes")
    parser.add_argument("--pods", type=int, default=250_000, help="pods created in a day")
    parser.add_argument("--policies", type=int, default=20, help="number of policies")
    parser.add_argument("--hours", type=float, default=24.0, help="length of the day")
    parser.add_argument("--speed", type=float, default=36.0, help="largest factor between played time and real time")
    parser.add_argument("--minutes", type=float, default=60.0, help="longest duration of the run in real time")
    parser.add_argument("--name", default="day", help="name of the result file")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the result file")
    parser.add_argument("--publish", type=Path, metavar="JSON", help="write the table of a run")
    given = parser.parse_args(arguments)
    if given.publish is not None:
        publish(msgspec.json.decode(given.publish.read_bytes()), given.publish.name)
        return
    hours = asyncio.run(run(given))
    print(as_markdown([asdict(one) for one in hours]))


if __name__ == "__main__":
    main()
