"""A cluster that pods fill by their claims: each needs one device, and nothing else is short.

What must be so is read from the API alone: no device is in two claims, a pod that is bound has a device of its node
that is reserved for it, and no claim holds a device for a pod that is gone. It knows no scheduler.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from tests.controlplane.api import Json
from tests.controlplane.loading import until
from tests.faults.scene import MILLIS, Scene, Size
from tests.faults.schedulers import NAME

DRIVER: Final = "gpu.example.com"
API: Final = "resource.k8s.io/v1"
CONTROLLERS: Final = ("resourceclaim-controller", "garbage-collector-controller")
"""Who makes claims for pods, and takes away those of pods that are gone."""
ALL: Final = Size(nodes=50, a_node=10, seconds=6.0)
FINALIZER: Final = "resource.kubernetes.io/delete-protection"
_PATIENCE: Final = 60.0
"""How long the controllers may take to clean up. Units: seconds."""


class DeviceScene(Scene):
    """One fault's cluster, with as many devices on each node as pods fill it."""

    controllers = CONTROLLERS

    def make_nodes(self) -> None:
        """Make the nodes, with room for twice the pods, and what a driver says of each."""
        self.api.create(_thing("DeviceClass", self.prefix, {"selectors": [_of_driver()]}))
        wanted = {"devices": {"requests": [{"name": "one", "exactly": {"deviceClassName": self.prefix}}]}}
        self.api.create(_thing("ResourceClaimTemplate", self.prefix, {"spec": wanted}, "default"))
        for number in range(self.size.nodes):
            name = f"{self.prefix}-n{number:02}"
            self.make_node(name, 2 * self.size.a_node * MILLIS)
            self.api.create(_slice(name, self.size.a_node))

    def make_pods(self, count: int, scheduler: str = NAME, **fields: Any) -> list[str]:
        """Make pods with a claim each, and give their names."""
        claims = [{"name": "device", "resourceClaimTemplateName": self.prefix}]
        return super().make_pods(count, scheduler, resourceClaims=claims, **fields)

    def empty(self) -> None:
        """Delete all pods, and wait until their claims are gone."""
        super().empty()
        self.until(lambda: not self.claims(), "no claims")

    def clear(self) -> None:
        """Delete everything."""
        super().clear()
        until(lambda: not self.claims(), "no claims", _PATIENCE)
        for kind in ("ResourceClaimTemplate", "DeviceClass"):
            self.api.delete(kind, self.prefix)
        self.api.call("DELETE", f"/apis/{API}/resourceslices", {})

    def claims(self) -> list[Json]:
        """List all claims."""
        return self.api.objects("ResourceClaim", "default", api_version=API)

    def wrong(self) -> list[str]:
        """Name what is wrong with devices, once the controllers have had time to take back what pods left."""
        self.comes_true(lambda: not [*_leaked(self.claims(), self.pods())], _PATIENCE)
        return faults_of(self.claims(), self.pods())


def faults_of(claims: list[Json], pods: list[Json]) -> list[str]:
    """Name what is wrong with claims and pods as the API has them."""
    return [*_double(claims), *_leaked(claims, pods), *_without(claims, pods)]


def _double(claims: list[Json]) -> Iterator[str]:
    """Name devices that several claims have."""
    counts = Counter((one["pool"], one["device"]) for claim in claims for one in devices(claim))
    yield from (f"device {pool}/{name} is in {count} claims" for (pool, name), count in counts.items() if count > 1)


def _leaked(claims: list[Json], pods: list[Json]) -> Iterator[str]:
    """Name claims that hold a device, or are reserved, for nobody."""
    there = {pod["metadata"]["uid"] for pod in pods}
    for claim in claims:
        for_whom = {one["uid"] for one in claim.get("status", {}).get("reservedFor", ())}
        if for_whom - there or (devices(claim) and not for_whom):
            yield f"claim {claim['metadata']['name']} is held for nobody"


def _without(claims: list[Json], pods: list[Json]) -> Iterator[str]:
    """Name pods that are bound without a device of their node that is theirs."""
    by_name = {claim["metadata"]["name"]: claim for claim in claims}
    for pod in pods:
        if not (node := pod["spec"].get("nodeName")):
            continue
        named = [one.get("resourceClaimName", "") for one in pod["status"].get("resourceClaimStatuses", ())]
        [claim] = [by_name.get(name) for name in named] or [None]
        told = f"pod {pod['metadata']['name']} on {node}"
        if claim is None:
            yield f"{told} has no claim"
        elif [one["pool"] for one in devices(claim)] != [node]:
            yield f"{told} has devices {[(one['pool'], one['device']) for one in devices(claim)]}"
        elif pod["metadata"]["uid"] not in {one["uid"] for one in claim["status"].get("reservedFor", ())}:
            yield f"{told} has a claim that is not reserved for it"
        elif FINALIZER not in claim["metadata"].get("finalizers", ()):
            yield f"{told} has a claim without {FINALIZER}"


def devices(claim: Json) -> list[Json]:
    """Give the devices that a claim has."""
    found: list[Json] = claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", [])
    return found


def _of_driver() -> Json:
    return {"cel": {"expression": f'device.driver == "{DRIVER}"'}}


def _slice(node: str, count: int) -> Json:
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    made = [{"name": f"gpu-{number:02}"} for number in range(count)]
    return _thing("ResourceSlice", node, {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": made})


def _thing(kind: str, name: str, spec: Json, namespace: str = "") -> Json:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": API, "kind": kind, "metadata": metadata, "spec": spec}
