"""A situation of the queue: pods that were turned away, something that happens, and which of them are tried again.

Objects are written as kubectl would print them, so that a situation can be played in this process as well as on a real
API server. It knows nothing of who plays it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from tests.e2e.objects import Json, node, pod

Edit = Callable[[Json], None]
"""Changes an object in place."""
ZONE = "topology.kubernetes.io/zone"
BOUND = {"pv.kubernetes.io/bind-completed": "yes"}
STORAGE = "storage.k8s.io/v1"


@dataclass(frozen=True, slots=True)
class Create:
    """An object comes."""

    obj: Json


@dataclass(frozen=True, slots=True)
class Change:
    """An object is read, edited and written back, or a part of it, as `/status`."""

    kind: str
    name: str
    edit: Edit
    part: str = ""


@dataclass(frozen=True, slots=True)
class Delete:
    """An object goes, at once."""

    kind: str
    name: str


Step = Create | Change | Delete


@dataclass(frozen=True, slots=True)
class Waiting:
    """A pod that is turned away, and by which plugins."""

    pod: Json
    rejectors: frozenset[str]

    @property
    def name(self) -> str:
        """The pod's name."""
        return str(self.pod["metadata"]["name"])


@dataclass(frozen=True, slots=True)
class Situation:
    """One row of the table.

    Args:
        claim: what it shows, as a sentence.
        plugins: the plugins of the profile, besides those that every profile has.
        waiting: the pods that are turned away at first.
        steps: what happens then.
        wakes: the names of those that are tried again; all others stay where they are.
        events: what the queue calls the steps, as kube-scheduler does; none where nobody can be helped by them.
        given: the objects that are there before.
        served: whether an API server of v1.36 with its usual gates stores these objects and takes these steps.
        there: the names of those that kube-scheduler tries again besides.
    """

    claim: str
    plugins: tuple[str, ...]
    waiting: tuple[Waiting, ...]
    steps: tuple[Step, ...]
    wakes: frozenset[str]
    events: frozenset[str]
    given: tuple[Json, ...]
    served: bool = True
    there: frozenset[str] = frozenset()


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
    there: str = "",
) -> Situation:
    """Make a row; names are separated by spaces."""
    return Situation(
        claim,
        tuple(plugins.split()),
        tuple(waiting),
        tuple(steps),
        frozenset(wakes.split()),
        frozenset(events.split()),
        tuple(given),
        served,
        frozenset(there.split()),
    )


def rejected(name: str, by: str, **fields: Any) -> Waiting:
    """Make a pod that these plugins turn away."""
    return Waiting(pod(name, **fields), frozenset(by.split()))


def placed(name: str, on: str, **fields: Any) -> Json:
    """Make a pod on a node."""
    return pod(name, nodeName=on, **fields)


# Parts of nodes and pods


def taint(key: str, effect: str = "NoSchedule") -> Json:
    return {"key": key, "effect": effect}


def tolerating(*keys: str) -> list[Json]:
    return [{"key": key, "operator": "Exists", "effect": "NoSchedule"} for key in keys]


