"""Labels of signatures as columns, so that a selector is asked once a distinct value and not once a signature.

Where no two placed pods have the same labels, as those of a StatefulSet, there are as many signatures as pods. A label
gets a column when a selector first asks about it, which is kept up to date as signatures appear and go, as long as
somebody holds it.
"""

from __future__ import annotations

import weakref
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from policysched.model.objects import Pod
from policysched.model.selection.selectors import LabelMatcher, LabelRequirement, OfLabel
from policysched.state.placed.pods import PlacedPod

FIRST_SIZE: Final = 16
MOST_KEYS = 8
"""A selector that asks about more labels is asked about one signature after the other: it looks at the labels there."""
BYTES_PER_COLUMN, BYTES_PER_ENTRY = 1 << 10, 128
"""What a column takes beside its arrays, and each of its signatures and values. Units: bytes."""
SPARE: Final = 64
"""How many values a column may know that no signature has any more, beside as many as there are signatures in it."""
_NAMESPACE, _LEAVING = "namespace", "leaving"
_Key = tuple[str, str]
"""Of which kind a column is: a label, the namespace, or whether the pod is being deleted; and the label."""
NAMESPACE: Final[_Key] = _NAMESPACE, ""
LEAVING: Final[_Key] = _LEAVING, ""
Chosen = NDArray[np.bool_]


class LabelColumn:
    """The signatures that have a label, with their values by number.

    Shapes: signatures and codes (L,), in any order.
    """

    __slots__ = ("__weakref__", "_codes", "_count", "_places", "_signatures", "numbers")

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        """The number of each value."""
        self._signatures: NDArray[np.intp] = np.zeros(FIRST_SIZE, np.intp)
        self._codes: NDArray[np.intp] = np.zeros(FIRST_SIZE, np.intp)
        self._count = 0
        self._places: dict[int, int] = {}

    @property
    def nbytes(self) -> int:
        """The memory that it takes. Units: bytes."""
        return BYTES_PER_COLUMN + 2 * self._signatures.nbytes + BYTES_PER_ENTRY * (self._count + len(self.numbers))

    @property
    def signatures(self) -> NDArray[np.intp]:
        """The signatures that have the label."""
        return self._signatures[: self._count]

    @property
    def codes(self) -> NDArray[np.intp]:
        """The number of the value of each."""
        return self._codes[: self._count]

    def fill(self, signatures: Sequence[int], values: Iterable[str]) -> None:
        """Note the values of many signatures while there are none."""
        size = max(FIRST_SIZE, len(signatures))
        self._signatures, self._codes = np.zeros(size, np.intp), np.zeros(size, np.intp)
        numbers = self.numbers
        codes = [numbers.setdefault(value, len(numbers)) for value in values]
        self._count = len(codes)
        self._signatures[: self._count], self._codes[: self._count] = signatures, codes
        self._places = dict(zip(signatures, range(self._count), strict=True))

    def put(self, signature: int, value: str) -> None:
        """Note the value of a signature that has none yet. Cost: O(1)."""
        place = self._count
        if place == self._signatures.size:
            self._signatures = np.concatenate((self._signatures, np.zeros_like(self._signatures)))
            self._codes = np.concatenate((self._codes, np.zeros_like(self._codes)))
        self._signatures[place], self._codes[place] = signature, self.numbers.setdefault(value, len(self.numbers))
        self._places[signature] = place
        self._count += 1

    def drop(self, signature: int) -> None:
        """Forget a signature, if it is here. Cost: O(1), and now and then O(signatures)."""
        place = self._places.pop(signature, None)
        if place is None:
            return
        self._count = last = self._count - 1
        if place != last:
            moved = self._signatures.item(last)
            self._signatures[place], self._codes[place] = moved, self._codes[last]
            self._places[moved] = place
        if len(self.numbers) > 2 * self._count + SPARE:
            self._renumber()

    def _renumber(self) -> None:
        kept, self._codes[: self._count] = np.unique(self.codes, return_inverse=True)
        values = [*self.numbers]
        self.numbers = {values[code]: number for number, code in enumerate(kept.tolist())}


