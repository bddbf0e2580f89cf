"""Whole numbers as Go's int64 has them: sums and products keep the low 64 bits, quotients go towards zero.

For plain numbers of Python, which have no largest one. Arrays of NumPy wrap around by themselves; what differs there is
in `policysched.state.tables.int64_arrays`. Nothing here raises, whatever the numbers are.

Source: the Go specification, "Integer overflow" and "Integer operators".
"""

from __future__ import annotations

from typing import Final

MAX: Final = (1 << 63) - 1
MIN: Final = -(1 << 63)
_SPAN: Final = 1 << 64


def wrap(number: int) -> int:
    """Give the int64 that the low 64 bits of a number are."""
    return number if MIN <= number <= MAX else (number - MIN) % _SPAN + MIN


def quotient(number: int, divisor: int) -> int:
    """Divide towards zero; the divisor is not 0."""
    magnitude = abs(number) // abs(divisor)
    return wrap(magnitude if (number < 0) == (divisor < 0) else -magnitude)
