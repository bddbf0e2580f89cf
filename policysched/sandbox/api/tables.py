"""Tables as `kubectl get` asks for: column definitions and one row an object.

The columns of the built-in kinds are one table here, those of a custom resource its printer columns; both name the
fields that they show by paths. Rows carry the object's metadata alone unless the request wants all of it, because
kubectl needs no more to sort and to label.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any

from policysched.sandbox.objects import Json
from policysched.sandbox.objects.resources import ApiResource
from policysched.sandbox.objects.selectors import selector_text

# Kinds and their columns, each [+]TITLE[:TYPE][=SOURCE]; with + only `-o wide` shows it. A source is a path and what
# stands where there is nothing (`or`), or a function of this module and the paths of its arguments, of the whole object
# where there are none. The sources of titles that many kinds have stand under _SOURCES.
_BUILTIN = """
pods | Name | Ready=ready(status.containerStatuses spec.containers) | Status=pod_status()
  | Restarts=restarts(status.containerStatuses) | Age | +IP=status.podIP or <none> | +Node=spec.nodeName or <none>
  | +Nominated Node=status.nominatedNodeName or <none>
  | +Readiness Gates=readiness_gates(spec.readinessGates status.conditions)
nodes | Name | Status=node_status() | Roles=roles(metadata.labels) | Age | Version=status.nodeInfo.kubeletVersion
  | +Internal-IP=status.addresses[?(@.type=="InternalIP")].address or <none>
  | +External-IP=status.addresses[?(@.type=="ExternalIP")].address or <none>
  | +OS-Image=status.nodeInfo.osImage or <unknown> | +Kernel-Version=kernel(status.nodeInfo)
  | +Container-Runtime=status.nodeInfo.containerRuntimeVersion or <unknown>
services | Name | Type=spec.type | Cluster-IP=spec.clusterIP or <none> | External-IP=spec.externalName or <none>
  | Port(s)=ports(spec.ports) | Age | +Selector
events | Last Seen=ago(lastTimestamp eventTime firstTimestamp) | Type | Reason=reason
  | Object=involved(involvedObject.kind involvedObject.name) | +Subobject=involvedObject.fieldPath
  | +Source=source(source.component reportingComponent source.host) | Message=message(message)
  | +First Seen=ago(firstTimestamp eventTime) | +Count=count or 1 | +Name
deployments.apps | Name | Ready=ready_replicas(status.readyReplicas spec.replicas)
  | Up-to-date=status.updatedReplicas or 0 | Available=status.availableReplicas or 0 | Age
  | +Containers | +Images | +Selector
replicasets.apps,replicationcontrollers | Name | Desired:integer=spec.replicas or 0
  | Current:integer=status.replicas or 0 | Ready:integer=status.readyReplicas or 0 | Age
  | +Containers | +Images | +Selector
statefulsets.apps | Name | Ready=ready_replicas(status.readyReplicas spec.replicas) | Age | +Containers | +Images
daemonsets.apps | Name | Desired:integer=status.desiredNumberScheduled or 0
  | Current:integer=status.currentNumberScheduled or 0 | Ready:integer=status.numberReady or 0
  | Up-to-date:integer=status.updatedNumberScheduled or 0 | Available:integer=status.numberAvailable or 0
  | Node Selector=selector(spec.template.spec.nodeSelector) | Age | +Containers | +Images | +Selector
namespaces | Name | Status | Age
persistentvolumes | Name | Capacity=spec.capacity.storage | Access Modes=modes(spec.accessModes)
  | Reclaim Policy=spec.persistentVolumeReclaimPolicy | Status | Claim=claim(spec.claimRef) | StorageClass
  | VolumeAttributesClass | Reason=status.reason | Age | +VolumeMode
persistentvolumeclaims | Name | Status | Volume=spec.volumeName | Capacity=status.capacity.storage
  | Access Modes=modes(status.accessModes) | StorageClass | VolumeAttributesClass | Age | +VolumeMode
