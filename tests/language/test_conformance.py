from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from policysched.language import (
    UNKNOWN,
    Compiled,
    Environment,
    Program,
    Want,
    compile_cases,
    compile_expression,
    interpret,
)
from tests.language.frames import TableFrame, at_row

FOLDER = Path(__file__).parent / "cases"
PLACES: dict[str, tuple[Any, Want]] = {
    "let": ("let", Want.ANY),
    "filter": ("filter", Want.CONDITION),
    "pod": ("pod", Want.CONDITION),
    "score": ("score", Want.NUMBER),
}
KEYS = {"name", "expr", "cases", "place", "type", "in", "value", "missing", "unknown", "error", "at", "column",
        "case", "text", "inputs"}  # fmt: skip


def _load() -> list[Any]:
    return [
        pytest.param(case, id=f"{path.stem}-{case['name']}")
        for path in sorted(FOLDER.glob("*.yaml"))
        for case in yaml.safe_load(path.read_text("utf-8"))
    ]


CASES = _load()


def compile_case(case: dict[str, Any]) -> Compiled:
    if "cases" in case:
        return compile_cases(case["cases"], Environment("score"))
    phase, want = PLACES[case.get("place", "let")]
    return compile_expression(case["expr"], Environment(phase), want)


def evaluate(program: Program, values: dict[str, Any]) -> list[Any]:
    """Evaluate both ways: a row with the values between two rows without any."""
    scalars = {name: value for name, value in values.items() if not name.startswith("node.")}
    frame = TableFrame([{}, values, {}], scalars)
    by_columns = at_row(program, program.run(frame), frame, 1)
    by_node = interpret(program, frame.at(1))
    return [by_columns, "unknown" if by_node is UNKNOWN else by_node]


def test_the_tables_are_large_and_their_names_differ() -> None:
    assert len(CASES) >= 250
    assert len({case.id for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", CASES)
def test_language_conforms(case: dict[str, Any]) -> None:
    assert set(case) <= KEYS
    compiled = compile_case(case)
    if "error" in case:
        _compare_error(case, compiled)
        return
    assert compiled.program is not None, compiled.diagnostics
    assert [item.code for item in compiled.errors] == []
    _compare_program(case, compiled.program)


def _compare_error(case: dict[str, Any], compiled: Compiled) -> None:
    severe = compiled.errors or compiled.diagnostics
    assert [item.code for item in severe] == [case["error"]]
    found = severe[0]
    assert found.case == (case.get("case", 0) if "cases" in case else None)
    text = case["expr"] if "expr" in case else case["cases"][found.case]
    line = text.split("\n")[found.line - 1]
    assert line[found.column - 1 : found.end_column - 1] == case["at"]
    assert found.column == case.get("column", text.find(case["at"]) + 1 if case["at"] else found.column)


def _compare_program(case: dict[str, Any], program: Program) -> None:
    if "type" in case:
        shape = " nodes" if program.type.shape else ""
        assert f"{program.type}{'?' if program.type.optional else ''}{shape}" == case["type"]
    if "text" in case:
        assert program.text == case["text"]
    if "inputs" in case:
        assert [item.text for item in program.inputs] == case["inputs"]
    if case.get("missing"):
        assert evaluate(program, case.get("in", {})) == [None, None]
    elif case.get("unknown"):
        assert evaluate(program, case.get("in", {})) == ["unknown", "unknown"]
    elif "value" in case:
        values = evaluate(program, case.get("in", {}))
        wanted = tuple(case["value"]) if isinstance(case["value"], list) else case["value"]
        assert values == [wanted, wanted]
        assert [type(value) is bool for value in values] == [type(wanted) is bool] * 2
