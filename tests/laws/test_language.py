"""Laws of the policy language, on generated expressions and clusters."""

from __future__ import annotations

import dataclasses
import random
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from policysched.language import Program, format_text, parse, weigh
from policysched.language.checking.compile import compile_cases
from policysched.language.evaluation.columns import Depends, depends, missing_inputs
from tests.language.frames import RowFrame, TableFrame, missing_input
from tests.laws.evaluating import SCORE, all_rows, compiled, is_missing, one_row, shuffled, tallies_of
from tests.laws.examples import examples
from tests.strategies import anything, conditions, expressions, quantities, reducing
from tests.worlds import MOMENTS, PEER, POD, ROW, clusters

FEW = examples(40)
MOST = examples(200)


@MOST
@given(anything(), clusters(most=4))
def test_columns_and_interpreter_agree(text: str, frame: TableFrame) -> None:
    program = compiled(text)
    assert all_rows(program, frame) == [one_row(program, frame, row) for row in range(frame.rows)]


@FEW
@given(anything(), clusters(), st.data())
def test_some_rows_have_the_values_they_have_among_all(text: str, frame: TableFrame, data: Any) -> None:
    program = compiled(text)
    if not program.root.normalizes:
        rows = data.draw(st.lists(st.integers(0, frame.rows - 1), unique=True)) if frame.rows else []
        values = all_rows(program, frame)
        assert all_rows(program, frame.pick(rows)) == [values[row] for row in rows]


@FEW
@given(st.lists(expressions(2), min_size=2, max_size=4), clusters())
def test_programs_on_one_frame_do_not_disturb_each_other(texts: list[str], frame: TableFrame) -> None:
    programs = [compiled(text) for text in texts]
    together = [all_rows(program, frame) for program in programs]
    for program, values in zip(programs, together, strict=True):
        assert all_rows(program, dataclasses.replace(frame, memo={})) == values


@FEW
@given(anything(), clusters(), st.randoms())
def test_permuting_nodes_permutes_the_result(text: str, frame: TableFrame, chance: random.Random) -> None:
    program = compiled(text)
    order = list(range(frame.rows))
    chance.shuffle(order)
    values = all_rows(program, frame)
    assert all_rows(program, shuffled(frame, order)) == [values[row] for row in order]


@FEW
@given(anything(), clusters())
def test_what_is_not_optional_is_never_missing(text: str, frame: TableFrame) -> None:
    program = compiled(text)
    if not program.type.optional:
        assert None not in all_rows(program, frame)
        assert "unknown" not in all_rows(program, frame)


@FEW
@given(anything(), clusters(most=4), st.fixed_dictionaries(dict(ROW)), st.fixed_dictionaries(dict(PEER)))
def test_a_node_and_its_pod_change_nothing_for_others_but_aggregates(
    text: str, frame: TableFrame, row: dict[str, Any], peer: dict[str, Any]
) -> None:
    program = compiled(text)
    if program.is_local:
        more = dataclasses.replace(
            frame, table=[*frame.table, row], peers=[*frame.peers, {"row": frame.rows, **peer}], memo={}, feasible=None
        )
        assert all_rows(program, more)[: frame.rows] == all_rows(program, frame)


@FEW
@given(anything(), clusters(most=3))
def test_a_missing_input_is_one_that_is_missing_there(text: str, frame: TableFrame) -> None:
    program = compiled(text)
    values = all_rows(program, frame)
    for row, value in enumerate(values):
        found = missing_input(program, frame, row)
        if value not in {None, "unknown"}:
            assert found is None
        elif found is not None:
            assert is_missing(found, frame.at(row))


@FEW
@given(anything(), clusters(most=4))
def test_missing_inputs_of_many_rows_are_those_of_each(text: str, frame: TableFrame) -> None:
    program = compiled(text)
    together: list[Any] = [None] * frame.rows
    for item, rows in missing_inputs(program, frame, np.ones(frame.rows, np.bool_)):
        for row in np.flatnonzero(rows).tolist():
            assert together[row] is None
            together[row] = item
    assert together == [missing_input(program, frame, row) for row in range(frame.rows)]


@FEW
@given(st.one_of(conditions(2), quantities("cpu", 2), reducing()), clusters(most=4))
def test_a_tally_is_the_sum_of_what_each_pod_weighs(text: str, frame: TableFrame) -> None:
    for node in tallies_of(compiled(text).root):
        weights = np.zeros(frame.rows)
        for place, peer in enumerate(frame.peers):
            if peer["row"] >= 0:
                weights[peer["row"]] += weigh(node, RowFrame(frame, peer["row"], place))
        assert np.allclose(frame.pod_aggregate(node), weights)


@FEW
@given(reducing(), clusters(most=3), st.fixed_dictionaries(dict(POD)), st.fixed_dictionaries(dict(ROW)), MOMENTS)
def test_what_a_pod_weighs_depends_on_what_the_tally_says(
    text: str, frame: TableFrame, pod: dict[str, Any], row: dict[str, Any], now: float
) -> None:
    for node in tallies_of(compiled(text).root):
        if depends(node) is not Depends.ROW:
            others = frame.scalars if depends(node) is Depends.POD else pod
            moved = TableFrame([row], others, peers=[{**peer, "row": 0} for peer in frame.peers], now=now)
            for place, peer in enumerate(frame.peers):
                here = RowFrame(frame, peer["row"], place)
                assert peer["row"] < 0 or weigh(node, here) == weigh(node, RowFrame(moved, 0, place))


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
