"""A resource slice as it is kept: its pool, its devices' names and rows, and the nodes that can reach it.

Source: k8s.io/dynamic-resource-allocation v0.36 structured/internal/incubating/pools_incubating.go (NodeMatches,
GatherPools).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np

from policysched.devices.inventory.allocated import PoolId
from policysched.devices.inventory.amounts import Number, number_of
from policysched.devices.inventory.columns import Codes, DeviceColumns
from policysched.model.objects import NodeSelector, ResourceSlice, SliceDevice
from policysched.model.selection.node_selectors import NodeSelectorMatcher, lenient_node_selector
from policysched.model.selection.selectors import Operator

_FEW_VALUES: Final = 32
"""So many values of labels a selector is filed under at most."""
_NO_VALUE: Final = "\0"
"""What no label has as its value."""
_FEW_DEVICES: Final = 16
"""Up to how many devices one is looked for without an index of their names."""


LabelValue: TypeAlias = tuple[str, str]
"""A label and its value."""
CounterName: TypeAlias = tuple[str, str]
"""A counter set and one of its counters."""


def demanded_by(selector: NodeSelectorMatcher) -> Collection[LabelValue] | None:
    """Return label values of which a node must have one; None where a selector does not demand one of a few."""
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
    """Which of a slice's devices each node can reach, where every device says so by itself.

    Bits stand for the devices, the lowest for the first one. Selectors that demand a few values of a label are found by
    those that a node has, so that a node costs what it can reach, and not all of the slice's selectors.

    Attributes:
        everywhere: The devices that every node reaches.
        by_name: The devices that nodes reach by their names.
        selectors: The devices that nodes reach by selectors; devices of equal ones together.
        own: For each device its node and node selector.
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
        """The selectors that demand one of a few values of a label, by both."""
        self._others = [matcher for matcher in self.selectors if not self._file(matcher)]

    def _file(self, matcher: NodeSelectorMatcher) -> bool:
        """File a selector by what it demands, where that is one of a few values of labels."""
        demands = demanded_by(matcher)
        for key, value in demands or ():
            self._by_label.setdefault(key, {}).setdefault(value, []).append(matcher)
        return demands is not None

    @property
    def demands(self) -> Collection[LabelValue] | None:
        """Label values of which a node must have one to reach a device; None where others may reach one, too."""
        if self.everywhere or self.by_name or self._others:
            return None
        return [(key, value) for key, by_value in self._by_label.items() for value in by_value]

    def reached_from(self, name: str, labels: Mapping[str, str]) -> int:
        """Return the devices that a node can reach."""
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
    """What the devices of a slice take of the counters of their pool.

    Attributes:
        sets: The counter sets.
        counters: The counters.
        by_device: By device how much it takes of which counter; only of those that take any.
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
    """What is kept of a slice.

    Attributes:
        local_to: The only node that can reach it, empty where it is not tied to one by name.
        everywhere: Whether it counts on every node.
        selector: The nodes that can reach it, where labels say so.
        device_nodes: Which devices a node can reach, where each device says so by itself.
        counter_sets: The counters of each set; a slice that has some has no devices to allocate.
        repeats_names: Whether some devices have one name.
        start: The row of the first device.
        number: What no other slice, nor another version of it, ever has.
        counts: Whether some device takes counters.
        charges: What the devices take of counters.
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
    _places: dict[str, int] = field(default_factory=dict)
    """The places of many devices by name, once one was looked for."""

    @property
    def rows(self) -> Codes:
        """The rows of the devices. Shapes: (D,)."""
        return np.arange(self.start, self.start + len(self.devices), dtype=np.int32)

    @property
    def is_selective(self) -> bool:
        """Whether labels, or its devices, say which nodes reach it."""
        return not (self.everywhere or self.local_to or self.says_nothing)

    @property
    def says_nothing(self) -> bool:
        """Whether it says of no node that it is reached from there."""
        tied = self.local_to or self.everywhere
        return not tied and self.selector is None and self.device_nodes is None

    def is_reached_from(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether the slice counts on a node."""
        return self.reached_from(name, labels) is not None

    def reached_from(self, name: str, labels: Mapping[str, str]) -> int | None:
        """Return the devices that a node can reach, None where the slice does not count there.

        Where no device says so by itself, no bits are set.
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
        """Label values of which a node must have one to reach the slice; None where others may reach it, too."""
        if self.everywhere or self.local_to:
            return None
        if self.selector is not None:
            return demanded_by(self.selector)
        return () if self.device_nodes is None else self.device_nodes.demands

    def place(self, device: str) -> int | None:
        """Return the place of a device, None where it is not in the slice."""
        devices = self.devices
        if len(devices) <= _FEW_DEVICES:
            return devices.index(device) if device in devices else None
        if not self._places:
            self._places.update((name, place) for place, name in enumerate(devices))
        return self._places.get(device)


def keep(one: ResourceSlice, columns: DeviceColumns) -> KeptSlice:
    """Take a slice's devices into the columns.

    Raises:
        QuantityError: an amount is malformed; nothing is taken then.
    """
    spec = one.spec
    sets = tuple(
        (each.name, {name: number_of(counter.value) for name, counter in each.counters.items()})
        for each in spec.shared_counters
    )
    everywhere = bool(sets) or (not spec.node_name and bool(spec.all_nodes))
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
    )
