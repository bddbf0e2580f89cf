"""Makes a failing case small enough to read.

Knows nothing of why a case fails: the caller says whether a smaller one still does. The pods of a sequence
go first and then objects, in halves and quarters, because all that goes makes later attempts cheaper.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .oracle import Case

KEPT = {"apiVersion", "kind", "metadata", "name", "namespace", "containers", "profiles", "set", "remove"}
PARTS = ("config", "pod", "sequence", "between", "objects")


def shrink(case: Case, still_fails: Callable[[Case], bool]) -> Case:
    """Drop pods of the sequence, objects and then fields for as long as the case still fails."""
    small = copy.deepcopy(case)
    if "sequence" in small:
        small["between"] = [*small.get("between", ()), *([] for _ in small["sequence"])][: len(small["sequence"])]
        small = _fewer(small, ("sequence", "between"), still_fails)
    if "objects" in small:
        small = _fewer(small, ("objects",), still_fails)
    while (smaller := _without_a_field(small, still_fails)) is not None:
        small = smaller
    return small


def _fewer(case: Case, keys: tuple[str, ...], still_fails: Callable[[Case], bool]) -> Case:
    """Drop entries, at the same places of all lists that are named."""
    size = max(1, len(case[keys[0]]) // 2)
    while size:
        start = 0
        while start < len(case[keys[0]]):
            kept = {key: case[key][:start] + case[key][start + size :] for key in keys}
            smaller = {**case, **kept}
            if kept.get("sequence", True) and still_fails(smaller):
                case = smaller
            else:
                start += size
        size //= 2
    return case


def _without_a_field(case: Case, still_fails: Callable[[Case], bool]) -> Case | None:
    """Try the fields one by one; what has turned out to matter is tried again after each success."""
    changed = None
    for path in list(_paths({key: case[key] for key in PARTS if key in case})):
        smaller = _without(changed or case, path)
        if smaller is not None and still_fails(smaller):
            changed = smaller
    return changed


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the ways to all optional parts, outer parts first and later list entries before earlier."""
    if isinstance(value, dict):
        entries = list(value.items())
    elif isinstance(value, list):
        entries = list(reversed(list(enumerate(value))))
    else:
        return
    for key, part in entries:
        if len(path) > 1 and key not in KEPT:
            yield (*path, key)
        yield from _paths(part, (*path, key))


def _without(case: Case, path: tuple[Any, ...]) -> Case | None:
    """Copy a case without one part; None where the part is gone already."""
    smaller = copy.deepcopy(case)
    parent: Any = smaller
    try:
        for key in path[:-1]:
            parent = parent[key]
        del parent[path[-1]]
    except (KeyError, IndexError):
        return None
    return smaller
