"""Label and field selectors as query strings write them, compiled to predicates.

It knows the syntax and which fields a kind lets one select by, not where objects are kept. A selector that
cannot be parsed is the caller's mistake and ends the request with 400.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from policysched.sandbox.objects.errors import StatusError
from policysched.sandbox.objects.resources import ApiResource

Json = dict[str, Any]
Predicate = Callable[[Json], bool]

_TERM = re.compile(
    r"\s*(?:(?P<absent>!)\s*(?P<no>[^\s=!,()<>]+)"
    r"|(?P<key>[^\s=!,()<>]++)(?:\s*+(?P<op>==|=|!=|<|>)\s*+(?P<value>[^\s,]*+)"
    r"|\s++(?P<set>in|notin)\s*+\((?P<values>[^)]*+)\))?)\s*+(?:,|$)"
)
_SELECTABLE = {
    "pods": (
        "spec.nodeName spec.restartPolicy spec.schedulerName spec.serviceAccountName spec.hostNetwork "
        "status.phase status.podIP status.podIPs status.nominatedNodeName"
    ),
    "events": (
        "involvedObject.kind involvedObject.namespace involvedObject.name involvedObject.uid "
        "involvedObject.apiVersion involvedObject.resourceVersion involvedObject.fieldPath reason "
        "reportingComponent source type"
    ),
    "nodes": "spec.unschedulable",
    "namespaces": "status.phase",
    "secrets": "type",
    "replicasets.apps": "status.replicas",
    "replicationcontrollers": "status.replicas",
    "resourceslices.resource.k8s.io": "spec.nodeName spec.driver",
}
_EVENT_FIELDS = {"regarding": "involvedObject", "reportingController": "reportingComponent"}


def label_predicate(text: str) -> Predicate | None:
    """Compile a label selector; an empty one selects everything and gives None."""
    tests = [_label_test(match) for match in _terms(text)]
    if not tests:
        return None
    return lambda obj: _all(tests, obj["metadata"].get("labels") or {})


def _all(tests: list[Predicate], subject: Json) -> bool:
    return all(test(subject) for test in tests)


def _terms(text: str) -> list[re.Match[str]]:
    terms, at = [], 0
    while at < len(text.rstrip()):
        match = _TERM.match(text, at)
        if not match or match.end() == at:
            message = f"unable to parse requirement: found '{text[at:]}', expected: identifier or '!'"
            raise StatusError(400, message)
        terms.append(match)
        at = match.end()
    return terms


def _label_test(match: re.Match[str]) -> Predicate:
    if match["absent"]:
        absent = match["no"]
        return lambda labels: absent not in labels
    key, value = match["key"], match["value"]
    if match["set"]:
        values = frozenset(item.strip() for item in match["values"].split(","))
        wanted = match["set"] == "in"
        return lambda labels: (labels[key] in values) is wanted if key in labels else not wanted
    match match["op"]:
        case None:
            return lambda labels: key in labels
        case "=" | "==":
            return lambda labels: labels.get(key) == value
        case "!=":
            return lambda labels: labels.get(key) != value
        case operator:
            return _numeric_test(key, operator, value)


def _numeric_test(key: str, operator: str, value: str) -> Predicate:
    if not re.fullmatch(r"-?\d+", value):
        raise StatusError(
            400, f"values: Invalid value: {value!r}: for 'Gt', 'Lt' operators, the value must be an integer"
        )
    bound = int(value)

    def holds(labels: Json) -> bool:
        text = str(labels.get(key, ""))
        if not re.fullmatch(r"-?\d+", text):
            return False
        return int(text) > bound if operator == ">" else int(text) < bound

    return holds


def object_selected(selector: Json | None, labels: Json) -> bool:
    """Whether a LabelSelector of an object selects labels; None selects nothing."""
    if selector is None:
        return False
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(_expression(term, labels) for term in selector.get("matchExpressions") or ())


def _expression(term: Json, labels: Json) -> bool:
    key, values = term["key"], term.get("values") or []
    match term["operator"]:
        case "In":
            return key in labels and labels[key] in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
    return key not in labels


def field_predicate(text: str, resource: ApiResource) -> Predicate | None:
    """Compile a field selector; an empty one selects everything and gives None."""
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
    if path not in ("metadata.name", "metadata.namespace", *_paths(resource)):
        raise StatusError(
            400, f"field label not supported: {path}" if not resource.custom else f'field label not supported: "{path}"'
        )
    steps = path.split(".")
    if resource.key == "events":
        steps = [_EVENT_FIELDS.get(steps[0], steps[0]), *steps[1:]]
    if steps == ["source"]:
        return lambda obj: (obj.get("source") or {}).get("component") or obj.get("reportingComponent", "")
    return lambda obj: _text(_dig(obj, steps), steps[-1])


def _paths(resource: ApiResource) -> list[str]:
    if resource.custom is not None:
        return [row["jsonPath"].lstrip(".") for row in resource.custom.get("selectableFields", ())]
    listed = _SELECTABLE.get(resource.key, "").split()
    if resource.group == "events.k8s.io":
        return [path.replace("involvedObject", "regarding") for path in listed] + ["reportingController"]
    return listed


def _dig(obj: Any, steps: list[str]) -> Any:
    for step in steps:
        if not isinstance(obj, dict):
            return None
        obj = obj.get(step)
    return obj


def _text(value: Any, name: str) -> str:
    match value:
        case None:
            return "false" if name in ("unschedulable", "hostNetwork") else ""
        case bool():
            return "true" if value else "false"
        case _:
            return str(value)


def selector_text(selector: Json | None) -> str:
    """Write a selector as kubectl does."""
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
