"""The columns of the other built-in kinds: nodes, services, events, volumes, classes and the like.

As in `columns`, each is a title and a function of the object. A kind without a list here shows its name and
its creation time, as the API server's default does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from policysched.sandbox.api.columns import (
    AGE,
    DAEMON_SET,
    DEPLOYMENT,
    NAME,
    POD,
    REPLICA_SET,
    STATEFUL_SET,
    Column,
    at,
)
from policysched.sandbox.api.durations import since
from policysched.sandbox.objects import Json
from policysched.sandbox.storage.subresources import selector_text

if TYPE_CHECKING:
    from datetime import datetime

_ROLE = "node-role.kubernetes.io/"


def _node_status(node: Json, _: datetime) -> str:
    conditions = (node.get("status") or {}).get("conditions") or ()
    found = [each["status"] for each in conditions if each["type"] == "Ready"]
    words = ["Ready" if found[0] == "True" else "NotReady"] if found else ["Unknown"]
    if (node.get("spec") or {}).get("unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def _roles(node: Json, _: datetime) -> str:
    labels = node["metadata"].get("labels") or {}
    found = {key[len(_ROLE) :] for key in labels if key.startswith(_ROLE) and key != _ROLE}
    if labels.get("kubernetes.io/role"):
        found.add(labels["kubernetes.io/role"])
    return ",".join(sorted(found)) or "<none>"


def _address(kind: str) -> Any:
    def read(node: Json, _: datetime) -> str:
        addresses = (node.get("status") or {}).get("addresses") or ()
        return next((each["address"] for each in addresses if each["type"] == kind), "<none>")

    return read


def _kernel(node: Json, _: datetime) -> str:
    info = (node.get("status") or {}).get("nodeInfo") or {}
    version, machine = info.get("kernelVersion") or "<unknown>", info.get("architecture")
    return f"{version} ({machine})" if machine else version


_NODE = [
    NAME,
    Column("Status", _node_status),
    Column("Roles", _roles),
    AGE,
    Column("Version", at("status.nodeInfo.kubeletVersion")),
    Column("Internal-IP", _address("InternalIP"), wide=True),
    Column("External-IP", _address("ExternalIP"), wide=True),
    Column("OS-Image", at("status.nodeInfo.osImage", "<unknown>"), wide=True),
    Column("Kernel-Version", _kernel, wide=True),
    Column("Container-Runtime", at("status.nodeInfo.containerRuntimeVersion", "<unknown>"), wide=True),
]


def _ports(service: Json, _: datetime) -> str:
    parts = []
    for port in service["spec"].get("ports") or ():
        outside = f":{port['nodePort']}" if port.get("nodePort") else ""
        parts.append(f"{port['port']}{outside}/{port['protocol']}")
    return ",".join(parts) or "<none>"


_SERVICE = [
    NAME,
    Column("Type", at("spec.type")),
    Column("Cluster-IP", at("spec.clusterIP", "<none>")),
    Column("External-IP", at("spec.externalName", "<none>")),
    Column("Port(s)", _ports),
    AGE,
    Column("Selector", lambda obj, _: selector_text(obj["spec"].get("selector")) or "<none>", wide=True),
]


def _seen(*names: str) -> Any:
    def read(event: Json, now: datetime) -> str:
        return since(next((event[name] for name in names if event.get(name)), None), now)

    return read


def _about(event: Json, _: datetime) -> str:
    thing = event.get("involvedObject") or {}
    return f"{str(thing.get('kind', '')).lower()}/{thing.get('name', '')}"


def _source(event: Json, _: datetime) -> str:
    source = event.get("source") or {}
    parts = [source.get("component") or event.get("reportingComponent"), source.get("host")]
    return ", ".join(filter(None, parts))


_EVENT = [
    Column("Last Seen", _seen("lastTimestamp", "eventTime", "firstTimestamp")),
    Column("Type", at("type")),
    Column("Reason", at("reason")),
    Column("Object", _about),
    Column("Subobject", at("involvedObject.fieldPath"), wide=True),
    Column("Source", _source, wide=True),
    Column("Message", lambda event, _: str(event.get("message", "")).strip()),
    Column("First Seen", _seen("firstTimestamp", "eventTime"), wide=True),
    Column("Count", at("count", 1), wide=True),
    Column("Name", NAME.cell, wide=True),
]
_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def _modes(path: str) -> Any:
    read = at(path, ())
    return lambda obj, now: ",".join(_MODES.get(mode, mode) for mode in read(obj, now))


def _claim(volume: Json, _: datetime) -> str:
    claim = volume["spec"].get("claimRef")
    return f"{claim.get('namespace')}/{claim.get('name')}" if claim else ""


_VOLUME = [
    NAME,
    Column("Capacity", at("spec.capacity.storage")),
    Column("Access Modes", _modes("spec.accessModes")),
    Column("Reclaim Policy", at("spec.persistentVolumeReclaimPolicy")),
    Column("Status", at("status.phase")),
    Column("Claim", _claim),
    Column("StorageClass", at("spec.storageClassName")),
    Column("VolumeAttributesClass", at("spec.volumeAttributesClassName", "<unset>")),
    Column("Reason", at("status.reason")),
    AGE,
    Column("VolumeMode", at("spec.volumeMode", "<unset>"), wide=True),
]
_CLAIM = [
    NAME,
    Column("Status", at("status.phase")),
    Column("Volume", at("spec.volumeName")),
    Column("Capacity", at("status.capacity.storage")),
    Column("Access Modes", _modes("status.accessModes")),
    Column("StorageClass", at("spec.storageClassName")),
    Column("VolumeAttributesClass", at("spec.volumeAttributesClassName", "<unset>")),
    AGE,
    Column("VolumeMode", at("spec.volumeMode", "<unset>"), wide=True),
]


def _mark_default(storage_class: Json, _: datetime) -> str:
    annotations = storage_class["metadata"].get("annotations") or {}
    default = annotations.get("storageclass.kubernetes.io/is-default-class") == "true"
    return f"{storage_class['metadata']['name']}{' (default)' if default else ''}"


def _size(*names: str) -> Any:
    return lambda obj, _: sum(len(obj.get(name) or ()) for name in names)


_CLASS = [
    Column("Name", _mark_default),
    Column("Provisioner", at("provisioner")),
    Column("ReclaimPolicy", at("reclaimPolicy", "Delete")),
    Column("VolumeBindingMode", at("volumeBindingMode", "Immediate")),
    Column("AllowVolumeExpansion", at("allowVolumeExpansion", absent=False), "boolean"),
    AGE,
]
_BUDGET = [
    NAME,
    Column("Min Available", at("spec.minAvailable", "N/A")),
    Column("Max Unavailable", at("spec.maxUnavailable", "N/A")),
    Column("Allowed Disruptions", at("status.disruptionsAllowed", 0), "integer"),
    AGE,
]
_PRIORITY = [
    NAME,
    Column("Value", at("value", 0), "integer"),
    Column("Global-Default", at("globalDefault", absent=False), "boolean"),
    AGE,
    Column("PreemptionPolicy", at("preemptionPolicy")),
]


def _endpoints(obj: Json, _: datetime) -> str:
    found = [
        f"{address['ip']}:{port['port']}"
        for subset in obj.get("subsets") or ()
        for port in subset.get("ports") or ()
        for address in subset.get("addresses") or ()
    ]
    more = f" + {len(found) - 3} more..." if len(found) > 3 else ""
    return ",".join(found[:3]) + more or "<none>"


BUILTIN: dict[str, list[Column]] = {
    "pods": POD,
    "nodes": _NODE,
    "services": _SERVICE,
    "events": _EVENT,
    "deployments.apps": DEPLOYMENT,
    "replicasets.apps": REPLICA_SET,
    "replicationcontrollers": REPLICA_SET,
    "statefulsets.apps": STATEFUL_SET,
    "daemonsets.apps": DAEMON_SET,
    "namespaces": [NAME, Column("Status", at("status.phase")), AGE],
    "persistentvolumes": _VOLUME,
    "persistentvolumeclaims": _CLAIM,
    "storageclasses.storage.k8s.io": _CLASS,
    "poddisruptionbudgets.policy": _BUDGET,
    "priorityclasses.scheduling.k8s.io": _PRIORITY,
    "configmaps": [NAME, Column("Data", _size("data", "binaryData")), AGE],
    "secrets": [NAME, Column("Type", at("type")), Column("Data", _size("data")), AGE],
    "serviceaccounts": [NAME, AGE],
    "endpoints": [NAME, Column("Endpoints", _endpoints), AGE],
    "leases.coordination.k8s.io": [NAME, Column("Holder", at("spec.holderIdentity")), AGE],
    "csinodes.storage.k8s.io": [
        NAME,
        Column("Drivers", lambda obj, _: len(obj["spec"].get("drivers") or ()), "integer"),
        AGE,
    ],
}
