from __future__ import annotations

import pytest

from policysched.language import Environment, Want, check_name, compile_expression, policy_cost
from policysched.language.evaluation.columns import run_program
from tests.language.frames import TableFrame
from tests.language.programs import compile_lets


def codes(lets: list[tuple[str, str]]) -> list[list[str]]:
    compiled, _ = compile_lets(lets, Environment())
    return [[item.code for item in (*let.name_diagnostics, *let.value.diagnostics)] for let in compiled]


def test_lets_use_the_ones_above() -> None:
    compiled, environment = compile_lets([("a", "node.free.cpu"), ("b", "a + a")], Environment())
    assert [let.value.diagnostics for let in compiled] == [(), ()]
    program = compile_expression("b > 1", environment, Want.CONDITION).program
    assert program is not None
    assert program.text == "b > 1"
    assert [item.text for item in program.inputs] == ["node.free.cpu"]
    assert run_program(program, TableFrame([{"node.free.cpu": 501}])).true.tolist() == [True]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("lets", "wanted"),
    [
        ([("a", "b"), ("b", "1")], [["E0207"], []]),
        ([("a", "a")], [["E0207"]]),
        ([("a", "1"), ("a", "2")], [[], ["E0207"]]),
        ([("a", "1"), ("a", "a")], [[], ["E0207"]]),
        ([("node", "1")], [["E0208"]]),
        ([("scale", "1")], [["E0208"]]),
        ([("a", "node.free.cpu"), ("node", "1"), ("b", "node.free.cpu")], [[], ["E0208"], []]),
        ([("count", "1"), ("b", "count + 1")], [["E0208"], []]),
        ([("Free", "1")], [["E0208"]]),
        ([("", "1")], [["E0208"]]),
        ([("a", "nme"), ("b", "a + 1"), ("c", "b")], [["E0201"], [], []]),
        ([("else", "node.nme")], [["E0208", "E0202"]]),
        ([("a", 'number(node.labels["x"])'), ("b", "a == 1")], [[], []]),
    ],
)
def test_lets_with_mistakes_get_one_error_for_one_cause(lets: list[tuple[str, str]], wanted: list[list[str]]) -> None:
    assert codes(lets) == wanted


def test_a_broken_let_leaves_its_users_without_a_program_and_without_an_error() -> None:
    _, environment = compile_lets([("a", "nme")], Environment())
    compiled = compile_expression("a > 1", environment, Want.CONDITION)
    assert (compiled.program, compiled.diagnostics) == (None, ())


@pytest.mark.parametrize(
    ("value", "phase", "code"),
    [
        ("node.free.cpu", "pod", "E0405"),
        ("cluster.nodes", "pod", "E0405"),
        ("normalize(node.free.cpu)", "filter", "E0506"),
        ("normalize(node.free.cpu)", "pod", "E0405"),
    ],
)
def test_lets_do_not_open_what_a_phase_closes(value: str, phase: str, code: str) -> None:
    _, environment = compile_lets([("a", value)], Environment())
    used = Environment(phase, lets=environment.lets)  # type: ignore[arg-type]
    assert [item.code for item in compile_expression("a > 1", used).diagnostics] == [code]


def test_normalize_reaches_a_score_through_a_let() -> None:
    _, environment = compile_lets([("a", "normalize(node.free.cpu)")], Environment())
    score = Environment("score", lets=environment.lets)
    assert compile_expression("a", score, Want.NUMBER).diagnostics == ()


def test_lets_of_lets_do_not_multiply() -> None:
    lets = [("a0", "node.free.cpu")] + [(f"a{i + 1}", f"a{i} + a{i}") for i in range(60)]
    _, environment = compile_lets(lets, Environment())
    program = compile_expression("a60 > 0", environment, Want.CONDITION).program
    assert program is not None
    assert policy_cost([program]).nodes == 61


@pytest.mark.parametrize(("name", "code"), [("gpus_free", None), ("_x1", None), ("1a", "E0208"), ("in", "E0208")])
def test_names_are_checked(name: str, code: str | None) -> None:
    found = check_name(name)
    assert (found and found.code) == code
