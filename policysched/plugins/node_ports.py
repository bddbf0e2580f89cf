"""NodePorts: two pods do not take the same port of a node.

Knows host ports. The state keeps one column of conflicts for each wanted port up to date, so filtering is an OR of
those columns.

Source: plugins/nodeports/node_ports.go, v1.36.
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
    unschedulable,
)
from policysched.model.objects import Pod
from policysched.model.ports import any_conflict, host_ports
from policysched.plugins.bases import OwnRowOnly, codes_where
from policysched.plugins.hints import leaves_a_place, pods_of
from policysched.state.columns import Column

REASON = "node(s) didn't have free ports for the requested pod ports"


class NodePorts(OwnRowOnly):
    """The plugin."""

    name = "NodePorts"
    filter_reads = Aspect.PORTS

    def prepare_filter(self, pod: Pod, cluster: Cluster) -> Any:
        """Find the columns of conflicts, one for each wanted port."""
        ports = host_ports(pod)
        return tuple(cluster.ports.conflicts(port) for port in ports) if ports else SKIP

    def filter(self, state: tuple[Column, ...], rows: Rows) -> Codes:
        """Reject rows where any of the ports is taken."""
        first, *others = state
        taken = first.data[rows]
        for column in others:
            taken = taken | column.data[rows]
        return codes_where(taken)

    def reason(self, state: tuple[Column, ...], code: int) -> Status:  # noqa: ARG002 - there is one reason
        """Name the only reason."""
        return unschedulable(REASON)

    def events(self) -> Sequence[Hint]:
        """Pods that give back a wanted port help, and new nodes."""
        return (
            Hint(Resource.ASSIGNED_POD, Action.DELETE, _deletion_helps),
            Hint(Resource.PENDING_POD, Action.DELETE, _deletion_helps),
            Hint(Resource.NODE, Action.ADD),
        )


def _deletion_helps(pod: Pod, change: Change, cluster: Cluster) -> bool:  # noqa: ARG001 - a hint's signature
    gone = pods_of(change)[0]
    return gone is not None and leaves_a_place(gone) and any_conflict(host_ports(pod), host_ports(gone))
