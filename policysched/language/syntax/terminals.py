"""The terminals (kinds of tokens) of the grammar: names, groups, and descriptions for messages.

Code that only names terminals need not import a parser.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from lark import Token

from policysched.language.ir.tree import Span

KEYWORDS: Final = frozenset({"and", "or", "not", "in", "by", "true", "false", "else", "missing"})
VALUES: Final = frozenset({
    "NAME", "NUMBER", "PERCENT", "QUANTITY", "DURATION", "STRING", "TRUE", "FALSE", "LPAR", "LSQB", "MINUS", "NOT",
    "NOT_SIGN",
})  # fmt: skip
COMPARISONS: Final = frozenset({"EQ", "NE", "LT", "LE", "GT", "GE", "IN"})
OPENING: Final = frozenset({"LPAR", "LSQB"})
CLOSING: Final = frozenset({"RPAR", "RSQB"})
OPERAND_ENDS: Final = frozenset(
    {"NAME", "NUMBER", "PERCENT", "QUANTITY", "DURATION", "STRING", "TRUE", "FALSE", "RPAR", "RSQB"}
)
OPERATORS: Final = COMPARISONS | {
    "OR", "OR_SIGN", "AND", "AND_SIGN", "NOT", "DEFAULT", "PLUS", "MINUS", "STAR", "SLASH",
}  # fmt: skip
# Descriptions of terminals, in the order in which messages list them.
TERMINALS: Final[Mapping[str, str]] = {
    "$END": "the end", "NAME": "a name", "NUMBER": "a number", "PERCENT": "a percentage", "QUANTITY": "a quantity",
    "DURATION": "a duration", "STRING": "a string", "TRUE": "`true`", "FALSE": "`false`", "ELSE": "`else`",
    "MISSING": "`missing`", "OR": "`or`", "OR_SIGN": "`||`", "AND": "`and`", "AND_SIGN": "`&&`", "NOT": "`not`",
    "NOT_SIGN": "`!`", "IN": "`in`", "BY": "`by`", "ARROW": "`→`", "ARROW_SIGN": "`→`", "EQ": "`==`", "NE": "`!=`",
    "LT": "`<`", "LE": "`<=`", "GT": "`>`", "GE": "`>=`", "DEFAULT": "`??`", "PLUS": "`+`", "MINUS": "`-`",
    "STAR": "`*`", "SLASH": "`/`", "LPAR": "`(`", "RPAR": "`)`", "LSQB": "`[`", "RSQB": "`]`", "COMMA": "`,`",
    "DOT": "`.`",
}  # fmt: skip


def expectation(accepted: Collection[str]) -> str:
    """Return the expected kinds of tokens as text for a message."""
    names: dict[str, None] = {}
    rest = set(accepted)
    if "LPAR" in rest and "STRING" in rest:
        names["a value"] = None
        rest -= VALUES
    elif "STRING" in rest:
        names["a constant"] = None
        rest -= VALUES
    if "OR" in rest:
        names["an operator"] = None
        rest -= OPERATORS | {"DOT", "LSQB", "LPAR", "BY"}
    for terminal, name in TERMINALS.items():
        if terminal in rest:
            names[name] = None
    *most, last = names
    return f"{', '.join(most)} or {last}" if most else last


def span_of(token: Token) -> Span:
    """Return the start and end offset of a token."""
    start = token.start_pos or 0
    return Span(start, start + len(token))
