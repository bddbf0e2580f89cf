"""`Reloader`: compiles changed policies while the scheduler runs, puts them in force and writes their statuses.

The event loop runs other tasks between two compilations. The policies that are listed at the start take effect
together, before the first attempt.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Hashable, Iterable, Mapping

from policysched.framework import ApiError, Client, Clock, plugin_name
from policysched.framework.profile import Profile
from policysched.model.policy import Policy, PolicyKey
from policysched.rules.compile.policy import CompiledPolicy
from policysched.rules.policy_set.policy_set import PolicySet
from policysched.rules.policy_set.store import PolicyStore, StoredPolicy
from policysched.rules.policy_status.input_presence import CoverageReports
from policysched.rules.policy_status.status import differs, effect, make_status
from policysched.schedule.last_good import LastGoodWriter
from policysched.schedule.policy_events import PolicyEvents
from policysched.schedule.scheduler import Scheduler

log = logging.getLogger(__name__)
RETRY_AFTER = 1.0
MAX_RETRIES = 5
LONGEST_PAUSE = 60.0
"""Longest pause between two equal writes of a status that another client overwrites. Units: seconds."""
_MAX_DOUBLINGS = 10
COUNT_EVERY = 60.0
"""Interval between two counts of the nodes that have the labels and metrics which policies read. Units: seconds."""
NEWS_GATHER = 3.0
"""Delay of a count of nodes after a change, to collect further changes. Units: seconds."""
PODS_FIRST = 4.0
"""Longest time for which writes of statuses wait until no pod is being scheduled. Units: seconds.

