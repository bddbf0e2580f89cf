"""The schemas of the built-in kinds, read from `fields/*.txt`.

A line there is a type and its fields, `name=number:type`: `*type` where absent and empty differ, `/key` where lists
merge by that key, `/` where they merge as sets, `+number:type` for fields that JSON writes inline. `defaults.txt` has
what the API server fills in whatever else an object says. Each type becomes a structural OpenAPI schema, the form that
definitions of custom resources have, so that one code decodes, completes, merges and describes both. What OpenAPI
cannot say stands under `x-go-type` and `x-struct`, and defaults by struct under `x-defaults`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from policysched.sandbox.objects import Json, decode

GO_TYPE = "x-go-type"
"""Under which a schema has the name of its Go type: such values are decoded as Go does it."""
STRUCT = "x-struct"
"""Under which the schema of a struct has its qualified name, `core.Pod`."""
DEFAULTS = "x-defaults"
"""Under which the schema of a struct has the defaults of its fields."""
_FIELD = re.compile(
    r"(?:(?P<name>[\w$][\w$-]*)|\+)(?:=?(?P<number>\d+))?:(?P<pointer>\*?)(?P<type>[^/]+)(?:/(?P<key>\w*))?"
)
_GROUPS = {
    "": "core",
    "apps": "apps",
    "policy": "policy",
    "scheduling.k8s.io": "scheduling",
    "storage.k8s.io": "storage",
    "coordination.k8s.io": "coordination",
    "events.k8s.io": "events",
    "resource.k8s.io": "resource",
    "rbac.authorization.k8s.io": "rbac",
    "apiextensions.k8s.io": "apiextensions",
    "authorization.k8s.io": "authorization",
    "autoscaling": "autoscaling",
}
_SCALARS: dict[str, Json] = {
    "string": {"type": "string", GO_TYPE: "string"},
    "bool": {"type": "boolean", GO_TYPE: "bool"},
    "int": {"type": "integer", "format": "int64", GO_TYPE: "int32"},
    "float": {"type": "number", "format": "double", GO_TYPE: "float64"},
    "bytes": {"type": "string", "format": "byte", GO_TYPE: "[]uint8"},
    "quantity": {"oneOf": [{"type": "string"}, {"type": "number"}], GO_TYPE: "quantity"},
    "time": {"type": "string", "format": "date-time", GO_TYPE: "time"},
    "microtime": {"type": "string", "format": "date-time", GO_TYPE: "microtime"},
    "duration": {"type": "string", GO_TYPE: "duration"},
    "intorstring": {
        "oneOf": [{"type": "integer"}, {"type": "string"}],
        "format": "int-or-string",
        GO_TYPE: "intorstring",
    },
    "any": {"x-kubernetes-preserve-unknown-fields": True, GO_TYPE: "any"},
}


@dataclass(frozen=True, slots=True)
class FieldRow:
    """A field of a struct; without a name, JSON writes the fields of its type inline."""

    name: str
    schema: Json
    number: int
    pointer: bool


def struct_name(group: str, kind: str) -> str:
    """Name the struct of a built-in kind, `core.Pod`; the table need not have it."""
    return f"{_GROUPS.get(group, '')}.{kind}"


def struct(name: str) -> Json | None:
    """Return the schema of a struct, None where there is none; it is shared and must not be changed."""
    return _table()[0].get(name)


def rows(name: str) -> list[FieldRow]:
    """Return the fields of a struct as the table lists them."""
    return _table()[1][name]


@cache
def _table() -> tuple[dict[str, Json], dict[str, list[FieldRow]]]:
    """Read all structs: their schemas, which contain each other, and their rows."""
    lines = {f"{group}.{name}": rest for group in {*_GROUPS.values(), "meta"} for name, rest in _lines(group)}
    schemas: dict[str, Json] = {
        name: {"type": "object", "properties": {}, GO_TYPE: f"v1.{name.partition('.')[2]}", STRUCT: name}
        for name in lines
    }
    table = {
        name: [_row(text, name.partition(".")[0], schemas) for text in texts.split()] for name, texts in lines.items()
    }
    for name, schema in schemas.items():
        schema["properties"].update(_properties(name, table))
    for name, texts in _lines("defaults"):
        fields = (text.partition("=") for text in texts.split())
        schemas[name][DEFAULTS] = {field: decode(value) for field, _, value in fields}
    return schemas, table


def _lines(file: str) -> Iterator[tuple[str, str]]:
    text = files("policysched.sandbox.objects").joinpath("fields", f"{file}.txt").read_text("utf-8")
    for line in text.splitlines():
        name, _, rest = line.partition(" ")
        yield name, rest


def _row(text: str, group: str, schemas: dict[str, Json]) -> FieldRow:
    match = _FIELD.fullmatch(text)
    if match is None:
        raise ValueError(f"not a field: {text}")
    schema = _schema(match["type"], group, schemas)
    if match["key"] is not None:
        schema["x-kubernetes-patch-strategy"] = "merge"
        if match["key"]:
            schema["x-kubernetes-patch-merge-key"] = match["key"]
    return FieldRow(match["name"] or "", schema, int(match["number"] or 0), bool(match["pointer"]))


def _schema(text: str, group: str, schemas: dict[str, Json]) -> Json:
    if text[0] == "[":
        item = _schema(text[1:-1], group, schemas)
        return {"type": "array", "items": item, GO_TYPE: f"[]{item[GO_TYPE]}"}
    if text[0] == "{":
        item = _schema(text[1:-1], group, schemas)
        return {"type": "object", "additionalProperties": item, GO_TYPE: f"map[string]{item[GO_TYPE]}"}
    return _SCALARS.get(text) or schemas[text if "." in text else f"{group}.{text}"]


def _properties(name: str, table: dict[str, list[FieldRow]]) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for row in table[name]:
        found |= {row.name: row.schema} if row.name else _properties(row.schema[STRUCT], table)
    return found
