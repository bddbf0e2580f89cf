"""Whether an object has the shape of a SchedulingPolicy: what `kubectl apply` would refuse, and YAML's own traps.

It asks the resource's own schema and knows no expressions. All of it is one code, because the API server has none.
"""

from __future__ import annotations

import copy
import difflib
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from policysched.app.definition import policy_schema
from policysched.language import Diagnostic
from policysched.model.policy import API_VERSION
from policysched.sandbox.schema import prune, validate

CODE: Final = "E0001"
"""The object does not fit its schema."""
QUOTE: Final = "quote it"
UNKNOWN: Final = "unknown field"
"""How the message about a field begins that the schema does not have."""
_NAME: Final = "a name has lower-case letters, digits and -, at most 63"
_LISTED: Final = re.compile(r"(\w+)\[(\d+)\]")
_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_TYPE: Final = re.compile(r'must be of type (?P<wanted>\S+): "(?P<found>\w+)"')
_WANTED: Final = {
    "string": "text",
    "integer,string": "text or a whole number",
    "integer": "a whole number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "number": "a number",
}
_FOUND: Final = {
    "string": "a text",
    "integer": "a whole number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "number": "a number",
    "null": "nothing",
}
Object = Mapping[str, Any]


def faults(policy: Object) -> Iterator[Diagnostic]:
    """Find what is wrong with a policy's shape, its fields' texts aside."""
    if policy.get("apiVersion") != API_VERSION:
        yield _fault("apiVersion", f"expected {API_VERSION}", policy.get("apiVersion"))
    yield from _name_faults(policy.get("metadata"))
    pruned = copy.deepcopy(dict(policy))
    unknown = prune(pruned, policy_schema())
    causes = list(validate(pruned, policy_schema()))
    wrong = tuple(f"{cause.field}." for cause in causes)
    for field in unknown:
        if not field.startswith(wrong):
            yield _fault(field, f'{UNKNOWN} "{_last(field)}"', _last(field), _suggest(field))
    for cause in causes:
        # The compiler finds names that are there twice, and says where.
        if cause.reason != "FieldValueDuplicate" or not cause.field.startswith("spec."):
            yield _explain(cause.field, cause.reason, cause.text, _value(policy, cause.field))


def mended(policy: Object, found: list[Diagnostic]) -> dict[str, Any]:
    """Give a policy without its faults as far as that goes, so that the rest of it can be checked too.

    Numbers and truth values become the texts they were meant as, fields that may be left out are left out, and for
    others something stands in: what is said of them or inside of them is no finding.
    """
    made: dict[str, Any] = copy.deepcopy(dict(policy))
    for number, one in enumerate(found):
        parent, name = _value(made, one.field.rpartition(".")[0]), _last(one.field)
        listed, item = _LISTED.fullmatch(name), _stand_in(one.field, number)
        if not isinstance(parent, dict):
            continue
        if listed:
            parent[listed[1]][int(listed[2])] = item
            continue
        value = parent.pop(name, None)
        if isinstance(value, bool | int | float) and one.help == QUOTE:
            parent[name] = str(value).lower()
        elif item is not None:
            parent[name] = item
    return made


def _stand_in(field: str, number: int) -> Any:
    """Give what a field or an item that has to be there is taken for, None where it may be left out."""
    name, place = f"x{number}", re.sub(r"\[\d+\]", "[]", field).removeprefix("spec.")
    items: dict[str, Any] = {
        "filters[]": {"name": name, "require": "true"},
        "scores[]": {"name": name, "value": "0"},
        "let[]": {"name": name, "value": "0"},
        "metrics[]": {"name": name, "query": "x"},
        "scores[].cases[]": "false → 0",
    }
    if place in items:
        return items[place]
    whole, _, last = place.rpartition(".")
    return items[whole].get(last) if whole in items and (whole, last) != ("scores[]", "value") else None


def _explain(field: str, reason: str, text: str, value: Any) -> Diagnostic:
    match = _TYPE.search(text)
    if match is not None:
        message = f"expected {_WANTED[match['wanted']]}, got {_FOUND[match['found']]}"
        return _fault(field, message, value, _how_to_write(match["wanted"], match["found"], value))
    if reason == "FieldValueRequired":
        return _fault(field, f"`{_last(field)}` is missing", None)
    short = text.replace(f"{field} in body ", "")
    return _fault(field, short[:1].lower() + short[1:], value, _NAME if "should match" in short else None)


def _name_faults(metadata: Any) -> Iterator[Diagnostic]:
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    if not name:
        yield _fault("metadata.name", "`name` is missing", None)
    elif not isinstance(name, str):
        yield _fault("metadata.name", "expected text", name, QUOTE)
    elif not _LABEL.fullmatch(name) or len(name) > 63:
        text = f'"{name}" is no DNS label'
        yield _fault("metadata.name", text, name, _NAME)


def _fault(field: str, message: str, value: object, help_text: str | None = None) -> Diagnostic:
    return Diagnostic("error", CODE, message, 1, 1, 1 + _width(value), help_text, field)


def _width(value: object) -> int:
    match value:
        case bool():
            return len(str(value))
        case str() | int() | float():
            return len(str(value).split("\n")[0])
    return 0


def _how_to_write(wanted: str, found: str, value: Any) -> str | None:
    if wanted == "array":
        return "write `- ` before each item"
    if "string" not in wanted:
        return None
    if isinstance(value, Mapping) and all(isinstance(one, int | float) for one in value.values()):
        return 'write `→` in place of ":"; YAML reads a key before it'
    if found == "object":
        return f'{QUOTE}: YAML reads a key before ": " and its value behind it'
    return QUOTE if found in ("boolean", "integer", "number") else None


def _last(field: str) -> str:
    return field.rpartition(".")[2]


def _value(value: Any, field: str) -> Any:
    for name, index in re.findall(r"([^.\[\]]+)|\[(\d+)\]", field):
        try:
            value = value[int(index)] if index else value[name]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def _suggest(field: str) -> str | None:
    if re.fullmatch(r"spec\.(pod|namespace)Selector\..*", field):
        return "labels stand under `matchLabels`"
    schema = policy_schema()
    for name in re.sub(r"\[\d+\]", "[]", field.rpartition(".")[0]).replace("[]", ".[]").split("."):
        schema = schema.get("items", {}) if name == "[]" else schema.get("properties", {}).get(name, {})
    close = difflib.get_close_matches(_last(field), schema.get("properties", {}), 1)
    return f'did you mean "{close[0]}"?' if close else None
