"""Label and field selectors of query strings, compiled to predicates.

This module knows the syntax and the selectable fields of each kind, but not the storage. A selector that cannot be
parsed is a 400 error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any

from policysched.apimachinery import Json
from policysched.apimachinery.errors import StatusError
from policysched.apimachinery.resources import ApiResource

Predicate = Callable[[Json], bool]

_TERM = re.compile(
    r"\s*(?:(?P<absent>!)\s*(?P<no>[^\s=!,()<>]+)"
    r"|(?P<key>[^\s=!,()<>]++)(?:\s*+(?P<op>==|=|!=|<|>)\s*+(?P<value>[^\s,]*+)"
    r"|\s++(?P<set>in|notin)\s*+\((?P<values>[^)]*+)\))?)\s*+(?:,|$)"
)
_EVENT_FIELDS = {"regarding": "involvedObject", "reportingController": "reportingComponent"}


def label_predicate(text: str) -> Predicate | None:
    """Compile a label selector of a query string to a predicate; None for an empty selector, which selects all."""
    tests, at = [], 0
    while at < len(text.rstrip()):
        match = _TERM.match(text, at)
        if not match or match.end() == at:
            raise StatusError(400, f"unable to parse requirement: found '{text[at:]}', expected: identifier or '!'")
        tests.append(_label_test(match))
        at = match.end()
    if not tests:
        return None
    return lambda obj: _all(tests, obj["metadata"].get("labels") or {})


def _all(tests: list[Predicate], subject: Json) -> bool:
    return all(test(subject) for test in tests)


def _label_test(match: re.Match[str]) -> Predicate:
    if match["absent"]:
        return _requirement(match["no"], "DoesNotExist", ())
    if match["set"]:
        values = frozenset(item.strip() for item in match["values"].split(","))
        return _requirement(match["key"], "In" if match["set"] == "in" else "NotIn", values)
    operator, value = match["op"], match["value"]
    if operator in ("<", ">"):
        return _numeric_test(match["key"], operator, value)
    return _requirement(match["key"], {None: "Exists", "!=": "NotIn"}.get(operator, "In"), (value,))


def _requirement(key: str, operator: str, values: Collection[str]) -> Predicate:
    match operator:
        case "In":
            return lambda labels: key in labels and labels[key] in values
        case "NotIn":
            return lambda labels: key not in labels or labels[key] not in values
        case "Exists":
            return lambda labels: key in labels
    return lambda labels: key not in labels


def _numeric_test(key: str, operator: str, value: str) -> Predicate:
    if not re.fullmatch(r"-?\d+", value):
        text = f"values: Invalid value: {value!r}: for 'Gt', 'Lt' operators, the value must be an integer"
        raise StatusError(400, text)
    bound = int(value)

    def holds(labels: Json) -> bool:
        text = str(labels.get(key, ""))
        if not re.fullmatch(r"-?\d+", text):
            return False
        return int(text) > bound if operator == ">" else int(text) < bound

    return holds


def object_selected(selector: Json | None, labels: Json) -> bool:
    """Return whether an object's LabelSelector (such as `spec.selector`) matches labels; None matches nothing."""
    if selector is None:
        return False
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    terms = selector.get("matchExpressions") or ()
    return all(_requirement(term["key"], term["operator"], term.get("values") or ())(labels) for term in terms)


def field_predicate(text: str, resource: ApiResource) -> Predicate | None:
    """Compile a field selector of a query string to a predicate; None for an empty selector, which selects all."""
    tests = [_field_test(term, resource) for term in re.split(r"(?<!\\),", text) if term]
    if not tests:
        return None
    return lambda obj: _all(tests, obj)


def _field_test(term: str, resource: ApiResource) -> Predicate:
    match = re.fullmatch(r"([^=!]+)(==|=|!=)(.*)", term, re.DOTALL)
    if not match:
        raise StatusError(400, f"invalid selector: \"{term}\"; can't understand '{term}'")
    path, value = match[1].strip(), re.sub(r"\\(.)", r"\1", match[3])
    read = _reader(path, resource)
    equal = match[2] != "!="
    return lambda obj: (read(obj) == value) is equal


def _reader(path: str, resource: ApiResource) -> Callable[[Json], str]:
    if path not in ("metadata.name", "metadata.namespace", *resource.selectable):
        shown = path if resource.custom is None else f'"{path}"'
        raise StatusError(400, f"field label not supported: {shown}")
    steps = path.split(".")
    if resource.key == "events":
        steps = [_EVENT_FIELDS.get(steps[0], steps[0]), *steps[1:]]
    if steps == ["source"]:
        return lambda obj: (obj.get("source") or {}).get("component") or obj.get("reportingComponent", "")
    absent = "false" if steps[-1] in ("unschedulable", "hostNetwork") else ""

    def read(obj: Any) -> str:
        for step in steps:
            obj = obj.get(step) if isinstance(obj, dict) else None
        if isinstance(obj, bool):
            return "true" if obj else "false"
        return absent if obj is None else str(obj)

    return read


def selector_text(selector: Json | None) -> str:
    """Format a label selector as kubectl prints it."""
    if not selector:
        return ""
    plain = "matchLabels" not in selector and "matchExpressions" not in selector
    labels = selector if plain else selector.get("matchLabels") or {}
    parts = [f"{key}={value}" for key, value in sorted(labels.items())]
    for term in () if plain else selector.get("matchExpressions") or ():
        values = ",".join(sorted(term.get("values") or ()))
        match term["operator"]:
            case "Exists":
                parts.append(term["key"])
            case "DoesNotExist":
                parts.append(f"!{term['key']}")
            case operator:
                parts.append(f"{term['key']} {operator.lower()} ({values})")
    return ",".join(parts)
