"""Builds the syntax tree while the parser reduces.

It knows the rules of `grammar.lark` and nothing else. Every rule gives a `Part`: a tree and how far it reaches with
the brackets around it, because the span of an operation includes the brackets of its operands and their own do not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from lark import Token, Transformer

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
    Span,
    Step,
)


@dataclass(frozen=True, slots=True)
class Part:
    """A tree and its reach in the text."""

    node: Expr
    start: int
    end: int


Children: TypeAlias = "list[Part | Token]"


def span_of(token: Token) -> Span:
    """Where a token stands."""
    start = token.start_pos or 0
    return Span(start, start + len(token))


def _start(child: Part | Token) -> int:
    return child.start if isinstance(child, Part) else span_of(child).start


def _end(child: Part | Token) -> int:
    return child.end if isinstance(child, Part) else span_of(child).end


def _reach(children: Children) -> Span:
    return Span(_start(children[0]), _end(children[-1]))


def _parts(children: Children) -> list[Part]:
    return [child for child in children if isinstance(child, Part)]


def _whole(build: Callable[[Children, Span], Expr], children: Children) -> Part:
    reach = _reach(children)
    return Part(build(children, reach), reach.start, reach.end)


class TreeBuilder(Transformer):  # type: ignore[type-arg]
    """One method for each rule (or alias) of the grammar."""

    def single(self, children: Children) -> Part | Token:
        """A rule that only passes its child on."""
        return children[0]

    def literal(self, children: list[Token]) -> Part:
        """A literal; strings lose their quotes and escapes."""
        token, kind = children[0], LiteralKind(children[0].type)
        text = str(token)
        if kind is LiteralKind.STRING:
            text = _unescape(text[1:-1])
        span = span_of(token)
        return Part(Literal(kind, text, span), span.start, span.end)

    def path(self, children: Children) -> Part:
        """Names, and a key if there is one."""
        names = [child for child in children if isinstance(child, Token) and child.type == "NAME"]
        key = next((child for child in children if isinstance(child, Part)), None)
        reach = _reach(children)
        key_span = Span(key.start, key.end) if key else reach
        node = Path(
            tuple(str(name) for name in names),
            key.node if key else None,
            reach,
            tuple(span_of(name) for name in names),
            key_span,
        )
        return Part(node, reach.start, reach.end)

    def arguments(self, children: Children) -> list[Part]:
        """The arguments of a call."""
        return _parts(children)

    def call(self, children: list[Part | Token | list[Part]]) -> Part:
        """A path, its arguments and its `by`."""
        arguments = next((child for child in children if isinstance(child, list)), [])
        flat: Children = [child for child in children if not isinstance(child, list)]
        paths = [part.node for part in _parts(flat) if isinstance(part.node, Path)]
        reach = _reach(flat)
        by = paths[1] if len(paths) > 1 else None
        node = Call(paths[0], tuple(part.node for part in arguments), by, reach)
        return Part(node, reach.start, reach.end)

    def listing(self, children: Children) -> Part:
        """A list of literals."""
        return _whole(lambda c, s: Listing(tuple(part.node for part in _parts(c)), s), children)

    def group(self, children: Children) -> Part:
        """Brackets: they widen the reach and leave the tree as it is."""
        reach = _reach(children)
        return Part(_parts(children)[0].node, reach.start, reach.end)

    def negation(self, children: Children) -> Part:
        """`-x`."""
        return _whole(lambda c, s: Negation(_parts(c)[0].node, s), children)

    def inversion(self, children: Children) -> Part:
        """`not x`."""
        return _whole(lambda c, s: Inversion(_parts(c)[0].node, s), children)

    def chain(self, children: Children) -> Part | Token:
        """A chain of operators of one level."""
        if len(children) == 1:
            return children[0]
        return _whole(_chain, children)

    def comparison(self, children: list[Token]) -> Token:
        """A comparison operator: `not in` becomes one token."""
        return children[0].update(value=" ".join(children))

    def comparing(self, children: Children) -> Part | Token:
        """A comparison, or its left side alone."""
        if len(children) == 1:
            return children[0]
        return _whole(lambda c, s: Comparison(str(c[1]), _parts(c)[0].node, _parts(c)[1].node, s), children)

    def conjunction(self, children: Children) -> Part | Token:
        """A chain of `and`."""
        return _logic("and", children)

    def disjunction(self, children: Children) -> Part | Token:
        """A chain of `or`."""
        return _logic("or", children)

    def guard(self, children: Children) -> Part | Token:
        """What stands left of a case's arrow."""
        return children[0]

    def case(self, children: Children) -> Case:
        """One case."""
        guard, value = children[0], _parts(children)[-1]
        condition = Keyword(str(guard)) if isinstance(guard, Token) else guard.node
        return Case(condition, value.node, _reach(children), Span(_start(guard), _end(guard)))


def _chain(children: Children, span: Span) -> Chain:
    operands = _parts(children)
    operators = [str(child) for child in children if isinstance(child, Token)]
    steps = zip(operators, operands[1:], strict=True)
    return Chain(operands[0].node, tuple(Step(operator, part.node, part.end) for operator, part in steps), span)


def _logic(operator: str, children: Children) -> Part | Token:
    if len(children) == 1:
        return children[0]
    return _whole(lambda c, s: Logic(operator, tuple(part.node for part in _parts(c)), s), children)


def _unescape(text: str) -> str:
    # Only \" and \\ pass the lexer, so dropping the backslash before each character is enough.
    pieces = text.split("\\\\")
    return "\\".join(piece.replace('\\"', '"') for piece in pieces)
