"""Device classes, slices and claims for the benchmarks of devices.

Every node has a slice of ten devices with individual serial numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from policysched.model.decode import decode
from policysched.model.device_decoding import decode_devices
from policysched.model.objects import DeviceClass, ResourceClaim, ResourceSlice

DRIVER = "gpu.example.com"
DEVICES = 10
LARGE = f'device.attributes["{DRIVER}"].model == "large"'
SELECTOR = f'{LARGE} && device.capacity["{DRIVER}"].memory.isGreaterThan(quantity("8Gi"))'
Request = Mapping[str, Any]


def device(node: int, place: int) -> dict[str, Any]:
    """Return a device with ten attributes, one of which is unique."""
    attributes: dict[str, Any] = {f"a{one}": {"string": f"value-{one}"} for one in range(5)}
    attributes |= {
        "serial": {"string": f"{node:08x}-{place:08x}"},
        "model": {"string": "large" if place % 2 else "small"},
        "numa": {"int": place // 5},
        "driverVersion": {"version": "1.2.3"},
        "ecc": {"bool": True},
    }
    return {"name": f"gpu-{place}", "attributes": attributes, "capacity": {"memory": {"value": "16Gi"}}}


def partitions(node: int) -> list[dict[str, Any]]:
    """Return the partitions of a node: eight of different sizes that consume shared counters."""
    return [
        device(node, place) | {"consumesCounters": [{"counterSet": "set", "counters": {"c": {"value": str(size)}}}]}
        for place, size in enumerate((6, 5, 4, 4, 3, 3, 2, 2))
    ]


def slices(node: int, *, partitioned: bool) -> list[ResourceSlice]:
    """Return the slices of a node."""
    parts = partitions(node) if partitioned else [device(node, place) for place in range(DEVICES)]
    made = [{"devices": parts}]
    if partitioned:
        made.append({"sharedCounters": [{"name": "set", "counters": {"c": {"value": "10"}}}]})
    pool = {"name": f"node-{node}", "generation": 1, "resourceSliceCount": len(made)}
    head = {"driver": DRIVER, "nodeName": f"node-{node}", "pool": pool}
    return [
        decode(ResourceSlice, "ResourceSlice", {"metadata": {"name": f"s{node}-{place}"}, "spec": head | one})
        for place, one in enumerate(made)
    ]


def device_class() -> DeviceClass:
    """Return the class of all devices."""
    spec = {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]}
    return decode_devices(DeviceClass, {"metadata": {"name": "gpu"}, "spec": spec})


def claim(name: str, *requests: Request, **devices: Any) -> ResourceClaim:
    """Return a claim."""
    asked = [{"name": f"r{place}", "exactly": {"deviceClassName": "gpu", **one}} for place, one in enumerate(requests)]
    spec = {"devices": {"requests": asked} | devices}
    return decode_devices(ResourceClaim, {"metadata": {"name": name, "uid": name}, "spec": spec})


def selected(count: int = 1) -> Request:
    """Return a request for devices that match a selector."""
    return {"count": count, "selectors": [{"cel": {"expression": SELECTOR}}]}
