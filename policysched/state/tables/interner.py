"""`Interner`: gives values integer codes, which arrays store. `TextColumns`: texts of nodes, such as labels, as codes.

If most codes are in no column any more, they are reused, and `stamp` changes. Codes in the columns that the
interner knows stay valid; other stored codes are invalid after that.

A label or annotation has a column from its first use on. All keys that no row has share an empty column. Rules can
compute keys from pods, so only the `MAX_KEYS` columns used last are kept.
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
"""The code that stands for no value, such as for a node without the label."""
UNKNOWN: Final = -2
"""A code that is stored nowhere, for comparisons with a value that has no code."""
SPARE: Final = 1024
"""Number of codes from which an interner searches for unused codes."""
MAX_KEYS = 1024
"""Maximum number of arrays for labels, for annotations, and for other texts; beyond it, the oldest is dropped."""


class Holder(Protocol):
    """Protocol of objects that store codes of an `Interner` (numbers that stand for values), such as columns."""

    @property
    def codes(self) -> NDArray[np.integer]:
        """The codes that the object stores; MISSING may be among them."""


class Interner(Generic[T]):
    """Gives each value an integer code from 0 on; a code that no object stores any more can be used again.

    Args:
        spare: Number of codes that are always kept.
    """

    __slots__ = ("__weakref__", "_codes", "_free", "_holders", "_most", "_spare", "_values", "stamp")

    def __init__(self, spare: int = SPARE) -> None:
        self.stamp = 0
        """A number that changes if a code may stand for another value than before."""
        self._codes: dict[T, int] = {}
        self._values: list[T | None] = []
        self._free: list[int] = []
        self._holders: weakref.WeakSet[Holder] = weakref.WeakSet()
        self._spare = self._most = spare
        """Number of codes from which the interner searches for unused codes."""

    def code(self, value: T) -> int:
        """Return the code of a value; a value without a code gets one."""
        code = self._codes.get(value)
        if code is None:
            code = self._codes[value] = self._new(value)
        return code

    def find(self, value: T) -> int:
        """Return the code of a value; MISSING if the value has no code."""
        return self._codes.get(value, MISSING)

    def sought(self, value: T) -> int:
        """Return the code of a value, to compare it with stored codes; UNKNOWN for a value without a code."""
        return self._codes.get(value, UNKNOWN)

    def value(self, code: int) -> T:
        """Return the value that a code stands for."""
        return cast("T", self._values[code])

    def hold(self, holder: Holder) -> None:
        """Keep the codes that an object, such as a column, stores, as long as the object exists."""
        self._holders.add(holder)

    @property
    def living(self) -> int:
        """Number of values that have a code."""
        return len(self._codes)

    def tidy(self) -> None:
        """Drop the codes that no object stores, if at least half of the codes may be unused.

        Do not call it during a computation, which may use codes that no holder has.
        Cost: O(1), occasionally O(elements of the holders).
        """
        if len(self._codes) >= self._most:
            self._give_up(self._held())
            self._most = max(self._spare, 2 * len(self._codes))

    def _held(self) -> NDArray[np.bool_]:
        held = np.zeros(len(self._values) + 1, np.bool_)
        for holder in list(self._holders):
            # MISSING, -1, marks the last element, which is dropped.
            held[holder.codes] = True
        return held[:-1]

    def _give_up(self, held: NDArray[np.bool_]) -> None:
        self.stamp += 1
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
        """Return the values in the order of codes, None for unused codes."""
        return iter(self._values)

    def __len__(self) -> int:
        """Return the highest code in use or free, plus 1."""
        return len(self._values)


class Strings(Interner[str]):
    """Gives texts, such as label values and names, integer codes."""

    __slots__ = ()

    def text(self, code: int) -> str:
        """Return the text that a code stands for."""
        return self.value(code)


class TextColumns:
    """For each label key (or annotation key): an array with the code of each node's value."""

    __slots__ = ("_by_key", "_columns", "_empty", "_rows_with", "_strings", "stamp")

    def __init__(self, columns: ColumnSet, strings: Strings) -> None:
        self.stamp = 0
        """A number that changes if the first node gets a key, or the last node loses it."""
        self._columns = columns
        self._strings = strings
        self._by_key: dict[str, Column] = {}
        self._empty = columns.new(np.int32, MISSING)
        self._rows_with: dict[str, int] = {}

    def __contains__(self, key: str) -> bool:
        """Return whether any node has a value for the key."""
        return key in self._rows_with

    def __len__(self) -> int:
        """Return the number of keys for which an array exists."""
        return len(self._by_key)

    def column(self, key: str, maps: Sequence[Mapping[str, str]]) -> Column:
        """Return the array of codes for a key; create it from the texts of all nodes at the first use.

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
        """Write the texts of a node into the arrays; `old` has the texts that the node had before."""
        if old.keys() != texts.keys():
            self._count(old, texts)
        for key, column in self._by_key.items():
            value = texts.get(key)
            column.data[row] = MISSING if value is None else self._strings.code(value)

    def _count(self, old: Mapping[str, str], texts: Mapping[str, str]) -> None:
        """Update how many nodes have each key, and drop the arrays of keys that no node has."""
        rows_with, known = self._rows_with, len(self._rows_with)
        for key in texts.keys() - old.keys():
            rows_with[key] = rows_with.get(key, 0) + 1
        self.stamp += len(rows_with) > known
        for key in old.keys() - texts.keys():
            rows_with[key] -= 1
            if not rows_with[key]:
                del rows_with[key]
                self.stamp += 1
                self._by_key.pop(key, None)
