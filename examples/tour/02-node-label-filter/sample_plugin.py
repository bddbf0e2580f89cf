"""sample-plugin: restricts pods to nodes with a label if their name contains a text."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from policysched.plugin import (
    CycleState,
    FilterMethods,
    NodeInfo,
    Pod,
    PreBindMethods,
    PreFilterMethods,
    Status,
    unresolvable,
)

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SampleArgs:
    """Arguments in `pluginConfig`."""

    node_label: str
    """The required label, as key/value."""
    workload_name: str

    def __post_init__(self) -> None:
        if "/" not in self.node_label:
            raise ValueError("node_label must have the form key/value")


class SamplePlugin(PreFilterMethods, FilterMethods, PreBindMethods):
    """Rejects nodes without the label for pods of the workload."""

    name = "sample-plugin"

    def __init__(self, args: SampleArgs) -> None:
        self.workload = args.workload_name
        self.label, _, self.value = args.node_label.rpartition("/")

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> None:
        """Log the pod."""
        log.info("prefilter pod: %s", pod.metadata.name)

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        """Reject a node without the label."""
        if self.workload not in pod.metadata.name or node.labels.get(self.label) == self.value:
            return None
        return unresolvable("no match label")

    async def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Log the selected node."""
        log.info("prebind get node : %s", node_name)
