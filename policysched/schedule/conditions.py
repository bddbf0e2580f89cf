"""Writes of pods' conditions and nominated nodes to the API server: one at a time for each pod, before its binding.

It knows neither queue nor cluster. kube-scheduler writes a condition before it goes on; here decisions do not wait for
the network, so the order is kept pod by pod: a binding that overtook a condition would leave a running pod that is
said to be unschedulable.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from policysched.framework import ApiError, Client, PodStatusChange
from policysched.model.objects import Pod
from policysched.state.placed.pods import pod_id

log = logging.getLogger(__name__)
PATIENCE = 1.0
"""How long a condition may take when something newer is to be written. Units: seconds."""
_GONE = frozenset((404, 422))
"""What a server says of a pod that is no more, or is another one of the same name."""


class ConditionWrites:
    """Writes pods' conditions and nominated nodes."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._under_way: dict[str, asyncio.Task[Any] | None] = {}
        self._newest: dict[str, PodStatusChange] = {}
        """What is to be written last, of pods with a change that waits for its turn."""

    async def write(self, pod: Pod, change: PodStatusChange) -> None:
        """Write a change after the pod's earlier one; a newer one that comes meanwhile takes it along.

        Trouble is logged, because the next attempt writes again.
        """
        identity, task = pod_id(pod), asyncio.current_task()
        waiting = self._newest.get(identity)
        change = self._newest[identity] = change if waiting is None else change.after(waiting)
        try:
            while self._newest.get(identity) is change and (before := self._under_way.get(identity)) is not None:
                await _end(before)
        finally:
            newest = self._newest.get(identity) is change
            if newest:
                del self._newest[identity]
        if newest:
            await self._write(identity, task, pod, change)

    async def _write(self, identity: str, task: asyncio.Task[Any] | None, pod: Pod, change: PodStatusChange) -> None:
        self._under_way[identity] = task
        try:
            await self._client.set_pod_status(pod, change)
        except ApiError as error:
            level = logging.DEBUG if error.status in _GONE else logging.WARNING
            log.log(level, "could not write the status of pod=%s: %s", pod.key, error.message)
        finally:
            if self._under_way.get(identity) is task:
                del self._under_way[identity]

    async def settle(self, identity: str) -> None:
        """Wait until no condition of the pod is under way, and drop one that takes too long."""
        while (task := self._under_way.get(identity)) is not None:
            await _end(task)


async def _end(task: asyncio.Task[Any]) -> None:
    """Wait for a write to end, and cancel it when it takes too long."""
    _, late = await asyncio.wait((task,), timeout=PATIENCE)
    for one in late:
        one.cancel()
    await asyncio.wait((task,))
