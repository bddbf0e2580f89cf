from __future__ import annotations

import numpy as np
import pytest

from policysched.plugins.columns import AnswersByCode
from policysched.state.tables.columns import Column, ColumnSet
from policysched.state.tables.interner import MISSING, UNKNOWN, Interner, Strings


def test_codes_count_up_and_stay() -> None:
    strings = Strings()
    assert [strings.code(text) for text in ("a", "", "b", "a")] == [0, 1, 2, 0]
    assert [strings.text(code) for code in range(3)] == ["a", "", "b"]
    assert len(strings) == 3


def test_find_makes_no_code() -> None:
    strings = Strings()
    assert strings.find("a") == MISSING
    assert len(strings) == 0
    strings.code("a")
    assert strings.find("a") == 0


def test_values_of_any_hashable_kind_are_told_apart() -> None:
    sets: Interner[frozenset[str]] = Interner()
    first = sets.code(frozenset("ab"))
    assert sets.code(frozenset("ba")) == first
    assert sets.value(sets.code(frozenset("a"))) == frozenset("a")


def test_an_unknown_code_is_an_error() -> None:
    with pytest.raises(IndexError):
        Strings().text(0)


def kept(columns: ColumnSet, *codes: int) -> Column:
    """A column of these codes."""
    column = columns.new(np.int32, MISSING)
    column.data[: len(codes)] = codes
    return column


def test_codes_that_nobody_holds_are_used_again_and_the_others_stay() -> None:
    columns, strings = ColumnSet(), Strings(spare=4)
    column = kept(columns, strings.code("a"))
    strings.hold(column)
    for text in "bcd":
        strings.code(text)
    column.data[1] = strings.find("c")
    strings.tidy()
    assert (strings.stamp, strings.living) == (1, 2)
    assert [strings.find(text) for text in "abcd"] == [0, MISSING, 2, MISSING]
    assert (strings.code("e"), strings.text(1), strings.text(2)) == (1, "e", "c")
    assert list(strings) == ["a", "e", "c"]


def test_nothing_is_given_up_while_most_is_held() -> None:
    columns, strings = ColumnSet(), Strings(spare=4)
    column = kept(columns, *(strings.code(text) for text in "abcde"))
    strings.hold(column)
    strings.tidy()
    assert strings.living == 5
    generation = strings.stamp
    for text in "fghi":
        strings.code(text)
        strings.tidy()
    assert (strings.stamp, strings.living) == (generation, 9)
    strings.code("j")
    strings.tidy()
    assert (strings.stamp, strings.living) == (generation + 1, 5)


def test_a_holder_that_is_gone_holds_nothing() -> None:
    columns, strings = ColumnSet(), Strings(spare=2)
    column = kept(columns, strings.code("a"), strings.code("b"))
    strings.hold(column)
    del column
    strings.tidy()
    assert (strings.living, len(strings)) == (0, 0)


def test_what_no_column_holds_is_sought_in_vain() -> None:
    strings = Strings()
    code = strings.code("a")
    assert strings.sought("a") == code
    assert strings.sought("b") == UNKNOWN
    assert strings.sought("b") != MISSING


def test_answers_by_code_are_forgotten_with_the_generation() -> None:
    columns, strings = ColumnSet(), Strings(spare=2)
    verdicts = AnswersByCode(strings, lambda text: int(text == "b"))
    column = kept(columns, strings.code("a"), strings.code("b"))
    assert verdicts.of(column.data[:3]).tolist() == [0, 1, 0]
    strings.tidy()
    column.data[:2] = strings.code("b"), strings.code("c")
    assert column.data[:2].tolist() == [0, 1]
    assert verdicts.of(column.data[:3]).tolist() == [1, 0, 0]
