from __future__ import annotations

import pytest

from policysched.state.interner import MISSING, Interner, Strings


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
