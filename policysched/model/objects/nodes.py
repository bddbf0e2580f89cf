"""Nodes, as far as scheduling reads them.

Only the shapes; a node's amounts stay the texts that they were (`ResourceList`), because most are compared
with earlier ones far more often than they are parsed: see `policysched.model.quantity`.

Source: k8s.io/api/core/v1/types.go, v0.36.
"""

from __future__ import annotations

from policysched.model.objects.meta import Int64, Metadata, ResourceList, Struct


class Taint(Struct, frozen=True):
    """A node's taint."""

    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(Struct, frozen=True):
    """What is wanted of a node."""

    unschedulable: bool = False
    taints: list[Taint] = []


class ContainerImage(Struct, frozen=True):
    """An image present on a node."""

    names: list[str] = []
    size_bytes: Int64 = 0


class NodeCondition(Struct, frozen=True):
    """One of a node's conditions."""

    type: str = ""
    status: str = ""


class NodeStatus(Struct, frozen=True):
    """What a node has."""

    capacity: ResourceList = {}
    allocatable: ResourceList = {}
    conditions: list[NodeCondition] = []
    images: list[ContainerImage] = []
    declared_features: list[str] = []


class Node(Struct, frozen=True):
    """A node."""

    metadata: Metadata = Metadata()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
