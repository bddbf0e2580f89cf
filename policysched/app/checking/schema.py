"""Validation against the SchedulingPolicy schema, as by `kubectl apply`, and detection of YAML traps.

The schema is the one in the package's CustomResourceDefinition. This module does not check expressions. All errors have
one code, because the API server has none.
"""

from __future__ import annotations

import copy
import difflib
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import resources
from itertools import islice
from typing import Any, Final

from policysched.apimachinery.errors import Cause
from policysched.apimachinery.schema import prune, validate
from policysched.app.checking.label_texts import as_selector
from policysched.app.definition import DEFINITION_FILE, definition_text
from policysched.language import Diagnostic
from policysched.model.policy import API_GROUP, API_VERSION, API_VERSIONS, KIND
from policysched.model.selection.name_validation import is_label_name
from policysched.reading.yaml_nodes import read_yaml


@cache
def policy_definition() -> dict[str, Any]:
    """Return the CustomResourceDefinition of SchedulingPolicy; callers must not change the returned object.

    Raises:
        PolicyschedError: the installation lacks the file.
    """
    found: dict[str, Any] = read_yaml(definition_text(), DEFINITION_FILE)[0][0]
    return found


@cache
def policy_schema() -> dict[str, Any]:
    """Return the schema of SchedulingPolicy objects, equal in all versions; callers must not change the schema."""
    schema: dict[str, Any] = policy_definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


CODE: Final = "E0001"
"""Error code of findings about violations of the schema."""
QUOTE: Final = "quote it"
UNKNOWN: Final = "unknown field"
"""First words of the message about an unknown field."""
_NAME: Final = "use at most 63 lower-case letters, digits and `-`"
_LISTED: Final = re.compile(r"(\w+)\[(\d+)\]")
_TYPE: Final = re.compile(r'must be of type (?P<wanted>\S+): "(?P<found>\w+)"')
_BOOLEANS: Final = frozenset({"true", "false"})
_NO_CASE: Final = "false → 0"
_ANY_SCORE: Final = "node.allocatable.pods"
_ANY_CONDITION: Final = "node.ready"
"""A valid condition that replaces a broken condition, so that the other fields of the policy can be checked."""
_SCORE: Final = re.compile(r"spec\.scores\[\d+\]\.\w+")
_CASE: Final = "a case has the form `guard → number`"
_AS_CASE: Final = re.compile(r"->|→")
_LINE: Final = re.compile(r"(\w+)\s*[:=]\s*(.+)", re.DOTALL)
"""Pattern of a `let` item that a user wrote as one text, such as `name: expression`."""
_ARMS: Final = ("value", "score", "then", "points", "weight")
_GUARDS: Final = ("when", "if", "guard", "condition", "expression", "require")
MOST: Final = 100
"""Largest number of fields of an object with findings; findings about further fields are dropped."""
_LONGEST: Final = 60
"""Longest part of a user's text in a help message. Units: characters."""
Object = Mapping[str, Any]


_EXPRESSIONS: Final = frozenset({"appliesTo", "require", "when", "value"})
_RULES: Final = "write `filters` to reject nodes, `scores` to prefer nodes"


@cache
def _words() -> Mapping[str, Mapping[str, str]]:
    """Return the tables of `schema.toml` with the correct word for each word that users write wrongly."""
    tables = tomllib.loads(resources.files(__package__).joinpath("schema.toml").read_text("utf-8"))
    return {
        name: {word: meant for meant, words in table.items() for word in words.split()}
        for name, table in tables.items()
    }


def is_meant(policy: Object) -> bool:
    """Return whether a user probably intends an object to be a SchedulingPolicy, whatever its kind."""
    kind, version = policy.get("kind"), policy.get("apiVersion")
    if kind == KIND:
        return True
    if isinstance(version, str) and version.partition("/")[0] == API_GROUP:
        return True
    return isinstance(kind, str) and bool(difflib.get_close_matches(kind[:_LONGEST], [KIND], 1, 0.75))


