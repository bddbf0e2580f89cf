"""What is told of guards is true: a case that is never taken gives no node its score, on whatever nodes there are."""

from __future__ import annotations

import itertools
import random
import re

import numpy as np
import pytest

from policysched.language import Environment, Want, compile_expression
from policysched.language.checking.compile import compile_cases
from policysched.language.checking.exclusion import MOST_LOOKED_AT, implied
from policysched.language.evaluation.columns import evaluate_columns
from policysched.language.evaluation.scalar import UNKNOWN, interpret
from tests.language.frames import TableFrame
from tests.language.programs import compile_lets

ROWS = [
    {name: value for name, value in zip(names, values, strict=True) if value is not None}
    for names in [('node.labels["a"]', "node.zone", "node.ready", "node.free.pods")]
    for values in itertools.product((None, "0", "1", "2", "3", "x"), (None, "a", "b", "c"), (True, False), range(4))
]
ATOMS = (
    "node.ready", 'node.zone == "{text}"', 'node.zone != "{text}"', 'node.zone in ["{text}", "b"]',
    'node.zone not in ["{text}", "c"]', "node.free.pods {sign} {number}", '(number(node.labels["a"]) {sign} {number})',
    '(number(node.labels["a"]) {sign} {number} ?? 2)', 'has(node.labels["a"])',
)  # fmt: skip


ASKED = "has(node.zone)"


def condition(chance: random.Random, depth: int = 2) -> str:
    kind = chance.choice(("atom", "and", "or", "not", "false", "true")) if depth else "atom"
    if kind == "atom":
        sign = chance.choice(("<", "<=", ">", ">=", "==", "!="))
        return chance.choice(ATOMS).format(text=chance.choice("abc"), sign=sign, number=chance.randrange(4))
    inner = condition(chance, depth - 1)
    if kind in {"and", "or"}:
        return f"({inner} {kind} {condition(chance, depth - 1)})"
    return f"(not {inner})" if kind == "not" else f"(({inner}) ?? {kind})"


@pytest.mark.parametrize("seed", range(300))
def test_a_case_that_is_said_to_be_never_taken_never_is(seed: int) -> None:
    chance = random.Random(seed)
    guards = [condition(chance) for _ in range(4)]
    lines = [f"{guard} → {number}" for number, guard in enumerate(guards, 1)] + ["else → 5"]
    compiled = compile_cases(lines, Environment("score"))
    if compiled.program is None:  # two guards are the same
        return
    scores = evaluate_columns(compiled.program.root, TableFrame(ROWS))
    told = [one for one in compiled.diagnostics if one.code == "W0703" and re.search("never", one.message)]
    for one in told:
        assert one.case is not None
        assert not np.any(scores == one.case + 1), (lines, one)
    for one in compiled.diagnostics:
        if one.code == "W0703" and "always true" in one.message:
            assert one.case == 4, (lines, one)


@pytest.mark.parametrize("seed", range(200))
def test_a_condition_without_a_warning_is_known_everywhere(seed: int) -> None:
    chance = random.Random(seed)
    first, second = condition(chance, 1), condition(chance, 1)
    known = chance.choice((ASKED, f"not {ASKED}"))
    looks = chance.choice(('starts_with(node.zone, "a")', f'({first} and glob(node.zone, "b*"))'))
    forms = (
        f"{known} and ({second} or {looks})",
        f"{known} or {looks}",
        f"{first} and ({known} or ({looks} and {second}))",
        f"if({known}, {looks}, {first})",
        f"if({first} and {known}, {looks}, {second})",
        f"if({known}, {first}, {looks})",
    )
    text = chance.choice(forms)
    compiled = compile_expression(text, Environment("filter"), Want.CONDITION)
    assert compiled.program is not None
    frame = TableFrame(ROWS)
    unknown = [row for row in range(len(ROWS)) if interpret(compiled.program, frame.at(row)) is UNKNOWN]
    warned = any(one.code in {"W0701", "W0703"} for one in compiled.diagnostics)
    assert warned or not unknown, (text, ROWS[unknown[0]])


def test_parts_that_stand_in_a_graph_again_and_again_are_looked_at_once() -> None:
    lets = [("a0", "node.ready and node.free.pods > 1")]
    lets += [(f"a{n}", f"a{n - 1} and (a{n - 1} or not a{n - 1})") for n in range(1, 200)]
    _, known = compile_lets(lets, Environment("score"))
    root = known.lets["a199"]
    assert root is not None
    assert len(implied(root)) < 256
    found = compile_cases(["a199 → 1", "a198 → 2", "else → 3"], known)
    assert found.program is not None


def test_of_very_many_guards_not_all_are_looked_at() -> None:
    lines = [f"node.free.pods == {number} or node.free.cpu == {number} → 1" for number in range(250)]
    found = compile_cases([*lines, "node.free.pods == 3 → 1", "else → 2"], Environment("score"))
    assert found.program is not None
    assert MOST_LOOKED_AT < 250 * 250 * 2
