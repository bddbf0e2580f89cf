"""Resource slices, device classes and resource claims: published devices, and their allocation.

These are structs only. Amounts are texts. The type of an attribute is given by the field that is set.
`policysched.devices` computes allocations.

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
    """The pool of a ResourceSlice; of a pool's slices, only those of the highest generation are valid."""

    name: str = ""
    generation: Int64 = 0
    resource_slice_count: Int64 = 0


class Counter(Struct, frozen=True):
    """A counter that devices of a pool share, with its amount."""

    value: Amount = 0


class CounterSet(Struct, frozen=True):
    """A set of named counters of a pool, which devices consume."""

    name: str = ""
    counters: dict[str, Counter] = {}


class CounterConsumption(Struct, frozen=True):
    """The amounts that an allocated device consumes from a counter set."""

    counter_set: str = ""
    counters: dict[str, Counter] = {}
    compatibility_groups: tuple[str, ...] = ()


class DeviceAttribute(Struct, frozen=True):
    """An attribute of a device; the field that is set determines the type. Lists need an alpha feature gate."""

    number: Int64 | None = msgspec.field(default=None, name="int")
    flag: bool | None = msgspec.field(default=None, name="bool")
    string: str | None = None
    version: str | None = None
    ints: tuple[Int64, ...] | None = None
    bools: tuple[bool, ...] | None = None
    strings: tuple[str, ...] | None = None
    versions: tuple[str, ...] | None = None

    @property
    def is_list(self) -> bool:
        """Whether the attribute has a list of values."""
        return self.lists != (None, None, None, None)

    @property
    def lists(self) -> tuple[tuple[object, ...] | None, ...]:
        """The lists of values: integers, booleans, strings and versions; None for a list that is not set."""
        return self.ints, self.bools, self.strings, self.versions


class CapacityRange(Struct, frozen=True):
    """The amounts of a capacity that may be requested: a range with an optional step."""

    min: Amount | None = None
    max: Amount | None = None
    step: Amount | None = None


class CapacityRequestPolicy(Struct, frozen=True):
    """The policy for the amounts of a capacity that one request may consume."""

    default: Amount | None = None
    valid_values: tuple[Amount, ...] = ()
    valid_range: CapacityRange | None = None


class DeviceCapacity(Struct, frozen=True):
    """A capacity of a device, with the policy for the amounts that requests may consume."""

    value: Amount = 0
    request_policy: CapacityRequestPolicy | None = None


class DeviceTaint(Struct, frozen=True):
    """A taint of a device, which a driver publishes or a DeviceTaintRule adds."""

    key: str = ""
    value: str = ""
    effect: str = ""


class DeviceTaintSelector(Struct, frozen=True):
    """The selector of a DeviceTaintRule; a field that is not set matches every device."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(Struct, frozen=True):
    """A taint with a selector of devices; without selector, no device has the taint."""

    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint = DeviceTaint()


class DeviceTaintRule(Struct, frozen=True):
    """A taint that an administrator adds to devices, besides the taints that drivers set."""

    metadata: Metadata = Metadata()
    spec: DeviceTaintRuleSpec = DeviceTaintRuleSpec()


class SliceDevice(Struct, frozen=True):
    """A device in a ResourceSlice; attribute and capacity names without a domain are in the driver's domain."""

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
    """The spec of a ResourceSlice: devices or shared counters of a pool, and the nodes that can use them."""

    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    devices: tuple[SliceDevice, ...] = ()
    per_device_node_selection: bool | None = None
    shared_counters: tuple[CounterSet, ...] = ()


class ResourceSlice(Struct, frozen=True):
    """The devices that a driver publishes as one part of a pool."""

    metadata: Metadata = Metadata()
    spec: ResourceSliceSpec = ResourceSliceSpec()


class CELDeviceSelector(Struct, frozen=True):
    """A CEL expression that must be true for a requested device."""

    expression: str = ""


class DeviceSelector(Struct, frozen=True):
    """One condition that a device must meet to be allocated for a request."""

    cel: CELDeviceSelector | None = None


class OpaqueConfiguration(Struct, frozen=True):
    """Parameters for a driver in a device configuration; only the driver interprets them."""

    driver: str = ""
    parameters: msgspec.Raw = NO_PARAMETERS
    """JSON text, passed to the driver unchanged, including long numbers, unpaired surrogates and nulls."""

    def __hash__(self) -> int:
        """Return the hash of the parameters' text, because `msgspec.Raw` is not hashable."""
        return hash((self.driver, bytes(self.parameters)))


