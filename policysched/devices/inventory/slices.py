"""`KeptSlice`: the fields of a resource slice that the allocator needs: pool, devices and nodes.

Source: k8s.io/dynamic-resource-allocation v0.36 and v0.37 structured/internal/incubating/pools_incubating.go
(NodeMatches, GatherPools), compatibility_groups.go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np

from policysched.devices.inventory.allocated import PoolId
from policysched.devices.inventory.amounts import Number, number_of
from policysched.devices.inventory.columns import Codes, DeviceColumns
from policysched.model.objects import NodeSelector, ResourceSlice, ResourceSliceSpec, SliceDevice
from policysched.model.release import Release
from policysched.model.selection.node_selectors import NodeSelectorMatcher, lenient_node_selector
from policysched.model.selection.selectors import Operator

_FEW_VALUES: Final = 32
"""Maximum number of label values by which a node selector is indexed; other selectors are evaluated on each node."""
_NO_VALUE: Final = "\0"
"""A text that is no valid label value, used for labels that a node does not have."""


LabelValue: TypeAlias = tuple[str, str]
"""The key and the value of a label."""
CounterName: TypeAlias = tuple[str, str]
"""The name of a counter set and of a counter in the set."""


def demanded_by(selector: NodeSelectorMatcher) -> Collection[LabelValue] | None:
    """Return label values of which every node has one that matches a selector; None if there are none or too many."""
    if selector.terms is None:
        return None
    demands: dict[LabelValue, None] = {}
    for term in selector.terms:
        demanded = next((one for one in term.labels if one.operator is Operator.IN), None)
        if demanded is None or len(demanded.values) + len(demands) > _FEW_VALUES:
            return None
        demands.update(((demanded.key, value), None) for value in demanded.values)
    return demands.keys()


class DeviceNodes:
    """The devices that each node can use, for a slice whose devices select nodes themselves.

    In a bit set, bit n is the device at place n. Selectors that demand one of a few label values are indexed by these
    values, so that the cost for a node depends on what it reaches, not on all selectors.

    Attributes:
        everywhere: The devices that every node reaches.
        by_name: The devices that name their node, by node name.
        selectors: The devices with node selectors, by selector.
        own: For each device, its node name and node selector.
    """

    __slots__ = ("_by_label", "_others", "by_name", "everywhere", "own", "selectors")

    def __init__(self, devices: tuple[SliceDevice, ...]) -> None:
        self.by_name: dict[str, int] = {}
        self.everywhere = 0
        self.selectors: dict[NodeSelectorMatcher, int] = {}
        self.own = tuple((one.node_name, one.node_selector) for one in devices)
        for place, one in enumerate(devices):
            bit = 1 << place
            if one.node_name:
                self.by_name[one.node_name] = self.by_name.get(one.node_name, 0) | bit
            elif one.all_nodes:
                self.everywhere |= bit
            elif one.node_selector is not None:
                matcher = lenient_node_selector(one.node_selector)
                self.selectors[matcher] = self.selectors.get(matcher, 0) | bit
        self._by_label: dict[str, dict[str, list[NodeSelectorMatcher]]] = {}
        """The node selectors that require one of a few values of a label, by label key and value."""
        self._others = [matcher for matcher in self.selectors if not self._file(matcher)]

    def _file(self, matcher: NodeSelectorMatcher) -> bool:
        """Index a device's node selector by the label values that it requires; return False if it requires none."""
        demands = demanded_by(matcher)
        for key, value in demands or ():
            self._by_label.setdefault(key, {}).setdefault(value, []).append(matcher)
        return demands is not None

    @property
    def demands(self) -> Collection[LabelValue] | None:
        """Label values of which a node has one if it can use a device; None if nodes can use one without them."""
        if self.everywhere or self.by_name or self._others:
            return None
        return [(key, value) for key, by_value in self._by_label.items() for value in by_value]

    def reached_from(self, name: str, labels: Mapping[str, str]) -> int:
        """Return the devices that a node can use, as a bit set."""
        bits = self.everywhere | self.by_name.get(name, 0)
        for matcher in self._others:
            if matcher.matches(name, labels):
                bits |= self.selectors[matcher]
        for key, by_value in self._by_label.items():
            for matcher in by_value.get(labels.get(key, _NO_VALUE), ()):
                if matcher.matches(name, labels):
                    bits |= self.selectors[matcher]
        return bits


class Charges:
    """The shared counters that the devices of a slice consume, by device.

    Attributes:
        sets: The counter sets.
        counters: The counters.
        by_device: By device name, the counters with the amounts that it takes; only of devices that take any.
    """

    __slots__ = ("by_device", "counters", "sets")

    def __init__(self, devices: Sequence[SliceDevice]) -> None:
        self.sets = {one.counter_set for device in devices for one in device.consumes_counters}
        self.by_device: dict[str, list[tuple[CounterName, Number]]] = {}
        for device in devices:
            for one in device.consumes_counters:
                for name, counter in one.counters.items():
                    taken = (one.counter_set, name), number_of(counter.value)
                    self.by_device.setdefault(device.name, []).append(taken)
        self.counters = {name for each in self.by_device.values() for name, _ in each}


