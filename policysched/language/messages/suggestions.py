"""The nearest known name for a misspelt one.

Knows nothing of the language: it gets the names. Long texts are nobody's misspelling of a short name and are not
compared, and of many names only those are that share most with the wrong one, which keeps any text cheap.
"""

from __future__ import annotations

import difflib
import heapq
import itertools
from collections.abc import Iterable
from functools import lru_cache

_LONGEST = 40
_COMPARED = 16
"""How many names are compared letter by letter; that takes a hundred times as long as a look at their pairs."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a sentence with the nearest known name, or nothing."""
    if len(name) > _LONGEST:
        return ""
    close = difflib.get_close_matches(name, sorted(_nearest(name, known)), n=1, cutoff=0.65)
    return f"did you mean `{close[0]}`?" if close else ""


def _nearest(name: str, known: Iterable[str]) -> list[str]:
    """Keep the names that have most pairs of letters in common with one, for their length."""
    names = list(known)
    if len(names) <= _COMPARED:
        return names
    pairs = _pairs(name)
    return heapq.nlargest(_COMPARED, names, key=lambda one: 2 * len(pairs & _pairs(one)) - abs(len(one) - len(name)))


@lru_cache(maxsize=1024)
def _pairs(name: str) -> frozenset[str]:
    """Return the pairs of letters that stand together in the first letters of a name, and how it begins and ends."""
    name = name[:_LONGEST]
    return frozenset((name[:1], name[-1:], *map("".join, itertools.pairwise(name))))


def shown(text: str) -> str:
    """Return a text as messages quote it."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
