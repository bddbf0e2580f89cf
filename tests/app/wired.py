"""A scheduler with an API server in memory that accepts every request, for counting the work per pod."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from unittest.mock import patch

from prometheus_client import CollectorRegistry

from policysched.app.clock import SystemClock
from policysched.app.configuration.profiles import default_profile
from policysched.app.running.metrics.process_metrics import ProcessMetrics
from policysched.kube.client import KubeClient
from policysched.kube.connection import Connection
from policysched.kube.events.writer import EventWriter
from policysched.kube.transport import Pacing, Transport
from policysched.model.objects import Pod
from policysched.schedule.observer import LOG_LINES
from policysched.schedule.scheduler import Scheduler
from tests.build import node

ME = "default-scheduler"
NODES = 50
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

    async def place(self, pods: Sequence[Pod]) -> None:
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


@contextmanager
def wired() -> Iterator[tuple[asyncio.Runner, Wired]]:
    """Run a scheduler whose connections lead to such a server."""
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

    with asyncio.Runner() as runner, patch.object(runner.get_loop(), "create_connection", create_connection):
        runner.run(made.start())
        yield runner, made
        runner.run(made.end())
