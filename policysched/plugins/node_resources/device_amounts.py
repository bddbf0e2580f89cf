"""Scored amounts of extended resources that devices provide: the devices of a device class that a node can use.

If a scoring strategy names such a resource, the score of a node without a device plugin for it uses the devices of the
resource's device class. Each published device that the class selects is counted, in any pool and generation; if a
selector fails, the node is treated as one without the resource.

Shapes: N rows in use, R rows asked for, k resources.
Source: plugins/noderesources/resource_allocation.go (calculateDRAResourceTotals), v1.36.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Final

import msgspec
import numpy as np

from policysched.cel import CompiledSelector, InvalidDeviceSelectorError, Variables, compile_selector
from policysched.cel import Device as SelectorDevice
from policysched.devices.inventory.allocated import PoolId
from policysched.framework import Cluster, Mask, Rows
from policysched.model.objects import DeviceClass, NodeSelector, ResourceSlice, SliceDevice
from policysched.model.selection.node_selectors import lenient_node_selector
from policysched.plugins.node_resources.allocation import ScoredAmounts
from policysched.plugins.nodes.node_selection import SelectorTest
from policysched.state.tables.amounts import Amounts

FAILED: Final = None
Selected = tuple[bool | None, ...]
"""For each device of a slice, whether a device class selects the device; None if a selector fails."""


@dataclass(frozen=True, eq=False)
class DeviceAmounts(ScoredAmounts):
    """A pod's amounts of the scored resources, some of which devices provide.

    Shapes: total (k, N), allocated (k, N); 0 for resources without a device class.
    """

    total: Amounts
    allocated: Amounts

    def capacity(self, rows: Rows) -> Amounts:
        """Return the allocatable amounts of nodes; for a resource that a node does not list, its number of devices."""
        capacity = super().capacity(rows)
        return np.where(capacity == 0, self.total[:, rows], capacity)

    def taken(self, rows: Rows) -> Amounts:
        """Return the requested amounts of nodes; for a resource that devices provide, the number of allocated ones."""
        by_devices = (super().capacity(rows) == 0) & (self.total[:, rows] > 0)
        return np.where(by_devices, self.allocated[:, rows], super().taken(rows))


def with_devices(wanted: ScoredAmounts, cluster: Cluster) -> DeviceAmounts:
    """Return a pod's scored amounts, in which devices provide the resources of device classes."""
    shape = (len(wanted.resources), cluster.nodes.size)
    total, allocated = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    for place, resource in enumerate(wanted.resources):
        name = cluster.devices.mapped_resources.get(resource)
        if name is not None:
            _count(cluster, cluster.devices.tables.classes[name], total[place], allocated[place])
    known = {field.name: getattr(wanted, field.name) for field in fields(ScoredAmounts)}
    return DeviceAmounts(**known, total=total, allocated=allocated)


def _count(cluster: Cluster, device_class: DeviceClass, total: Amounts, allocated: Amounts) -> None:
    """Add to two arrays each node's numbers of all and of allocated devices of a device class. Shapes: (N,), (N,)."""
    failed = np.zeros(total.size, np.bool_)
    for one in cluster.objects.of(ResourceSlice).values():
        selected = _SELECTED.of(one, device_class, cel_0_29=cluster.release.selectors_follow_cel_0_29)
        taken = cluster.devices.allocated.of(PoolId(one.spec.driver, one.spec.pool.name))
        reached = None if one.spec.per_device_node_selection else _reached(one, cluster)
        for device, matches in zip(one.spec.devices, selected, strict=True):
            rows = _reached(device, cluster) if reached is None else reached
            if matches is FAILED:
                failed[rows] = True
            elif matches:
                total[rows] += 1
                allocated[rows] += device.name in taken.dedicated or device.name in taken.shares
    total[failed] = allocated[failed] = 0


def _reached(of: ResourceSlice | SliceDevice, cluster: Cluster) -> slice | list[int] | Mask:
    """Return the row numbers of the nodes that can access a resource slice or device."""
    spec = of.spec if isinstance(of, ResourceSlice) else of
    everywhere = slice(0, cluster.nodes.size)
    if spec.all_nodes:
        return everywhere
    if spec.node_selector is not None:
        return _selected_rows(spec.node_selector, cluster)
    if spec.node_name:
        row = cluster.nodes.row_of.get(spec.node_name, -1)
        return [row] if row >= 0 else []
    return everywhere if isinstance(of, ResourceSlice) else []


def _selected_rows(selector: NodeSelector, cluster: Cluster) -> Mask:
    return SelectorTest(lenient_node_selector(selector), cluster.nodes)(slice(0, cluster.nodes.size))


class SelectedDevices:
    """Cached answers which devices of a resource slice a device class selects, by version of slice and class."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str, bool], tuple[ResourceSlice, DeviceClass, Selected]] = {}

    def of(self, one: ResourceSlice, device_class: DeviceClass, *, cel_0_29: bool) -> Selected:
        """Return for each device of a slice whether a device class selects the device; None if a selector fails.

        Args:
            one: The slice.
            device_class: The class.
            cel_0_29: Whether selectors follow cel-go 0.29.
        """
        key = (one.metadata.name, device_class.metadata.name, cel_0_29)
        known = self._known.get(key)
        if known is None or known[0] is not one or known[1] is not device_class:
            if len(self._known) > MOST_SLICES:
                self._known.clear()
            texts = [each.cel.expression if each.cel else "" for each in device_class.spec.selectors]
            selectors = [_compiled(text, cel_0_29) for text in texts]
            found = tuple(_matches(one.spec.driver, device, selectors, cel_0_29) for device in one.spec.devices)
            known = self._known[key] = (one, device_class, found)
        return known[2]


MOST_SLICES: Final = 100_000
"""Maximum number of cached results; each result is for one slice and one device class."""
_SELECTED: Final = SelectedDevices()


@lru_cache(maxsize=1024)
def _compiled(expression: str, cel_0_29: bool) -> CompiledSelector | None:
    try:
        return compile_selector(expression, cel_0_29=cel_0_29)
    except InvalidDeviceSelectorError:
        return None


def _matches(driver: str, device: SliceDevice, selectors: list[CompiledSelector | None], cel_0_29: bool) -> bool | None:
    if not selectors:
        return True
    stated = device.attributes.items()
    attributes = {name: msgspec.to_builtins(one) for name, one in stated if cel_0_29 or not one.is_list}
    if len(attributes) < len(stated):
        return FAILED
    capacity = {name: str(one.value) for name, one in device.capacity.items()}
    variables = Variables(SelectorDevice(driver, attributes, capacity, bool(device.allow_multiple_allocations)))
    for selector in selectors:
        matches = FAILED if selector is None else selector.matches(variables)
        if not isinstance(matches, bool):
            return FAILED
        if not matches:
            return False
    return True
