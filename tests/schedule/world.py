"""A random cluster, and the plain objects that it must equal at any time."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from policysched.framework import Cluster, MetricAnswer, MetricKey, Sample
from policysched.model.objects import (
    ContainerStatus,
    DeviceClass,
    DeviceClassSpec,
    Metadata,
    Namespace,
    Node,
    Pod,
    PodStatus,
    ResourceRequirements,
    Workload,
)
from policysched.state.placed.pods import pod_id
from tests.schedule.world_objects import GPU, NAMESPACES, some_node, some_pod, some_workload, written

METRICS = (MetricKey("load", "node"), MetricKey("heat", "node"))
BEGIN = 1767225600
"""Start of the simulated time: 2026-01-01. Units: seconds since 1970."""


class World:
    """Random objects of all kinds that decisions read, and a live cluster that gets every change."""

    def __init__(self, seed: int, most_nodes: int, *, calm: bool = False) -> None:
        self.random = random.Random(seed)
        self.cluster = Cluster()
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, tuple[Pod, str]] = {}
        """Placed and assumed pods by UID, the latter with their node."""
        self.namespaces: dict[str, Namespace] = {}
        """Known namespaces by name; nearly always all."""
        for name in NAMESPACES:
            self._set_namespace(name, {})
        self.device_classes: dict[str, DeviceClass] = {}
        self.answers: dict[MetricKey, MetricAnswer] = {}
        self.now = float(BEGIN)
        self.cluster.time.move(self.now)
        self.workloads: dict[tuple[str, str, str], Workload] = {}
        self._most_nodes = most_nodes
        self.calm = calm
        """Whether no pod has a namespace selector, whose changes invalidate all classes."""
        self._serial = 0
        self._events: list[tuple[Callable[[], None], int]] = [
            (self._set_node, 16),
            (self._change_node, 20),
            (self._remove_node, 5),
            (self._place_pod, 20),
            (self._update_pod, 12),
            (self._remove_pod, 12),
            (self._finish_pod, 3),
            (self._assume, 14),
            (self._forget, 5),
            (self._confirm, 8),
            (self._label_namespace, 3),
            (self._change_device_class, 1),
            (self._pass_time, 6),
            (self._measure, 3),
            (self._change_workload, 1),
        ]

    def step(self) -> None:
        """Apply one random event."""
        if self.random.random() < 0.0003:
            self._remove_all_nodes()
        if len(self.pods) > 4 * self._most_nodes:
            self._remove_pod()
        events, weights = zip(*self._events, strict=True)
        self.random.choices(events, weights)[0]()

    def fresh(self) -> Cluster:
        """Return a new cluster with the same objects, loaded in random order."""
        made = Cluster(self.cluster.strings)
        made.time.move(self.now)
        for answer in self._shuffled(self.answers.values()):
            made.metrics.take(answer)
        for node_ in self._shuffled(self.nodes.values()):
            made.set_node(node_)
        for namespace in self.namespaces.values():
            made.set_namespace(namespace)
        for device_class in self._shuffled(self.device_classes.values()):
            made.take(device_class)
        for workload in self._shuffled(self.workloads.values()):
            made.workloads.put(workload)
        for held, assumed_on in self._shuffled(self.pods.values()):
            if assumed_on:
                made.assume(held, made.nodes.row_for(assumed_on))
            else:
                made.set_pod(held)
        return made

    def _shuffled(self, items: Any) -> list[Any]:
        listed = list(items)
        self.random.shuffle(listed)
        return listed

    def _name(self) -> str:
        return f"n{self.random.randrange(self._most_nodes)}"

    def _some_node(self) -> str:
        return self.random.choice(sorted(self.nodes)) if self.nodes else ""

    def _some_pod(self, *, assumed: bool | None = None) -> str:
        fitting = [key for key, (_, on) in self.pods.items() if assumed is None or bool(on) is assumed]
        return self.random.choice(fitting) if fitting else ""

    # Nodes

    def _set_node(self) -> None:
        self._store(self._random_node(self._name()))

    def _store(self, made: Node) -> None:
        self.nodes[made.metadata.name] = made
        self.cluster.set_node(made)

    def _random_node(self, name: str) -> Node:
        return some_node(self.random, name, self.now, self.nodes.get(name))

    def _change_node(self) -> None:
        name = self._some_node()
        if not name:
            return
        old, other = self.nodes[name], self._random_node(name)
        part = self.random.choice(("metadata", "spec", "status", "images", "nothing"))
        if part == "images":
            self._store(replace(old, status=replace(old.status, images=other.status.images)))
        elif part == "nothing":
            self._store(replace(old, metadata=replace(old.metadata, resource_version=str(self._serial))))
        else:
            self._store(replace(old, **{part: getattr(other, part)}))

    def _remove_node(self) -> None:
        name = self._some_node()
        self.cluster.remove_node(name)
        self.nodes.pop(name, None)

    def _remove_all_nodes(self) -> None:
        for name in list(self.nodes):
            self.cluster.remove_node(name)
            del self.nodes[name]

    # Pods

    def _random_pod(self, on: str = "") -> Pod:
        self._serial += 1
        made = some_pod(self.random, f"p{self._serial}", on, calm=self.calm)
        created = written(self.now - self._serial % 4 * 27) if self._serial % 5 else None
        return replace(made, metadata=replace(made.metadata, creation_timestamp=created))

    def _place_pod(self) -> None:
        self._keep(self._random_pod(on=self._name() if self.random.random() < 0.2 else self._some_node() or "n0"))

    def _keep(self, placed: Pod) -> None:
        self.pods[pod_id(placed)] = (placed, "")
        self.cluster.set_pod(placed)

    def _update_pod(self) -> None:
        key = self._some_pod(assumed=False)
        if not key:
            return
        old = self.pods[key][0]
        part = self.random.choice(("labels", "annotations", "end", "spec", "resize", "status", "move"))
        match part:
            case "labels":
                newer = replace(old, metadata=replace(old.metadata, labels={"team": "c"}, annotations={"a": "b"}))
            case "annotations":
                annotations = {self.random.choice(("batch", "gpu", "disk")): self.random.choice(("yes", "no"))}
                newer = replace(old, metadata=replace(old.metadata, annotations=annotations))
            case "end":
                newer = replace(old, metadata=replace(old.metadata, deletion_timestamp="2026-01-01T00:00:00Z"))
            case "spec":
                other = self._random_pod()
                newer = replace(old, spec=replace(old.spec, containers=other.spec.containers))
            case "resize":
                actual = ResourceRequirements(requests={"cpu": self.random.choice(("100m", "2"))})
                held = ContainerStatus(name="c", resources=actual)
                newer = replace(old, status=PodStatus(phase="Running", container_statuses=[held]))
            case "status":
                newer = replace(old, status=PodStatus(phase="Running"))
            case _:
                newer = replace(old, spec=replace(old.spec, node_name=self._name()))
        self._keep(newer)

    def _remove_pod(self) -> None:
        key = self._some_pod()
        self.cluster.remove_pod(key)
        self.pods.pop(key, None)

    def _finish_pod(self) -> None:
        key = self._some_pod(assumed=False)
        if key:
            done = self.pods.pop(key)[0]
            self.cluster.set_pod(replace(done, status=PodStatus(phase=self.random.choice(("Succeeded", "Failed")))))

    def assume(self, waiting: Pod, name: str) -> None:
        """Assume a pod on a node."""
        self.pods[pod_id(waiting)] = (waiting, name)
        self.cluster.assume(waiting, self.cluster.nodes.row_of[name])

    def _assume(self) -> None:
        name = self._some_node()
        if name:
            self.assume(self._random_pod(), name)

    def _forget(self) -> None:
        key = self._some_pod()
        held = self.pods.get(key)
        self.cluster.forget(key)
        if held and held[1]:
            del self.pods[key]

    def _confirm(self) -> None:
        key = self._some_pod(assumed=True)
        if key:
            waiting, name = self.pods[key]
            elsewhere = self._name() if self.random.random() < 0.1 else name
            self._keep(replace(waiting, spec=replace(waiting.spec, node_name=elsewhere)))

    # The rest

    def _pass_time(self) -> None:
        self.now += self.random.choice((0.5, 3, 9, 30, 600, 3600 * 5, -4))
        self.cluster.time.move(self.now)

    def _measure(self) -> None:
        chance, key = self.random, self.random.choice(METRICS)
        names = [f"n{number}" for number in range(self._most_nodes) if chance.random() < 0.8]
        samples = {
            name: Sample(chance.choice((0.1, 0.5, 0.95, 7.0)), self.now - chance.choice((0, 20, 100))) for name in names
        }
        answer = self.answers[key] = MetricAnswer(key, samples)
        self.cluster.metrics.take(answer)

    def _label_namespace(self) -> None:
        name = self.random.choice(NAMESPACES)
        chance = self.random.random()
        if chance < 0.02:
            self.namespaces.pop(name, None)
            self.cluster.remove_namespace(name)
            return
        self._set_namespace(name, {} if chance < 0.2 else {"tier": self.random.choice(("gold", "tin"))})

    def _set_namespace(self, name: str, labels: dict[str, str]) -> None:
        made = self.namespaces[name] = Namespace(metadata=Metadata(name=name, labels=labels))
        self.cluster.set_namespace(made)

    def _change_device_class(self) -> None:
        name = self.random.choice("cd")
        if name in self.device_classes or self.random.random() < 0.7:
            self.device_classes.pop(name, None)
            self.cluster.drop(DeviceClass(metadata=Metadata(name=name)))
            return
        spec = DeviceClassSpec(extended_resource_name=self.random.choice((GPU, "x.io/other")))
        made = self.device_classes[name] = DeviceClass(metadata=Metadata(name=name), spec=spec)
        self.cluster.take(made)

    def _change_workload(self) -> None:
        made = some_workload(self.random)
        key = (type(made).__name__, made.metadata.namespace, made.metadata.name)
        if self.random.random() < 0.3:
            self.workloads.pop(key, None)
            self.cluster.workloads.drop(made)
        else:
            self.workloads[key] = made
            self.cluster.workloads.put(made)
