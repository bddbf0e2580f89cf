"""Verdicts: the first filter that rejects each row, and the statuses of the rejections.

Shapes: C capacity of the columns, N ≤ C rows in use. `first` is the number of each row's first rejecting filter,
counted from 1; FEASIBLE or ABSENT if there is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from policysched.framework import Code, Mask, Rows, Status
from policysched.schedule.cycle.results.plugin_results import FilterResults
from policysched.state.tables.columns import counted, distinct, distinct_places

FEASIBLE: Final = 0
ABSENT: Final = -1
"""The value of `first` for rows without a node."""
_FEW: Final = 8
"""Number of rows up to which a loop over the rows is faster than array operations."""


def judge(first: NDArray[np.int16], filters: Sequence[FilterResults], present: Mask, rows: Rows) -> None:
    """Update the first rejecting filter of rows.

    Shapes: first (C,), present (C,).
    """
    if isinstance(rows, slice) or rows.size > _FEW:
        _judge_many(first, filters, present, rows)
        return
    rejecting = [(place, one.codes) for place, one in enumerate(filters, 1) if one.rejects_any]
    for row in rows.tolist():
        first[row] = next((place for place, codes in rejecting if codes[row]), FEASIBLE) if present[row] else ABSENT


def verdicts(filters: Sequence[FilterResults], present: Mask) -> NDArray[np.int16]:
    """Return the first rejecting filter of all rows.

    Shapes: present (N,) -> (N,).
    """
    first = np.empty(present.size, np.int16)
    _judge_many(first, filters, present, slice(0, present.size))
    return first


def _judge_many(first: NDArray[np.int16], filters: Sequence[FilterResults], present: Mask, rows: Rows) -> None:
    is_there = present[rows]
    found = np.zeros(is_there.size, np.int16)
    for place in range(len(filters), 0, -1):
        results = filters[place - 1]
        if results.rejects_any:
            np.putmask(found, results.codes[rows] != 0, place)
    np.putmask(found, ~is_there, ABSENT)
    first[rows] = found


def rejected_with(code: Code, first: NDArray[np.int16], filters: Sequence[FilterResults]) -> Mask:
    """Return the rows that are rejected with a code.

    Shapes: first (N,) -> (N,).
    """
    mask: Mask = np.zeros(first.size, np.bool_)
    for place in distinct(first[first > 0]).tolist():
        results, rows = filters[place - 1], first == place
        codes, places = distinct_places(results.codes[: first.size][rows])
        mask[rows] = np.array([results.reason(one).code is code for one in codes.tolist()], np.bool_)[places]
    return mask


def histogram(first: NDArray[np.int16], filters: Sequence[FilterResults]) -> list[tuple[Status, int]]:
    """Count the rows by the status that rejects them. Shapes: first (N,)."""
    found = []
    for place, results in enumerate(filters, 1):
        if results.rejects_any:
            codes, counts = counted(results.codes[: first.size][first == place])
            found += [(results.reason(code), count) for code, count in zip(codes, counts, strict=True)]
    return found


def failure_of(
    may_fail: Iterable[FilterResults], first: NDArray[np.int16], filters: Sequence[FilterResults]
) -> Status | None:
    """Return the status of a filter that failed on a node that no earlier filter rejects.

    Args:
        may_fail: The filters to check.
        first: The verdicts. Shapes: (N,).
        filters: All filters in their order.
    """
    for one in may_fail:
        if not one.rejects_any:
            continue
        codes = one.codes[: first.size]
        for code in counted(codes)[0]:
            if code and (status := one.reason(code)).code is Code.ERROR:
                place = filters.index(one) + 1
                if ((codes == code) & (first == place)).any():
                    return status
    return None
