"""nodeFilter: logs the allocatable resources of each node and accepts every node."""

from __future__ import annotations

import logging

from policysched.plugin import CycleState, FilterMethods, NodeInfo, Pod

log = logging.getLogger(__name__)


class NodeFilter(FilterMethods):
    """Accepts every node."""

    name = "nodeFilter"

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> None:
        """Log the node. Units: cpu in millicores, memory in bytes."""
        cpu, memory = node.allocatable("cpu"), node.allocatable("memory")
        log.info(
            "nodeFilter filter pod_name=%s current_node=%s cpu=%d memory=%d", pod.metadata.name, node.name, cpu, memory
        )
