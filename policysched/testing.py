"""What authors test plugins with: nodes and pods, one plugin's part in a decision, a whole scheduler and its time.

    record = decide(MyPlugin, make_pod("web"), [make_node("n1"), make_node("n2")])
    assert record["selected"] == "n2"

    with scheduling(MyPlugin, nodes=[make_node("n1")]) as scheduler:
        assert scheduler.schedule(make_pod("web")).node == "n1"

    assert run("policies/").passed  # tests of policies, see docs/testing.md

All run the engine of `policysched run`, so what holds here holds in a cluster. There is no network, and no time but
that of a `FakeClock`.
"""

from __future__ import annotations

import asyncio
import random
import selectors
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

from msgspec.structs import replace

from policysched.app.configuration.profiles import configured_profiles
from policysched.app.dry_run.dry_run import dry_run
from policysched.app.plugins.factories import CheckedFactory, stated_name
from policysched.app.policy_tests.reading import find_files, take_tests
from policysched.app.policy_tests.running import PolicyTestOptions, PolicyTestResult
from policysched.app.policy_tests.suite import PolicyTestRun, RunChoices, run_files, run_value
from policysched.framework.client import Event, PodStatusChange, PolicyEvent
from policysched.framework.out_of_tree.handle import PluginHandle
from policysched.framework.registry import PluginRegistry
from policysched.model.decode import decode_node, decode_pod
from policysched.model.defaults import fill_pod, priority_classes
from policysched.model.objects import (
    Metadata,
    Namespace,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodExtendedClaimStatus,
    ResourceClaim,
    ResourceClaimStatus,
)
from policysched.model.policy import Policy, PolicyKey
from policysched.plugins.arguments import API_VERSION
from policysched.schedule.cycle.decision import Decision
from policysched.schedule.observer import Attempt, AttemptResult, Observer
from policysched.schedule.queue.queued_pod import QueuedPod
from policysched.schedule.scheduler import LAST_WORDS, Scheduler
from policysched.state.cluster import Cluster

__all__ = [
    "FakeClock",
    "PodOutcome",
    "PolicyTestResult",
    "PolicyTestRun",
    "TestedScheduler",
    "connected_handle",
    "decide",
    "make_node",
    "make_pod",
    "read_pod",
    "run",
    "scheduling",
]
Object: TypeAlias = dict[str, Any]
PROFILE: Final = "default-scheduler"
"""The scheduler name of pods and of the profile, unless a test says otherwise."""
_ALLOCATABLE: Final = {"cpu": "4", "memory": "16Gi", "pods": "110"}
_GRACE: Final = 0.02
"""How long a thread is waited for in one round. Units: seconds of real time."""
_ROUNDS: Final = 50


def make_node(
    name: str,
    *,
    labels: Mapping[str, str] | None = None,
    allocatable: Mapping[str, str] | None = None,
    taints: Iterable[Mapping[str, str]] = (),
) -> Object:
    """Make a node as kubectl prints it: 4 cores, 16 Gi and 110 pods, and what is given."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": {"taints": [dict(one) for one in taints]},
        "status": {"allocatable": {**_ALLOCATABLE, **(allocatable or {})}},
    }


def make_pod(
    name: str,
    *,
    namespace: str = "default",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    requests: Mapping[str, str] | None = None,
    node: str = "",
    **spec: Any,
) -> Object:
    """Make a pod as kubectl prints it, on a node where one is named; `spec` has any other fields of its spec."""
    container = {"name": "main", "image": "registry.example/app", "resources": {"requests": dict(requests or {})}}
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{namespace}-{name}"}
    placed = {"nodeName": node} if node else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**metadata, "labels": dict(labels or {}), "annotations": dict(annotations or {})},
        "spec": {"schedulerName": PROFILE, "containers": [container], **placed, **spec},
    }


def read_pod(pod: Object) -> Pod:
    """Read a pod as plugins are given it, for tests that call their methods."""
    return decode_pod(fill_pod(pod, priority_classes(())))


def connected_handle(nodes: Iterable[Object] = (), pods: Iterable[Object] = ()) -> PluginHandle:
    """Make a handle on some nodes and the pods that are on them, for tests that call the methods of plugins."""
    cluster = Cluster()
    for node in nodes:
        cluster.set_node(decode_node(node))
    for pod in pods:
        cluster.set_pod(read_pod(pod))
    handle = PluginHandle(PROFILE)
    handle.connect(cluster)
    return handle


def decide(
    factory: Callable[..., Any],
    pod: Object,
    nodes: Iterable[Object],
    *,
    pods: Iterable[Object] = (),
    args: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Say where a pod would go if there were this plugin alone.

    Args:
        factory: The plugin's class, or what else its entry point names.
        pod: The pod.
        nodes: The nodes.
        pods: The pods that are on them.
        args: What `pluginConfig` has for the plugin.

    Returns:
        The decision record of docs/dry-run.md.

    Raises:
        UsageError: the plugin cannot be made.
    """
    name = stated_name(factory)
    registry = PluginRegistry()
    checked = CheckedFactory(name, factory)
    registry.register(name, checked)
    needed = [{"name": one} for one in ("PrioritySort", "DefaultBinder", name)]
    multi_point = {"enabled": needed, "disabled": [{"name": "*"}]}
    config = _configuration(checked, {"multiPoint": multi_point}, args)
    return dry_run([*nodes, *pods], pod, config=config, plugins=registry, seed=0).to_dict()


