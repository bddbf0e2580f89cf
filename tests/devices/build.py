"""Slices, classes, claims and tables for tests, written as short as their subject allows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import count
from typing import Any

from policysched.devices import Allocator, DeviceTables
from policysched.model.decode import decode
from policysched.model.device_decoding import decode_devices
from policysched.model.objects import AllocationResult, DeviceClass, ResourceClaim, ResourceSlice
from policysched.model.release import DEFAULT, Release

DRIVER = "gpu.example.com"


def device(name: str, **fields: Any) -> dict[str, Any]:
    """A device; other fields as the API has them."""
    return {"name": name, **fields}


def devices(number: int, **fields: Any) -> list[dict[str, Any]]:
    """Equal devices."""
    return [device(f"d{place:02}", **fields) for place in range(number)]


def slice_of(
    node: str, parts: Iterable[Mapping[str, Any]], *, name: str = "", pool: str = "", generation: int = 1, **spec: Any
) -> ResourceSlice:
    """A slice of a node's own pool; with other fields it may be any."""
    fields: dict[str, Any] = {
        "driver": DRIVER,
        "pool": {"name": pool or node, "generation": generation, "resourceSliceCount": spec.pop("slices", 1)},
        "devices": list(parts),
    }
    if node:
        fields["nodeName"] = node
    metadata = {"name": name or f"slice-{node}"}
    return decode(ResourceSlice, "ResourceSlice", {"metadata": metadata, "spec": fields | spec})


def class_of(*expressions: str, name: str = "gpu") -> DeviceClass:
    """A class of these selectors."""
    selectors = [{"cel": {"expression": one}} for one in expressions]
    return decode_devices(DeviceClass, {"metadata": {"name": name}, "spec": {"selectors": selectors}})


def request(number: int = 1, *expressions: str, name: str = "r", of: str = "gpu", **fields: Any) -> dict[str, Any]:
    """A request for exactly so many devices."""
    selectors = [{"cel": {"expression": one}} for one in expressions]
    return {"name": name, "exactly": {"deviceClassName": of, "count": number, "selectors": selectors} | fields}


def claim(*requests: Mapping[str, Any], name: str = "c", **spec: Any) -> ResourceClaim:
    """A claim of these requests."""
    raw = {
        "metadata": {"name": name, "namespace": "ns", "uid": name},
        "spec": {"devices": {"requests": requests} | spec},
    }
    return decode_devices(ResourceClaim, raw)


def tables(
    *slices: ResourceSlice,
    nodes: Iterable[str] = ("n0",),
    classes: Iterable[DeviceClass] = (),
    release: Release = DEFAULT,
) -> DeviceTables:
    """Tables of these; without classes there is one of all devices."""
    made = DeviceTables(release=release)
    for row, name in enumerate(nodes):
        made.set_node(row, name, {"name": name})
    for one in classes or [class_of()]:
        made.set_class(one)
    for each in slices:
        made.set_slice(each)
    return made


def allocate(
    made: DeviceTables, *claims: ResourceClaim, row: int = 0, steps: int = 50_000
) -> list[AllocationResult] | None:
    """What claims would get on a node."""
    numbers = count()
    return Allocator(made, claims, steps=steps).allocate(row, lambda: f"share-{next(numbers)}")


def names(found: list[AllocationResult] | None) -> list[list[str]] | None:
    """The devices' names of each claim."""
    return None if found is None else [[one.device for one in each.devices.results] for each in found]
