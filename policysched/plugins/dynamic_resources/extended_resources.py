"""Extended resources that device classes provide: the special claim of a pod for them, which differs by node.

A node provides such a resource by a device plugin, which NodeResourcesFit checks, or by devices of the class. The
special claim has one request for each container and resource. Init containers that end reuse the devices of containers
that start later.

Source: plugins/dynamicresources/extendeddynamicresources.go, v1.36.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple

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
from policysched.state.tables.nodes import NodeTable

IN_MEMORY: Final = "<extended-resources>"
"""Name of a special claim that does not exist on the server yet; no claim in a cluster can have this name."""
BITS: Final = 24
"""Number of extended resources above which small numbers replace the rows' bit patterns of missing resources."""
Mappings = tuple[ContainerExtendedRequest, ...]
MOST_BYTES: Final = 3 << 20
"""Maximum size of a request that an API server accepts. Units: bytes."""
MAPPING_BYTES: Final = 56
"""Encoded size of one entry that maps a container to a request, without the entry's three names. Units: bytes."""


@dataclass(frozen=True, slots=True)
class ExtendedRequests:
    """The extended resources that a pod requests and device classes provide, with the pod's special claim.

    Attributes:
        claim: The special claim of an earlier attempt, or a new one in memory without requests.
        amounts: The requested amount of each extended resource.
        classes: The device class of each resource that has one.
    """

    pod: Pod
    claim: ResourceClaim
    amounts: Mapping[str, int]
    classes: Mapping[str, str]
    _asked: dict[str, ResourceRequests] = field(default_factory=dict, init=False, repr=False, compare=False)
    """The containers' requests by extended resource, computed at the first use."""

    @property
    def is_stale(self) -> bool:
        """Whether an earlier attempt's special claim exists, which must be deleted before the pod can be placed."""
        return bool(self.claim.spec.devices.requests)

    def on(self, resources: Sequence[str]) -> ResourceClaim:
        """Return the special claim for a node on which devices have to provide the given resources."""
        requests = requests_for(self._asked_of(resources))
        spec = ResourceClaimSpec(devices=replace(self.claim.spec.devices, requests=requests))
        return replace(self.claim, spec=spec)

    def mappings_on(self, resources: Sequence[str]) -> Mappings | None:
        """Return which container uses which request of the special claim; None if the list is too large to store."""
        return mappings_for(self._asked_of(resources))

    def _asked_of(self, resources: Sequence[str]) -> Sequence[ResourceRequests]:
        if not self._asked:
            self._asked.update(asked_by_resource(self.pod, self.classes))
        return [self._asked[name] for name in sorted(resources)]


def asks_for_classes(pod: Pod, cluster: Cluster) -> bool:
    """Return whether a pod requests an extended resource that a device class provides."""
    mapped, spec = cluster.devices.mapped_resources, pod.spec
    if not mapped:
        return False
    for containers in (spec.containers, spec.init_containers):
        for one in containers:
            for name in one.resources.requests:
                if name in mapped:
                    return True
    return bool(spec.overhead) and not mapped.keys().isdisjoint(spec.overhead)


def extended_requests(pod: Pod, cluster: Cluster) -> ExtendedRequests | None:
    """Return the extended resources of a pod; None if device classes provide none of them."""
    if not asks_for_classes(pod, cluster):
        return None
    amounts = {name: amount for name, amount in incoming_requests(pod).scalars if amount}
    amounts = {name: amount for name, amount in amounts.items() if is_device_resource_name(name)}
    mapped = cluster.devices.mapped_resources
    classes = {name: mapped[name] for name in amounts if name in mapped}
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
    """For each row, a pod's extended resources that devices have to provide because the node does not list them.

    Shapes: N rows in use.

    Attributes:
        unfit: The rows on which neither a device plugin nor a class provides some resource; (N,).
    """

    def __init__(self, wanted: ExtendedRequests, cluster: Cluster) -> None:
        size, nodes = cluster.nodes.size, cluster.nodes
        self._lacking = {name: nodes.allocatable(name)[:size] == 0 for name in sorted(wanted.classes)}
        self._size = size
        self.unfit: Mask = np.zeros(size, np.bool_)
        others = wanted.amounts.keys() - wanted.classes.keys()
        for row in _lacking_any(others, nodes, size):
            node = nodes.nodes[row]
            self.unfit[row] = node is None or not others <= node.status.allocatable.keys()

    def groups(self) -> list[tuple[list[str], Mask]]:
        """Return the rows, grouped by the resources that devices have to provide."""
        key: NDArray[np.int64] = np.zeros(self._size, np.int64)
        for place, lacking in enumerate(self._lacking.values(), 1):
            key = key << 1 | lacking
            if place % BITS == 0:
                key = np.unique(key, return_inverse=True)[1]
        found = (key == one for one in np.unique(key).tolist())
        return [(self.on_row(int(rows.argmax())), rows) for rows in found]

    def on_row(self, row: int) -> list[str]:
        """Return the resources that devices have to provide on a row."""
        return [name for name, lacking in self._lacking.items() if lacking[row]]


