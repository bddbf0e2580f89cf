"""Base classes of plugins that run after a node is chosen: Reserve, Permit, PreBind, Bind and PostBind.

Reserve and Permit run in the scheduling cycle and must not wait. PreBind, Bind and PostBind run in the pod's binding
cycle, concurrently with other cycles, and may wait. None means success. Other results:

- If Reserve or Permit rejects the pod, or a pod that waits at Permit is rejected, the pod is unschedulable until one of
  the events of the rejecting plugin.
- After any other failure, and after any failure from PreBind on, the pod is retried after a backoff.

In both cases Unreserve runs for all Reserve plugins in reverse order, including plugins whose Reserve did not run.

Source: pkg/scheduler/framework/runtime (framework.go, waiting_pods_map.go, pods_in_prebind_map.go), schedule_one.go,
v1.36.
"""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, TypeAlias

from msgspec.structs import replace

from policysched.framework.client import Client, Clock
from policysched.framework.cycle_state import CycleState
from policysched.framework.plugin import Plugin
from policysched.framework.status import Code, Status, unschedulable
from policysched.model.objects import Pod
from policysched.state.cluster import Cluster
from policysched.state.cluster_events import Change

LONGEST_WAIT: Final = 15 * 60.0
"""Longest time that a pod waits at Permit; longer timeouts are reduced to it. Units: seconds."""


@dataclass(slots=True, eq=False)
class AssumedPod:
    """A pod that is assumed on its chosen node until it is bound or its binding fails."""

    pod: Pod
    node: str
    cluster: Cluster
    state: CycleState = field(default_factory=CycleState)
    """The CycleState of the attempt: the data that out-of-tree plugins stored."""
    pre_binds: Sequence[Sequence[PreBindPlugin]] | Status | None = None
    """The plugins whose PreBind runs, in groups that run one after another; None before PreBindPreFlight ran.

    A failure if PreBindPreFlight of a plugin failed.
    """
    _placed: Pod | None = None

    @property
    def placed(self) -> Pod:
        """The pod with its node name, as after the binding."""
        if self._placed is None:
            self._placed = replace(self.pod, spec=replace(self.pod.spec, node_name=self.node))
        return self._placed


@dataclass(frozen=True, slots=True)
class PreFlight:
    """The result of PreBindPreFlight: whether the plugin's PreBind runs for a pod, and whether in parallel."""

    works: bool = True
    """Whether PreBind of the plugin has work to do for the pod."""
    parallel: bool = False
    """Whether PreBind may run in parallel with neighbouring plugins that allow this, too."""


@dataclass(frozen=True, slots=True)
class Wait:
    """The result of Permit that makes a pod wait until the plugin allows or rejects the pod, or a timeout ends.

    Units: seconds until the pod is rejected.
    """

    timeout: float

    @property
    def seconds(self) -> float:
        """The timeout, at most LONGEST_WAIT; LONGEST_WAIT for NaN."""
        return self.timeout if self.timeout <= LONGEST_WAIT else LONGEST_WAIT


Undo: TypeAlias = "Callable[[Handle], Awaitable[None]]"
"""Function that reverts a plugin's writes to the API server for a pod that is not bound after all."""


