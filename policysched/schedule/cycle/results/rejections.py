"""Finds the first filter that rejects each node, and the statuses with which nodes are rejected.

Shapes: C capacity of the columns, N ≤ C rows in use. `first` is the place of each row's first rejecting filter;
FEASIBLE or ABSENT if there is none.
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
"""Value for a row without a node, where the other rows have the place of the first filter that rejects the node."""
_FEW: Final = 8
"""Number of nodes up to which a loop over the nodes is faster than array operations."""


def judge(first: NDArray[np.int16], filters: Sequence[FilterResults], present: Mask, rows: Rows) -> None:
    """Update, for some nodes' rows, the place of the first filter that rejects the node.

    Shapes: first (C,), present (C,).
    """
    if isinstance(rows, slice) or rows.size > _FEW:
        _judge_many(first, filters, present, rows)
        return
    rejecting = [(one.place, one.codes) for one in filters if one.rejects_any]
    for row in rows.tolist():
        first[row] = next((place for place, codes in rejecting if codes[row]), FEASIBLE) if present[row] else ABSENT


def with_rejections(first: NDArray[np.int16], rejecting: Iterable[FilterResults]) -> NDArray[np.int16]:
    """Return, for all nodes, the place of the first filter that rejects the node, among old and additional filters.

    Shapes: first (N,) -> (N,).
    """
    made = first.copy()
    for one in rejecting:
        is_first = (one.codes[: made.size] != 0) & ((made == FEASIBLE) | (made > one.place))
        np.putmask(made, is_first, one.place)
    return made


def _judge_many(first: NDArray[np.int16], filters: Sequence[FilterResults], present: Mask, rows: Rows) -> None:
    is_there = present[rows]
    found = np.zeros(is_there.size, np.int16)
    for one in reversed(filters):
        if one.rejects_any:
            np.putmask(found, one.codes[rows] != 0, one.place)
    np.putmask(found, ~is_there, ABSENT)
    first[rows] = found


def rejected_with(code: Code, first: NDArray[np.int16], filters: Sequence[FilterResults]) -> Mask:
    """Return a mask of the nodes that are rejected with a given status code.

    Shapes: first (N,) -> (N,).
    """
    mask: Mask = np.zeros(first.size, np.bool_)
    by_place = {one.place: one for one in filters}
    for place in distinct(first[first > FEASIBLE]).tolist():
        results, rows = by_place[place], first == place
        codes, places = distinct_places(results.codes[: first.size][rows])
        mask[rows] = np.array([results.reason(one).code is code for one in codes.tolist()], np.bool_)[places]
    return mask


def histogram(first: NDArray[np.int16], filters: Sequence[FilterResults]) -> list[tuple[Status, int]]:
    """Return the number of nodes that each status rejects. Shapes: first (N,)."""
    found = []
    for results in filters:
        if results.rejects_any:
            codes, counts = counted(results.codes[: first.size][first == results.place])
            found += [(results.reason(code), count) for code, count in zip(codes, counts, strict=True)]
    return found


def failure_of(filters: Iterable[FilterResults], first: NDArray[np.int16]) -> Status | None:
    """Return the status of a filter that failed on a node which no earlier filter rejects; None if no filter failed.

    Args:
        filters: The filters that may have failed.
        first: The verdicts. Shapes: (N,).
    """
    for one in filters:
        codes = one.codes[: first.size]
        for code in counted(codes)[0] if one.rejects_any else ():
            status = one.reason(code) if code else None
            if status is not None and status.code is Code.ERROR and ((codes == code) & (first == one.place)).any():
                return status
    return None
