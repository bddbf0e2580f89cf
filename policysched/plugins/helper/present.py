"""Which of a few numbers, such as domains, the rows of a mask have: asked in every cycle, nearly always the same.

Shapes: N rows in use, C the capacity of the columns.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from policysched.framework import Mask


class Present:
    """The answer, kept while neither the numbers nor the mask change."""

    __slots__ = ("_found", "_seen")

    def __init__(self) -> None:
        self._seen: tuple[int, bytes] = (-1, b"")
        self._found: NDArray[np.intp] = np.zeros(0, np.intp)

    @property
    def nbytes(self) -> int:
        """The memory that it takes. Units: bytes."""
        return len(self._seen[1]) + self._found.nbytes

    def among(self, numbers: NDArray[np.intp], version: int, mask: Mask) -> NDArray[np.intp]:
        """Give the numbers that some row of the mask has, each once, rising.

        Args:
            numbers: The number of each row, not negative.
            version: What is another whenever a number is.
            mask: The rows.

        Shapes: numbers (C,), mask (N,) -> (found,).
        """
        seen = (version, mask.tobytes())
        if seen != self._seen:
            # with weights it is quicker than to pick the rows first
            self._found = np.bincount(numbers[: mask.size], mask).nonzero()[0]
            self._seen = seen
        return self._found
