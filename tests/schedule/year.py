"""A simulated year of a busy cluster: no name is used twice, and all objects are deleted again.

Nodes are replaced weekly, with new names, labels, images and taints. Shapes of pods, their workloads and namespaces
exist for days, pods for hours, and policies are edited daily. Data that still grows at the end of the year therefore
grows with past objects.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable

from msgspec.structs import replace

from policysched.app.configuration.profiles import default_profile
from policysched.framework import Cluster, MetricAnswer, MetricKey, Sample, plugin_name
from policysched.framework.profile import Profile, members_of
from policysched.model.objects import Metadata, Namespace, Node, Pod, PodStatus, Workload
from policysched.model.policy import PolicyKey
from policysched.rules.policy_set.store import PolicyStore
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.queue.hints import Interests
from policysched.schedule.queue.queue import Queue
from policysched.schedule.queue.queued_pod import QueuedPod
from policysched.state.placed.pods import pod_id
from tests.plugins.stored import claim, csi_node, storage_class, volume
from tests.rules.build import policy
from tests.schedule.queue_parts import StandingClock
from tests.schedule.year_objects import METRIC, Shape, edited, some_node, some_shape

DAYS = 364
DAY = 86400.0
PODS_PER_NODE = 4
"""Number of placed pods for each node."""
WAITING = 50
"""Largest number of pending pods."""
NAMESPACES = 12


class Year:
    """A cluster, the engines of two profiles, a queue, policies, and the objects of the API server."""

    def __init__(self, pods: int, shapes: int, nodes: int, seed: int = 20260101) -> None:
        self.random = random.Random(seed)
        self.clock = StandingClock(1_000_000.0)
        self.cluster = Cluster()
        self._profiles = {name: default_profile(name) for name in ("policysched", "other")}
        self.engines = {name: Engine(self.cluster, one, self.random) for name, one in self._profiles.items()}
        sort = self._profiles["policysched"].queue_sort
        self.queue = Queue(self.clock, sort, self.cluster, profiles=_interests(self._profiles))
        self.store = PolicyStore()
        self.day = 0
        self.placed = self.waiting = self.replaced = 0
        self._per_day, self._new_shapes, self._size = pods // DAYS, max(1, shapes // DAYS), nodes
        self._serial = 0
        self._nodes: deque[Node] = deque()
        self._shapes: deque[Shape] = deque()
        self._running: dict[str, Pod] = {}
        self._running_on: dict[str, dict[str, Pod]] = {}
        self._pending: dict[str, Pod] = {}
        self._namespaces: deque[str] = deque()
        self._workloads: dict[int, list[Workload]] = {}
        self._hold(self.cluster.set_stored(storage_class("fast")))

    def live(self, days: int, after_day: Callable[[int], None] = lambda _: None) -> None:
        """Simulate a number of days."""
        for _ in range(days):
            self._pass_day()
            after_day(self.day)
            self.day += 1

    @property
    def living(self) -> int:
        """Number of existing objects."""
        return len(self._nodes) + len(self._shapes) + len(self._running) + len(self._pending) + len(self._namespaces)

    def _pass_day(self) -> None:
        self._edit_policy()
        self._renew_namespaces()
        self._renew_nodes()
        self._renew_shapes()
        self._measure()
        for place in range(self._per_day):
            if place % 16 == 0:
                self._pass_time(16 * DAY / self._per_day)
            self._come()
        while self._pending:
            self._give_up()

    def _hold(self, change: object) -> None:
        """Pass a change to the queue, as the scheduler does."""
        self.queue.move(change)  # type: ignore[arg-type]

    def _pass_time(self, seconds: float) -> None:
        self.clock.at += seconds
        self.cluster.time.move(self.clock.now().timestamp())

    def _name(self, prefix: str) -> str:
        self._serial += 1
        return f"{prefix}-{self._serial:x}"

    # Daily changes

    def _edit_policy(self) -> None:
        name, spec = edited(self.day)
        made = policy(name, generation=self.day + 1, **spec)
        self.store.apply(made)
        entry = self.store.get(PolicyKey(name))
        assert entry is not None
        assert entry.result.policy is not None, entry.result.diagnostics
        policies = self.store.policy_set()
        active = {one: policies.join(profile) for one, profile in self._profiles.items()}
        for one, profile in active.items():
            self.engines[one].use(profile)
        self.queue.profiles = _interests(active)
        self.queue.move_rejected_by(frozenset({plugin_name(PolicyKey(name))}))

    def _renew_namespaces(self) -> None:
        while len(self._namespaces) <= NAMESPACES:
            name = self._name("team")
            self._namespaces.append(name)
            self.cluster.set_namespace(Namespace(metadata=Metadata(name=name, labels={"tier": "gold", "of": name})))
        self.cluster.remove_namespace(self._namespaces.popleft())

    def _renew_nodes(self) -> None:
        for _ in range(max(1, self._size // 7) if self._nodes else self._size):
            if len(self._nodes) >= self._size:
                self._drain(self._nodes.popleft())
                self.replaced += 1
            name = self._name("node")
            node = some_node(self.random, name, self.day, self.clock.now())
            self._nodes.append(node)
            self._hold(self.cluster.set_node(node))
            self._hold(self.cluster.set_stored(csi_node(name, {"csi.x": 40})))

    def _drain(self, node: Node) -> None:
        name = node.metadata.name
        for key, one in self._running_on.pop(name, {}).items():
            del self._running[key]
            self._remove(one)
        self._hold(self.cluster.remove_node(name))
        self._hold(self.cluster.set_stored(csi_node(name)))
        self._hold(self.cluster.remove_stored(csi_node(name)))

    def _renew_shapes(self) -> None:
        for _ in range(self._new_shapes):
            if len(self._shapes) >= 7 * self._new_shapes:
                for workload in self._shapes.popleft().workloads:
                    self.cluster.workloads.drop(workload)
            nodes = self.random.sample(self._nodes, 2)
            shape = some_shape(self.random, self._name("app"), self.random.choice(self._namespaces), nodes)
            self._shapes.append(shape)
            for workload in shape.workloads:
                self.cluster.workloads.put(workload)

    def _measure(self) -> None:
        samples = {one.metadata.name: Sample(self.random.random(), self.clock.now().timestamp()) for one in self._nodes}
        self._hold(self.cluster.metrics.take(MetricAnswer(MetricKey(METRIC, "node"), samples)))

    # Pods

    def _come(self) -> None:
        """Create a pod, and end one if there are enough."""
        shape = self.random.choice(self._shapes)
        pod = shape.pod(self._name(shape.name))
        if shape.with_volume:
            self._claim(pod)
        self.queue.add(pod)
        self._pending[pod_id(pod)] = pod
        while (queued := self.queue.pop()) is not None:
            self._attempt(queued)
        if len(self._running) > PODS_PER_NODE * self._size:
            self._finish(next(iter(self._running)))
        if len(self._pending) > min(self._size, WAITING):
            self._give_up()

    def _attempt(self, queued: QueuedPod) -> None:
        pod = queued.pod
        decision = self.engines[pod.spec.scheduler_name].decide(pod)
        if decision.row < 0:
            assert not decision.failed, decision.error()
            decision.fit_error()
            self.queue.reject(queued, decision.rejectors())
            self.waiting += 1
            return
        self.cluster.assume(pod, decision.row, decision.evaluation.pod_resources)
        self.queue.release(queued)
        bound = replace(pod, spec=replace(pod.spec, node_name=decision.node))
        self._hold(self.cluster.set_pod(bound))
        self.queue.done(queued)
        key = pod_id(pod)
        del self._pending[key]
        self._running[key] = self._running_on.setdefault(decision.node, {})[key] = bound
        self.placed += 1

    def _claim(self, pod: Pod) -> None:
        name = f"data-{pod.metadata.name}"
        made = {"namespace": pod.metadata.namespace, "uid": f"u-{name}"}
        self._hold(self.cluster.set_stored(volume(f"pv-{name}", of="fast", phase="Bound")))
        self._hold(
            self.cluster.set_stored(
                claim(name, to=f"pv-{name}", of="fast", phase="Bound", metadata=made | {"annotations": _DONE})
            )
        )

    def _finish(self, key: str) -> None:
        """End a pod, by success or by deletion."""
        pod = self._running.pop(key)
        del self._running_on[pod.spec.node_name][key]
        if self.random.random() < 0.5:
            self._hold(self.cluster.set_pod(replace(pod, status=PodStatus(phase="Succeeded"))))
        self._remove(pod)

    def _give_up(self) -> None:
        key = next(iter(self._pending))
        pod = self._pending.pop(key)
        self.queue.delete(key)
        self._remove(pod)

    def _remove(self, pod: Pod) -> None:
        self._hold(self.cluster.remove_pod(pod_id(pod)))
        for one in pod.spec.volumes:
            if one.persistent_volume_claim is not None:
                name = one.persistent_volume_claim.claim_name
                namespaced = {"namespace": pod.metadata.namespace}
                self._hold(self.cluster.remove_stored(claim(name, metadata=namespaced)))
                self._hold(self.cluster.remove_stored(volume(f"pv-{name}")))


_DONE = {"pv.kubernetes.io/bind-completed": "yes"}


def _interests(profiles: dict[str, Profile]) -> dict[str, Interests]:
    return {
        name: Interests(
            profile.pre_enqueue,
            {plugin.name: plugin.events() for plugin in members_of(profile.prepared)},
            {plugin.name: plugin for plugin in profile.retry_controls},
        )
        for name, profile in profiles.items()
    }