def faults(policy: Object) -> Iterator[Diagnostic]:
    """Yield the violations of the schema by a policy, except in the texts of expressions."""
    if policy.get("kind") != KIND:
        yield _fault("kind", f"expected {KIND}", policy.get("kind"), f"did you mean `{KIND}`?")
    version = policy.get("apiVersion")
    if version not in API_VERSIONS:
        got = f', got "{version:.100}"' if isinstance(version, str) else ""
        yield _fault("apiVersion", f"expected {API_VERSION}{got}", version)
    yield from _name_faults(policy.get("metadata"))
    pruned = copy.deepcopy(dict(policy))
    unknown = prune(pruned, policy_schema())
    causes = list(islice(validate(pruned, policy_schema()), MOST + 1))
    yield from _faults_of_fields(policy, unknown[:MOST], causes[:MOST])
    if len(unknown) > MOST or len(causes) > MOST:
        yield _fault("", f"more than {MOST} fields have errors; the others are not shown", None)


def _faults_of_fields(policy: Object, unknown: list[str], causes: list[Cause]) -> Iterator[Diagnostic]:
    wrong = tuple(f"{cause.field}." for cause in causes)
    texts = [field for field in unknown if isinstance(_value(policy, field), str)]
    meant = {f"{field.rpartition('.')[0]}.{_meant(field) or _denied(field)}" for field in texts}
    for field in unknown:
        if not field.startswith(wrong):
            yield _fault(field, f'{UNKNOWN} "{_last(field)}"', _last(field), _suggest(field, _value(policy, field)))
    for cause in causes:
        if cause.reason == "FieldValueRequired" and cause.field in meant:
            continue
        # The compiler finds duplicate or empty names, with their positions.
        duplicate = cause.reason == "FieldValueDuplicate" and cause.field.startswith("spec.")
        if not duplicate and not (cause.field.startswith("spec.schedulerNames[") and _value(policy, cause.field) == ""):
            yield _explain(cause.field, cause.reason, cause.text, _value(policy, cause.field))


def mended(policy: Object, found: list[Diagnostic]) -> dict[str, Any]:
    """Return a policy in which violations of the schema are repaired as far as possible, to check its other fields.

    Numbers and booleans become texts, optional fields are removed, and required fields get placeholders. Findings about
    or inside of placeholders are dropped.
    """
    made: dict[str, Any] = copy.deepcopy(dict(policy))
    for number, one in enumerate(found):
        parent, name = _value(made, one.field.rpartition(".")[0]), _last(one.field)
        listed, item = _LISTED.fullmatch(name), _stand_in(one.field, number)
        if not isinstance(parent, dict):
            continue
        if listed:
            items, place = parent.get(listed[1]), int(listed[2])
            if isinstance(items, list) and place < len(items):  # an earlier repair can have removed the list
                items[place] = _let_of(one.field, items[place]) or item
            continue
        _mend_field(parent, name, one, item)
    return made


def _mend_field(parent: dict[str, Any], name: str, fault: Diagnostic, item: Any) -> None:
    value = parent.pop(name, None)
    meant = _meant(fault.field) if fault.message.startswith(UNKNOWN) else ""
    denied = _denied(fault.field) if fault.message.startswith(UNKNOWN) else ""
    if meant and isinstance(value, str):
        parent.setdefault(meant, value)
    elif denied and isinstance(value, str):
        parent.setdefault(denied, _ANY_CONDITION)
    elif fault.field == "spec.let" and isinstance(value, dict):
        parent[name] = [{"name": str(key), "value": str(text)} for key, text in value.items()]
    elif isinstance(value, bool | int | float) and fault.help == QUOTE:
        parent[name] = str(value).lower()
    elif item is not None:
        parent[name] = item
    elif _SCORE.fullmatch(fault.field) and not parent.get("cases") and "value" not in parent:
        parent.update({"cases": [_NO_CASE]} if name == "cases" else {"value": _ANY_SCORE})


def _let_of(field: str, item: object) -> dict[str, str] | None:
    """Return the `let` item (name and expression) that a user wrote as one text; None if the text is no `let` item."""
    line = _LINE.fullmatch(item) if field.startswith("spec.let[") and isinstance(item, str) else None
    return {"name": line[1], "value": line[2]} if line else None


