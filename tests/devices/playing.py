"""Cases for the allocator, as Kubernetes' allocator is asked them too, and what ours says of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

import msgspec

from policysched.devices import (
    AllocationAnswer,
    AllocationError,
    AllocationTimeoutError,
    Allocator,
    DeviceTables,
    NodeAllocationError,
)
from policysched.model.decode import decode
from policysched.model.device_decoding import decode_devices
from policysched.model.objects import AllocationResult, DeviceClass, ResourceClaim, ResourceSlice
from policysched.model.release import Release

Case = Mapping[str, Any]


def claims_of(case: Case) -> list[ResourceClaim]:
    """The claims to allocate."""
    return [decode_devices(ResourceClaim, one) for one in case["claims"] or ()]


def tables_of(case: Case, release: Release) -> DeviceTables:
    """The case's devices, classes, nodes and allocated claims, for the allocator of a release."""
    tables = DeviceTables(release=release)
    for row, node in enumerate(case["nodes"]):
        tables.set_node(row, node["metadata"]["name"], node["metadata"].get("labels") or {})
    for one in case["classes"] or ():
        tables.set_class(decode_devices(DeviceClass, one))
    for one in case["slices"] or ():
        tables.set_slice(decode(ResourceSlice, "ResourceSlice", one))
    for one in case["allocated"] or ():
        tables.allocated.set_claim(decode_devices(ResourceClaim, one))
    return tables


def plain(results: Sequence[AllocationResult] | None) -> Any:
    """Results as JSON has them, without the IDs of shares."""
    return _without_ids(msgspec.json.decode(msgspec.json.encode(list(results)))) if results is not None else None


def _without_ids(value: Any) -> Any:
    """Copy without IDs of shares and without what is empty."""
    if isinstance(value, Mapping):
        copied = {name: _without_ids(one) for name, one in value.items() if name != "shareID"}
        return {name: one for name, one in copied.items() if one not in ({}, [], None, ())}
    if isinstance(value, list | tuple):
        return [_without_ids(one) for one in value]
    return value


def said(allocator: Allocator, row: int) -> dict[str, Any]:
    """What our allocator says of a node, in the judge's form."""
    numbers = count()
    try:
        return {"results": plain(allocator.allocate(row, lambda: str(next(numbers))))}
    except AllocationTimeoutError:
        return {"results": None, "error": "", "timeout": True}
    except AllocationError as error:
        answer: dict[str, Any] = {"results": None, "error": str(error)}
        return answer | ({"onNode": True} if isinstance(error, NodeAllocationError) else {})


def judged(answer: Mapping[str, Any]) -> dict[str, Any]:
    """What the judge says, in the form in which it is compared."""
    results = answer.get("results")
    return {**answer, "results": _without_ids(results) if results is not None else None}


def code_of(answer: Mapping[str, Any]) -> AllocationAnswer:
    """The code that goes with an answer."""
    if answer.get("timeout"):
        return AllocationAnswer.TIMEOUT
    if "error" not in answer:
        return AllocationAnswer.YES if answer["results"] is not None else AllocationAnswer.NO
    return AllocationAnswer.INVALID_POOLS if answer.get("onNode") else AllocationAnswer.ERROR
