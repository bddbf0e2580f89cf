"""Tables for `kubectl get`: column definitions and one row per object.

Columns of built-in kinds are defined in `columns.toml`, those of custom resources are their printer columns; both use
paths of fields. Rows contain only the object's metadata unless the request wants the whole object, because kubectl
needs no more to sort and label.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from math import inf
from typing import Any

from policysched.apimachinery import Json
from policysched.apimachinery.resources import ApiResource
from policysched.apimachinery.selectors import selector_text

_CALL = re.compile(r"(\w+)\(([^)]*)\)")
_STEP = re.compile(r"\.?([\w-]+)|\[\?\(@\.([\w.]+)\s*==\s*[\"']([^\"']*)[\"']\)\]|\[(\d+|\*)\]|\[['\"]([^'\"]+)['\"]\]")
_ROLE = "node-role.kubernetes.io/"
_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a table: title, function that returns a cell, type, and whether only `-o wide` shows it."""

    name: str
    cell: Callable[[Json, datetime], Any]
    type: str = "string"
    wide: bool = False


def table(resource: ApiResource, objects: list[Json], now: datetime, include: str = "Metadata") -> Json:
    """Return the table of objects."""
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
    rows: list[Json] = [{"cells": [column.cell(obj, now) for column in columns], "object": obj} for obj in objects]
    for row in rows if include != "Object" else ():
        partial = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
        row["object"] = None if include == "None" else partial | {"metadata": row["object"]["metadata"]}
    head = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {}}
    return head | {"columnDefinitions": definitions, "rows": rows}


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
    """Read from a file the table columns of the built-in kinds, by storage key such as `deployments.apps`."""
    read = tomllib.loads(files("policysched.sandbox.api").joinpath("columns.toml").read_text("utf-8"))
    return {key: [_column(text, read["sources"]) for text in texts] for key, texts in read["columns"].items()}


def _column(text: str, sources: dict[str, str]) -> TableColumn:
    heading, _, source = text.removeprefix("+").partition("=")
    title, _, kind = heading.partition(":")
    return TableColumn(title, _cell(source or sources[title]), kind or "string", wide=text.startswith("+"))


def _cell(source: str) -> Callable[[Json, datetime], Any]:
    call = _CALL.fullmatch(source)
    if call is None:
        path, _, absent = source.partition(" or ")
        return _field(_path(path), {"0": 0, "1": 1, "false": False}.get(absent, absent), many="[*]" in path)
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
    """Compile a simple JSON path, as in printer columns, to a function that returns all values at the path."""
    steps = [step.groups() for step in _STEP.finditer(path)]

    def find(obj: Json) -> list[Any]:
        values: list[Any] = [obj]
        for step in steps:
            values = _follow(values, *step)
        return [value for value in values if value is not None]

    return find


def _follow(values: list[Any], name: str, field: str, wanted: str, index: str, quoted: str) -> list[Any]:
    if name or quoted:
        return [value[name or quoted] for value in values if isinstance(value, dict) and (name or quoted) in value]
    lists = [value for value in values if isinstance(value, list)]
    if index and index != "*":
        return [items[int(index)] for items in lists if len(items) > int(index)]
    items = [item for listed in lists for item in listed]
    if not field:
        return items
    return [item for item in items if isinstance(item, dict) and field in item and str(item[field]) == wanted]


def since(timestamp: str | None, now: datetime) -> str:
    """Format the time since a timestamp, as in kubectl's column AGE."""
    if not timestamp:
        return "<unknown>"
    return human((now - datetime.fromisoformat(timestamp.replace("Z", "+00:00")).astimezone(UTC)).total_seconds())


def human(seconds: float) -> str:
    """Format a duration as kubectl does, long durations with fewer digits: `5s`, `2m30s`, `3h`, `4d`, `2y10d`."""
    total = int(seconds)
    if total < 0:
        return "<invalid>" if total < -1 else "0s"
    if total < 120:
        return f"{total}s"
    units = next(units for limit, units in _SPANS if total < limit)
    whole, rest = divmod(total, _SECONDS[units[0]])
    part = rest // _SECONDS[units[1]] if len(units) > 1 else 0
    return f"{whole}{units[0]}" + (f"{part}{units[1]}" if part else "")


_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 24 * 3600, "y": 365 * 24 * 3600}
_SPANS = (
    (10 * 60, "ms"), (3 * 3600, "m"), (8 * 3600, "hm"), (2 * 24 * 3600, "h"), (8 * 24 * 3600, "dh"),
    (2 * _SECONDS["y"], "d"), (8 * _SECONDS["y"], "yd"), (inf, "y"),
)  # fmt: skip
"""Pairs of a limit and the units in which durations below it are shown, in ascending order. Units: seconds."""


def _pod_status(pod: Json) -> str:
    """Return the text of a pod's status column: the phase, or the reason that keeps the pod in the phase."""
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
    found = []
    for port in ports or ():
        outside = f":{port['nodePort']}" if port.get("nodePort") else ""
        found.append(f"{port['port']}{outside}/{port['protocol']}")
    return ",".join(found) or "<none>"


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
