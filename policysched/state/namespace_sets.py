"""Which namespaces the selectors of affinity terms select, by the labels of namespaces.

A set of them is a bit for each namespace: of thousands of terms each may select another set of thousands.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from policysched.model.selection.selectors import LabelMatcher
from policysched.state.object_tables import NamespaceChanges
from policysched.state.tables.label_columns import LabelColumn, LabelColumns, Labels, restrict

MOST_LABELS = 1 << 10
"""How many labels of namespaces have a column."""
MOST_BYTES = 32 << 20
"""How much is remembered of what selectors select. Units: bytes."""
MOST_CHANGED: Final = 32
"""Up to how many namespaces that changed a selector is asked about alone, and not about all namespaces."""
SPARE: Final = 1 << 10
"""How many namespaces may be numbered that are gone, beside as many as there are."""
BYTES_PER_SET, BYTES_PER_NAME = 256, 96
"""What a set takes beside its bits, and the name of a namespace. Units: bytes."""


class NamespaceNumbers(dict[str, int]):
    """The numbers of namespaces, from 0 on; none is taken back."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.names: list[str] = []
        for name in names:
            self.add(name)

    def add(self, name: str) -> int:
        """Number a namespace."""
        number = self[name] = len(self.names)
        self.names.append(name)
        return number


class NamespaceSet:
    """Some namespaces, as a bit for each by its number.

    Args:
        numbers: The numbers of namespaces, from 0 on in their order: none is ever taken back, others are added.
        bits: The bits, in bytes; those that are missing at the end are 0.
    """

    __slots__ = ("__weakref__", "_bits", "numbers")

    def __init__(self, numbers: NamespaceNumbers, bits: bytes) -> None:
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
        """The memory that it takes. Units: bytes."""
        return BYTES_PER_SET + len(self._bits)

    def holding(self, numbers: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return for each of some numbers whether it is in the set; −1 is none. Shapes: (K,)."""
        mine = self._unpacked()
        found: NDArray[np.bool_] = np.zeros(numbers.size, np.bool_)
        known = (numbers >= 0) & (numbers < mine.size)
        found[known] = mine[numbers[known]]
        return found

    def _unpacked(self) -> NDArray[np.bool_]:
        return np.unpackbits(np.frombuffer(self._bits, np.uint8), bitorder="little").view(np.bool_)


NO_NAMESPACES: Final = NamespaceSet(NamespaceNumbers(), b"")


class _Known(NamedTuple):
    """What a selector was found to select."""

    selected: NamespaceSet
    position: int
    """The position of the changes up to which that is so."""
    nbytes: int


class NamespaceSets:
    """The namespaces that selectors select, by their labels.

    Args:
        labels: The labels of the namespaces there are, at any time.
        changes: Which of them changed.
    """

    def __init__(self, labels: Mapping[str, Labels], changes: NamespaceChanges) -> None:
        self._current, self._changes = labels, changes
        self._seen = -1
        """The position of the changes that are known."""
        self._selected: LRUCache[LabelMatcher, _Known] = LRUCache(MOST_BYTES, lambda known: known.nbytes)
        self._sets: weakref.WeakValueDictionary[bytes, NamespaceSet] = weakref.WeakValueDictionary()
        """The sets that selectors select by their bits: many select the same one."""
        self._columns: LabelColumns
        self._begin()

    def select(self, selectors: Iterable[LabelMatcher]) -> dict[LabelMatcher, NamespaceSet]:
        """Return the namespaces that each of some selectors selects; equal sets are one.

        Cost: O(changed namespaces, times their labels); for an unknown label O(all namespaces, times their labels) for
            all selectors together; for an unknown selector a few operations over all namespaces.
        """
        self._refresh()
        selected: dict[LabelMatcher, NamespaceSet] = {}
        unknown: list[LabelMatcher] = []
        for one in dict.fromkeys(selectors):
            known = self._known(one)
            if known is None:
                unknown.append(one)
            else:
                selected[one] = known
        if unknown:
            if len(self._columns) > MOST_LABELS:
                self._columns = self._no_columns()
            columns = self._columns.of_selectors(unknown)
            selected |= {one: self._select(one, columns) for one in unknown}
        return selected

    def _refresh(self) -> None:
        if self._seen == self._changes.position:
            return
        changed = self._changes.since(self._seen) if self._seen >= 0 else None
        self._seen = self._changes.position
        if changed is None or len(self._numbers) > 2 * len(self._current) + SPARE:
            self._begin()
            changed = self._current
        for name in changed:
            self._take(name)

    def _select(self, selector: LabelMatcher, columns: Mapping[str, LabelColumn]) -> NamespaceSet:
        chosen: NDArray[np.bool_] = self._present[: len(self._numbers)].copy()
        restrict(chosen, selector, columns)
        bits = np.packbits(chosen, bitorder="little").tobytes().rstrip(b"\0")
        found = self._sets.get(bits)
        if found is None:
            found = self._sets[bits] = NamespaceSet(self._numbers, bits)
        self._remember(selector, found)
        return found

    def _known(self, selector: LabelMatcher) -> NamespaceSet | None:
        """Return the namespaces that a selector selects, None where the cache has no current answer.

        Cost: O(namespaces that changed since the cached answer), up to `MOST_CHANGED`.
        """
        known = self._selected.get(selector)
        if known is None:
            return None
        if known.position == self._seen:
            return known.selected
        changed = self._changes.since(known.position)
        if changed is None or len(changed) > MOST_CHANGED:
            return None
        for name in changed:
            labels = self._current.get(name)
            if (labels is not None and selector.matches(labels)) is not (name in known.selected):
                return None
        self._remember(selector, known.selected)
        return known.selected

    def _remember(self, selector: LabelMatcher, selected: NamespaceSet) -> None:
        nbytes = BYTES_PER_SET + selector.nbytes + selected.nbytes
        if nbytes <= MOST_BYTES:
            self._selected[selector] = _Known(selected, self._seen, nbytes)

    def _begin(self) -> None:
        """Number the namespaces anew: sets of before keep the numbers that they have."""
        self._numbers = NamespaceNumbers()
        self._labels: dict[int, Labels] = {}
        """The labels of each namespace there is by its number, as the columns know them."""
        self._present: NDArray[np.bool_] = np.zeros(0, np.bool_)
        """Which numbers are those of namespaces there are."""
        self._selected.clear()
        self._sets.clear()
        self._columns = self._no_columns()

    def _no_columns(self) -> LabelColumns:
        return LabelColumns(self._labels.items, {})

    def _take(self, name: str) -> None:
        """Take the labels of a namespace as they are now, or that it is gone."""
        labels, number = self._current.get(name), self._numbers.get(name)
        if number is not None and number in self._labels:
            self._columns.vanish(number, self._labels.pop(number))
            self._present[number] = False
        if labels is None:
            return
        if number is None:
            number = self._numbers.add(name)
            if number >= self._present.size:
                self._present = np.concatenate((self._present, np.zeros(number + 1, np.bool_)))
        self._present[number] = True
        self._labels[number] = labels
        self._columns.appear(number, labels)