class WaitingPod:
    """A pod that waits at Permit until every plugin that returned `Wait` allows it, or a plugin rejects it.

    `allow` and `reject` can be called from any thread.
    """

    def __init__(self, assumed: AssumedPod, waits: Mapping[str, Wait]) -> None:
        self._loop = loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self.assumed = assumed
        self._outcome: asyncio.Future[Status | None] = loop.create_future()
        self._timers = {
            plugin: loop.call_later(wait.seconds, self._time_out, plugin, wait) for plugin, wait in waits.items()
        }

    @property
    def pod(self) -> Pod:
        """The pod that waits at Permit."""
        return self.assumed.pod

    @property
    def pending(self) -> tuple[str, ...]:
        """The names of the plugins that have not allowed the pod yet."""
        return tuple(self._timers)

    @property
    def has_outcome(self) -> bool:
        """Whether the wait at Permit has ended: the pod was allowed or rejected."""
        return self._outcome.done()

    def allow(self, plugin: str) -> None:
        """Record that a plugin allows the pod; the wait ends when all plugins that returned `Wait` have allowed it."""
        if threading.get_ident() != self._thread:
            self._loop.call_soon_threadsafe(self.allow, plugin)
            return
        if timer := self._timers.pop(plugin, None):
            timer.cancel()
        if not self._timers:
            self._end(None)

    def reject(self, plugin: str, message: str) -> bool:
        """Reject the pod in the name of a plugin; return whether the pod was still waiting."""
        status = unschedulable(message).by(plugin)
        if threading.get_ident() == self._thread:
            return self._end(status)
        return asyncio.run_coroutine_threadsafe(self._reject(status), self._loop).result()

    def preempt(self, plugin: str, message: str) -> bool:
        """End the wait of a pod that is evicted, with an error; return whether the pod was still waiting."""
        return self._end(Status(Code.ERROR, (message,), plugin))

    async def _reject(self, status: Status) -> bool:
        return self._end(status)

    async def outcome(self) -> Status | None:
        """Wait until the pod is allowed or rejected; return None if every plugin allowed it, else the rejection."""
        return await self._outcome

    def cancel(self) -> None:
        """End the wait at Permit without a result, because the process shuts down."""
        self._stop_timers()
        self._outcome.cancel()

    def _time_out(self, plugin: str, wait: Wait) -> None:
        waited = _as_go_writes(wait.seconds)
        self.reject(plugin, f"rejected due to timeout after waiting {waited} at plugin {plugin}")

    def _end(self, status: Status | None) -> bool:
        self._stop_timers()
        waited = not self._outcome.done()
        if waited:
            self._outcome.set_result(status)
        return waited

    def _stop_timers(self) -> None:
        for timer in self._timers.values():
            timer.cancel()


class PodInPreBind:
    """A pod whose PreBind plugins are running; its binding can be cancelled until the last of them ends."""

    __slots__ = ("_running", "_why")

    def __init__(self) -> None:
        self._running: dict[asyncio.Task[Status | None], PreBindPlugin] = {}
        self._why = ""

    def cancel(self, why: str) -> None:
        """Cancel the binding with an error; the pod is retried after a backoff."""
        self._why = self._why or why
        self._cancel_running()

    @property
    def failure(self) -> Status | None:
        """The failure of a cancelled binding; None if the binding is not cancelled."""
        return Status(Code.ERROR, (self._why,)) if self._why else None

    async def run(
        self, plugins: Iterable[PreBindPlugin], ask: Callable[[PreBindPlugin], Coroutine[Any, Any, Status | None]]
    ) -> Status | None:
        """Run PreBind of plugins in parallel until all have ended; after a failure, cancel the plugins still running.

        Args:
            plugins: The plugins; plugins that cannot be cancelled are awaited.
            ask: Runs PreBind of a plugin.

        Returns:
            The first failure, or None.
        """
        self._running = {asyncio.create_task(ask(plugin)): plugin for plugin in plugins}
        failure: Status | None = None
        try:
            while self._running:
                done, _ = await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)
                for task in [one for one in self._running if one in done]:
                    ended = self._ended(task, self._running.pop(task))
                    if failure is None and ended is not None:
                        failure = ended
                        self._cancel_running()
        finally:
            for task in self._running:
                task.cancel()
        return failure

    def _ended(self, task: asyncio.Task[Status | None], plugin: PreBindPlugin) -> Status | None:
        if not task.cancelled():
            return task.result()
        why = self._why or "cancelled"
        return Status(Code.ERROR, (f'running PreBind plugin "{plugin.name}": {why}',), plugin.name)

    def _cancel_running(self) -> None:
        for task, plugin in self._running.items():
            if not plugin.runs_to_its_end:
                task.cancel()


class DeviceWaitOutcome(Enum):
    """The way in which a wait for binding conditions of devices ended."""

    SUCCESS = "success"
    FAILURE = "failure"
    """A binding failure condition of a device is true."""
    TIMEOUT = "timeout"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class DeviceWait:
    """A pod's wait at PreBind for the binding conditions of its devices."""

    profile: str
    drivers: Sequence[str]
    """The driver of each device of the pod's claims, also of devices without binding conditions."""
    conditional: Sequence[str]
    """The driver of each device that has binding conditions."""
    outcome: DeviceWaitOutcome
    seconds: float
    """Duration of the wait. Units: seconds."""


