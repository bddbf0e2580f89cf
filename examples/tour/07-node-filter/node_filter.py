"""nodeFilter: logs what each node has for pods, and lets everything pass."""

from __future__ import annotations

import logging

from policysched.plugin import CycleState, NodeInfo, Pod

log = logging.getLogger(__name__)


class NodeFilter:
    """The plugin."""

    name = "nodeFilter"

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> None:
        """Say what the node has. Units: cpu in millicores, memory in bytes."""
        cpu, memory = node.allocatable("cpu"), node.allocatable("memory")
        log.info(
            "nodeFilter filter pod_name=%s current_node=%s cpu=%d memory=%d", pod.metadata.name, node.name, cpu, memory
        )