_NO_CHARGES: Final = Charges(())


@dataclass(frozen=True, slots=True, eq=False)
class KeptSlice:
    """The fields of a resource slice that the allocator needs.

    Attributes:
        local_to: The only node that reaches the slice, empty if the slice does not name its node.
        everywhere: Whether every node reaches the slice.
        selector: The node selector, None if it has none.
        device_nodes: The devices that each node reaches, if the slice states nodes per device.
        counter_sets: The counters of each set; a slice with counter sets has no devices to allocate.
        repeats_names: Whether two devices have the same name.
        start: The row of the first device.
        number: A number that no other slice, and no other version of the slice, ever has.
        counts: Whether a device takes counters.
        charges: The counters that the devices take.
        is_ignored: Whether the slice is not counted among the slices of its pool.
    """

    name: str
    pool: PoolId
    generation: int
    slice_count: int
    local_to: str
    everywhere: bool
    selector: NodeSelectorMatcher | None
    device_nodes: DeviceNodes | None
    counter_sets: tuple[tuple[str, Mapping[str, Number]], ...]
    devices: tuple[str, ...]
    repeats_names: bool
    start: int
    number: int
    counts: bool
    charges: Charges
    has_binding_conditions: bool
    stated_node: str | None
    stated_selector: NodeSelector | None
    is_ignored: bool
    _places: dict[str, int] = field(default_factory=dict)
    """The index of each device in the slice by name; computed at the first use."""

    @property
    def rows(self) -> Codes:
        """The row numbers of the slice's devices in the device columns. Shapes: (D,)."""
        return np.arange(self.start, self.start + len(self.devices), dtype=np.int32)

    @property
    def says_nothing(self) -> bool:
        """Whether the slice has no field that states nodes, so that no node can use it."""
        tied = self.local_to or self.everywhere
        return not tied and self.selector is None and self.device_nodes is None

    def reached_from(self, name: str, labels: Mapping[str, str]) -> int | None:
        """Return the devices with own node selection that a node can use, as bit set; None if it cannot use the slice.

        If the slice does not state nodes per device, no bits are set.
        """
        says_so = self.everywhere or name == self.local_to if self.everywhere or self.local_to else None
        if says_so is None and self.selector is not None:
            says_so = self.selector.matches(name, labels)
        if says_so is False:
            return None
        reached = 0 if self.device_nodes is None else self.device_nodes.reached_from(name, labels)
        return reached if says_so or reached else None

    @property
    def demands(self) -> Collection[LabelValue] | None:
        """Label values of which a node has one if it can use the slice; None if nodes can use it without them."""
        if self.everywhere or self.local_to:
            return None
        if self.selector is not None:
            return demanded_by(self.selector)
        return () if self.device_nodes is None else self.device_nodes.demands

    def place(self, device: str) -> int | None:
        """Return the index of a device in the slice; None if the slice has no such device."""
        if not self._places:
            self._places.update((name, place) for place, name in enumerate(self.devices))
        return self._places.get(device)


def keep(one: ResourceSlice, columns: DeviceColumns, release: Release) -> KeptSlice:
    """Add a slice's devices to the columns; return the fields of the slice that the allocator needs.

    Args:
        one: The slice.
        columns: The devices.
        release: The Kubernetes release whose allocator is reproduced.

    Raises:
        QuantityError: An amount is malformed; nothing is added.
    """
    spec = one.spec
    is_ignored = release.ignores_compatibility_groups and _has_compatibility_groups(spec.devices)
    if is_ignored:
        spec = ResourceSliceSpec(driver=spec.driver, pool=spec.pool)
    sets = tuple(
        (each.name, {name: number_of(counter.value) for name, counter in each.counters.items()})
        for each in spec.shared_counters
    )
    everywhere = (bool(sets) and release.counters_reach_all_nodes) or (not spec.node_name and bool(spec.all_nodes))
    local_to = "" if everywhere else spec.node_name or ""
    by_labels = not everywhere and not local_to and spec.node_selector is not None
    names = tuple([device.name for device in spec.devices])
    counts = any(device.consumes_counters for device in spec.devices)
    return KeptSlice(
        name=one.metadata.name,
        pool=PoolId(spec.driver, spec.pool.name),
        generation=spec.pool.generation,
        slice_count=spec.pool.resource_slice_count,
        local_to=local_to,
        everywhere=everywhere,
        selector=lenient_node_selector(spec.node_selector) if by_labels and spec.node_selector else None,
        device_nodes=DeviceNodes(spec.devices) if spec.per_device_node_selection else None,
        counter_sets=sets,
        devices=names,
        repeats_names=len(set(names)) < len(names),
        start=columns.add(spec.driver, spec.devices),
        number=columns.added,
        counts=counts,
        charges=Charges(spec.devices) if counts else _NO_CHARGES,
        has_binding_conditions=any(device.binding_conditions for device in spec.devices),
        stated_node=spec.node_name,
        stated_selector=spec.node_selector,
        is_ignored=is_ignored,
    )


def _has_compatibility_groups(devices: Iterable[SliceDevice]) -> bool:
    counting = (one.consumes_counters for one in devices if one.consumes_counters)
    return any(one.compatibility_groups for several in counting for one in several)
