"""Changes of the soak beside pods: nodes, taints, drains, heartbeats, and edits of policies."""

from __future__ import annotations

import asyncio
import random
from typing import Any, Final

from bench.cluster import policies
from bench.soak import objects
from bench.soak.figures import Meter
from bench.soak.load import Load
from bench.soak.objects import NAMESPACE, Json
from bench.soak.server import SoakServer
from policysched.model.policy import KIND

HEARTBEAT: Final = 600.0
"""Interval between two status reports of an unchanged node, twice kubelet's default. Units: seconds, as below."""
TICK: Final = 1.0
PER_HOUR: Final = {"drain": 6.0, "taint": 12.0, "label": 12.0}
"""Numbers per hour, in a cluster of any size."""
DRAINED, TAINTED = 900.0, 1200.0
EDIT_EVERY: Final = 900.0
FEWEST_EDITS: Final = 8
"""Number of edits in a short run."""
SETTLED: Final = 60.0
"""Time until the status of an edited policy must be written."""
POLICIES: Final = 20
EDITS: Final = ("threshold", "weight", "broken", "mended")


class Nodes:
    """The changes of nodes.

    Args:
        server: The API server.
        load: The pods, which leave drained nodes.
        meter: Counts the changes.
        count: Number of nodes.
        rng: Draws nodes and times.
    """

    def __init__(self, server: SoakServer, load: Load, meter: Meter, count: int, rng: random.Random) -> None:
        self._server, self._load, self._meter, self._rng = server, load, meter, rng
        self._numbers = list(range(count))
        self._next = count
        self._reported = 0.0

    def fill(self) -> None:
        """Create the nodes and their devices."""
        for number in self._numbers:
            self._server.create(objects.node(number), loaded=True)
        names = [objects.node_name(number) for number in self._numbers if objects.has_devices(number)]
        for one in objects.devices(*names):
            self._server.create(one)

    def tasks(self) -> list[asyncio.Task[None]]:
        """Start the changes."""
        acts = {"drain": self._drain, "taint": self._taint, "label": self._label}
        changes = [self._change(PER_HOUR[name], act) for name, act in acts.items()]
        return [asyncio.create_task(one) for one in (*changes, self._report())]

    async def _change(self, per_hour: float, act: Any) -> None:
        running: set[asyncio.Task[None]] = set()
        while not self._load.is_over:
            await asyncio.sleep(self._rng.expovariate(per_hour / 3600))
            self._meter.hour.counts["node changes"] += 1
            task = asyncio.create_task(act(self._rng.choice(self._numbers)))
            running.add(task)
            task.add_done_callback(running.discard)

    async def _report(self) -> None:
        """Send the status reports of the kubelets."""
        place = 0.0
        while not self._load.is_over:
            await asyncio.sleep(TICK)
            before, place = int(place), place + len(self._numbers) * TICK / HEARTBEAT
            for index in range(before, int(place)):
                self._heartbeat(objects.node_name(self._numbers[index % len(self._numbers)]))

    def _heartbeat(self, name: str) -> None:
        found = self._server.get("Node", name)
        if found is not None:
            stamp = self._server.backend.timestamp()
            conditions = [one | {"lastHeartbeatTime": stamp} for one in found["status"]["conditions"]]
            self._server.write("Node", found | {"status": found["status"] | {"conditions": conditions}})
            self._meter.hour.counts["node reports"] += 1

    def _set_spec(self, name: str, **spec: Any) -> None:
        if self._server.get("Node", name) is not None:
            self._server.edit(f"/api/v1/nodes/{name}", {"spec": spec})

    async def _drain(self, number: int) -> None:
        """Cordon a node and delete its pods; then uncordon it, or replace it by a new node."""
        name = objects.node_name(number)
        self._set_spec(name, unschedulable=True)
        for pod in list(self._load.on_node[name]):
            self._server.delete("Pod", pod, NAMESPACE)
        await asyncio.sleep(DRAINED)
        if number not in self._numbers:
            return
        if self._rng.random() < 0.5 or self._load.on_node[name]:
            self._set_spec(name, unschedulable=None)
            return
        self._numbers.remove(number)
        self._server.delete("Node", name)
        self._server.delete("ResourceSlice", name)
        self._add()

    def _add(self) -> None:
        number, self._next = self._next, self._next + 1
        self._numbers.append(number)
        self._server.create(objects.node(number), loaded=True)
        if objects.has_devices(number):
            for one in objects.devices(objects.node_name(number)):
                if one["kind"] == "ResourceSlice":
                    self._server.create(one)

    async def _taint(self, number: int) -> None:
        """Taint a node for some time."""
        name = objects.node_name(number)
        if (self._server.get("Node", name) or {"spec": {"taints": True}})["spec"].get("taints"):
            return
        self._set_spec(name, taints=[{"key": "example.com/hold", "effect": "NoSchedule"}])
        await asyncio.sleep(TAINTED)
        self._set_spec(name, taints=None)

    async def _label(self, number: int) -> None:
        """Change a label of a node."""
        name = objects.node_name(number)
        if self._server.get("Node", name) is not None:
            value = str(self._rng.randrange(100))
            self._server.edit(f"/api/v1/nodes/{name}", {"metadata": {"labels": {"example.com/build": value}}})

    def open_all(self) -> None:
        """Uncordon and untaint all nodes."""
        for number in self._numbers:
            name = objects.node_name(number)
            found = self._server.get("Node", name)
            if found is not None and (found["spec"].get("unschedulable") or found["spec"].get("taints")):
                self._set_spec(name, unschedulable=None, taints=None)


