"""A steady day of a large cluster: nodes are updated every ten seconds, pods come and end at a constant rate."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from policysched.model.objects import Node, Pod
from policysched.state.placed.pods import pod_id
from tests.build import node, pod
from tests.schedule.soak import ME, Soak

UPDATED_EVERY = 10
"""Interval between two updates of a node. Units: seconds."""
PODS_A_SECOND = 4
"""Rate of new pods; with bindings and deletions, twelve events a second, a million a day."""
CLASSES = 20


class Day(Soak):
    """A scheduler with nodes that are updated without changes, and pods.

    Args:
        nodes: Number of nodes; at most twice as many pods are on them.
    """

    def __init__(self, nodes: int) -> None:
        super().__init__(2)
        self.server.failing = 0.0
        self._objects = [self._node(number) for number in range(nodes)]
        for one in self._objects:
            self.scheduler.take(one)
        self._oldest: deque[str] = deque()
        self._second = 0
        self.slowest = 0.0
        """Processor time of the slowest decision. Units: seconds."""
        for engine in self.scheduler._engines.values():
            vars(engine)["find"] = self._timed(engine.find)

    async def pass_seconds(self, seconds: int) -> None:
        """Advance the time by seconds, with the updates and pods of each second."""
        if self._task is None:
            self._task = asyncio.create_task(self.scheduler.run())
        for _ in range(seconds):
            self._second += 1
            self.clock.at += 1
            self.scheduler._waiter.wake()
            for place in range(self._second % UPDATED_EVERY, len(self._objects), UPDATED_EVERY):
                self._update(place)
            for _ in range(PODS_A_SECOND):
                self._add_one()
            while self.stuck():
                await asyncio.sleep(0)
                self.confirm()

    def remove_everything(self) -> None:
        """Delete all pods and nodes."""
        for identity in list(self.pods):
            self.forget(identity)
        for one in self._objects:
            self.scheduler.drop(one)

    def make(self, name: str) -> Pod:
        """Return a pod of a random class."""
        number = self.rng.randrange(CLASSES)
        requests = {"cpu": f"{100 + number}m", "memory": f"{64 + number}Mi"}
        return pod(name, requests=requests, labels={"app": f"a{number}"}, scheduler_name=ME)

    def _add_one(self) -> None:
        self.numbers += 1
        made = self.make(f"p{self.numbers}")
        self.tell(made)
        self._oldest.append(pod_id(made))
        if len(self._oldest) > 2 * len(self._objects):
            self.forget(self._oldest.popleft())

    def _update(self, place: int) -> None:
        """Update a node by a new resource version without other changes."""
        before = self._objects[place]
        metadata = replace(before.metadata, resource_version=str(self._second))
        self._objects[place] = now = replace(before, metadata=metadata)
        self.scheduler.take(now)

    def _node(self, number: int) -> Node:
        labels = {"zone": "xyz"[number % 3], "kubernetes.io/hostname": f"n{number}"}
        return node(f"n{number}", labels=labels, allocatable={"cpu": "16", "memory": "64Gi"})

    def _timed(self, find: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any) -> Any:
            began = time.thread_time()
            try:
                return find(*args)
            finally:
                self.slowest = max(self.slowest, time.thread_time() - began)

        return timed
