"""Sets of nodes as integers: bit n is the node with row number n; one operation combines thousands of nodes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import Final

import numpy as np

_FEW: Final = 8
"""Number of row numbers up to which bits are set and read one by one instead of with arrays."""
_AT_ONCE: Final = 1 << 22
"""Maximum part of the membership table that is unpacked at once. Units: bytes."""


def bits_of(rows: Collection[int]) -> int:
    """Return a set of row numbers as an integer in which bit n stands for row number n."""
    if len(rows) <= _FEW:
        bits = 0
        for row in rows:
            bits |= 1 << row
        return bits
    flags = np.zeros(max(rows) + 1, np.bool_)
    flags[np.fromiter(rows, np.int64, len(rows))] = True
    return int.from_bytes(np.packbits(flags, bitorder="little").tobytes(), "little")


def rows_of(bits: int) -> list[int]:
    """Return the row numbers whose bits are set, in ascending order."""
    if bits.bit_count() > _FEW:
        return np.flatnonzero(_flags(bits)).tolist()
    rows = []
    while bits:
        rows.append((bits & -bits).bit_length() - 1)
        bits &= bits - 1
    return rows


def _flags(bits: int) -> np.typing.NDArray[np.uint8]:
    return np.unpackbits(
        np.frombuffer(bits.to_bytes((bits.bit_length() + 7) // 8, "little"), np.uint8), bitorder="little"
    )


class Parted:
    """Divides nodes into parts: the nodes of a part belong to the same ones of the given sets of nodes.

    Attributes:
        mostly: The places of the sets that most rows are in.
        parts: The rows of each part, with the places of the sets whose membership differs from that of most rows.
    """

    __slots__ = ("mostly", "parts")

    def __init__(self, rows: int, sets: Sequence[int]) -> None:
        self.mostly: list[int] = []
        differing: dict[int, list[int]] = {}
        """By set of nodes that differ from most nodes: the indices of the sets in which exactly these differ."""
        half = rows.bit_count() // 2
        for place, one in enumerate(sets):
            apart = one & rows
            if apart.bit_count() > half:
                self.mostly.append(place)
                apart ^= rows
            if apart:
                differing.setdefault(apart, []).append(place)
        special = 0
        for apart in differing:
            special |= apart
        self.parts: list[tuple[int, Sequence[int]]] = [(rows & ~special, ())] if rows & ~special else []
        places = list(differing.values())
        for part, inside in _split(special, [*differing]) if differing else ():
            self.parts.append((part, [place for number in inside for place in places[number]]))


def _split(rows: int, sets: Sequence[int]) -> Iterator[tuple[int, list[int]]]:
    """Yield the parts of nodes that are in the same sets, each with the indices of these sets."""
    width = (rows.bit_length() + 7) // 8
    packed = np.frombuffer(b"".join([one.to_bytes(width, "little") for one in sets]), np.uint8).reshape(-1, width)
    step = max(1, _AT_ONCE // (8 * len(sets)))
    size = (len(sets) + 7) // 8
    alike: dict[bytes, list[int]] = {}
    remaining = iter(rows_of(rows))
    for start in range(0, width, step):
        flags = np.unpackbits(packed[:, start : start + step], axis=1, bitorder="little")
        said = np.packbits(np.ascontiguousarray(flags.T), axis=1, bitorder="little").tobytes()
        first, count = 8 * start, ((rows >> 8 * start) & ((1 << 8 * step) - 1)).bit_count()
        for row in islice(remaining, count):
            at = (row - first) * size
            alike.setdefault(said[at : at + size], []).append(row)
    for key, together in alike.items():
        yield bits_of(together), np.flatnonzero(np.unpackbits(np.frombuffer(key, np.uint8), bitorder="little")).tolist()
