"""Device classes, slices and claims of the workloads with devices.

A pod's claim is created before the pod, by name: all schedulers find the same objects, and no controller uses the
machine during the measurement.

Source: test/integration/scheduler_perf/dra and dra.go, v1.36; attributes of GPUs and matchAttribute, v1.37.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

Json = dict[str, Any]
API: Final = "resource.k8s.io/v1"
DRIVER: Final = "test-driver.cdi.k8s.io"
CLASS: Final = "test-class"
DEVICES: Final = 10
"""Number of devices on each node."""
EXTENDED: Final = "example.com/gpu-"
RESOURCE: Final = "resource"
_ALL: Final = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "Exists"}]}]}
"""Node selector that matches every node, for slices whose devices all nodes can use."""


@dataclass(frozen=True, slots=True)
class Supply:
    """The published devices, and how many of them are allocated before the run.

    `slices` is the kind of slices: `node`, ten devices on each node; `roots`, the same with two PCI roots; `parts`,
    slices for all nodes whose devices share counters; `shares`, slices for all nodes with one shareable device.
    """

    slices: str = "node"
    count: int = 0
    """Number of slices, for kinds whose slices are for all nodes."""
    taken: int = 0
    """Number of devices allocated to claims of no measured pod, distributed round robin from the first node."""
    left: int | None = None
    """Number of free devices at any number of nodes; all further devices are allocated. None: `taken` applies."""
    classes: int = 0
    """Number of device classes, each with its own extended resource; 0: one class, for claims."""

    def sized(self, share: float) -> Supply:
        """Return a copy with sizes scaled by a factor, as the number of nodes is."""
        return replace(self, count=round(self.count * share), taken=round(self.taken * share))

    def objects(self, nodes: Sequence[str]) -> Iterator[Json]:
        """Yield the device classes, the slices and the claims with allocated devices."""
        yield from map(_class_of, range(self.classes)) if self.classes else [_class(self.slices)]
        if self.slices in _FOR_ALL:
            for number in range(self.count):
                yield from _FOR_ALL[self.slices](number)
            return
        for number, node in enumerate(nodes):
            yield node_slice(node, roots=self.slices == "roots", rest=number % DEVICES)
        taken = self.taken if self.left is None else max(0, DEVICES * len(nodes) - self.left)
        for number in range(taken):
            yield taken_claim(number, nodes[number % len(nodes)], f"instance-{number // len(nodes)}")


def thing(kind: str, name: str, spec: Json, namespace: str = "") -> Json:
    """Return an object of the API group resource.k8s.io."""
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": API, "kind": kind, "metadata": metadata, "spec": spec}


def _class(slices: str) -> Json:
    shared = " && device.allowMultipleAllocations == true" if slices == "shares" else ""
    text = f'device.driver == "{DRIVER}"{shared}'
    return thing("DeviceClass", CLASS, {"selectors": [{"cel": {"expression": text}}]})


def _class_of(number: int) -> Json:
    spec = _class("node")["spec"] | {"extendedResourceName": f"{EXTENDED}{number}"}
    return thing("DeviceClass", f"{CLASS}-{number}", spec)


def node_slice(node: str, *, roots: bool, rest: int) -> Json:
    """Return a slice with the ten devices of a node."""
    pool = {"name": node, "generation": 0, "resourceSliceCount": 1}
    made = [_gpu(number, roots=roots, rest=rest) for number in range(DEVICES)]
    return thing("ResourceSlice", node, {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": made})


def _gpu(number: int, *, roots: bool, rest: int) -> Json:
    attributes: Json = {
        "model": {"string": "A100"},
        "family": {"string": "GPU"},
        "driverVersion": {"version": "1.2.3"},
        "dra.example.com/numa": {"int": number},
        "dra.example.com/rest": {"int": rest},
    }
    if roots:
        attributes["resource.kubernetes.io/pcieRoot"] = {"string": f"pci0000:{number % 2:02}"}
    return {"name": f"instance-{number}", "attributes": attributes, "capacity": {"memory": {"value": "1Gi"}}}


def _parts(number: int) -> Iterator[Json]:
    """Yield slices with eight devices, of which seven can be allocated together: the first needs twice the memory."""
    pool = {"name": f"resourceslice-{number}", "generation": 1, "resourceSliceCount": 2}
    about = {"driver": DRIVER, "pool": pool, "nodeSelector": _ALL}
    cpus = {f"cpu{place}": {"value": "1"} for place in range(1, 9)}
    sets = [{"name": "cpu", "counters": cpus}, {"name": "mem", "counters": {"mem": {"value": "70Gi"}}}]
    yield thing("ResourceSlice", f"resourceslice-countersets-{number}", about | {"sharedCounters": sets})
    made = [_part(place) for place in range(1, 9)]
    yield thing("ResourceSlice", f"resourceslice-devices-{number}", about | {"devices": made})


def _part(place: int) -> Json:
    consumed = [
        {"counterSet": "cpu", "counters": {f"cpu{place}": {"value": "1"}}},
        {"counterSet": "mem", "counters": {"mem": {"value": "20Gi" if place == 1 else "10Gi"}}},
    ]
    return {"name": f"device-{place}", "consumesCounters": consumed}


def _shares(number: int) -> Iterator[Json]:
    """Yield a slice with one device that claims share by the requested memory."""
    name = f"resourceslice-{number}"
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    policy = {"default": "1Gi", "validRange": {"min": "1Gi"}}
    memory = {"memory": {"value": "80Gi", "requestPolicy": policy}}
    made = [{"name": "shareable-device", "allowMultipleAllocations": True, "capacity": memory}]
    yield thing("ResourceSlice", name, {"driver": DRIVER, "pool": pool, "nodeSelector": _ALL, "devices": made})


_FOR_ALL: Final = {"parts": _parts, "shares": _shares}
_OF_MEMORY: Final = {"requests": {"memory": "40Gi"}}
_SELECTED: Final = (
    f'device.attributes["{DRIVER}"].model == "A100" && device.attributes["dra.example.com"].rest == 7 && '
    f'device.capacity["{DRIVER}"].memory.compareTo(quantity("1Gi")) >= 0'
)
"""CEL expression that selects one device on each node, the device whose `rest` is 7 on every tenth node."""


def _wanted(**more: Any) -> Json:
    return {"deviceClassName": CLASS, **more}


CLAIMS: Final[dict[str, Json]] = {
    "one": {"requests": [{"name": "req-0", "exactly": _wanted()}]},
    "seven": {"requests": [{"name": "req-0", "exactly": _wanted(count=7)}]},
    "selected": {"requests": [{"name": "req-0", "exactly": _wanted(selectors=[{"cel": {"expression": _SELECTED}}])}]},
    "matched": {
        "requests": [{"name": f"req-{number}", "exactly": _wanted()} for number in range(5)],
        "constraints": [{"matchAttribute": "resource.kubernetes.io/pcieRoot"}],
    },
    "shares": {"requests": [{"name": f"req-{number}", "exactly": _wanted(capacity=_OF_MEMORY)} for number in range(2)]},
}
"""Spec of the devices of each claim template, by its name."""


def claim(template: str, name: str, namespace: str) -> Json:
    """Return a claim of a template."""
    return thing("ResourceClaim", name, {"devices": CLAIMS[template]}, namespace)


def taken_claim(number: int, node: str, device: str) -> Json:
    """Return an allocated claim of no measured pod."""
    made = claim("one", f"taken-{number:05}", "default")
    results = [{"request": "req-0", "driver": DRIVER, "pool": node, "device": device}]
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    allocation = {"devices": {"results": results}, "nodeSelector": {"nodeSelectorTerms": [term]}}
    made["metadata"]["finalizers"] = ["resource.kubernetes.io/delete-protection"]
    return made | {"status": {"allocation": allocation}}


def using(claim_name: str) -> Json:
    """Return the fields of a pod spec that use a claim."""
    container: Json = {"name": "pause", "image": "registry.k8s.io/pause:3.10.1"}
    container |= {"resources": {"claims": [{"name": RESOURCE}]}}
    return {"containers": [container], "resourceClaims": [{"name": RESOURCE, "resourceClaimName": claim_name}]}


def asking(number: int) -> Json:
    """Return the fields of a pod spec that request one device by an extended resource."""
    amounts = {f"{EXTENDED}{number}": "1"}
    container = {"name": "pause", "image": "registry.k8s.io/pause:3.10.1"}
    return {"containers": [container | {"resources": {"requests": amounts, "limits": amounts}}]}