storageclasses.storage.k8s.io | Name=class_name(metadata) | Provisioner=provisioner
  | ReclaimPolicy=reclaimPolicy or Delete | VolumeBindingMode=volumeBindingMode or Immediate
  | AllowVolumeExpansion:boolean=allowVolumeExpansion or false | Age
poddisruptionbudgets.policy | Name | Min Available=spec.minAvailable or N/A | Max Unavailable=spec.maxUnavailable or N/A
  | Allowed Disruptions:integer=status.disruptionsAllowed or 0 | Age
priorityclasses.scheduling.k8s.io | Name | Value:integer=value or 0 | Global-Default:boolean=globalDefault or false
  | Age | PreemptionPolicy=preemptionPolicy
configmaps | Name | Data=size(data binaryData) | Age
secrets | Name | Type | Data=size(data) | Age
serviceaccounts | Name | Age
endpoints | Name | Endpoints=endpoints(subsets) | Age
leases.coordination.k8s.io | Name | Holder=spec.holderIdentity | Age
csinodes.storage.k8s.io | Name | Drivers:integer=size(spec.drivers) | Age
others | Name | Created At=metadata.creationTimestamp
"""
_SOURCES = {
    "Name": "metadata.name",
    "Age": "ago(metadata.creationTimestamp)",
    "Containers": "spec.template.spec.containers[*].name",
    "Images": "spec.template.spec.containers[*].image",
    "Selector": "selector(spec.selector)",
    "Type": "type",
    "Status": "status.phase",
    "StorageClass": "spec.storageClassName",
    "VolumeAttributesClass": "spec.volumeAttributesClassName or <unset>",
    "VolumeMode": "spec.volumeMode or <unset>",
}
_ABSENT: dict[str, Any] = {"0": 0, "1": 1, "false": False}
_CALL = re.compile(r"(\w+)\(([^)]*)\)")
_STEP = re.compile(r"\.?([\w-]+)|\[\?\(@\.([\w.]+)\s*==\s*[\"']([^\"']*)[\"']\)\]|\[(\d+|\*)\]|\[['\"]([^'\"]+)['\"]\]")
_ROLE = "node-role.kubernetes.io/"
_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column: its title, what stands in it at a time, its type and whether only `-o wide` shows it."""

    name: str
    cell: Callable[[Json, datetime], Any]
    type: str = "string"
    wide: bool = False


def wants_table(accept: str) -> bool:
    """Whether a client asks for tables before plain objects."""
    return "as=Table" in accept


def table(resource: ApiResource, objects: list[Json], now: datetime, include: str = "Metadata") -> Json:
    """Build a table of objects."""
    columns = _columns(resource)
    definitions = [
        {
            "name": column.name,
            "type": column.type,
            "format": "name" if column.name == "Name" else "",
            "description": "",
            "priority": int(column.wide),
        }
        for column in columns
    ]
    rows = [{"cells": [column.cell(obj, now) for column in columns], "object": _shown(obj, include)} for obj in objects]
    head = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {}}
    return head | {"columnDefinitions": definitions, "rows": rows}


def _shown(obj: Json, include: str) -> Json | None:
    if include == "Object":
        return obj
    partial = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
    return None if include == "None" else partial | {"metadata": obj["metadata"]}


def _columns(resource: ApiResource) -> list[TableColumn]:
    builtin = _builtin()
    if resource.custom is None:
        return builtin.get(resource.key, builtin["others"])
    printed = resource.custom.get("additionalPrinterColumns")
    if not printed:
        printed = [{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}]
    return [builtin["others"][0], *map(_printer_column, printed)]


def _printer_column(column: Json) -> TableColumn:
    find, kind = _path(column["jsonPath"]), column["type"]

    def cell(obj: Json, now: datetime) -> Any:
        found = find(obj)
        if not found:
            return None
        if kind == "date":
            return since(found[0], now)
        return found[0] if kind in ("integer", "number", "boolean") else _joined(found)

    return TableColumn(column["name"], cell, kind, wide=bool(column.get("priority", 0)))


