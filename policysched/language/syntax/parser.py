"""Parser: converts a text into a syntax tree, or into the diagnostic of its first error.

The steps are: length, tokens, number of tokens, depth, grammar, depth of the tree. No superlinear or recursive step
runs on a text that has not been measured for it. The depth is checked twice with one limit. The depth of tokens counts
open brackets and each pending `not` or `-`, so it includes redundant brackets. The depth of the tree counts every level
of operators, and bounds the recursion of checker and formatter. Tokens are passed to Lark's parser one by one, so none
of its exceptions or messages leaves this module.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from lark import Lark, Token, Transformer
from lark.exceptions import UnexpectedCharacters, UnexpectedToken

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
    children,
)
from policysched.language.messages.diagnostics import Diagnostic, diagnose, message_table
from policysched.language.syntax.errors import unexpected_character, unexpected_end, unexpected_token
from policysched.language.syntax.grammar import STARTS, make_parser
from policysched.language.syntax.terminals import CLOSING, OPENING, OPERAND_ENDS, span_of

Parsed: TypeAlias = Expr | Case | Diagnostic
MAX_CHARACTERS = 4096
MAX_TOKENS = 1024
MAX_DEPTH = 32

_NOT = frozenset({"NOT", "NOT_SIGN"})
_ENDS_NOT = frozenset({"OR", "OR_SIGN", "AND", "AND_SIGN", "COMMA", "ARROW", "ARROW_SIGN"})
_ESCAPE = re.compile(r"\\(.)")


@functools.cache
def _lark() -> Lark:
    return make_parser(_TreeBuilder())


def load_grammar() -> None:
    """Load the parser and the messages, so that the first parsed text is not delayed."""
    _lark()
    message_table()


def parse(text: str, start: str = "expr") -> Parsed:
    """Parse a text of the language into a syntax tree, or return the diagnostic of its first error.

    Args:
        text: The text of one field, or of one case.
        start: `expr` or `case`.

    Returns:
        The tree, or the first error.
    """
    if len(text) > MAX_CHARACTERS:
        return diagnose("E0107", text, Span(MAX_CHARACTERS, len(text)), number=len(text), limit=MAX_CHARACTERS)
    tokens, stopped_at = _tokens(text)
    problem = _measure(tokens, text)
    if problem is not None:
        return problem
    return _parse_tokens(text, tokens, start, stopped_at)


def _tokens(text: str) -> tuple[list[Token], int | None]:
    """Return the tokens of a text, and the position of a character that begins no token, else None."""
    tokens: list[Token] = []
    try:
        # Not Lark.lex, which builds a lexer for every text.
        session = _lark().parse_interactive(text, start=STARTS[0])
        for token in session.lexer_thread.lex(session.parser_state):  # type: ignore[no-untyped-call]
            tokens.append(token)  # noqa: PERF402 the tokens before a bad character are wanted
    except UnexpectedCharacters as error:
        return tokens, error.pos_in_stream
    return tokens, None


def _parse_tokens(text: str, tokens: list[Token], start: str, stopped_at: int | None) -> Parsed:
    parser = _lark().parse_interactive(start=start)
    for index, token in enumerate(tokens):
        try:
            parser.feed_token(token)
        except UnexpectedToken:
            return unexpected_token(text, tokens, index, _accepted(tokens[:index], start))
    if stopped_at is not None:
        return unexpected_character(text, tokens, stopped_at, _accepted(tokens, start))
    try:
        part = parser.feed_token(Token("$END", ""))
    except UnexpectedToken:
        return unexpected_end(text, tokens, _accepted(tokens, start))
    tree = part.node if isinstance(part, _Part) else part
    return _measure_tree(tree, text) or tree


def _accepted(tokens: list[Token], start: str) -> frozenset[str]:
    """Return the kinds of tokens that the grammar accepts after the given tokens."""
    parser = _lark().parse_interactive(start=start)
    for token in tokens:
        parser.feed_token(token)
    return frozenset(parser.accepts())  # type: ignore[no-untyped-call]


def _measure(tokens: Sequence[Token], text: str) -> Diagnostic | None:
    """Return the diagnostic of a text that has too many tokens or is nested too deeply; else None."""
    if len(tokens) > MAX_TOKENS:
        span = Span(span_of(tokens[MAX_TOKENS]).start, len(text))
        return diagnose("E0107", text, span, "tokens", number=len(tokens), limit=MAX_TOKENS)
    for token, depth in zip(tokens, _depths(tokens), strict=True):
        if depth > MAX_DEPTH:
            return diagnose("E0108", text, span_of(token), limit=MAX_DEPTH)
    return None


def _measure_tree(tree: Expr | Case, text: str) -> Diagnostic | None:
    """Return the diagnostic of a syntax tree that is too deep; else None."""
    roots = [tree] if not isinstance(tree, Case) else [tree.value, tree.guard]
    waiting = [(root, 0) for root in roots if not isinstance(root, Keyword)]
    while waiting:
        expr, depth = waiting.pop()
        if depth > MAX_DEPTH:
            return diagnose("E0108", text, expr.span, limit=MAX_DEPTH)
        waiting.extend((child, depth + 1) for child in reversed(children(expr)))
    return None


def _depths(tokens: Sequence[Token]) -> list[int]:
    """Return the nesting depth of each token."""
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
        elif kind in _NOT and previous not in OPERAND_ENDS:
            nots += 1
        elif kind == "MINUS" and previous not in OPERAND_ENDS:
            minuses += 1
        elif kind not in OPERAND_ENDS:
            nots, minuses = (0 if kind in _ENDS_NOT else nots), 0
        result.append(depth + nots + minuses)
        previous = kind
    return result


@dataclass(frozen=True, slots=True)
class _Part:
    """A syntax tree with the start and end offset of its text, including parentheses."""

    node: Expr
    start: int
    end: int


Children: TypeAlias = "list[_Part | Token]"


def _reach(children: Children) -> Span:
    ends = [(one.start, one.end) if isinstance(one, _Part) else span_of(one) for one in (children[0], children[-1])]
    return Span(ends[0][0], ends[1][1])


def _nodes(children: Children) -> list[Expr]:
    return [child.node for child in children if isinstance(child, _Part)]


def _part(node: Expr, reach: Span) -> _Part:
    return _Part(node, reach.start, reach.end)


class _TreeBuilder(Transformer):  # type: ignore[type-arg]
    """Builds the syntax tree while the text is parsed, with one method per rule of the grammar."""

    def single(self, children: Children) -> _Part | Token:
        return children[0]

    guard = single

    def literal(self, children: list[Token]) -> _Part:
        token, kind = children[0], LiteralKind(children[0].type)
        # The lexer only accepts the escapes \" and \\.
        text = _ESCAPE.sub(r"\1", token[1:-1]) if kind is LiteralKind.STRING else str(token)
        return _part(Literal(kind, text, span_of(token)), span_of(token))

    def path(self, children: Children) -> _Part:
        names = [child for child in children if isinstance(child, Token) and child.type == "NAME"]
        key = next((child for child in children if isinstance(child, _Part)), None)
        reach = _reach(children)
        key_span = Span(key.start, key.end) if key else reach
        node = Path(tuple(map(str, names)), key.node if key else None, reach, tuple(map(span_of, names)), key_span)
        return _part(node, reach)

    def arguments(self, children: Children) -> list[Expr]:
        return _nodes(children)

    def call(self, children: list[_Part | Token | list[Expr]]) -> _Part:
        arguments = next((child for child in children if isinstance(child, list)), [])
        flat: Children = [child for child in children if not isinstance(child, list)]
        function, *by = [node for node in _nodes(flat) if isinstance(node, Path)]
        reach = _reach(flat)
        return _part(Call(function, tuple(arguments), by[0] if by else None, reach), reach)

    def listing(self, children: Children) -> _Part:
        return _part(Listing(tuple(_nodes(children)), _reach(children)), _reach(children))

    def group(self, children: Children) -> _Part:
        """Extend the text of a tree by the parentheses around it."""
        return _part(_nodes(children)[0], _reach(children))

    def negation(self, children: Children) -> _Part:
        return _part(Negation(_nodes(children)[0], _reach(children)), _reach(children))

    def inversion(self, children: Children) -> _Part:
        return _part(Inversion(_nodes(children)[0], _reach(children)), _reach(children))

    def chain(self, children: Children) -> _Part | Token:
        if len(children) == 1:
            return children[0]
        first, *operands = [child for child in children if isinstance(child, _Part)]
        operators = [str(child) for child in children if isinstance(child, Token)]
        steps = tuple(Step(one, part.node, part.end) for one, part in zip(operators, operands, strict=True))
        return _part(Chain(first.node, steps, _reach(children)), _reach(children))

    def comparison(self, children: list[Token]) -> Token:
        """Join the words `not in` into one token."""
        return children[0].update(value=" ".join(children))

    def comparing(self, children: Children) -> _Part | Token:
        if len(children) == 1:
            return children[0]
        left, right = _nodes(children)
        return _part(Comparison(str(children[1]), left, right, _reach(children)), _reach(children))

    def conjunction(self, children: Children) -> _Part | Token:
        return _logic("and", children)

    def disjunction(self, children: Children) -> _Part | Token:
        return _logic("or", children)

    def case(self, children: Children) -> Case:
        guard, value = children[0], _nodes(children)[-1]
        condition = Keyword(str(guard)) if isinstance(guard, Token) else guard.node
        return Case(condition, value, _reach(children), _reach([guard]))


def _logic(operator: str, children: Children) -> _Part | Token:
    if len(children) == 1:
        return children[0]
    return _part(Logic(operator, tuple(_nodes(children)), _reach(children)), _reach(children))
