"""The load of the soak: pods that are created and end, jobs, pod groups, and the budgets of the apps.

Rates repeat every six hours, so that the memory of two windows of six hours is comparable. Once in each window, batch
pods fill the cluster, and pods of higher priority preempt them.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any, Final

from bench.soak import objects
from bench.soak.figures import Meter
from bench.soak.objects import NAMESPACE, Json, Shape
from bench.soak.server import SoakServer
from policysched.sandbox.storage.store import StoreEvent

HOUR: Final = 3600.0
PERIOD: Final = 6 * HOUR
"""Time after which the rates repeat, in a run of at least this length. Units: seconds, as below."""
SWING: Final = 0.25
"""Largest relative difference between a rate and its mean."""
FULL_AT: Final = 5 / 12
"""Share of the period after which batch pods fill the cluster."""
BEYOND: Final = 50
"""Number of batch pods, per 5,000 nodes, beyond the free space at that time."""
PER_HOUR: Final = {"service": 600.0, "critical": 50.0, "device": 150.0, "group": 10.0, "wave": 6.0}
"""Mean numbers per hour, for 5,000 nodes."""
LEAST_SHARE: Final = 0.1
"""Smallest factor of these numbers in a small cluster."""
LEAST: Final = {"group": 0.6, "wave": 1.0}
"""The same for some of them."""
WAVE: Final = 60
"""Mean number of pods of a wave of batch pods, for 5,000 nodes."""
LIVES: Final = {"service": 11 * HOUR, "critical": 11 * HOUR, "batch": HOUR, "device": 2 * HOUR, "group": 2 * HOUR}
"""Mean lives of placed pods."""
LARGEST_GANG: Final = 64
SMALL_GANG: Final = 16
"""Largest size of a gang in one rack; larger gangs are in one zone."""
PATIENCE: Final = HOUR
"""Time after which a gang that does not fit is deleted."""
BATCH_CPUS: Final = 8
KEPT: Final = 60.0
"""Time from the end of a batch pod to its deletion."""
BUDGETS_EVERY: Final = 60.0
FIRST: Final = 1.4
"""Number of services per node at the start."""
SCALE: Final = 5000
"""Number of nodes to which the numbers above apply."""


class Load:
    """The users' pods.

    Args:
        server: The API server.
        meter: Receives the bindings.
        nodes: Number of nodes.
        seconds: Length of the run.
        rng: Draws shapes, lives and times.
    """

    def __init__(self, server: SoakServer, meter: Meter, nodes: int, seconds: float, rng: random.Random) -> None:
        self._server, self._meter, self._rng = server, meter, rng
        self._share = nodes / SCALE
        self._nodes = nodes
        self._period = min(PERIOD, seconds)
        self._loop = asyncio.get_running_loop()
        self._numbers: Counter[str] = Counter()
        self.shapes: dict[str, Shape] = {}
        """Shapes of the pods that exist, by name."""
        self._created: dict[str, float] = {}
        """Creation times of pending pods, by name."""
        self._ending: set[str] = set()
        """Names of pods that end without a replacement."""
        self.on_node: defaultdict[str, set[str]] = defaultdict(set)
        """Names of the pods on each node."""
        self._members: dict[str, set[str]] = {}
        """Names of the pods of each gang, by the gang's name."""
        self._unplaced: dict[str, int] = {}
        """Number of members of each gang that were never placed, while the gang was never complete."""
        self.used = 0
        """Processors that the existing pods request."""
        self.doubled: list[str] = []
        """Pods whose node changed."""
        self.is_over = False
        """Whether no pod is created any more."""
        server.backend.store.listen("pods", self._happened)
        server.on_eviction = self._evicted

    def fill(self) -> None:
        """Create the services that run at the start, one or two on each node."""
        for number in range(round(FIRST * self._nodes)):
            shape = self._service("service")
            self._create(shape, objects.node_name(number % self._nodes))

    def tasks(self) -> list[asyncio.Task[None]]:
        """Start the creation of pods."""
        acts: dict[str, Callable[[], None]] = {
            "service": lambda: self._create(self._service("service")),
            "critical": lambda: self._create(self._service("critical")),
            "device": lambda: self._create(self._with_devices()),
            "group": self._gang,
            "wave": lambda: self.wave(round(self._rng.uniform(0.5, 1.5) * WAVE * self._share)),
        }
        made = [
            self._arrive(number * max(self._share, LEAST.get(name, LEAST_SHARE)), acts[name])
            for name, number in PER_HOUR.items()
        ]
        return [asyncio.create_task(one) for one in (*made, self._fill_up(), self._keep_budgets())]

    async def _arrive(self, per_hour: float, act: Callable[[], None]) -> None:
        while not self.is_over:
            rate = per_hour / HOUR * (1 + SWING * math.sin(2 * math.pi * self._loop.time() / self._period))
            await asyncio.sleep(self._rng.expovariate(rate))
            act()

    async def _fill_up(self) -> None:
        """Fill the cluster with batch pods once in each period."""
        await asyncio.sleep(FULL_AT * self._period)
        while not self.is_over:
            self.wave(self._places() + round(BEYOND * self._share))
            await asyncio.sleep(self._period)

    def _places(self) -> int:
        """Return the number of batch pods that still fit."""
        used = [sum(self.shapes[name].cpu for name in names) for names in self.on_node.values()]
        idle = self._nodes - len(used)
        return idle * (objects.CPUS // BATCH_CPUS) + sum(max(0, objects.CPUS - one) // BATCH_CPUS for one in used)

    def wave(self, count: int) -> None:
        """Create batch pods of one job."""
        app = f"batch-{self._rng.randrange(objects.BATCH_APPS)}"
        for _ in range(count):
            self._create(Shape("batch", app, BATCH_CPUS, self._life("batch")))

    def _service(self, kind: str) -> Shape:
        app = f"service-{self._rng.randrange(objects.APPS)}"
        number = int(app.partition("-")[2])
        spread = ("zones", "", "hosts", "")[number % 4]
        return Shape(kind, app, (4, 8, 8, 8)[number // 4 % 4], self._life(kind), spread=spread)

    def _with_devices(self) -> Shape:
        claim = self._rng.choices(objects.TEMPLATES, (4, 1))[0]
        return Shape("service", f"training-{self._rng.randrange(20)}", 2, self._life("device"), claim=claim)

    def _life(self, kind: str) -> float:
        return min(3 * LIVES[kind], max(60.0, self._rng.expovariate(1 / LIVES[kind])))

    def _gang(self) -> None:
        """Create a gang of 2 to 64 pods; half of the gangs must be in one rack or zone."""
        size = round(math.exp(self._rng.uniform(math.log(2), math.log(LARGEST_GANG))))
        key = objects.RACK if size <= SMALL_GANG else objects.ZONE
        name = self._name("gang")
        self._server.create(objects.group(name, size, self._rng.choice((key, ""))))
        self._members[name], self._unplaced[name] = set(), size
        for _ in range(size):
            self._create(Shape("group", "gang", 2, 0.0, group=name))
        self._meter.hour.counts["groups created"] += 1
        self._loop.call_later(PATIENCE, self._give_up, name)

    def _give_up(self, name: str) -> None:
        """Delete a gang that was never complete."""
        if name in self._unplaced:
            self._meter.hour.counts["groups given up"] += 1
            self._end_gang(name)

    def _end_gang(self, name: str) -> None:
        self._unplaced.pop(name, None)
        for pod in self._members.pop(name, ()):
            self.end(pod)
        self._server.delete("PodGroup", name, NAMESPACE)

    def _name(self, start: str) -> str:
        self._numbers[start] += 1
        return f"{start}-{self._numbers[start]:06}"

    def _create(self, shape: Shape, on: str = "") -> None:
        name = self._name(shape.app)
        self.shapes[name] = shape
        self.used += shape.cpu
        if shape.group:
            self._members[shape.group].add(name)
        if not on:
            self._created[name] = self._loop.time()
            self._meter.hour.counts["created"] += 1
        self._server.create(objects.pod(name, shape, on), loaded=bool(on))

    def end(self, name: str) -> None:
        """Delete a pod, which is not replaced."""
        self._ending.add(name)
        self._server.delete("Pod", name, NAMESPACE)

    def _finish(self, name: str, uid: str) -> None:
        """End a pod of this UID after its life: a batch pod succeeds first."""
        found = self._server.get("Pod", name, NAMESPACE)
        if found is None or found["metadata"]["uid"] != uid or found["metadata"].get("deletionTimestamp"):
            return
        if self.shapes[name].kind != "batch":
            self.end(name)
            return
        self._ending.add(name)
        self._server.write("Pod", found | {"status": found["status"] | {"phase": "Succeeded"}})
        self._loop.call_later(KEPT, self.end, name)

    # Events of the API server

    def _happened(self, event: StoreEvent) -> None:
        name, node = event.entry.key[1], event.entry.object["spec"].get("nodeName", "")
        before = event.before.object["spec"].get("nodeName", "") if event.before else ""
        if event.type == "DELETED":
            self._gone(name, node)
        elif node and node != before:
            self._placed(name, node, event.entry.object["metadata"]["uid"])
            if before:
                self.doubled.append(f"{name}: {before}, {node}")

    def _placed(self, name: str, node: str, uid: str) -> None:
        shape = self.shapes[name]
        self.on_node[node].add(name)
        created = self._created.pop(name, None)
        if created is not None:
            self._meter.hour.counts["bound with devices"] += bool(shape.claim)
            self._meter.bound(name, self._loop.time() - created, waits=bool(shape.group or shape.claim))
        if not shape.group:
            self._loop.call_later(shape.life, self._finish, name, uid)
        elif shape.group in self._unplaced:
            self._unplaced[shape.group] -= 1
            if not self._unplaced[shape.group]:
                del self._unplaced[shape.group]
                self._meter.hour.counts["groups placed"] += 1
                self._loop.call_later(self._life("group"), self._end_gang, shape.group)

    def _gone(self, name: str, node: str) -> None:
        """Replace a deleted pod that should still exist, as its controller does."""
        shape = self.shapes.pop(name)
        if node:
            self.on_node[node].discard(name)
        self._created.pop(name, None)
        self._meter.retried.discard(name)
        self.used -= shape.cpu
        if shape.group in self._members:
            self._members[shape.group].discard(name)
        ends = name in self._ending
        self._ending.discard(name)
        if ends or self.is_over or (shape.group and shape.group not in self._members):
            return
        self._meter.hour.counts["replaced"] += 1
        if shape.group in self._unplaced and node:
            self._unplaced[shape.group] += 1
        self._loop.call_soon(self._create_again, shape)

    def _create_again(self, shape: Shape) -> None:
        if not shape.group or shape.group in self._members:
            self._create(shape)

    def _evicted(self, pod: Json) -> None:
        counts = self._meter.hour.counts
        counts["evicted"] += 1
        counts["evicted members"] += bool(self.shapes[pod["metadata"]["name"]].group)

    # Budgets

    async def _keep_budgets(self) -> None:
        """Write the allowed disruptions of the budgets, as the disruption controller does."""
        while True:
            pods: Counter[str] = Counter()
            healthy: Counter[str] = Counter()
            for name, shape in self.shapes.items():
                if shape.app in objects.BUDGETS:
                    pods[shape.app] += 1
                    healthy[shape.app] += name not in self._created
            for app, share in objects.BUDGETS.items():
                self._set_budget(app, max(0, healthy[app] - math.ceil(share * pods[app])))
            await asyncio.sleep(BUDGETS_EVERY)

    def _set_budget(self, app: str, allowed: int) -> None:
        known: Any = self._server.get("PodDisruptionBudget", app, NAMESPACE)
        if (known.get("status") or {}).get("disruptionsAllowed") != allowed:
            status = {"disruptionsAllowed": allowed, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}
            self._server.write("PodDisruptionBudget", known | {"status": status})
