"""Labels of placed pods' signatures, so that a selector is asked once a distinct value and not once a signature.

Where no two placed pods have the same labels, as those of a StatefulSet, there are as many signatures as pods. A label
has a column as long as somebody holds it.
"""

from __future__ import annotations

import weakref
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from policysched.model.selection.selectors import LabelMatcher, OfLabel
from policysched.state.placed.pods import PlacedPod
from policysched.state.tables.label_columns import FIRST_SIZE, Chosen, LabelColumn, LabelColumns, Labels, keep, restrict

MOST_HELD = 64
"""A counter that was weighed by more columns than this holds none of them: others are made again in time."""
FEW = 64
"""Up to how many signatures are asked one by one."""
NAMESPACE: Final = "namespace"
LEAVING: Final = "leaving"
"""The columns of the namespaces of pods, and of pods that are being deleted."""


class SetOfNamespaces(Protocol):
    """Namespaces that share a set, by their numbers."""

    @property
    def numbers(self) -> Mapping[str, int]:
        """The numbers of namespaces, the same object for many sets."""

    def holding(self, numbers: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return for each of some numbers whether it is in the set; −1 is none. Shapes: (K,)."""


class SignatureLabels:
    """Which signatures selectors select.

    Args:
        present: A pod of each signature, None where it is free; it may grow.

    Shapes: S is the number of signatures, those that are free included.
    """

    __slots__ = ("_asked", "_columns", "_held", "_meant", "_numbers", "_others", "_prepared", "_present", "_used")

    def __init__(self, present: Sequence[PlacedPod | None]) -> None:
        self._present = present
        self._held: weakref.WeakValueDictionary[str, LabelColumn] = weakref.WeakValueDictionary()
        self._columns = LabelColumns(self._labels, self._held)
        self._others: weakref.WeakValueDictionary[str, LabelColumn] = weakref.WeakValueDictionary()
        """The columns that are none of a label."""
        self._asked: dict[str, LabelColumn] = {}
        """Those of them that were asked, for the question at hand."""
        self._prepared: dict[str, LabelColumn] = {}
        """The columns of labels, for the question at hand."""
        self._meant: dict[SetOfNamespaces, Chosen] = {}
        """Which numbers of the namespaces' column some sets of them have, for the question at hand."""
        self._numbers: dict[int, tuple[Mapping[str, int], NDArray[np.intp]]] = {}
        """The numbers that sets of namespaces have for those of the column, for the question at hand."""
        self._used: Chosen = np.zeros(FIRST_SIZE, np.bool_)

    def appear(self, signature: int, placed: PlacedPod) -> None:
        """Put a new signature into the columns that there are.

        Cost: O(columns) or O(labels), whichever is less.
        """
        self._grow(signature + 1)
        self._used[signature] = True
        self._columns.appear(signature, placed.pod.metadata.labels)
        for kind, column in tuple(self._others.items()):
            value = _value(kind, placed)
            if value is not None:
                column.put(signature, value)

    def vanish(self, signature: int, placed: PlacedPod) -> None:
        """Take a signature out of the columns.

        Cost: O(columns) or O(labels), whichever is less.
        """
        if signature < self._used.size:
            self._used[signature] = False
        self._columns.vanish(signature, placed.pod.metadata.labels)
        for column in tuple(self._others.values()):
            column.drop(signature)

    def present(self) -> Chosen:
        """Return which signatures are in use.

        Shapes: (S,).
        """
        self._grow(len(self._present))  # one that could not be entered may have left a free one behind the others
        return self._used[: len(self._present)].copy()

    def prepare(self, selectors: Iterable[LabelMatcher]) -> None:
        """Find the columns of all labels that selectors ask about, in one go; `prepared` gives them to who holds them.

        Cost: where one is missing O(signatures times labels of each) at most.
        """
        self._prepared |= self._columns.of_selectors(selectors)

    def prepared(self) -> tuple[LabelColumn, ...]:
        """Return the columns that were looked at since this was asked last, where they are not too many to be held."""
        prepared, asked = set(self._prepared.values()), self._asked
        self._prepared, self._asked, self._meant, self._numbers = {}, {}, {}, {}
        return (*(prepared if len(prepared) <= MOST_HELD else ()), *asked.values())

    def restrict(self, chosen: Chosen, selector: LabelMatcher) -> None:
        """Take out of some signatures those that a selector does not select; its columns are prepared.

        Shapes: chosen (S,).
        """
        restrict(chosen, selector, self._prepared)

    def select(self, chosen: Chosen, selector: LabelMatcher, beside: Iterable[LabelMatcher] = ()) -> None:
        """Take out of some signatures those that a selector does not select; few are asked one by one.

        Args:
            chosen: The signatures.
            selector: The selector.
            beside: Selectors that are asked next: the columns of all of them are found in one go.

        Shapes: chosen (S,).
        """
        left = chosen.nonzero()[0].tolist()
        if len(left) > FEW:
            self.prepare((selector, *beside))
            self.restrict(chosen, selector)
            return
        for signature in left:
            placed = self._present[signature]
            chosen[signature] = placed is not None and selector.matches_at_once(placed.pod.metadata.labels)

    def within(self, chosen: Chosen, namespaces: SetOfNamespaces | None, also: Collection[str] = ()) -> None:
        """Take out those of other namespaces than some, where not all are meant.

        Args:
            chosen: The signatures.
            namespaces: The namespaces, None for all; for terms that share the set it is asked once.
            also: Other ones.

        Shapes: chosen (S,).
        """
        if namespaces is None:
            return
        column = self._other(NAMESPACE)
        meant = self._meant.get(namespaces)
        if meant is None:
            meant = self._meant[namespaces] = namespaces.holding(self._numbered(namespaces.numbers, column))
        if also:
            meant = meant | column.numbered(also)
        keep(chosen, column.objects[meant[column.codes]])

    def _numbered(self, numbers: Mapping[str, int], column: LabelColumn) -> NDArray[np.intp]:
        """Return the number of each namespace in the column, −1 where it has none; found once a question."""
        known = self._numbers.get(id(numbers))
        if known is None:
            found = np.array([numbers.get(name, -1) for name in column.numbers], np.intp)
            known = self._numbers[id(numbers)] = numbers, found
        return known[1]

    def in_namespace(self, chosen: Chosen, name: str) -> None:
        """Take out those of other namespaces than one.

        Shapes: chosen (S,).
        """
        column = self._other(NAMESPACE)
        keep(chosen, column.objects[column.numbered((name,))[column.codes]])

    def staying(self, chosen: Chosen) -> None:
        """Take out those whose pods are being deleted.

        Shapes: chosen (S,).
        """
        chosen[self._other(LEAVING).objects] = False

    def add_by_label(self, totals: NDArray[np.int64], label: str, weighted: Iterable[tuple[LabelMatcher, int]]) -> int:
        """Add what selectors weigh that ask about one label alone, to what each of them selects.

        Args:
            totals: What is added to, but for what is returned.
            label: The label.
            weighted: The selectors, each with its weight.

        Returns:
            What all signatures weigh that are without the label, to be added to all.

        Shapes: totals (S,).
        Cost: O(signatures that have the label), and for each selector O(values that it lists).
        """
        column = self._prepared[label]
        numbers = column.numbers
        by_code: NDArray[np.int64] = np.zeros(len(numbers), np.int64)
        of_others = of_absent = 0
        for selector, weight in weighted:
            together = OfLabel(selector.requirements or ())
            listed, are_admitted = together.among(numbers.keys())
            of_others += 0 if are_admitted else weight
            of_absent += weight if together.admits_absence else 0
            for value in listed:
                by_code[numbers[value]] += weight if are_admitted else -weight
        totals[column.objects] += of_others - of_absent + by_code[column.codes]
        return of_absent

    def _labels(self) -> Iterable[tuple[int, Labels]]:
        return (
            (number, placed.pod.metadata.labels) for number, placed in enumerate(self._present) if placed is not None
        )

    def _other(self, kind: str) -> LabelColumn:
        """Return the column of a kind that is no label."""
        column = self._asked[kind] if kind in self._asked else self._others.get(kind)
        if column is None:
            column = LabelColumn()
            values = [(number, _value(kind, one)) for number, one in enumerate(self._present) if one is not None]
            having = {number: value for number, value in values if value is not None}
            column.fill([*having], having.values())
            self._others[kind] = column
        self._asked[kind] = column
        return column

    def _grow(self, size: int) -> None:
        while size > self._used.size:
            self._used = np.concatenate((self._used, np.zeros_like(self._used)))


def _value(kind: str, placed: PlacedPod) -> str | None:
    """Return what a pod has in a column that is none of a label."""
    metadata = placed.pod.metadata
    if kind == NAMESPACE:
        return metadata.namespace
    return None if metadata.deletion_timestamp is None else ""
