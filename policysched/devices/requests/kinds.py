"""Kinds of devices: a column that says which devices are alike to some claims."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from policysched.devices.inventory.columns import Codes, DeviceColumns
from policysched.devices.requests.requirements import DeviceKind
from policysched.devices.steps import Steps

_UNKNOWN = -1
_FEW = 256
"""Up to how many rows are looked at one by one."""
_TOGETHER = 8192
"""How many rows are looked at before it is counted what that took."""
_FIRST = 1024
"""With how many rows that begins; where most are of kinds that are known it doubles."""
_SHARED = 8
"""How many devices a kind has at least where rows are of kinds that are known."""
_STEPS_A_KIND = 6
_SPARE = 4096
"""So many kinds are kept in any case."""
_WIDEST_TABLE = 1 << 22
"""How many combinations of two codes are found through a table; beyond it they are sorted."""


class Kinds:
    """The kind of each device, worked out when it is asked for first.

    Args:
        columns: the devices.
        names: the attributes that the claims read, all where there is none.
    """

    def __init__(self, columns: DeviceColumns, names: Sequence[str] | None) -> None:
        self._columns = columns
        self._names = names
        self._column: Codes = np.full(columns.size, _UNKNOWN, np.int32)
        self._place = columns.freed.end
        self._by_codes: dict[tuple[int, ...], int] = {}
        self.kinds: list[DeviceKind] = []

    @property
    def is_overgrown(self) -> bool:
        """Whether most of the kinds must be of devices that are gone."""
        return len(self.kinds) > _SPARE + 4 * self._columns.size

    def refresh(self) -> None:
        """Forget the kinds of rows that were given back since."""
        freed = self._columns.freed
        spans, self._place = freed.since(self._place), freed.end
        if spans is None:
            self._column[:] = _UNKNOWN
        for start, stop in spans or ():
            self._column[start:stop] = _UNKNOWN
        if self._columns.size > len(self._column):
            grown = np.full(max(self._columns.size, 2 * len(self._column)), _UNKNOWN, np.int32)
            grown[: len(self._column)] = self._column
            self._column = grown

    def known(self, rows: Codes) -> Codes:
        """Return the kinds of rows as far as they are known, below 0 where they are not.

        Shapes: (R,) -> (R,).
        """
        return self._column[rows]

    def of(self, rows: Codes, steps: Steps | None = None) -> Codes:
        """Return the kinds of rows.

        Raises:
            OutOfStepsError: there are more kinds than steps allow; those that were found are known next time.

        Shapes: (R,) -> (R,).
        """
        found = self._column[rows]
        if len(found) and found.min() < 0:
            unknown = rows[found < 0]
            start, together = 0, min(_FIRST, _TOGETHER)
            while start < len(unknown):
                before = len(self.kinds)
                self._classify(unknown[start : start + together])
                start, made = start + together, len(self.kinds) - before
                if steps is not None:
                    steps.take(_STEPS_A_KIND * made)
                if made * _SHARED < together:
                    together = min(2 * together, _TOGETHER)
            found = self._column[rows]
        return found

    def _classify(self, rows: Codes) -> None:
        codes = self._columns.codes_of(rows, self._names)
        if len(rows) <= _FEW:
            for row, *key in zip(rows.tolist(), *(one.tolist() for one in codes), strict=True):
                self._column[row] = self._kind(tuple(key), row)
            return
        combined = _combined(codes)
        first = np.zeros(int(combined.max()) + 1, np.int64)
        first[combined[::-1]] = np.arange(len(rows))[::-1]
        keys = zip(*(one[first].tolist() for one in codes), strict=True)
        numbers = [self._kind(key, row) for key, row in zip(keys, rows[first].tolist(), strict=True)]
        self._column[rows] = np.array(numbers, np.int32)[combined]

    def _kind(self, key: tuple[int, ...], row: int) -> int:
        found = self._by_codes.get(key)
        if found is None:
            found = self._by_codes[key] = len(self.kinds)
            attributes = self._columns.attributes(row, self._names)
            self.kinds.append(DeviceKind(self._columns.traits(key[0]), attributes, found))
        return found


def _combined(codes: Sequence[Codes]) -> NDArray[np.int64]:
    """Return one number for each row, equal where all codes are; numbers are consecutive from 0 on."""
    combined = codes[0].astype(np.int64)
    for one in codes[1:]:
        highest = int(one.max())
        if highest:
            combined = _dense(combined) * (highest + 1) + one
    return _dense(combined)


def _dense(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    highest = int(numbers.max())
    if highest == int(numbers.min()):
        return np.zeros(numbers.size, np.int64)
    if highest > _WIDEST_TABLE:
        inverse: NDArray[np.int64] = np.unique(numbers, return_inverse=True)[1]
        return inverse
    table = np.zeros(highest + 1, np.int64)
    table[numbers] = 1
    places: NDArray[np.int64] = (np.cumsum(table) - 1)[numbers]
    return places
