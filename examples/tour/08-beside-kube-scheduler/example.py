"""example: logs each pod at three extension points and rejects nothing."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from policysched.plugin import CycleState, FilterMethods, NodeInfo, Pod, PreBindMethods, PreFilterMethods

log = logging.getLogger(__name__)


class Example(PreFilterMethods, FilterMethods, PreBindMethods):
    """Logs each pod."""

    name = "example"

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> None:
        """Log the pod."""
        log.info("example: PreFilter pod=%s", pod.key)

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> None:
        """Log the node and accept it."""
        log.info("example: Filter pod=%s node=%s", pod.key, node.name)

    async def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Log the selected node."""
        log.info("example: PreBind pod=%s node=%s", pod.key, node_name)