class Edits:
    """The edits of policies: a threshold, a weight, an expression that does not compile, and its correction.

    Args:
        server: The API server.
        load: Ends the edits.
        meter: Counts the edits.
        seconds: Length of the run.
        rng: Draws thresholds.
    """

    def __init__(self, server: SoakServer, load: Load, meter: Meter, seconds: float, rng: random.Random) -> None:
        self._server, self._load, self._meter, self._rng = server, load, meter, rng
        self._every = min(EDIT_EVERY, seconds / FEWEST_EDITS)
        self.problems: list[str] = []
        """Policies whose generation in force is not the expected one."""

    def fill(self) -> None:
        """Create the policies."""
        for one in policies.make(POLICIES):
            self._server.create(one)

    async def run(self) -> None:
        """Edit a policy every quarter of an hour, or more often in a short run."""
        turn = 0
        while not self._load.is_over:
            await asyncio.sleep(self._every - SETTLED)
            what, name = EDITS[turn % len(EDITS)], policies.name(turn // len(EDITS) % POLICIES)
            before = self._generations(name)[1]
            self._edit(what, name, turn)
            self._meter.hour.counts["edits"] += 1
            turn += 1
            await asyncio.sleep(SETTLED)
            newest, active = self._generations(name)
            if active != (before if what == "broken" else newest):
                self.problems.append(f"{name}: {what}, generation {newest}, in force {active}, before {before}")

    def _generations(self, name: str) -> tuple[int, int]:
        """Return the newest generation of a policy and the generation in force."""
        found = self._server.get(KIND, name) or {"metadata": {"generation": 0}}
        return found["metadata"]["generation"], (found.get("status") or {}).get("activeGeneration", 0)

    def _edit(self, what: str, name: str, turn: int) -> None:
        path = f"{policies.PATH}/{name}"
        if what == "weight":
            self._server.edit(path, policies.edit(turn // len(EDITS)))
            return
        found: Json = self._server.get(KIND, name) or {}
        filters = [dict(one) for one in found["spec"]["filters"]]
        filters[2]["require"] = (
            'node.pods.count(peer.label["app"] == pod.labels["app"]) < 40'
            if what == "broken"
            else f'node.pods.count(peer.labels["app"] == pod.labels["app"]) < {50 + self._rng.randrange(50)}'
        )
        self._server.edit(path, {"spec": {"filters": filters}})
