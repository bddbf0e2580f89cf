"""Grammar: Lark's parser for `grammar.lark` from tables shipped beside it.

Working the tables out takes a quarter of a second, for which no command should wait. They are JSON and no pickle, so
that reading them runs nothing, and they count only for the grammar and the version of Lark that they were made of:
for any other the tables are worked out anew.
"""

from __future__ import annotations

import hashlib
import importlib.resources
import json
from typing import Any, Final

import lark
from lark import Lark, Transformer
from lark.grammar import Rule
from lark.lexer import TerminalDef

STARTS: Final = ("expr", "case")
TABLES: Final = "grammar.json"


def grammar_text() -> str:
    """The grammar as it is shipped with the package."""
    return _shipped("grammar.lark")


def make_parser(transformer: Transformer[Any, Any], tables: str | None = None) -> Lark:
    """Make the parser.

    Args:
        transformer: Gets what the parser reduces.
        tables: What `make_tables` made, the shipped ones if absent.
    """
    grammar = grammar_text()
    found = json.loads(_shipped(TABLES) if tables is None else tables, object_pairs_hook=_with_numbers)
    if found["of"] != _origin(grammar):
        return _build(grammar, transformer)
    parser: Lark = Lark._load_from_dict(found["data"], found["memo"], transformer=transformer)  # type: ignore[no-untyped-call]  # as Lark's own generated parsers
    return parser


def make_tables() -> str:
    """Work out the tables, as JSON."""
    grammar = grammar_text()
    data, memo = _build(grammar, None).memo_serialize([TerminalDef, Rule])
    return json.dumps({"of": _origin(grammar), "data": data, "memo": memo}, separators=(",", ":")) + "\n"


def _build(grammar: str, transformer: Transformer[Any, Any] | None) -> Lark:
    return Lark(
        grammar, start=list(STARTS), parser="lalr", lexer="basic", keep_all_tokens=True, transformer=transformer
    )


def _origin(grammar: str) -> str:
    return f"Lark {lark.__version__}, grammar {hashlib.sha256(grammar.encode()).hexdigest()}"


def _with_numbers(pairs: list[tuple[str, Any]]) -> dict[str | int, Any]:
    """Make keys numbers again that JSON writes as texts."""
    return {int(key) if key.isdigit() else key: value for key, value in pairs}


def _shipped(name: str) -> str:
    return importlib.resources.files("policysched.language.syntax").joinpath(name).read_text("utf-8")
