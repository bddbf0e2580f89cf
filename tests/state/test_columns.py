from __future__ import annotations

import numpy as np
import pytest

from policysched.state.tables.columns import FIRST_CAPACITY, ColumnSet, counted, distinct, distinct_places
from policysched.state.tables.interner import MAX_KEYS, MISSING, Strings, TextColumns


def test_growing_keeps_values_and_fills_the_rest() -> None:
    columns = ColumnSet()
    counts, codes = columns.new(np.int64), columns.new(np.int32, MISSING)
    counts.data[3] = 7
    codes.data[FIRST_CAPACITY - 1] = 5
    columns.grow()
    assert columns.capacity == counts.data.size == codes.data.size == 2 * FIRST_CAPACITY
    assert counts.data[3] == 7
    assert codes.data[FIRST_CAPACITY - 1] == 5
    assert not counts.data[FIRST_CAPACITY:].any()
    assert (codes.data[FIRST_CAPACITY:] == MISSING).all()
    assert (counts.data.dtype, codes.data.dtype) == (np.dtype(np.int64), np.dtype(np.int32))


def test_a_column_made_after_growing_has_the_capacity() -> None:
    columns = ColumnSet()
    columns.grow()
    assert columns.new(np.bool_).data.size == 2 * FIRST_CAPACITY


def test_a_column_lives_as_long_as_somebody_holds_it() -> None:
    columns = ColumnSet()
    one, other = columns.new(np.int64), columns.new(np.int64)
    assert columns.count == 2
    del one
    assert columns.count == 1
    columns.grow()
    assert other.data.size == 2 * FIRST_CAPACITY


def texts() -> tuple[TextColumns, Strings, ColumnSet]:
    columns, strings = ColumnSet(), Strings()
    return TextColumns(columns, strings), strings, columns


def test_a_key_is_built_from_the_rows_on_first_use_and_kept() -> None:
    made, strings, _ = texts()
    made.store(0, {}, {"a": "x"})  # nobody reads a key yet
    column = made.column("a", [{"a": "x"}, {}, {"a": ""}])
    assert column.data[:3].tolist() == [strings.find("x"), MISSING, strings.find("")]
    made.store(1, {}, {"a": "y", "b": "z"})
    made.store(0, {"a": "x"}, {})
    assert column.data[:3].tolist() == [MISSING, strings.find("y"), strings.find("")]
    assert strings.find("z") == MISSING
    assert made.column("a", []) is column


def test_only_the_keys_used_last_are_kept() -> None:
    made, strings, columns = texts()
    computed = [f"computed-{number}" for number in range(MAX_KEYS - 2)]
    rows = [{"kept": "x", "lost": "y"}]
    made.store(0, {}, dict.fromkeys(["kept", "lost", "one-more", *computed], "x"))
    first, lost = made.column("kept", rows), made.column("lost", rows)
    for key in computed:
        made.column(key, rows)
    assert made.column("kept", rows) is first
    made.column("one-more", rows)
    assert made.column("kept", rows) is first
    again = made.column("lost", rows)
    assert again is not lost
    assert again.data[0] == strings.find("y")
    columns.grow()
    assert first.data.size == again.data.size == columns.capacity
    assert len(made) == MAX_KEYS


def test_keys_that_no_row_has_share_one_column() -> None:
    made, _, columns = texts()
    nothing = made.column("a", [{}, {}])
    assert made.column("b", [{}, {}]) is nothing
    assert ("a" in made, len(made)) == (False, 0)
    made.store(1, {}, {"a": "x"})
    assert ("a" in made, made.stamp) == (True, 1)
    column = made.column("a", [{}, {"a": "x"}])
    assert (column.data[:2] >= 0).tolist() == [False, True]
    made.store(0, {}, {"a": "y"})
    made.store(1, {"a": "x"}, {})
    assert ("a" in made, made.stamp, len(made)) == (True, 1, 1)
    made.store(0, {"a": "y"}, {"b": "y"})
    assert ("a" in made, made.stamp, len(made)) == (False, 3, 0)
    assert made.column("a", [{"b": "y"}, {}]) is nothing
    columns.grow()
    assert nothing.data.size == columns.capacity
    assert not (nothing.data >= 0).any()


@pytest.mark.parametrize("numbers", [[], [4], [7, 7, 7], [3, -1, 3, 0, -1, 9], list(range(100, 0, -3)) * 2])
@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.intp])
def test_distinct_numbers_are_what_numpy_says(numbers: list[int], dtype: type[np.signedinteger]) -> None:
    given = np.array(numbers, dtype)
    values, places = np.unique(given, return_inverse=True)
    assert distinct(given).tolist() == values.tolist()
    found, of_each = distinct_places(given)
    assert (found.tolist(), of_each.tolist()) == (values.tolist(), places.tolist())
    assert found.dtype == distinct(given).dtype == given.dtype


@pytest.mark.parametrize("numbers", [[], [0], [5, 5, 2], [2**31 - 1, 3, 2**31 - 1], list(range(100, 0, -3)) * 2])
def test_counts_are_what_numpy_says_however_large_a_number_is(numbers: list[int]) -> None:
    values, counts = np.unique(np.array(numbers, np.int32), return_counts=True)
    assert counted(np.array(numbers, np.int32)) == (values.tolist(), counts.tolist())
