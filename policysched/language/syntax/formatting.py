"""Formats a syntax tree as canonical text of the policy language.

One line, fewest parentheses, words for operators, one space around them. A condition under `not` keeps its parentheses:
`not (a == b)` cannot be misread, `not a == b` can.
"""

from __future__ import annotations

import enum
import re
from typing import Final

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
    "+": _Level.SUM, "-": _Level.SUM, "*": _Level.PRODUCT, "/": _Level.PRODUCT, "??": _Level.DEFAULT,
}  # fmt: skip
_LEADING_ZEROS: Final = re.compile(r"^0+(?=[0-9])")


def format_text(text: str, start: str = "expr") -> str | Diagnostic:
    """Return a text in canonical form, or the diagnostic of its first syntax error.

    A text with comments is returned unchanged, because the canonical form has none.
    """
    tree = parse(text, start)
    if isinstance(tree, Diagnostic):
        return tree
    return text if _has_comment(text) else format_tree(tree)


def format_tree(tree: Expr | Case) -> str:
    """Return the canonical text of a tree."""
    match tree:
        case Case():
            guard = tree.guard.value if isinstance(tree.guard, Keyword) else format_tree(tree.guard)
            text = f"{guard} → {format_tree(tree.value)}"
        case Literal():
            text = quote(tree.text) if tree.kind is LiteralKind.STRING else _LEADING_ZEROS.sub("", tree.text)
        case Path():
            text = tree.dotted if tree.key is None else f"{tree.dotted}[{format_tree(tree.key)}]"
        case Call():
            by = f" by {format_tree(tree.by)}" if tree.by else ""
            text = f"{format_tree(tree.function)}({', '.join(map(format_tree, tree.arguments))}){by}"
        case Listing():
            text = f"[{', '.join(map(format_tree, tree.items))}]"
        case _:
            text = _operation(tree)
    return text


def _operation(tree: Negation | Inversion | Chain | Comparison | Logic) -> str:
    match tree:
        case Negation():
            return f"-{_operand(tree.operand, _Level.UNARY)}"
        case Inversion():
            level = _Level.NOT if isinstance(tree.operand, Inversion) else _Level.DEFAULT
            return f"not {_operand(tree.operand, level)}"
        case Chain():
            steps = (f" {step.operator} {_above(step.operand, tree)}" for step in tree.steps)
            return _above(tree.first, tree) + "".join(steps)
        case Comparison():
            return f"{_above(tree.left, tree)} {tree.operator} {_above(tree.right, tree)}"
        case Logic():
            return f" {tree.operator} ".join(_above(operand, tree) for operand in tree.operands)


def quote(text: str) -> str:
    """Return a string literal in the language's syntax."""
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
