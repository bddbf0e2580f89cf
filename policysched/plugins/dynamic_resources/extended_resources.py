"""Extended resources that device classes stand for: the special claim that asks for them, different from node to node.

A node provides such a resource by a device plugin, and then NodeResourcesFit counts it, or by devices of the class that
stands for it. What is asked of devices is one request for each container and resource; init containers that end use
again what containers hold that start later.

Source: plugins/dynamicresources/extendeddynamicresources.go, v1.36.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from policysched.framework import Cluster, Mask
from policysched.model.objects import (
    ClaimMetadata,
    Container,
    ContainerExtendedRequest,
    DeviceRequest,
    ExactDeviceRequest,
    OwnerReference,
    Pod,
    ResourceClaim,
    ResourceClaimSpec,
)
from policysched.model.quantity import value
from policysched.model.requests import incoming_requests
from policysched.model.selection.name_validation import is_device_resource_name
from policysched.state.resource_claims import EXTENDED_RESOURCE_CLAIM

IN_MEMORY: Final = "<extended-resources>"
"""The name of a special claim that is not written yet; no claim in a cluster can have it."""
BITS: Final = 24
"""How many resources are told apart before the patterns that there are get new numbers."""
Mappings = tuple[ContainerExtendedRequest, ...]


@dataclass(frozen=True, slots=True)
class ExtendedRequests:
    """The extended resources of a pod of which device classes stand for some, and the claim for these."""

    pod: Pod
    claim: ResourceClaim
    """One of an earlier attempt, or one in memory that asks for nothing yet."""
    amounts: Mapping[str, int]
    """What the pod asks for of all extended resources."""
    classes: Mapping[str, str]
    """The device classes of those of them that have one."""

    @property
    def is_stale(self) -> bool:
        """Whether the claim was made by an earlier attempt: it has to go before the pod can be placed."""
        return bool(self.claim.spec.devices.requests)

    def on(self, resources: Sequence[str]) -> tuple[ResourceClaim, Mappings]:
        """Return the claim for a node where devices provide these resources, and which container uses which request."""
        requests, mappings = requests_for(self.pod, {name: self.classes[name] for name in resources})
        spec = ResourceClaimSpec(devices=replace(self.claim.spec.devices, requests=requests))
        return replace(self.claim, spec=spec), mappings


def asks_for_classes(pod: Pod, cluster: Cluster) -> bool:
    """Return whether a pod names an extended resource that a device class stands for."""
    mapped = cluster.mapped_resources
    if not mapped:
        return False
    spec = pod.spec
    asked = (one.resources.requests for one in (*spec.containers, *spec.init_containers))
    return any(name in mapped for amounts in (*asked, spec.overhead) for name in amounts)


def extended_requests(pod: Pod, cluster: Cluster) -> ExtendedRequests | None:
    """Return what a pod asks for of extended resources, None where no device class stands for any of it."""
    if not asks_for_classes(pod, cluster):
        return None
    amounts = {name: amount for name, amount in incoming_requests(pod).scalars if amount}
    amounts = {name: amount for name, amount in amounts.items() if is_device_resource_name(name)}
    classes = {name: cluster.mapped_resources[name] for name in amounts if name in cluster.mapped_resources}
    if not classes:
        return None
    claim = cluster.resource_claims.special_claim_of(pod) or _in_memory(pod)
    return ExtendedRequests(pod, claim, amounts, classes)


def _in_memory(pod: Pod) -> ResourceClaim:
    of = pod.metadata
    owner = OwnerReference(api_version="v1", kind="Pod", name=of.name, uid=of.uid, controller=True)
    metadata = ClaimMetadata(
        name=IN_MEMORY,
        namespace=of.namespace,
        uid=f"{IN_MEMORY}/{of.uid or pod.key}",
        generate_name=f"{of.name}-extended-resources-",
        owner_references=[owner],
        annotations={EXTENDED_RESOURCE_CLAIM: "true"},
    )
    return ResourceClaim(metadata=metadata)


class ExtendedRows:
    """By row, which resources devices have to provide; rows where something can be had neither way.

    Shapes: N rows in use.
    """

    def __init__(self, wanted: ExtendedRequests, cluster: Cluster) -> None:
        size, nodes = cluster.nodes.size, cluster.nodes
        lacking = {name: nodes.allocatable(name)[:size] == 0 for name in wanted.amounts}
        self._lacking = {name: lacking.pop(name) for name in sorted(wanted.classes)}
        self._size = size
        self.unfit: Mask = np.zeros(size, np.bool_)
        """The rows that know a resource neither by a device plugin nor by a class."""
        for name, rows in lacking.items():
            for row in rows.nonzero()[0].tolist():
                node = nodes.nodes[row]
                self.unfit[row] |= node is None or name not in node.status.allocatable

    def groups(self) -> list[tuple[list[str], Mask]]:
        """Return the rows by which resources devices have to provide there."""
        key: NDArray[np.int64] = np.zeros(self._size, np.int64)
        for place, lacking in enumerate(self._lacking.values(), 1):
            key = key << 1 | lacking
            if place % BITS == 0:
                key = np.unique(key, return_inverse=True)[1]
        found = (key == one for one in np.unique(key).tolist())
        return [(self.on_row(int(rows.argmax())), rows) for rows in found]

    def on_row(self, row: int) -> list[str]:
        """Return which resources devices have to provide on a row."""
        return [name for name, lacking in self._lacking.items() if lacking[row]]


def requests_for(pod: Pod, classes: Mapping[str, str]) -> tuple[tuple[DeviceRequest, ...], Mappings]:
    """Make the requests for resources that devices of some classes provide, and say who uses which.

    Returns:
        The requests by name; the mappings by resource, those of containers that stay before those of init containers.
    """
    requests: list[DeviceRequest] = []
    mappings: list[ContainerExtendedRequest] = []
    for resource in sorted(classes):
        of_resource = _ResourceRequests(pod, resource, classes[resource])
        requests += of_resource.requests
        mappings += of_resource.mappings
    return tuple(sorted(requests, key=lambda one: one.name)), tuple(mappings)


class _ResourceRequests:
    """The requests of a pod's containers for one resource."""

    def __init__(self, pod: Pod, resource: str, device_class: str) -> None:
        self._resource, self._class = resource, device_class
        self._containers = [*pod.spec.init_containers, *pod.spec.containers]
        short = [i for i, one in enumerate(pod.spec.init_containers) if one.restart_policy != "Always"]
        lasting: list[ContainerExtendedRequest] = []
        held: list[DeviceRequest | None] = [None] * len(self._containers)
        for index in range(len(self._containers)):
            if index not in short:
                held[index], found = self._of(index, ())
                lasting += found
        most, passing = self._of_short(short, held)
        self.mappings = [*lasting, *passing]
        self.requests = [one for one in (most, *held) if one is not None]

    def _of_short(
        self, short: Sequence[int], held: Sequence[DeviceRequest | None]
    ) -> tuple[DeviceRequest | None, list[ContainerExtendedRequest]]:
        """Let init containers that end share one request, the largest that any of them needs beside what is held."""
        most: DeviceRequest | None = None
        named: set[str] = set()
        mappings: list[ContainerExtendedRequest] = []
        for index in short:
            request, found = self._of(index, [one for one in held[index:] if one is not None])
            mappings += found
            if request is not None:
                named.add(request.name)
                if most is None or _count(most) < _count(request):
                    most = request
        if most is None:
            return None, mappings
        return most, [replace(one, request_name=most.name) if one.request_name in named else one for one in mappings]

    def _of(
        self, index: int, reusable: Sequence[DeviceRequest]
    ) -> tuple[DeviceRequest | None, list[ContainerExtendedRequest]]:
        """Return what a container needs beside requests that it may use, and the requests that it uses."""
        container = self._containers[index]
        amounts = container.resources.requests
        amount = value(amounts[self._resource]) if self._resource in amounts else 0
        if not amount:
            return None, []
        had, used = 0, []
        for one in reusable:
            had += _count(one)
            used.append(self._mapping(container, one.name))
            if had >= amount:
                return None, used
        name = f"container-{index}-request-{sorted(amounts).index(self._resource)}"
        asked = ExactDeviceRequest(device_class_name=self._class, count=amount - had)
        return DeviceRequest(name=name, exactly=asked), [*used, self._mapping(container, name)]

    def _mapping(self, container: Container, request: str) -> ContainerExtendedRequest:
        return ContainerExtendedRequest(
            container_name=container.name, resource_name=self._resource, request_name=request
        )


def _count(request: DeviceRequest) -> int:
    return 0 if request.exactly is None else request.exactly.count
