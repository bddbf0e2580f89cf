"""Devices and claims of the null scheduler, and the requests that allocate a pod's devices.

It allocates any free device of the pod's node or of all nodes, without selectors, constraints and counters. It makes
kube-scheduler's requests: nomination of the pod, finalizer and allocation of the claim with its reservation. For
extended resources, it first creates a claim and finally writes the pod's status.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import defaultdict
from typing import Any, Final, Protocol

import msgspec

from bench.cluster.client import MERGE_PATCH, STRATEGIC_PATCH, Client

Json = dict[str, Any]
Device = tuple[str, str, bool]
"""Pool and name of a device, and whether claims can share it."""
Key = tuple[str, str]
"""Namespace and name of a claim."""
GROUP: Final = "/apis/resource.k8s.io/v1"
SLICES: Final = f"{GROUP}/resourceslices"
CLAIMS: Final = f"{GROUP}/resourceclaims"
FINALIZER: Final = "resource.kubernetes.io/delete-protection"
ANNOTATION: Final = {"resource.kubernetes.io/extended-resource-claim": "true"}
EXTENDED: Final = "example.com/gpu-"
SHARES: Final = 2
"""Number of requests that a shareable device can serve."""
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Json).decode


class Named(Protocol):
    """The metadata of a pod that requests need."""

    name: str
    uid: str
    namespace: str


class Devices:
    """The free devices, and the claims as the API server last returned them."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._free: dict[str, list[Device]] = defaultdict(list)
        """Free devices by node; the devices for all nodes are under the empty name."""
        self._claims: dict[Key, Json] = {}
        self._turns: dict[Key, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._homes: dict[Key, str] = {}
        self.driver = ""

    async def load(self) -> None:
        """List the slices and claims; there is no watch, because nothing else changes them during the run."""
        slices = _decode(await self._client.send("GET", f"{SLICES}?resourceVersion=0"))["items"]
        for one in slices:
            spec = one["spec"]
            self.driver = spec["driver"]
            for device in spec.get("devices", ()):
                shared = device.get("allowMultipleAllocations", False)
                found = (spec["pool"]["name"], device["name"], shared)
                self._free[spec.get("nodeName", "")] += [found] * (SHARES if shared else 1)
        for one in _decode(await self._client.send("GET", f"{CLAIMS}?resourceVersion=0"))["items"]:
            self._claims[one["metadata"]["namespace"], one["metadata"]["name"]] = one
            for result in _results(one):
                self._free[result["pool"]].remove((result["pool"], result["device"], False))

    def home(self, key: Key) -> str:
        """Return the node of a claim's devices; empty if it has none."""
        return self._homes.get(key, "")

    def wanted(self, key: Key) -> int:
        """Return how many devices a claim requests."""
        return sum(one["exactly"].get("count", 1) for one in self._requests(key))

    def _requests(self, key: Key) -> list[Json]:
        found: list[Json] = self._claims[key]["spec"]["devices"]["requests"]
        return found

    def has(self, node: str, count: int) -> bool:
        """Return whether this many devices are free for a node."""
        return len(self._free.get(node, ())) >= count or len(self._free[""]) >= count

    def take(self, node: str, count: int, key: Key | None = None) -> list[Device]:
        """Take free devices of a node; with a claim, remember the node for further pods of the claim."""
        if key is not None:
            self._homes[key] = node
        free = self._free[node] if len(self._free.get(node, ())) >= count else self._free[""]
        taken = free[:count]
        del free[:count]
        return taken

    async def nominate(self, pod: Named, node: str) -> None:
        """Write the nominated node of a pod, as kube-scheduler does before it writes the claims."""
        body = _encode({"metadata": {"uid": pod.uid}, "status": {"nominatedNodeName": node}})
        await self._client.send("PATCH", _status_path(pod), body, STRATEGIC_PATCH)

    async def allocate(self, key: Key, pod: Named, node: str, taken: list[Device]) -> None:
        """Write the allocation of a claim; if no device was taken, write only the reservation for a further pod."""
        path = f"{GROUP}/namespaces/{key[0]}/resourceclaims/{key[1]}"
        async with self._turns[key]:
            claim = self._claims[key]
            if taken:
                claim["metadata"]["finalizers"] = [FINALIZER]
                claim = _decode(await self._client.send("PUT", path, _encode(claim)))
                claim["status"] = {"allocation": self._allocation(self._requests(key), node, taken)}
            consumer = {"resource": "pods", "name": pod.name, "uid": pod.uid}
            claim["status"].setdefault("reservedFor", []).append(consumer)
            self._claims[key] = _decode(await self._client.send("PUT", f"{path}/status", _encode(claim)))

    def _allocation(self, requests: list[Json], node: str, taken: list[Device]) -> Json:
        names = [one["name"] for one in requests for _ in range(one["exactly"].get("count", 1))]
        results = [self._result(name, *device) for name, device in zip(names, taken, strict=True)]
        term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
        return {"devices": {"results": results}, "nodeSelector": {"nodeSelectorTerms": [term]}}

    def _result(self, request: str, pool: str, name: str, shared: bool) -> Json:
        made = {"request": request, "driver": self.driver, "pool": pool, "device": name}
        more = {"shareID": str(uuid.uuid4()), "consumedCapacity": {"memory": "40Gi"}} if shared else {}
        return made | more

    async def extend(self, pod: Named, resource: str, node: str, taken: list[Device]) -> None:
        """Create and allocate a claim for an extended resource, and write it into the pod's status."""
        owner = {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid, "controller": True}
        name = f"{pod.name}-extended-resources-"
        metadata = {"generateName": name, "annotations": ANNOTATION, "ownerReferences": [owner]}
        wanted = {"deviceClassName": f"test-class-{resource.removeprefix(EXTENDED)}", "count": 1}
        spec = {"devices": {"requests": [{"name": "container-0-request-0", "exactly": wanted}]}}
        body = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": metadata, "spec": spec}
        path = f"{GROUP}/namespaces/{pod.namespace}/resourceclaims"
        claim = _decode(await self._client.send("POST", path, _encode(body)))
        key = (pod.namespace, claim["metadata"]["name"])
        self._claims[key] = claim
        await self.allocate(key, pod, node, taken)
        mapping = {"containerName": "pause", "resourceName": resource, "requestName": "container-0-request-0"}
        status = {"extendedResourceClaimStatus": {"resourceClaimName": key[1], "requestMappings": [mapping]}}
        await self._client.send("PATCH", _status_path(pod), _encode({"status": status}), MERGE_PATCH)


def _status_path(pod: Named) -> str:
    return f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/status"


def _results(claim: Json) -> list[Json]:
    found: list[Json] = claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", [])
    return found
