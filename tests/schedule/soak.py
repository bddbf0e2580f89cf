"""A long random sequence of events for a scheduler, with a clock that the test advances.

The events are all that a queue can get: pods that are created, updated and deleted at any time, gates, nominations,
waits and rejections at Permit, bindings that fail or are made by others, reused UIDs, events for unknown pods, other
scheduler names, changes of nodes. As the state of the API server is known, the test can check at the end that nothing
is left.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace as replace_field
from typing import Any

from msgspec.structs import replace

from policysched.app.configuration.profiles import default_profile
from policysched.framework import (
    AssumedPod,
    Event,
    Handle,
    PermitPlugin,
    PodStatusChange,
    PolicyEvent,
    Status,
    Wait,
    unschedulable,
)
from policysched.model.objects import Pod, SchedulingGate, Taint
from policysched.schedule.scheduler import Scheduler
from policysched.state.placed.pods import pod_id
from tests.build import node, pod
from tests.schedule.neighbours import some_affinity
from tests.schedule.parts import FakeClient, refused
from tests.schedule.queue_parts import StandingClock

ME, OTHER = "default-scheduler", "another-scheduler"
PODS, NODES = 120, 12
"""Largest number of pods, and number of node names."""
TURNS = 3
"""Largest number of event loop iterations after each event."""


class Gatekeeper(PermitPlugin):
    """A Permit plugin whose answer is a label of the pod."""

    name = "Gatekeeper"

    def permit(self, assumed: AssumedPod, handle: Handle) -> Status | Wait | None:  # noqa: ARG002 - the protocol's
        """Allow the pod, let it wait, reject it, or fail."""
        match assumed.pod.metadata.labels.get("permit"):
            case "wait":
                return Wait(3600)
            case "reject":
                return unschedulable("not today")
            case "fail":
                raise RuntimeError("the gatekeeper is ill")
        return None


class Server(FakeClient):
    """A client that answers like an API server; some requests fail."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__()
        self.rng = rng
        self.failing = 0.1
        """Probability that a request fails."""
        self.unconfirmed: dict[str, str] = {}
        """Nodes of the bound pods whose event is not sent yet, by UID."""
        self.evicted: list[str] = []
        """UIDs of the deleted pods whose event is not sent yet."""
        self.counts: Counter[str] = Counter()

    def _may_fail(self, request: str) -> None:
        self.counts[request] += 1
        if self.rng.random() < self.failing:
            self.counts[f"{request} refused"] += 1
            raise refused(self.rng.choice((404, 409, 500)))

    async def bind(self, pod: Pod, node: str) -> None:
        """Bind a pod after up to three iterations of the event loop."""
        for _ in range(self.rng.randrange(4)):
            await asyncio.sleep(0)
        self._may_fail("bind")
        self.unconfirmed[pod_id(pod)] = node

    async def report_pod_status(self, pod: Pod, newest: Callable[[], PodStatusChange]) -> None:
        """Write the newest status."""
        await self.set_pod_status(pod, newest())

    async def set_pod_status(self, pod: Pod, change: PodStatusChange) -> None:  # noqa: ARG002 - the protocol's
        """Write a change of a pod's status."""
        await asyncio.sleep(0)
        self._may_fail("status")

    async def delete_pod(self, pod: Pod) -> None:
        """Delete a pod; its event is sent later."""
        await asyncio.sleep(0)
        self._may_fail("delete")
        self.evicted.append(pod_id(pod))

    def record(self, event: Event | PolicyEvent) -> None:
        """Count an event by its reason."""
        self.counts[event.reason] += 1


