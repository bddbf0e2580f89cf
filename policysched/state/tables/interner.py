"""Interner: texts as small integers, so that columns compare codes instead of strings.

Codes follow what is there: when most of them stand for values that no column shows any more, those are given up and
used again, and `generation` moves. A code in a column that the interner knows of stays what it is; whoever keeps
codes, or answers by code, of his own forgets them when the generation is another one.

Labels and annotations are code columns of the keys that somebody reads: made on first use from the rows' maps, kept up
to date from then on; all keys that no row has share one column without any value. Rules can compute keys from pods, so
only the keys used last are kept.
"""

from __future__ import annotations

import weakref
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Final, Generic, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from policysched.state.tables.columns import Column, ColumnSet

T = TypeVar("T", bound=Hashable)
MISSING: Final = -1
"""The code of a value that is not there."""
UNKNOWN: Final = -2
"""What to look for in the place of a code where no column holds the value: neither a code nor MISSING."""
SPARE: Final = 1024
"""How many codes there may be before any is given up."""
MAX_KEYS = 1024


class Holder(Protocol):
    """Somebody who keeps codes, such as a column."""

    @property
    def codes(self) -> NDArray[np.integer]:
        """The codes that he keeps, MISSING among them."""


class Interner(Generic[T]):
    """A bijection between values and codes from 0 up, which grows and shrinks with what columns hold.

    Args:
        spare: How many codes there may be before any is given up.
    """

    __slots__ = ("__weakref__", "_codes", "_free", "_holders", "_most", "_spare", "_values", "generation")

    def __init__(self, spare: int = SPARE) -> None:
        self.generation = 0
        """Moves when codes are given up: a code that is in no column may mean another value then."""
        self._codes: dict[T, int] = {}
        self._values: list[T | None] = []
        self._free: list[int] = []
        self._holders: weakref.WeakSet[Holder] = weakref.WeakSet()
        self._spare = self._most = spare

    def code(self, value: T) -> int:
        """Return the value's code, a new one if it has none."""
        code = self._codes.get(value)
        if code is None:
            code = self._codes[value] = self._new(value)
        return code

    def find(self, value: T) -> int:
        """Return the value's code, or MISSING if it has none."""
        return self._codes.get(value, MISSING)

    def sought(self, value: T) -> int:
        """Return the code to look for in columns: UNKNOWN of a value that no column holds."""
        return self._codes.get(value, UNKNOWN)

    def value(self, code: int) -> T:
        """Return the value behind a code that some column holds."""
        return cast("T", self._values[code])

    def hold(self, holder: Holder) -> None:
        """Keep the codes of a column, or of another holder, as long as it lives."""
        self._holders.add(holder)

    @property
    def living(self) -> int:
        """How many values have a code."""
        return len(self._codes)

    def tidy(self) -> None:
        """Give up the codes that nobody holds, if there may be as many of them as of others.

        Not while anything is worked out: what it made so far may hold codes.
        Cost: O(1), and now and then O(elements of the holders).
        """
        if len(self._codes) >= self._most:
            self._give_up(self._held())
            self._most = max(self._spare, 2 * len(self._codes))

    def _held(self) -> NDArray[np.bool_]:
        held = np.zeros(len(self._values) + 1, np.bool_)
        for holder in list(self._holders):
            # MISSING marks the last element, which is nobody's
            held[holder.codes] = True
        return held[:-1]

    def _give_up(self, held: NDArray[np.bool_]) -> None:
        self.generation += 1
        values = self._values
        del values[int(held.nonzero()[0].max(initial=-1)) + 1 :]
        self._free = (~held[: len(values)]).nonzero()[0][::-1].tolist()
        for code in self._free:
            values[code] = None
        self._codes = {value: code for value, code in self._codes.items() if held[code]}

    def _new(self, value: T) -> int:
        if self._free:
            code = self._free.pop()
            self._values[code] = value
            return code
        self._values.append(value)
        return len(self._values) - 1

    def __iter__(self) -> Iterator[T | None]:
        """Return the values in the order of codes, None for those that were given up."""
        return iter(self._values)

    def __len__(self) -> int:
        """Count up to the highest code, those that were given up included."""
        return len(self._values)


class Strings(Interner[str]):
    """The texts of a process: label values, names, zones."""

    __slots__ = ()

    def text(self, code: int) -> str:
        """Return the text behind a code."""
        return self.value(code)


class TextColumns:
    """Code columns by key over one map of texts a row."""

    __slots__ = ("_by_key", "_columns", "_empty", "_rows_with", "_strings", "generation")

    def __init__(self, columns: ColumnSet, strings: Strings) -> None:
        self.generation = 0
        """Moves when some row is the first to have a key, or the last one loses it."""
        self._columns = columns
        self._strings = strings
        self._by_key: dict[str, Column] = {}
        self._empty = columns.new(np.int32, MISSING)
        self._rows_with: dict[str, int] = {}

    def __contains__(self, key: str) -> bool:
        """Return whether any row has the key."""
        return key in self._rows_with

    def __len__(self) -> int:
        """Count the columns that are kept."""
        return len(self._by_key)

    def column(self, key: str, maps: Sequence[Mapping[str, str]]) -> Column:
        """Return the key's column, built from the rows' present maps on first use.

        Shapes: data (capacity,) int32 codes.
        Missing: -1.
        """
        if key not in self._rows_with:
            return self._empty
        column = self._by_key.pop(key, None)
        if column is None:
            column = self._build(key, maps)
        self._by_key[key] = column
        return column

    def _build(self, key: str, maps: Sequence[Mapping[str, str]]) -> Column:
        if len(self._by_key) == MAX_KEYS:
            del self._by_key[next(iter(self._by_key))]
        column = self._columns.new(np.int32, MISSING)
        for row, texts in enumerate(maps):
            if key in texts:
                column.data[row] = self._strings.code(texts[key])
        self._strings.hold(column)
        return column

    def store(self, row: int, old: Mapping[str, str], texts: Mapping[str, str]) -> None:
        """Write one row's values into the columns that exist, given those that it had before."""
        if old.keys() != texts.keys():
            self._count(old, texts)
        for key, column in self._by_key.items():
            value = texts.get(key)
            column.data[row] = MISSING if value is None else self._strings.code(value)

    def _count(self, old: Mapping[str, str], texts: Mapping[str, str]) -> None:
        """Record the keys that a row has now, and give back the columns of those that no row has."""
        rows_with, known = self._rows_with, len(self._rows_with)
        for key in texts.keys() - old.keys():
            rows_with[key] = rows_with.get(key, 0) + 1
        self.generation += len(rows_with) > known
        for key in old.keys() - texts.keys():
            rows_with[key] -= 1
            if not rows_with[key]:
                del rows_with[key]
                self.generation += 1
                self._by_key.pop(key, None)
