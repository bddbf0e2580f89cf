"""Arithmetic of arrays as Go's int64 has it, where NumPy's differs: quotients, and whole numbers made of doubles.

Sums, differences and products of int64 arrays wrap around in both. For plain numbers see `policysched.model.quantity`.

Source: the Go specification, "Integer operators" and "Conversions"; the latter as amd64 does them.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from policysched.model.quantity import MIN

Whole = NDArray[np.int64]
Floats = NDArray[np.float64]
BEYOND: Final = 2.0**63
"""The smallest double above all int64."""


def quotients(numbers: Whole, divisors: Whole | int) -> Whole:
    """Divide towards zero; no divisor is 0.

    Shapes: as NumPy broadcasts them.
    """
    over = np.asarray(divisors, np.int64)
    # the lowest number divided by -1 wraps around to itself, as its negative does
    divided = np.where(over == -1, 1, over)
    found: Whole = numbers // divided
    found += (found < 0) & (found * divided != numbers)
    return np.where(over == -1, -found, found)


def from_floats(values: Floats) -> Whole:
    """Drop what stands behind the point; what is no int64 becomes the lowest one.

    Shapes: (...) -> (...).
    """
    if np.abs(values).max(initial=0.0) < BEYOND:
        return values.astype(np.int64)
    fits = (values >= -BEYOND) & (values < BEYOND)
    return np.where(fits, values, float(MIN)).astype(np.int64)
