"""`KnownNodes`: the nodes by row number, indexed by name and label, for the node selectors of slices.

Sets of rows are integers, as in `row_bits`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from policysched.devices.inventory.pool_views import NodeGroup
from policysched.devices.inventory.row_bits import bits_of
from policysched.model.selection.node_selectors import (
    NAME_FIELD,
    FieldRequirement,
    NodeSelectorMatcher,
    NodeTerm,
)
from policysched.model.selection.selectors import OfLabel

_MOST_SELECTORS: Final = 256
"""Maximum number of node selectors with cached results; beyond it, all cached results are dropped."""
_MOST_REQUIREMENTS: Final = 20_000
"""Maximum number of requirements in all cached node selectors; beyond it, all cached results are dropped."""


@dataclass(slots=True)
class KnownNode:
    """A node with its name, labels and node group.

    Attributes:
        group: The group of nodes that see the same pools.
    """

    name: str
    labels: Mapping[str, str]
    group: NodeGroup


class _RowsOfLabel:
    """Index of the nodes with one label key by the label's value; sets of nodes are bit sets of row numbers."""

    __slots__ = ("_by_value", "all")

    def __init__(self, values: Iterable[tuple[int, str]]) -> None:
        rows: dict[str, list[int]] = {}
        for row, value in values:
            rows.setdefault(value, []).append(row)
        self._by_value = {value: bits_of(each) for value, each in rows.items()}
        self.all = self.having(self._by_value)

    def change(self, row: int, value: str) -> None:
        """Add a node under its label value; if the node is already there, remove it."""
        self.all ^= 1 << row
        rows = self._by_value.get(value, 0) ^ 1 << row
        if rows:
            self._by_value[value] = rows
        else:
            del self._by_value[value]

    def having(self, values: Iterable[str]) -> int:
        """Return the nodes whose label has any of the given values, as a bit set."""
        bits = 0
        for value in values:
            bits |= self._by_value.get(value, 0)
        return bits

    def admitted(self, said: OfLabel, everything: int) -> int:
        """Return the nodes, as a bit set, that meet requirements on the label; these may allow nodes without it."""
        values, are_admitted = said.among(self._by_value.keys())
        rows = self.having(values)
        if not are_admitted:
            rows ^= self.all
        return rows | (everything ^ self.all) if said.admits_absence else rows


class KnownNodes:
    """The nodes of a cluster, indexed by name and label, for the node selectors of slices.

    Attributes:
        by_row: The nodes by their row.
        all: Their rows.
    """

    def __init__(self) -> None:
        self.by_row: dict[int, KnownNode] = {}
        self.all = 0
        self._rows: dict[str, int] = {}
        self._counts: dict[str, int] = {}
        """The number of nodes that have each label key."""
        self._by_label: dict[str, _RowsOfLabel] = {}
        """The nodes by label key and value, for label keys that were looked up."""
        self._by_selector: dict[NodeSelectorMatcher, int] = {}
        """The nodes that match each node selector as a bit set, cached until nodes change."""
        self._remembered = 0
        """Number of requirements in all cached node selectors."""

    def add(self, row: int, node: KnownNode) -> None:
        """Add a node with its row number to the indexes."""
        self._forget_selectors()
        self._rows[node.name] = row
        self.by_row[row] = node
        self.all |= 1 << row
        self._change_labels(row, {}, node.labels)

    def relabel(self, row: int, labels: Mapping[str, str]) -> None:
        """Replace the labels of the node with a row number."""
        self._forget_selectors()
        known = self.by_row[row]
        self._change_labels(row, known.labels, labels)
        known.labels = labels

    def remove(self, row: int) -> KnownNode | None:
        """Remove and return the node with a row number; None if there is no such node."""
        known = self.by_row.pop(row, None)
        if known is not None:
            self._forget_selectors()
            self._change_labels(row, known.labels, {})
            self.all ^= 1 << row
            if self._rows.get(known.name) == row:
                del self._rows[known.name]
        return known

    def named(self, names: Iterable[str]) -> int:
        """Return the nodes with the given names as a bit set; names without a node are skipped."""
        return bits_of([self._rows[name] for name in names if name in self._rows])

    def having(self, label: str, values: Iterable[str]) -> int:
        """Return the nodes on which a label has any of the given values, as a bit set."""
        of_label = self._of_label(label)
        return of_label.having(values) if of_label is not None else 0

    def selected(self, selector: NodeSelectorMatcher) -> int:
        """Return the nodes that a node selector matches as a bit set, cached until nodes change.

        Cost: O(requirements + values of labels that nodes have).
        """
        known = self._by_selector.get(selector)
        if known is None:
            known = self._selected(selector)
            weight = 1 + sum(len(term.labels) + len(term.fields) for term in selector.terms or ())
            if len(self._by_selector) >= _MOST_SELECTORS or self._remembered + weight > _MOST_REQUIREMENTS:
                self._forget_selectors()
            self._remembered += weight
            self._by_selector[selector] = known
        return known

    def _selected(self, selector: NodeSelectorMatcher) -> int:
        rows = self.all
        for key, value in selector.labels.items():
            rows &= self.having(key, (value,))
        if selector.terms is None:
            return rows
        found = 0
        for term in selector.terms:
            found |= rows & self._of_term(term)
            if found == rows:
                break
        return found

    def _of_term(self, term: NodeTerm) -> int:
        """Return the nodes that a node selector term matches, as a bit set."""
        rows, by_label = self.all, term.by_label
        if not self._counts.keys() >= by_label.demanded:
            return 0
        for key in by_label.stated.keys() & self._counts.keys():
            of_label = self._of_label(key)
            if of_label is not None:
                rows &= of_label.admitted(by_label.of(key), self.all)
        return rows & self._of_fields(term.fields) if rows and term.fields else rows

    def _of_fields(self, fields: Iterable[FieldRequirement]) -> int:
        """Return the nodes that match requirements of matchFields as a bit set; a node without a name matches all."""
        rows = self.all
        for one in fields:
            having = self._with_field(one.key, one.value)
            rows &= having ^ self.all if one.negated else having
        return rows | self._named("")

    def _with_field(self, key: str, value: str) -> int:
        if key == NAME_FIELD:
            return self._named(value)
        return 0 if value else self.all  # fields other than the name are empty

    def _named(self, name: str) -> int:
        row = self._rows.get(name)
        return 0 if row is None else 1 << row

    def _of_label(self, label: str) -> _RowsOfLabel | None:
        """Return the index of nodes by the values of a label; None if no node has the label."""
        known = self._by_label.get(label)
        if known is None and label in self._counts:
            known = self._by_label[label] = _RowsOfLabel(
                (row, node.labels[label]) for row, node in self.by_row.items() if label in node.labels
            )
        return known

    def _change_labels(self, row: int, before: Mapping[str, str], after: Mapping[str, str]) -> None:
        """Update the indexes after the labels of a node, given by its row number, changed."""
        for key, value in before.items() - after.items():
            if key in self._by_label:
                self._by_label[key].change(row, value)
        for key, value in after.items() - before.items():
            if key in self._by_label:
                self._by_label[key].change(row, value)
        for key in after.keys() - before.keys():
            self._counts[key] = self._counts.get(key, 0) + 1
        for key in before.keys() - after.keys():
            self._counts[key] -= 1
            if not self._counts[key]:
                del self._counts[key]
                self._by_label.pop(key, None)

    def _forget_selectors(self) -> None:
        """Drop the cached results of node selectors, because nodes changed."""
        self._by_selector.clear()
        self._remembered = 0
