"""Texts and policies at their limits, and input that nobody means well: a diagnostic or a value, and soon."""

from __future__ import annotations

import time
from typing import Any

import pytest

from policysched.language import (
    Compiled,
    Cost,
    Environment,
    Unit,
    Want,
    check_cost,
    compile_expression,
    interpret,
    load_grammar,
    policy_cost,
)
from policysched.language.checking.compile import compile_cases, each_let
from policysched.language.evaluation.columns import run_program
from tests.language.frames import TableFrame, at_row
from tests.language.programs import compile_lets
from tests.work import calls

load_grammar()
pytestmark = pytest.mark.usefixtures("others_apart")
LONGEST = 0.2
"""Units: seconds of the processor."""
RULES = 64


def compile_soon(text: str, want: Want = Want.ANY) -> Compiled:
    """Compile a text, which has to take less than the limit; twice at most, because garbage is collected at times."""
    for _ in range(2):
        begin = time.process_time()
        compiled = compile_expression(text, Environment("let", metrics={"load": Unit.NUMBER}), want)
        if time.process_time() - begin < LONGEST:
            return compiled
    raise AssertionError(f"more than {LONGEST} s for {text[:60]}")


def codes(compiled: Compiled) -> list[str]:
    return [item.code for item in compiled.diagnostics]


def padded(text: str, size: int) -> str:
    return text + " " * (size - len(text))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (padded("1", 4096), []),
        (padded("1", 4097), ["E0107"]),
        ("-" * 32 + "1", []),
        ("-" * 33 + "1", ["E0108"]),
        ("+".join(["1"] * 512), []),
        ("+".join(["1"] * 513), ["E0107"]),
        ("not " * 1000 + "true", ["E0108"]),
        ("(" * 4096, ["E0107"]),
        ("(" * 1024, ["E0108"]),
        ("!" * 1024, ["E0108"]),
        ("a." * 511 + "b", ["E0201"]),
        ('node.labels["a"]' * 100, ["E0100"]),
        ('"' + "x" * 4094 + '"', []),
        ('"' + "x" * 4094, ["E0104"]),
        ("9" * 4096, ["E0312"]),
        ("0." + "0" * 4090 + "1", []),
        ("9" * 4093 + "min", ["E0312"]),
        (f'version("{"1." * 2000}1")', []),
        (f'version("{"9" * 4000}")', []),
        (f'version("{"9" * 4000}.")', ["E0312"]),
        (f'hour("{"a/" * 2000}")', ["E0312"]),
        ('hour("\0")', ["E0312"]),
        ('hour("\ud800")', ["E0312"]),
        ('clock("\u0662\u0662:00", "06:00")', ["E0312"]),
        (" and ".join(f'hour("Europa/Berlin{n}") > 1' for n in range(100)), ["E0312"] * 50),
        (" and ".join(f"nod{n}.name == 1" for n in range(150)), ["E0201"] * 50),
        ("1 in [" + ", ".join(["1"] * 510) + "]", []),
        (f'glob(node.name, "{"*a" * 2000}")', []),
        (f'glob(node.name, "{"*" * 4000}?")', []),
    ],
)
def test_a_text_at_a_limit_gets_its_answer_soon(text: str, wanted: list[str]) -> None:
    assert codes(compile_soon(text)) == wanted


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 / 0", None),
        ("-1 / 0", None),
        ("0 / 0", None),
        ("node.free.cpu / 0", None),
        ("node.free.cpu / node.requested.cpu", None),
        ("1 / (1 / 0)", None),
        ("(1 / 0) ?? 5", 5.0),
        ("9007199254740992 * 9007199254740992", 2.0**106),
        ("-9007199254740992", -(2.0**53)),
        ("0.000001 * -0", 0.0),
        ("scale(1, 0, 0 * cluster.nodes)", None),
        ("round(-0.5)", 0.0),
        ("clamp(-9007199254740992, -1, 1)", -1.0),
        (" * ".join(["9007199254740992"] * 100), 2.0**1000),
        (" * ".join(["9007199254740992"] * 100) + " - " + " * ".join(["9007199254740992"] * 100), 0.0),
        ("1 / (" + " * ".join(["9007199254740992"] * 100) + ")", 2.0**-1000),
        ("sum(node.free.cpu / node.requested.cpu)", 0.0),
        ("avg(node.free.cpu / node.requested.cpu)", None),
        (f"sum({' * '.join(['9007199254740992'] * 100)} * (node.free.cpu / 1000m))", 2.0**1000),
    ],
)
def test_no_number_is_an_error_at_run_time(text: str, value: Any) -> None:
    program = compile_soon(text).program
    assert program is not None
    frame = TableFrame([{"node.free.cpu": 1000}])
    assert at_row(program, run_program(program, frame), frame, 0) == interpret(program, frame.at(0)) == value


def test_long_texts_of_labels_are_matched_soon() -> None:
    long = "a" * 4096
    frame = TableFrame([{'node.annotations["x"]': long}])
    for pattern in ("*a" * 1000 + "b", "*" + "?" * 3000 + "b", "a*" * 1500 + "c*a", "?" * 4000):
        program = compile_soon(f'glob(node.annotations["x"], "{pattern}")').program
        assert program is not None
        begin = time.process_time()
        assert at_row(program, run_program(program, frame), frame, 0) is False
        assert time.process_time() - begin < 1.0


