"""`Elector`: takes a lease when it is free, renews it in time, and says when it is lost.

Whether a lease has run out is judged by this process's own clock alone, from when its record was last seen to change:
clocks of different machines are never compared. A candidate waits the lease's whole duration without a change; a leader
that cannot renew gives up before that. So there are never two, as long as no clock runs a quarter faster than another.

A candidate waits so for a lease that was deleted, too, which its leader makes anew, and for one whose duration somebody
wrote shorter: client-go's takes both at once. Who stood still for long, and has not heard yet that the lease is lost,
may not act: `may_act` goes by the clock alone.

In four points a leader gives up sooner than client-go's: its time counts from when it sent the renewal that succeeded
last, not from the answer; it ends with the lease, where the renew deadline with a retry period before it is longer; a
lease that somebody else holds is lost at once; and on loss it acts no more while a release is tried.

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
"""By how much of it at most a pause between two attempts to take a lease is longer than the retry period."""

MOST_SAID: Final = 10
"""How many reasons are told apart in the log."""


@dataclass(frozen=True, slots=True)
class ElectionTiming:
    """How long what takes.

    Units: seconds.
    """

    lease_duration: float = 15.0
    """How long candidates wait for a renewal before they take over."""
    renew_deadline: float = 10.0
    """How long a leader tries to renew before it gives up."""
    retry_period: float = 2.0

    def faults(self) -> Iterator[str]:
        """Say what is wrong with it."""
        if self.lease_duration <= self.renew_deadline:
            yield "leaseDuration must be greater than renewDeadline"
        if self.renew_deadline <= JITTER * self.retry_period:
            yield "renewDeadline must be greater than retryPeriod*JitterFactor"


class Elector:
    """One candidate for one lease.

    Args:
        lock: The lease.
        identity: The name of this candidate, which no other one has.
        timing: How long what takes.
        clock: This process's clock.
        pacing: Where randomness and waiting come from.
    """

    def __init__(self, lock: Lock, identity: str, timing: ElectionTiming, clock: Clock, pacing: Pacing) -> None:
        self.identity = identity
        self._lock, self._timing, self._clock, self._pacing = lock, timing, clock, pacing
        self._observed = LeaseRecord()
        self._observed_at = 0.0
        """When the record was last seen to change, or when the request was sent that changed it."""
        self._sent = "", 0.0
        """The renew time of the last record that was sent, whatever became of it, and when that was."""
        self._seconds = max(1, int(timing.lease_duration))
        """How long the lease is written to last: an API server takes whole seconds above 0."""
        self._until = 0.0
        """Until when the record's holder may act."""
        self._holder = ""
        """The leader that the log knows of."""
        self._problem = ""
        """Why the last attempt failed."""
        self._said: set[str] = set()
        """What the log knows of that."""

    @property
    def leads(self) -> bool:
        """Whether this candidate held the lease when it was last looked at."""
        return self._observed.holder == self.identity

    def is_overdue(self, tolerance: float) -> bool:
        """Return whether the lease that is held ran out more than `tolerance` seconds ago; safe in any thread."""
        age = self._clock.monotonic() - self._observed_at
        return self.leads and age > self._timing.lease_duration + tolerance

    def may_act(self) -> bool:
        """Return whether the lease is held and has not run out by this process's clock; safe in any thread."""
        lasts = min(self._timing.lease_duration, self._seconds)
        return self.leads and self._clock.monotonic() < self._observed_at + lasts

    async def acquire(self) -> None:
        """Wait until the lease is held."""
        log.info("attempting to acquire leader lease %s", self._lock)
        while not await self._try():
            self._say_holder()
            await self._pacing.sleep(self._timing.retry_period * (1 + JITTER * self._pacing.random()))
        self._holder = self.identity
        log.info("successfully acquired lease %s as %s", self._lock, self.identity)

    async def hold(self) -> str:
        """Renew the lease until it is lost; return why it is."""
        while await self._within(self._time_left(), self._renew()):
            await self._pacing.sleep(self._timing.retry_period)
        if self.leads:
            return f"lease {self._lock} was not renewed within {self._timing.renew_deadline:g} s: {self._problem}"
        return f"lease {self._lock} is held by {self._observed.holder or 'nobody'}"

    async def release(self) -> None:
        """Give the lease up, so that another candidate need not wait until it runs out.

        Raises:
            ApiError: the server refused.
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
        """Try until the lease is renewed, or held by somebody else; return whether it is renewed."""
        while not await self._try():
            if self._observed.holder not in {"", self.identity}:
                return False
            await self._pacing.sleep(self._timing.retry_period)
        return True

    def _time_left(self) -> float:
        """Return how long may be tried to renew, counted from when the last renewal was sent: others take over then."""
        timing = self._timing
        end = self._observed_at + min(timing.retry_period + timing.renew_deadline, timing.lease_duration)
        return min(end - self._clock.monotonic(), timing.renew_deadline)

    async def _within(self, seconds: float, work: Coroutine[Any, Any, bool]) -> bool:
        """Return what comes of work, False where it takes longer."""
        task, end = asyncio.ensure_future(work), asyncio.ensure_future(self._pacing.sleep(seconds))
        try:
            await asyncio.wait((task, end), return_when=asyncio.FIRST_COMPLETED)
            return not end.done() and task.result()
        finally:
            task.cancel()
            end.cancel()
            await asyncio.gather(task, end, return_exceptions=True)

    async def _try(self) -> bool:
        """Take the lease or renew it; return whether it is held now."""
        try:
            return await self._renewed_at_once() or await self._taken()
        except ApiError as error:
            self._failed(error)
            return False

    async def _renewed_at_once(self) -> bool:
        """Renew against the version that is known, where that may still be the newest."""
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

    async def _taken(self) -> bool:
        """Read the lease, and take it where it is free or our own."""
        try:
            found = await self._lock.get()
        except ApiError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            now = self._clock.monotonic()
            self._until = self._believed_until(now)
            if not self.leads and self._observed.holder and self._is_valid(now):
                self._worked()
                return False  # it was deleted, and who holds it makes it anew
            await self._write(self._own_record(), new=True)
            return True
        if self.leads and not found.holder:
            found = self._observed  # others took its holder out: who leads writes it again
        if found != self._observed:
            self._observe(found)
        record = self._own_record()
        if self.leads:
            record = replace(record, acquire_time=found.acquire_time, transitions=found.transitions)
        elif self._is_valid(self._clock.monotonic()):
            self._worked()
            return False
        else:
            record = replace(record, transitions=min(found.transitions + 1, MOST))
        await self._write(record)
        return True

    def _observe(self, found: LeaseRecord) -> None:
        now = self._clock.monotonic()
        # the holder that was seen before may believe in it still, unless it has given it back
        until = now if _is_given_back(found) else self._believed_until(now)
        if found.holder:
            until = max(until, now + found.duration_seconds)
        self._observed, self._observed_at, self._until = found, self._changed_at(found, now), until

    async def _write(self, record: LeaseRecord, *, new: bool = False) -> None:
        sent = self._clock.monotonic()
        self._sent = record.renew_time, sent
        await (self._lock.create(record) if new else self._lock.update(record))
        self._observed, self._observed_at, self._until = record, sent, sent + record.duration_seconds
        self._worked()

    def _changed_at(self, found: LeaseRecord, now: float) -> float:
        """Return from when a record counts: one that this process wrote, whose answer was lost, from when it was sent.

        What others change about it does not make it younger.
        """
        if found.holder != self.identity:
            return now
        renewed, sent = self._sent
        return sent if found.renew_time == renewed else self._observed_at

    def _own_record(self) -> LeaseRecord:
        now = micro_time(self._clock.now())
        return LeaseRecord(self.identity, self._seconds, now, now)

    def _is_valid(self, now: float) -> bool:
        """Return whether the holder may act still."""
        return self._until > now

    def _believed_until(self, now: float) -> float:
        """Return until when the holder may act by what it wrote, whatever others did to the lease since."""
        return min(self._until, now + self._seconds)

    def _say_holder(self) -> None:
        holder = self._observed.holder
        if holder and holder != self._holder:
            log.info("lease %s is held by %s; waiting for it", self._lock, holder)
        self._holder = holder

    def _worked(self) -> None:
        if self._said:
            log.info("lease %s can be read and written again", self._lock)
            self._said.clear()

    def _failed(self, error: ApiError) -> None:
        """Log what is in the way of the lease, once for each reason; a conflict is another candidate's luck."""
        self._problem = str(error)
        if error.status == HTTPStatus.CONFLICT or self._problem in self._said or len(self._said) == MOST_SAID:
            return
        self._said.add(self._problem)
        cost = (
            "leadership is lost unless a renewal succeeds in time"
            if self.leads
            else "this process schedules nothing until it holds the lease"
        )
        log.warning("lease %s cannot be read or written, retrying: %s; %s", self._lock, error, cost)


def _is_given_back(record: LeaseRecord) -> bool:
    """Return whether a lease is as a leader leaves it that gives it up, and not as one whose holder was taken out."""
    is_one_moment = record.acquire_time == record.renew_time != ""
    return not record.holder and record.duration_seconds <= 1 and is_one_moment
