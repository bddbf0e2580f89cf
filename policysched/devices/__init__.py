"""Devices of resource slices as columns, and the allocator of claims.

Input: slices, device classes, nodes and allocated claims, one change at a time. Output: nodes on which claims can be
allocated, reasons for the other nodes, and allocations. The package imports `cel` and `model`; `state` and
upper packages import it. Names are imported at first use, because most clusters have no devices.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
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
_MODULES: Final = {
    "AllocatedState": "inventory.allocated",
    "AllocationAnswer": "outcomes",
    "AllocationAnswers": "allocator",
    "AllocationError": "errors",
    "AllocationTimeoutError": "errors",
    "Allocator": "allocator",
    "DeviceTables": "inventory.tables",
    "NodeAllocationError": "errors",
    "Refusals": "refusals",
    "compile_claims": "allocator",
    "compile_class": "allocator",
}


def __getattr__(name: str) -> Any:
    """Import the module of a name.

    Raises:
        AttributeError: The package has no such name.
    """
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"{__name__}.{module}"), name)
    return found
