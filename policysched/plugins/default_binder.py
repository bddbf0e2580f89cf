"""DefaultBinder: writes the binding to the API server.

Source: plugins/defaultbinder/default_binder.go, v1.36.
"""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import Final

from policysched.framework import ApiError, AssumedPod, Code, Handle, Status
from policysched.state.placed.pods import pod_id

log = logging.getLogger(__name__)
NOT_FOUND: Final = "NotFound"
"""The reason of an API server's Status about an object that is not there."""
READ_AGAIN: Final = 1.0
"""How long to wait before asking again what became of a binding. Units: seconds."""
PATIENCE: Final = 30.0
"""How long it is asked again of a server that answers and refuses to tell: one that has just started refuses until it
knows the roles. Units: seconds."""


class DefaultBinder:
    """The plugin."""

    name = "DefaultBinder"

    async def bind(self, assumed: AssumedPod, handle: Handle) -> Status | None:
        """Bind the pod once; a failure has the server's words."""
        try:
            await handle.client.bind(assumed.pod, assumed.node)
        except ApiError as error:
            # a gateway may have sent the binding twice: then the second one is a conflict with the first
            is_final = error.is_refusal and error.status != HTTPStatus.CONFLICT
            if is_final or not await _is_bound_all_the_same(assumed, handle, error):
                return Status(Code.ERROR, (error.message,))
        return None


async def _is_bound_all_the_same(assumed: AssumedPod, handle: Handle, error: ApiError) -> bool:
    """Find out what became of a binding whose answer was lost or is no verdict.

    Until the server says so, be it by the watch, the pod keeps its place on the node: the binding may have been stored,
    and giving the place to another pod would overfill the node.
    """
    key, pods = assumed.pod.key, assumed.cluster.pods.by_id
    log.warning("no verdict on the binding of pod=%s, its place is kept until there is one: %s", key, error)
    refused_since = handle.clock.monotonic()
    while (placed := pods.get(pod_id(assumed.pod))) is not None and placed.assumed:
        try:
            return await handle.client.node_of(assumed.pod) == assumed.node
        except ApiError as unread:
            if (unread.status, unread.reason) == (HTTPStatus.NOT_FOUND, NOT_FOUND):
                return False
            now = handle.clock.monotonic()
            if not unread.is_refusal or unread.status == HTTPStatus.TOO_MANY_REQUESTS:
                refused_since = now
            elif now - refused_since >= PATIENCE:
                log.warning("the server refuses to tell of pod=%s, its place is kept no longer: %s", key, unread)
                return False
        await handle.pause(READ_AGAIN)
    return placed is not None and placed.pod.spec.node_name == assumed.node