class Soak:
    """A scheduler and a random sequence of events."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.clock = StandingClock()
        self.server = Server(self.rng)
        profile = replace_field(default_profile(ME), permits=(Gatekeeper(),))
        self.scheduler = Scheduler({ME: profile}, self.server, self.clock, self.rng, ())
        binder = self.scheduler._binder
        binder.handle = replace_field(binder.handle, pause=some_turns)
        self.pods: dict[str, Pod] = {}
        """Pods of the API server, by UID."""
        self.nodes: set[str] = set()
        self.numbers = 0
        self.done: Counter[str] = Counter()
        self._task: asyncio.Task[None] | None = None
        self._acts: dict[Callable[[], None], int] = {
            self.add: 30,
            self.update: 25,
            self.delete: 16,
            self.begin_deletion: 4,
            self.finish: 6,
            self.confirm: 40,
            self.bind_elsewhere: 2,
            self.nominate: 6,
            self.flip: 2,
            self.reuse_identity: 2,
            self.meet_unknown: 2,
            self.change_node: 12,
            self.permit: 12,
            self.pass_time: 12,
            self.activate: 2,
        }

    async def run(self, events: int) -> None:
        """Send a number of random events."""
        if self._task is None:
            self._task = asyncio.create_task(self.scheduler.run())
        acts, weights = list(self._acts), list(self._acts.values())
        for act in self.rng.choices(acts, weights, k=events):
            self.done[act.__name__] += 1
            act()
            for _ in range(self.rng.randrange(TURNS)):
                await asyncio.sleep(0)

    async def end(self) -> None:
        """Stop the scheduler."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))

    async def calm(self) -> None:
        """Advance the time until nothing more happens."""
        for _ in range(60):
            self.clock.at += 15
            self.scheduler._waiter.wake()
            for _ in range(40):
                await asyncio.sleep(0)
            while self.server.unconfirmed or self.server.evicted:
                self.confirm()

    def tell(self, of: Pod) -> None:
        """Send an event with a new or changed pod."""
        self.pods[pod_id(of)] = of
        self.scheduler.take(of)

    def forget(self, identity: str) -> None:
        """Send the event of a pod's deletion."""
        self.server.unconfirmed.pop(identity, None)
        self.scheduler.drop(self.pods.pop(identity))

    def any_pod(self, *, placed: bool | None = None) -> Pod | None:
        """Return a random pod, if requested only with or without a node; None if none is found."""
        for _ in range(8):
            if not self.pods:
                return None
            found = self.rng.choice(list(self.pods.values()))
            if placed is None or bool(found.spec.node_name) is placed:
                return found
        return None

    # Random events

    def add(self) -> None:
        """Create a pod."""
        if len(self.pods) >= PODS:
            self.delete()
        self.numbers += 1
        self.tell(self.make(f"p{self.numbers}"))

    def make(self, name: str) -> Pod:
        """Return a random pod."""
        rng = self.rng
        labels = {
            "app": rng.choice(("lonely", "b", "c")),
            "team": rng.choice("ab"),
            "permit": rng.choices(("", "wait", "reject", "fail"), (80, 12, 5, 3))[0],
        }
        gates = [SchedulingGate(name="g")] if rng.random() < 0.1 else []
        selector = {"zone": rng.choice("xyz")} if rng.random() < 0.2 else {}
        made = pod(
            name,
            requests={"cpu": rng.choice(("100m", "1", "3")), "memory": "64Mi"},
            labels=labels,
            affinity=some_affinity(rng, calm=True) if rng.random() < 0.3 else None,
            priority=rng.choice((0, 0, 0, 5, 9)),
            scheduling_gates=gates,
            node_selector=selector,
            scheduler_name=ME if rng.random() < 0.95 else OTHER,
        )
        if rng.random() < 0.05:
            made = replace(made, status=replace(made.status, nominated_node_name=self._some_node()))
        return made

    def update(self) -> None:
        """Change a pod's label, its gates, or nothing relevant."""
        if (found := self.any_pod()) is None:
            return
        labels = found.metadata.labels | {"app": self.rng.choice(("lonely", "b", "c"))}
        metadata = replace(found.metadata, labels=labels, resource_version=str(self.rng.random()))
        spec = found.spec
        if spec.scheduling_gates and self.rng.random() < 0.5:
            spec = replace(spec, scheduling_gates=[])
        self.tell(replace(found, metadata=metadata, spec=spec))

    def delete(self) -> None:
        """Delete a pod."""
        if (found := self.any_pod()) is not None:
            self.forget(pod_id(found))

    def begin_deletion(self) -> None:
        """Set a pod's deletion timestamp."""
        if (found := self.any_pod()) is not None:
            self.tell(replace(found, metadata=replace(found.metadata, deletion_timestamp="2026-01-01T00:00:00Z")))

    def finish(self) -> None:
        """Finish a placed pod, which removes it, as finished pods are not watched."""
        if (found := self.any_pod(placed=True)) is not None:
            self.forget(pod_id(found))

    def confirm(self) -> None:
        """Send the events of a binding and of an eviction."""
        if self.server.evicted and (gone := self.server.evicted.pop(0)) in self.pods:
            self.forget(gone)
        if not self.server.unconfirmed:
            return
        identity, name = self.server.unconfirmed.popitem()
        if identity in self.pods:
            self.tell(_on(self.pods[identity], name))

    def bind_elsewhere(self) -> None:
        """Bind a pod as another client would, wherever the pod is in the scheduler."""
        if (found := self.any_pod(placed=False)) is not None:
            self.server.unconfirmed.pop(pod_id(found), None)
            self.tell(_on(found, self._some_node()))

    def nominate(self) -> None:
        """Set, change or remove a pending pod's nomination, sometimes to a node that does not exist."""
        if (found := self.any_pod(placed=False)) is not None:
            name = self.rng.choice(("", self._some_node(), "nowhere"))
            self.tell(replace(found, status=replace(found.status, nominated_node_name=name)))

    def flip(self) -> None:
        """Change a pending pod's scheduler name, which a real API server rejects."""
        if (found := self.any_pod(placed=False)) is not None:
            name = OTHER if found.spec.scheduler_name == ME else ME
            self.tell(replace(found, spec=replace(found.spec, scheduler_name=name)))

    def reuse_identity(self) -> None:
        """Delete a pod and create another with the same UID at once, sometimes with another name."""
        if (found := self.any_pod()) is None:
            return
        identity = pod_id(found)
        self.forget(identity)
        self.numbers += 1
        made = self.make(self.rng.choice((found.metadata.name, f"p{self.numbers}")))
        self.tell(replace(made, metadata=replace(made.metadata, uid=identity)))

    def meet_unknown(self) -> None:
        """Send an event for a pod or node that the scheduler does not know."""
        self.numbers += 1
        stranger = self.make(f"stranger-{self.numbers}")
        self.scheduler.drop(self.rng.choice((stranger, _on(stranger, "nowhere"), node(f"n{self.numbers}"))))

    def change_node(self) -> None:
        """Create, change or delete a node, with or without pods."""
        name = self._some_node()
        if name in self.nodes and self.rng.random() < 0.3:
            self.nodes.discard(name)
            self.scheduler.drop(node(name))
            return
        self.nodes.add(name)
        taints = [Taint(key="k", effect="NoSchedule")] if self.rng.random() < 0.2 else []
        labels = {"zone": self.rng.choice("xyz")}
        self.scheduler.take(node(name, labels=labels, taints=taints, allocatable={"cpu": self.rng.choice(("6", "24"))}))

    def permit(self) -> None:
        """Allow or reject a pod that waits at Permit."""
        waiting = list(self.scheduler._binder.handle.waiting.values())
        if waiting:
            one = self.rng.choice(waiting)
            one.allow("Gatekeeper") if self.rng.random() < 0.6 else one.reject("Gatekeeper", "not today")

    def pass_time(self) -> None:
        """Advance the time by seconds, sometimes by more than five minutes."""
        self.clock.at += self.rng.choice((0.3, 1.0, 4.0, 400.0))
        self.scheduler._waiter.wake()

    def activate(self) -> None:
        """Activate a pod, so that it is tried at once."""
        if (found := self.any_pod()) is not None:
            self.scheduler.queue.activate([pod_id(found)])

    def _some_node(self) -> str:
        return f"n{self.rng.randrange(NODES)}"

    # End of the sequence

    async def free_the_way(self) -> None:
        """Remove all reasons for which a pod can be rejected, and wait until all pods are bound."""
        self.server.failing = 0.0
        for found in list(self.pods.values()):
            self.tell(_without_demands(found))
        for letter in "xyz":
            self.scheduler.take(node(f"large-{letter}", labels={"zone": letter}, allocatable={"cpu": "10000"}))
        while self.scheduler._binder.handle.waiting:
            for one in list(self.scheduler._binder.handle.waiting.values()):
                one.allow("Gatekeeper")
            await asyncio.sleep(0)
        await self.calm()

    def stuck(self) -> list[str]:
        """Return the pods of the scheduler that have no node and are not being deleted."""
        return [
            found.key
            for found in self.pods.values()
            if found.spec.scheduler_name == ME and not found.spec.node_name and not found.metadata.deletion_timestamp
        ]

    def remove_everything(self) -> None:
        """Delete all pods and nodes."""
        for identity in list(self.pods):
            self.forget(identity)
        for name in (*self.nodes, *(f"large-{letter}" for letter in "xyz")):
            self.scheduler.drop(node(name))

    def left(self) -> dict[str, Any]:
        """Return the counts of what the scheduler still holds for pods, without zeros."""
        queue, cluster = self.scheduler.queue, self.scheduler.cluster
        held = {
            "in flight": sum(queue.in_flight),
            "queued": sum(queue.counts()),
            "known to the queue": len(queue._pods),
            "entries of heaps": sum(
                map(len, (queue._queues._active, queue._queues._backing_off, queue._queues._completing))
            ),
            "listed under plugins": len(queue._queues.waiting._listed),
            "moves": len(queue._moves),
            "nominated": len(cluster.nominations),
            "placed": len(cluster.pods),
            "waiting at Permit": len(self.scheduler._binder.handle.waiting),
            "tasks": len(self.scheduler.attempts.tasks),
            "writes": len(self.scheduler._binder._conditions._unsent) + len(self.scheduler._binder._conditions._sent),
        }
        return {name: count for name, count in held.items() if count}


async def some_turns(seconds: float) -> None:
    """Pause for some iterations of the event loop, independent of real time."""
    del seconds
    for _ in range(10 * TURNS):
        await asyncio.sleep(0)


def _on(of: Pod, name: str) -> Pod:
    return replace(of, spec=replace(of.spec, node_name=name, scheduling_gates=[]))


def _without_demands(of: Pod) -> Pod:
    spec = replace(of.spec, scheduling_gates=[], affinity=None, node_selector={})
    labels = of.metadata.labels | {"permit": ""}
    status = replace(of.status, nominated_node_name="")
    return replace(of, spec=spec, status=status, metadata=replace(of.metadata, labels=labels))
