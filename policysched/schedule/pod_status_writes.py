"""`ConditionWrites`: writes the statuses of pods (condition, nominatedNodeName), one write at a time for each pod.

kube-scheduler writes a condition before its next decision; here decisions do not wait for the network. A binding waits
for the pod's earlier writes, because a condition written after the binding would mark a running pod as unschedulable.
A write that waits is merged with newer writes.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Any

from policysched.framework import ApiError, Client, PodStatusChange
from policysched.model.objects import Pod
from policysched.state.placed.pods import pod_id

log = logging.getLogger(__name__)
PATIENCE = 1.0
"""Time after which a running write is cancelled if a newer write or the binding waits for its end. Units: seconds."""
_GONE = frozenset((404, 422))
"""HTTP status codes that mean that the pod was deleted, or recreated under the same name."""


@dataclass(slots=True)
class StatusWrite:
    """A write of a pod's status, with the task that sends it."""

    task: asyncio.Task[Any] | None
    change: PodStatusChange


class ConditionWrites:
    """Writes the PodScheduled condition and nominatedNodeName of pods."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._unsent: dict[str, StatusWrite] = {}
        """Writes, by pod identity, that wait for an earlier write of the pod or for the request limit."""
        self._sent: dict[str, StatusWrite] = {}

    async def write(self, pod: Pod, change: PodStatusChange, *, first: bool = False) -> None:
        """Write a pod's status after earlier writes about the pod; merge the write into a write that is not sent yet.

        Errors are logged: the next attempt writes again.

        Args:
            pod: The pod.
            change: The change.
            first: Whether a binding waits for the write; it then precedes writes of other pods.
        """
        identity = pod_id(pod)
        waiting = self._unsent.get(identity)
        if waiting is not None:
            waiting.change = change = change.after(waiting.change)
            if not first:
                return
            self._drop_unsent(identity)
        own = self._unsent[identity] = StatusWrite(asyncio.current_task(), change)
        try:
            while (before := self._sent.get(identity)) is not None:
                await _end(before.task)
            await self._send(pod, own, first=first)
        except ApiError as error:
            level = logging.DEBUG if error.status in _GONE else logging.WARNING
            log.log(level, 'could not write the status of pod "%s": %s', pod.key, error.message)
        finally:
            for writes in (self._unsent, self._sent):
                if writes.get(identity) is own:
                    del writes[identity]

    async def _send(self, pod: Pod, own: StatusWrite, *, first: bool) -> None:
        identity = pod_id(pod)

        def newest() -> PodStatusChange:
            if self._unsent.get(identity) is own:
                self._sent[identity] = self._unsent.pop(identity)
            return own.change

        if first:
            await self._client.set_pod_status(pod, newest())
        else:
            await self._client.report_pod_status(pod, newest)

    async def settle(self, identity: str) -> None:
        """Wait until no write of a pod's status runs; drop unsent writes, and cancel a write after `PATIENCE`."""
        self._drop_unsent(identity)
        while (sent := self._sent.get(identity)) is not None:
            await _end(sent.task)

    def _drop_unsent(self, identity: str) -> None:
        waiting = self._unsent.pop(identity, None)
        if waiting is not None and waiting.task is not None:
            waiting.task.cancel()


async def _end(task: asyncio.Task[Any] | None) -> None:
    """Wait until a running write ends; cancel the write after `PATIENCE`."""
    if task is None:
        return
    _, late = await asyncio.wait((task,), timeout=PATIENCE)
    for one in late:
        one.cancel()
    await asyncio.wait((task,))
