"""Lookup tables from string codes to results, so that each distinct string is worked out once.

A table holds a function's result for every string code that a column has shown so far; rows are then one indexed
read. Tables live as long as a generation of the interner they belong to and are filled only for codes that occur.
Strings that a frame alone knows are worked out where they occur and never enter a table, nor do results that are
strings.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from policysched.language.evaluation.frames import Codes, FrameStrings, Mask, StringInterner

Array: TypeAlias = npt.NDArray[Any]
_MOST_TABLES: Final = 256
_MOST_PAIRS: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Content:
    """What a table holds: its dtype, the value of a missing string, and the mark of a cell not filled yet.

    The mark is the largest value of the dtype, so that one maximum tells whether any is left.
    """

    dtype: Any
    missing: float
    unfilled: float


NUMBERS: Final = Content(np.float64, np.nan, np.inf)
CODES: Final = Content(np.int32, -1, 2**31 - 1)
TESTS: Final = Content(np.int8, 2, 127)


def _unfilled(found: Array, content: Content) -> bool:
    return bool(found.size and np.fmax.reduce(found) == content.unfilled)


class Lookup:
    """The results of a function of one string."""

    def __init__(self, content: Content, function: Callable[[str], float]) -> None:
        self._content = content
        self._function = function
        self._values = self._empty(16)

    def _empty(self, size: int) -> Array:
        values = np.full(size, self._content.unfilled, self._content.dtype)
        # A missing string has code -1, which reads the last cell.
        values[-1] = self._content.missing
        return values

    def take(self, codes: Codes, strings: FrameStrings) -> Array:
        """Return the results for a column. Shapes: (R,) -> (R,)."""
        own = strings.own(codes)
        if own is None:
            return self._known(codes, strings.base)
        found = self._known(np.where(own, -1, codes), strings.base)
        found[own] = each_text(self._function, codes[own], strings, self._content)
        return found

    def _known(self, codes: Codes, strings: StringInterner) -> Array:
        if len(self._values) <= len(strings):
            grown = self._empty(2 * len(strings) + 1)
            grown[: len(self._values) - 1] = self._values[:-1]
            self._values = grown
        found: Array = self._values[codes]
        if not _unfilled(found, self._content):
            return found
        for code in np.unique(codes[found == self._content.unfilled]).tolist():
            self._values[code] = self._function(strings.text(code))
        return np.take(self._values, codes)


def each_text(function: Callable[[str], float], codes: Codes, strings: FrameStrings, content: Content) -> Array:
    """Return what a function makes of a column, each distinct string looked at once. Shapes: (R,) -> (R,)."""
    distinct, places = np.unique(codes, return_inverse=True)
    results = [content.missing if code < 0 else function(strings.text(code)) for code in distinct.tolist()]
    return np.array(results, content.dtype)[places]


class PairLookup:
    """The results of a function of two strings, sorted by the pair."""

    def __init__(self, content: Content, function: Callable[[str, str], float], most: int = _MOST_PAIRS) -> None:
        self._content = content
        self._function = function
        self._most = most
        self._forget()

    def _forget(self) -> None:
        self._keys = np.array([-1], np.int64)
        self._values = np.array([self._content.missing], self._content.dtype)

    def take(self, left: Codes, right: Codes, strings: FrameStrings) -> Array:
        """Return the results for two columns. Shapes: (R,), (R,) -> (R,)."""
        if strings.own(left) is None and strings.own(right) is None:
            return self._known(left, right, strings)
        return PairLookup(self._content, self._function)._known(left, right, strings)

    def _known(self, left: Codes, right: Codes, strings: FrameStrings) -> Array:
        # A missing right side makes the key -1, a missing left one makes it smaller still.
        keys = np.maximum((left.astype(np.int64) << 32) | right, -1)
        places = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        unknown = self._keys[places] != keys
        if unknown.any():
            if len(self._keys) > self._most:
                self._forget()
                unknown = keys >= 0
            self._learn(np.unique(keys[unknown]), strings)
            places = np.searchsorted(self._keys, keys)
        found: Array = self._values[places]
        return found

    def _learn(self, keys: npt.NDArray[np.int64], strings: FrameStrings) -> None:
        results = [self._function(strings.text(key >> 32), strings.text(key & 0xFFFFFFFF)) for key in keys.tolist()]
        merged = np.concatenate((self._keys, keys))
        order = np.argsort(merged, kind="stable")
        self._keys = merged[order]
        self._values = np.concatenate((self._values, np.array(results, self._content.dtype)))[order]


class Tables:
    """Everything that is remembered for one interner."""

    __slots__ = ("__weakref__", "_kept", "generation")

    def __init__(self, generation: int = 0) -> None:
        self.generation = generation
        """That of the interner: codes of another one mean something else."""
        self._kept: OrderedDict[Hashable, Any] = OrderedDict()

    def keep(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return the table of a function and its constants; those unused for longest are dropped."""
        table = self._kept.get(key)
        if table is None:
            table = self._kept[key] = make()
            if len(self._kept) > _MOST_TABLES:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(key)
        return table


class Members:
    """Which codes belong to a list of constants."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self._codes: list[int] = []
        self._mask = np.zeros(0, np.bool_)

    def take(self, codes: Codes, strings: FrameStrings) -> Mask:
        """Return where a column is in the list. Shapes: (R,) -> (R,)."""
        if strings.own(codes) is not None:
            return np.isin(codes, [code for text in self._texts if (code := strings.find(text)) >= 0])
        base = strings.base
        known = [code for text in self._texts if (code := base.find(text)) >= 0]
        if self._codes != known or self._mask.size <= len(base):
            # A missing string has code -1, which reads the last cell: one that no code has.
            self._mask = np.zeros(2 * len(base) + 1, np.bool_)
            self._mask[known] = True
            self._codes = known
        found: Mask = self._mask[codes]
        return found


_TABLES: weakref.WeakKeyDictionary[StringInterner, Tables] = weakref.WeakKeyDictionary()


def tables_of(strings: StringInterner) -> Tables:
    """Return the tables of an interner."""
    tables = _TABLES.get(strings)
    if tables is None or tables.generation != strings.generation:
        tables = _TABLES[strings] = Tables(strings.generation)
    return tables
