"""Node selectors answered on columns: which of the rows hold what a compiled selector asks.

Knows columns and compiled selectors, no plugin. A selector is read as it is whenever rows are asked about: nothing is
kept for single requirements. One about a label that no node has, or about values that none has, takes no array at all,
and nothing is asked of rows any more once the answer is settled for all of them.

Shapes: R rows asked about.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from policysched.framework import Mask, Rows
from policysched.model.selection.node_selectors import NAME_FIELD, FieldRequirement, NodeSelectorMatcher, NodeTerm
from policysched.model.selection.selectors import LabelRequirement, Operator, int64
from policysched.plugins.helper import row_count
from policysched.state.tables.interner import MISSING
from policysched.state.tables.nodes import NodeTable

Held = bool | Mask
"""The rows that hold something; True for all of them, False for none.

Shapes: (R,).
"""
Numbers = tuple[NDArray[np.int64], Mask]
BYTES_PER_TERM, BYTES_PER_LABEL, BYTES_PER_VALUE = 512, 192, 64
"""The memory that a term and each requirement in it, a label with its value, and a further value take. Units: bytes."""


class SelectorTest:
    """Tells which rows a selector matches: all of its labels, and one of its terms where it has terms."""

    __slots__ = ("_nodes", "_selector", "nbytes")

    def __init__(self, selector: NodeSelectorMatcher, nodes: NodeTable) -> None:
        self._selector = selector
        self._nodes = nodes
        self.nbytes = BYTES_PER_LABEL * len(selector.labels) + terms_nbytes(selector.terms or ())
        """The memory that the selector takes. Units: bytes."""

    def __call__(self, rows: Rows) -> Mask:
        """Return the rows that match.

        Shapes: (R,), a new array.
        """
        asked = AskedRows(self._nodes, rows)
        held = asked.labels(self._selector.labels)
        if held is not False and self._selector.terms is not None:
            held = _both(held, asked.any_of(self._selector.terms))
        return asked.mask(held)


class AskedRows:
    """Some rows about which much is asked: what several requirements read is looked up once."""

    __slots__ = ("_nodes", "_numbers", "_rows")

    def __init__(self, nodes: NodeTable, rows: Rows) -> None:
        self._nodes = nodes
        self._rows = rows
        self._numbers: dict[str, Numbers] = {}

    def mask(self, held: Held) -> Mask:
        """Return an answer as an array of its own."""
        return np.full(row_count(self._nodes, self._rows), held) if isinstance(held, bool) else held

    def labels(self, labels: Mapping[str, str]) -> Held:
        """Ask for labels of one value each."""
        if not all(map(self._nodes.has_label, labels)):
            return False
        return _all(self._among(self._codes(key), [value]) for key, value in labels.items())

    def labelled(self, keys: Collection[str]) -> Held:
        """Ask for labels of any value."""
        if not all(map(self._nodes.has_label, keys)):
            return False
        return _all(map(self._there, keys))

    def any_of(self, terms: Iterable[NodeTerm]) -> Held:
        """Ask for any of some terms."""
        found: Held = False
        for term in terms:
            found = _either(found, self.term(term))
            if found is True or (found is not False and found.all()):
                return True
        return found

    def term(self, term: NodeTerm) -> Held:
        """Ask for every requirement of a term."""
        labels = _all(self.label(one) for one in term.labels)
        return labels if labels is False else _both(labels, _all(self._field(one) for one in term.fields))

    def label(self, one: LabelRequirement) -> Held:
        """Ask for one label."""
        if not self._nodes.has_label(one.key):
            return one.admits(None)
        match one.operator:
            case Operator.IN:
                return self._among(self._codes(one.key), one.values)
            case Operator.NOT_IN:
                return _not(self._among(self._codes(one.key), one.values))
            case Operator.EXISTS:
                return self._there(one.key)
            case Operator.DOES_NOT_EXIST:
                return ~self._there(one.key)
        numbers, valid = self._read(one.key)
        beyond = numbers > one.bound if one.operator is Operator.GREATER else numbers < one.bound
        return valid & beyond

    def _codes(self, key: str) -> NDArray[np.int32]:
        return self._nodes.labels(key)[self._rows]

    def _there(self, key: str) -> Mask:
        there: Mask = self._codes(key) != MISSING
        return there

    def _among(self, codes: NDArray[np.int32], texts: Iterable[str]) -> Held:
        """Return which codes are those of one of some texts."""
        find = self._nodes.strings.find
        wanted = [code for text in texts if (code := find(text)) != MISSING]
        if not wanted:
            return False
        found: Mask = codes == wanted[0] if len(wanted) == 1 else np.isin(codes, wanted)
        return found

    def _field(self, one: FieldRequirement) -> Held:
        """Ask for one field; all but the name are empty on every node."""
        if one.key != NAME_FIELD:
            return one.admits("")
        named = self._among(self._nodes.name.data[self._rows], (one.value,))
        return _not(named) if one.negated else named

    def _read(self, key: str) -> Numbers:
        """Read a label's values as integers of 64 bits; tell where they are some."""
        if key not in self._numbers:
            codes, inverse = np.unique(self._codes(key), return_inverse=True)
            texts = (None if code == MISSING else self._nodes.strings.text(code) for code in codes.tolist())
            read = [None if text is None else int64(text) for text in texts]
            numbers = np.array([number or 0 for number in read], np.int64)
            valid = np.array([number is not None for number in read], np.bool_)
            self._numbers[key] = numbers[inverse], valid[inverse]
        return self._numbers[key]


def labels_test(keys: Collection[str], nodes: NodeTable) -> Callable[[Rows], Mask]:
    """Test whether nodes have some labels, whatever their values."""

    def test(rows: Rows) -> Mask:
        asked = AskedRows(nodes, rows)
        return asked.mask(asked.labelled(keys))

    return test


def terms_nbytes(terms: Iterable[NodeTerm]) -> int:
    """Estimate the memory of terms.

    Units: bytes.
    """
    return sum(
        BYTES_PER_TERM * (1 + len(one.labels) + len(one.fields))
        + BYTES_PER_VALUE * sum(len(label.values) for label in one.labels)
        for one in terms
    )


def _all(answers: Iterator[Held]) -> Held:
    """Join answers of which all must hold; those behind the first that leaves no row are not asked for."""
    found: Held = True
    for one in answers:
        found = _both(found, one)
        if found is False or (found is not True and not found.any()):
            return False
    return found


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