def _stand_in(field: str, number: int) -> Any:
    """Return a placeholder for a broken required field or item; None if the field or item is optional."""
    name, place = f"x{number}", re.sub(r"\[\d+\]", "[]", field).removeprefix("spec.")
    items: dict[str, Any] = {
        "filters[]": {"name": name, "require": "true"},
        "scores[]": {"name": name, "value": "0"},
        "let[]": {"name": name, "value": "0"},
        "metrics[]": {"name": name, "query": "x"},
        "scores[].cases[]": _NO_CASE,
    }
    if place in items:
        return items[place]
    whole, _, last = place.rpartition(".")
    return items[whole].get(last) if whole in items and (whole, last) != ("scores[]", "value") else None


def _explain(field: str, reason: str, text: str, value: Any) -> Diagnostic:
    match = _TYPE.search(text)
    if match is not None:
        message = f"expected {_words()['wanted type'][match['wanted']]}, got {_words()['found type'][match['found']]}"
        return _fault(field, message, value, _how_to_write(field, match["wanted"], match["found"], value))
    if reason == "FieldValueRequired":
        return _fault(field, f"`{_last(field)}` is missing", None)
    short = text.replace(f"{field} in body ", "")
    help_text = _NAME if "should match" in short else _near_value(field, value)
    return _fault(field, short[:1].lower() + short[1:], value, help_text)


def _near_value(field: str, value: Any) -> str | None:
    """Return the allowed value that is similar to an invalid value; None if no allowed value is similar."""
    allowed = _schema_of(field).get("enum", ())
    meant = _words().get(f"value of {_last(field)}", {}).get(str(value).lower().replace("-", "")) or _nearest(
        str(value), allowed
    )
    return f"write `{meant}`" if meant in allowed else None


def _name_faults(metadata: Any) -> Iterator[Diagnostic]:
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    if not name:
        yield _fault("metadata.name", "`name` is missing", None)
    elif not isinstance(name, str):
        yield _fault("metadata.name", "expected text", name, QUOTE)
    elif not is_label_name(name):
        text = f'"{name}" is not a DNS label'
        yield _fault("metadata.name", text, name, _NAME)


def _fault(field: str, message: str, value: object, help_text: str | None = None) -> Diagnostic:
    return Diagnostic("error", CODE, message, 1, 1, 1 + _width(value), help_text, field)


def _width(value: object) -> int:
    return len(str(value).split("\n")[0]) if isinstance(value, str | int | float) else 0


def _how_to_write(field: str, wanted: str, found: str, value: Any) -> str | None:
    if "string" in wanted:
        return _as_text(field, found, value)
    text = value.strip() if isinstance(value, str) else ""
    if wanted == "array":
        return _as_list(field, value)
    if wanted == "object" and (item := _as_item(field, text)):
        return item
    if wanted == "object" and field.endswith("Selector"):
        return _as_selector(text, value)
    if wanted in {"integer", "number"}:
        return _as_number(field, text)
    return f"write `{text.lower()}` without quotes" if wanted == "boolean" and text.lower() in _BOOLEANS else None


def _as_selector(text: str, value: Any) -> str | None:
    parts = value if isinstance(value, list) else [text]
    joined = ",".join(part for part in parts if isinstance(part, str))
    selector = as_selector(joined) if len(joined) < _LONGEST else ""
    return f"write `{selector}`" if selector else None


def _as_number(field: str, text: str) -> str:
    if text.removeprefix("-").isdecimal():
        return f"write `{text[:_LONGEST]}` without quotes"
    schema = _schema_of(field)
    ends = schema.get("minimum"), schema.get("maximum")
    return "write a whole number" + (f" from {ends[0]} to {ends[1]}" if None not in ends else "")


def _as_list(field: str, value: Any) -> str:
    if field == "spec.let" and isinstance(value, dict) and "name" not in value:
        name, text = next(iter(value.items()), ("x", "..."))
        if isinstance(text, str) and len(text) <= _LONGEST:
            return f"write `- {{name: {name}, value: '{text}'}}`"
    if field.endswith(".cases") and isinstance(value, dict) and set(value) & set(_GUARDS):
        return _as_text(f"{field}[0]", "object", value) or _CASE
    return "write `- ` before each item"


