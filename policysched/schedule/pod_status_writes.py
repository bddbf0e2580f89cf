"""Pod status writes (conditions, nominatedNodeName), serialised per pod and before its binding.

It knows neither queue nor cluster. kube-scheduler writes a condition before it goes on; here decisions do not wait for
the network, so the order is kept pod by pod: a binding that overtook a condition would leave a running pod that is
said to be unschedulable. A write that waits for its turn takes along what is newer, and nobody waits for it.
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
"""How long a condition may take when something newer is to be written. Units: seconds."""
_GONE = frozenset((404, 422))
"""What a server says of a pod that is no more, or is another one of the same name."""


@dataclass(slots=True)
class StatusWrite:
    """What is to be written for a pod, and by which task."""

    task: asyncio.Task[Any] | None
    change: PodStatusChange


class ConditionWrites:
    """Writes pods' conditions and nominated nodes."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._unsent: dict[str, StatusWrite] = {}
        """Those that wait for an earlier one of their pod, or for the request's turn."""
        self._sent: dict[str, StatusWrite] = {}

    async def write(self, pod: Pod, change: PodStatusChange, *, first: bool = False) -> None:
        """Write a change after the pod's earlier one; one that is not sent yet takes it along.

        Trouble is logged, because the next attempt writes again.

        Args:
            pod: The pod.
            change: What is to be written.
            first: Whether a binding waits for it, so that it goes before those that only tell.
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
        """Wait until no condition of the pod is under way; drop what is not sent, and what takes too long."""
        self._drop_unsent(identity)
        while (sent := self._sent.get(identity)) is not None:
            await _end(sent.task)

    def _drop_unsent(self, identity: str) -> None:
        waiting = self._unsent.pop(identity, None)
        if waiting is not None and waiting.task is not None:
            waiting.task.cancel()


async def _end(task: asyncio.Task[Any] | None) -> None:
    """Wait for a write to end, and cancel it when it takes too long."""
    if task is None:
        return
    _, late = await asyncio.wait((task,), timeout=PATIENCE)
    for one in late:
        one.cancel()
    await asyncio.wait((task,))
