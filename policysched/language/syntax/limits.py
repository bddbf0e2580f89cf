"""How large a text may be, measured before anything recursive or slow sees it.

Nothing here recurses. The depth is counted twice, with one limit: over the tokens (open brackets, and every `not` or
`-` that waits for its operand), which also sees brackets that mean nothing, and over the tree, where every level of
operators counts and which bounds how deep the checker and the formatter recurse.
"""

from __future__ import annotations

from collections.abc import Sequence

from lark import Token

from policysched.language.ir.tree import Case, Expr, Keyword, Span, children
from policysched.language.messages.diagnostics import Diagnostic, diagnose

MAX_CHARACTERS = 4096
MAX_TOKENS = 1024
MAX_DEPTH = 32

OPENING = frozenset({"LPAR", "LSQB"})
CLOSING = frozenset({"RPAR", "RSQB"})
OPERAND_ENDS = frozenset(
    {"NAME", "NUMBER", "PERCENT", "QUANTITY", "DURATION", "STRING", "TRUE", "FALSE", "RPAR", "RSQB"}
)
_NOT = frozenset({"NOT", "NOT_SIGN"})
_ENDS_NOT = frozenset({"OR", "OR_SIGN", "AND", "AND_SIGN", "COMMA", "ARROW", "ARROW_SIGN"})


def measure(tokens: Sequence[Token], text: str) -> Diagnostic | None:
    """Return the diagnostic of a text with too many tokens or too deep a nesting."""
    if len(tokens) > MAX_TOKENS:
        start = tokens[MAX_TOKENS].start_pos or 0
        return diagnose("E0107", text, Span(start, len(text)), "tokens", number=len(tokens), limit=MAX_TOKENS)
    for token, depth in zip(tokens, depths(tokens), strict=True):
        if depth > MAX_DEPTH:
            start = token.start_pos or 0
            return diagnose("E0108", text, Span(start, start + len(token)), limit=MAX_DEPTH)
    return None


def measure_tree(tree: Expr | Case, text: str) -> Diagnostic | None:
    """Return the diagnostic of a tree that is too high."""
    waiting = [(root, 0) for root in _roots(tree)]
    while waiting:
        expr, depth = waiting.pop()
        if depth > MAX_DEPTH:
            return diagnose("E0108", text, expr.span, limit=MAX_DEPTH)
        waiting.extend((child, depth + 1) for child in reversed(children(expr)))
    return None


def _roots(tree: Expr | Case) -> list[Expr]:
    if not isinstance(tree, Case):
        return [tree]
    return [tree.value] if isinstance(tree.guard, Keyword) else [tree.value, tree.guard]


def depths(tokens: Sequence[Token]) -> list[int]:
    """Return how deep each token stands."""
    result: list[int] = []
    outer: list[tuple[int, int]] = []
    depth = nots = minuses = 0
    previous = ""
    for token in tokens:
        kind = token.type
        if kind in OPENING:
            outer.append((depth, nots))
            depth, nots, minuses = depth + nots + minuses + 1, 0, 0
        elif kind in CLOSING and outer:
            (depth, nots), minuses = outer.pop(), 0
        elif kind not in OPERAND_ENDS:
            nots, minuses = _waiting(kind, previous, nots, minuses)
        result.append(depth + nots + minuses)
        previous = kind
    return result


def _waiting(kind: str, previous: str, nots: int, minuses: int) -> tuple[int, int]:
    """Count the prefixes that wait for their operand after an operator."""
    prefix = previous not in OPERAND_ENDS
    if kind in _NOT and prefix:
        return nots + 1, minuses
    if kind == "MINUS" and prefix:
        return nots, minuses + 1
    return (0 if kind in _ENDS_NOT else nots), 0
