"""One run of the soak: the hours, the takeovers, the end."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import sys
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from bench.cluster.machine import memory_of
from bench.soak import checks, objects
from bench.soak.changes import Edits, Nodes
from bench.soak.clock import SimulatedClock
from bench.soak.figures import GROWTH, SIZES, Hour, Meter, growth
from bench.soak.load import HOUR, SCALE, Load
from bench.soak.objects import NAMESPACE
from bench.soak.replica import Replica
from bench.soak.server import SoakServer
from policysched.language import load_grammar

MIB: Final = 2**20
EQUAL_WITHIN: Final = 60.0
"""Longest simulated time until two replicas know the same. Units: seconds, as below."""
LOOK_EVERY: Final = 0.05
MID_WAVE: Final = 0.03
"""Time from the creation of a wave to the crash of the leader."""
WAVE: Final = 64
SAMPLES: Final = 20
"""Number of decisions that a takeover compares."""
PLACED_WITHIN: Final = 1800.0
"""Longest time until all pods are placed at the end, when there is room for all."""
GONE_WITHIN: Final = 120.0
THREADS_END_WITHIN: Final = 5.0
"""Longest real time until the threads of a stopped process have ended. Units: seconds."""


@dataclass(frozen=True, slots=True)
class Options:
    """The size of a run."""

    nodes: int
    hours: float
    takeover_every: float
    """Hours between two takeovers; the first comes after half of it."""
    minutes: float
    """Longest duration in real time; a run that takes longer ends earlier, with all checks."""
    seed: int


class Run:
    """A cluster, its load and its leader."""

    def __init__(self, options: Options, say: Callable[[str], None]) -> None:
        self._options, self._say = options, say
        self._loop = asyncio.get_running_loop()
        self._clock = SimulatedClock(self._loop)
        self._rng = random.Random(options.seed)
        self.meter = Meter()
        self.server = SoakServer(self._clock, options.seed)
        self.load = Load(self.server, self.meter, options.nodes, options.hours * HOUR, self._rng)
        self.nodes = Nodes(self.server, self.load, self.meter, options.nodes, self._rng)
        self.edits = Edits(self.server, self.load, self.meter, options.hours * HOUR, self._rng)
        self.leader = self._replica()
        self.hours: list[dict[str, Any]] = []
        self.takeovers: list[dict[str, Any]] = []
        self.problems: list[str] = []
        self._began = 0.0
        self._deadline = time.monotonic() + 60 * options.minutes

    def _replica(self) -> Replica:
        return Replica(self.server, self._clock, self.meter, self._options.seed)

    async def play(self) -> dict[str, Any]:
        """Play the hours, and return their figures."""
        for one in objects.settings():
            self.server.create(one)
        self.nodes.fill()
        self.edits.fill()
        self.load.fill()
        self.server.start()
        listing = await self.leader.start()
        self.leader.turn.lead()
        self._say(f"started after {listing:.1f} s of processor time, {len(self.load.shapes):,} pods")
        self._began = self._loop.time()
        tasks = [*self.load.tasks(), *self.nodes.tasks(), asyncio.create_task(self.edits.run())]
        taking_over = asyncio.create_task(self._take_over_repeatedly())
        await self._pass_hours([*tasks, taking_over])
        await self._end(tasks, taking_over)
        await self.server.stop()
        return self._found()

    async def _pass_hours(self, tasks: list[asyncio.Task[None]]) -> None:
        """Let the hours pass, and note the figures of each."""
        used, ends = time.process_time(), self._began
        last = self._began + self._options.hours * HOUR
        while ends < last and time.monotonic() < self._deadline:
            ends = min(ends + HOUR, last)
            while (left := ends - self._loop.time()) > 0:
                await asyncio.sleep(min(left, 60.0))
                for task in tasks:
                    if task.done():
                        task.result()  # raises its error
            now = time.process_time()
            self._end_hour(now - used)
            used = now

    def _end_hour(self, cpu: float) -> None:
        scheduler, hour = self.leader.process.scheduler, self.meter.hour
        queue = {**scheduler.queue.counts()._asdict(), **scheduler.queue.held_counts()}
        figures = hour.ended(
            queue=queue,
            cpu=round(cpu, 1),
            mib=round(memory_of(os.getpid())[1], 1),
            cache_mib=round(scheduler.kept_bytes / MIB, 1),
            blocks=sys.getallocatedblocks(),
            pods=len(self.load.shapes),
            load=round(self.load.used / (objects.CPUS * self._options.nodes), 3),
        )
        self.hours.append(figures)
        self.meter.hour = Hour(hour.hour + 1)
        shown = {
            name: figures[name] for name in ("counts", "attempts", "group_attempts", "queue", "cpu", "mib", "load")
        }
        self._say(f"hour {hour.hour}: {shown}")

    # Takeovers

    async def _take_over_repeatedly(self) -> None:
        every = self._options.takeover_every * HOUR
        await asyncio.sleep(every / 2)
        while not self.load.is_over:
            is_crash = len(self.takeovers) % 2 == 1
            await (self._crash() if is_crash else self._hand_over())
            self.meter.hour.counts["takeovers"] += 1
            await asyncio.sleep(every)

    async def _hand_over(self) -> None:
        """Start a standby, compare it with the leader, and let it lead after the end of the leader."""
        standby = self._replica()
        listing = await standby.start()
        found, compared = await self._until_equal(standby)
        sample = self._rng.randrange(1000)
        ours, theirs = [await checks.decided(one, random.Random(sample), SAMPLES) for one in (self.leader, standby)]
        found += checks.differences(ours, theirs)
        await self.leader.stop()
        await self._follow(standby)
        self._note("orderly", listing, compared, SAMPLES, found)

    async def _until_equal(self, standby: Replica) -> tuple[list[str], int]:
        """Wait until a standby knows the same as the leader; return the last differences and the number of values."""
        ends = self._loop.time() + EQUAL_WITHIN
        while True:
            await asyncio.sleep(LOOK_EVERY)
            self.leader.check()
            is_late = self._loop.time() >= ends
            if self.leader.is_calm or is_late:
                one, other = (checks.known(replica, self.server) for replica in (self.leader, standby))
                found = checks.differences(one, other) + checks.against_truth(standby, self.server)
                if not found or is_late:
                    return found, len(one)

    async def _crash(self) -> None:
        """Cut off the leader in the middle of a wave; a new process takes over."""
        self.load.wave(max(2, round(WAVE * self._options.nodes / SCALE)))
        await asyncio.sleep(MID_WAVE)
        await self.leader.crash()
        standby = self._replica()
        listing = await standby.start()
        await self._follow(standby)
        found, compared = await self._until_true()
        self._note("crash", listing, compared, 0, found)

    async def _until_true(self) -> tuple[list[str], int]:
        """Wait until the leader knows what the API server holds; return differences and the number of values."""
        ends = self._loop.time() + EQUAL_WITHIN
        while True:
            await asyncio.sleep(LOOK_EVERY)
            found = checks.against_truth(self.leader, self.server)
            if not found or self._loop.time() >= ends:
                return found, len(self.leader.process.scheduler.cluster.nodes.row_of)

    async def _follow(self, standby: Replica) -> None:
        """Make a standby the leader; the last leader must be freed."""
        standby.turn.lead()
        last = weakref.ref(self.leader.process.scheduler)
        self.leader = standby
        await asyncio.sleep(1.0)
        ends = time.monotonic() + THREADS_END_WITHIN
        while last() is not None and time.monotonic() < ends:
            time.sleep(0.02)  # threads of the last leader end in real time
            gc.unfreeze()
            gc.collect()
            gc.freeze()
        if last() is not None:
            self.problems.append(f"takeover {len(self.takeovers) + 1}: the last leader is still in memory")

    def _note(self, kind: str, listing: float, compared: int, decisions: int, found: list[str]) -> None:
        at = self._loop.time() - self._began
        made = {"at": round(at), "kind": kind, "listing": round(listing, 2), "compared": compared}
        self.takeovers.append(made | {"decisions": decisions, "differences": found[: checks.MOST]})
        self._say(f"takeover at {at / HOUR:.2f} h: {self.takeovers[-1]}")
        if found:
            self.problems.append(f"takeover {len(self.takeovers)}: {len(found)} difference(s), first: {found[0]}")

    # The end

    async def _end(self, tasks: list[asyncio.Task[None]], taking_over: asyncio.Task[None]) -> None:
        """Check that all pods find a place when there is room, and that nothing is left when all are deleted."""
        self.load.is_over = True
        for task in (*tasks, taking_over):
            task.cancel()
        await asyncio.gather(*tasks, taking_over, return_exceptions=True)
        self.nodes.open_all()
        self._delete(lambda shape: shape.kind in {"batch", "group"} or bool(shape.claim))
        await self._until(lambda: not checks.pending(self.server), PLACED_WITHIN)
        self.problems += [f"lost: {one['metadata']['name']}: {_why(one)}" for one in checks.pending(self.server)]
        found, _ = await self._until_true()
        self.problems += [f"at the end: {one}" for one in found[: checks.MOST]]
        self.problems += [f"bound twice: {one}" for one in (*self.server.refused, *self.load.doubled)]
        self.problems += self.edits.problems
        self._delete(lambda _: True)
        await self._until(lambda: not self.load.shapes and not checks.left_in(self.leader), GONE_WITHIN)
        self.problems += [f"left: {one}" for one in checks.left_in(self.leader)]
        await self.leader.stop()

    def _delete(self, chooses: Callable[[objects.Shape], bool]) -> None:
        for name, shape in list(self.load.shapes.items()):
            if chooses(shape):
                self.load.end(name)
        for one in list(self.server.objects("PodGroup")):
            self.server.delete("PodGroup", one["metadata"]["name"], NAMESPACE)

    async def _until(self, is_so: Callable[[], bool], seconds: float) -> None:
        ends = self._loop.time() + seconds
        while not is_so() and self._loop.time() < ends:
            await asyncio.sleep(1.0)

    def _found(self) -> dict[str, Any]:
        grown = growth(self.hours)
        self.problems += [
            f"{SIZES[size]} of the last six hours is {factor:.3f} of that half a day earlier"
            for size, factor in grown.items()
            if factor > GROWTH
        ]
        return {
            "nodes": self._options.nodes,
            "seed": self._options.seed,
            "growth": grown,
            "hours": self.hours,
            "takeovers": self.takeovers,
            "events": dict(self.server.events.most_common()),
            "problems": self.problems,
        }


def _why(pod: objects.Json) -> str:
    conditions = pod["status"].get("conditions") or ()
    return next((one.get("message", "") for one in conditions if one["type"] == "PodScheduled"), "no attempt")


async def play(options: Options, say: Callable[[str], None]) -> dict[str, Any]:
    """Play a run and return its figures."""
    load_grammar()
    return await Run(options, say).play()
