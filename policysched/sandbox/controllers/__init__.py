"""Controllers of the sandbox: simulated kubelets and parts of kube-controller-manager.

A controller enqueues names from events of the store and reconciles the objects: running pods, ReplicaSets, Deployments,
taints, deletions.
"""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence, Set
from typing import Generic, TypeVar

from policysched.sandbox.storage.store import ANY, Backend, StoreEvent

K = TypeVar("K", bound=Hashable)
Name = tuple[str, str]
_BATCH = 100


class UidIndex(Generic[K]):
    """Index from a UID to the keys of the objects that refer to this UID, such as the dependents of an owner."""

    def __init__(self) -> None:
        self._keys: dict[str, set[K]] = {}

    def update(self, key: K, before: Iterable[str], after: Iterable[str]) -> None:
        """Update an object's entry: it referred to the UIDs in `before`, and refers to the UIDs in `after` instead."""
        for uid in before:
            keys = self._keys.get(uid, set())
            keys.discard(key)
            if not keys:
                self._keys.pop(uid, None)
        for uid in after:
            self._keys.setdefault(uid, set()).add(key)

    def of(self, uid: str) -> Set[K]:
        """Return the keys of the objects that refer to a UID."""
        return self._keys.get(uid, frozenset())

    def __len__(self) -> int:
        """Return the number of UIDs in the index."""
        return len(self._keys)


class Controller(ABC):
    """Base class of the sandbox's controllers, which reconcile objects some time after the objects changed."""

    def __init__(self, backend: Backend, wake: Callable[[], None]) -> None:
        self._backend = backend
        self._store = backend.store
        self._wake = wake
        self._queue: dict[Name, None] = {}

    @abstractmethod
    def on_event(self, event: StoreEvent) -> None:
        """Enqueue the objects that a change affects."""

    @abstractmethod
    def reconcile(self, name: Name) -> None:
        """Bring the object with this namespace and name from its current to its desired state."""

    def enqueue(self, name: Name) -> None:
        """Queue an object, by namespace and name; the loop reconciles the object in its next step."""
        self._queue[name] = None
        self._wake()

    def work(self, most: int) -> bool:
        """Reconcile at most `most` objects; return whether queued objects remain."""
        for name in list(self._queue)[:most]:
            del self._queue[name]
            self.reconcile(name)
        return bool(self._queue)


class ControllerLoop:
    """Runs the controllers of one sandbox in steps; without a step time, no controller runs."""

    def __init__(
        self,
        backend: Backend,
        kinds: Sequence[Callable[[Backend, Callable[[], None]], Controller]],
        seconds: float | None,
    ) -> None:
        self._seconds = seconds or 0
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._controllers = [] if seconds is None else [kind(backend, self._wake.set) for kind in kinds]
        if self._controllers:
            backend.store.listen(ANY, self._notify)

    def _notify(self, event: StoreEvent) -> None:
        for controller in self._controllers:
            controller.on_event(event)

    def start(self) -> None:
        """Start the controllers in the running event loop."""
        if self._controllers:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Stop the controllers."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            await asyncio.sleep(self._seconds)
            self._wake.clear()
            for controller in self._controllers:
                while controller.work(_BATCH):
                    # Handle requests between the batches.
                    await asyncio.sleep(0)
