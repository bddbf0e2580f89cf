"""Conversion of label selector texts, as for `kubectl -l`, into selector objects for policies.

The `podSelector` of a policy is an object; users who know the flag write its text. Other texts give an empty result.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from policysched.model.selection.name_validation import is_label_value, is_qualified_name

_PART: Final = re.compile(r"(?:[^,()]|\([^()]*\))+")
_SET: Final = re.compile(r"(?P<key>\S+)\s+(?P<word>in|notin|not in)\s*\((?P<values>[^()]*)\)", re.IGNORECASE)
_EQUAL: Final = re.compile(r"(?P<key>[^\s=!:]+)\s*(?P<sign>!=|==?|:)\s*(?P<value>[^\s=!:]*)")
_PLAIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*")
_NO_TEXTS: Final = frozenset({"true", "false", "yes", "no", "on", "off", "y", "n", "null"})
"""Words that YAML does not parse as text."""


def as_selector(text: str) -> str:
    """Return a label selector's text as an object in YAML; empty if the text is not a selector."""
    labels: list[str] = []
    expressions: list[str] = []
    for part in map(str.strip, _PART.findall(text)):
        kind, found = next(_requirement(part), ("", ""))
        if not found:
            return ""
        (labels if kind == "label" else expressions).append(found)
    parts = [f"matchLabels: {{{', '.join(labels)}}}"] if labels else []
    parts += [f"matchExpressions: [{', '.join(expressions)}]"] if expressions else []
    return f"{{{', '.join(parts)}}}" if parts else ""


def _requirement(part: str) -> Iterator[tuple[str, str]]:
    if found := _SET.fullmatch(part):
        values = [value.strip() for value in found["values"].split(",")]
        operator = "In" if found["word"].lower() == "in" else "NotIn"
        if is_qualified_name(found["key"]) and all(map(is_label_value, values)):
            yield "expression", _expression(found["key"], operator, values)
    elif found := _EQUAL.fullmatch(part):
        key, value = found["key"], found["value"].strip("\"'")
        if is_qualified_name(key) and is_label_value(value):
            equal = found["sign"] != "!="
            yield ("label", f"{_word(key)}: {_word(value)}") if equal else ("", _expression(key, "NotIn", [value]))
    elif is_qualified_name(part.removeprefix("!").strip()):
        operator = "DoesNotExist" if part.startswith("!") else "Exists"
        yield "expression", _expression(part.removeprefix("!").strip(), operator, [])


def _expression(key: str, operator: str, values: list[str]) -> str:
    listed = f", values: [{', '.join(map(_word, values))}]" if values else ""
    return f"{{key: {_word(key)}, operator: {operator}{listed}}}"


def _word(text: str) -> str:
    """Return a text, in quotes if YAML would not parse it as text."""
    return text if _PLAIN.fullmatch(text) and text.lower() not in _NO_TEXTS else f'"{text}"'
