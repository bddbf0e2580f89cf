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
            yield _fault(field, f'unknown field "{_last(field)}"', None, _suggest(field))
    for cause in causes:
        yield _explain(cause.field, cause.reason, cause.text, _value(policy, cause.field))


def mended(policy: Object, found: list[Diagnostic]) -> dict[str, Any]:
    """Give a policy without its faults as far as that goes, so that the rest of it can be checked too.

    Numbers and truth values become the texts they were meant as, and fields that may be left out are left out.
    """
    made: dict[str, Any] = copy.deepcopy(dict(policy))
    for one in found:
        parent, name = _value(made, one.field.rpartition(".")[0]), _last(one.field)
        if isinstance(parent, dict) and name in parent:
            value = parent.pop(name)
            if isinstance(value, bool | int | float) and one.help == QUOTE:
                parent[name] = str(value).lower()
    return made


def _explain(field: str, reason: str, text: str, value: Any) -> Diagnostic:
    match = _TYPE.search(text)
    if match is not None:
        message = f"expected {_WANTED[match['wanted']]}, got {_FOUND[match['found']]}"
        return _fault(field, message, value, _how_to_quote(match["wanted"], match["found"]))
    if reason == "FieldValueRequired":
        return _fault(field, f"`{_last(field)}` is missing", None)
    short = text.replace(f"{field} in body ", "")
    return _fault(field, short[:1].lower() + short[1:], value)


def _name_faults(metadata: Any) -> Iterator[Diagnostic]:
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    if not name:
        yield _fault("metadata.name", "`name` is missing", None)
    elif not isinstance(name, str):
        yield _fault("metadata.name", "expected text", name, QUOTE)
    elif not _LABEL.fullmatch(name) or len(name) > 63:
        text = f'"{name}" is no DNS label'
        yield _fault("metadata.name", text, name, "a name has lower-case letters, digits and -, at most 63")


def _fault(field: str, message: str, value: object, help_text: str | None = None) -> Diagnostic:
    return Diagnostic("error", CODE, message, 1, 1, 1 + _width(value), help_text, field)


def _width(value: object) -> int:
    match value:
        case bool():
            return len(str(value))
        case str() | int() | float():
            return len(str(value).split("\n")[0])
    return 0


def _how_to_quote(wanted: str, found: str) -> str | None:
    if "string" not in wanted:
        return None
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
    schema = policy_schema()
    for name in re.sub(r"\[\d+\]", "[]", field.rpartition(".")[0]).replace("[]", ".[]").split("."):
        schema = schema.get("items", {}) if name == "[]" else schema.get("properties", {}).get(name, {})
    close = difflib.get_close_matches(_last(field), schema.get("properties", {}), 1)
    return f'did you mean "{close[0]}"?' if close else None
