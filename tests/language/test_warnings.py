from __future__ import annotations

from typing import Any

import pytest

from policysched.language import Compiled, Environment, Want, compile_cases, compile_expression


def warnings_of(compiled: Compiled) -> list[str]:
    assert compiled.program is not None
    return [item.code for item in compiled.diagnostics]


@pytest.mark.parametrize(
    ("text", "phase", "want", "codes"),
    [
        ('number(node.labels["a"]) > 1', "filter", Want.CONDITION, ["W0701"]),
        ('(number(node.labels["a"]) > 1) ?? false', "filter", Want.CONDITION, []),
        ("node.free.cpu / node.allocatable.cpu > 50%", "filter", Want.CONDITION, []),
        ('node.labels["a"] == "x"', "filter", Want.CONDITION, []),
        ('number(pod.labels["a"]) > 1', "pod", Want.CONDITION, ["W0701"]),
        ('number(node.labels["a"])', "score", Want.NUMBER, ["W0701"]),
        ('number(node.labels["a"]) ?? 0', "score", Want.NUMBER, []),
        ('number(node.labels["a"])', "let", Want.ANY, []),
        ("true", "filter", Want.CONDITION, ["W0703"]),
        ("1 / 0 > 1", "filter", Want.CONDITION, ["W0703"]),
        ("node.ready and node.free.cpu / 0 > 1", "filter", Want.CONDITION, ["W0703"]),
        ("1 / (node.free.pods - node.free.pods) > 1", "filter", Want.CONDITION, []),
        ('number("abc") > 1', "filter", Want.CONDITION, ["W0703"]),
        ("100 / -0", "score", Want.NUMBER, ["W0703"]),
        ("cluster.nodes / (2 - 2)", "let", Want.ANY, ["W0703"]),
        ("only(1 > 2, 3) > 1", "pod", Want.CONDITION, ["W0703"]),
        ('clock("22:00", "06:00")', "pod", Want.CONDITION, []),
        ("80%", "score", Want.NUMBER, ["W0704"]),
        ("if(node.ready, 80%, 20)", "score", Want.NUMBER, ["W0704"]),
        ("clamp(node.free.pods, 0%, 100%)", "score", Want.NUMBER, ["W0704"]),
        ("only(node.ready, 3) ?? 80%", "score", Want.NUMBER, ["W0704"]),
        ("scale(80%, 0%, 100%)", "score", Want.NUMBER, []),
        ("50", "score", Want.NUMBER, []),
    ],
)
def test_warnings_are_these(text: str, phase: Any, want: Want, codes: list[str]) -> None:
    assert warnings_of(compile_expression(text, Environment(phase), want)) == codes


@pytest.mark.parametrize(
    ("lines", "codes"),
    [
        (['number(node.labels["a"]) > 1 → 5', "else → 1"], ["W0701"]),
        (['number(node.labels["a"]) > 1 → 5', "else → 1", "missing → 2"], []),
        (['node.ready → number(node.labels["a"])'], ["W0701"]),
        (["node.ready → 5"], []),
        (["node.ready → 5", "else → 1", "missing → 2"], ["W0702"]),
        (["node.ready → 5", "missing → 2"], []),
        (["node.ready → 80%", "else → 2"], ["W0704"]),
        (["node.ready → 80", "true → 2"], ["W0703"]),
    ],
)
def test_warnings_of_cases_are_these(lines: list[str], codes: list[str]) -> None:
    assert warnings_of(compile_cases(lines, Environment("score"))) == codes


def test_missing_arm_stands_beside_the_program() -> None:
    compiled = compile_cases(["node.ready → 5", "missing → 2 + 1"], Environment("score"))
    assert compiled.program is not None
    assert compiled.program.missing_arm == 3.0
    assert compiled.program.text == "node.ready → 5\nmissing → 2 + 1"


def test_normalised_scores_may_have_any_constant() -> None:
    environment = Environment("score", normalized=True)
    assert compile_expression("500", environment, Want.NUMBER).diagnostics == ()
    assert compile_cases(["node.ready → 500", "else → 2"], environment).diagnostics == ()
    assert [item.code for item in compile_cases(["node.ready → 500", "missing → 500"], environment).errors] == ["E0502"]


def test_errors_of_several_cases_are_collected_in_order() -> None:
    found = compile_cases(["node.nme → 1", "= → 2", "node.ready → node.zone"], Environment("score")).diagnostics
    assert [(item.case, item.code) for item in found] == [(0, "E0202"), (1, "E0101"), (2, "E0501")]
