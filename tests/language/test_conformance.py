"""The language as tables: an expression, what it is evaluated on, and its value or its error.

`in` is one node (and the pod) between two empty ones, with `pods` placed on it. `nodes` are all nodes there are, their
pods under `pods` with the node's place as `row`; then `values` has one value a node, or `value` the one of the first.
Missing values are null, unknown conditions are "unknown".
"""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from policysched.language import (
    FIELDS,
    UNKNOWN,
    Compiled,
    Environment,
    Program,
    Unit,
    Want,
    code_table,
    compile_expression,
    interpret,
)
from policysched.language.checking.compile import compile_cases
from policysched.language.evaluation.columns import run_program
from policysched.language.functions import FUNCTIONS
from policysched.language.ir.types import FACTORS, SECONDS
from policysched.language.syntax.terminals import TERMINALS
from tests.language.frames import TableFrame, at_row

FOLDER = Path(__file__).parent / "cases"
PLACES: dict[str, tuple[Any, Want]] = {
    "let": ("let", Want.ANY),
    "filter": ("filter", Want.CONDITION),
    "pod": ("pod", Want.CONDITION),
    "preemption": ("preemption", Want.CONDITION),
    "score": ("score", Want.NUMBER),
    "group": ("group", Want.CONDITION),
    "placement": ("placement", Want.CONDITION),
    "placement score": ("placement", Want.NUMBER),
}
METRICS = {"load": Unit.NUMBER, "ram": Unit.BYTES, "cores": Unit.CPU, "wait": Unit.DURATION}
INPUTS = {"in", "nodes", "pods", "now"}
KEYS = {"name", "expr", "cases", "place", "type", "value", "values", "missing", "unknown", "error", "at", "column",
        "case", "text", "inputs", "warning", *INPUTS}  # fmt: skip
# These are about a whole policy, or a text too long for a table.
ELSEWHERE = {
    *("E0107", "E0207", "E0208", "E0313", "E0601", "W0705", "W0706", "W0709", "W0710", "W0711", "W0712", "W0713"),
    "W0715",
}


def _load() -> list[Any]:
    return [
        pytest.param(case, id=f"{path.stem}-{case['name']}")
        for path in sorted(FOLDER.glob("*.yaml"))
        for case in yaml.load(path.read_text("utf-8"), yaml.CSafeLoader)  # ten times as fast
    ]


CASES = _load()


def compile_case(case: dict[str, Any]) -> Compiled:
    phase, want = PLACES[case.get("place", "score" if "cases" in case else "let")]
    environment = Environment(phase, metrics=METRICS)
    if "cases" in case:
        return compile_cases(case["cases"], environment)
    return compile_expression(case["expr"], environment, want)


def frame_of(case: dict[str, Any]) -> tuple[TableFrame, list[int]]:
    """Return the nodes of a case and those whose values it tells."""
    values = case.get("in", {})
    scalars = {name: value for name, value in values.items() if not name.startswith(("node.", "metrics."))}
    nodes, own = (case["nodes"], 0) if "nodes" in case else ([{}, values, {}], 1)
    peers = [{"row": own, **pod} for pod in case.get("pods", ())]
    now = datetime.fromisoformat(case.get("now", "1970-01-01T00:00:00+00:00")).timestamp()
    rows = list(range(len(nodes))) if "values" in case else [own]
    return TableFrame(nodes, scalars, peers=peers, now=now), rows


def evaluate(program: Program, case: dict[str, Any]) -> list[list[Any]]:
    """Evaluate in three ways: all rows at once, each row alone, each row in plain Python."""
    frame, rows = frame_of(case)
    together = run_program(program, frame)
    # What normalises is about the rows of its frame.
    parts = [] if program.root.normalizes else [frame.pick([row]) for row in rows]
    plain = [interpret(program, frame.at(row)) for row in rows]
    alone = [at_row(program, run_program(program, part), part, 0) for part in parts]
    return [
        [at_row(program, together, frame, row) for row in rows],
        ["unknown" if value is UNKNOWN else value for value in plain],
        *([alone] if parts else []),
    ]


def test_the_tables_are_large_and_their_names_differ() -> None:
    assert len(CASES) >= 1800
    assert len({case.id for case in CASES}) == len(CASES)


def test_the_tables_have_every_code() -> None:
    shown = {case.values[0].get(key) for case in CASES for key in ("error", "warning")} - {None}
    assert shown == set(code_table()) - ELSEWHERE


def _texts(*, wrong: bool) -> list[str]:
    cases = [case.values[0] for case in CASES]
    return [
        text
        for case in cases
        if ("error" in case) == wrong
        for text in (case.get("expr"), *case.get("cases", ()))
        if text
    ]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_tables_have_every_function_well_and_badly_used(name: str) -> None:
    for wrong in (False, True):
        assert any(f"{name}(" in text for text in _texts(wrong=wrong))


def test_the_tables_have_every_name() -> None:
    texts = _texts(wrong=False)
    assert [name for name in map(".".join, FIELDS) if not any(name in text for text in texts)] == []


def test_the_tables_have_every_unit_and_sign() -> None:
    texts = " ".join(_texts(wrong=False))
    written = set(re.findall(r"\b[0-9.]+([A-Za-z]+|%)", texts))
    assert written >= {*FACTORS, *SECONDS} - {""}
    signs = {name.strip("`") for terminal, name in TERMINALS.items() if terminal not in {"$END", "DOT"} and "`" in name}
    assert {sign for sign in signs if sign not in texts} == set()


@pytest.mark.parametrize("case", CASES)
def test_language_conforms(case: dict[str, Any]) -> None:
    assert set(case) <= KEYS
    compiled = compile_case(case)
    if "error" in case or "warning" in case:
        _compare_diagnostic(case, compiled)
    if "error" in case:
        return
    assert compiled.program is not None, compiled.diagnostics
    assert [item.code for item in compiled.errors] == []
    _compare_program(case, compiled.program)


def _compare_diagnostic(case: dict[str, Any], compiled: Compiled) -> None:
    severe = compiled.errors or compiled.diagnostics
    assert [item.code for item in severe] == [case.get("error") or case["warning"]]
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
    wanted = _wanted(case)
    for values in evaluate(program, case) if wanted is not None else ():
        assert values == wanted
        assert [type(value) is bool for value in values] == [type(value) is bool for value in wanted or ()]


def _wanted(case: dict[str, Any]) -> list[Any] | None:
    if case.get("missing") or case.get("unknown"):
        return [None if case.get("missing") else "unknown"]
    if "values" in case:
        return list(case["values"])
    if "value" not in case:
        return None
    return [tuple(case["value"]) if isinstance(case["value"], list) else case["value"]]