@dataclass(frozen=True, slots=True)
class Handle:
    """The services of the scheduler that plugins can use at Permit and later extension points."""

    client: Client
    clock: Clock
    pause: Callable[[float], Awaitable[None]]
    """Function that waits for a number of seconds."""
    waiting: Mapping[str, WaitingPod]
    """The pods that wait at Permit, by pod identity."""
    activate: Callable[[Iterable[str]], None]
    """Function that moves pending pods, given by pod identity, to the active queue."""
    in_pre_bind: Mapping[str, PodInPreBind] = field(default_factory=dict)
    """The pods whose PreBind plugins run, by pod identity."""
    changed: Callable[[Change], None] = field(default=lambda _: None)
    """Function that reports a change of the cluster by the plugin, so that pods that it may help are retried."""
    claim_requested: Callable[[bool], None] = field(default=lambda _: None)
    """Function that plugins call after a request to create a ResourceClaim, with whether the API server created it."""
    devices_awaited: Callable[[DeviceWait], None] = field(default=lambda _: None)
    """Function that plugins call after a pod waited for its devices' binding conditions, with the outcome."""


class ReservePlugin(Plugin, ABC):
    """Base class of plugins at Reserve, which reserve resources for a pod on its chosen node."""

    @abstractmethod
    def reserve(self, assumed: AssumedPod) -> Status | None:
        """Reserve resources for the pod on its node; `unreserve` is also called after a failure of this method."""

    @abstractmethod
    def unreserve(self, assumed: AssumedPod) -> Undo | None:
        """Release the resources that `reserve` reserved, if any; called after any later failure of the binding.

        A returned function sends requests that revert earlier writes; it runs before the pod is retried.
        """


class PermitPlugin(Plugin, ABC):
    """Base class of plugins at Permit, which allow, delay or reject a binding."""

    awaits_group_only: bool = False
    """Whether the plugin only makes members of a pod group wait for each other, so that all are assumed first."""

    @abstractmethod
    def permit(self, assumed: AssumedPod, handle: Handle) -> Status | Wait | None:
        """Return None to allow the binding, a Wait to delay it, or a rejection."""


class PreBindPlugin(Plugin, ABC):
    """Base class of plugins at PreBind, which do the work that must precede a binding."""

    @property
    def runs_to_its_end(self) -> bool:
        """Whether a running PreBind is always awaited until it ends, and never cancelled."""
        return False

    @abstractmethod
    def pre_bind_pre_flight(self, assumed: AssumedPod) -> PreFlight | Status:
        """Return whether and how `pre_bind` runs for the pod, or a failure."""

    @abstractmethod
    def pre_bind(self, assumed: AssumedPod, handle: Handle) -> Coroutine[Any, Any, Status | None]:
        """Do the work that must precede the binding.

        It is cancelled if the pod is preempted or a plugin that runs in parallel fails.
        """


class BindPlugin(Plugin, ABC):
    """Base class of plugins at Bind, which bind a pod to its node."""

    @abstractmethod
    async def bind(self, assumed: AssumedPod, handle: Handle) -> Status | None:
        """Bind the pod, or return a status with code SKIP to leave the binding to the next plugin."""


class PostBindPlugin(Plugin, ABC):
    """Base class of plugins at PostBind, which are notified after a binding."""

    @abstractmethod
    async def post_bind(self, assumed: AssumedPod, handle: Handle) -> None:
        """Handle the notification that the pod is bound."""


def _as_go_writes(seconds: float) -> str:
    """Return a duration as Go writes it: `1h0m0s`, `1m30s`, `2.5s`, `500ms`."""
    if 0 < seconds < 1:
        return f"{seconds * 1000:g}ms"
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(int(minutes), 60)
    parts = (f"{hours}h" if hours else "", f"{minutes}m" if hours or minutes else "", f"{rest:g}s")
    return "".join(parts)