def on_nodes_with(key: str, *values: str) -> Json:
    """Require a label of nodes."""
    term = {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


def on_node_named(name: str) -> Json:
    """Require a node by its name."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


def having(key: str) -> Json:
    """Select pods with a label, whatever its value."""
    return {"matchExpressions": [{"key": key, "operator": "Exists"}]}


def _term(key: str, domain: str) -> Json:
    return {"labelSelector": having(key), "topologyKey": domain}


def beside(key: str, domain: str) -> Json:
    """Require a pod with a label in the same domain."""
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_term(key, domain)]}}


def apart(key: str, domain: str) -> Json:
    """Require that no pod with a label is in the same domain."""
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_term(key, domain)]}}


def spread(key: str, domain: str, **fields: Any) -> list[Json]:
    """Require that pods with a label are spread evenly over domains."""
    made = {"maxSkew": 1, "topologyKey": domain, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": having(key)}
    return [made | fields]


def containers(*, requests: Json | None = None, host_port: int = 0) -> list[Json]:
    """One container as `pod` makes it, with these requests or this port."""
    [made] = pod("any", requests=requests)["spec"]["containers"]
    if host_port:
        made["ports"] = [{"containerPort": 80, "hostPort": host_port, "protocol": "TCP"}]
    return [made]


# Other kinds


def _made(api_version: str, kind: str, name: str, metadata: Json | None = None, **fields: Any) -> Json:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name} | (metadata or {}), **fields}


def volume(name: str, *, labels: Json | None = None, nodes: Json | None = None, of: str = "", driver: str = "") -> Json:
    """A volume of 1Mi; `nodes` are the values that labels of its nodes have, `of` is its class."""
    spec: Json = {"capacity": {"storage": "1Mi"}, "accessModes": ["ReadWriteMany"], "storageClassName": of}
    terms = [{"key": key, "operator": "In", "values": values} for key, values in (nodes or {}).items()]
    if terms:
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": terms}]}}
    spec |= {"csi": {"driver": driver, "volumeHandle": name}} if driver else {"hostPath": {"path": "/srv"}}
    return _made("v1", "PersistentVolume", name, {"labels": labels or {}}, spec=spec)


def claim(name: str, *, to: str = "", of: str | None = "", done: bool = False, mode: str = "ReadWriteMany") -> Json:
    """A claim to 1Mi, bound where `to` names a volume; `of` is its class, None the default one."""
    spec: Json = {"accessModes": [mode], "resources": {"requests": {"storage": "1Mi"}}}
    spec |= {"volumeName": to} if to else {}
    spec |= {} if of is None else {"storageClassName": of}
    metadata = {"namespace": "default", "annotations": BOUND if to or done else {}}
    return _made("v1", "PersistentVolumeClaim", name, metadata, spec=spec)


def claims(*names: str) -> list[Json]:
    """The volumes of a pod that uses these claims."""
    return [{"name": f"v{index}", "persistentVolumeClaim": {"claimName": name}} for index, name in enumerate(names)]


def storage_class(name: str, mode: str = "WaitForFirstConsumer", *, zones: Sequence[str] = (), **labels: str) -> Json:
    topologies = [{"matchLabelExpressions": [{"key": ZONE, "values": list(zones)}]}] if zones else []
    fields = {"provisioner": "disks.example.com", "volumeBindingMode": mode, "allowedTopologies": topologies}
    return _made(STORAGE, "StorageClass", name, {"labels": labels}, **fields)


def csi_node(name: str, **limits: int) -> Json:
    """The CSI drivers of a node with how many volumes they attach; `_` in a driver's name stands for a dot."""
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
    """Give an object these labels and no others, but for its host name."""

    def edit(obj: Json) -> None:
        host = {key: value for key, value in obj["metadata"].get("labels", {}).items() if key.endswith("/hostname")}
        obj["metadata"]["labels"] = host | labels

    return edit


def allocating(**amounts: str) -> Edit:
    """Let a node have other amounts; `pods` is the number of pods."""

    def edit(obj: Json) -> None:
        for part in ("capacity", "allocatable"):
            obj["status"][part] |= amounts

    return edit


def tainted(*taints: Json) -> Edit:
    """Let a node have these taints and no others."""

    def edit(obj: Json) -> None:
        obj["spec"]["taints"] = list(taints)

    return edit


def both(*edits: Edit) -> Edit:
    """Make several edits at once."""

    def edit(obj: Json) -> None:
        for one in edits:
            one(obj)

    return edit


def with_status(**fields: Any) -> Edit:
    """Set fields of the status."""

    def edit(obj: Json) -> None:
        obj.setdefault("status", {}).update(fields)

    return edit


def with_spec(**fields: Any) -> Edit:
    """Set fields of the spec."""

    def edit(obj: Json) -> None:
        obj["spec"] |= deepcopy(fields)

    return edit


def with_fields(**fields: Any) -> Edit:
    """Set fields of the object itself."""

    def edit(obj: Json) -> None:
        obj |= deepcopy(fields)

    return edit


def also_tolerating(*keys: str) -> Edit:
    """Let a pod tolerate more."""

    def edit(obj: Json) -> None:
        obj["spec"].setdefault("tolerations", []).extend(tolerating(*keys))

    return edit


def annotated(annotations: Mapping[str, str]) -> Edit:
    """Annotate an object."""

    def edit(obj: Json) -> None:
        obj["metadata"].setdefault("annotations", {}).update(annotations)

    return edit


def host(name: str, cpu: str = "4", **labels: str) -> Json:
    """A node of so many cores, with labels; `zone_` stands for the well-known label of zones."""
    zone = {ZONE: labels.pop("zone_")} if "zone_" in labels else {}
    return node(name, cpu=cpu, labels=labels | zone)
