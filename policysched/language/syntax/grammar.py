"""The Lark parser of `grammar.lark`, built from tables that the package contains.

Computing the tables takes a quarter of a second, too long for a command. They are JSON, not pickle, so loading them
executes nothing. They are valid only for their grammar and version of Lark; for others the tables are recomputed.
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
    """Return the text of the grammar file, `grammar.lark`."""
    return _shipped("grammar.lark")


def make_parser(transformer: Transformer[Any, Any], tables: str | None = None) -> Lark:
    """Return the Lark parser of the language, from precomputed tables if they are given.

    Args:
        transformer: Receives what the parser reduces.
        tables: Output of `make_tables`; default: the tables of the package.
    """
    grammar = grammar_text()
    found = json.loads(_shipped(TABLES) if tables is None else tables, object_pairs_hook=_with_numbers)
    if found["of"] != _origin(grammar):
        return _build(grammar, transformer)
    parser: Lark = Lark._load_from_dict(found["data"], found["memo"], transformer=transformer)  # type: ignore[no-untyped-call]  # as Lark's own generated parsers
    return parser


def make_tables() -> str:
    """Return the tables of the Lark parser as JSON."""
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
    """Return pairs with numeric keys, which JSON stores as texts, as numbers."""
    return {int(key) if key.isdigit() else key: value for key, value in pairs}


def _shipped(name: str) -> str:
    return importlib.resources.files("policysched.language.syntax").joinpath(name).read_text("utf-8")
