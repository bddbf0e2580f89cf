"""The reference of fields: every field of a SchedulingPolicy, from the schema of its CustomResourceDefinition."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, TypeAlias

from policysched.app.checking.schema import policy_schema
from tools.reference.tables import table

PAGE: Final = Path(__file__).parents[2] / "docs" / "reference" / "fields.md"
HEAD: Final = """---
description: Every field of a SchedulingPolicy with its type, default, limits and meaning.
---

# Fields of a SchedulingPolicy

Look up a field of a policy's `spec` or `status`. `kubectl explain spol.spec --recursive` shows the same descriptions.
[Write a policy](../write/language.md) shows how to use the fields. `[]` marks the items of a list.
"""
SECTIONS: Final = (
    ("spec", "spec", ("metrics", "let", "filters", "scores", "preemption")),
    ("spec.metrics[]", "spec.metrics", ()),
    ("spec.let[]", "spec.let", ()),
    ("spec.filters[]", "spec.filters", ()),
    ("spec.scores[]", "spec.scores", ()),
    ("spec.preemption", "spec.preemption", ()),
    ("status", "status", ("conditions", "diagnostics", "cost", "instances")),
    ("status.conditions[]", "status.conditions", ()),
    ("status.diagnostics[]", "status.diagnostics", ()),
    ("status.cost", "status.cost", ()),
    ("status.instances[]", "status.instances", ()),
)
"""Sections of the page: path of an object, heading, and the fields that have a section of their own."""
COLUMNS: Final = ("field", "type", "default", "limits", "description")
Schema: TypeAlias = dict[str, Any]


def page() -> str:
    """Return the text of the reference page about the fields of a SchedulingPolicy."""
    return "\n".join([HEAD, *(_section(*section) for section in SECTIONS)])


def _section(path: str, heading: str, apart: tuple[str, ...]) -> str:
    schema = _schema_at(path)
    rows = (row for name in schema["properties"] for row in _rows(schema, name, name, apart))
    level = "###" if "." in path else "##"
    return f"{level} {heading}\n\n{_sentence(schema['description'])}\n\n{table(COLUMNS, rows)}"


def _rows(parent: Schema, name: str, path: str, apart: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the row of a field, then the rows of its subfields unless they have their own section."""
    schema: Schema = parent["properties"][name]
    required = "required" if name in parent.get("required", ()) else ""
    default = f"`{schema['default']}`" if "default" in schema else required
    yield f"`{path}`", _type(schema), default, "; ".join(_limits(schema)), _sentence(schema["description"])
    if name in apart:
        return
    inner, mark = (schema["items"], f"{path}[]") if "items" in schema else (schema, path)
    for one in inner.get("properties", {}):
        yield from _rows(inner, one, f"{mark}.{one}")


def _schema_at(path: str) -> Schema:
    schema = policy_schema()
    for name in path.split("."):
        whole: Schema = schema["properties"][name.removesuffix("[]")]
        schema = {"description": whole["description"], **whole["items"]} if name.endswith("[]") else whole
    return schema


def _type(schema: Schema) -> str:
    if schema.get("x-kubernetes-int-or-string"):
        return "string or integer"
    if "enum" in schema:
        return " or ".join(f"`{one}`" for one in schema["enum"])
    if "items" in schema:
        return f"list of {_type(schema['items'])}s".replace("ys", "ies")
    if "additionalProperties" in schema:
        return "map of strings"
    return "time" if schema.get("format") == "date-time" else str(schema["type"])


def _limits(schema: Schema) -> Iterator[str]:
    if "minimum" in schema:
        yield f"{schema['minimum']} to {schema['maximum']}"
    if "maxItems" in schema:
        yield f"at most {schema['maxItems']} items"
    for inner in (schema, schema.get("items", {})):
        if "maxLength" in inner:
            yield f"at most {inner['maxLength']} characters" + (" per item" if inner is not schema else "")
        if "pattern" in inner:
            yield "a DNS label"


def _sentence(text: str) -> str:
    return " ".join(text.split())