def _as_item(field: str, text: str) -> str | None:
    """Return advice on how to write a list item as an object instead of as a text; None if no advice is known."""
    if not 0 < len(text) < _LONGEST or "'" in text:
        return None
    if field.startswith("spec.filters["):
        case = " → ".join(map(str.strip, _AS_CASE.split(text, maxsplit=1)))
        as_score = f"write it under `scores`: `{{name: ..., cases: ['{case}']}}`"
        return as_score if "→" in case else f"write `{{name: ..., require: '{text}'}}`"
    if field.startswith("spec.scores["):
        case = text.replace("->", "→")
        return f"write `{{name: ..., cases: ['{case}']}}`" if "→" in case else f"write `{{name: ..., value: '{text}'}}`"
    if field.startswith("spec.let[") and (line := _LINE.fullmatch(text)):
        return f"write `{{name: {line[1]}, value: '{line[2]}'}}`"
    if field.endswith(".matchLabels") and text.count("=") == 1:
        return f"write `{{{text.replace('=', ': ')}}}`"
    return None


def _as_text(field: str, found: str, value: Any) -> str | None:
    allowed = _schema_of(field).get("enum")
    if allowed:
        *most, last = (f"`{one}`" for one in allowed)
        return (value is not None and _near_value(field, value)) or f"write {', '.join(most)} or {last}"
    if found == "null":
        return "write an expression; an empty value in YAML is null" if _last(field) in _EXPRESSIONS else None
    if field.endswith("]") and ".cases[" in field and isinstance(value, Mapping) and set(value) & set(_GUARDS):
        guard, arm = (next((value[name] for name in names if name in value), "") for names in (_GUARDS, _ARMS))
        line = f"{guard} → {arm}"
        return f"write `{line}`: {_CASE}" if arm != "" and len(line) <= _LONGEST else _CASE
    if isinstance(value, Mapping) and all(isinstance(one, int | float) for one in value.values()):
        return 'write `→` instead of ":"; YAML reads the text before ":" as a key'
    if found == "object":
        return f'{QUOTE}: YAML reads the text before ": " as a key'
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


def _meant(field: str) -> str:
    """Return the existing field that a user probably intended with an unknown field; empty if uncertain."""
    return _words().get(_where(field), {}).get(_last(field), "") or _close(field)


def _denied(field: str) -> str:
    """Return the field with the opposite meaning of an unknown field; empty if there is none."""
    return _words().get(f"{_where(field)} denied", {}).get(_last(field), "")


def _where(field: str) -> str:
    """Return the path below `spec` of the object that contains a field, without list indexes."""
    return re.sub(r"\[\d+\]", "[]", field).removeprefix("spec.").rpartition(".")[0]


def _close(field: str) -> str:
    """Return the known field with a name similar to an unknown field's name; empty if there is none."""
    return _nearest(_last(field), _schema_of(field.rpartition(".")[0]).get("properties", {}))


def _schema_of(field: str) -> dict[str, Any]:
    """Return the schema of a field; empty if the field does not exist."""
    schema: dict[str, Any] = policy_schema()
    for name in re.sub(r"\[\d+\]", "[]", field).replace("[]", ".[]").split("."):
        schema = schema.get("items", {}) if name == "[]" else schema.get("properties", {}).get(name, {})
    return schema


def _nearest(text: str, names: Iterable[str]) -> str:
    """Return the name most similar to a text, ignoring case; empty if no name is similar."""
    folded = {name.lower(): name for name in names}
    close = difflib.get_close_matches(text[:_LONGEST].lower(), folded, 1)
    return folded[close[0]] if close else ""


def _suggest(field: str, value: Any) -> str | None:
    if denied := _denied(field):
        text = value if isinstance(value, str) and 0 < len(value) < _LONGEST and value.isprintable() else "..."
        return f"write `{denied}: not ({text})`: a filter is a condition that nodes must meet"
    if re.fullmatch(r"spec\.(pod|namespace)Selector\..*", field):
        return "write labels under `matchLabels`"
    if field.startswith("spec.scores[") and _last(field) == "require":
        return "write a number under `value`, or the condition under `filters`"
    if field == "spec.rules":
        return _RULES
    if _last(field) in _words().get(_where(field), {}):
        return f"write `{_meant(field)}`"
    return f'did you mean "{_close(field)}"?' if _close(field) else None
