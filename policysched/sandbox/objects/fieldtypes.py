"""The fields of the built-in kinds: names, types, protobuf numbers and patch keys, read from `fields/*.txt`.

A line there is a type and its fields, `name=number:type`: `*type` where absent and empty differ, `/key` where
lists merge by that key, `/` where they merge as sets, `+number:type` for fields that JSON writes inline. It knows
no object's meaning. One table serves strict decoding, strategic merge, OpenAPI and protobuf, so that they cannot
disagree.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from policysched.sandbox.objects.resources import Resource

SCALARS = frozenset(
    {"string", "bool", "int", "float", "bytes", "quantity", "time", "microtime", "duration"}
    | {"intorstring", "any", "byte"}
)
_FIELD = re.compile(r"(?:([\w$][\w$-]*)|\+)(?:=?(\d+))?:(\*?)([^/!]+)(?:(/)([\w]*))?(!?)")


@dataclass(frozen=True, slots=True)
class Type:
    """A type: a scalar's name, `list` or `map` of an item, or `struct` with a qualified name."""

    shape: str
    name: str = ""
    item: Type | None = None


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a struct; `merge` is None where lists are replaced, "" where they merge as sets."""

    type: Type
    number: int
    merge: str | None = None
    pointer: bool = False


MOST_STRUCTS = 2048
"""Of how many structs the fields are kept: more than there are."""
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


def type_name(group: str, kind: str) -> str:
    """Name the struct of a built-in kind, `core.Pod`."""
    return f"{_GROUPS.get(group, '')}.{kind}"


def type_of(resource: Resource) -> Type | None:
    """Return the struct of a built-in resource; a custom one has none."""
    name = type_name(resource.group, resource.kind)
    return Type("struct", name) if resource.custom is None and name in _lines() else None


@cache
def _lines() -> dict[str, str]:
    found = {}
    for group in {*_GROUPS.values(), "meta"}:
        text = files("policysched.sandbox.objects").joinpath("fields", f"{group}.txt").read_text("utf-8")
        for line in text.splitlines():
            name, _, fields = line.partition(" ")
            found[f"{group}.{name}"] = fields
    return found


def names() -> list[str]:
    """List every struct, `group.Name`."""
    return sorted(_lines())


@lru_cache(maxsize=MOST_STRUCTS)
def inlined(struct: str) -> dict[int, Type]:
    """Return the structs whose fields JSON writes inline, by protobuf number."""
    group = struct.partition(".")[0]
    rows = map(_FIELD.fullmatch, _lines()[struct].split())
    return {int(row[2]): _type(row[4], group) for row in rows if row and row[1] is None and row[2]}


@lru_cache(maxsize=MOST_STRUCTS)
def fields(struct: str) -> dict[str, Field]:
    """Return the JSON fields of a struct, inline ones included."""
    group = struct.partition(".")[0]
    found: dict[str, Field] = {}
    for text in _lines()[struct].split():
        row = _FIELD.fullmatch(text)
        if row is None:
            raise ValueError(f"not a field: {text}")
        kind = _type(row[4], group)
        if row[1] is None:
            found |= {name: replace(each, number=0) for name, each in fields(kind.name).items()}
        else:
            found[row[1]] = Field(kind, int(row[2] or 0), row[6] if row[5] else None, bool(row[3]))
    return found


def _type(text: str, group: str) -> Type:
    if text[0] in "[{":
        return Type("list" if text[0] == "[" else "map", item=_type(text[1:-1], group))
    if text in SCALARS:
        return Type(text)
    return Type("struct", text if "." in text else f"{group}.{text}")
