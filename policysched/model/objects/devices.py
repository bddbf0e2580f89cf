"""Resource slices, device classes and resource claims: the devices that drivers publish and what is allocated of them.

Only the shapes. Amounts stay the texts that they were, and the values of an attribute are told apart by the field that
is set. What a claim gets on a node is worked out in `policysched.devices`.

Source: k8s.io/api/resource/v1/types.go, v0.36.
"""

from __future__ import annotations

from typing import Final

import msgspec

from policysched.model.objects.meta import Amount, Int64, Metadata, Struct
from policysched.model.objects.pods import NodeSelector

EXACT_COUNT: Final = "ExactCount"
ALL: Final = "All"
FROM_CLASS: Final = "FromClass"
FROM_CLAIM: Final = "FromClaim"
NO_PARAMETERS: Final = msgspec.Raw(b"null")


class ResourcePool(Struct, frozen=True):
    """The pool that a slice is part of; of several generations the highest counts."""

    name: str = ""
    generation: Int64 = 0
    resource_slice_count: Int64 = 0


class Counter(Struct, frozen=True):
    """An amount of something that devices of a pool share."""

    value: Amount = 0


class CounterSet(Struct, frozen=True):
    """Counters of a pool, under a name that its devices refer to."""

    name: str = ""
    counters: dict[str, Counter] = {}


class CounterConsumption(Struct, frozen=True):
    """What a device takes of a counter set while it is allocated."""

    counter_set: str = ""
    counters: dict[str, Counter] = {}


class DeviceAttribute(Struct, frozen=True):
    """A device's attribute: the field that is set says the type; lists are behind a gate that is off."""

    number: Int64 | None = msgspec.field(default=None, name="int")
    flag: bool | None = msgspec.field(default=None, name="bool")
    string: str | None = None
    version: str | None = None


class CapacityRange(Struct, frozen=True):
    """The amounts between two that may be asked for, in steps where there are any."""

    min: Amount | None = None
    max: Amount | None = None
    step: Amount | None = None


class CapacityRequestPolicy(Struct, frozen=True):
    """How much of a capacity one request may consume."""

    default: Amount | None = None
    valid_values: tuple[Amount, ...] = ()
    valid_range: CapacityRange | None = None


class DeviceCapacity(Struct, frozen=True):
    """A capacity of a device."""

    value: Amount = 0
    request_policy: CapacityRequestPolicy | None = None


class DeviceTaint(Struct, frozen=True):
    """A device's taint."""

    key: str = ""
    value: str = ""
    effect: str = ""


class SliceDevice(Struct, frozen=True):
    """A device of a slice; names of attributes and capacities without a domain have the driver's."""

    name: str = ""
    attributes: dict[str, DeviceAttribute] = {}
    capacity: dict[str, DeviceCapacity] = {}
    consumes_counters: tuple[CounterConsumption, ...] = ()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: tuple[DeviceTaint, ...] = ()
    binds_to_node: bool | None = None
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool | None = None


class ResourceSliceSpec(Struct, frozen=True):
    """The devices, or the shared counters, of a part of a pool, and the nodes that can reach them."""

    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    devices: tuple[SliceDevice, ...] = ()
    per_device_node_selection: bool | None = None
    shared_counters: tuple[CounterSet, ...] = ()


class ResourceSlice(Struct, frozen=True):
    """What a driver publishes of a pool."""

    metadata: Metadata = Metadata()
    spec: ResourceSliceSpec = ResourceSliceSpec()


class CELDeviceSelector(Struct, frozen=True):
    """An expression that must be true of a device."""

    expression: str = ""


class DeviceSelector(Struct, frozen=True):
    """One condition on devices."""

    cel: CELDeviceSelector | None = None


class OpaqueConfiguration(Struct, frozen=True):
    """What a driver is told of an allocation; nobody else reads the parameters."""

    driver: str = ""
    parameters: msgspec.Raw = NO_PARAMETERS
    """As JSON. It is handed on to the driver as it was written: numbers of many digits, halves of characters, nulls."""

    def __hash__(self) -> int:
        """Hash it, which a raw text does not do by itself."""
        return hash((self.driver, bytes(self.parameters)))