In the time of a status, an API server stores several bindings.
"""
POLL = 0.02
"""Interval between checks whether pods are being scheduled. Units: seconds."""


class Reloader:
    """Puts SchedulingPolicy objects in force in a scheduler, and writes their statuses."""

    def __init__(self, scheduler: Scheduler, client: Client, clock: Clock, instance: str) -> None:
        self._scheduler = scheduler
        self._client = client
        self._clock = clock
        self._instance = instance
        self.store = PolicyStore(self._failed)
        self._work = _Newest()
        self._unwritten: dict[PolicyKey, int] = {}
        """The policies whose status could not be written, with the number of failed writes."""
        self._superseded: dict[PolicyKey, str] = {}
        """For each policy, the resource version that writing its annotation created: its status is already written."""
        self._last_good = LastGoodWriter(client)
        self._repeats = _Repeats(clock)
        self._events = PolicyEvents(client, clock)
        self._due = asyncio.Event()
        self._coverage = CoverageReports(scheduler.cluster, instance)
        self._news: set[PolicyKey] = set()
        """Policies whose status has old counts of the nodes that have the labels and metrics read by the policy."""
        self._early = asyncio.Event()
        self._acting: dict[PolicyKey, CompiledPolicy] = {}
        """The compiled policies in force, by policy key."""
        self._in_force = PolicySet()
        self.on_swap: Callable[[PolicySet], None] = _nobody
        """Function that is called with the policies in force whenever these were replaced."""
        self.on_failure: Callable[[Policy, Exception], None] = _log_failure
        """Function that is called with a policy if an internal error prevents its processing."""

    async def start(self, policies: Iterable[Policy]) -> None:
        """Compile the initial policies and put all of them in force in one swap."""
        given = list(policies)
        self._acting = {}
        for policy in given:
            self.store.compile(policy)
            await asyncio.sleep(0)
        self.store.settle()
        for policy in given:
            self._unwritten[policy.key] = 0
            self._log_errors(policy.key)
        self._swap(frozenset())
        for key in sorted(self.store.listed()):
            entry = self.store.get(key)
            if entry is not None and not entry.result.errors:
                self._log_active(key)

    @property
    def in_force(self) -> PolicySet:
        """The set of policies in force."""
        return self._in_force

    def upsert(self, policy: Policy) -> None:
        """Schedule the compilation of a policy."""
        self._work.put_nowait(policy)

    def delete(self, key: PolicyKey) -> None:
        """Schedule the removal of a deleted policy."""
        self._work.put_nowait(key)

    def use_profiles(self, profiles: Mapping[str, Profile], changed: frozenset[str], *, policies: bool) -> int:
        """Replace profiles and combine them with the policies in force; return the number of requeued pods.

        Args:
            profiles: The new profiles by name.
            changed: Names of the plugins that were changed or removed.
            policies: Whether policies changed too, because their extension points differ.
        """
        if policies:
            changed |= {plugin.name for plugin in self._in_force.active}
        return self._scheduler.use_profiles(profiles, self._in_force, changed)

    def check_soon(self) -> None:
        """Schedule a check on how many nodes the labels, resources and metrics exist that policies read."""
        self._early.set()

    async def run(self, acting: asyncio.Event | None = None) -> None:
        """Apply changes of policies until cancelled; write statuses in a separate task.

        Args:
            acting: Set when statuses may be written: only the leader writes them.
        """
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._write_for_ever(acting))
            tasks.create_task(self._count_for_ever())
            while True:
                work = await self._work.get()
                try:
                    await (self._remove(work) if isinstance(work, str) else self._apply(work))
                except Exception as error:  # other policies are not affected
                    if isinstance(work, str):
                        log.exception('removing policy "%s" failed', work)
                    else:
                        self._failed(work, error)
                await asyncio.sleep(0)

    async def _write_for_ever(self, acting: asyncio.Event | None) -> None:
        """Write statuses until cancelled, in a task that does not delay changes of policies."""
        await self._wait_for_pods()
        for key in self.store.listed():
            self._look(key)
            await asyncio.sleep(0)
        if acting is not None:
            await acting.wait()
        while True:
            await self._write_statuses()
            with contextlib.suppress(TimeoutError):
                # Not wait_for: in Python 3.11 it swallows a cancellation that comes as the work does.
                async with asyncio.timeout(RETRY_AFTER if self._unwritten else None):
                    await self._due.wait()
            self._due.clear()
            await self._wait_for_pods()

    async def _wait_for_pods(self) -> None:
        """Wait until no pod is being scheduled, for at most `PODS_FIRST` seconds."""
        end = self._clock.monotonic() + PODS_FIRST
        while self._scheduler.is_busy and self._clock.monotonic() < end:
            await asyncio.sleep(POLL)

    async def _apply(self, policy: Policy) -> None:
        before = self.store.get(policy.key)
        changed = self.store.apply(policy)
        await self._put_in_force(changed)
        known = _same_generation(before, policy)
        if not known and policy.status.observed_generation != policy.metadata.generation:
            self._log_errors(policy.key)
        if policy.key in changed:
            return
        if known:  # only its status or annotations changed
            self._write_soon(policy.key)
        else:
            self._report(policy.key)

    async def _put_in_force(self, changed: frozenset[PolicyKey]) -> None:
        """Put the stored policies in force if the generation in force of any policy changed."""
        if not changed:
            return
        self._swap(frozenset(map(plugin_name, changed)))
        for key in sorted(changed & self.store.listed()):
            self._log_active(key)
            self._report(key)
            await asyncio.sleep(0)

    def _log_active(self, key: PolicyKey) -> None:
        entry = self.store.get(key)
        if entry is not None and entry.active is not None:
            log.info('policy "%s" %s', key, effect(entry.active))

    def _report(self, key: PolicyKey) -> None:
        """Count the nodes that have the labels and metrics a policy reads; write the policy's status if it differs."""
        self._look(key)
        self._write_soon(key)

    def _write_soon(self, key: PolicyKey) -> None:
        self._unwritten[key] = 0
        self._due.set()

    def _look(self, key: PolicyKey) -> bool:
        """Count the nodes that have the labels and metrics a policy reads; return whether its status has to change."""
        entry, news = self.store.get(key), False
        if entry is not None:
            try:
                news = self._coverage.refresh(entry)
            except Exception as error:  # an incomplete status is better than no scheduler
                self._failed(entry.policy, error)
        if self.store.get(key) is None:
            self._coverage.forget(key)
        elif news:
            self._news.add(key)
            self._repeats.forget(key)
        return news

    async def _count_for_ever(self) -> None:
        """Count regularly, until cancelled, the nodes that have the labels and metrics each policy reads."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(COUNT_EVERY):
                    await self._early.wait()
                    await asyncio.sleep(NEWS_GATHER)
            self._early.clear()
            for key in sorted(self.store.listed()):
                if self._look(key) or self._last_good.unkept(key):
                    self._write_soon(key)
                await asyncio.sleep(0)

    def _log_errors(self, key: PolicyKey) -> None:
        entry = self.store.get(key)
        if entry is None:
            return
        policy = entry.policy
        if entry.refused:
            log.warning('policy "%s": %s', key, entry.refused)
        elif policy.status.active_generation > policy.metadata.generation:
            claimed, newest = policy.status.active_generation, policy.metadata.generation
            log.warning(
                'policy "%s": its status states active generation %d, but its newest generation is %d',
                key,
                claimed,
                newest,
            )
        if not entry.result.errors:
            return
        first = next(one for one in entry.result.diagnostics if one.severity == "error")
        log.warning(
            'policy "%s" generation %d has %d error(s), %s: %s %s: %s',
            key,
            entry.policy.metadata.generation,
            entry.result.errors,
            effect(entry.active, "stays") if entry.active else "no generation is in force",
            first.code,
            first.field,
            first.message,
        )

    async def _remove(self, key: PolicyKey) -> None:
        self._unwritten.pop(key, None)
        self._superseded.pop(key, None)
        self._repeats.forget(key)
        self._events.forget(key)
        self._last_good.forget(key)
        self._news.discard(key)
        self._coverage.forget(key)
        changed = self.store.remove(key)
        if key in changed:
            log.info('policy "%s" is deleted and no longer in force', key)
        await self._put_in_force(changed)

    def _swap(self, changed: frozenset[str]) -> None:
        """Put the stored policies in force by replacing the scheduler's policy set.

        If a new generation cannot be evaluated, the generation in force stays. If a generation in force can no longer
        be evaluated, it stays too: decisions fail then, and no pod is placed without it.
        """
        policies = self.store.policy_set()
        try:
            self._scheduler.join(policies)
        except Exception:
            refused = [key for key in sorted(self.store.listed()) if not self._acts_alone(key)]
            if not refused:
                log.exception("evaluating policies failed; they are evaluated again in the next cycle")
            policies = self.store.policy_set()
        self._scheduler.use_policies(policies, changed)
        self._in_force = policies
        self._acting = {plugin.policy.key: plugin.policy for plugin in policies.active}
        self.on_swap(policies)

    def _acts_alone(self, key: PolicyKey) -> bool:
        """Return whether a policy can be evaluated without other policies; if not, reject its new generation."""
        entry, acting = self.store.get(key), self._acting.get(key)
        if entry is None or entry.active is None or entry.active is acting:
            return True
        try:
            self._scheduler.join(PolicySet.of([entry.active]))
        except Exception as error:
            self.store.refuse(key, error, acting)
            return False
        return True

    def _failed(self, policy: Policy, error: Exception) -> None:
        self.on_failure(policy, error)

    async def _write_statuses(self) -> None:
        for key in list(self._unwritten):
            entry = self.store.get(key)
            if entry is not None and self._repeats.must_wait(entry):
                continue
            tries = self._unwritten.pop(key, 0)
            if entry is None:
                continue
            try:
                settled = await self._settle(entry)
            except Exception as error:  # other statuses are not affected
                self._failed(entry.policy, error)
                continue
            if not settled and tries + 1 < MAX_RETRIES:
                self._unwritten.setdefault(key, tries + 1)

    async def _settle(self, entry: StoredPolicy) -> bool:
        """Write a policy's annotation and status if they differ; return False if a write has to be repeated."""
        policy = entry.policy
        if policy.metadata.resource_version == self._superseded.get(policy.key):
            return True
        kept, version = await self._last_good.keep(entry)
        if version != policy.metadata.resource_version:
            self._repeats.wrote(entry)
        found, unkept = self._coverage.of(policy.key), self._last_good.unkept(policy.key)
        status = make_status(entry, self._instance, self._clock.now(), found, unkept)
        if not differs(policy, status, about_nodes=policy.key in self._news):
            self._news.discard(policy.key)
            return kept
        if not version:
            return True
        written = await self._write(policy, version, status)
        if written:
            self._events.record(entry)
        self._repeats.wrote(entry)
        if written and version != policy.metadata.resource_version:
            self._superseded[policy.key] = version
        return kept and written

    async def _write(self, policy: Policy, version: str, status: dict[str, object]) -> bool:
        """Write a policy's status; return False if the write has to be repeated; after a conflict it need not be."""
        try:
            await self._client.set_policy_status(policy.key, version, status)
        except ApiError as error:
            if error.status in {404, 409}:
                return True
            log.warning('could not write the status of policy "%s": %s', policy.key, error.message)
            return False
        self._news.discard(policy.key)
        return True


