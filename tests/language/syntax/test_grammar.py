from __future__ import annotations

import importlib.resources
import json
import re

import pytest
from lark import Lark
from lark.exceptions import UnexpectedInput

from policysched.language import Diagnostic, compile_expression, parse, reserved_names
from policysched.language.functions import FUNCTIONS
from policysched.language.functions.signatures import Environment
from policysched.language.ir.tree import Case, Keyword, Literal, Path
from policysched.language.syntax.grammar import STARTS, grammar_text, make_parser, make_tables
from policysched.language.syntax.parser import _TreeBuilder
from policysched.language.syntax.terminals import OPERATORS, TERMINALS, VALUES


def strict() -> Lark:
    return Lark(grammar_text(), start=list(STARTS), parser="lalr", lexer="basic", strict=True)


def test_grammar_has_no_conflict_and_no_collision() -> None:
    names = {terminal.name for terminal in strict().terminals}
    assert names - {"SPACE", "COMMENT"} == set(TERMINALS) - {"$END"}
    assert set(TERMINALS) >= OPERATORS | VALUES


@pytest.mark.parametrize("name", ["android", "orange", "notx", "inside", "byte", "elsewhere", "missing_", "true1"])
def test_words_begin_names(name: str) -> None:
    tree = parse(name)
    assert isinstance(tree, Path)
    assert tree.names == (name,)


@pytest.mark.parametrize(("text", "guard"), [("else → 1", Keyword.ELSE), ("missing -> 1", Keyword.MISSING)])
def test_case_has_a_keyword_guard(text: str, guard: Keyword) -> None:
    tree = parse(text, "case")
    assert isinstance(tree, Case)
    assert tree.guard is guard
    assert isinstance(tree.value, Literal)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("not", "a value"),
        ("abs(1", "an operator, `)` or `,`"),
        ("[1", "`]` or `,`"),
        ("node.", "a name"),
        ("(1", "an operator or `)`"),
        ("1 not", "`in`"),
    ],
)
def test_expectation_names_what_could_follow(text: str, expected: str) -> None:
    found = parse(text)
    assert isinstance(found, Diagnostic)
    assert found.message == f"unexpected end, expected {expected}"


def test_case_expects_else_and_missing() -> None:
    found = parse(")", "case")
    assert isinstance(found, Diagnostic)
    assert found.message == "unexpected `)`, expected a value, `else` or `missing`"


def test_the_error_does_not_depend_on_reductions_of_the_parser() -> None:
    found = parse("1 < 2 )")
    assert isinstance(found, Diagnostic)
    assert found.message == "unexpected `)`, expected an operator or the end"


def test_every_word_of_the_grammar_is_reserved() -> None:
    words = set(re.findall(r'^[A-Z]+: "([a-z]+)"$', grammar_text(), re.MULTILINE))
    assert words
    functions = {name for name in FUNCTIONS if "." not in name}
    assert words | functions | {"node", "pod", "peer", "cluster", "metrics"} <= reserved_names()


@pytest.mark.parametrize(
    "text", ["(" * 4096, "not " * 1000, "\0" * 50, "\u202e" * 50, "-" * 4096, "[" * 1000, '"' * 4096]
)
def test_hostile_texts_get_one_diagnostic(text: str) -> None:
    assert len(compile_expression(text, Environment()).diagnostics) == 1


@pytest.mark.parametrize(
    "level",
    [
        "least(true or true and 1 == 2 ?? 3 + 4 * {})",
        "node.labels[true or true and 1 == 2 ?? 3 + 4 * {}]",
        "node.taints.has(true or true and 1 == 2 ?? 3 + 4 * {})",
        "(true or true and 1 == 2 ?? 3 + 4 * {})",
        "not (true or -{})",
        "if({}, 1, 2)",
        "least({})",
        "({})",
        "-{}",
        "not {}",
    ],
)
def test_depth_is_bounded_whatever_nests(level: str) -> None:
    text, found = "1", []
    for _ in range(40):
        text = level.format(text)
        if len(text) < 4000:
            found = [item.code for item in compile_expression(text, Environment()).diagnostics]
    assert found == ["E0108"]


@pytest.mark.parametrize("level", ["({})", "-{}", "abs({})", "(1 + {})"])
def test_depth_of_the_limit_compiles(level: str) -> None:
    text = "1"
    for _ in range(32):
        text = level.format(text)
    assert compile_expression(text, Environment()).diagnostics == ()
    deeper = compile_expression(level.format(text), Environment()).diagnostics
    assert [item.code for item in deeper] == ["E0108"]


def test_long_chains_are_not_deep() -> None:
    assert compile_expression("+".join(["1"] * 512), Environment()).diagnostics == ()


@pytest.mark.parametrize("last", ["node.nme", "normalize(node.nme) > 1"])
def test_a_list_of_mistakes_stops_at_fifty(last: str) -> None:
    text = " and ".join(["node.nme"] * 49 + [last] * 20)
    assert len(compile_expression(text, Environment()).diagnostics) == 50


TEXTS = (
    'node.labels["a"] == "b" and not (node.free.cpu > 2 or pod.labels["x"] in ["y", "z"])',
    "min(100, 2 * node.free.memory / node.allocatable.memory) ?? 20%",
    'count(node.pods.where(peer.namespace == pod.namespace)) by node.labels["zone"]',
)


def parsed(parser: Lark, text: str) -> object:
    """Parse as it stands, tokens of unknown names included."""
    try:
        return parser.parse(text, start="expr")
    except UnexpectedInput as error:
        return (type(error), error.pos_in_stream)


def test_the_tables_that_are_shipped_are_of_the_grammar() -> None:
    """Others would be left aside, and every command would begin by working them out: `make grammar` writes them."""
    shipped = importlib.resources.files("policysched.language.syntax").joinpath("grammar.json").read_text("utf-8")
    assert json.loads(shipped)["of"] == json.loads(make_tables())["of"], "run `make grammar`"


def test_tables_parse_as_the_grammar_does() -> None:
    loaded = make_parser(_TreeBuilder())
    built = make_parser(_TreeBuilder(), tables='{"of": "another grammar"}')
    assert [parsed(loaded, text) for text in TEXTS] == [parsed(built, text) for text in TEXTS]
    assert not isinstance(parsed(loaded, TEXTS[0]), tuple)
