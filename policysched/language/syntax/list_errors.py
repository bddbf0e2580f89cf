"""Suggestions for lists with wrong syntax: without brackets, without commas, with names among the items."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from lark import Token

from policysched.language.messages.foreign_syntax import LISTS
from policysched.language.messages.suggestions import shown
from policysched.language.syntax.terminals import VALUES

OPENS_VALUE: Final = VALUES - {"MINUS", "LSQB", "NOT"}
CONSTANTS: Final = frozenset({"NUMBER", "PERCENT", "QUANTITY", "DURATION", "STRING", "TRUE", "FALSE"})
MOST_ITEMS: Final = 4
"""Maximum number of list items that a help text repeats."""


def in_list(tokens: Sequence[Token], index: int) -> str:
    """Return the help text on how to write a list if a list was probably meant; else empty."""
    kind, before = tokens[index].type, [one.type for one in tokens[:index]]
    if kind == "COMMA" and before[-2:-1] == ["IN"] and tokens[index - 1].type in VALUES:
        return f"write `in [{_items(tokens[index - 1 :])}]`"
    opened = _bracket_of_in(tokens[:index]) if kind == "COMMA" else 0
    if opened:
        items = _items(tokens[opened + 1 :], CONSTANTS)
        return f"write `in [{items}]`" if items else LISTS
    if before[-2:] == ["IN", "LSQB"] and kind == "RSQB":
        return "write at least one item"
    opened = max((place for place, one in enumerate(before) if one == "LSQB"), default=0)
    inside = before[opened - 1 : opened] == ["IN"] and "RSQB" not in before[opened:]
    if inside and kind in OPENS_VALUE - {"NAME"} and before[-1] in OPENS_VALUE:
        return "write a comma between two items"
    return f'list items must be constants; for a string write `"{tokens[index]}"`' if inside and kind == "NAME" else ""


def _items(tokens: Sequence[Token], wanted: Collection[str] = ()) -> str:
    """Return the values at the beginning of a sequence of tokens, separated by commas; `...` replaces further values.

    Args:
        tokens: Tokens that begin with the values.
        wanted: Required token types; the result is empty if a value has another type.
    """
    items: list[str] = []
    for place in range(0, len(tokens), 2):
        if wanted and tokens[place].type not in wanted:
            return ""
        if tokens[place].type not in OPENS_VALUE:
            break
        items.append(shown(tokens[place]))
        if [one.type for one in tokens[place + 1 : place + 2]] != ["COMMA"]:
            break
    return ", ".join(items if len(items) <= MOST_ITEMS else [*items[:MOST_ITEMS], "…"])


def _bracket_of_in(tokens: Sequence[Token]) -> int:
    """Return the index of an open parenthesis behind `in`; 0 without one."""
    depth = 0
    for place in range(len(tokens) - 1, 0, -1):
        depth += (tokens[place].type == "RPAR") - (tokens[place].type == "LPAR")
        if depth < 0:
            return place if tokens[place - 1].type == "IN" else 0
    return 0
