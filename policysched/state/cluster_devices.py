"""`ClusterDevices`: the devices of a cluster, from its DeviceClasses, ResourceSlices and DeviceTaintRules."""

from __future__ import annotations

from functools import cached_property
from typing import Final

from policysched.devices import AllocatedState, DeviceTables, compile_class
from policysched.model.kinds import Resource
from policysched.model.objects import DeviceClass, DeviceTaintRule, Node, ResourceSlice
from policysched.model.release import Release
from policysched.state.cluster_events import Action, Change, change_of
from policysched.state.mapped_resources import MappedResources
from policysched.state.object_tables import ObjectTables
from policysched.state.tables.nodes import NodeTable
from policysched.state.tainted_slices import TaintedSlices

_NOTHING: Final = Change(Resource.OTHER, Action.NONE)


class ClusterDevices:
    """The devices of a cluster, and the extended resources that device classes provide.

    Args:
        objects: The objects of the cluster, which include device classes, slices and taint rules.
        nodes: The nodes of the cluster.
        release: The Kubernetes release whose rules apply.
    """

    def __init__(self, objects: ObjectTables, nodes: NodeTable, release: Release) -> None:
        self._objects, self._nodes, self._release = objects, nodes, release
        self.allocated = AllocatedState()
        """The devices that are allocated to ResourceClaims."""
        self.mapped_resources = MappedResources()
        self.objects_stamp = 0
        """A number that changes with each change of a ResourceSlice or DeviceClass."""
        self._classes = objects.of(DeviceClass)
        slices, rules = objects.of(ResourceSlice), objects.of(DeviceTaintRule)
        self._tainted_slices = TaintedSlices(slices, rules, rules_apply=release.device_taint_rules_apply)
        self._has_tables = False

    @cached_property
    def tables(self) -> DeviceTables:
        """The devices and device classes as the allocator reads them, created at the first use."""
        made = DeviceTables(self.allocated, self._release)
        for row, node in enumerate(self._nodes.nodes):
            if node is not None:
                made.set_node(row, node.metadata.name, node.metadata.labels)
        self._has_tables = True
        return made

    def set_node(self, row: int, node: Node) -> None:
        """Add a node, or change the labels of a node."""
        if self._has_tables:
            self.tables.set_node(row, node.metadata.name, node.metadata.labels)

    def remove_node(self, row: int) -> None:
        """Remove a node."""
        if self._has_tables:
            self.tables.remove_node(row)

    def set_class(self, device_class: DeviceClass) -> Change:
        """Add or replace a DeviceClass, and record which extended resource it provides."""
        old = self._classes.get(device_class.metadata.name)
        change = self._objects.put(device_class)
        self.mapped_resources.follow(old, device_class)
        self.tables.set_class(device_class)
        compile_class(device_class, self._release)
        self.objects_stamp += 1
        return change

    def remove_class(self, device_class: DeviceClass) -> Change:
        """Remove a DeviceClass, with the extended resources that it provides."""
        change = self._objects.drop(device_class)
        self.tables.remove_class(device_class.metadata.name)
        self.mapped_resources.follow(change.old, None)
        return change

    def set_slice(self, one: ResourceSlice) -> Change:
        """Add or replace a ResourceSlice with its devices."""
        self.tables.set_slice(self._tainted_slices.tainted(one))
        self.objects_stamp += 1
        return self._objects.put(one)

    def remove_slice(self, one: ResourceSlice) -> Change:
        """Remove a ResourceSlice with its devices."""
        self.tables.remove_slice(one.metadata.name)
        self._tainted_slices.forget(one.metadata.name)
        self.objects_stamp += 1
        return self._objects.drop(one)

    def set_taint_rule(self, rule: DeviceTaintRule) -> Change:
        """Add or replace a DeviceTaintRule; return the change of a ResourceSlice whose taints changed, if any."""
        return self._taint(self._objects.put(rule))

    def remove_taint_rule(self, rule: DeviceTaintRule) -> Change:
        """Remove a DeviceTaintRule; return the change of a ResourceSlice whose taints changed, if any."""
        return self._taint(self._objects.drop(rule))

    def _taint(self, change: Change) -> Change:
        changed = self._tainted_slices.follow(change.old, change.new)
        for _, after in changed:
            self.tables.set_slice(after)
        return change_of(Resource.RESOURCE_SLICE, *changed[0]) if changed else _NOTHING
