"""A situation of the queue: rejected pods, changes of the cluster, and which pods are tried again.

Objects are written as kubectl would print them, so that a situation can be played in this process as well as on a real
API server. It knows nothing of who plays it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from policysched.model.release import Release
from tests.e2e.objects import Json, node, pod

Edit = Callable[[Json], None]
"""Function that changes an object in place."""
ZONE = "topology.kubernetes.io/zone"
BOUND = {"pv.kubernetes.io/bind-completed": "yes"}
STORAGE = "storage.k8s.io/v1"


@dataclass(frozen=True, slots=True)
class Create:
    """A step that creates an object."""

    obj: Json


@dataclass(frozen=True, slots=True)
class Change:
    """A step that changes an object, or a part of it such as `/status`."""

    kind: str
    name: str
    edit: Edit
    part: str = ""


@dataclass(frozen=True, slots=True)
class Delete:
    """A step that deletes an object without grace period."""

    kind: str
    name: str


Step = Create | Change | Delete


@dataclass(frozen=True, slots=True)
class Waiting:
    """A pod that is rejected, and the plugins that reject it."""

    pod: Json
    rejectors: frozenset[str]

    @property
    def name(self) -> str:
        """The pod's name."""
        return str(self.pod["metadata"]["name"])


@dataclass(frozen=True, slots=True)
class Situation:
    """One row of the table of situations.

    Args:
        claim: The tested statement, as a sentence.
        plugins: Plugins of the profile, besides those that every profile has.
        waiting: Pods that are rejected at first.
        steps: Changes after the rejection.
        wakes: Names of the pods that are tried again; all others stay in their queue.
        events: Events of the steps as kube-scheduler names them; none if no pod is tried again.
        given: Objects that exist before.
        served: Whether an API server v1.36 with default feature gates accepts the objects and steps.
        by_taints: Names of the pods that are tried again besides where every change of taints wakes all.
    """

    claim: str
    plugins: tuple[str, ...]
    waiting: tuple[Waiting, ...]
    steps: tuple[Step, ...]
    wakes: frozenset[str]
    events: frozenset[str]
    given: tuple[Json, ...]
    served: bool = True
    by_taints: frozenset[str] = frozenset()

    def wakes_in(self, release: Release) -> frozenset[str]:
        """Return the names of the pods that are tried again in a release."""
        return self.wakes | self.by_taints if release.taint_updates_wake_all else self.wakes

    def events_in(self, release: Release) -> frozenset[str]:
        """Return the events that move pods in a release."""
        added = self.by_taints and not self.wakes and release.taint_updates_wake_all
        return self.events | {"NodeUpdateNodeTaint"} if added else self.events


def situation(
    claim: str,
    *,
    plugins: str,
    given: Sequence[Json] = (),
    waiting: Sequence[Waiting],
    steps: Sequence[Step],
    wakes: str = "",
    events: str,
    served: bool = True,
    by_taints: str = "",
) -> Situation:
    """Return a row of the table; names are separated by spaces."""
    return Situation(
        claim,
        tuple(plugins.split()),
        tuple(waiting),
        tuple(steps),
        frozenset(wakes.split()),
        frozenset(events.split()),
        tuple(given),
        served,
        frozenset(by_taints.split()),
    )


def rejected(name: str, by: str, **fields: Any) -> Waiting:
    """Return a pod that these plugins reject."""
    return Waiting(pod(name, **fields), frozenset(by.split()))


def placed(name: str, on: str, **fields: Any) -> Json:
    """Return a pod on a node."""
    return pod(name, nodeName=on, **fields)


# Parts of nodes and pods


def taint(key: str, effect: str = "NoSchedule") -> Json:
    return {"key": key, "effect": effect}


def tolerating(*keys: str) -> list[Json]:
    return [{"key": key, "operator": "Exists", "effect": "NoSchedule"} for key in keys]


