"""Leader election in its own thread, and its state in the scheduler's event loop.

The thread has its own event loop and connection, so a long scheduling cycle never loses the lease. After a loss the
process must end before another process acts: the thread notifies the scheduler's loop, and ends the process if the loop
hangs.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import threading
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from prometheus_client import CollectorRegistry, Gauge

from policysched.app.configuration.election import election_timing, lease_of
from policysched.app.configuration.model import LeaderElection
from policysched.app.daemon_threads import run_in_loop
from policysched.errors import ConnectionProblemError, LeadershipLostError
from policysched.framework import ApiError, Clock
from policysched.kube.connection import Connection
from policysched.kube.election.elector import Elector
from policysched.kube.election.lease import LeaseLock
from policysched.kube.transport import Pacing, Transport

log = logging.getLogger(__name__)
OVERDUE: Final = 20.0
"""Time after the expiry of a held lease from which the process is unhealthy. Units: seconds."""
RELEASE_WITHIN: Final = 5.0
"""Longest wait for the release of the lease at the end of the process. Units: seconds."""
END_WITHIN: Final = 2.0
"""Time for the scheduler's loop to stop after the lease is lost; then the thread ends the process. Units: seconds."""
LOST: Final = "leaderelection lost"
EVENT_WITHIN: Final = 2.0
"""Limit for writing an event about the lease. Units: seconds."""


@dataclass(frozen=True, slots=True)
class ElectionThread:
    """Dependencies of the election thread."""

    connect: Callable[[], Awaitable[Connection]]
    """Function that opens a connection to the API server in the running event loop."""
    clock: Clock
    pacing: Pacing
    controller: str
    """Reporting controller of events about the lease: the first scheduler name."""
    end_process: Callable[[int], Any] = os._exit


