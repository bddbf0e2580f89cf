"""`NodeInfo`, `NodeArrays`: read-only views of a node, and of many nodes as arrays, for out-of-tree plugins.

Nothing is copied before it is read. A view is valid during the call that receives it, because the cluster changes
between scheduling cycles. In a simulation the views show the node with the simulated pods.

Shapes: R rows.
Source: k8s.io/kube-scheduler/framework/types.go (NodeInfo), v0.36.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from policysched.model.objects import Node, Pod, Taint
from policysched.model.pod_requirements import HostPort, host_ports
from policysched.state.cluster import Cluster
from policysched.state.tables.columns import RowNumbers
from policysched.state.tables.interner import MISSING
from policysched.state.what_if import ChangedRow


class NodeInfo:
    """A node with its pods, including assumed pods, and the requested resources.

    Units: cpu in millicores, memory and storage in bytes, other resources in their own unit.
    """

    __slots__ = ("_changed", "_cluster", "_row")

    def __init__(self, cluster: Cluster, row: int, changed: ChangedRow | None = None) -> None:
        self._cluster, self._row, self._changed = cluster, row, changed

    @property
    def name(self) -> str:
        """The node's name."""
        return self._cluster.nodes.names[self._row]

    @property
    def node(self) -> Node:
        """The Node object.

        Raises:
            LookupError: the node is deleted.
        """
        node = self._cluster.nodes.nodes[self._row]
        if node is None:
            raise LookupError(f'node "{self.name}" is deleted')
        return node

    @property
    def labels(self) -> Mapping[str, str]:
        """The node's labels."""
        return self.node.metadata.labels

    @property
    def annotations(self) -> Mapping[str, str]:
        """The node's annotations."""
        return self.node.metadata.annotations

    @property
    def taints(self) -> Sequence[Taint]:
        """The node's taints."""
        return self.node.spec.taints

    @property
    def unschedulable(self) -> bool:
        """Whether the node is cordoned."""
        return self.node.spec.unschedulable

    @property
    def pods(self) -> list[Pod]:
        """The pods on the node."""
        placed = self._cluster.pods.on_row(self._row) if self._changed is None else self._changed.pods()
        return [one.pod for one in placed]

    @property
    def pods_count(self) -> int:
        """The number of pods on the node."""
        if self._changed is not None:
            return self._changed.pods_count
        return int(self._cluster.nodes.pods_count.data.item(self._row))

    @property
    def pods_allowed(self) -> int:
        """The maximum number of pods on the node."""
        return int(self._cluster.nodes.pods_allowed.data.item(self._row))

    @property
    def used_ports(self) -> frozenset[HostPort]:
        """The host ports that pods on the node use, each as address, protocol and port."""
        return frozenset(port for pod in self.pods for port in host_ports(pod))

    def allocatable(self, resource: str) -> int:
        """Return the node's allocatable amount of a resource, such as `cpu`; 0 for a resource that it does not list."""
        return int(self._cluster.nodes.allocatable(resource).item(self._row))

    def requested(self, resource: str) -> int:
        """Return the amount of a resource that the node's pods request."""
        if self._changed is not None:
            return self._changed.requested(resource)
        return self._cluster.nodes.amounts.requested_on(self._row, resource)

    def __repr__(self) -> str:
        return f"NodeInfo({self.name!r})"


class NodeInfos(Sequence[NodeInfo]):
    """A sequence of nodes as NodeInfo objects, which are created on access.

    Shapes: rows (R,).
    """

    __slots__ = ("_cluster", "_rows")

    def __init__(self, cluster: Cluster, rows: RowNumbers) -> None:
        self._cluster, self._rows = cluster, rows

    @classmethod
    def of_all(cls, cluster: Cluster) -> NodeInfos:
        """Return all existing nodes."""
        return cls(cluster, cluster.nodes.present.data[: cluster.nodes.size].nonzero()[0])

    @overload
    def __getitem__(self, place: int) -> NodeInfo: ...
    @overload
    def __getitem__(self, place: slice) -> NodeInfos: ...
    def __getitem__(self, place: int | slice) -> NodeInfo | NodeInfos:
        if isinstance(place, slice):
            return NodeInfos(self._cluster, self._rows[place])
        return NodeInfo(self._cluster, int(self._rows[place]))

    def __len__(self) -> int:
        return int(self._rows.size)

    def __iter__(self) -> Iterator[NodeInfo]:
        cluster = self._cluster
        return (NodeInfo(cluster, row) for row in self._rows.tolist())

    def __repr__(self) -> str:
        return f"NodeInfos({[one.name for one in self]})"


class NodeArrays:
    """Nodes as read-only arrays with one element per node.

    Shapes: (R,) each.
    Units: cpu in millicores, memory and storage in bytes, other resources in their own unit.
    """

    __slots__ = ("_changed", "_cluster", "_rows")

    def __init__(self, cluster: Cluster, rows: RowNumbers, changed: ChangedRow | None = None) -> None:
        self._cluster, self._rows, self._changed = cluster, rows, changed

    def __len__(self) -> int:
        return int(self._rows.size)

    @property
    def names(self) -> list[str]:
        """The names of the nodes."""
        names = self._cluster.nodes.names
        return [names[row] for row in self._rows.tolist()]

    @property
    def unschedulable(self) -> NDArray[np.bool_]:
        """Mask of the cordoned nodes."""
        return self._taken(self._cluster.nodes.unschedulable.data)

    @property
    def ready(self) -> NDArray[np.bool_]:
        """Mask of the nodes whose condition Ready is true."""
        return self._taken(self._cluster.nodes.ready.data)

    @property
    def pods_count(self) -> NDArray[np.int64]:
        """The number of pods on each node."""
        if self._changed is not None:
            return np.array([self._changed.pods_count], np.int64)
        return self._taken(self._cluster.nodes.pods_count.data)

    @property
    def pods_allowed(self) -> NDArray[np.int64]:
        """The maximum number of pods on each node."""
        return self._taken(self._cluster.nodes.pods_allowed.data)

    def allocatable(self, resource: str) -> NDArray[np.int64]:
        """Return each node's allocatable amount of a resource; 0 if the node does not have it."""
        return self._taken(self._cluster.nodes.allocatable(resource))

    def requested(self, resource: str) -> NDArray[np.int64]:
        """Return the amount of a resource that the pods of each node request."""
        if self._changed is not None:
            return np.array([self._changed.requested(resource)], np.int64)
        return self._cluster.nodes.requested(resource, self._rows)

    def has_label(self, key: str) -> NDArray[np.bool_]:
        """Return a mask of the nodes that have a label."""
        found: NDArray[np.bool_] = self._taken(self._cluster.nodes.labels(key)) != MISSING
        return found

    def label_is(self, key: str, value: str) -> NDArray[np.bool_]:
        """Return a mask of the nodes on which a label has a given value."""
        codes = self._taken(self._cluster.nodes.labels(key))
        found: NDArray[np.bool_] = codes == self._cluster.strings.sought(value)
        return found

    def label(self, key: str) -> list[str | None]:
        """Return the value of a label on each node; None for nodes without the label."""
        codes, text = self._taken(self._cluster.nodes.labels(key)).tolist(), self._cluster.strings.text
        return [None if code == MISSING else text(code) for code in codes]

    def _taken(self, column: NDArray[Any]) -> NDArray[Any]:
        taken: NDArray[Any] = column[self._rows]
        return taken
