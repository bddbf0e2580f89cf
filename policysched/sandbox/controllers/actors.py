"""The small parts of kubelets and controllers that the sandbox acts, and the loop that lets them act.

An actor hears of changes from the store, remembers what it has to look at, and does it a moment later, all at
once: that moment stands for a kubelet's work, and it keeps actors out of the requests' way.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Protocol

from policysched.sandbox.controllers.garbage import Garbage
from policysched.sandbox.controllers.kubelet import Kubelet
from policysched.sandbox.controllers.lifecycle import Namespaces, NodeLifecycle
from policysched.sandbox.controllers.replicas import ReplicaSets
from policysched.sandbox.controllers.rollouts import Deployments
from policysched.sandbox.storage.store import ANY

if TYPE_CHECKING:
    from policysched.sandbox.storage.backend import Backend
    from policysched.sandbox.storage.store import StoreEvent


class Actor(Protocol):
    """One of the parts: it hears, and later it works."""

    def hear(self, event: StoreEvent) -> bool:
        """Take note of a change; tells whether there is work now."""

    def work(self, most: int) -> bool:
        """Do at most so many things; tells whether some are left."""


_SLICE = 100


class Actors:
    """All actors of one sandbox; without a step time they do nothing."""

    def __init__(self, backend: Backend, seconds: float | None) -> None:
        self._seconds = seconds
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._actors: list[Actor] = []
        if seconds is not None:
            kinds = (Kubelet, NodeLifecycle, Namespaces, Garbage, ReplicaSets, Deployments)
            self._actors = [kind(backend) for kind in kinds]
            backend.store.listen(ANY, self._heard)

    def _heard(self, event: StoreEvent) -> None:
        for actor in self._actors:
            if actor.hear(event):
                self._wake.set()

    def start(self) -> None:
        """Begin to act."""
        if self._actors:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Act no more."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            await asyncio.sleep(self._seconds or 0)
            self._wake.clear()
            for actor in self._actors:
                while actor.work(_SLICE):
                    # Requests get their turn between the slices of a large batch.
                    await asyncio.sleep(0)
