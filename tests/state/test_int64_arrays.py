"""Arithmetic of arrays, against that of plain numbers."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from policysched.model.quantity import MAX, MIN, wrap
from policysched.state.tables.columns import from_floats, quotients

EXTREMES = [0, 1, -1, 2, -2, 7, -7, 100, 2**31, -(2**53) - 1, 2**62, MAX, MAX - 1, MIN, MIN + 1]


def quotient(number: int, divisor: int) -> int:
    """Divide towards zero, as Go does."""
    return wrap(math.trunc(Fraction(number, divisor)))


def test_quotients_are_those_of_plain_numbers() -> None:
    pairs = [(number, divisor) for number, divisor in itertools.product(EXTREMES, EXTREMES) if divisor]
    numbers, divisors = (np.array(side, np.int64) for side in zip(*pairs, strict=True))
    assert quotients(numbers, divisors).tolist() == [quotient(*pair) for pair in pairs]


@pytest.mark.parametrize("divisor", [2, -1, -3])
def test_quotients_by_one_number_are_those_of_plain_numbers(divisor: int) -> None:
    found = quotients(np.array(EXTREMES, np.int64), divisor)
    assert found.tolist() == [quotient(number, divisor) for number in EXTREMES]


def test_doubles_become_whole_numbers_as_on_amd64() -> None:
    values = [0.0, -0.9, 1.9, -1.9, 2.0**62, 2.0**63, -(2.0**63), -(2.0**64), 1e300, math.inf, -math.inf, math.nan]
    wanted = [0, 0, 1, -1, 2**62, MIN, MIN, MIN, MIN, MIN, MIN, MIN]
    assert from_floats(np.array(values)).tolist() == wanted
    assert from_floats(np.array([values, values])).tolist() == [wanted, wanted]
    assert from_floats(np.array(values[:5])).tolist() == wanted[:5]
    assert from_floats(np.zeros(0)).tolist() == []