class ClassConfiguration(Struct, frozen=True):
    """A driver configuration that applies to each device allocated through a class."""

    opaque: OpaqueConfiguration | None = None


class DeviceClassSpec(Struct, frozen=True):
    """The devices of a class, and the extended resource that the class provides."""

    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[ClassConfiguration, ...] = ()
    extended_resource_name: str | None = None


class DeviceClass(Struct, frozen=True):
    """A class of devices that claims can request."""

    metadata: Metadata = Metadata()
    spec: DeviceClassSpec = DeviceClassSpec()


class DeviceToleration(Struct, frozen=True):
    """A toleration of device taints; an empty `operator` means Equal, an empty `effect` every effect."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None


class CapacityRequirements(Struct, frozen=True):
    """The amounts of a device's capacities that a request consumes."""

    requests: dict[str, Amount] = {}


class DerivedAttribute(Struct, frozen=True):
    """An attribute that an expression computes for each device."""

    name: str = ""
    expression: str = ""


class DeviceSubRequest(Struct, frozen=True):
    """One alternative of a device request."""

    name: str = ""
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = EXACT_COUNT
    count: Int64 = 1
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[DerivedAttribute, ...] = ()


class ExactDeviceRequest(Struct, frozen=True):
    """A request for some or all devices of one class."""

    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = EXACT_COUNT
    count: Int64 = 1
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[DerivedAttribute, ...] = ()


class DeviceRequest(Struct, frozen=True):
    """A named request of a claim: exact devices, or the first available of several alternatives."""

    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceConstraint(Struct, frozen=True):
    """An attribute that must be equal, or different, on all devices of the named requests (of all, without names)."""

    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class ClaimConfiguration(Struct, frozen=True):
    """A driver configuration for the devices of the named requests (of all requests, without names)."""

    requests: tuple[str, ...] = ()
    opaque: OpaqueConfiguration | None = None


class DeviceClaim(Struct, frozen=True):
    """The devices that a claim requests."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[ClaimConfiguration, ...] = ()


class ResourceClaimSpec(Struct, frozen=True):
    """Spec of a resource claim."""

    devices: DeviceClaim = DeviceClaim()


class DeviceResult(Struct, frozen=True):
    """A device, or a share of a device, that was allocated to a request."""

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
    """A driver configuration in an allocation, and whether it comes from the class or the claim."""

    source: str = ""
    requests: tuple[str, ...] = ()
    opaque: OpaqueConfiguration | None = None


class DeviceAllocation(Struct, frozen=True):
    """The allocated devices of a claim."""

    results: tuple[DeviceResult, ...] = ()
    config: tuple[AllocatedConfiguration, ...] = ()


class AllocationResult(Struct, frozen=True):
    """The allocation of a claim, with the nodes that can use it; without a selector, every node can."""

    devices: DeviceAllocation = DeviceAllocation()
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class ConsumerReference(Struct, frozen=True):
    """A reference in `reservedFor` to a pod (or other object) that may use a claim."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class DeviceCondition(Struct, frozen=True):
    """A condition that a driver sets on an allocated device."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class AllocatedDeviceStatus(Struct, frozen=True):
    """The status of an allocated device as its driver reports it."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = msgspec.field(default=None, name="shareID")
    conditions: tuple[DeviceCondition, ...] = ()


class ResourceClaimStatus(Struct, frozen=True):
    """The allocation of a claim, and the pods for which it is reserved."""

    allocation: AllocationResult | None = None
    reserved_for: tuple[ConsumerReference, ...] = ()
    devices: tuple[AllocatedDeviceStatus, ...] = ()


class ClaimMetadata(Metadata, frozen=True):
    """Metadata of a claim, with finalizers."""

    finalizers: tuple[str, ...] = ()


class ResourceClaim(Struct, frozen=True):
    """A claim for devices, which a pod refers to."""

    metadata: ClaimMetadata = ClaimMetadata()
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.metadata.namespace}/{self.metadata.name}"


class ResourceClaimTemplateSpec(Struct, frozen=True):
    """Labels, annotations and spec of the claims created from a template."""

    metadata: Metadata = Metadata()
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(Struct, frozen=True):
    """A template; each pod that names the template gets a claim created from it."""

    metadata: Metadata = Metadata()
    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()
