"""Volumes, claims, classes and CSI objects for tests, written as kubectl would print them."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from policysched.framework import Cluster
from policysched.model.kinds import KINDS
from policysched.model.objects import (
    ClaimSource,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    Node,
    OwnerReference,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
    Stored,
    Volume,
    VolumeAttachment,
)
from policysched.model.objects.pods import EphemeralSource
from tests.build import cluster, pod

Object = dict[str, Any]
DONE = {"pv.kubernetes.io/bind-completed": "yes"}
ZONE = "topology.kubernetes.io/zone"


def _made(kind: str, name: str, metadata: Object | None = None, **fields: Any) -> Any:
    return KINDS[kind].decode({"metadata": {"name": name, "resourceVersion": "1", **(metadata or {})}, **fields})


def volume(
    name: str = "v",
    *,
    nodes: dict[str, list[str]] | None = None,
    size: str = "1Gi",
    of: str = "",
    metadata: Object | None = None,
    phase: str = "Available",
    **spec: Any,
) -> PersistentVolume:
    """A volume; `nodes` are the values that labels of its nodes have, `of` is its class."""
    terms = [{"key": key, "operator": "In", "values": values} for key, values in (nodes or {}).items()]
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": terms}]}} if terms else None
    spec = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "storageClassName": of} | spec
    if affinity:
        spec = {"nodeAffinity": affinity} | spec
    made: PersistentVolume = _made("PersistentVolume", name, metadata, spec=spec, status={"phase": phase})
    return made


def claim(
    name: str = "c",
    *,
    to: str = "",
    of: str | None = "wait",
    size: str | None = "1Gi",
    metadata: Object | None = None,
    phase: str = "Pending",
    **spec: Any,
) -> PersistentVolumeClaim:
    """A claim, bound where `to` names a volume, of a class that waits."""
    spec = {"accessModes": ["ReadWriteOnce"], "volumeName": to} | spec
    if size is not None:
        spec["resources"] = {"requests": {"storage": size}}
    if of is not None:
        spec["storageClassName"] = of
    own = {"namespace": "default", "uid": f"u-{name}", "annotations": DONE if to else {}} | (metadata or {})
    made: PersistentVolumeClaim = _made("PersistentVolumeClaim", name, own, spec=spec, status={"phase": phase})
    return made


def storage_class(
    name: str = "wait", mode: str | None = "WaitForFirstConsumer", provisioner: str = "csi.x", **fields: Any
) -> StorageClass:
    """A class."""
    made: StorageClass = _made("StorageClass", name, None, provisioner=provisioner, volumeBindingMode=mode, **fields)
    return made


def csi_node(name: str, limits: dict[str, int | None] | None = None, migrated: str = "") -> CSINode:
    """What CSI drivers say of a node."""
    annotations = {"storage.alpha.kubernetes.io/migrated-plugins": migrated} if migrated else {}
    drivers = [
        {"name": driver, "allocatable": {} if count is None else {"count": count}}
        for driver, count in (limits or {}).items()
    ]
    made: CSINode = _made("CSINode", name, {"annotations": annotations}, spec={"drivers": drivers})
    return made


def csi_driver(name: str = "csi.x", *, capacity: bool | None = True, required: bool | None = None) -> CSIDriver:
    """A driver."""
    spec = {"storageCapacity": capacity, "preventPodSchedulingIfMissing": required}
    made: CSIDriver = _made("CSIDriver", name, None, spec=spec)
    return made


def csi_capacity(name: str, of: str = "wait", **fields: Any) -> CSIStorageCapacity:
    """What a driver can still provision."""
    made: CSIStorageCapacity = _made(
        "CSIStorageCapacity", name, {"namespace": "kube-system"}, storageClassName=of, **fields
    )
    return made


def attachment(name: str, node: str, of: str | None, attacher: str = "csi.x") -> VolumeAttachment:
    """A volume attached to a node."""
    spec = {"attacher": attacher, "nodeName": node, "source": {"persistentVolumeName": of}}
    made: VolumeAttachment = _made("VolumeAttachment", name, None, spec=spec)
    return made


def claiming(name: str = "p", *claims: str, on: str = "", namespace: str = "default", **sources: Any) -> Pod:
    """A pod that states claims; `sources` are volumes of its own, `made` names an ephemeral one."""
    made = pod(name, on=on, namespace=namespace)
    volumes = [Volume(name=one, persistent_volume_claim=ClaimSource(claim_name=one)) for one in claims]
    if "made" in sources:
        volumes.append(Volume(name=sources.pop("made"), ephemeral=EphemeralSource()))
    volumes += [Volume(name=source, **{source: disk}) for source, disk in sources.items()]
    return replace(made, spec=replace(made.spec, volumes=volumes))


def owned(one: PersistentVolumeClaim, by: Pod) -> PersistentVolumeClaim:
    """A claim that was made for a pod."""
    owner = OwnerReference(kind="Pod", name=by.metadata.name, uid=by.metadata.uid, controller=True)
    return replace(one, metadata=replace(one.metadata, owner_references=[owner]))


def with_storage(*objects: Node | Pod | Stored) -> Cluster:
    """A cluster of these objects; pods come last."""
    made = cluster(*(one for one in objects if isinstance(one, Node)))
    for one in objects:
        if not isinstance(one, Node | Pod):
            made.set_stored(one)
    for one in objects:
        if isinstance(one, Pod):
            made.set_pod(one)
    return made
