"""Nodes, pods and clusters for tests, written as short as their subject allows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from policysched.framework import Cluster
from policysched.model.objects import (
    Affinity,
    Container,
    ContainerImage,
    ContainerPort,
    DeviceClass,
    DeviceClassSpec,
    Metadata,
    Node,
    NodeSpec,
    NodeStatus,
    Pod,
    PodSpec,
    ResourceRequirements,
    Taint,
    Toleration,
)
from policysched.model.release import DEFAULT, Release

MIB = 1024 * 1024
NO_TEXTS: Mapping[str, str] = {}


def node(
    name: str = "n1",
    *,
    labels: Mapping[str, str] = NO_TEXTS,
    taints: Iterable[Taint] = (),
    unschedulable: bool = False,
    allocatable: Mapping[str, str | int] | None = None,
    images: Mapping[str, int] | None = None,
    features: Iterable[str] = (),
) -> Node:
    """A node of 4 cores, 8Gi and 110 pods; `allocatable` overrides and adds, `images` gives sizes by name."""
    amounts: dict[str, Any] = {"cpu": "4", "memory": "8Gi", "pods": "110"} | dict(allocatable or {})
    return Node(
        metadata=Metadata(name=name, labels=dict(labels)),
        spec=NodeSpec(unschedulable=unschedulable, taints=list(taints)),
        status=NodeStatus(
            allocatable=amounts,
            images=[ContainerImage(names=[one], size_bytes=size) for one, size in (images or {}).items()],
            declared_features=list(features),
        ),
    )


def pod(
    name: str = "p",
    *,
    namespace: str = "default",
    on: str = "",
    requests: Mapping[str, str | int | float] = NO_TEXTS,
    labels: Mapping[str, str] = NO_TEXTS,
    tolerations: Iterable[Toleration] = (),
    affinity: Affinity | None = None,
    ports: Iterable[ContainerPort] = (),
    image: str = "",
    **spec: Any,
) -> Pod:
    """A pod with one container, whose UID is its namespace and name; `on` is its node, `spec` any other field."""
    container = Container(
        name="c", image=image, resources=ResourceRequirements(requests=dict(requests)), ports=tuple(ports)
    )
    fields: dict[str, Any] = {"containers": [container], "affinity": affinity, "tolerations": list(tolerations)}
    return Pod(
        metadata=Metadata(name=name, namespace=namespace, uid=f"{namespace}.{name}", labels=dict(labels)),
        spec=PodSpec(node_name=on, **(fields | spec)),
    )


def cluster(*objects: Node | Pod, release: Release = DEFAULT) -> Cluster:
    """A cluster of these nodes and placed pods."""
    made = Cluster(release=release)
    for one in objects:
        if isinstance(one, Node):
            made.set_node(one)
        else:
            made.set_pod(one)
    return made


def device_class(name: str, resource: str | None = None, created: str = "") -> DeviceClass:
    return DeviceClass(
        metadata=Metadata(name=name, creation_timestamp=created or None),
        spec=DeviceClassSpec(extended_resource_name=resource),
    )
