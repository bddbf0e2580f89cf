"""Positions of brackets and commas of a JSON text outside of strings, computed with NumPy.

Source: RFC 8259.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

IntArray: TypeAlias = NDArray[np.int64]
Bytes: TypeAlias = NDArray[np.uint8]
FEW_BACKSLASHES: Final = 8
"""Largest number of backslashes before a quote that are counted in a loop; more are counted with NumPy arrays."""
_STEPS: Final = np.zeros(256, np.int8)
"""For each byte value outside of strings: the change of the nesting depth (-1, 0 or 1)."""
_STEPS[[*b"[{"]], _STEPS[[*b"]}"]] = 1, -1
_IS_MARK: Final = np.zeros(256, np.bool_)
_IS_MARK[[*b'"[]{},']] = True
_QUOTE, _COMMA, _BACKSLASH = b'",\\'


def cut(raw: bytes, deepest: int) -> bytes:
    """Replace JSON values that are nested deeper than a limit by null."""
    at, marks = _structure(raw)
    steps = _STEPS[marks]
    depth = np.cumsum(steps, dtype=np.int64)
    begins = at[(steps > 0) & (depth == deepest + 1)].tolist()
    if not begins:
        return raw
    ends = (at[(steps < 0) & (depth == deepest)] + 1).tolist()
    kept: list[bytes] = []
    done = 0
    for begin, end in zip_longest(begins, ends[: len(begins)], fillvalue=len(raw)):
        kept += (raw[done:begin], b"null")
        done = end
    return b"".join((*kept, raw[done:]))


def split(raw: bytes, opening: bytes) -> list[bytes]:
    """Split the outermost JSON array or object at the commas between its entries; empty if brackets do not match."""
    if not raw.lstrip().startswith(opening):
        return []
    at, marks = _structure(raw)
    depth = np.cumsum(_STEPS[marks], dtype=np.int64)
    ends = np.flatnonzero(depth == 0)
    if not ends.size:
        return []
    borders = at[: ends[0]][(marks[: ends[0]] == _COMMA) & (depth[: ends[0]] == 1)].tolist()
    starts = [at[0] + 1, *(border + 1 for border in borders)]
    return [raw[start:end] for start, end in zip(starts, [*borders, at[ends[0]]], strict=True)]


def _escaped(values: Bytes, quotes: IntArray) -> NDArray[np.bool_]:
    """Return a mask of the quotes that are escaped: an odd number of backslashes precedes them.

    Cost: O(quotes); O(text) if a run of backslashes is longer than FEW_BACKSLASHES.
    """
    odd = np.zeros(quotes.size, np.bool_)
    behind, number = np.arange(quotes.size), 0
    while behind.size and number < FEW_BACKSLASHES:
        number += 1
        behind = behind[quotes[behind] >= number]
        behind = behind[values[quotes[behind] - number] == _BACKSLASH]
        odd[behind] = number % 2 == 1
    if behind.size:
        others = np.flatnonzero(values != _BACKSLASH)
        last = others[np.searchsorted(others, quotes[behind]) - 1]
        odd[behind] = (quotes[behind] - last) % 2 == 0
    return odd


def _structure(raw: bytes) -> tuple[IntArray, Bytes]:
    """Return the offsets and bytes of JSON's brackets and commas outside of strings, without empty brackets.

    Returns:
        Their offsets and their bytes.
    """
    values = np.frombuffer(raw, np.uint8)
    at = np.flatnonzero(_IS_MARK[values])
    marks = values[at]
    quotes = marks == _QUOTE
    escaped = _escaped(values, at[quotes])
    if escaped.any():
        kept = np.ones(at.size, np.bool_)
        kept[np.flatnonzero(quotes)[escaped]] = False
        at, marks, quotes = at[kept], marks[kept], quotes[kept]
    outside = ~quotes & (np.cumsum(quotes) % 2 == 0)
    at, marks = at[outside], marks[outside]
    steps = _STEPS[marks]
    empty = np.flatnonzero((steps[:-1] > 0) & (marks[1:] - marks[:-1] == 2) & (at[1:] - at[:-1] == 1))
    if not empty.size:
        return at, marks
    kept = np.ones(at.size, np.bool_)
    kept[empty] = kept[empty + 1] = False
    return at[kept], marks[kept]
