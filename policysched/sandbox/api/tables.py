"""Tables as `kubectl get` asks for: column definitions and one row an object.

It knows the built-in kinds' columns by their lists and a CRD's by its printer columns. Rows carry the object's
metadata alone unless the request wants all of it, because kubectl needs no more to sort and to label.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from policysched.sandbox.api.cells import BUILTIN
from policysched.sandbox.api.columns import NAME, Column
from policysched.sandbox.api.durations import since
from policysched.sandbox.objects import Json

if TYPE_CHECKING:
    from datetime import datetime

    from policysched.sandbox.objects.resources import Resource

_CREATED = Column("Created At", lambda obj, _: obj["metadata"].get("creationTimestamp", ""))
_STEP = re.compile(r"\.?([\w-]+)|\[\?\(@\.([\w.]+)\s*==\s*[\"']([^\"']*)[\"']\)\]|\[(\d+|\*)\]|\[['\"]([^'\"]+)['\"]\]")


def wants_table(accept: str) -> bool:
    """Tell whether a client asks for tables before plain objects."""
    return "as=Table" in accept


def columns_of(resource: Resource) -> list[Column]:
    """List the columns of a resource."""
    if resource.custom is None:
        return BUILTIN.get(resource.key, [NAME, _CREATED])
    printed = resource.custom.get("additionalPrinterColumns")
    if not printed:
        printed = [{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}]
    return [NAME, *map(_custom, printed)]


def _custom(column: Json) -> Column:
    path, kind = column["jsonPath"], column["type"]

    def cell(obj: Json, now: datetime) -> Any:
        found = _find([obj], path)
        if not found:
            return None
        if kind == "date":
            return since(found[0], now)
        return found[0] if kind in ("integer", "number", "boolean") else _printed(found)

    return Column(column["name"], cell, kind, wide=bool(column.get("priority", 0)))


def _printed(found: list[Any]) -> str:
    return ",".join(str(value).lower() if isinstance(value, bool) else str(value) for value in found)


def _find(values: list[Any], path: str) -> list[Any]:
    """Follow a JSON path of the simple kind that printer columns use."""
    for step in _STEP.finditer(path):
        name, field, wanted, index, quoted = step.groups()
        if name or quoted:
            values = [value[name or quoted] for value in values if _has(value, name or quoted)]
        elif field:
            items = [item for value in values if isinstance(value, list) for item in value]
            values = [item for item in items if _has(item, field) and str(item[field]) == wanted]
        elif index == "*":
            values = [item for value in values if isinstance(value, list) for item in value]
        else:
            values = [value[int(index)] for value in values if len(value) > int(index)]
    return [value for value in values if value is not None]


def _has(value: Any, name: str) -> bool:
    return isinstance(value, dict) and name in value


def table(resource: Resource, objects: list[Json], now: datetime, include: str = "Metadata") -> Json:
    """Build a table of objects."""
    columns = columns_of(resource)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {},
        "columnDefinitions": [_definition(column) for column in columns],
        "rows": [_row(columns, obj, now, include) for obj in objects],
    }


def _definition(column: Column) -> Json:
    name_format = "name" if column.name == "Name" else ""
    return {
        "name": column.name,
        "type": column.type,
        "format": name_format,
        "description": "",
        "priority": int(column.wide),
    }


def _row(columns: list[Column], obj: Json, now: datetime, include: str) -> Json:
    row: Json = {"cells": [column.cell(obj, now) for column in columns]}
    match include:
        case "Object":
            row["object"] = obj
        case "None":
            row["object"] = None
        case _:
            partial = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
            row["object"] = partial | {"metadata": obj["metadata"]}
    return row
