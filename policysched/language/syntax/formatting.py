"""Canonical text of a syntax tree.

One line, the fewest brackets, words for operators, one space around them. A condition under `not` keeps its
brackets: `not (a == b)` is read rightly by everybody, `not a == b` is not.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Final, cast

from policysched.language.ir.tree import (
    Call,
    Case,
    Chain,
    Comparison,
    Expr,
    Inversion,
    Keyword,
    Listing,
    Literal,
    LiteralKind,
    Logic,
    Negation,
    Path,
)
from policysched.language.messages.diagnostics import Diagnostic
from policysched.language.syntax.parser import parse


class _Level(enum.IntEnum):
    OR = 1
    AND = 2
    NOT = 3
    COMPARISON = 4
    DEFAULT = 5
    SUM = 6
    PRODUCT = 7
    UNARY = 8
    ATOM = 9


_CHAINS: Final = {
    "+": _Level.SUM,
    "-": _Level.SUM,
    "*": _Level.PRODUCT,
    "/": _Level.PRODUCT,
    "??": _Level.DEFAULT,
}


def format_text(text: str, start: str = "expr") -> str | Diagnostic:
    """Return the canonical form of a text, or its first syntax error.

    A text with comments comes back as it is, because the canonical form has no place for them.
    """
    tree = parse(text, start)
    if isinstance(tree, Diagnostic):
        return tree
    return text if _has_comment(text) else format_tree(tree)


def format_tree(tree: Expr | Case) -> str:
    """Return the canonical text of a tree."""
    if not isinstance(tree, Case):
        return _WRITERS[type(tree)](tree)
    guard = tree.guard.value if isinstance(tree.guard, Keyword) else format_tree(tree.guard)
    return f"{guard} → {format_tree(tree.value)}"


def quote(text: str) -> str:
    """Return a string as the language writes it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _has_comment(text: str) -> bool:
    inside = escaped = False
    for character in text:
        if character == "#" and not inside:
            return True
        if character == '"' and not escaped:
            inside = not inside
        escaped = inside and character == "\\" and not escaped
    return False


def _level(expr: Expr) -> _Level:
    match expr:
        case Logic():
            return _Level.OR if expr.operator == "or" else _Level.AND
        case Chain():
            return _CHAINS[expr.steps[0].operator]
        case Inversion():
            return _Level.NOT
        case Comparison():
            return _Level.COMPARISON
        case Negation():
            return _Level.UNARY
        case _:
            return _Level.ATOM


def _operand(expr: Expr, level: _Level) -> str:
    text = format_tree(expr)
    return text if _level(expr) >= level else f"({text})"


def _above(expr: Expr, parent: Expr) -> str:
    return _operand(expr, _Level(_level(parent) + 1))


def _literal(literal: Literal) -> str:
    if literal.kind is LiteralKind.STRING:
        return quote(literal.text)
    text = literal.text
    while text.startswith("0") and text[1:2].isdigit():
        text = text[1:]
    return text


def _path(path: Path) -> str:
    return path.dotted if path.key is None else f"{path.dotted}[{format_tree(path.key)}]"


def _call(call: Call) -> str:
    arguments = ", ".join(format_tree(argument) for argument in call.arguments)
    by = f" by {_path(call.by)}" if call.by else ""
    return f"{_path(call.function)}({arguments}){by}"


def _listing(listing: Listing) -> str:
    return f"[{', '.join(format_tree(item) for item in listing.items)}]"


def _negation(negation: Negation) -> str:
    return f"-{_operand(negation.operand, _Level.UNARY)}"


def _inversion(inversion: Inversion) -> str:
    operand = inversion.operand
    level = _Level.NOT if isinstance(operand, Inversion) else _Level.DEFAULT
    return f"not {_operand(operand, level)}"


def _chain(chain: Chain) -> str:
    steps = (f" {step.operator} {_above(step.operand, chain)}" for step in chain.steps)
    return _above(chain.first, chain) + "".join(steps)


def _comparison(comparison: Comparison) -> str:
    left, right = _above(comparison.left, comparison), _above(comparison.right, comparison)
    return f"{left} {comparison.operator} {right}"


def _logic(logic: Logic) -> str:
    return f" {logic.operator} ".join(_above(operand, logic) for operand in logic.operands)


# Each function takes the class it is filed under; a table cannot say so.
_WRITERS: Final = cast(
    "dict[type, Callable[[Expr], str]]",
    {
        Literal: _literal,
        Path: _path,
        Call: _call,
        Listing: _listing,
        Negation: _negation,
        Inversion: _inversion,
        Chain: _chain,
        Comparison: _comparison,
        Logic: _logic,
    },
)
