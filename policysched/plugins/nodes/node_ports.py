"""NodePorts: two pods do not take the same port of a node.

Knows host ports. The state knows which rows use a port, so ports that nobody uses cost next to nothing.

Source: plugins/nodeports/node_ports.go, v1.36.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from policysched.framework import (
    SKIP,
    Action,
    Aspect,
    Change,
    ChangedRow,
    Codes,
    Hint,
    Resource,
    Rows,
    Status,
    unschedulable,
)
from policysched.model.objects import Pod
from policysched.model.pod_requirements import any_conflict, host_ports
from policysched.plugins.helper.bases import OwnRowOnly, codes_where
from policysched.plugins.helper.hints import leaves_a_place, pods_of
from policysched.state.cluster import Cluster
from policysched.state.tables.ports import HostPort

REASON = "node(s) didn't have free ports for the requested pod ports"


@dataclass(frozen=True, slots=True)
class Wanted:
    """The ports that a pod takes of its node."""

    cluster: Cluster
    ports: tuple[HostPort, ...]

    @property
    def nbytes(self) -> int:
        """The memory that it takes. Units: bytes."""
        return 256 * len(self.ports)


class NodePorts(OwnRowOnly):
    """The plugin."""

    name = "NodePorts"
    filter_reads = Aspect.PORTS

    def prepare_filter(self, pod: Pod, cluster: Cluster) -> Any:
        """List the wanted ports."""
        ports = host_ports(pod)
        return Wanted(cluster, ports) if ports else SKIP

    def filter(self, state: Wanted, rows: Rows) -> Codes:
        """Reject rows where any of the ports is taken."""
        return codes_where(state.cluster.ports.taken(state.ports, rows, state.cluster.nodes.size))

    def filter_changed(self, state: Wanted, changed: ChangedRow) -> Status | None:
        """Tell whether any of the ports would be taken."""
        taken = changed.cluster.ports.would_be_taken(state.ports, changed.row, changed.ports)
        return self.reason(state, 1) if taken else None

    def reason(self, state: Wanted, code: int) -> Status:  # noqa: ARG002 - there is one reason
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
