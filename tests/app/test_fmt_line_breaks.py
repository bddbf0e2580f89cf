from __future__ import annotations

import pytest

from policysched.app.rewriting.scalars import broken, joined
from policysched.language import format_text

LONG = 'aaaa and bbbb or cccc and f(x and y, "p or q \\" or r") or [1] in z'


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("a and b", 7, ["a and b"]),
        ("a and b", 6, ["a", "and b"]),
        ("a or b and c", 8, ["a", "or b", "and c"]),
        ("a or b and c", 10, ["a", "or b and c"]),
        ("and_more", 3, ["and_more"]),
        ("f(a and b)", 3, ["f(a and b)"]),
        ('x["a or b"]', 3, ['x["a or b"]']),
        ('"a \\" or b"', 3, ['"a \\" or b"']),
        ("a and b → 5", 6, ["a", "and b → 5"]),
        (LONG, 50, ["aaaa and bbbb", 'or cccc and f(x and y, "p or q \\" or r")', "or [1] in z"]),
    ],
)
def test_lines_are_broken_before_and_and_or_outside_of_brackets(text: str, width: int, lines: list[str]) -> None:
    assert broken(text, width) == lines


def test_a_part_that_is_broken_itself_is_indented() -> None:
    assert broken("aaaa and bbbb or cccc and dddd", 8, "  ") == ["aaaa", "  and bbbb", "or cccc", "  and dddd"]


@pytest.mark.parametrize("width", range(1, 60, 7))
def test_breaking_changes_nothing_but_white_space(width: int) -> None:
    lines = "\n".join(broken(LONG, width, "  "))
    assert joined(lines) == LONG
    assert format_text(lines) == format_text(LONG)


@pytest.mark.parametrize("text", ["a\nb", "a \n\n  b\n", "\ta\r\n b"])
def test_joining_takes_the_space_around_line_ends(text: str) -> None:
    assert joined(text) == "a b"
