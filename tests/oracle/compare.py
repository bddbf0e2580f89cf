"""How our decision records differ from kube-scheduler's.

Knows nothing of how either came about. Reasons are compared as sets, for kube-scheduler itself walks
a map to find them; the text of an error is not compared, since it quotes the words of Go libraries.
"""

from __future__ import annotations

from typing import Any

COMPARED = (
    "pod",
    "schedulerName",
    "result",
    "preFilter",
    "rejected",
    "scores",
    "total",
    "best",
    "fitError",
)


def differences(ours: dict[str, Any], theirs: dict[str, Any]) -> list[str]:
    """List where two records disagree, one line a place; an empty list means they agree."""
    found = []
    for key in COMPARED:
        found += _compare(key, _comparable(ours.get(key)), _comparable(theirs.get(key)))
    if "selected" in ours and ours["selected"] not in theirs.get("best", []):
        found.append(f"selected: ours {ours['selected']!r}, theirs one of {theirs.get('best')}")
    return found


def _comparable(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {key: sorted(set(part)) if key == "reasons" else _comparable(part) for key, part in value.items()}


def _compare(path: str, ours: Any, theirs: Any) -> list[str]:
    if not (isinstance(ours, dict) and isinstance(theirs, dict)):
        same = ours == theirs and type(ours) is type(theirs)
        return [] if same else [f"{path}: ours {_show(ours)}, theirs {_show(theirs)}"]
    found = []
    for key in sorted({*ours, *theirs}):
        found += _compare(f"{path}.{key}", ours.get(key), theirs.get(key))
    return found


def _show(value: Any) -> str:
    return "absent" if value is None else repr(value)