class _Repeats:
    """Pauses between repeated writes of a policy status that another client overwrites.

    Two installations with the same name may never agree: on metrics, on cost limits, or by their versions.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._of: dict[PolicyKey, tuple[Hashable, int, float]] = {}
        """For each policy, the last written status, how often it was repeated, and until when to pause."""

    def must_wait(self, entry: StoredPolicy) -> bool:
        """Return whether writing a policy's status must wait, because it repeats the last write during a pause."""
        said, _, until = self._of.get(entry.policy.key, (None, 0, 0.0))
        return said == _said(entry) and self._clock.monotonic() < until

    def wrote(self, entry: StoredPolicy) -> None:
        """Record that a policy's status was written."""
        now, key, said = self._clock.monotonic(), entry.policy.key, _said(entry)
        before, times, until = self._of.get(key, (said, 0, now))
        times = times + 1 if before == said and now < until + LONGEST_PAUSE else 1
        doublings = min(times - MAX_RETRIES, _MAX_DOUBLINGS)
        pause = min(2.0**doublings, LONGEST_PAUSE) if doublings >= 0 else 0.0
        self._of[key] = said, times, now + pause

    def forget(self, key: PolicyKey) -> None:
        """Forget the writes of a deleted policy."""
        self._of.pop(key, None)


def _said(entry: StoredPolicy) -> Hashable:
    of, active = entry.policy.metadata, entry.active
    return of.uid, of.generation, active.generation if active is not None else 0


class _Newest(asyncio.Queue[Policy | PolicyKey]):
    """A queue of changed policies with only the newest version of each policy, in the order of first changes.

    Repeated edits of a policy do not delay other policies.
    """

    def _init(self, maxsize: int) -> None:  # noqa: ARG002 - the signature of asyncio.Queue
        self._queue: dict[PolicyKey, Policy | PolicyKey] = {}

    def _put(self, item: Policy | PolicyKey) -> None:
        self._queue[item if isinstance(item, str) else item.key] = item

    def _get(self) -> Policy | PolicyKey:
        return self._queue.pop(next(iter(self._queue)))


def _same_generation(before: StoredPolicy | None, policy: Policy) -> bool:
    if before is None:
        return False
    old, new = before.policy.metadata, policy.metadata
    return (old.uid, old.generation) == (new.uid, new.generation)


def _log_failure(policy: Policy, error: Exception) -> None:
    log.error('policy "%s" generation %d failed', policy.key, policy.metadata.generation, exc_info=error)


def _nobody(_: PolicySet) -> None:
    """Do nothing: the default of a callback."""
