"""`NamespaceSets`: the namespaces that namespaceSelectors of affinity terms match.

A set of namespaces is a bit string: thousands of terms may each select a different set of thousands of namespaces.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from policysched.model.selection.selectors import LabelMatcher
from policysched.state.tables.label_columns import LabelColumn, LabelColumns, Labels, restrict
from policysched.state.tables.sparse import is_sparse

MOST_LABELS = 1 << 10
"""Maximum number of namespace labels that are stored as columns; beyond it, all these columns are dropped."""
MOST_BYTES = 32 << 20
"""Maximum memory of the cached sets of namespaces; beyond it, the cache is emptied. Units: bytes."""
BYTES_PER_SET, BYTES_PER_NAME = 256, 96
"""Estimated memory of a set of namespaces without its bits, and of a namespace's name. Units: bytes."""


class NamespaceNumbers(dict[str, int]):
    """A number for each namespace, from 0 on; a number is never given to another namespace."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.names: list[str] = []
        for name in names:
            self.add(name)

    def add(self, name: str) -> int:
        """Give a namespace the next number."""
        number = self[name] = len(self.names)
        self.names.append(name)
        return number


class NamespaceSet:
    """A set of namespaces, stored as one bit for each namespace."""

    __slots__ = ("__weakref__", "_bits", "numbers")

    def __init__(self, numbers: NamespaceNumbers, bits: bytes) -> None:
        """Create a set from its bits, one for each namespace number.

        Args:
            numbers: The numbers of the namespaces; more may be added later.
            bits: The bits by number, in bytes; missing bits at the end are 0.
        """
        self.numbers, self._bits = numbers, bits

    def __contains__(self, name: str) -> bool:
        number = self.numbers.get(name)
        if number is None or number >> 3 >= len(self._bits):
            return False
        return bool(self._bits[number >> 3] >> (number & 7) & 1)

    def __iter__(self) -> Iterator[str]:
        names = self.numbers.names
        return (names[number] for number in self._unpacked().nonzero()[0].tolist())

    def __len__(self) -> int:
        return int.from_bytes(self._bits, "little").bit_count()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, NamespaceSet):
            return NotImplemented
        return self._bits == other._bits and self.numbers is other.numbers

    def __hash__(self) -> int:
        return hash(self._bits)

    @property
    def nbytes(self) -> int:
        """Memory of the set. Units: bytes."""
        return BYTES_PER_SET + len(self._bits)

    def holding(self, numbers: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return which of the given namespaces, by number, are in the set; −1 never is. Shapes: (K,)."""
        mine = self._unpacked()
        found: NDArray[np.bool_] = np.zeros(numbers.size, np.bool_)
        known = (numbers >= 0) & (numbers < mine.size)
        found[known] = mine[numbers[known]]
        return found

    def _unpacked(self) -> NDArray[np.bool_]:
        return np.unpackbits(np.frombuffer(self._bits, np.uint8), bitorder="little").view(np.bool_)


NO_NAMESPACES: Final = NamespaceSet(NamespaceNumbers(), b"")


class _Selected(NamedTuple):
    """The namespaces that a namespaceSelector matches, with the memory of selector and set."""

    namespaces: NamespaceSet
    nbytes: int


class NamespaceSets:
    """The labels of namespaces, and the sets of namespaces that namespaceSelectors match, as a cache."""

    def __init__(self) -> None:
        self._selected: LRUCache[LabelMatcher, _Selected] = LRUCache(MOST_BYTES, lambda one: one.nbytes)
        """The namespaces that each selector matches, cached until a namespace changes."""
        self._sets: weakref.WeakValueDictionary[bytes, NamespaceSet] = weakref.WeakValueDictionary()
        """The sets that are in use, by their bits; selectors that match the same namespaces share a set."""
        self._numbers = NamespaceNumbers()
        self._labels: dict[int, Labels] = {}
        """The labels of all namespaces, by namespace number."""
        self._present: NDArray[np.bool_] = np.zeros(0, np.bool_)
        """Whether the namespace of each number exists. Shapes: (numbers or more,)."""
        self._columns = self._no_columns()

    def put(self, name: str, labels: Labels) -> None:
        """Store the labels of a new or changed namespace."""
        self._selected.clear()
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers.add(name)
            if number >= self._present.size:
                self._present = np.concatenate((self._present, np.zeros(number + 1, np.bool_)))
        elif number in self._labels:
            self._columns.vanish(number, self._labels[number])
        self._present[number] = True
        self._labels[number] = labels
        self._columns.appear(number, labels)

    def drop(self, name: str) -> None:
        """Remove the labels of a deleted namespace."""
        self._selected.clear()
        number = self._numbers[name]
        self._columns.vanish(number, self._labels.pop(number))
        self._present[number] = False
        if is_sparse(len(self._numbers), len(self._labels)):
            self._renumber()

    def select(self, selectors: Iterable[LabelMatcher]) -> dict[LabelMatcher, NamespaceSet]:
        """Return the set of namespaces that each selector matches; equal sets are one object.

        Cost: for each selector that is not cached, a few operations over all namespaces. For a label without a column,
            O(labels of all namespaces), once for all selectors.
        """
        distinct = dict.fromkeys(selectors)
        selected = {one: known.namespaces for one in distinct if (known := self._selected.get(one)) is not None}
        unknown = [one for one in distinct if one not in selected]
        if unknown:
            if len(self._columns) > MOST_LABELS:
                self._columns = self._no_columns()
            columns = self._columns.of_selectors(unknown)
            selected |= {one: self._select(one, columns) for one in unknown}
        return selected

    def _select(self, selector: LabelMatcher, columns: Mapping[str, LabelColumn]) -> NamespaceSet:
        chosen: NDArray[np.bool_] = self._present[: len(self._numbers)].copy()
        restrict(chosen, selector, columns)
        bits = np.packbits(chosen, bitorder="little").tobytes().rstrip(b"\0")
        found = self._sets.get(bits)
        if found is None:
            found = self._sets[bits] = NamespaceSet(self._numbers, bits)
        nbytes = BYTES_PER_SET + selector.nbytes + found.nbytes
        if nbytes <= MOST_BYTES:
            self._selected[selector] = _Selected(found, nbytes)
        return found

    def _renumber(self) -> None:
        """Assign new namespace numbers without gaps; existing sets keep their old numbers."""
        names, labels = self._numbers.names, self._labels
        self._numbers = NamespaceNumbers(names[number] for number in labels)
        self._labels = dict(enumerate(labels.values()))
        self._present = np.ones(len(labels), np.bool_)
        self._sets.clear()
        self._columns = self._no_columns()

    def _no_columns(self) -> LabelColumns:
        return LabelColumns(self._labels.items, {})
