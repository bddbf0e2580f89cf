from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from policysched.language import Input, Program
from policysched.language.evaluation.columns import Truth, run_program
from policysched.language.evaluation.frames import CODES, FIRST_OWN, NUMBERS, FrameStrings, Lookup, Members, PairLookup
from policysched.language.ir.graph import Op, make
from policysched.language.ir.types import BOOL, Gap
from tests.language.frames import Interner, TableFrame


def coded(strings: Any, texts: Iterable[str]) -> Any:
    return np.array([strings.code(text) for text in texts], np.int32)


def test_a_full_table_of_pairs_starts_anew_and_stays_right() -> None:
    base = Interner()
    strings, codes = FrameStrings(base), coded(base, "abcdef")
    table = PairLookup(CODES, lambda left, right: strings.code(left + right), most=4)
    for shift in range(6):
        found = table.take(codes, np.roll(codes, shift), strings)
        texts = [strings.text(code) for code in found.tolist()]
        assert texts == ["abcdef"[i] + "abcdef"[i - shift] for i in range(6)]
    missing = np.full(6, -1, np.int32)
    assert len(base) == 6
    assert table.take(codes, missing, strings).tolist() == table.take(missing, codes, strings).tolist() == [-1] * 6


def test_strings_of_a_frame_never_enter_what_lasts() -> None:
    base = Interner()
    known = coded(base, ["1", "2"])
    numbers, members, pairs = (
        Lookup(NUMBERS, float),
        Members(["2", "7"]),
        PairLookup(NUMBERS, lambda a, b: float(a + b)),
    )
    for text in ("7", "8"):
        strings = FrameStrings(base)
        column = np.array([strings.code(text), -1, *known], np.int32)
        assert column[0] == FIRST_OWN
        assert np.array_equal(numbers.take(column, strings), [float(text), np.nan, 1.0, 2.0], equal_nan=True)
        assert members.take(column, strings).tolist() == [text == "7", False, False, True]
        assert pairs.take(column, column, strings)[[0, 3]].tolist() == [float(text * 2), 22.0]
        assert np.isnan(pairs.take(column, column, strings)[1])
    assert len(base) == 2


def test_a_string_that_the_interner_learns_later_keeps_the_code_of_the_frame() -> None:
    base = Interner()
    strings = FrameStrings(base)
    own = strings.code("b")
    column = strings.read(coded(base, "abc"))
    assert column.tolist() == [0, own, 2]
    assert (strings.find("b"), strings.text(own), strings.code("a")) == (own, "b", 0)


def test_numbers_of_strings_last_beyond_a_frame() -> None:
    base = Interner()
    known = coded(base, ["a"])[0]
    one, other = FrameStrings(base), FrameStrings(base)
    other.code("z")
    first = one.lasting(np.array([known, -1, one.code("b"), one.code("c")], np.int32))
    assert first.tolist() == other.lasting(np.array([known, -1, other.code("b"), other.code("c")], np.int32)).tolist()
    assert len(set(first.tolist())) == 4


class Flags(TableFrame):
    """A pod with conditions of its own."""

    def scalar(self, item: Input) -> Any:
        return self.scalars.get(item.text)


def test_a_condition_of_the_pod_may_be_unknown() -> None:
    program = Program(make(Op.INPUT, (), BOOL.filled(Gap.INPUT), Input("pod", ("x",))), "pod.x")
    assert run_program(program, Flags([])) == Truth(False, True)
    assert run_program(program, Flags([], {"pod.x": True})) == Truth(True, False)