class SignatureLabels:
    """Which signatures selectors select.

    Args:
        present: A pod of each signature, None where it is free; it may grow.

    Shapes: S is the number of signatures, those that are free included.
    """

    __slots__ = ("_columns", "_meant", "_prepared", "_present", "_used")

    def __init__(self, present: Sequence[PlacedPod | None]) -> None:
        self._present = present
        self._columns: weakref.WeakValueDictionary[_Key, LabelColumn] = weakref.WeakValueDictionary()
        self._prepared: dict[_Key, LabelColumn] = {}
        self._meant: dict[frozenset[str], NDArray[np.bool_]] = {}
        """Which numbers of the namespaces' column some sets of them have, for the question at hand."""
        self._used: Chosen = np.zeros(FIRST_SIZE, np.bool_)

    def appear(self, signature: int, placed: PlacedPod) -> None:
        """Put a new signature into the columns that there are.

        Cost: O(columns) or O(labels), whichever is less.
        """
        self._grow(signature + 1)
        self._used[signature] = True
        for key, value in _values(placed.pod, self._columns):
            column = self._columns.get(key)  # the collector may end its last holder at any time
            if column is not None:
                column.put(signature, value)

    def vanish(self, signature: int, placed: PlacedPod) -> None:
        """Take a signature out of the columns.

        Cost: O(columns) or O(labels), whichever is less.
        """
        if signature < self._used.size:
            self._used[signature] = False
        for key, _ in _values(placed.pod, self._columns):
            column = self._columns.get(key)
            if column is not None:
                column.drop(signature)

    def present(self) -> Chosen:
        """Return which signatures are in use.

        Shapes: (S,).
        """
        self._grow(len(self._present))  # one that could not be entered may have left a free one behind the others
        return self._used[: len(self._present)].copy()

    def prepare(self, selectors: Iterable[LabelMatcher], *others: _Key) -> None:
        """Make the columns of all labels that selectors ask about, in one go; `prepared` gives them to who holds them.

        Cost: O(signatures times labels of each) where one is missing.
        """
        wanted = {("", key) for one in selectors if len(keys := one.keys) <= MOST_KEYS for key in keys}.union(others)
        found = {key: column for key in wanted if (column := self._columns.get(key)) is not None}
        made = {key: LabelColumn() for key in wanted - found.keys()}
        entries: dict[_Key, tuple[list[int], list[str]]] = {key: ([], []) for key in made}
        for signature, placed in enumerate(self._present) if made else ():
            if placed is not None:
                for key, value in _values(placed.pod, made):
                    signatures, values = entries[key]
                    signatures.append(signature)
                    values.append(value)
        for key, column in made.items():
            column.fill(*entries[key])
        self._columns.update(made)
        self._prepared |= found | made

    def prepared(self) -> tuple[LabelColumn, ...]:
        """Return the columns that were prepared since this was asked last."""
        prepared, self._prepared, self._meant = self._prepared, {}, {}
        return (*prepared.values(),)

    def restrict(self, chosen: Chosen, selector: LabelMatcher) -> None:
        """Take out of some signatures those that a selector does not select; its columns are prepared.

        Shapes: chosen (S,).
        Cost: for each label O(signatures that have it), O(values that are listed).
        """
        if selector.requirements is None:
            chosen[:] = False
            return
        if len(selector.keys) > MOST_KEYS:
            for signature in chosen.nonzero()[0].tolist():
                placed = self._present[signature]
                chosen[signature] = placed is not None and selector.matches(placed.pod.metadata.labels)
            return
        for key, stated in by_label(selector.requirements).items():
            restrict_by(self._prepared["", key], chosen, stated)

    def within(self, chosen: Chosen, namespaces: frozenset[str] | None, also: Collection[str] = ()) -> None:
        """Take out those of other namespaces than some, where not all are meant.

        Args:
            chosen: The signatures.
            namespaces: The namespaces, None for all; for terms that share the set they are looked up once.
            also: Other ones.

        Shapes: chosen (S,).
        """
        if namespaces is None:
            return
        column = self._prepared[NAMESPACE]
        meant = self._meant.get(namespaces)
        if meant is None:
            meant = self._meant[namespaces] = _listed(column, namespaces)
        if also:
            meant = meant | _listed(column, also)
        _keep(chosen, column.signatures[meant[column.codes]])

    def staying(self, chosen: Chosen) -> None:
        """Take out those whose pods are being deleted.

        Shapes: chosen (S,).
        """
        chosen[self._prepared[LEAVING].signatures] = False

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
        column = self._prepared["", label]
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
        totals[column.signatures] += of_others - of_absent + by_code[column.codes]
        return of_absent

    def _grow(self, size: int) -> None:
        while size > self._used.size:
            self._used = np.concatenate((self._used, np.zeros_like(self._used)))


def restrict_by(column: LabelColumn, chosen: Chosen, stated: Sequence[LabelRequirement]) -> None:
    """Take out of some signatures those that requirements on a column's label do not admit.

    Shapes: chosen (S,).
    """
    together = OfLabel(stated)
    listed, are_admitted = together.among(column.numbers.keys())
    met = _listed(column, listed)[column.codes]
    if not are_admitted:
        met = ~met
    if together.admits_absence:
        chosen[column.signatures[~met]] = False
    else:
        _keep(chosen, column.signatures[met])


def by_label(requirements: Iterable[LabelRequirement]) -> Mapping[str, Sequence[LabelRequirement]]:
    """Put requirements on one label together."""
    stated: dict[str, list[LabelRequirement]] = {}
    for one in requirements:
        stated.setdefault(one.key, []).append(one)
    return stated


def _values(pod: Pod, columns: Mapping[_Key, LabelColumn]) -> Iterator[tuple[_Key, str]]:
    """Give what a pod has of some columns."""
    metadata = pod.metadata
    if NAMESPACE in columns:
        yield NAMESPACE, metadata.namespace
    if LEAVING in columns and metadata.deletion_timestamp is not None:
        yield LEAVING, ""
    labels = metadata.labels
    if len(labels) <= len(columns):
        for key, value in labels.items():
            if ("", key) in columns:
                yield ("", key), value
        return
    for kind, key in tuple(columns):
        if not kind and key in labels:
            yield ("", key), labels[key]


def _listed(column: LabelColumn, values: Iterable[str]) -> NDArray[np.bool_]:
    """Return for each number whether its value is listed."""
    found: NDArray[np.bool_] = np.zeros(len(column.numbers), np.bool_)
    numbers = column.numbers
    found[[numbers[value] for value in values if value in numbers]] = True
    return found


def _keep(chosen: Chosen, signatures: NDArray[np.intp]) -> None:
    """Take out all but some signatures."""
    kept = signatures[chosen[signatures]]
    chosen[:] = False
    chosen[kept] = True
