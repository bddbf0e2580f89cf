"""A calm day of a large cluster: each node is updated every ten seconds, pods come, run and go at a steady rate."""

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
"""Units: seconds."""
PODS_A_SECOND = 4
"""With their bindings and their ends twelve events, a million in a day."""
CLASSES = 20


class Day(Soak):
    """A scheduler, nodes that are updated without anything new, and pods.

    Args:
        nodes: How many nodes there are; at most as many pods are on them as twice that.
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
        """The longest that a decision took of the processor. Units: seconds."""
        for engine in self.scheduler._engines.values():
            vars(engine)["find"] = self._timed(engine.find)

    async def pass_seconds(self, seconds: int) -> None:
        """Let so much time pass with all that happens in it."""
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
        """Let all pods and nodes go."""
        for identity in list(self.pods):
            self.forget(identity)
        for one in self._objects:
            self.scheduler.drop(one)

    def make(self, name: str) -> Pod:
        """Make a pod of one of some classes."""
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
        """A node's heartbeat: another version that says the same."""
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
