"""The devices of resource slices as columns (arrays with one element per device), and the allocator of claims.

Input: slices, device classes, nodes and allocated claims, one change at a time. Output: nodes on which claims can be
allocated, reasons for the other nodes, and allocations. The package imports `cel` and `model`; `state` and
upper packages import it.
"""

from policysched.devices.allocator import AllocationAnswers, Allocator, compile_claims, compile_class
from policysched.devices.errors import AllocationError, AllocationTimeoutError, NodeAllocationError
from policysched.devices.inventory.allocated import AllocatedState
from policysched.devices.inventory.tables import DeviceTables
from policysched.devices.outcomes import AllocationAnswer
from policysched.devices.refusals import Refusals

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
    "compile_claims",
    "compile_class",
]
