"""Small complete objects for cases about devices that are written by hand."""

from __future__ import annotations

from typing import Any, TypeAlias

from tests.oracle import objects

Thing: TypeAlias = dict[str, Any]

DRIVER = "gpu.example.com"
API = "resource.k8s.io/v1"


def resource_slice(name: str, *devices: Thing, node: str = "a", pool: str = "", **spec: Any) -> Thing:
    """Make a slice that is its pool's only one unless told; without a pool's name that of the node is taken."""
    told = {"name": pool or node, "generation": 1, "resourceSliceCount": 1} | spec.pop("told", {})
    content = {"devices": list(devices)} if devices else {}
    found = {"driver": DRIVER, "nodeName": node, "pool": told, **content, **spec}
    return {"apiVersion": API, "kind": "ResourceSlice", "metadata": {"name": name}, "spec": found}


def device(name: str, **fields: Any) -> Thing:
    """Make a device; keywords that are no fields of the API are attributes with text."""
    known = {"capacity", "taints", "consumesCounters", "allowMultipleAllocations", "bindingConditions", "attributes"}
    attributes = {key: {"string": fields.pop(key)} for key in [*fields] if key not in known}
    return {"name": name, "attributes": attributes, **fields}


def device_class(name: str = "gpu", *selectors: str, **spec: Any) -> Thing:
    """Make a class."""
    stated = {"selectors": [{"cel": {"expression": text}} for text in selectors], **spec}
    return {"apiVersion": API, "kind": "DeviceClass", "metadata": {"name": name}, "spec": stated}


def claim(*requests: Thing, name: str = "c", **devices: Any) -> Thing:
    """Make a claim."""
    metadata = {"name": name, "namespace": "default", "uid": f"claim-{name}"}
    spec = {"devices": {"requests": list(requests), **devices}}
    return {"apiVersion": API, "kind": "ResourceClaim", "metadata": metadata, "spec": spec}


def request(name: str = "r", *, count: int = 1, of: str = "gpu", **exactly: Any) -> Thing:
    """Make a request for exactly so many devices."""
    return {"name": name, "exactly": {"deviceClassName": of, "count": count, **exactly}}


def using(*claims: str, name: str = "web", **status: Any) -> Thing:
    """Make a pod that uses claims by their names."""
    references = [{"name": one, "resourceClaimName": one} for one in claims]
    made: Thing = objects.pod(name, resourceClaims=references, status=status)
    return made


def given(record: Thing, node: str = "a") -> dict[str, list[str]]:
    """Say which devices each claim would get on a node, as `pool/device`."""
    made = record.get("allocations", {}).get(node, ())
    return {one["claim"]: [f"{r['pool']}/{r['device']}" for r in one["result"]["devices"]["results"]] for one in made}
