"""`SignatureLabels`: labels of placed pods as columns, on which a selector is evaluated once per label value.

If all placed pods have different labels, as in a StatefulSet, there are as many signatures as pods. A label has a
column as long as the column is in use.
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
"""Maximum number of label columns that one pod counter keeps alive; a counter that needs more keeps none."""
FEW = 64
"""Number of signatures (sets of alike pods) up to which a selector is evaluated one by one, without columns."""
NAMESPACE: Final = "namespace"
LEAVING: Final = "leaving"
"""Name of the column for pods that are being deleted."""


class SetOfNamespaces(Protocol):
    """Protocol of a set of namespaces, in which each namespace is represented by a number."""

    @property
    def numbers(self) -> Mapping[str, int]:
        """The number of each namespace; several sets share this dictionary."""

    def holding(self, numbers: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return which of the given namespaces, by number, are in the set; −1 never is. Shapes: (K,)."""


class SignatureLabels:
    """Labels of placed pods, stored once per signature (alike pods), for evaluating selectors on all pods at once.

    Args:
        present: A pod of each signature, None for free numbers; it may grow.

    Shapes: S is the number of signatures, including free numbers.
    """

    __slots__ = ("_asked", "_columns", "_held", "_meant", "_numbers", "_others", "_prepared", "_present", "_used")

    def __init__(self, present: Sequence[PlacedPod | None]) -> None:
        self._present = present
        self._held: weakref.WeakValueDictionary[str, LabelColumn] = weakref.WeakValueDictionary()
        self._columns = LabelColumns(self._labels, self._held)
        self._others: weakref.WeakValueDictionary[str, LabelColumn] = weakref.WeakValueDictionary()
        """The columns for the namespaces of pods, and for pods that are being deleted."""
        self._asked: dict[str, LabelColumn] = {}
        """The columns of `_others` that the current evaluation of selectors has used."""
        self._prepared: dict[str, LabelColumn] = {}
        """The label columns that the current evaluation of selectors uses."""
        self._meant: dict[SetOfNamespaces, Chosen] = {}
        """For each set of namespaces in the current evaluation, which values of the namespaces' column are in it."""
        self._numbers: dict[int, tuple[Mapping[str, int], NDArray[np.intp]]] = {}
        """For the current evaluation, the number that sets of namespaces give to each value of their column."""
        self._used: Chosen = np.zeros(FIRST_SIZE, np.bool_)

    def appear(self, signature: int, placed: PlacedPod) -> None:
        """Add the labels of a newly placed pod, whose signature is new, to the columns.

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
        """Remove the labels of a signature (alike pods) from the columns, because its last pod was removed.

        Cost: O(columns) or O(labels), whichever is less.
        """
        if signature < self._used.size:
            self._used[signature] = False
        self._columns.vanish(signature, placed.pod.metadata.labels)
        for column in tuple(self._others.values()):
            column.drop(signature)

    def present(self) -> Chosen:
        """Return a mask of the signatures (sets of alike pods) that placed pods have.

        Shapes: (S,).
        """
        self._grow(len(self._present))  # a signature that failed to enter may have left a free number at the end
        return self._used[: len(self._present)].copy()

    def prepare(self, selectors: Iterable[LabelMatcher]) -> None:
        """Create the columns of all labels that the given selectors read, before the selectors are evaluated.

        Cost: if a column is missing, O(labels of all signatures) at most, once for all selectors.
        """
        self._prepared |= self._columns.of_selectors(selectors)

    def prepared(self) -> tuple[LabelColumn, ...]:
        """End an evaluation of selectors; return the columns that it used, which the caller keeps alive."""
        prepared, asked = set(self._prepared.values()), self._asked
        self._prepared, self._asked, self._meant, self._numbers = {}, {}, {}, {}
        return (*(prepared if len(prepared) <= MOST_HELD else ()), *asked.values())

    def restrict(self, chosen: Chosen, selector: LabelMatcher) -> None:
        """Remove from a mask the signatures (alike pods) that a selector, passed to `prepare` before, does not match.

        Shapes: chosen (S,).
        """
        restrict(chosen, selector, self._prepared)

    def select(self, chosen: Chosen, selector: LabelMatcher, beside: Iterable[LabelMatcher] = ()) -> None:
        """Remove from a mask the signatures (alike pods) that a selector does not match; create missing columns.

        Args:
            chosen: The signatures.
            selector: The selector.
            beside: Selectors that are evaluated next: their columns are created together.

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
        """Remove from a mask the signatures (alike pods) whose pods are outside of the given namespaces.

        Args:
            chosen: The signatures.
            namespaces: The namespaces to keep, None for all; evaluated once per set.
            also: More namespaces to keep.

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
        """Return the number, in `numbers`, of each namespace in a column; −1 for a namespace without a number."""
        known = self._numbers.get(id(numbers))
        if known is None:
            found = np.array([numbers.get(name, -1) for name in column.numbers], np.intp)
            known = self._numbers[id(numbers)] = numbers, found
        return known[1]

    def in_namespace(self, chosen: Chosen, name: str) -> None:
        """Remove from a mask the signatures (alike pods) whose pods are outside of one namespace.

        Shapes: chosen (S,).
        """
        column = self._other(NAMESPACE)
        keep(chosen, column.objects[column.numbered((name,))[column.codes]])

    def staying(self, chosen: Chosen) -> None:
        """Remove from a mask the signatures (alike pods) whose pods are being deleted.

        Shapes: chosen (S,).
        """
        chosen[self._other(LEAVING).objects] = False

    def add_by_label(self, totals: NDArray[np.int64], label: str, weighted: Iterable[tuple[LabelMatcher, int]]) -> int:
        """Add to the sums of signatures (alike pods) the weights of matching selectors, which all read one label.

        Args:
            totals: The sums of weights, to which the result is added later.
            label: The label.
            weighted: The selectors with their weights.

        Returns:
            The weight of signatures without the label. The caller adds it to all totals.

        Shapes: totals (S,).
        Cost: O(signatures with the label + values in the selectors).
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
        """Return the column with the namespaces of pods, or the column of pods that are being deleted."""
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
    """Return a pod's value in a column: its namespace, or for the column `LEAVING` "" if it is being deleted."""
    metadata = placed.pod.metadata
    if kind == NAMESPACE:
        return metadata.namespace
    return None if metadata.deletion_timestamp is None else ""
