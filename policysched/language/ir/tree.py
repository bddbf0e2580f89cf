"""Nodes of the syntax tree of an expression.

The tree has positions in its text, but no types and no resolved names. Spans are ignored in comparisons, so texts that
differ only in spacing have equal trees. Chains (`a + b - c`, `a and b`) are flat, so the depth of a tree is bounded by
visible nesting, not by the length of the text.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias


class Span(NamedTuple):
    """The start and end offset of a part of a text, in code points; the end is exclusive."""

    start: int
    end: int


class LiteralKind(enum.Enum):
    """The kinds of literals in the grammar."""

    NUMBER = "NUMBER"
    PERCENT = "PERCENT"
    QUANTITY = "QUANTITY"
    DURATION = "DURATION"
    STRING = "STRING"
    TRUE = "TRUE"
    FALSE = "FALSE"


@dataclass(frozen=True, slots=True)
class Literal:
    """A literal: the text of a number with its suffix, or the characters of a string."""

    kind: LiteralKind
    text: str
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Path:
    """A dotted name with an optional key, such as `node.labels["x"]`."""

    names: tuple[str, ...]
    key: Expr | None
    span: Span = field(compare=False, repr=False)
    name_spans: tuple[Span, ...] = field(compare=False, repr=False)
    key_span: Span = field(compare=False, repr=False)

    @property
    def dotted(self) -> str:
        """The names without the key, joined by dots."""
        return ".".join(self.names)


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function or an aggregate, with the optional `by` path."""

    function: Path
    arguments: tuple[Expr, ...]
    by: Path | None
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Listing:
    """A list of literals, such as `["a", "b"]`."""

    items: tuple[Expr, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Negation:
    """A negated quantity, `-x`."""

    operand: Expr
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Inversion:
    """An inverted condition, `not x`."""

    operand: Expr
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Step:
    """An operator of a chain with its right operand; `end` is the end of the operand with its parentheses."""

    operator: str
    operand: Expr
    end: int = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Chain:
    """A chain of `+ -`, of `* /` or of `??`, which is evaluated from left to right."""

    first: Expr
    steps: tuple[Step, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison of two expressions, such as `a < b` or `a not in b`."""

    operator: str
    left: Expr
    right: Expr
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Logic:
    """A chain of `and` or of `or`."""

    operator: str
    operands: tuple[Expr, ...]
    span: Span = field(compare=False, repr=False)


class Keyword(enum.Enum):
    """The keywords that can replace the guard (condition) of a case."""

    ELSE = "else"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Case:
    """One case of a score, `guard -> value`."""

    guard: Expr | Keyword
    value: Expr
    span: Span = field(compare=False, repr=False)
    guard_span: Span = field(compare=False, repr=False)


Expr: TypeAlias = Literal | Path | Call | Listing | Negation | Inversion | Chain | Comparison | Logic


_CHILDREN: Final[Mapping[type, Callable[[Any], tuple[Expr | None, ...]]]] = {
    Literal: lambda _: (),
    Path: lambda path: (path.key,),
    Call: lambda call: (call.function, *call.arguments, call.by),
    Listing: lambda listing: listing.items,
    Negation: lambda negation: (negation.operand,),
    Inversion: lambda inversion: (inversion.operand,),
    Chain: lambda chain: (chain.first, *(step.operand for step in chain.steps)),
    Comparison: lambda comparison: (comparison.left, comparison.right),
    Logic: lambda logic: logic.operands,
}


def children(expr: Expr) -> tuple[Expr, ...]:
    """Return the direct children of a tree, in the order of the text."""
    return tuple(child for child in _CHILDREN[type(expr)](expr) if child is not None)


def walk(expr: Expr) -> Iterator[Expr]:
    """Yield a tree and all its descendants, in the order of the text."""
    waiting = [expr]
    while waiting:
        one = waiting.pop()
        yield one
        waiting.extend(reversed(children(one)))