@cache
def _builtin() -> dict[str, list[TableColumn]]:
    """Read the table of the built-in kinds, by storage key."""
    found: dict[str, list[TableColumn]] = {}
    for line in _BUILTIN.strip().replace("\n  ", " ").splitlines():
        keys, *columns = line.split(" | ")
        made = [_column(text) for text in columns]
        found |= dict.fromkeys(keys.split(","), made)
    return found


def _column(text: str) -> TableColumn:
    heading, _, source = text.removeprefix("+").partition("=")
    title, _, kind = heading.partition(":")
    return TableColumn(title, _cell(source or _SOURCES[title]), kind or "string", wide=text.startswith("+"))


def _cell(source: str) -> Callable[[Json, datetime], Any]:
    call = _CALL.fullmatch(source)
    if call is None:
        path, _, absent = source.partition(" or ")
        return _field(_path(path), _ABSENT.get(absent, absent), many="[*]" in path)
    name, paths = call[1], [_path(path) for path in call[2].split()]
    if name == "ago":
        return lambda obj, now: since(next((found[0] for find in paths if (found := find(obj))), None), now)
    function = _FUNCTIONS[name]
    if not paths:
        return lambda obj, _: function(obj)
    return lambda obj, _: function(*(next(iter(find(obj)), None) for find in paths))


def _field(find: Callable[[Json], list[Any]], absent: Any, *, many: bool) -> Callable[[Json, datetime], Any]:
    def cell(obj: Json, _: datetime) -> Any:
        found = find(obj)
        if many:
            return _joined(found)
        return absent if not found or found[0] == "" else found[0]

    return cell


def _joined(found: list[Any]) -> str:
    return ",".join(str(value).lower() if isinstance(value, bool) else str(value) for value in found)


def _path(path: str) -> Callable[[Json], list[Any]]:
    """Compile a JSON path of the simple kind that printer columns use; it gives all values that are there."""
    steps = [step.groups() for step in _STEP.finditer(path)]

    def find(obj: Json) -> list[Any]:
        values: list[Any] = [obj]
        for step in steps:
            values = _follow(values, *step)
        return [value for value in values if value is not None]

    return find


def _follow(values: list[Any], name: str, field: str, wanted: str, index: str, quoted: str) -> list[Any]:
    if name or quoted:
        return [value[name or quoted] for value in values if _has(value, name or quoted)]
    lists = [value for value in values if isinstance(value, list)]
    if field:
        return [item for items in lists for item in items if _has(item, field) and str(item[field]) == wanted]
    if index == "*":
        return [item for items in lists for item in items]
    return [items[int(index)] for items in lists if len(items) > int(index)]


def _has(value: Any, name: str) -> bool:
    return isinstance(value, dict) and name in value


def since(timestamp: str | None, now: datetime) -> str:
    """Write how long ago a timestamp of an object was."""
    if not timestamp:
        return "<unknown>"
    return human((now - datetime.fromisoformat(timestamp.replace("Z", "+00:00")).astimezone(UTC)).total_seconds())


def human(seconds: float) -> str:
    """Write a time span as kubectl does, with fewer digits the longer it is: `5s`, `2m30s`, `3h`, `4d`, `2y10d`."""
    total = int(seconds)
    if total < 0:
        return "<invalid>" if total < -1 else "0s"
    if total < 120:
        return f"{total}s"
    for limit, unit, big, smaller, small in _SPANS:
        if total < limit:
            whole, rest = divmod(total, unit)
            part = rest // smaller if smaller else 0
            return f"{whole}{big}{part}{small}" if part else f"{whole}{big}"
    return f"{total // _YEAR}y"


_DAY, _YEAR = 24 * 3600, 365 * 24 * 3600
# below this many seconds: the unit, its letter, the unit of the second part (0: none), its letter
_SPANS = (
    (10 * 60, 60, "m", 1, "s"),
    (3 * 3600, 60, "m", 0, ""),
    (8 * 3600, 3600, "h", 60, "m"),
    (2 * _DAY, 3600, "h", 0, ""),
    (8 * _DAY, _DAY, "d", 3600, "h"),
    (2 * _YEAR, _DAY, "d", 0, ""),
    (8 * _YEAR, _YEAR, "y", _DAY, "d"),
)


