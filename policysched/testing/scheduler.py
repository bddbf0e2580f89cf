"""`scheduling` and `TestedScheduler`: a scheduler with the default plugins and the plugin under test."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from policysched.app.configuration.profiles import configured_profiles
from policysched.app.plugins.factories import CheckedFactory, stated_name
from policysched.framework.out_of_tree.handle import PluginHandle
from policysched.framework.registry import PluginRegistry
from policysched.model.decode import decode_node
from policysched.model.defaults import implied_namespace
from policysched.model.release import DEFAULT, Release
from policysched.model.release_choice import AUTO, release_named
from policysched.schedule.cycle.decision import Decision
from policysched.schedule.observer import Attempt, AttemptResult, Observer
from policysched.schedule.queue.queued_pod import QueuedPod
from policysched.schedule.scheduler import LAST_WORDS, Scheduler
from policysched.state.cluster import Cluster
from policysched.testing.fake_time import FakeClock, SteppedLoop
from policysched.testing.objects import PROFILE, Object, read_pod
from policysched.testing.plugin import configuration_of
from policysched.testing.recorded_writes import RecordingClient

_ROUNDS: Final = 50


@dataclass(frozen=True, slots=True)
class PodOutcome:
    """The state of a pod in a `TestedScheduler`: result, node, and reason of a failure."""

    result: str
    """`Scheduled`, `Unschedulable`, `Error`, `Waiting` (at Permit), `Gated` (by PreEnqueue) or `Pending` (new)."""
    node: str = ""
    """The node of a `Scheduled` or `Waiting` pod, else empty."""
    message: str = ""
    """Why the last attempt failed, else empty."""


_RESULTS: Final = {
    AttemptResult.SCHEDULED: "Scheduled",
    AttemptResult.UNSCHEDULABLE: "Unschedulable",
    AttemptResult.ERROR: "Error",
}


class _Listener(Observer):
    """Observer of the scheduler that records, for each pod, its queue and its last scheduling attempt."""

    def __init__(self) -> None:
        self.queues: dict[str, str] = {}
        self.attempts: dict[str, Attempt] = {}
        self.in_flight: set[str] = set()

    def on_queued(self, queued: QueuedPod, queue: str, event: str) -> None:  # noqa: ARG002 - the signature of observers
        self.queues[queued.pod.key] = queue

    def on_decision(self, queued: QueuedPod, decision: Decision) -> None:  # noqa: ARG002 - the signature of observers
        self.in_flight.add(queued.pod.key)

    def on_attempt(self, attempt: Attempt) -> None:
        self.in_flight.discard(attempt.queued.pod.key)
        self.attempts[attempt.queued.pod.key] = attempt


class TestedScheduler:
    """A scheduler with the default plugins and the plugin under test, created by `scheduling`.

    It runs only during calls of its methods.

    Attributes:
        plugin: The instance of the plugin under test.
        handle: The handle of the plugin.
        clock: The clock of the scheduler.
    """

    __test__ = False  # it is no class of tests

    def __init__(
        self, factory: Callable[..., Any], args: Mapping[str, Any] | None, clock: FakeClock, release: Release = DEFAULT
    ) -> None:
        name = stated_name(factory)
        self.plugin: Any = None
        self.clock = clock
        self._read_pod = partial(read_pod, kube_version=release.minor)
        registry, checked = PluginRegistry(), CheckedFactory(name, factory)
        registry.register(name, partial(self._make, checked))
        everywhere = {"multiPoint": {"enabled": [{"name": name}]}}
        profiles = configured_profiles(configuration_of(checked, everywhere, args), registry, release=release)
        self.handle = profiles[PROFILE].handle or PluginHandle(PROFILE)
        self._client, self._heard, self._loop = RecordingClient(), _Listener(), SteppedLoop(clock)
        rng = random.Random(0)  # noqa: S311 - draws among equals
        cluster = Cluster(release=release)
        self._scheduler = Scheduler(profiles, self._client, clock, rng, [self._heard], cluster=cluster)
        self._client.on_bound = lambda pod: self._loop.call_soon(self._scheduler.set_pod, pod)
        self._client.on_deleted = lambda pod: self._loop.call_soon(self._scheduler.drop, pod)
        self._work = self._loop.create_task(self._scheduler.run())

    def _make(self, factory: CheckedFactory, args: Any, handle: Any) -> Any:
        self.plugin = factory(args, handle)
        return self.plugin

    def add(self, *objects: Object) -> None:
        """Add or replace nodes and pods, as `make_node` and `make_pod` return them."""
        for one in objects:
            if one["kind"] == "Node":
                self._scheduler.take(decode_node(one))
            else:
                self._scheduler.take(implied_namespace(one["metadata"]["namespace"]))
                self._scheduler.take(self._read_pod(one))

    def remove(self, *objects: Object) -> None:
        """Delete nodes and pods."""
        for one in objects:
            self._scheduler.drop(decode_node(one) if one["kind"] == "Node" else self._read_pod(one))

    def schedule(self, pod: Object) -> PodOutcome:
        """Add a pod, run the scheduler until it is idle, and return the state of the pod."""
        self.add(pod)
        self.settle()
        return self.outcome(pod["metadata"]["name"], pod["metadata"]["namespace"])

    def outcome(self, name: str, namespace: str = "default") -> PodOutcome:
        """Return the state of a pod."""
        key = f"{namespace}/{name}"
        for waiting in self.handle.waiting_pods():
            if waiting.assumed.pod.key == key:
                return PodOutcome("Waiting", waiting.assumed.node)
        if self._heard.queues.get(key) == "gated":
            return PodOutcome("Gated")
        attempt = self._heard.attempts.get(key)
        return (
            PodOutcome("Pending")
            if attempt is None
            else PodOutcome(_RESULTS[attempt.result], attempt.node, attempt.message)
        )

    def events(self, name: str) -> list[str]:
        """Return the messages of all events about a pod, oldest first."""
        return [event.note for event in self._client.events if event.pod.metadata.name == name]

    def advance(self, seconds: float) -> None:
        """Advance the clock and run the scheduler until it is idle. Units: seconds."""
        self.clock.advance(seconds)
        self.settle()

    def settle(self) -> None:
        """Run the scheduler until it is idle: until it waits for the clock, for objects or for a plugin.

        It waits up to a second of real time for methods that run in a thread.
        """
        for _ in range(_ROUNDS):
            self._loop.run_forever()
            if self._heard.in_flight <= {one.assumed.pod.key for one in self.handle.waiting_pods()}:
                break
        if self._work.done():
            self._work.result()

    def close(self) -> None:
        """Stop the scheduler."""
        self._work.cancel()
        for seconds in (0.0, LAST_WORDS):
            self.clock.advance(seconds)
            self._loop.run_forever()
        self._loop.close()


@contextmanager
def scheduling(
    factory: Callable[..., Any],
    *,
    nodes: Iterable[Object] = (),
    pods: Iterable[Object] = (),
    args: Mapping[str, Any] | None = None,
    clock: FakeClock | None = None,
    kube_version: str = AUTO,
) -> Iterator[TestedScheduler]:
    """Run a scheduler with the default plugins and the plugin under test, enabled at all its extension points.

    Args:
        factory: The plugin's class, or another factory.
        nodes: The nodes, as `make_node` returns them.
        pods: The pods, as `make_pod` returns them; pods without a node are scheduled.
        args: The plugin's arguments in `pluginConfig`.
        clock: The clock of the scheduler; default: a new one.
        kube_version: The Kubernetes minor whose kube-scheduler decides, as `policysched.dry_run` takes it.

    Raises:
        UsageError: the factory or the arguments are invalid.
    """
    made = TestedScheduler(factory, args, clock or FakeClock(), release_named(kube_version))
    try:
        made.add(*nodes, *pods)
        made.settle()
        yield made
    finally:
        made.close()
