"""`KnownNodes`: the nodes by row, with their labels and groups, and which of them labels and selectors choose."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from policysched.devices.inventory.pools import NodeGroup
from policysched.late_dataclass import dataclass
from policysched.model.selection.node_selectors import NodeSelectorMatcher

_MOST_SELECTORS: Final = 256
"""Of how many selectors of slices the rows are remembered that they select."""


@dataclass(slots=True)
class KnownNode:
    """A node.

    Attributes:
        group: The nodes that see the same pools, this one among them.
    """

    name: str
    labels: Mapping[str, str]
    group: NodeGroup


class KnownNodes:
    """The nodes of a cluster.

    Attributes:
        by_row: The nodes by their row.
    """

    def __init__(self) -> None:
        self.by_row: dict[int, KnownNode] = {}
        self._rows: dict[str, int] = {}
        self._rows_by_label: dict[str, dict[str, set[int]]] = {}
        """The rows by the values of labels that were asked about since nodes changed."""
        self._rows_by_selector: dict[NodeSelectorMatcher, set[int]] = {}
        """The rows that selectors of slices select that were asked about since nodes changed."""

    def add(self, row: int, node: KnownNode) -> None:
        """Add a node."""
        self._forget_rows()
        self._rows[node.name] = row
        self.by_row[row] = node

    def relabel(self, row: int, labels: Mapping[str, str]) -> None:
        """Give a node other labels."""
        self._forget_rows()
        self.by_row[row].labels = labels

    def remove(self, row: int) -> KnownNode | None:
        """Take the node of a row away; return it, None where there is none."""
        known = self.by_row.pop(row, None)
        if known is not None:
            self._forget_rows()
            if self._rows.get(known.name) == row:
                del self._rows[known.name]
        return known

    def rows_named(self, names: Iterable[str]) -> list[int]:
        """Return the rows of those nodes of some names that are there."""
        return [self._rows[name] for name in names if name in self._rows]

    def rows_with(self, label: str, value: str) -> Collection[int]:
        """Return the rows of the nodes that have a value of a label."""
        by_value = self._rows_by_label.get(label)
        if by_value is None:
            by_value = self._rows_by_label[label] = {}
            for row, node in self.by_row.items():
                if label in node.labels:
                    by_value.setdefault(node.labels[label], set()).add(row)
        return by_value.get(value, ())

    def rows_selected(self, selector: NodeSelectorMatcher) -> set[int]:
        """Return the rows of the nodes that a selector selects."""
        known = self._rows_by_selector.get(selector)
        if known is None:
            if len(self._rows_by_selector) > _MOST_SELECTORS:
                self._rows_by_selector.clear()
            known = {row for row, node in self.by_row.items() if selector.matches(node.name, node.labels)}
            self._rows_by_selector[selector] = known
        return known

    def _forget_rows(self) -> None:
        """Forget which rows labels and selectors choose, because nodes changed."""
        self._rows_by_label.clear()
        self._rows_by_selector.clear()
