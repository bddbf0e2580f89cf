"""DefaultBinder: writes the binding to the API server.

Source: plugins/defaultbinder/default_binder.go, v1.36.
"""

from __future__ import annotations

import logging
from typing import Final

from policysched.framework import ApiError, AssumedPod, Code, Handle, Status

log = logging.getLogger(__name__)
SERVER_ERROR: Final = 500
NO_ANSWERS: Final = frozenset((0, 429))
"""What says nothing of a pod: no answer came, or the server is busy."""
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
            if not await _is_bound_all_the_same(assumed, handle, error):
                return Status(Code.ERROR, (error.message,))
        return None


async def _is_bound_all_the_same(assumed: AssumedPod, handle: Handle, error: ApiError) -> bool:
    """Find out what became of a binding whose answer was lost or is no verdict.

    Until the server says so the pod keeps its place on the node: the binding may have been stored, and giving the place
    to another pod would overfill the node.
    """
    if 0 < error.status < SERVER_ERROR:
        return False
    key = assumed.pod.key
    log.warning("no verdict on the binding of pod=%s, its place is kept until there is one: %s", key, error)
    while True:
        try:
            return await handle.client.node_of(assumed.pod) == assumed.node
        except ApiError as unread:
            if unread.status not in NO_ANSWERS and unread.status < SERVER_ERROR:
                return False
            await handle.pause(READ_AGAIN)
