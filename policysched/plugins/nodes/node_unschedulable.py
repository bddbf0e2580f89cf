"""NodeUnschedulable: keep pods off cordoned nodes.

Knows the unschedulable flag and tolerations. A pod that tolerates the taint of cordoned nodes is skipped at once
instead of passing on every row.

Source: plugins/nodeunschedulable/node_unschedulable.go, v1.36.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from policysched.framework import (
    SKIP,
    Action,
    Aspect,
    Change,
    Cluster,
    Codes,
    Hint,
    Resource,
    Rows,
    Status,
    unresolvable,
)
from policysched.model.objects import Pod
from policysched.model.selection.node_selectors import UNSCHEDULABLE_TAINT, tolerates_any_way
from policysched.plugins.helper.bases import OwnRowOnly, codes_where
from policysched.plugins.helper.hints import nodes_of, pods_of, updates_itself
from policysched.state.tables.nodes import NodeTable

REASON = "node(s) were unschedulable"


class NodeUnschedulable(OwnRowOnly):
    """The plugin."""

    name = "NodeUnschedulable"
    filter_reads = Aspect.TAINTS

    def prepare_filter(self, pod: Pod, cluster: Cluster) -> Any:
        """Skip pods that may go to cordoned nodes."""
        return SKIP if _tolerates_cordon(pod) else cluster.nodes

    def filter(self, state: NodeTable, rows: Rows) -> Codes:
        """Reject cordoned rows."""
        return codes_where(state.unschedulable.data[rows])

    def reason(self, state: NodeTable, code: int) -> Status:  # noqa: ARG002 - there is one reason
        """Name the only reason."""
        return unresolvable(REASON)

    def events(self) -> Sequence[Hint]:
        """Uncordoned and new nodes help, and a toleration of cordoned ones."""
        return (
            Hint(Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT, _node_helps),
            Hint(Resource.PENDING_POD, Action.UPDATE_POD_TOLERATION, _toleration_helps),
        )


def _tolerates_cordon(pod: Pod) -> bool:
    return tolerates_any_way(pod.spec.tolerations, UNSCHEDULABLE_TAINT)


def _node_helps(pod: Pod, change: Change, cluster: Cluster) -> bool:  # noqa: ARG001 - a hint's signature
    old, new = nodes_of(change)
    return new is not None and not new.spec.unschedulable and (old is None or old.spec.unschedulable)


def _toleration_helps(pod: Pod, change: Change, cluster: Cluster) -> bool:  # noqa: ARG001 - a hint's signature
    new = pods_of(change)[1]
    return new is not None and updates_itself(pod, change) and _tolerates_cordon(new)
