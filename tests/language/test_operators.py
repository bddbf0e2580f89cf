"""The tables have every operator on every kind of value, with each of its sides present and missing."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, TypeAlias

import pytest

from policysched.language import Program
from policysched.language.evaluation.scalar import ScalarFrame, evaluate
from policysched.language.ir.graph import Typed
from tests.language.test_conformance import CASES, compile_case, frame_of

Use: TypeAlias = tuple[str, tuple[str, ...], tuple[bool, ...]]
UNITS = ("number", "cpu", "bytes", "duration")
COMPARED = ("version", *UNITS)
ANY = ("string", *COMPARED)
ALIKE = {
    **dict.fromkeys(("==", "!="), ANY),
    **dict.fromkeys(("<", "<=", ">", ">="), COMPARED),
    **dict.fromkeys(("+", "-"), UNITS),
    **dict.fromkeys(("and", "or"), ("condition",)),
    "??": ("condition", *ANY),
}
PAIRS = {
    **{op: [(kind, kind) for kind in kinds] for op, kinds in ALIKE.items()},
    "*": [*((unit, "number") for unit in UNITS), *(("number", unit) for unit in UNITS)],
    "/": [*((unit, "number") for unit in UNITS), *((unit, unit) for unit in UNITS)],
}
SINGLE = {
    "not": ("condition",),
    "has": ("condition", *ANY),
    **dict.fromkeys(("negate", "abs"), UNITS),
}


def wanted() -> set[Use]:
    both = list(itertools.product((False, True), repeat=2))
    found: set[Use] = {(op, kinds, gaps) for op, pairs in PAIRS.items() for kinds in pairs for gaps in both}
    found |= {(op, (kind,), (gap,)) for op, kinds in SINGLE.items() for kind in kinds for gap in (False, True)}
    for op in ("in", "not in"):
        found |= {(op, (kind, "list"), (gap, False)) for kind in ("string", *UNITS) for gap in (False, True)}
        found |= {(op, ("string", "list"), (gap, True)) for gap in (False, True)}
    return found


def uses(root: Typed, frame: ScalarFrame) -> Iterator[Use]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        waiting += node.args
        gaps = tuple(evaluate(part, frame) is None for part in node.args)
        yield node.op, tuple(str(part.type) for part in node.args), gaps


def _used(case: dict[str, Any], program: Program) -> Iterator[Use]:
    frame, rows = frame_of(case)
    for row in rows:
        yield from uses(program.root, frame.at(row))


@pytest.fixture(scope="module")
def used() -> set[Use]:
    found: set[Use] = set()
    for case in (one.values[0] for one in CASES):
        program = compile_case(case).program
        # Without a value a case says nothing of what comes out.
        if program is not None and {"value", "values", "missing", "unknown"} & set(case):
            found.update(_used(case, program))
    return found


@pytest.mark.parametrize("operator", [*PAIRS, *SINGLE, "in", "not in"])
def test_the_tables_have_an_operator_on_every_kind_with_every_side_missing(operator: str, used: set[Use]) -> None:
    assert {use for use in wanted() if use[0] == operator} - used == set()
