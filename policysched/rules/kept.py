"""Answers of rules that placements do not change, kept by row instead of recomputed.

Most rules read labels, taints or capacities. Their answers are asked for again only on rows where one of those
changed, however often pods come and go in between. A rule that reads nothing of the pod answers the same for every pod
class: all classes share one array.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policysched.framework import Aspect, Rows
from policysched.language.typed import Input
from policysched.rules.compiled import aspects_read
from policysched.state.cluster import Cluster

PLACEMENTS = Aspect.USAGE | Aspect.PORTS | Aspect.PODS
"""The aspects that placing and removing pods changes."""


def lasts(inputs: tuple[Input, ...]) -> bool:
    """Tell whether placing pods cannot change what a rule with these inputs says of a row."""
    return not aspects_read(inputs) & PLACEMENTS


def is_shared(inputs: tuple[Input, ...]) -> bool:
    """Tell whether a rule with these inputs says the same for every pod."""
    return lasts(inputs) and all(item.root == "node" and item.path[0] != "cached_image_bytes" for item in inputs)


class Kept:
    """One rule's answers by row, brought up to date from the journal when they are read."""

    __slots__ = ("_answer", "_cluster", "_reads", "_seen", "_values")

    def __init__(
        self, cluster: Cluster, inputs: tuple[Input, ...], dtype: Any, answer: Callable[[Rows], NDArray[Any]]
    ) -> None:
        self._cluster = cluster
        self._reads = int(aspects_read(inputs) | Aspect.PRESENCE)
        self._answer = answer
        self._seen = 0
        self._values: NDArray[Any] = np.zeros(0, dtype)

    def at(self, rows: Rows) -> NDArray[Any]:
        """Give the answers for rows.

        Shapes: (R,).
        """
        journal, nodes = self._cluster.journal, self._cluster.nodes
        if self._values.size != nodes.columns.capacity:
            self._values = np.zeros(nodes.columns.capacity, self._values.dtype)
            self._fill(slice(0, nodes.size))
        elif self._seen != journal.position:
            self._catch_up()
        self._seen = journal.position
        values: NDArray[Any] = self._values[rows]
        return values

    def _catch_up(self) -> None:
        changed = self._cluster.journal.since(self._seen)
        if changed is None:
            self._fill(slice(0, self._cluster.nodes.size))
            return
        rows, aspects = changed
        touched = (aspects & self._reads) != 0
        if touched.any():
            self._fill(rows[touched])

    def _fill(self, rows: Rows) -> None:
        self._values[rows] = self._answer(rows)