def run(
    tests: str | Path | Mapping[str, Any] | list[Any], *, coverage: bool = False, mutate: bool = False
) -> PolicyTestRun:
    """Run tests of policies, as `policysched test` does.

    Args:
        tests: A file or a folder, or what a file holds; its files are looked for where the process is.
        coverage: Whether to find out which parts of policies no test reaches.
        mutate: Whether to find out which changes of policies no test notices.

    Returns:
        The results; what is wrong with files is in `problems`.

    Raises:
        UsageError: there is no such file, or the value is not of the shape of a file.
    """
    choices = RunChoices(coverage=coverage, mutate=mutate)
    if isinstance(tests, str | Path):
        return run_files(find_files([str(tests)]), PolicyTestOptions(), choices)
    return run_value(take_tests(tests), PolicyTestOptions(), choices)


class FakeClock:
    """Time that moves when a test says so."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._start, self._seconds = start, 0.0

    def now(self) -> datetime:
        """Return the time, UTC."""
        return self._start + timedelta(seconds=self._seconds)

    def monotonic(self) -> float:
        """Return the seconds since the start."""
        return self._seconds

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._seconds += seconds


@dataclass(frozen=True, slots=True)
class PodOutcome:
    """What has become of a pod."""

    result: str
    """`Scheduled`, `Unschedulable`, `Error`, `Waiting` (at Permit), `Gated` (by PreEnqueue), or `Pending`."""
    node: str = ""
    """Where it is bound, or is to be."""
    message: str = ""
    """Why it is not scheduled."""


_RESULTS: Final = {
    AttemptResult.SCHEDULED: "Scheduled",
    AttemptResult.UNSCHEDULABLE: "Unschedulable",
    AttemptResult.ERROR: "Error",
}


class RecordingClaims:
    """What an API server that takes everything says of resource claims."""

    async def get(self, claim: ResourceClaim) -> ResourceClaim:
        """Return a claim as it is known."""
        return claim

    async def set_finalizers(self, claim: ResourceClaim) -> ResourceClaim:
        """Take a claim's finalizers."""
        return _next_version(claim)

    async def allocate(self, claim: ResourceClaim) -> ResourceClaim:
        """Take a claim's allocation."""
        return _next_version(claim)

    async def reserve(self, claim: ResourceClaim) -> ResourceClaim:
        """Take for whom a claim is reserved."""
        return _next_version(claim)

    async def deallocate(self, claim: ResourceClaim) -> ResourceClaim:
        """Take a claim's devices back."""
        return _next_version(replace(claim, status=ResourceClaimStatus()))

    async def unreserve(self, claim: ResourceClaim, pod: Pod) -> None:
        """Take a reservation back."""

    async def create(self, claim: ResourceClaim) -> ResourceClaim:
        """Take a new claim."""
        name = f"{claim.metadata.generate_name}0"
        return _next_version(replace(claim, metadata=replace(claim.metadata, name=name, uid=name)))

    async def delete(self, claim: ResourceClaim) -> None:
        """Delete a claim."""

    async def tell_pod(self, pod: Pod, told: PodExtendedClaimStatus) -> None:
        """Take which claim holds a pod's extended resources."""


