"""Whole numbers of 64 bits: the same as the C library's, whatever goes in."""

from __future__ import annotations

import ctypes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policysched.model.quantity import MAX, MIN, wrap
from tests.laws.examples import examples

NUMBERS = st.one_of(st.sampled_from([0, 1, -1, MAX, MIN, MAX - 1, 2**53, -(2**62)]), st.integers(MIN, MAX))


@pytest.mark.parametrize(
    ("number", "wrapped"),
    [(0, 0), (MAX, MAX), (MIN, MIN), (MAX + 1, MIN), (MIN - 1, MAX), (2 * MAX, -2), (10**30, 5076944270305263616)],
)
def test_what_leaves_64_bits_comes_in_at_the_other_end(number: int, wrapped: int) -> None:
    assert wrap(number) == wrapped == ctypes.c_int64(number).value


@examples(200)
@given(NUMBERS, NUMBERS)
def test_sums_and_products_keep_the_low_64_bits(left: int, right: int) -> None:
    assert wrap(left + right) == ctypes.c_int64(left + right).value
    assert wrap(left * right) == ctypes.c_int64(left * right).value
    assert wrap(wrap(left + right) - right) == left
