"""Simulated leader election: a server with one lease, candidates with different clocks, and virtual time."""

from __future__ import annotations

import asyncio
import enum
import random
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from policysched.framework import ApiError
from policysched.kube.election.elector import ElectionTiming, Elector
from policysched.kube.election.lease import LeaseRecord
from policysched.kube.transport import Pacing

START = datetime(2026, 1, 2, tzinfo=UTC)


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop with virtual time, which jumps to the next timer when nothing else can run."""

    def __init__(self) -> None:
        super().__init__()
        self._virtual = 0.0

    def time(self) -> float:
        return self._virtual

    def _run_once(self) -> None:
        inner: Any = self
        if not inner._ready and inner._scheduled:
            self._virtual = max(self._virtual, inner._scheduled[0]._when)
        inner.__class__.__mro__[1]._run_once(self)


def simulate(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(work)


@dataclass
class SkewedClock:
    """A clock that is wrong by an offset and runs at a wrong rate."""

    offset: float = 0.0
    rate: float = 1.0

    def monotonic(self) -> float:
        return abs(self.offset) + self.rate * asyncio.get_running_loop().time()

    def now(self) -> datetime:
        return START + timedelta(seconds=self.offset + self.rate * asyncio.get_running_loop().time())

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds / self.rate)


class Fault(enum.Enum):
    """The outcome of a request to the server."""

    NONE = "none"
    LOST = "lost before the server has it"
    UNANSWERED = "done, and the answer is lost"
    REFUSED = "refused by a server that is failing"
    SILENT = "no answer at all"


@dataclass
class LeaseServer:
    """A server with at most one lease, which checks resource versions."""

    record: LeaseRecord | None = None
    version: int = 0
    log: list[str] = field(default_factory=list)

    def get(self) -> tuple[LeaseRecord, int]:
        self.log.append("get")
        if self.record is None:
            raise ApiError(404, "NotFound", "leases not found")
        return self.record, self.version

    def create(self, record: LeaseRecord) -> int:
        self.log.append("create")
        if self.record is not None:
            raise ApiError(409, "AlreadyExists", "lease exists")
        return self._store(record)

    def update(self, record: LeaseRecord, version: int) -> int:
        self.log.append("update")
        if self.record is None:
            raise ApiError(404, "NotFound", "leases not found")
        if version != self.version:
            raise ApiError(409, "Conflict", "the object has been modified")
        return self._store(record)

    def _store(self, record: LeaseRecord) -> int:
        self.record = record
        self.version += 1
        return self.version


@dataclass
class RemoteLock:
    """The requests of one candidate, with latencies and faults."""

    server: LeaseServer
    clock: SkewedClock
    faults: Callable[[], tuple[Fault, float, float]] = lambda: (Fault.NONE, 0.01, 0.01)
    """Returns the outcome of the next request, and the latencies of request and response. Units: seconds."""
    timeout: float = 5.0
    version: int = 0

    def __str__(self) -> str:
        return "kube-system/lease"

    async def get(self) -> LeaseRecord:
        record: LeaseRecord
        record, self.version = await self._asked(self.server.get)
        return record

    async def create(self, record: LeaseRecord) -> None:
        self.version = await self._asked(lambda: self.server.create(record))

    async def update(self, record: LeaseRecord) -> None:
        version = self.version
        self.version = await self._asked(lambda: self.server.update(record, version))

    async def _asked(self, ask: Callable[[], Any]) -> Any:
        fault, there, back = self.faults()
        arriving = asyncio.ensure_future(self._arriving(ask, fault, there, back))
        done, _ = await asyncio.wait({arriving}, timeout=self.timeout / self.clock.rate)
        if not done:
            # The server can still receive the request after the candidate has given up.
            arriving.add_done_callback(lambda task: task.exception())
            raise ApiError(0, "Timeout", "no answer in time")
        return arriving.result()

    @staticmethod
    async def _arriving(ask: Callable[[], Any], fault: Fault, there: float, back: float) -> Any:
        if fault is Fault.SILENT:
            await asyncio.sleep(60)
        await asyncio.sleep(there)
        if fault is Fault.LOST:
            raise ApiError(0, "Unreachable", "connection refused")
        if fault is Fault.REFUSED:
            raise ApiError(500, "InternalError", "etcdserver: request timed out")
        answer = ask() if fault is not Fault.SILENT else None
        await asyncio.sleep(back)
        if fault in {Fault.UNANSWERED, Fault.SILENT}:
            raise ApiError(0, "Unreachable", "the connection broke")
        return answer


def candidate(
    server: LeaseServer, name: str, *, clock: SkewedClock | None = None, seed: int = 0, **timing: float
) -> tuple[Elector, RemoteLock]:
    """Return a candidate for a server's lease, and the lock that sends its requests."""
    clock = clock or SkewedClock()
    lock = RemoteLock(server, clock)
    pacing = Pacing(random.Random(seed).random, clock.sleep)
    return Elector(lock, name, ElectionTiming(**timing), clock, pacing), lock