def _next_version(claim: ResourceClaim) -> ResourceClaim:
    version = str(int(claim.metadata.resource_version or 0) + 1)
    return replace(claim, metadata=replace(claim.metadata, resource_version=version))


class RecordingClient:
    """An API server that takes everything, and remembers bindings and events."""

    def __init__(self) -> None:
        self.claims = RecordingClaims()
        self.events: list[Event] = []
        self.bindings: dict[str, str] = {}
        """Nodes by pod, as namespace/name."""
        self.on_bound: Callable[[Pod], object] = id
        self.on_deleted: Callable[[Pod], object] = id

    async def bind(self, pod: Pod, node: str) -> None:
        """Bind a pod."""
        self.bindings[pod.key] = node
        self.on_bound(replace(pod, spec=replace(pod.spec, node_name=node)))

    async def node_of(self, pod: Pod) -> str:
        """Return the node of a pod."""
        return self.bindings.get(pod.key, "")

    async def claim_volume(self, volume: PersistentVolume) -> str:
        """Take a volume's claim."""
        return f"{volume.metadata.resource_version}+"

    async def select_node(self, claim: PersistentVolumeClaim, node: str) -> str:  # noqa: ARG002 - the protocol's
        """Take a claim's node."""
        return f"{claim.metadata.resource_version}+"

    async def delete_pod(self, pod: Pod) -> None:
        """Delete a pod."""
        self.on_deleted(pod)

    async def set_pod_status(self, pod: Pod, change: PodStatusChange) -> None:
        """Take a condition or a nominated node; `PodOutcome.message` says why a pod waits."""

    async def report_pod_status(self, pod: Pod, newest: Callable[[], PodStatusChange]) -> None:
        """Take such a change in its turn."""
        await self.set_pod_status(pod, newest())

    async def set_policy_status(self, policy: PolicyKey, resource_version: str, status: dict[str, Any]) -> None:
        """Take a policy's status."""

    async def annotate_policy(self, policy: Policy, annotations: dict[str, str]) -> str:  # noqa: ARG002 - as above
        """Take a policy's annotations."""
        return policy.metadata.resource_version

    def record(self, event: Event | PolicyEvent) -> None:
        """Take an event about a pod."""
        if isinstance(event, Event):
            self.events.append(event)


class _Listener(Observer):
    """Keeps what has become of pods."""

    def __init__(self) -> None:
        self.queues: dict[str, str] = {}
        self.attempts: dict[str, Attempt] = {}
        self.in_flight: set[str] = set()

    def on_queued(self, queued: QueuedPod, queue: str, event: str) -> None:  # noqa: ARG002 - as above
        self.queues[queued.pod.key] = queue

    def on_decision(self, queued: QueuedPod, decision: Decision) -> None:  # noqa: ARG002 - as above
        self.in_flight.add(queued.pod.key)

    def on_attempt(self, attempt: Attempt) -> None:
        self.in_flight.discard(attempt.queued.pod.key)
        self.attempts[attempt.queued.pod.key] = attempt


