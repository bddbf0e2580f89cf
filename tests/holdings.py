"""What objects hold: how many elements are in each container behind an attribute, and how many bytes in arrays.

It walks whatever policysched's own objects lead to, so a dictionary that is added tomorrow is counted tomorrow.
"""

from __future__ import annotations

import types
import weakref
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from cachetools import Cache

_OWN = "policysched."
_PLAIN = ("policysched.model.",)
"""Objects of the API: what they hold is theirs."""
_CONTAINERS = (dict, list, set, deque, Cache, weakref.WeakKeyDictionary, weakref.WeakValueDictionary, weakref.WeakSet)
_LEAVES = (str, bytes, int, float, type, types.ModuleType, types.BuiltinFunctionType, type(None))


def holdings(roots: Iterable[object]) -> Counter[str]:
    """Count elements by `Class.attribute` of the containers there, and bytes by `Class.attribute bytes` of arrays."""
    counted: Counter[str] = Counter()
    seen: set[int] = set()
    waiting: list[tuple[str, object]] = [("root", one) for one in roots]
    while waiting:
        place, one = waiting.pop()
        if isinstance(one, _LEAVES) or id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, np.ndarray):
            counted[f"{place} bytes"] += one.nbytes
        elif isinstance(one, _CONTAINERS):
            counted[place] += len(one)
            waiting += [(place, inner) for inner in _elements(one)]
        elif isinstance(one, tuple | frozenset):
            waiting += [(place, inner) for inner in one]
        else:
            waiting += _parts(one)
    return counted


def _elements(container: Any) -> list[object]:
    if isinstance(container, Mapping) or hasattr(container, "items"):
        return [part for item in list(container.items()) for part in item]
    return list(container)


def _parts(one: Any) -> Iterator[tuple[str, object]]:
    if isinstance(one, types.FunctionType):
        for cell in one.__closure__ or ():
            yield one.__qualname__, cell.cell_contents
    elif isinstance(one, types.MethodType):
        yield one.__func__.__qualname__, one.__self__
    else:
        name = type(one).__module__
        if name.startswith(_OWN) and not name.startswith(_PLAIN):
            for attribute in _attributes(one):
                yield f"{type(one).__name__}.{attribute}", getattr(one, attribute, None)


def _attributes(one: object) -> Iterator[str]:
    yield from getattr(one, "__dict__", ())
    for base in type(one).__mro__:
        slots = base.__dict__.get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else slots:
            if not slot.startswith("__"):
                yield f"_{base.__name__.lstrip('_')}{slot}" if slot.startswith("__") else slot
