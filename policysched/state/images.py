"""Which images lie on which rows, and how large they are there.

`epoch` moves whenever an answer about any image may have changed, the number of nodes included: scores of image
locality depend on how far an image has spread over all nodes. An image has one size, as in kube-scheduler: what the
first node that reported it said. A column lives as long as somebody holds it; those used last are held here, for rules.

Source: pkg/scheduler/backend/cache/cache.go (addNodeImageStates).
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from cachetools import LRUCache

from policysched.state.columns import Column, ColumnSet

MOST_RECENT: Final = 32
"""How many columns are held that nobody else may hold."""


@dataclass(slots=True)
class Presence:
    """An image that lies on some rows; `size` in bytes is what the first of them said, until none has it."""

    size: int
    rows: set[int] = field(default_factory=set)


class ImageTable:
    """Sizes of images by name and row."""

    __slots__ = ("_by_name", "_columns", "_kept", "_recent", "epoch")

    def __init__(self, columns: ColumnSet) -> None:
        self._columns = columns
        self._by_name: dict[str, Presence] = {}
        self._kept: weakref.WeakValueDictionary[str, Column] = weakref.WeakValueDictionary()
        self._recent: LRUCache[str, Column] = LRUCache(MOST_RECENT)
        self.epoch = 0

    def column(self, name: str) -> tuple[Column, int] | None:
        """Give an image's sizes and the number of rows that have it; None where no row has it.

        Shapes: data (capacity,) int64.
        Units: bytes.
        """
        present = self._by_name.get(name)
        if present is None:
            return None
        column = self._kept.get(name)
        if column is None:
            column = self._kept[name] = self._columns.new(np.int64)
            column.data[list(present.rows)] = present.size
        self._recent[name] = column
        return column, len(present.rows)

    def total(self, name: str) -> int | None:
        """Give the size of an image in bytes, None where no row has it."""
        present = self._by_name.get(name)
        return present.size if present else None

    def replace(self, row: int, old: Mapping[str, int], new: Mapping[str, int]) -> None:
        """Set what lies on a row, given what lay there before."""
        if old == new:
            return
        self.epoch += 1
        for name in old:
            self._remove(row, name)
        for name, size in new.items():
            present = self._by_name.setdefault(name, Presence(size))
            present.rows.add(row)
            column = self._kept.get(name)
            if column is not None:
                column.data[row] = present.size

    def _remove(self, row: int, name: str) -> None:
        present = self._by_name[name]
        present.rows.discard(row)
        column = self._kept.get(name)
        if column is not None:
            column.data[row] = 0
        if not present.rows:
            del self._by_name[name]
            self._kept.pop(name, None)
            self._recent.pop(name, None)
