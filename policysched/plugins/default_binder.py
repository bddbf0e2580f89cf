"""DefaultBinder: writes the binding of a pod to the API server.

Source: plugins/defaultbinder/default_binder.go, v1.36.
"""

from __future__ import annotations

import logging
from typing import Final

from policysched.framework import ApiError, AssumedPod, BindPlugin, Code, Handle, Status
from policysched.framework.client import LostAnswer
from policysched.state.placed.pods import pod_id

log = logging.getLogger(__name__)
READ_AGAIN: Final = 1.0
"""Pause before the API server is asked again whether a pod is bound. Units: seconds."""


class DefaultBinder(BindPlugin):
    """The DefaultBinder plugin: sends the binding of a pod to the API server."""

    name = "DefaultBinder"

    async def bind(self, assumed: AssumedPod, handle: Handle) -> Status | None:
        """Send the pod's binding once; return None for success, or a failure with the server's message."""
        try:
            await handle.client.bind(assumed.pod, assumed.node)
        except ApiError as error:
            if error.is_verdict or not await _is_bound_all_the_same(assumed, handle, error):
                return Status(Code.ERROR, (error.message,))
        return None


async def _is_bound_all_the_same(assumed: AssumedPod, handle: Handle, error: ApiError) -> bool:
    """Return whether a pod is bound after an error that leaves this open, such as a lost answer of the API server.

    Until the watch or a read shows the result, the pod keeps its place on the node. The binding may have been stored,
    and giving the place to another pod would overcommit the node.
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