def on_nodes_with(key: str, *values: str) -> Json:
    """Return a node affinity that requires a label."""
    term = {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


def on_node_named(name: str) -> Json:
    """Return a node affinity that requires a node by its name."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


def having(key: str) -> Json:
    """Return a selector of pods with a label of any value."""
    return {"matchExpressions": [{"key": key, "operator": "Exists"}]}


def _term(key: str, domain: str) -> Json:
    return {"labelSelector": having(key), "topologyKey": domain}


def beside(key: str, domain: str) -> Json:
    """Return an affinity that requires a pod with a label in the same domain."""
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_term(key, domain)]}}


def apart(key: str, domain: str) -> Json:
    """Return an anti-affinity against pods with a label in the same domain."""
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_term(key, domain)]}}


def spread(key: str, domain: str, **fields: Any) -> list[Json]:
    """Return a spread constraint for pods with a label over domains."""
    made = {"maxSkew": 1, "topologyKey": domain, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": having(key)}
    return [made | fields]


def containers(*, requests: Json | None = None, host_port: int = 0) -> list[Json]:
    """Return a list of one container with requests or a host port."""
    [made] = pod("any", requests=requests)["spec"]["containers"]
    if host_port:
        made["ports"] = [{"containerPort": 80, "hostPort": host_port, "protocol": "TCP"}]
    return [made]


# Other kinds


def _made(api_version: str, kind: str, name: str, metadata: Json | None = None, **fields: Any) -> Json:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name} | (metadata or {}), **fields}


def volume(name: str, *, labels: Json | None = None, nodes: Json | None = None, of: str = "", driver: str = "") -> Json:
    """Return a volume of 1Mi of class `of`; `nodes` are the label values of its nodes."""
    spec: Json = {"capacity": {"storage": "1Mi"}, "accessModes": ["ReadWriteMany"], "storageClassName": of}
    terms = [{"key": key, "operator": "In", "values": values} for key, values in (nodes or {}).items()]
    if terms:
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": terms}]}}
    spec |= {"csi": {"driver": driver, "volumeHandle": name}} if driver else {"hostPath": {"path": "/srv"}}
    return _made("v1", "PersistentVolume", name, {"labels": labels or {}}, spec=spec)


def claim(name: str, *, to: str = "", of: str | None = "", done: bool = False, mode: str = "ReadWriteMany") -> Json:
    """Return a claim of 1Mi, bound if `to` names a volume; `of` is its class, None the default class."""
    spec: Json = {"accessModes": [mode], "resources": {"requests": {"storage": "1Mi"}}}
    spec |= {"volumeName": to} if to else {}
    spec |= {} if of is None else {"storageClassName": of}
    metadata = {"namespace": "default", "annotations": BOUND if to or done else {}}
    return _made("v1", "PersistentVolumeClaim", name, metadata, spec=spec)


def claims(*names: str) -> list[Json]:
    """Return the volumes of a pod that uses these claims."""
    return [{"name": f"v{index}", "persistentVolumeClaim": {"claimName": name}} for index, name in enumerate(names)]


def storage_class(name: str, mode: str = "WaitForFirstConsumer", *, zones: Sequence[str] = (), **labels: str) -> Json:
    topologies = [{"matchLabelExpressions": [{"key": ZONE, "values": list(zones)}]}] if zones else []
    fields = {"provisioner": "disks.example.com", "volumeBindingMode": mode, "allowedTopologies": topologies}
    return _made(STORAGE, "StorageClass", name, {"labels": labels}, **fields)


def csi_node(name: str, **limits: int) -> Json:
    """Return a CSINode with the volume limit of each driver; `_` in a driver's name means a dot."""
    drivers = [
        {"name": driver.replace("_", "."), "nodeID": name, "allocatable": {"count": count}}
        for driver, count in limits.items()
    ]
    return _made(STORAGE, "CSINode", name, spec={"drivers": drivers})


def csi_driver(name: str, *, tracks_capacity: bool) -> Json:
    return _made(STORAGE, "CSIDriver", name, spec={"storageCapacity": tracks_capacity})


def capacity(name: str, of: str, amount: str) -> Json:
    metadata = {"namespace": "default"}
    return _made(STORAGE, "CSIStorageCapacity", name, metadata, storageClassName=of, capacity=amount)


def attachment(name: str, volume_name: str, attacher: str, on: str) -> Json:
    spec = {"attacher": attacher, "nodeName": on, "source": {"persistentVolumeName": volume_name}}
    return _made(STORAGE, "VolumeAttachment", name, spec=spec, status={"attached": True})


def device_class(name: str, resource: str = "") -> Json:
    spec = {"extendedResourceName": resource} if resource else {}
    return _made("resource.k8s.io/v1", "DeviceClass", name, spec=spec)


# Edits


def labelled(**labels: str) -> Edit:
    """Return an edit that replaces the labels of an object except its host name."""

    def edit(obj: Json) -> None:
        host = {key: value for key, value in obj["metadata"].get("labels", {}).items() if key.endswith("/hostname")}
        obj["metadata"]["labels"] = host | labels

    return edit


def allocating(**amounts: str) -> Edit:
    """Return an edit that sets allocatable amounts of a node; `pods` is the number of pods."""

    def edit(obj: Json) -> None:
        for part in ("capacity", "allocatable"):
            obj["status"][part] |= amounts

    return edit


def tainted(*taints: Json) -> Edit:
    """Return an edit that replaces the taints of a node."""

    def edit(obj: Json) -> None:
        obj["spec"]["taints"] = list(taints)

    return edit


def both(*edits: Edit) -> Edit:
    """Return an edit that makes several edits."""

    def edit(obj: Json) -> None:
        for one in edits:
            one(obj)

    return edit


def with_status(**fields: Any) -> Edit:
    """Return an edit that sets fields of the status."""

    def edit(obj: Json) -> None:
        obj.setdefault("status", {}).update(fields)

    return edit


def with_spec(**fields: Any) -> Edit:
    """Return an edit that sets fields of the spec."""

    def edit(obj: Json) -> None:
        obj["spec"] |= deepcopy(fields)

    return edit


def with_fields(**fields: Any) -> Edit:
    """Return an edit that sets fields of the object."""

    def edit(obj: Json) -> None:
        obj |= deepcopy(fields)

    return edit


def also_tolerating(*keys: str) -> Edit:
    """Return an edit that adds tolerations to a pod."""

    def edit(obj: Json) -> None:
        obj["spec"].setdefault("tolerations", []).extend(tolerating(*keys))

    return edit


def annotated(annotations: Mapping[str, str]) -> Edit:
    """Return an edit that adds annotations to an object."""

    def edit(obj: Json) -> None:
        obj["metadata"].setdefault("annotations", {}).update(annotations)

    return edit


def host(name: str, cpu: str = "4", **labels: str) -> Json:
    """Return a node with cores and labels; `zone_` means the well-known label of zones."""
    zone = {ZONE: labels.pop("zone_")} if "zone_" in labels else {}
    return node(name, cpu=cpu, labels=labels | zone)