def _lacking_any(resources: Collection[str], nodes: NodeTable, size: int) -> list[int]:
    """Return the rows whose node lacks at least one of the resources."""
    found: Mask = np.zeros(size, np.bool_)
    for name in resources:
        found |= nodes.allocatable(name)[:size] == 0
        if found.all():
            break
    rows: list[int] = found.nonzero()[0].tolist()
    return rows


def requests_for(asked: Iterable[ResourceRequests]) -> tuple[DeviceRequest, ...]:
    """Return the device requests of the special claim for extended resources, sorted by name."""
    return tuple(sorted((one for of_resource in asked for one in of_resource.requests), key=lambda one: one.name))


def mappings_for(asked: Iterable[ResourceRequests]) -> Mappings | None:
    """Return which container uses which device request; None if the list is too large for an API server.

    An init container can use the requests of all containers after it, so call this only for requests that can be
    allocated, which are few.
    """
    found: list[ContainerExtendedRequest] = []
    size = 0
    for of_resource in asked:
        for one in of_resource.mappings():
            size += MAPPING_BYTES + len(one.container_name) + len(one.resource_name) + len(one.request_name)
            if size > MOST_BYTES:
                return None
            found.append(one)
    return tuple(found)


class _Asking(NamedTuple):
    """The amount of one extended resource that one container requests.

    Attributes:
        name: The name of its request in the special claim.
        is_short: Whether it is an init container that ends before the next container starts.
    """

    container: Container
    name: str
    amount: int
    is_short: bool


def asked_by_resource(pod: Pod, classes: Mapping[str, str]) -> dict[str, ResourceRequests]:
    """Return the containers' requests for extended resources that device classes provide, sorted by resource."""
    asking: dict[str, list[_Asking]] = {name: [] for name in sorted(classes)}
    init = len(pod.spec.init_containers)
    for index, container in enumerate((*pod.spec.init_containers, *pod.spec.containers)):
        is_short = index < init and container.restart_policy != "Always"
        amounts = container.resources.requests
        for place, name in enumerate(sorted(amounts)):
            amount = _amount(amounts[name]) if name in asking else 0
            if amount:
                asking[name].append(_Asking(container, f"container-{index}-request-{place}", amount, is_short))
    return {name: ResourceRequests(name, classes[name], of_name) for name, of_name in asking.items()}


_amount = lru_cache(maxsize=1024)(value)


class ResourceRequests:
    """The requests of a pod's containers for one extended resource, as requests for devices.

    Init containers that end share one request: the largest amount that one of them needs in addition to the devices of
    containers that start later.
    """

    def __init__(self, resource: str, device_class: str, asking: Sequence[_Asking]) -> None:
        self._resource, self._asking = resource, asking
        self._shared: _Asking | None = None
        self._needs_more: set[int] = set()
        held, shared = 0, 0
        for place in reversed(range(len(asking))):
            one = asking[place]
            if not one.is_short:
                held += one.amount
            elif one.amount > held:
                self._needs_more.add(place)
                if one.amount - held >= shared:  # of equal amounts that of the first container
                    self._shared, shared = one, one.amount - held
        lasting = [(one.name, one.amount) for one in asking if not one.is_short]
        self.requests = [
            DeviceRequest(name=name, exactly=ExactDeviceRequest(device_class_name=device_class, count=count))
            for name, count in ([(self._shared.name, shared)] if self._shared is not None else []) + lasting
        ]

    def mappings(self) -> Iterator[ContainerExtendedRequest]:
        """Yield which container uses which device request of this resource."""
        lasting = [(place, one) for place, one in enumerate(self._asking) if not one.is_short]
        for _, one in lasting:
            yield self._mapping(one, one)
        for place, one in enumerate(self._asking):
            if not one.is_short:
                continue
            had = 0
            for later, held in lasting:
                if later > place and had < one.amount:
                    had += held.amount
                    yield self._mapping(one, held)
            if place in self._needs_more and self._shared is not None:
                yield self._mapping(one, self._shared)

    def _mapping(self, of: _Asking, uses: _Asking) -> ContainerExtendedRequest:
        return ContainerExtendedRequest(
            container_name=of.container.name, resource_name=self._resource, request_name=uses.name
        )
