"""One expression in every style that YAML has for it: the style stays, and lines are broken where they are too long."""

from __future__ import annotations

import json

import pytest

from policysched.app.rewriting.formatting import format_source
from policysched.errors import UsageError
from tests.app.formatting import CANONICAL, HEAD, LONG, formatted

SCALARS = [
    # plain
    ("a==1", "a == 1"),
    ("a&&b||!c   # why", "a and b or not c   # why"),
    ("a  &&\n    b # why", "a and b # why"),
    ('(("x")) in ["y"]', """'"x" in ["y"]'"""),
    ("(-5)", '"-5"'),
    ("(5)", '"5"'),
    ("(true)", '"true"'),
    ("(!a)", "not a"),
    ("&x a==1", "&x a == 1"),
    ("!!str a==1", "!!str a == 1"),
    ("&x !!str (5)", '&x !!str "5"'),
    # quoted
    ("'a==\"it''s\"'", "'a == \"it''s\"'"),
    ("'true ' # why", "'true' # why"),
    ('"a==\\"x\\""', '"a == \\"x\\""'),
    ('"a==\\"x: #\\u00e9\\""', '"a == \\"x: #\\u00e9\\""'),
    ('"a==\\"x: #é\\""', '"a == \\"x: #é\\""'),
    ('"a==\\"\\x07\\u2028\\U0001F600\\""', '"a == \\"\\u0007\\u2028😀\\""'),
    ('"a==\\"\\t\\""', '"a == \\"\\t\\""'),
    ('&x "a==1"', '&x "a == 1"'),
    ('"a&&\\\n    b"', '"a and b"'),
    ("'a&&\n    b'", "'a and b'"),
    # blocks
    ("|\n    a==1", "|\n    a == 1"),
    ("|-  # why\n    a&&\n      b\n\n    # no comment", None),
    ("|-  # why\n    a&&\n      b\n\n  # comment", "|-  # why\n    a and b\n\n  # comment"),
    ("|+\n\n    a&&b\n\n\n", "|+\n\n    a and b\n\n\n"),
    (">\n    a&&\n    b\n", ">\n    a and b\n"),
    (">2-\n      a&&b\n", ">2-\n      a and b\n"),
    ("&x |\n    a&&b\n", "&x |\n    a and b\n"),
    ("|\n     a&&b   \n", "|\n     a and b\n"),
]


@pytest.mark.parametrize(("old", "new"), SCALARS)
@pytest.mark.parametrize("rest", ["", "\n", "\n  weight: 1\n"])
def test_scalars_keep_their_style_and_all_around_them(old: str, new: str | None, rest: str) -> None:
    text = f"  appliesTo: {old}{rest}"
    assert formatted(text) == f"  appliesTo: {new or old}{rest}"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a==1", "a == 1"),
        ("(a<1)??true", None),
        ("'(a<1)??true'", "'(a < 1) ?? true'"),
        ("!!str f(a)==1", "!!str f(a) == 1"),
        ("(5)", '"5"'),
        ('"f([1,2])"', '"f([1, 2])"'),
        ('"a in [1,2]"', '"a in [1, 2]"'),
    ],
)
def test_scalars_in_braces_are_quoted_where_they_have_to_be(old: str, new: str | None) -> None:
    text = f"  let: [{{value: {old}, name: a}}]\n"
    if "?" in old and not old.startswith("'"):
        with pytest.raises(UsageError, match=r":5:17: kubectl cannot read an unquoted text with \? inside"):
            formatted(text)
    else:
        assert formatted(text) == f"  let: [{{value: {new or old}, name: a}}]\n"


def test_a_text_of_one_line_stays_one_line_however_long() -> None:
    assert formatted(f"  appliesTo: {LONG}\n") == f"  appliesTo: {' and '.join(CANONICAL)}\n"


@pytest.mark.parametrize(
    ("head", "indent", "tail"), [("|\n    ", 4, ""), (">-\n    ", 4, ""), ("'", 6, "'"), ("", 6, "")]
)
def test_a_long_text_of_several_lines_is_broken_before_its_words(head: str, indent: int, tail: str) -> None:
    joint = "\n" + " " * indent
    old, new = LONG.replace("&& ", f"&&{joint}"), f"{joint}and ".join(CANONICAL)
    assert formatted(f"  appliesTo: {head}{old}{tail}\n  weight: 1\n") == (
        f"  appliesTo: {head}{new}{tail}\n  weight: 1\n"
    )


def test_a_long_text_in_double_quotes_is_broken_too() -> None:
    def quoted(text: str) -> str:
        return json.dumps(text).replace("~", "\n      ")

    old = f"  appliesTo: {quoted(LONG.replace(' && ', ' &&~'))}\n"
    assert formatted(old) == f"  appliesTo: {quoted('~and '.join(CANONICAL))}\n"


def test_line_breaks_of_the_author_stay_where_nothing_else_is_wrong() -> None:
    text = "  appliesTo: |\n    a\n      and\n    b == 1\n"
    assert formatted(text) == text


def test_line_ends_inside_of_an_escaped_text_stay_line_ends() -> None:
    spec = {"appliesTo": LONG.replace("&&", "&&\n") + "\n", "let": [{"name": "a", "value": "a and\n  b\n"}]}
    policy = {"apiVersion": "policysched.io/v1beta1", "kind": "SchedulingPolicy", "spec": spec}
    made = json.loads(format_source(json.dumps(policy), "p.json").text)
    assert made["spec"]["appliesTo"] == "\nand ".join(CANONICAL)
    assert made["spec"]["let"] == spec["let"]


@pytest.mark.parametrize(
    "text",
    [
        "a==1  # a comment of the language has no place in the canonical form",
        "a or\nb",
    ],
)
def test_texts_that_may_stay_are_not_touched(text: str) -> None:
    source = f"{HEAD}  appliesTo: {json.dumps(text)}\n"
    assert format_source(source, "p.yaml").count == 0


def test_a_text_that_would_be_too_long_is_not_touched() -> None:
    text = "&&".join(["aaaa"] * 500)
    assert len(text) < 4096 < len(text.replace("&&", " and "))
    assert formatted(f"  appliesTo: '{text}'\n") == f"  appliesTo: '{text}'\n"
