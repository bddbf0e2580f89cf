"""Devices of resource slices in columns, and the allocator: which devices the claims of a pod would get on a node.

Comes in: resource slices, device classes, nodes and allocated claims, one change at a time. Goes out: on which nodes
the claims of a pod can be allocated, why not on others in kube-scheduler's words, and the allocations on one node. It
knows neither pods nor how anything is watched or written.
"""

from policysched.devices.allocator import AllocationAnswers, Allocator
from policysched.devices.errors import AllocationError, AllocationTimeoutError, NodeAllocationError
from policysched.devices.inventory.allocated import AllocatedState
from policysched.devices.inventory.tables import DeviceTables
from policysched.devices.refusals import Refusals
from policysched.devices.search import AllocationAnswer

__all__ = [
    "AllocatedState",
    "AllocationAnswer",
    "AllocationAnswers",
    "AllocationError",
    "AllocationTimeoutError",
    "Allocator",
    "DeviceTables",
    "NodeAllocationError",
    "Refusals",
]
