"""`Kinds`: the kind of each device; claims cannot distinguish two devices of the same kind."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from policysched.budget import Budget
from policysched.devices.inventory.batch import Places
from policysched.devices.inventory.columns import Codes, DeviceColumns
from policysched.devices.requests.requirements import DeviceKind

_UNKNOWN = -1
_FEW = 256
"""Number of devices up to which kinds are computed one by one instead of with arrays."""
_TOGETHER = 1024
"""Number of new kinds that are created before their steps are subtracted from the budget."""
_STEPS_A_KIND = 6
_SPARE = 4096
"""Number of stored kinds up to which kinds that no device has are kept."""
_WIDEST_TABLE = 16
"""Maximum size of a table for combining two columns of codes, as a multiple of the rows; else codes are sorted."""


class Kinds:
    """The kind of each device, computed at its first use; claims cannot distinguish two devices of the same kind.

    Args:
        columns: The devices.
        names: The attributes that the claims read, None for all.

    Attributes:
        kinds: The kinds by their number.
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
        """Whether most of the stored kinds are kinds that no device has any more."""
        return len(self.kinds) > _SPARE + 4 * self._columns.size

    def refresh(self) -> None:
        """Drop the kinds of the device rows that were freed since the last refresh."""
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

    def codes(self, start: int, stop: int) -> bytes:
        """Return the kind numbers of the devices in rows `start` to `stop` as bytes; -1 if not computed yet."""
        return self._column[start:stop].tobytes()

    def of(self, rows: Codes, steps: Budget | None = None) -> Codes:
        """Return the kind numbers of devices, given by their rows; kinds that are not known yet are computed.

        Shapes: (R,) -> (R,).

        Raises:
            BudgetExceededError: The budget is used up; the next call continues.
        """
        found = self._column[rows]
        if len(found) and found.min() < 0:
            self._classify(rows[found < 0], steps)
            found = self._column[rows]
        return found

    def _classify(self, rows: Codes, steps: Budget | None) -> None:
        codes = self._columns.codes_of(rows, self._names)
        if len(rows) <= _FEW:
            before = len(self.kinds)
            for row, *key in zip(rows.tolist(), *(one.tolist() for one in codes), strict=True):
                self._column[row] = self._kind(tuple(key), row)
            if steps is not None:
                steps.spend(_STEPS_A_KIND * (len(self.kinds) - before))
            return
        combined, first = combined_codes(codes)
        numbers = np.full(len(first), _UNKNOWN, np.int32)
        try:
            for start in range(0, len(first), _TOGETHER):
                some, before = first[start : start + _TOGETHER], len(self.kinds)
                keys = zip(*(one[some].tolist() for one in codes), strict=True)
                numbers[start : start + len(some)] = [
                    self._kind(key, row) for key, row in zip(keys, rows[some].tolist(), strict=True)
                ]
                if steps is not None:
                    steps.spend(_STEPS_A_KIND * (len(self.kinds) - before))
        finally:
            self._column[rows] = numbers[combined]

    def _kind(self, key: tuple[int, ...], row: int) -> int:
        found = self._by_codes.get(key)
        if found is None:
            found = self._by_codes[key] = len(self.kinds)
            attributes = self._columns.attributes(row, self._names)
            self.kinds.append(DeviceKind(self._columns.traits(key[0]), attributes, found))
        return found


def combined_codes(codes: Sequence[Codes]) -> tuple[Places, Places]:
    """Return a number per device row, equal for rows with equal codes, and the first row that has each number.

    Numbers are consecutive from 0 on.

    Shapes: (R,) each -> (R,), (numbers,).
    """
    dense = _dense(codes[0].astype(np.int64))
    for one in codes[1:]:
        lowest, highest = int(one.min()), int(one.max())
        if lowest < highest:
            dense = _dense(dense[0] * (highest - lowest + 1) + (one - lowest))
    return dense


def _dense(numbers: Places) -> tuple[Places, Places]:
    lowest, highest = int(numbers.min()), int(numbers.max())
    if highest == lowest:
        return np.zeros(numbers.size, np.int64), np.zeros(1, np.int64)
    if highest - lowest > _WIDEST_TABLE * numbers.size:
        _, firsts, inverse = np.unique(numbers, return_index=True, return_inverse=True)
        return inverse, firsts
    table = np.full(highest - lowest + 1, _UNKNOWN, np.int64)
    numbers = numbers - lowest if lowest else numbers
    table[numbers[::-1]] = np.arange(numbers.size - 1, -1, -1)
    used = (table != _UNKNOWN).nonzero()[0]
    first = table[used]
    table[used] = np.arange(used.size)
    return table[numbers], first
