"""Label and annotation values as code columns, built for the keys that somebody reads.

A key's column is made on its first use from the rows' maps and kept up to date from then on; keys that nobody
asked for cost nothing. Rules can compute keys from pods, so only the keys used last are kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from policysched.state.columns import Column, ColumnSet
from policysched.state.interner import MISSING, Strings

MAX_KEYS = 1024


class TextColumns:
    """Code columns by key over one map of texts a row."""

    __slots__ = ("_by_key", "_columns", "_strings")

    def __init__(self, columns: ColumnSet, strings: Strings) -> None:
        self._columns = columns
        self._strings = strings
        self._by_key: dict[str, Column] = {}

    def column(self, key: str, maps: Sequence[Mapping[str, str]]) -> Column:
        """Give the key's column, built from the rows' present maps on first use.

        Shapes: data (capacity,) int32 codes.
        Missing: -1.
        """
        column = self._by_key.pop(key, None)
        if column is None:
            column = self._build(key, maps)
        self._by_key[key] = column
        return column

    def _build(self, key: str, maps: Sequence[Mapping[str, str]]) -> Column:
        if len(self._by_key) == MAX_KEYS:
            self._columns.drop(self._by_key.pop(next(iter(self._by_key))))
        column = self._columns.new(np.int32, MISSING)
        for row, texts in enumerate(maps):
            if key in texts:
                column.data[row] = self._strings.code(texts[key])
        return column

    def store(self, row: int, texts: Mapping[str, str]) -> None:
        """Write one row's values into the columns that exist."""
        for key, column in self._by_key.items():
            value = texts.get(key)
            column.data[row] = MISSING if value is None else self._strings.code(value)