class Leadership:
    """This process's part in leader election, from `acquire` to `stop`.

    Args:
        election: Election settings.
        around: Dependencies of the thread.
        registry: Registry of the metric.

    Raises:
        UsageError: the durations are invalid.
    """

    def __init__(self, election: LeaderElection, around: ElectionThread, registry: CollectorRegistry) -> None:
        self._election, self._around = election, around
        self._timing = election_timing(election)
        self.identity = new_identity()
        self.leading = asyncio.Event()
        """Event of the scheduler's loop that is set when this process holds the lease."""
        self._lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._loop = asyncio.get_running_loop()
        self._ended, self._notified = asyncio.Event(), threading.Event()
        self._elector: Elector | None = None
        self._stop: Callable[[], object] = _nothing
        self._thread: threading.Thread | None = None
        self._gauge = Gauge(
            "leader_election_master_status",
            "Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates master.",
            ["name"],
            registry=registry,
        ).labels(election.resource_name)

    @property
    def lease(self) -> str:
        """Namespace and name of the lease."""
        return lease_of(self._election)

    def problem(self) -> str:
        """Return the reason why the process is unhealthy (check `leaderElection`), empty if healthy; thread-safe."""
        elector = self._elector
        if elector is None or not elector.is_overdue(OVERDUE):
            return ""
        return f"failed election to renew leadership on lease {self._election.resource_name}"

    def may_act(self) -> bool:
        """Return whether the lease is held and not expired, even if a suspended process has not noticed the loss."""
        return self._elector is not None and self._elector.may_act()

    async def acquire(self) -> None:
        """Take part in the election until the lease is held."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="leader-election", daemon=True)
            self._thread.start()
        await self.leading.wait()

    @property
    def is_lost(self) -> bool:
        """Whether the lease was held and is lost."""
        return self._lost.done()

    async def lost(self) -> None:
        """Wait until the lease is lost.

        Raises:
            LeadershipLostError: the lease is lost.
        """
        raise LeadershipLostError(f"{LOST}: {await asyncio.shield(self._lost)}")

    async def stop(self) -> None:
        """End the thread and release the lease; nothing may rely on the lease afterwards."""
        self._notified.set()
        if self._thread is None:
            return
        self._stop()
        try:
            async with asyncio.timeout(RELEASE_WITHIN):
                await self._ended.wait()
        except TimeoutError:
            log.warning(
                "lease %s could not be released within %.0f s; a standby has to wait until it expires",
                self.lease,
                RELEASE_WITHIN,
            )

    def _run(self) -> None:
        """Take part in the election until the end; main function of the election thread."""
        try:
            run_in_loop(self._work())
        except Exception:
            log.exception("the leader election failed")
            self._lose("the leader election itself failed")
        finally:
            _call(self._loop, self._ended.set)

    async def _work(self) -> None:
        electing = asyncio.ensure_future(self._elect())
        own = asyncio.get_running_loop()
        self._stop = lambda: _call(own, electing.cancel)
        if self._notified.is_set():
            electing.cancel()
        await asyncio.wait((electing,))
        if not electing.cancelled():
            electing.result()

    async def _elect(self) -> None:
        connection = await self._connect()
        try:
            timeout = max(self._timing.renew_deadline / 2, 1.0)
            election = self._election
            lock = LeaseLock(Transport(connection), election.resource_namespace, election.resource_name, timeout)
            elector = Elector(lock, self.identity, self._timing, self._around.clock, self._around.pacing)
            self._elector = elector
            await self._lead(elector, lock)
        finally:
            await connection.close()

    async def _lead(self, elector: Elector, lock: LeaseLock) -> None:
        try:
            await elector.acquire()
            self._gauge.set(1)
            _call(self._loop, self.leading.set)
            saying = asyncio.ensure_future(self._write_event(lock, "became leader"))
            try:
                why = await elector.hold()
            finally:
                saying.cancel()
            self._gauge.set(0)
            self._lose(why)
        except asyncio.CancelledError:
            await self._release(elector, lock)
            raise

    async def _release(self, elector: Elector, lock: LeaseLock) -> None:
        """Release the lease at the end of the process."""
        if not elector.leads:
            return
        self._gauge.set(0)
        try:
            await elector.release()
        except ApiError as error:
            log.warning("lease %s could not be released; a standby has to wait until it expires: %s", self.lease, error)
            return
        log.info("lease %s is released", self.lease)
        await self._write_event(lock, "stopped leading")

    async def _connect(self) -> Connection:
        while True:
            try:
                return await self._around.connect()
            except ConnectionProblemError as error:
                log.warning("the leader election cannot connect to the API server; retrying: %s", error)
                await self._around.pacing.sleep(self._timing.retry_period)

    async def _write_event(self, lock: LeaseLock, what: str) -> None:
        """Write an event about the lease; failures have no effect on the election."""
        try:
            async with asyncio.timeout(EVENT_WITHIN):
                await lock.record_event(f"{self.identity} {what}", self._around.clock.now(), self._around.controller)
        except (ApiError, TimeoutError) as error:
            log.info("could not write the event about lease %s: %s", self.lease, error)

    def _lose(self, why: str) -> None:
        """Stop the scheduler after a loss of the lease; end the process if the scheduler's loop does not react."""
        log.error("%s: %s", LOST, why)
        _call(self._loop, lambda: self._on_lost(why))
        if not self._notified.wait(END_WITHIN):
            log.critical("%s, and the scheduler did not stop in time; ending the process", LOST)
            self._around.end_process(1)

    def _on_lost(self, why: str) -> None:
        self._notified.set()
        if not self._lost.done():
            self._lost.set_result(why)


def new_identity() -> str:
    """Return a unique name for this process."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


def _call(loop: asyncio.AbstractEventLoop, what: Callable[[], object]) -> None:
    """Call a function in the event loop of another thread; do nothing if that loop is closed."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(what)


def _nothing() -> None:
    """Do nothing: initial value of the function that ends the election thread, before the thread runs."""
