"""Which rows see something else because of what many rows look at together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from policysched.framework import RowNumbers, Rows
from policysched.language.ir.graph import Typed, per_graph
from policysched.rules.sources import Source


class Reach:
    """What some answers depend on beyond their rows, and what of it was seen last."""

    __slots__ = ("_seen", "sources")

    def __init__(self, sources: Sequence[Source]) -> None:
        self.sources = sources
        for source in sources:
            source.refresh()
        self._seen = [source.stamp for source in sources]

    def extend(self, rows: Rows) -> Rows:
        """Add the rows that sources reach to those that changed; the same object where there are none."""
        found = [rows]
        for index, source in enumerate(self.sources):
            source.refresh()
            if source.stamp != self._seen[index]:
                found.append(source.moved(self._seen[index]))
                self._seen[index] = source.stamp
        return rows if len(found) == 1 else together(found)


def together(found: Sequence[Rows]) -> Rows:
    """Join selections; one that is a slice is of all rows."""
    whole = next((rows for rows in found if isinstance(rows, slice)), None)
    if whole is not None:
        return whole
    joined: RowNumbers = np.concatenate([rows for rows in found if isinstance(rows, np.ndarray)])
    return joined


@per_graph
def is_common(root: Typed) -> bool:
    """Tell whether a graph says the same for all pod classes, whichever nodes are feasible."""
    read = any(item.root == "pod" or item.path[0] == "cached_image_bytes" for item in root.inputs)
    return not read and not root.normalizes
