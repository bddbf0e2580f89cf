"""Label and annotation values as code columns, built for the keys that somebody reads.

A key's column is made on its first use from the rows' maps and kept up to date from then on; keys that nobody
asked for cost nothing, and all keys that no row has share one column without any value. Rules can compute keys from
pods, so only the keys used last are kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from policysched.state.tables.columns import Column, ColumnSet
from policysched.state.tables.interner import MISSING, Strings

MAX_KEYS = 1024


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
        """Tell whether any row has the key."""
        return key in self._rows_with

    def __len__(self) -> int:
        """Count the columns that are kept."""
        return len(self._by_key)

    def column(self, key: str, maps: Sequence[Mapping[str, str]]) -> Column:
        """Give the key's column, built from the rows' present maps on first use.

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
        """Take note of the keys that a row has now, and give back the columns of those that no row has."""
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