class ClassConfiguration(Struct, frozen=True):
    """A configuration of every device that is allocated through a class."""

    opaque: OpaqueConfiguration | None = None


class DeviceClassSpec(Struct, frozen=True):
    """Which devices a class is of, and the extended resource that it stands for."""

    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[ClassConfiguration, ...] = ()
    extended_resource_name: str | None = None


class DeviceClass(Struct, frozen=True):
    """A class of devices."""

    metadata: Metadata = Metadata()
    spec: DeviceClassSpec = DeviceClassSpec()


class DeviceToleration(Struct, frozen=True):
    """A toleration of devices' taints; `operator` empty means Equal, `effect` empty means every effect."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None


class CapacityRequirements(Struct, frozen=True):
    """How much of its capacities is asked of a device."""

    requests: dict[str, Amount] = {}


class DeviceSubRequest(Struct, frozen=True):
    """One of the alternatives of a request."""

    name: str = ""
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = EXACT_COUNT
    count: Int64 = 1
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None


class ExactDeviceRequest(Struct, frozen=True):
    """Devices of one kind, some or all."""

    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = EXACT_COUNT
    count: Int64 = 1
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None


class DeviceRequest(Struct, frozen=True):
    """What a claim asks for under a name: exactly that, or the first of several alternatives that can be had."""

    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceConstraint(Struct, frozen=True):
    """An attribute that must be equal, or different, on the devices of some requests; without names on all."""

    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class ClaimConfiguration(Struct, frozen=True):
    """A configuration of the devices of some requests; without names of all."""

    requests: tuple[str, ...] = ()
    opaque: OpaqueConfiguration | None = None


class DeviceClaim(Struct, frozen=True):
    """The devices that a claim asks for."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[ClaimConfiguration, ...] = ()


class ResourceClaimSpec(Struct, frozen=True):
    """What a claim asks for."""

    devices: DeviceClaim = DeviceClaim()


class DeviceResult(Struct, frozen=True):
    """A device that a request got, or a share of it."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    share_id: str | None = msgspec.field(default=None, name="shareID")
    consumed_capacity: dict[str, Amount] = {}


class AllocatedConfiguration(Struct, frozen=True):
    """A configuration of an allocation, and whether a class or the claim brought it."""

    source: str = ""
    requests: tuple[str, ...] = ()
    opaque: OpaqueConfiguration | None = None


class DeviceAllocation(Struct, frozen=True):
    """The devices of an allocation."""

    results: tuple[DeviceResult, ...] = ()
    config: tuple[AllocatedConfiguration, ...] = ()


class AllocationResult(Struct, frozen=True):
    """What a claim got, and the nodes where it can be used; without a selector that is every node."""

    devices: DeviceAllocation = DeviceAllocation()
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class ConsumerReference(Struct, frozen=True):
    """Who may use a claim."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class DeviceCondition(Struct, frozen=True):
    """What a driver says of an allocated device."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class AllocatedDeviceStatus(Struct, frozen=True):
    """Where a driver stands with an allocated device."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = msgspec.field(default=None, name="shareID")
    conditions: tuple[DeviceCondition, ...] = ()


class ResourceClaimStatus(Struct, frozen=True):
    """What a claim got, and for whom it is reserved."""

    allocation: AllocationResult | None = None
    reserved_for: tuple[ConsumerReference, ...] = ()
    devices: tuple[AllocatedDeviceStatus, ...] = ()


class ClaimMetadata(Metadata, frozen=True):
    """Identity of a claim, with what keeps it from going away."""

    finalizers: tuple[str, ...] = ()


class ResourceClaim(Struct, frozen=True):
    """A claim to devices."""

    metadata: ClaimMetadata = ClaimMetadata()
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.metadata.namespace}/{self.metadata.name}"


class ResourceClaimTemplateSpec(Struct, frozen=True):
    """What claims are made of: their labels and annotations, and what they ask for."""

    metadata: Metadata = Metadata()
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(Struct, frozen=True):
    """A template of which each pod that names it gets a claim of its own."""

    metadata: Metadata = Metadata()
    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()
