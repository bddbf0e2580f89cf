"""Leader election: `Elector` acquires a lease, renews it, and reports its loss.

Only this process's monotonic clock decides whether a lease has expired, counted from the last observed change of its
record. Clocks of different machines are never compared. A candidate waits the whole lease duration without a change; a
leader that cannot renew gives up earlier. Two leaders at once are impossible unless one clock runs a quarter faster
than another.

Differences from client-go. A candidate also waits for a lease that was deleted, because its leader recreates it, and
for one whose duration was shortened; client-go takes both at once. `may_act` uses the clock alone, so a process that
was suspended does not act before it notices the loss. A leader gives up earlier in four cases: its time counts from the
request of the last successful renewal, not from the answer; it ends with the lease even if renew deadline plus retry
period are longer; a lease that another process holds is lost at once; and after a loss it does not act while it tries
to release.

Source: k8s.io/client-go/tools/leaderelection/leaderelection.go, v0.36.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, Final

from policysched.framework import ApiError, Clock
from policysched.klog import V4
from policysched.kube.election.lease import MOST, LeaseRecord, Lock, micro_time
from policysched.kube.transport import Pacing

log = logging.getLogger(__name__)
JITTER: Final = 1.2
"""Largest random addition to the pause between attempts to acquire a lease. Units: retry periods."""

MOST_LOGGED: Final = 10
"""Largest number of different failure reasons in the log; further reasons are not logged."""


@dataclass(frozen=True, slots=True)
class ElectionTiming:
    """Durations in the leader election: lease, renew deadline and retry period.

    Units: seconds.
    """

    lease_duration: float = 15.0
    """Time without a renewal after which candidates take over. Units: seconds."""
    renew_deadline: float = 10.0
    """Time for which a leader tries to renew before it gives up. Units: seconds."""
    retry_period: float = 2.0

    def faults(self) -> Iterator[str]:
        """Yield the validation errors of these durations."""
        if self.lease_duration <= self.renew_deadline:
            yield "leaseDuration must be greater than renewDeadline"
        if self.renew_deadline <= JITTER * self.retry_period:
            yield "renewDeadline must be greater than retryPeriod*JitterFactor"


class Elector:
    """A candidate for a lease in a leader election.

    Args:
        lock: The lease.
        identity: The unique name of this candidate.
        timing: Durations of the election.
        clock: This process's clock.
        pacing: Source of random numbers and pauses.
    """

    def __init__(self, lock: Lock, identity: str, timing: ElectionTiming, clock: Clock, pacing: Pacing) -> None:
        self.identity = identity
        self._lock, self._timing, self._clock, self._pacing = lock, timing, clock, pacing
        self._observed = LeaseRecord()
        self._observed_at = 0.0
        """Monotonic time when `_observed` was first read or, if this process wrote it, when the request was sent."""
        self._sent = "", 0.0
        """Of the last Lease that this process sent: its renewTime, and the monotonic time of the request."""
        self._seconds = max(1, int(timing.lease_duration))
        """Lease duration as written into the Lease: the API server accepts whole seconds above 0."""
        self._until = 0.0
        """Monotonic time until which the holder of the lease may act as leader."""
        self._holder = ""
        """The lease holder that was logged last."""
        self._problem = ""
        """Error of the last failed attempt to acquire or renew the lease."""
        self._logged: set[str] = set()
        """Failure reasons logged since the last success."""

    @property
    def leads(self) -> bool:
        """Whether this candidate held the lease when the lease was last read or written."""
        return self._observed.holder == self.identity

    def is_overdue(self, tolerance: float) -> bool:
        """Return whether the held lease expired more than `tolerance` seconds ago; thread-safe."""
        age = self._clock.monotonic() - self._observed_at
        return self.leads and age > self._timing.lease_duration + tolerance

    def may_act(self) -> bool:
        """Return whether the lease is held and not expired by this process's clock; thread-safe."""
        lasts = min(self._timing.lease_duration, self._seconds)
        return self.leads and self._clock.monotonic() < self._observed_at + lasts

    async def acquire(self) -> None:
        """Wait until this candidate holds the lease."""
        log.info("attempting to acquire leader lease %s", self._lock)
        while not await self._try():
            self._log_holder()
            await self._pacing.sleep(self._timing.retry_period * (1 + JITTER * self._pacing.random()))
        self._holder = self.identity
        log.info("successfully acquired lease %s as %s", self._lock, self.identity)

    async def hold(self) -> str:
        """Renew the lease until it is lost; return the reason of the loss."""
        while await self._within(self._time_left(), self._renew()):
            await self._pacing.sleep(self._timing.retry_period)
        if self.leads:
            return f"lease {self._lock} was not renewed within {self._timing.renew_deadline:g} s: {self._problem}"
        return f"lease {self._lock} is held by {self._observed.holder or 'nobody'}"

    async def release(self) -> None:
        """Release the lease, so that another candidate need not wait until it expires.

        Raises:
            ApiError: the server rejected the request.
        """
        if not self.leads:
            return
        found = await self._lock.get()
        if found.holder != self.identity:
            return
        now = micro_time(self._clock.now())
        self._observed = LeaseRecord("", 1, now, now, found.transitions)
        await self._lock.update(self._observed)

    async def _renew(self) -> bool:
        """Try until the lease is renewed (return True) or another process holds it (return False)."""
        while not await self._try():
            if self._observed.holder not in {"", self.identity}:
                return False
            await self._pacing.sleep(self._timing.retry_period)
        return True

    def _time_left(self) -> float:
        """Return how many seconds this leader can still try to renew before it gives up the leadership."""
        timing = self._timing
        end = self._observed_at + min(timing.retry_period + timing.renew_deadline, timing.lease_duration)
        return min(end - self._clock.monotonic(), timing.renew_deadline)

    async def _within(self, seconds: float, work: Coroutine[Any, Any, bool]) -> bool:
        """Return the result of `work`, or False if `work` takes longer than `seconds`."""
        task, end = asyncio.ensure_future(work), asyncio.ensure_future(self._pacing.sleep(seconds))
        try:
            await asyncio.wait((task, end), return_when=asyncio.FIRST_COMPLETED)
            return not end.done() and task.result()
        finally:
            task.cancel()
            end.cancel()
            await asyncio.gather(task, end, return_exceptions=True)

    async def _try(self) -> bool:
        """Acquire or renew the lease once; return whether this candidate holds it now."""
        try:
            return await self._renewed_at_once() or await self._read_and_write()
        except ApiError as error:
            self._failed(error)
            return False

    async def _renewed_at_once(self) -> bool:
        """Renew the lease with the known resourceVersion, without reading the Lease; return whether it succeeded.

        Return False if that cannot work or failed.
        """
        sent, known = self._clock.monotonic(), self._observed
        if not (self.leads and self._is_valid(sent)):
            return False
        try:
            await self._write(
                replace(self._own_record(), acquire_time=known.acquire_time, transitions=known.transitions)
            )
        except ApiError as error:
            log.log(V4, "the first attempt to renew lease %s failed; reading it again: %s", self._lock, error)
            return False
        return True

    async def _read_and_write(self) -> bool:
        """Read the Lease, write it if it is free, expired or held by this candidate; return whether it was written."""
        try:
            found = await self._lock.get()
        except ApiError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            now = self._clock.monotonic()
            self._until = self._believed_until(now)
            if not self.leads and self._observed.holder and self._is_valid(now):
                self._log_recovery()
                return False  # the Lease was deleted; its holder recreates it
            await self._write(self._own_record(), new=True)
            return True
        if self.leads and not found.holder:
            found = self._observed  # someone cleared the holder; the leader writes it again
        if found != self._observed:
            self._observe(found)
        record = self._own_record()
        if self.leads:
            record = replace(record, acquire_time=found.acquire_time, transitions=found.transitions)
        elif self._is_valid(self._clock.monotonic()):
            self._log_recovery()
            return False
        else:
            record = replace(record, transitions=min(found.transitions + 1, MOST))
        await self._write(record)
        return True

    def _observe(self, found: LeaseRecord) -> None:
        now = self._clock.monotonic()
        # the previous holder may still believe that it leads, unless it released the lease
        until = now if _is_given_back(found) else self._believed_until(now)
        if found.holder:
            until = max(until, now + found.duration_seconds)
        self._observed, self._observed_at, self._until = found, self._changed_at(found, now), until

    async def _write(self, record: LeaseRecord, *, new: bool = False) -> None:
        sent = self._clock.monotonic()
        self._sent = record.renew_time, sent
        await (self._lock.create(record) if new else self._lock.update(record))
        self._observed, self._observed_at, self._until = record, sent, sent + record.duration_seconds
        self._log_recovery()

    def _changed_at(self, found: LeaseRecord, now: float) -> float:
        """Return the monotonic time at which a Lease that was read was renewed, as far as this process knows.

        A record that this process wrote, although it got no answer, is valid from its request. Changes by others do not
        extend it.
        """
        if found.holder != self.identity:
            return now
        renewed, sent = self._sent
        return sent if found.renew_time == renewed else self._observed_at

    def _own_record(self) -> LeaseRecord:
        now = micro_time(self._clock.now())
        return LeaseRecord(self.identity, self._seconds, now, now)

    def _is_valid(self, now: float) -> bool:
        """Return whether the lease of the last known holder has not expired."""
        return self._until > now

    def _believed_until(self, now: float) -> float:
        """Return the monotonic time until which the previous holder may still act, although the Lease changed."""
        return min(self._until, now + self._seconds)

    def _log_holder(self) -> None:
        holder = self._observed.holder
        if holder and holder != self._holder:
            log.info("lease %s is held by %s; waiting for it", self._lock, holder)
        self._holder = holder

    def _log_recovery(self) -> None:
        if self._logged:
            log.info("lease %s can be read and written again", self._lock)
            self._logged.clear()

    def _failed(self, error: ApiError) -> None:
        """Log an error about the lease, once per reason; a conflict only means that another candidate was faster."""
        self._problem = str(error)
        if error.status == HTTPStatus.CONFLICT or self._problem in self._logged or len(self._logged) == MOST_LOGGED:
            return
        self._logged.add(self._problem)
        cost = (
            "leadership is lost unless a renewal succeeds in time"
            if self.leads
            else "this process schedules nothing until it holds the lease"
        )
        log.warning("lease %s cannot be read or written, retrying: %s; %s", self._lock, error, cost)


def _is_given_back(record: LeaseRecord) -> bool:
    """Return whether a Lease without a holder was released by its leader, not cleared by another client."""
    is_one_moment = record.acquire_time == record.renew_time != ""
    return not record.holder and record.duration_seconds <= 1 and is_one_moment
