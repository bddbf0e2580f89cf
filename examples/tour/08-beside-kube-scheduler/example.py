"""example: says of each pod that it comes by, at three extension points, and decides nothing."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from policysched.plugin import CycleState, NodeInfo, Pod

log = logging.getLogger(__name__)


class Example:
    """The plugin."""

    name = "example"

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> None:
        """Say which pod it is."""
        log.info("example: PreFilter pod=%s", pod.key)

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> None:
        """Say which node is asked about, and let it pass."""
        log.info("example: Filter pod=%s node=%s", pod.key, node.name)

    async def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Say where the pod goes."""
        log.info("example: PreBind pod=%s node=%s", pod.key, node_name)
