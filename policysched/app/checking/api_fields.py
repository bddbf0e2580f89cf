"""Detection of fields that an API server does not know, and of values with wrong types.

The tables of the sandbox define the fields of each kind. An object of a kind without a table has no errors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from policysched.apimachinery.resources import GO_TYPE, STRUCT, struct, struct_name
from policysched.language.messages.suggestions import did_you_mean
from policysched.model.quantity import QuantityError, parse

Schema = Mapping[str, Any]
_WORDS: Final = {"string": "text", "array": "a list", "object": "an object", "integer": "a whole number"}
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "object": (Mapping,),
    "array": (list,),
}
_NAMES: Final = {bool: "bool", int: "int", float: "float", str: "str", list: "array"}


class ApiFault(NamedTuple):
    """A field that an API server would reject."""

    field: str
    """Path of the field in the object."""
    reason: str
    is_unknown: bool = False
    """Whether the field does not exist; then the position of the error is the position of the field's key."""
    meant: str = ""
    """Name of the existing field with the most similar name, if the field does not exist."""


def schema_of(raw: Mapping[str, Any]) -> Schema | None:
    """Return the schema of an object by apiVersion and kind; None if the schema of the kind is unknown."""
    version = raw.get("apiVersion")
    group = version.rpartition("/")[0] if isinstance(version, str) else ""
    for name in (group, *(_GROUPS if not version else ())):
        found = struct(struct_name(name, str(raw.get("kind"))))
        if found is not None:
            return found
    return None


_GROUPS: Final = ("apps", "node.k8s.io", "policy", "storage.k8s.io", "scheduling.k8s.io", "resource.k8s.io")
"""API groups in which the kind of an object without an apiVersion is searched."""


def field_faults(value: Any, schema: Schema, path: str = "") -> Iterator[ApiFault]:
    """Yield the errors of a value compared with its schema.

    Args:
        value: An object, or a part of one.
        schema: Its schema.
        path: Path of the value in the object.
    """
    if value is None:
        return
    if not _conforms(value, schema):
        yield ApiFault(path, _wrong_type(value, schema))
    elif isinstance(value, Mapping):
        yield from _members(value, schema, path)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from field_faults(item, schema.get("items") or {}, f"{path}[{index}]")
    elif schema.get(GO_TYPE) == "quantity":
        try:
            parse(value)
        except QuantityError as error:
            yield ApiFault(path, str(error))


def _members(value: Mapping[str, Any], schema: Schema, path: str) -> Iterator[ApiFault]:
    known, more = schema.get("properties") or {}, schema.get("additionalProperties")
    for name, item in value.items():
        place = f"{path}.{name}" if path else str(name)
        inner = known.get(name, more)
        if inner is not None:
            yield from field_faults(item, inner, place)
        elif STRUCT in schema:
            meant = did_you_mean(str(name), known)
            named = meant.partition("`")[2].partition("`")[0]
            yield ApiFault(place, "unknown field" + (f"; {meant}" if meant else ""), is_unknown=True, meant=named)


def _conforms(value: Any, schema: Schema) -> bool:
    """Return whether a value has the type of a schema; a boolean is not a number."""
    if "oneOf" in schema:
        return any(_conforms(value, one) for one in schema["oneOf"])
    wanted = _TYPES.get(schema.get("type", ""))
    if wanted is None:
        return True
    return isinstance(value, wanted) and (not isinstance(value, bool) or bool in wanted)


def _wrong_type(value: Any, schema: Schema) -> str:
    kinds = [one["type"] for one in schema.get("oneOf", ())] or [str(schema.get("type"))]
    wanted = " or ".join(_WORDS.get(one, f"a {one}") for one in kinds)
    help_text = ": quote it" if "string" in kinds and isinstance(value, int | float) else ""
    return f"expected {wanted}, got {_NAMES.get(type(value), 'object')}{help_text}"
