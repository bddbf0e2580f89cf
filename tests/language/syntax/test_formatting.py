from __future__ import annotations

import pytest

from policysched.language import Diagnostic, format_text


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a&&b||!c", "a and b or not c"),
        ("(a or b) and c", "(a or b) and c"),
        ("a and (b and c)", "a and (b and c)"),
        ("not(a==b)", "not (a == b)"),
        ("not (a and b)", "not (a and b)"),
        ("(not a) == b", "(not a) == b"),
        ("(a==b)==c", "(a == b) == c"),
        ("a-(b-c)", "a - (b - c)"),
        ("(a-b)-c", "(a - b) - c"),
        ("-(-a)", "--a"),
        ("-(a*b)", "-(a * b)"),
        ("(a??b)+c", "(a ?? b) + c"),
        ("a??(b??c)", "a ?? (b ?? c)"),
        ("(x < 1) ?? true", "(x < 1) ?? true"),
        ("x  not   in [ 1,2 , ]", "x not in [1, 2]"),
        ("f( a ,b )by node . zone", "f(a, b) by node.zone"),
        ('node . labels [ "a" ]', 'node.labels["a"]'),
        ("0010.50", "10.50"),
        ("00", "0"),
        ("0.5%", "0.5%"),
        ('"a\\"\\\\b"', '"a\\"\\\\b"'),
        ("1 +\n2", "1 + 2"),
        ("a  # why", "a  # why"),
        ('"#"  ', '"#"'),
        ('"\\"#"  ', '"\\"#"'),
    ],
)
def test_format_text_is_canonical(text: str, wanted: str) -> None:
    assert format_text(text) == wanted
    assert format_text(wanted) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"), [("a==1->2", "a == 1 → 2"), ("else→2", "else → 2"), ("missing ->0", "missing → 0")]
)
def test_format_text_writes_arrows(text: str, wanted: str) -> None:
    assert format_text(text, "case") == wanted


def test_format_text_of_a_mistake_is_its_diagnostic() -> None:
    found = format_text("1 +")
    assert isinstance(found, Diagnostic)
    assert found.code == "E0100"