class TestedScheduler:
    """A scheduler with the default plugins and the one under test; it works when a test calls it.

    Attributes:
        plugin: The plugin under test.
        handle: Its handle.
        clock: The scheduler's time.
    """

    __test__ = False  # it is no class of tests

    def __init__(self, factory: Callable[..., Any], args: Mapping[str, Any] | None, clock: FakeClock) -> None:
        name = stated_name(factory)
        self.plugin: Any = None
        self.clock = clock
        registry, checked = PluginRegistry(), CheckedFactory(name, factory)
        registry.register(name, partial(self._make, checked))
        everywhere = {"multiPoint": {"enabled": [{"name": name}]}}
        profiles = configured_profiles(_configuration(checked, everywhere, args), registry)
        self.handle = profiles[PROFILE].handle or PluginHandle(PROFILE)
        self._client, self._heard, self._loop = RecordingClient(), _Listener(), _SteppedLoop(clock)
        rng = random.Random(0)  # noqa: S311 - draws among equals
        self._scheduler = Scheduler(profiles, self._client, clock, rng, [self._heard])
        self._client.on_bound = lambda pod: self._loop.call_soon(self._scheduler.set_pod, pod)
        self._client.on_deleted = lambda pod: self._loop.call_soon(self._scheduler.drop, pod)
        self._work = self._loop.create_task(self._scheduler.run())

    def _make(self, factory: CheckedFactory, args: Any, handle: Any) -> Any:
        self.plugin = factory(args, handle)
        return self.plugin

    def add(self, *objects: Object) -> None:
        """Add nodes and pods, or change them."""
        for one in objects:
            if one["kind"] == "Node":
                self._scheduler.take(decode_node(one))
            else:
                self._scheduler.take(Namespace(metadata=Metadata(name=one["metadata"]["namespace"])))
                self._scheduler.take(read_pod(one))

    def remove(self, *objects: Object) -> None:
        """Take nodes and pods away."""
        for one in objects:
            self._scheduler.drop(decode_node(one) if one["kind"] == "Node" else read_pod(one))

    def schedule(self, pod: Object) -> PodOutcome:
        """Add a pod, let the scheduler work, and say what has become of the pod."""
        self.add(pod)
        self.settle()
        return self.outcome(pod["metadata"]["name"], pod["metadata"]["namespace"])

    def outcome(self, name: str, namespace: str = "default") -> PodOutcome:
        """Say what has become of a pod."""
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
        """Return what events say about a pod, the first one first."""
        return [event.note for event in self._client.events if event.pod.metadata.name == name]

    def advance(self, seconds: float) -> None:
        """Let time pass, and the scheduler do what is due then."""
        self.clock.advance(seconds)
        self.settle()

    def settle(self) -> None:
        """Let the scheduler work until it waits for time, for objects or for a plugin.

        Methods that run in a thread are waited for, up to a second of real time.
        """
        for _ in range(_ROUNDS):
            self._loop.run_forever()
            if self._heard.in_flight <= {one.assumed.pod.key for one in self.handle.waiting_pods()}:
                break
        if self._work.done():
            self._work.result()

    def close(self) -> None:
        """End it."""
        self._work.cancel()
        for seconds in (0.0, LAST_WORDS):
            self.clock.advance(seconds)
            self._loop.run_forever()
        self._loop.close()


class _SteppedLoop(asyncio.SelectorEventLoop):
    """An event loop that runs by a clock of its own, and stops when nothing is left to do before time passes."""

    def __init__(self, clock: FakeClock) -> None:
        self._fake_clock = clock
        super().__init__(_StoppingSelector(self.stop))

    def time(self) -> float:
        """Return the fake time."""
        return self._fake_clock.monotonic()


class _StoppingSelector(selectors.DefaultSelector):
    """Calls somebody in place of waiting."""

    def __init__(self, stop: Callable[[], None]) -> None:
        super().__init__()
        self._stop = stop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait for nothing but threads that are about to end."""
        if timeout is not None and timeout <= 0:
            return super().select(timeout)
        found = super().select(_GRACE)
        if not found:
            self._stop()
        return found


@contextmanager
def scheduling(
    factory: Callable[..., Any],
    *,
    nodes: Iterable[Object] = (),
    pods: Iterable[Object] = (),
    args: Mapping[str, Any] | None = None,
    clock: FakeClock | None = None,
) -> Iterator[TestedScheduler]:
    """Run a scheduler with the default plugins and one more, at all its points.

    Args:
        factory: The plugin's class, or what else its entry point names.
        nodes: The nodes.
        pods: Pods that are there; those without a node are scheduled.
        args: What `pluginConfig` has for the plugin.
        clock: The scheduler's time; absent, a new one.

    Raises:
        UsageError: the plugin cannot be made.
    """
    made = TestedScheduler(factory, args, clock or FakeClock())
    try:
        made.add(*nodes, *pods)
        made.settle()
        yield made
    finally:
        made.close()


def _configuration(factory: CheckedFactory, plugins: Object, args: Mapping[str, Any] | None) -> Object:
    """Enable a plugin, in the place of PrioritySort where it sorts and before DefaultBinder where it binds."""
    name, made = factory.name, factory.makes()
    entries = [] if args is None else [{"name": name, "args": dict(args)}]
    if hasattr(made, "less"):
        plugins["queueSort"] = {"disabled": [{"name": "PrioritySort"}]}
    if hasattr(made, "bind"):
        plugins["bind"] = {"enabled": [{"name": name}]}
    return {
        "apiVersion": API_VERSION,
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": PROFILE, "plugins": plugins, "pluginConfig": entries}],
    }
