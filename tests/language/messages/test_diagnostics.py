from __future__ import annotations

import dataclasses

import pytest

from policysched.language import Diagnostic, Environment, Span, Want, compile_expression, diagnose, render
from policysched.language.messages.diagnostics import WIDEST, locate


@pytest.mark.parametrize(
    ("text", "span", "place"),
    [
        ("abc", (1, 2), (1, 2, 3)),
        ("abc", (3, 3), (1, 4, 4)),
        ("", (0, 0), (1, 1, 1)),
        ("a\nbc", (2, 4), (2, 1, 3)),
        ("ab\ncd", (1, 5), (1, 2, 3)),
        ("ab\n", (3, 3), (2, 1, 1)),
        ("ab", (5, 9), (1, 3, 3)),
        ("𝄞ab", (1, 2), (1, 2, 3)),
    ],
)
def test_locate_counts_code_points_from_one(text: str, span: tuple[int, int], place: tuple[int, int, int]) -> None:
    assert locate(text, Span(*span)) == place


def test_render_is_the_form_of_the_documentation() -> None:
    text = 'node.labels["cores"] > 10'
    (found,) = compile_expression(text, Environment(), Want.CONDITION).diagnostics
    assert render(found, text, "gpu-packing spec.filters[0].require") == (
        "error[E0301]: cannot compare string with number\n"
        "  --> gpu-packing spec.filters[0].require:1:1\n"
        "   |\n"
        ' 1 | node.labels["cores"] > 10\n'
        "   | ^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "   = help: labels are strings; convert them with number(...)"
    )


@pytest.mark.parametrize(
    ("text", "shown", "carets"),
    [
        ('"漢" x', ' 1 | "漢" x', "   |      ^"),
        ("\t x", " 1 |   x", "   |   ^"),
        ("\u202e x", " 1 | \\u202e x", "   |        ^"),
        ("e\u0301 x", " 1 | e\u0301 x", "   |   ^"),
        ("x\r", " 1 | x", "   | ^"),
    ],
)
def test_carets_stand_under_their_text(text: str, shown: str, carets: str) -> None:
    place = text.index("x") + 1
    diagnostic = Diagnostic("error", "E0100", "m", 1, place, place + 1)
    lines = render(diagnostic, text, "t").split("\n")
    assert lines[3:] == [shown, carets]


def test_render_of_a_later_line_widens_the_gutter() -> None:
    lines = render(Diagnostic("warning", "W0703", "m", 10, 1, 1), "\n" * 9 + "ab", "t").split("\n")
    assert lines == ["warning[W0703]: m", "   --> t:10:1", "    |", " 10 | ab", "    | ^"]


def test_field_is_filled_in_by_the_caller() -> None:
    found = diagnose("E0304", "a", Span(0, 1))
    assert dataclasses.replace(found, field="spec.x").field == "spec.x"
    assert found.field == ""
    assert found.help == "convert the strings with number(...) or version(...)"


def test_a_long_line_is_cut_to_a_window_around_the_mark() -> None:
    line = "a" * 3000 + "MARK" + "b" * 900
    diagnostic = diagnose("E0205", line, Span(3000, 3004), name="x", suggestion="")
    shown = render(diagnostic, line, "p.yaml").splitlines()
    assert shown[1].endswith("p.yaml:1:3001")
    assert all(len(one) <= WIDEST + 10 for one in shown)
    assert shown[3].startswith(" 1 | …aaa")
    assert shown[3].endswith("bbb…")
    assert shown[3].index("MARK") == shown[4].index("^^^^")


def test_a_mark_that_is_longer_than_the_window_ends_with_it() -> None:
    line = "x" * 4000
    diagnostic = diagnose("E0205", line, Span(0, 4000), name="x", suggestion="")
    shown = render(diagnostic, line, "p.yaml").splitlines()
    assert shown[4].count("^") == WIDEST