def _pod_status(pod: Json) -> str:
    """Name a pod's state: the phase, or what keeps it there."""
    status = pod.get("status") or {}
    reason = status.get("reason") or status.get("phase", "")
    for condition in status.get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            reason = "SchedulingGated"
    for each in reversed(status.get("containerStatuses") or ()):
        state = each.get("state") or {}
        reason = (state.get("waiting") or state.get("terminated") or {}).get("reason") or reason
    if pod["metadata"].get("deletionTimestamp"):
        return "Unknown" if status.get("reason") == "NodeLost" else "Terminating"
    return str(reason)


def _readiness_gates(gates: list[Json] | None, conditions: list[Json] | None) -> str:
    true = {each["type"] for each in conditions or () if each["status"] == "True"}
    return f"{sum(gate['conditionType'] in true for gate in gates)}/{len(gates)}" if gates else "<none>"


def _node_status(node: Json) -> str:
    conditions = (node.get("status") or {}).get("conditions") or ()
    found = [each["status"] for each in conditions if each["type"] == "Ready"]
    words = ["Ready" if found[0] == "True" else "NotReady"] if found else ["Unknown"]
    if (node.get("spec") or {}).get("unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def _roles(labels: Json | None) -> str:
    found = {key[len(_ROLE) :] for key in labels or {} if key.startswith(_ROLE) and key != _ROLE}
    named = (labels or {}).get("kubernetes.io/role")
    return ",".join(sorted(found | {named} if named else found)) or "<none>"


def _kernel(info: Json | None) -> str:
    version, machine = (info or {}).get("kernelVersion") or "<unknown>", (info or {}).get("architecture")
    return f"{version} ({machine})" if machine else version


def _ports(ports: list[Json] | None) -> str:
    def outside(port: Json) -> str:
        return f":{port['nodePort']}" if port.get("nodePort") else ""

    return ",".join(f"{port['port']}{outside(port)}/{port['protocol']}" for port in ports or ()) or "<none>"


def _endpoints(subsets: list[Json] | None) -> str:
    found = [
        f"{address['ip']}:{port['port']}"
        for subset in subsets or ()
        for port in subset.get("ports") or ()
        for address in subset.get("addresses") or ()
    ]
    more = f" + {len(found) - 3} more..." if len(found) > 3 else ""
    return ",".join(found[:3]) + more or "<none>"


def _class_name(metadata: Json) -> str:
    default = (metadata.get("annotations") or {}).get(_DEFAULT_CLASS) == "true"
    return f"{metadata['name']}{' (default)' if default else ''}"


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "pod_status": _pod_status,
    "readiness_gates": _readiness_gates,
    "node_status": _node_status,
    "roles": _roles,
    "kernel": _kernel,
    "ports": _ports,
    "endpoints": _endpoints,
    "class_name": _class_name,
    "ready": lambda statuses, containers: (
        f"{sum(bool(each.get('ready')) for each in statuses or ())}/{len(containers or ())}"
    ),
    "restarts": lambda statuses: str(sum(each.get("restartCount", 0) for each in statuses or ())),
    "ready_replicas": lambda ready, wanted: f"{ready or 0}/{wanted or 0}",
    "selector": lambda selector: selector_text(selector) or "<none>",
    "modes": lambda modes: ",".join(_MODES.get(mode, mode) for mode in modes or ()),
    "claim": lambda claim: f"{claim.get('namespace')}/{claim.get('name')}" if claim else "",
    "size": lambda *parts: sum(len(part or ()) for part in parts),
    "involved": lambda kind, name: f"{str(kind or '').lower()}/{name or ''}",
    "source": lambda source, reporting, host: ", ".join(filter(None, (source or reporting, host))),
    "message": lambda text: str(text or "").strip(),
}
