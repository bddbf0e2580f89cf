"""How long strings may get: bounds when a text is compiled, and the same limits in both evaluators when it runs."""

from __future__ import annotations

import time
from typing import Any

import pytest

from policysched.language import Environment, interpret
from policysched.language.evaluation.columns import run_program
from policysched.language.evaluation.scalar import UNKNOWN
from policysched.language.ir.graph import ANY_LENGTH, MAX_PARTS, MAX_TEXT, Length
from tests.language.frames import TableFrame, at_row
from tests.language.programs import compile_lets, program


def lets(first: str, number: int, step: str) -> tuple[list[list[str]], Any]:
    """Compile lets that each put the one above it twice into another; return the codes of all and the last value."""
    texts = [("a0", first), *((f"a{n}", step.format(f"a{n - 1}")) for n in range(1, number))]
    compiled, environment = compile_lets(texts, Environment())
    found = [[item.code for item in one.value.diagnostics] for one in compiled]
    return found, environment.lets[f"a{number - 1}"]


@pytest.mark.parametrize(
    ("first", "wrong"), [('"x"', 13), ('"xy"', 12), ("pod.name", 13), ('concat("x", node.zone)', 13)]
)
def test_strings_that_double_again_and_again_end_at_compile_time(first: str, wrong: int) -> None:
    begin = time.process_time()
    found, _ = lets(first, 40, "concat({0}, {0})")
    assert time.process_time() - begin < 1.0
    assert found == [[]] * wrong + [["E0313"]] + [[]] * (39 - wrong)


@pytest.mark.parametrize("first", ['pod.labels["x"]', 'pod.annotations["x"]', "node.zone", "pod.owner_name"])
@pytest.mark.parametrize("step", ["concat({0}, {0})", 'concat({0}, "", {0}) ?? "y"'])
def test_strings_that_may_double_are_missing_where_they_get_too_long(first: str, step: str) -> None:
    found, root = lets(first, 40, step)
    assert found == [[]] * 40
    assert root.type.optional or "??" in step
    assert root.length.most <= MAX_TEXT
    texts = [(f"a{n}", first if not n else step.format(f"a{n - 1}")) for n in range(40)]
    _, environment = compile_lets(texts, Environment())
    compiled = program_of("has(a39)", environment)
    frame = TableFrame([{first: "xy"}, {first: ""}], {first: "xy"})
    begin = time.process_time()
    values = run_program(compiled, frame)
    for row in (0, 1):
        assert at_row(compiled, values, frame, row) == interpret(compiled, frame.at(row))
    assert time.process_time() - begin < 1.0


def program_of(text: str, environment: Environment) -> Any:
    from policysched.language import compile_expression  # noqa: PLC0415

    found = compile_expression(text, environment)
    assert found.program is not None, found.diagnostics
    return found.program


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('"abc"', Length(3, 3)),
        ("pod.name", Length(1, 253)),
        ('pod.labels["a"]', Length(0, 63)),
        ("node.zone", Length(0, 63)),
        ('node.annotations["a"]', Length(0, ANY_LENGTH)),
        ('concat(pod.name, "/", pod.labels["a"])', Length(2, 317)),
        ('concat(pod.annotations["a"], "x")', Length(1, MAX_TEXT)),
        ('if(node.ready, "ab", pod.name)', Length(1, 253)),
        ('pod.annotations["a"] ?? "ab"', Length(0, ANY_LENGTH)),
        ('only(node.ready, "ab")', Length(2, 2)),
        ("weekday()", Length(3, 3)),
        ("pod.labels[pod.name]", Length(0, 63)),
        ("node.free.cpu", Length()),
        ("version(pod.name)", Length()),
    ],
)
def test_the_length_of_a_string_has_bounds(text: str, wanted: Length) -> None:
    assert program(text).root.length == wanted


@pytest.mark.parametrize(
    ("text", "optional"),
    [
        (f"concat({', '.join(['pod.name'] * 16)})", False),
        (f"concat({', '.join(['pod.name'] * 17)})", True),
        ('concat(pod.annotations["a"] ?? "", "b")', True),
        ('glob(pod.annotations["a"] ?? "", "b*")', True),
        ('glob(pod.name, "b*")', False),
        ('contains(pod.annotations["a"] ?? "", "b")', False),
        ('split(pod.name, ",")', False),
        ('split(pod.annotations["a"] ?? "", ",")', True),
    ],
)
def test_what_may_be_too_long_may_be_missing(text: str, optional: bool) -> None:
    assert program(text).type.optional == optional


LONG = 'pod.annotations["x"]'
LONG_OF_NODES = 'node.annotations["x"]'


@pytest.mark.parametrize("length", [MAX_TEXT - 1, MAX_TEXT, MAX_TEXT + 1, 3 * MAX_TEXT])
@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ("concat({0})", 0),
        ('concat({0}, "b")', 1),
        ('concat("b", {0}, node.name)', 3),
        ("concat({0}, {0})", MAX_TEXT),
        ('glob({0}, "1*")', 0),
        ('glob({0} ?? "", "1*")', 0),
        ("glob(node.name, {1})", 0),
        ("glob(pod.name, {1})", 0),
        ("number({0})", 0),
        ("version({0}) == version({0})", 0),
        ("version({0}) < version({0})", 0),
    ],
)
def test_both_evaluators_take_strings_of_the_same_length(text: str, taken: int, length: int) -> None:
    for name in (LONG, LONG_OF_NODES):
        written = text.format(name, LONG)
        compiled = program(written)
        frame = TableFrame([{LONG_OF_NODES: "1" * length, "node.name": "ab"}], {LONG: "1" * length, "pod.name": "ab"})
        found = at_row(compiled, run_program(compiled, frame), frame, 0)
        expected = interpret(compiled, frame.at(0))
        assert found == ("unknown" if expected is UNKNOWN else expected)
        too_long = length + taken > MAX_TEXT
        if "version" not in text and "number" not in text:
            assert (found in {None, "unknown"}) == too_long


@pytest.mark.parametrize("parts", [1, MAX_PARTS, MAX_PARTS + 1, 100_000])
def test_a_string_is_split_into_a_bounded_number_of_parts(parts: int) -> None:
    for text in ('"a" in split({0}, ",")', '"a" not in split({0}, ",")', 'node.name in split({0}, ",")'):
        compiled = program(text.format(LONG))
        frame = TableFrame([{"node.name": "a"}], {LONG: ",".join(["a"] * parts)})
        found = at_row(compiled, run_program(compiled, frame), frame, 0)
        assert found == interpret(compiled, frame.at(0)) == ((parts <= MAX_PARTS) != ("not in" in text))


@pytest.mark.parametrize("size", [1, 63, MAX_TEXT])
@pytest.mark.parametrize("text", ["a{0}", "*a{0}", "*{0}a*", "*a{0}b", "a{0}*?*a", "*{0}", "*?a?a{0}*b?{0}"])
def test_patterns_mean_the_same_to_both_evaluators(text: str, size: int) -> None:
    for filling in ("?", "a", "*", "?a", "*?"):
        pattern = text.format(filling * (size // len(filling) // 2))[:MAX_TEXT]
        compiled = program(f"glob({LONG}, pod.name)")
        for string in ("a" * size, "ab" * (size // 2), "a" * (size - 1) + "b"):
            frame = TableFrame([], {LONG: string, "pod.name": pattern})
            begin = time.process_time()
            found = run_program(compiled, frame).true  # type: ignore[union-attr]
            assert found == interpret(compiled, TableFrame([{}], frame.scalars).at(0))
            assert time.process_time() - begin < 0.2
