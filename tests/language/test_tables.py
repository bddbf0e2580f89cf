from __future__ import annotations

from typing import Any

import numpy as np

from policysched.language import Input, Program, Truth
from policysched.language.frames import Strings
from policysched.language.tables import TEXT_CODES, PairLookup
from policysched.language.typed import Op, make
from policysched.language.types import BOOL, Gap
from tests.language.frames import Interner, TableFrame


def test_a_full_table_of_pairs_starts_anew_and_stays_right() -> None:
    strings = Interner()
    codes = np.array([strings.code(text) for text in "abcdef"], np.int32)

    def join(left: str, right: str, known: Strings) -> int:
        return known.code(left + right)

    table = PairLookup(TEXT_CODES, join, most=4)
    for shift in range(6):
        found = table.take(codes, np.roll(codes, shift), strings)
        texts = [strings.text(code) for code in found.tolist()]
        assert texts == ["abcdef"[i] + "abcdef"[i - shift] for i in range(6)]
    missing = np.full(6, -1, np.int32)
    assert table.take(codes, missing, strings).tolist() == table.take(missing, codes, strings).tolist() == [-1] * 6


class Flags(TableFrame):
    """A pod with conditions of its own."""

    def scalar(self, item: Input) -> Any:
        return self.scalars.get(item.text)


def test_a_condition_of_the_pod_may_be_unknown() -> None:
    program = Program(make(Op.INPUT, (), BOOL.filled(Gap.INPUT), Input("pod", ("x",))), "pod.x")
    assert program.run(Flags([])) == Truth(False, True)
    assert program.run(Flags([], {"pod.x": True})) == Truth(True, False)
