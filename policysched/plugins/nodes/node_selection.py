"""Evaluation of node selectors on many nodes at once.

This module knows columns and compiled selectors, but no plugin. A selector is evaluated at each call; results of single
requirements are not kept between calls. A requirement on a label or value that no node has needs no array, and
evaluation ends when the result is the same for all rows.

Shapes: R rows evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from policysched.framework import Mask, Rows
from policysched.model.selection.node_selectors import NAME_FIELD, FieldRequirement, NodeSelectorMatcher, NodeTerm
from policysched.model.selection.selectors import LabelRequirement, Operator, int64
from policysched.plugins.columns import row_count
from policysched.state.tables.interner import MISSING
from policysched.state.tables.nodes import NodeTable

Held = bool | Mask
"""The result of a requirement: a mask of the nodes that match, True for all nodes, or False for no node.

Shapes: (R,).
"""
Numbers = tuple[NDArray[np.int64], Mask]


FEW_ROWS: Final = 8
"""Maximum number of nodes that are evaluated one by one instead of with arrays."""
MOST_HELD: Final = 64
"""Maximum number of requirements whose results are cached during an evaluation; the others are recomputed."""


class SelectorTest:
    """A compiled node selector: a node must have all its labels and match any of its terms, if it has terms."""

    __slots__ = ("_nodes", "_selector")

    def __init__(self, selector: NodeSelectorMatcher, nodes: NodeTable) -> None:
        self._selector = selector
        self._nodes = nodes

    def __call__(self, rows: Rows) -> Mask:
        """Return a mask of the nodes that match the selector.

        Shapes: (R,), a new array.
        """
        asked = AskedRows(self._nodes, rows)
        held = asked.labels(self._selector.labels)
        if held is not False and self._selector.terms is not None:
            held = _both(held, asked.any_of(self._selector.terms))
        return asked.mask(held)


class AskedRows:
    """The nodes on which a selector is evaluated, with label values and results that several requirements share."""

    __slots__ = ("_held", "_nodes", "_numbers", "_places", "_row_numbers", "_rows")

    def __init__(self, nodes: NodeTable, rows: Rows) -> None:
        self._nodes = nodes
        self._rows = rows
        self._numbers: dict[str, Numbers] = {}
        self._held: dict[LabelRequirement, Held] = {}
        """The result of each requirement; many terms can share a requirement."""
        self._row_numbers: list[int] | None = None
        self._places: dict[str, dict[int, list[int]]] = {}
        """The indices of the nodes, by label key and by the number (code) of the label value."""

    def mask(self, held: Held) -> Mask:
        """Return the result of a requirement as a mask; for the results True and False, a new array."""
        return np.full(row_count(self._nodes, self._rows), held) if isinstance(held, bool) else held

    def labels(self, labels: Mapping[str, str]) -> Held:
        """Return which nodes have all of the given labels with their values."""
        if not all(map(self._nodes.has_label, labels)):
            return False
        return _all(self._among(self._codes(key), [value]) for key, value in labels.items())

    def labelled(self, keys: Collection[str]) -> Held:
        """Return which nodes have all of the label keys."""
        if not all(map(self._nodes.has_label, keys)):
            return False
        return _all(map(self._has_label, keys))

    def any_of(self, terms: Iterable[NodeTerm]) -> Held:
        """Return which nodes match any of the given node selector terms.

        Terms that only require values of the same label, or node names, are evaluated together. Terms that require
        values which few rows have are evaluated row by row.
        """
        values: dict[str, list[str]] = {}
        names: list[str] = []
        others: list[NodeTerm] = []
        for term in terms:
            if len(term.labels) == 1 and not term.fields and term.labels[0].operator is Operator.IN:
                values.setdefault(term.labels[0].key, []).extend(term.labels[0].values)
            elif len(term.fields) == 1 and not term.labels and _names_a_node(term.fields[0]):
                names.append(term.fields[0].value)
            else:
                others.append(term)
        found = self._among(self._nodes.name.data[self._rows], names) if names else False
        for key, texts in values.items():
            found = _either(found, self.label(LabelRequirement(key, Operator.IN, tuple(texts))))
        few: list[int] = []
        for term in others:
            places = self._few(term)
            if places is None:
                found = _either(found, self.term(term))
                if found is True or (found is not False and found.all()):
                    return True
            else:
                few += places
        return self._with(found, few)

    def _few(self, term: NodeTerm) -> list[int] | None:
        """Return the indices of the nodes that match a term; None if more than `FEW_ROWS` nodes may match."""
        if row_count(self._nodes, self._rows) <= FEW_ROWS:
            return None
        for one in term.labels:
            if one.operator is not Operator.IN or len(one.values) > FEW_ROWS or not self._nodes.has_label(one.key):
                continue
            places = self._having(one)
            if len(places) <= FEW_ROWS:
                return [place for place in places if self._holds(term, place)]
        return None

    def _having(self, one: LabelRequirement) -> list[int]:
        """Return the indices of nodes on which a label has a required value; the search ends beyond `FEW_ROWS`."""
        of = self._places.get(one.key)
        if of is None:
            of = self._places[one.key] = {}
            for place, code in enumerate(self._codes(one.key).tolist()):
                of.setdefault(code, []).append(place)
        found: list[int] = []
        for text in one.values:
            code = self._nodes.strings.find(text)
            if code != MISSING and len(found) <= FEW_ROWS:
                found += of.get(code, ())
        return found

    def _holds(self, term: NodeTerm, place: int) -> bool:
        if self._row_numbers is None:
            self._row_numbers = np.arange(self._nodes.columns.capacity)[self._rows].tolist()
        node = self._nodes.nodes[self._row_numbers[place]]
        return node is not None and term.matches(node.metadata.name, node.metadata.labels)

    def _with(self, held: Held, places: list[int]) -> Held:
        """Return a result to which the nodes at given indices are added."""
        if held is True or not places:
            return held
        found: Mask = np.zeros(row_count(self._nodes, self._rows), np.bool_) if held is False else held.copy()
        found[places] = True
        return found

    def term(self, term: NodeTerm) -> Held:
        """Return which nodes match all requirements of a node selector term."""
        labels = _all(self.label(one) for one in term.labels)
        return labels if labels is False else _both(labels, _all(self._field(one) for one in term.fields))

    def label(self, one: LabelRequirement) -> Held:
        """Return which nodes match a requirement of matchExpressions."""
        if not self._nodes.has_label(one.key):
            return one.admits(None)
        held = self._held.get(one)
        if held is None:
            held = self._compute(one)
            if len(self._held) < MOST_HELD:
                self._held[one] = held
        return held

    def _compute(self, one: LabelRequirement) -> Held:
        match one.operator:
            case Operator.IN:
                return self._among(self._codes(one.key), one.values)
            case Operator.NOT_IN:
                return _not(self._among(self._codes(one.key), one.values))
            case Operator.EXISTS:
                return self._has_label(one.key)
            case Operator.DOES_NOT_EXIST:
                return ~self._has_label(one.key)
        numbers, valid = self._read(one.key)
        beyond = numbers > one.bound if one.operator is Operator.GREATER else numbers < one.bound
        return valid & beyond

    def _codes(self, key: str) -> NDArray[np.int32]:
        return self._nodes.labels(key)[self._rows]

    def _has_label(self, key: str) -> Mask:
        there: Mask = self._codes(key) != MISSING
        return there

    def _among(self, codes: NDArray[np.int32], texts: Iterable[str]) -> Held:
        """Return which label values, given by their numbers (codes), are among the texts."""
        find = self._nodes.strings.find
        wanted = [code for text in texts if (code := find(text)) != MISSING]
        if not wanted:
            return False
        found: Mask = codes == wanted[0] if len(wanted) == 1 else np.isin(codes, wanted)
        return found

    def _field(self, one: FieldRequirement) -> Held:
        """Return which nodes match a requirement of matchFields; a field other than the name is empty on every node."""
        if one.key != NAME_FIELD:
            return one.admits("")
        named = self._among(self._nodes.name.data[self._rows], (one.value,))
        return _not(named) if one.negated else named

    def _read(self, key: str) -> Numbers:
        """Return a label's values parsed as 64-bit integers, with a mask of the nodes that have an integer."""
        if key not in self._numbers:
            codes, inverse = np.unique(self._codes(key), return_inverse=True)
            texts = (None if code == MISSING else self._nodes.strings.text(code) for code in codes.tolist())
            read = [None if text is None else int64(text) for text in texts]
            numbers = np.array([number or 0 for number in read], np.int64)
            valid = np.array([number is not None for number in read], np.bool_)
            self._numbers[key] = numbers[inverse], valid[inverse]
        return self._numbers[key]


def labels_test(keys: Collection[str], nodes: NodeTable) -> Callable[[Rows], Mask]:
    """Return a function that returns which nodes have all of the given label keys."""

    def test(rows: Rows) -> Mask:
        asked = AskedRows(nodes, rows)
        return asked.mask(asked.labelled(keys))

    return test


def _all(answers: Iterator[Held]) -> Held:
    """Return the nodes that all results contain; stop when no node remains."""
    found: Held = True
    for one in answers:
        found = _both(found, one)
        if found is False or (found is not True and not found.any()):
            return False
    return found


def _names_a_node(one: FieldRequirement) -> bool:
    return one.key == NAME_FIELD and not one.negated


def _both(one: Held, other: Held) -> Held:
    if isinstance(one, bool):
        return other if one else False
    if isinstance(other, bool):
        return one if other else False
    return one & other


def _either(one: Held, other: Held) -> Held:
    if isinstance(one, bool):
        return True if one else other
    if isinstance(other, bool):
        return True if other else one
    return one | other


def _not(held: Held) -> Held:
    return not held if isinstance(held, bool) else ~held
