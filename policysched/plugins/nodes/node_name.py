"""NodeName: a pod that names its node goes there or nowhere.

Knows node names only. The name's code is looked up whenever rows are asked about, so a node of that name that comes
later is found by a state prepared before.

Source: plugins/nodename/node_name.go, v1.36.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from policysched.framework import SKIP, Action, Aspect, Cluster, Codes, Hint, Resource, Rows, Status, unresolvable
from policysched.model.objects import Pod
from policysched.plugins.helper.bases import OwnRowOnly, codes_where
from policysched.state.tables.nodes import NodeTable

REASON = "node(s) didn't match the requested node name"


@dataclass(frozen=True, slots=True)
class Wanted:
    """The name of a node."""

    nodes: NodeTable
    name: str


class NodeName(OwnRowOnly):
    """The plugin."""

    name = "NodeName"
    filter_reads = Aspect.NONE

    def prepare_filter(self, pod: Pod, cluster: Cluster) -> Any:
        """Skip pods that name no node."""
        wanted = pod.spec.node_name
        return Wanted(cluster.nodes, wanted) if wanted else SKIP

    def filter(self, state: Wanted, rows: Rows) -> Codes:
        """Reject rows of other names."""
        return codes_where(state.nodes.name.data[rows] != state.nodes.strings.sought(state.name))

    def reason(self, state: Wanted, code: int) -> Status:  # noqa: ARG002 - there is one reason
        """Name the only reason."""
        return unresolvable(REASON)

    def events(self) -> Sequence[Hint]:
        """Only another node helps."""
        return (Hint(Resource.NODE, Action.ADD),)
