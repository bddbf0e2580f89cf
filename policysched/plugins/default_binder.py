"""DefaultBinder: writes the binding to the API server.

Source: plugins/defaultbinder/default_binder.go, v1.36.
"""

from __future__ import annotations

import logging
from typing import Final

from policysched.framework import ApiError, AssumedPod, Code, Handle, Status
from policysched.framework.client import LostAnswer
from policysched.state.placed.pods import pod_id

log = logging.getLogger(__name__)
READ_AGAIN: Final = 1.0
"""How long to wait before asking again what became of a binding. Units: seconds."""


class DefaultBinder:
    """The plugin."""

    name = "DefaultBinder"

    async def bind(self, assumed: AssumedPod, handle: Handle) -> Status | None:
        """Bind the pod once; a failure has the server's words."""
        try:
            await handle.client.bind(assumed.pod, assumed.node)
        except ApiError as error:
            if error.is_verdict or not await _is_bound_all_the_same(assumed, handle, error):
                return Status(Code.ERROR, (error.message,))
        return None


async def _is_bound_all_the_same(assumed: AssumedPod, handle: Handle, error: ApiError) -> bool:
    """Find out what became of a binding whose answer was lost or is no verdict.

    Until the server says so, be it by the watch, the pod keeps its place on the node: the binding may have been stored,
    and giving the place to another pod would overfill the node.
    """
    key, pods = assumed.pod.key, assumed.cluster.pods.by_id
    log.warning(
        'cannot determine whether pod "%s" is bound; keeping its place on the node and checking: %s', key, error
    )
    lost = LostAnswer(handle.clock)
    while (placed := pods.get(pod_id(assumed.pod))) is not None and placed.assumed:
        try:
            return await handle.client.node_of(assumed.pod) == assumed.node
        except ApiError as unread:
            if unread.is_not_found:
                return False
            if not lost.asks_again(unread):
                log.warning('the API server refuses to read pod "%s"; releasing its place on the node: %s', key, unread)
                return False
        await handle.pause(READ_AGAIN)
    return placed is not None and placed.pod.spec.node_name == assumed.node
