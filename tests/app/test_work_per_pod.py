"""What a pod costs from the queue to its stored event, counted in requests, writes, bytes and calls.

Times of a busy machine say little; these are the same everywhere. Whoever makes them larger has a reason, and moves a
bound here.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from policysched.app.clock import SystemClock
from policysched.app.configuration.profiles import default_profile
from policysched.app.running.metrics.process_metrics import ProcessMetrics
from policysched.kube.client import AT_ONCE, KubeClient
from policysched.kube.connection import Connection
from policysched.kube.events.writer import MOST_WORKERS, EventWriter
from policysched.kube.short_requests import ShortRequests
from policysched.kube.transport import Pacing, Transport
from policysched.model.objects import Pod
from policysched.schedule.observer import LOG_LINES
from policysched.schedule.scheduler import Scheduler
from tests.build import node, pod
from tests.work import calls

ME = "default-scheduler"
NODES, PODS = 50, 200
BACKLOG, TURNS = 1000, 20
"""Of pods, and of the loop until a server that answers one request after another has answered one."""
CREATED = (
    b"HTTP/1.1 201 Created\r\nAudit-Id: 3ad5\r\nCache-Control: no-cache, private\r\nContent-Type: application/json\r\n"
    b"Date: Mon, 23 Nov 2026 05:00:00 GMT\r\nContent-Length: 2\r\n\r\n{}"
)


class _Wire(asyncio.Transport):
    """A connection to a server that takes everything at once."""

    def __init__(self, protocol: asyncio.Protocol, of: Wired) -> None:
        super().__init__()
        self._protocol, self._of = protocol, of

    def write(self, data: Any) -> None:
        self._of.written.append(bytes(data))
        self._of.answer(partial(self._protocol.data_received, CREATED))

    def abort(self) -> None:
        asyncio.get_running_loop().call_soon(self._protocol.connection_lost, None)


@dataclass
class Wired:
    """A scheduler with all that the process measures, over connections to a server that takes everything."""

    scheduler: Scheduler
    events: EventWriter
    connection: Connection
    written: list[bytes] = field(default_factory=list)
    answer: Callable[[Callable[[], object]], object] = lambda act: asyncio.get_running_loop().call_soon(act)
    """Has a request answered."""
    connections: int = 0
    running: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self.events.start()
        for number in range(NODES):
            self.scheduler.set_node(node(f"n{number}"))
        self.running = asyncio.create_task(self.scheduler.run())

    async def place(self, pods: list[Pod]) -> None:
        """Have pods scheduled until the last event is stored."""
        wanted = self.events.counts.requests + len(pods)
        for one in pods:
            self.scheduler.take(one)
        while self.events.counts.requests < wanted:
            await asyncio.sleep(0)

    async def end(self) -> None:
        assert self.running is not None
        self.running.cancel()
        await asyncio.gather(self.running, return_exceptions=True)
        await self.events.close(1)
        await self.connection.close()


@pytest.fixture
def wired(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[asyncio.Runner, Wired]]:
    clock, pacing = SystemClock(), Pacing(lambda: 0.0)
    metrics = ProcessMetrics(clock, CollectorRegistry())
    connection = Connection("http://kubernetes", clock)
    metrics.requests.count(connection)
    transport = Transport(connection)
    events = EventWriter(transport, pacing, "host")
    observers = (*LOG_LINES, *metrics.observers)
    client = KubeClient(transport, events, pacing)
    scheduler = Scheduler({ME: default_profile(ME)}, client, clock, random.Random(0), observers, metrics.timing)
    made = Wired(scheduler, events, connection)

    async def create_connection(factory: Any, *_: Any, **__: Any) -> tuple[asyncio.Transport, Any]:
        made.connections += 1
        protocol = factory()
        wire = _Wire(protocol, made)
        protocol.connection_made(wire)
        return wire, protocol

    with asyncio.Runner() as runner:
        monkeypatch.setattr(runner.get_loop(), "create_connection", create_connection)
        runner.run(made.start())
        yield runner, made
        runner.run(made.end())


def pods(first: int, count: int = PODS) -> list[Pod]:
    return [pod(f"pod-{number}", requests={"cpu": "1m"}) for number in range(first, first + count)]


def test_pod_is_two_requests_of_one_piece_each(wired: tuple[asyncio.Runner, Wired]) -> None:
    runner, of = wired
    runner.run(of.place(pods(0)))
    assert len(of.written) == 2 * PODS
    assert of.connections <= AT_ONCE + MOST_WORKERS
    bindings = [one for one in of.written if b"/binding HTTP/1.1" in one]
    assert len(bindings) == PODS
    assert max(map(len, bindings)) <= 400
    assert max(map(len, of.written)) <= 900


def test_bindings_go_before_events_that_wait(wired: tuple[asyncio.Runner, Wired]) -> None:
    runner, of = wired
    runner.run(of.place(pods(0)))
    events = [place for place, one in enumerate(of.written) if b"/events HTTP/1.1" in one]
    bindings = [place for place, one in enumerate(of.written) if b"/binding HTTP/1.1" in one]
    assert sum(bindings) < sum(events)
    assert bindings[0] == 0


def test_backlog_is_bound_before_most_of_its_events_are_written(wired: tuple[asyncio.Runner, Wired]) -> None:
    """On a server that answers one request after another, an event before a binding makes a pod wait."""
    runner, of = wired
    waiting: deque[Callable[[], object]] = deque()
    of.answer = waiting.append

    async def serve() -> None:
        while True:
            for _ in range(TURNS):
                await asyncio.sleep(0)
            if waiting:
                waiting.popleft()()

    async def place() -> None:
        serving = asyncio.create_task(serve())
        await of.place(pods(0, BACKLOG))
        serving.cancel()

    runner.run(place())
    bindings = [place for place, one in enumerate(of.written) if b"/binding HTTP/1.1" in one]
    assert len(bindings) == BACKLOG
    assert bindings[-1] + 1 - BACKLOG <= 120, "so many events were sent before the last binding"


def test_pod_takes_no_more_calls_than_it_needs(wired: tuple[asyncio.Runner, Wired]) -> None:
    """Python's and C's functions together, from the pod's event to its event: what is not needed shows here."""
    runner, of = wired
    runner.run(of.place(pods(0)))
    taken = calls(lambda: runner.run(of.place(pods(PODS)))) / PODS
    assert taken <= 930


def test_late_requests_have_one_timer(wired: tuple[asyncio.Runner, Wired], monkeypatch: pytest.MonkeyPatch) -> None:
    runner, of = wired
    timers: list[tuple[Any, ...]] = []
    loop = runner.get_loop()
    call_at = loop.call_at

    def noted(*given: Any, **named: Any) -> asyncio.TimerHandle:
        timers.append(given)
        return call_at(*given, **named)

    monkeypatch.setattr(loop, "call_at", noted)
    runner.run(of.place(pods(0)))
    assert sum(isinstance(getattr(given[1], "__self__", None), ShortRequests) for given in timers) <= 1
    assert len(timers) <= of.connections + 2, "a timer for each request"
