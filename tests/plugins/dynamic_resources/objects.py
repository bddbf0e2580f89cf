"""Slices, classes and claims as the tests of DynamicResources want them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from policysched.framework import Cluster
from policysched.model.objects import (
    AllocatedDeviceStatus,
    AllocationResult,
    CELDeviceSelector,
    ClaimMetadata,
    ConsumerReference,
    DeviceAllocation,
    DeviceAttribute,
    DeviceClaim,
    DeviceClass,
    DeviceClassSpec,
    DeviceCondition,
    DeviceRequest,
    DeviceResult,
    DeviceSelector,
    DeviceSubRequest,
    ExactDeviceRequest,
    Metadata,
    Node,
    NodeSelector,
    NodeSelectorTerm,
    OwnerReference,
    Pod,
    PodClaimStatus,
    PodResourceClaim,
    Requirement,
    ResourceClaim,
    ResourceClaimSpec,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
    SliceDevice,
)
from tests.build import cluster, node, pod

DRIVER = "gpu.example.com"
CLASS = "gpu"


def device(name: str, model: str = "a", **fields: Any) -> SliceDevice:
    """A device of a model."""
    return SliceDevice(name=name, attributes={"model": DeviceAttribute(string=model)}, **fields)


def resource_slice(on: str, *devices: SliceDevice | str, **spec: Any) -> ResourceSlice:
    """The devices of a node's pool."""
    made = tuple(device(one) if isinstance(one, str) else one for one in devices)
    fields: dict[str, Any] = {"driver": DRIVER, "node_name": on, "devices": made}
    fields["pool"] = ResourcePool(name=on, generation=1, resource_slice_count=1)
    return ResourceSlice(metadata=Metadata(name=f"slice-{on}"), spec=ResourceSliceSpec(**(fields | spec)))


def gpu_class(name: str = CLASS, expression: str = f'device.driver == "{DRIVER}"', **spec: Any) -> DeviceClass:
    """A class of devices that an expression selects."""
    return DeviceClass(metadata=Metadata(name=name), spec=DeviceClassSpec(selectors=(selector(expression),), **spec))


def selector(expression: str) -> DeviceSelector:
    """A selector of devices."""
    return DeviceSelector(cel=CELDeviceSelector(expression=expression))


def exactly(name: str = "r", count: int = 1, device_class: str = CLASS, **fields: Any) -> DeviceRequest:
    """A request for devices."""
    asked = ExactDeviceRequest(device_class_name=device_class, count=count, **fields)
    return DeviceRequest(name=name, exactly=asked)


def first_available(name: str, *models: str) -> DeviceRequest:
    """A request for a device of the first model that there is."""
    return DeviceRequest(name=name, first_available=tuple(map(alternative, models)))


def alternative(model: str) -> DeviceSubRequest:
    """A device of a model."""
    wanted = selector(f'device.attributes["{DRIVER}"].model == "{model}"')
    return DeviceSubRequest(name=model, device_class_name=CLASS, selectors=(wanted,))


def claim(name: str = "c", *requests: DeviceRequest, owner: Pod | None = None, version: str = "1") -> ResourceClaim:
    """A claim; without requests it asks for one device."""
    owners = [] if owner is None else [_owned_by(owner)]
    metadata = ClaimMetadata(
        name=name, namespace="default", uid=f"uid-{name}", resource_version=version, owner_references=owners
    )
    return ResourceClaim(
        metadata=metadata, spec=ResourceClaimSpec(devices=DeviceClaim(requests=requests or (exactly(),)))
    )


def _owned_by(owner: Pod) -> OwnerReference:
    of = owner.metadata
    return OwnerReference(api_version="v1", kind="Pod", name=of.name, uid=of.uid, controller=True)


def changed(of: ResourceClaim, *, version: str = "", **status: Any) -> ResourceClaim:
    """A claim with another status, in another version perhaps."""
    metadata = replace(of.metadata, resource_version=version or of.metadata.resource_version)
    return replace(of, metadata=metadata, status=replace(of.status, **status))


def allocated(
    of: ResourceClaim, on: str, *devices: str, users: Iterable[Pod] = (), waits_for: tuple[str, ...] = (), **more: Any
) -> ResourceClaim:
    """A claim that has devices of a node."""
    results = tuple(
        DeviceResult(request="r", driver=DRIVER, pool=on, device=one, binding_conditions=waits_for, **more)
        for one in devices
    )
    term = NodeSelectorTerm(match_fields=(Requirement(key="metadata.name", operator="In", values=(on,)),))
    got = AllocationResult(
        devices=DeviceAllocation(results=results), node_selector=NodeSelector(node_selector_terms=[term])
    )
    return changed(of, allocation=got, reserved_for=tuple(map(user, users)))


def user(of: Pod) -> ConsumerReference:
    """A pod among those for which a claim is reserved."""
    return ConsumerReference(resource="pods", name=of.metadata.name, uid=of.metadata.uid)


def told(of: ResourceClaim, *conditions: DeviceCondition) -> ResourceClaim:
    """A claim whose driver says something of its devices."""
    assert of.status.allocation is not None
    devices = tuple(
        AllocatedDeviceStatus(driver=one.driver, pool=one.pool, device=one.device, conditions=conditions)
        for one in of.status.allocation.devices.results
    )
    return changed(of, devices=devices)


def claiming(*names: str, name: str = "p", **spec: Any) -> Pod:
    """A pod that names claims."""
    stated = [PodResourceClaim(name=one, resource_claim_name=one) for one in names]
    return pod(name, resource_claims=stated, **spec)


def templated(made: str | None = None, *, known: bool = True) -> Pod:
    """A pod that names a template, of which a claim was made."""
    of = pod(resource_claims=[PodResourceClaim(name="c", resource_claim_template_name="t")])
    if not known:
        return of
    return replace(
        of, status=replace(of.status, resource_claim_statuses=[PodClaimStatus(name="c", resource_claim_name=made)])
    )


def world(*objects: Any) -> Cluster:
    """A cluster with a class of devices, and these objects."""
    made = cluster(*(one for one in objects if isinstance(one, Node)))
    made.take(gpu_class())
    for one in objects:
        if not isinstance(one, Node):
            made.take(one)
    return made


def two_nodes(*objects: Any) -> Cluster:
    """A cluster of two nodes with two devices on the first and one on the second."""
    return world(node("n1"), node("n2"), resource_slice("n1", "d1", "d2"), resource_slice("n2", "d1"), *objects)


def names_of(results: Sequence[DeviceResult]) -> list[str]:
    """The devices of results."""
    return [f"{one.pool}/{one.device}" for one in results]


def devices_of(allocation: AllocationResult | None) -> Sequence[str]:
    """The devices of an allocation."""
    return () if allocation is None else names_of(allocation.devices.results)
