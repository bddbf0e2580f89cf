"""Which images lie on which rows, and how large they are there.

`generation` moves whenever an answer about any image may have changed, the number of nodes included: scores of image
locality depend on how far an image has spread over all nodes. An image has one size, as in kube-scheduler: what the
first node that reported it said.

Source: pkg/scheduler/backend/cache/cache.go (addNodeImageStates).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from cachetools import LRUCache

from policysched.state.tables.columns import RowNumbers

KEPT = 64
"""Of how many images the rows are kept as an array."""


@dataclass(slots=True)
class Presence:
    """An image that lies on some rows; `size` in bytes is what the first of them said, until none has it."""

    size: int
    rows: set[int] = field(default_factory=set)


class ImageTable:
    """Sizes of images by name and row."""

    __slots__ = ("_by_name", "_rows", "generation")

    def __init__(self) -> None:
        self._by_name: dict[str, Presence] = {}
        self._rows: LRUCache[str, RowNumbers] = LRUCache(KEPT)
        self.generation = 0

    def rows_with(self, name: str) -> tuple[RowNumbers, int] | None:
        """Give the rows that have an image, in no order, and its size; None where no row has it.

        Shapes: (rows,), not to be changed.
        Units: bytes.
        """
        present = self._by_name.get(name)
        if present is None:
            return None
        rows = self._rows.get(name)
        if rows is None:
            rows = self._rows[name] = np.fromiter(present.rows, np.intp, len(present.rows))
        return rows, present.size

    def total(self, name: str) -> int | None:
        """Give the size of an image in bytes, None where no row has it."""
        present = self._by_name.get(name)
        return present.size if present else None

    def replace(self, row: int, old: Mapping[str, int], new: Mapping[str, int]) -> None:
        """Set what lies on a row, given what lay there before."""
        if old == new:
            return
        self.generation += 1
        for name in old:
            self._remove(row, name)
        for name, size in new.items():
            self._by_name.setdefault(name, Presence(size)).rows.add(row)
            self._rows.pop(name, None)

    def _remove(self, row: int, name: str) -> None:
        present = self._by_name[name]
        present.rows.discard(row)
        self._rows.pop(name, None)
        if not present.rows:
            del self._by_name[name]
