"""Differences between the answers of two oracles to one case, in a form that many cases share.

A difference is a path into the answer and what happened there: `added`, `removed`, or `changed` with both texts. Names
of objects and resources are replaced by `*` and numbers by `N`. Differences that follow from others are left out: a
total follows from the scores, the best nodes follow from the totals.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

Case: TypeAlias = dict[str, Any]
Answer: TypeAlias = dict[str, Any]
Ask: TypeAlias = Callable[[Case], Answer]
"""Answers a case; a case that kube-scheduler cannot evaluate has the answer `invalid`."""

CONSEQUENCES = ("total", "best", "selected", "fitError", "result", "error")
"""Parts of a record that follow from other parts."""
CHOSEN_AT_RANDOM = {"nominated", "message", "deleted", "cleared"}
"""Parts of the answer about preemption that follow from the chosen node."""
RESOURCE_LISTS = {"allocatable", "capacity", "limits", "requests"}
"""The fields of objects whose keys are names of resources."""
LONGEST = 200
"""The longest text that a difference quotes; the rest is cut off. Units: characters."""
_NUMBER = re.compile(r"-?\d+")


def differences(case: Case, old: Answer, new: Answer) -> frozenset[str]:
    """Return the differences between two answers, without those that follow from others."""
    names = sorted({*_names(case)}, key=len, reverse=True)
    hide = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, names))})(?!\w)")
    found = set(_compare("", _settled(old), _settled(new), hide))
    first = {line for line in found if not any(f".{part}" in line.partition(":")[0] for part in CONSEQUENCES)}
    return frozenset(first or found)


def _settled(answer: Answer) -> Answer:
    """Return an answer without the parts that follow from a random choice among equally good nodes for preemption."""
    record = answer.get("record") or {}
    found = record.get("preemption") or {}
    if len(found.get("best") or ()) < 2:
        return answer
    kept = {key: part for key, part in found.items() if key not in CHOSEN_AT_RANDOM}
    return {**answer, "record": {**record, "preemption": kept}}


def _names(case: Case) -> Iterable[str]:
    profiles = (case.get("config") or {}).get("profiles")
    for profile in profiles if isinstance(profiles, list) else ():
        if isinstance(profile, dict) and isinstance(profile.get("schedulerName"), str) and profile["schedulerName"]:
            yield profile["schedulerName"]
    yield "default-scheduler"
    for thing in (*case.get("objects", ()), *case.get("sequence", ()), case.get("pod") or {}):
        if isinstance(thing, dict) and (name := thing.get("metadata", {}).get("name")):
            yield str(name)
        yield from _resources(thing)


def _resources(thing: Any) -> Iterable[str]:
    """Yield the names of resources, without the number of pods, which texts mention otherwise."""
    if isinstance(thing, list):
        for part in thing:
            yield from _resources(part)
    elif isinstance(thing, dict):
        for key, part in thing.items():
            yield from (part.keys() - {"pods"} if key in RESOURCE_LISTS and isinstance(part, dict) else ())
            yield from _resources(part)


def _compare(path: str, old: Any, new: Any, hide: re.Pattern[str]) -> Iterable[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            yield from _compare(f"{path}.{hide.sub('*', key)}", old.get(key), new.get(key), hide)
    elif isinstance(old, list) and isinstance(new, list):
        yield from _compare_lists(path, old, new, hide)
    elif old != new:
        yield f"{path}: {_kind(old, new, hide)}"


def _compare_lists(path: str, old: list[Any], new: list[Any], hide: re.Pattern[str]) -> Iterable[str]:
    """Compare lists of records place by place, other lists without their order: kube-scheduler walks maps for them."""
    if len(old) == len(new) and any(isinstance(part, dict) and "name" not in part for part in (*old, *new)):
        for one, other in zip(old, new, strict=True):
            yield from _compare(path, one, other, hide)
        return
    before, after = ({_item(part) for part in parts} for parts in (old, new))
    for sign, items in (("-", before - after), ("+", after - before)):
        yield from (f"{path}: {sign}{_text(item, hide)}" for item in sorted(items))
    if before == after and old != new and any(isinstance(part, dict) for part in old):
        yield f"{path}: another order"


def _item(part: Any) -> str:
    return str(part["name"]) if isinstance(part, dict) and "name" in part else str(part)


def _kind(old: Any, new: Any, hide: re.Pattern[str]) -> str:
    if old is None or new is None:
        return "added" if old is None else "removed"
    if isinstance(old, int | float) and isinstance(new, int | float):
        return "changed"
    before, after = _text(old, hide), _text(new, hide)
    return f"{before} -> {after}" if before != after else "other names or numbers"


def _text(value: Any, hide: re.Pattern[str]) -> str:
    return _NUMBER.sub("N", hide.sub("*", str(value)))[:LONGEST]
