"""How our decisions about claims differ from kube-scheduler's: codes, texts, scores, and what each claim would get.

Knows nothing of how either came about. Not compared: IDs of shares and times, which are new each time, and which of
several nodes names its error, as kube-scheduler stops at one by chance.
"""

from __future__ import annotations

from typing import Any

from tests.oracle.compare import differences as of_records

Record = dict[str, Any]
SPECIAL = "<extended-resources>"
TIMED_OUT = "timed out trying to allocate devices"
"""What kube-scheduler says where it tries combinations for ten seconds; ours sees sooner that none will do."""
RANDOM = {"shareID", "allocationTimestamp"}
DEFAULTS = {"allocationMode": "ExactCount", "count": 1}
"""What a request says where it says nothing."""


def differences(ours: Record, theirs: Record) -> list[str]:
    """List where two records disagree, one line a place; an empty list means they agree."""
    if TIMED_OUT in theirs.get("error", ""):
        return []
    return [*of_records(ours, theirs), *_errors(ours, theirs), *_allocations(ours, theirs)]


def _errors(ours: Record, theirs: Record) -> list[str]:
    """Compare the error, where there is one: ours is that of one of the nodes, or of PreFilter."""
    if ours["result"] != "Error" or theirs["result"] != "Error":
        return []
    possible = {theirs["error"], *theirs.get("errors", {}).values()}
    return [] if ours["error"] in possible else [f"error: ours {ours['error']!r}, theirs one of {sorted(possible)}"]


def _allocations(ours: Record, theirs: Record) -> list[str]:
    mine, other = (plain(_made(one)) for one in (ours, theirs))
    return [
        f"allocations.{node}: ours {mine.get(node)}, theirs {other.get(node)}"
        for node in sorted({*mine, *other})
        if mine.get(node) != other.get(node)
    ]


def _made(record: Record) -> dict[str, list[Any]]:
    """Leave out claims for extended resources that ask for nothing: with one kube-scheduler binds no pod."""
    found = record.get("allocations", {})
    return {
        node: [one for one in each if one["claim"] != SPECIAL or one.get("requests")] for node, each in found.items()
    }


def plain(value: Any) -> Any:
    """Leave out what is random, what is empty, and what the API server fills in: that is written in several ways."""
    if isinstance(value, dict):
        made = {key: plain(part) for key, part in value.items() if key not in RANDOM}
        if "shareID" in value:
            made["shareID"] = "some"
        return {
            key: part for key, part in made.items() if part not in (None, [], {}, False) and part != DEFAULTS.get(key)
        }
    return [plain(part) for part in value] if isinstance(value, list) else value