def test_every_rule_of_a_policy_may_be_as_long_as_it_can() -> None:
    texts = [" and ".join([f"node.free.cpu >= {number}", *["node.ready"] * 240]) for number in range(RULES)]
    programs = [compile_soon(text, Want.CONDITION).program for text in texts]
    cost = policy_cost(program for program in programs if program is not None)
    assert cost == Cost(0, RULES * 241, 0)
    over = check_cost(cost)
    assert over is not None
    assert over.code == "E0601"


@pytest.mark.parametrize(("number", "over"), [(12, None), (13, "E0601")])
def test_a_policy_looks_at_every_pod_a_bounded_number_of_times(number: int, over: str | None) -> None:
    texts = [f'node.pods.any(peer.labels["a{n}"] == "b")' for n in range(number)]
    programs = [compile_soon(text).program for text in texts]
    found = check_cost(policy_cost(program for program in programs if program is not None))
    assert (found and found.code) == over


def test_two_hundred_lets_of_everything_compile_soon() -> None:
    lets = [("a0", "node.free.cpu")]
    lets += [
        (f"a{n}", f"least(a{n - 1}, node.free.cpu * {n}) + sum(node.free.cpu) by node.zone") for n in range(1, 200)
    ]
    begin = time.process_time()
    compiled, environment = compile_lets(lets, Environment())
    assert time.process_time() - begin < LONGEST * 5
    assert [item for one in compiled for item in one.value.diagnostics] == []
    program = compile_expression("a199 > 1", environment, Want.CONDITION).program
    assert program is not None
    frame = TableFrame([{"node.free.cpu": 1000, "node.zone": "a"}])
    assert at_row(program, run_program(program, frame), frame, 0) == interpret(program, frame.at(0))


@pytest.mark.parametrize("first", ["1", "1 / 0", "node.free.pods"])
def test_a_let_on_top_of_many_large_ones_takes_no_more_than_the_first(first: str) -> None:
    lets = [("a0", first)] + [
        (f"a{n}", " + ".join([f"a{n - 1}", *map(str, range(n * 500, n * 500 + 500))])) for n in range(1, 65)
    ]
    compiling, made, early = each_let(lets, Environment()), [], 0
    for number in range(len(lets)):
        if number in {2, len(lets) - 1}:
            work = calls(lambda: made.append(next(compiling)))
            early = early or work
        else:
            made.append(next(compiling))
    assert [one.value.errors for one, _ in made] == [()] * len(lets)
    assert work < 1.1 * early


def test_aggregates_of_aggregates_by_let_are_as_deep_as_in_one_text() -> None:
    lets = [("a0", "node.free.cpu")] + [(f"a{n}", f"max(a{n - 1} + node.free.cpu) by node.zone") for n in range(1, 7)]
    compiled, _ = compile_lets(lets, Environment())
    assert [[item.code for item in one.value.diagnostics] for one in compiled] == [[]] * 5 + [["E0108"], []]


@pytest.mark.parametrize(
    ("lets", "wanted"),
    [
        ([("a", "b"), ("b", "a")], [["E0207"], []]),
        ([("a", "a")], [["E0207"]]),
        ([("a", "b"), ("b", "c"), ("c", "a")], [["E0207"], ["E0207"], []]),
        ([("a", "sum(a)")], [["E0207"]]),
        ([("a", "node.pods.any(b)"), ("b", "true")], [["E0207"], []]),
        ([("peer", "1")], [["E0208"]]),
        ([("count", "1")], [["E0208"]]),
        ([("weekday", "1")], [["E0208"]]),
        ([("by", "1")], [["E0208"]]),
        ([("a\0b", "1")], [["E0208"]]),
        ([("\u0430", "1")], [["E0208"]]),
        ([("a" * 5000, "1")], [[]]),
        ([("a", ""), ("b", "a")], [["E0100"], []]),
    ],
)
def test_lets_that_go_round_or_have_no_name_get_one_error_each(
    lets: list[tuple[str, str]], wanted: list[list[str]]
) -> None:
    compiled, _ = compile_lets(lets, Environment())
    assert [[item.code for item in (*one.name_diagnostics, *one.value.diagnostics)] for one in compiled] == wanted


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        ([], ["E0100"]),
        (["else → 1", "else → 2", "else → 3"], ["E0503", "E0503"]),
        (["missing → 1", "missing → 2"], ["E0503"]),
        (["missing → -1"], ["E0502"]),
        (["missing → 1 / 0"], ["E0501", "W0703"]),
        (["missing → missing"], ["E0100"]),
        (["else → else"], ["E0100"]),
        (["→ 1"], ["E0100"]),
        (["node.ready → 1"] * 256, ["E0504"] * 255),
        (["true → 1 / 0"], ["W0703", "W0703"]),
        (["else → 1e9"], ["E0102"]),
    ],
)
def test_cases_that_make_no_sense_get_errors(lines: list[str], wanted: list[str]) -> None:
    assert codes(compile_cases(lines, Environment("score"))) == wanted


@pytest.mark.parametrize("wanted", ['"b"', "pod.name"])
def test_lists_in_each_other_take_no_longer_than_one_by_one(wanted: str) -> None:
    items = ", ".join(f'"a{number}"' for number in range(100))
    text = f"item == {wanted}"
    for _ in range(4):
        text = f"any([{items}], {text})"
    compiled = compile_soon(text)
    assert compiled.program is not None
    begin = time.process_time()
    assert interpret(compiled.program, TableFrame([{}]).at(0)) is False
    assert time.process_time() - begin < LONGEST
