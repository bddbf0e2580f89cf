"""`LabelColumns`: labels of many objects as arrays, on which a selector is evaluated once for each label value.

A label has a column from the first selector that reads it on. All labels that no object has share an empty column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from policysched.model.selection.selectors import LabelMatcher, LabelRequirement, OfLabel
from policysched.state.tables.sparse import is_sparse

FIRST_SIZE: Final = 16
Chosen = NDArray[np.bool_]
"""Mask of selected objects, by the number of the object."""
Labels = Mapping[str, str]


class LabelColumn:
    """One label of many numbered objects: the objects that have the label, and the code of each object's value.

    Args:
        absent: For an empty column: the number of labels that share it.

    Shapes: objects and codes (L,), in any order.
    """

    __slots__ = ("__weakref__", "_codes", "_count", "_objects", "_places", "absent", "numbers")

    def __init__(self, absent: int = 0) -> None:
        self.absent = absent
        self.numbers: dict[str, int] = {}
        """The code that stands for each value of the label."""
        self._objects: NDArray[np.intp] = np.zeros(FIRST_SIZE, np.intp)
        self._codes: NDArray[np.intp] = np.zeros(FIRST_SIZE, np.intp)
        self._count = 0
        self._places: dict[int, int] = {}

    def __len__(self) -> int:
        return self._count

    @property
    def objects(self) -> NDArray[np.intp]:
        """The numbers of the objects that have the label."""
        return self._objects[: self._count]

    @property
    def codes(self) -> NDArray[np.intp]:
        """The code of the label value of each object that has the label."""
        return self._codes[: self._count]

    def fill(self, objects: Sequence[int], values: Iterable[str]) -> None:
        """Add many objects with their label values to an empty column."""
        size = max(FIRST_SIZE, len(objects))
        self._objects, self._codes = np.zeros(size, np.intp), np.zeros(size, np.intp)
        numbers = self.numbers
        codes = [numbers.setdefault(value, len(numbers)) for value in values]
        self._count = len(codes)
        self._objects[: self._count], self._codes[: self._count] = objects, codes
        self._places = dict(zip(objects, range(self._count), strict=True))

    def put(self, number: int, value: str) -> None:
        """Add an object with its label value. Cost: O(1)."""
        place = self._count
        if place == self._objects.size:
            self._objects = np.concatenate((self._objects, np.zeros_like(self._objects)))
            self._codes = np.concatenate((self._codes, np.zeros_like(self._codes)))
        self._objects[place], self._codes[place] = number, self.numbers.setdefault(value, len(self.numbers))
        self._places[number] = place
        self._count += 1

    def drop(self, number: int) -> None:
        """Remove an object, if it has the label. Cost: O(1), occasionally O(objects)."""
        place = self._places.pop(number, None)
        if place is None:
            return
        self._count = last = self._count - 1
        if place != last:
            moved = self._objects.item(last)
            self._objects[place], self._codes[place] = moved, self._codes[last]
            self._places[moved] = place
        if is_sparse(len(self.numbers), self._count):
            self._renumber()

    def _renumber(self) -> None:
        kept, self._codes[: self._count] = np.unique(self.codes, return_inverse=True)
        values = [*self.numbers]
        self.numbers = {values[code]: number for number, code in enumerate(kept.tolist())}

    def numbered(self, values: Iterable[str]) -> Chosen:
        """Return a mask of the codes of the given label values."""
        found: Chosen = np.zeros(len(self.numbers), np.bool_)
        numbers = self.numbers
        found[[numbers[value] for value in values if value in numbers]] = True
        return found


class LabelColumns:
    """The labels of numbered objects, such as namespaces: one `LabelColumn` for each label that selectors read.

    Args:
        objects: Returns the objects with their labels.
        columns: Stores the columns; a weak dictionary keeps only columns in use.
    """

    __slots__ = ("_columns", "_objects")

    def __init__(
        self, objects: Callable[[], Iterable[tuple[int, Labels]]], columns: MutableMapping[str, LabelColumn]
    ) -> None:
        self._objects = objects
        self._columns = columns

    def __len__(self) -> int:
        return len(self._columns)

    def appear(self, number: int, labels: Labels) -> None:
        """Add a new object with its labels to the columns of these labels.

        Cost: O(columns) or O(labels), whichever is less.
        """
        for key in self._met(labels):
            column = self._columns.get(key)  # it may be collected at any time
            if column is None:
                continue
            if column.absent:
                self._columns.pop(key, None)  # created again at the next use
            else:
                column.put(number, labels[key])

    def vanish(self, number: int, labels: Labels) -> None:
        """Remove an object from the columns of its labels.

        Cost: O(columns) or O(labels), whichever is less.
        """
        for key in self._met(labels):
            column = self._columns.get(key)
            if column is not None:
                column.drop(number)

    def of_selectors(self, selectors: Iterable[LabelMatcher]) -> Mapping[str, LabelColumn]:
        """Return the columns of the labels that selectors read; labels that no object has share an empty column.

        Cost: if a column is missing, O(labels of all objects) at most, once for all labels.
        """
        wanted = {one.key for selector in selectors for one in selector.requirements or ()}
        found = {key: column for key in wanted if (column := self._columns.get(key)) is not None}
        missing = wanted - found.keys()
        return found | self._made(missing) if missing else found

    def _made(self, missing: set[str]) -> dict[str, LabelColumn]:
        """Create the columns of the given labels from all objects."""
        entries: dict[str, tuple[list[int], list[str]]] = {}
        for number, labels in self._objects():
            if labels.keys().isdisjoint(missing):
                continue
            for key in labels if len(labels) < len(missing) else missing:
                if key in missing and key in labels:
                    numbers, values = entries.setdefault(key, ([], []))
                    numbers.append(number)
                    values.append(labels[key])
        made = {key: LabelColumn() for key in entries}
        for key, column in made.items():
            column.fill(*entries[key])
        absent = missing - made.keys()
        made |= dict.fromkeys(absent, LabelColumn(len(absent)))
        self._columns.update(made)
        return made

    def _met(self, labels: Labels) -> list[str]:
        """Return the labels of an object that have a column."""
        if len(labels) <= len(self._columns):
            return [key for key in labels if key in self._columns]
        return [key for key in tuple(self._columns) if key in labels]


def restrict(chosen: Chosen, selector: LabelMatcher, columns: Mapping[str, LabelColumn]) -> None:
    """Remove from a mask of objects those that a label selector does not match.

    Args:
        chosen: The objects.
        selector: The selector.
        columns: The columns of all labels that the selector reads.

    Shapes: chosen (S,).
    Cost: for each label O(objects with the label + values in the selector).
    """
    if selector.requirements is None:
        chosen[:] = False
        return
    with_columns: list[tuple[LabelColumn, OfLabel]] = []
    for key, stated in _by_label(selector.requirements).items():
        together, column = OfLabel(stated), columns[key]
        if column:
            with_columns.append((column, together))
        elif not together.admits_absence:
            chosen[:] = False
            return
    for column, together in with_columns:
        listed, are_admitted = together.among(column.numbers.keys())
        met = column.numbered(listed)[column.codes]
        if not are_admitted:
            met = ~met
        if together.admits_absence:
            chosen[column.objects[~met]] = False
        else:
            keep(chosen, column.objects[met])


def keep(chosen: Chosen, objects: NDArray[np.intp]) -> None:
    """Remove from a mask of objects all except the given objects. Shapes: chosen (S,), objects (K,)."""
    kept = objects[chosen[objects]]
    chosen[:] = False
    chosen[kept] = True


def _by_label(requirements: Iterable[LabelRequirement]) -> Mapping[str, Sequence[LabelRequirement]]:
    """Return label requirements grouped by label."""
    stated: dict[str, list[LabelRequirement]] = {}
    for one in requirements:
        stated.setdefault(one.key, []).append(one)
    return stated
