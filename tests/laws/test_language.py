"""Laws of the policy language, on generated expressions and clusters."""

from __future__ import annotations

import dataclasses
import random
from typing import Any

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from policysched.language import (
    UNKNOWN,
    Diagnostic,
    Environment,
    Program,
    Want,
    compile_cases,
    compile_expression,
    format_text,
    interpret,
    parse,
    render,
)
from policysched.language.codes import CODES
from tests.language.frames import TableFrame, at_row
from tests.strategies import clusters, conditions, expressions, quantities

SCORE = Environment("score", normalized=True)
FEW = settings(max_examples=60, deadline=None)
MANY = settings(max_examples=120, deadline=None)
MOST = settings(max_examples=500, deadline=None)
ALPHABET = st.text(
    st.one_of(st.sampled_from('node.labels["x"] == <>!&|?%()[]-+*/→#\n\0\u202e 3Ginotin,:\'=AB'), st.characters())
)
PIECES = st.lists(
    st.sampled_from(
        ("node.name", "not", "and", "or", "in", "(", ")", "[", "]", ",", "==", "<", "??", "-", "+", "/", "3", "4Gi",
         "80%", '"a"', "'", '"', "=", "→", "else", "missing", "has(", "sum(", "by", "pod.labels", ".", "X", "5min", "x")
    ),
    max_size=25,
)  # fmt: skip


def compiled(text: str) -> Program:
    """Compile a generated text; constants that the generator made impossible together are no example."""
    result = compile_expression(text, SCORE)
    assume({item.code for item in result.errors} != {"E0312"})
    assert result.program is not None, text
    return result.program


def all_rows(program: Program, frame: TableFrame) -> list[Any]:
    value = program.run(frame)
    return [at_row(program, value, frame, row) for row in range(frame.rows)]


def one_row(program: Program, frame: TableFrame, row: int) -> Any:
    value = interpret(program, frame.at(row))
    return "unknown" if value is UNKNOWN else value


@MOST
@given(st.one_of(conditions(2), expressions()), clusters(most=4))
def test_columns_and_interpreter_agree(text: str, frame: TableFrame) -> None:
    program = compiled(text)
    assert all_rows(program, frame) == [one_row(program, frame, row) for row in range(frame.rows)]


@FEW
@given(st.lists(expressions(2), min_size=2, max_size=4), clusters())
def test_programs_on_one_frame_do_not_disturb_each_other(texts: list[str], frame: TableFrame) -> None:
    programs = [compiled(text) for text in texts]
    together = [all_rows(program, frame) for program in programs]
    for program, values in zip(programs, together, strict=True):
        assert all_rows(program, dataclasses.replace(frame, memo={})) == values


@FEW
@given(expressions(), clusters(), st.randoms())
def test_permuting_nodes_permutes_the_result(text: str, frame: TableFrame, chance: random.Random) -> None:
    program = compiled(text)
    order = list(range(frame.rows))
    chance.shuffle(order)
    turned = TableFrame([frame.table[row] for row in order], frame.scalars)
    turned.feasible = None if frame.feasible is None else frame.feasible[np.array(order, np.intp)]
    values = all_rows(program, frame)
    assert all_rows(program, turned) == [values[row] for row in order]


@FEW
@given(expressions(), clusters())
def test_what_is_not_optional_is_never_missing(text: str, frame: TableFrame) -> None:
    program = compiled(text)
    if not program.type.optional:
        assert None not in all_rows(program, frame)
        assert "unknown" not in all_rows(program, frame)


@FEW
@given(expressions(), clusters(most=3))
def test_a_missing_input_is_one_that_is_missing_there(text: str, frame: TableFrame) -> None:
    program = compiled(text)
    values = all_rows(program, frame)
    for row, value in enumerate(values):
        found = program.missing_input(frame, row)
        if value not in {None, "unknown"}:
            assert found is None
        elif found is not None:
            assert frame.at(row).value(found) is None


@FEW
@given(expressions(), clusters(most=4))
def test_missing_inputs_of_many_rows_are_those_of_each(text: str, frame: TableFrame) -> None:
    program = compiled(text)
    together: list[Any] = [None] * frame.rows
    for item, rows in program.missing_inputs(frame, np.ones(frame.rows, np.bool_)):
        for row in np.flatnonzero(rows).tolist():
            assert together[row] is None
            together[row] = item
    assert together == [program.missing_input(frame, row) for row in range(frame.rows)]


@FEW
@given(expressions())
def test_formatting_keeps_the_meaning_and_is_stable(text: str) -> None:
    formatted = format_text(text)
    assert isinstance(formatted, str)
    assert compiled(formatted) == compiled(text)
    assert parse(formatted) == parse(text)
    assert format_text(formatted) == formatted


@FEW
@given(st.lists(st.tuples(conditions(2), quantities("number", 1)), min_size=1, max_size=4), clusters())
def test_cases_mean_their_first_true_guard(arms: list[tuple[str, str]], frame: TableFrame) -> None:
    compiled_cases = compile_cases([f"{guard} → {value}" for guard, value in arms], SCORE)
    program = compiled_cases.program
    if program is None:
        assert {item.code for item in compiled_cases.errors} <= {"E0504", "E0312"}
        return
    values = all_rows(program, frame)
    guards = [(compiled(guard), compiled(value)) for guard, value in arms]
    for row in range(frame.rows):
        assert values[row] == _first(guards, frame, row)


def _first(arms: list[tuple[Program, Program]], frame: TableFrame, row: int) -> Any:
    for guard, value in arms:
        held = one_row(guard, frame, row)
        if held is not False:
            return one_row(value, frame, row) if held is True else None
    return None


def _judge(text: str, start: str) -> None:
    """Any text compiles, or says what is wrong at a place inside it."""
    if start == "case":
        result = compile_cases([text], Environment("score"))
    else:
        result = compile_expression(text, Environment("filter"), Want.CONDITION)
    assert (result.program is None) == bool(result.errors)
    for item in result.diagnostics:
        _inside(item, text)


def _inside(item: Diagnostic, text: str) -> None:
    lines = text.split("\n")
    assert item.code in CODES
    assert 1 <= item.line <= len(lines)
    assert 1 <= item.column <= item.end_column <= len(lines[item.line - 1]) + 1
    assert not (item.column == item.end_column and item.column <= len(lines[item.line - 1].rstrip()))
    assert "Token(" not in item.message
    assert render(item, text, "p").startswith(item.severity)


@MANY
@given(ALPHABET, st.sampled_from(("expr", "case")))
def test_any_text_compiles_or_says_why_not(text: str, start: str) -> None:
    _judge(text, start)


@MANY
@given(PIECES, st.sampled_from((" ", "")), st.sampled_from(("expr", "case")))
def test_any_tokens_compile_or_say_why_not(pieces: list[str], space: str, start: str) -> None:
    _judge(space.join(pieces), start)


@MANY
@given(expressions(2), st.integers(0), st.integers(0, 6), st.text(max_size=2))
def test_any_change_of_a_text_compiles_or_says_why_not(text: str, place: int, size: int, new: str) -> None:
    start = place % (len(text) + 1)
    _judge(text[:start] + new + text[start + size :], "expr")
