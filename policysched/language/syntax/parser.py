"""Parser: from text to syntax tree, or to the diagnostic of its first mistake.

The steps are length, tokens, number of tokens, depth, grammar, depth of the tree, in that order: nothing that takes
more than linear time, and no recursion, sees a text that has not been measured for it. The depth is counted twice, with
one limit: over the tokens (open brackets, and every `not` or `-` that waits for its operand), which also sees brackets
that mean nothing, and over the tree, where every level of operators counts and which bounds how deep the checker and
the formatter recurse. Tokens are fed to Lark's parser one by one: it never raises past this module, and none of its
sentences does.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
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
from policysched.language.syntax.grammar import CLOSING, OPENING, OPERAND_ENDS, STARTS, make_parser, span_of

MAX_CHARACTERS = 4096
MAX_TOKENS = 1024
MAX_DEPTH = 32

_NOT = frozenset({"NOT", "NOT_SIGN"})
_ENDS_NOT = frozenset({"OR", "OR_SIGN", "AND", "AND_SIGN", "COMMA", "ARROW", "ARROW_SIGN"})
Parsed: TypeAlias = Expr | Case | Diagnostic


@functools.cache
def _lark() -> Lark:
    return make_parser(TreeBuilder())


def load_grammar() -> None:
    """Make the parser and read the messages now, so that nobody waits for them at the first text."""
    _lark()
    message_table()


def parse(text: str, start: str = "expr") -> Parsed:
    """Parse a text.

    Args:
        text: The text of one field, or of one case.
        start: `expr` or `case`.

    Returns:
        The tree, or the first mistake.
    """
    if len(text) > MAX_CHARACTERS:
        return diagnose("E0107", text, Span(MAX_CHARACTERS, len(text)), number=len(text), limit=MAX_CHARACTERS)
    tokens, stopped_at = _tokens(text)
    problem = _measure(tokens, text)
    if problem is not None:
        return problem
    return _parse_tokens(text, tokens, start, stopped_at)


def _tokens(text: str) -> tuple[list[Token], int | None]:
    """Split a text; the second value is where no token begins, if there is such a place."""
    tokens: list[Token] = []
    try:
        # Not Lark.lex: beside a parser it builds a lexer for every text.
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
        return unexpected_character(text, tokens, stopped_at)
    try:
        part = parser.feed_token(Token("$END", ""))
    except UnexpectedToken:
        return unexpected_end(text, tokens, _accepted(tokens, start))
    tree = part.node if isinstance(part, _Part) else part
    return _measure_tree(tree, text) or tree


def _accepted(tokens: list[Token], start: str) -> frozenset[str]:
    """Return the terminals that may follow, asked for before the parser reduces for a token that cannot come."""
    parser = _lark().parse_interactive(start=start)
    for token in tokens:
        parser.feed_token(token)
    return frozenset(parser.accepts())  # type: ignore[no-untyped-call]


def _measure(tokens: Sequence[Token], text: str) -> Diagnostic | None:
    """Return the diagnostic of a text with too many tokens or too deep a nesting."""
    if len(tokens) > MAX_TOKENS:
        span = Span(span_of(tokens[MAX_TOKENS]).start, len(text))
        return diagnose("E0107", text, span, "tokens", number=len(tokens), limit=MAX_TOKENS)
    for token, depth in zip(tokens, _depths(tokens), strict=True):
        if depth > MAX_DEPTH:
            return diagnose("E0108", text, span_of(token), limit=MAX_DEPTH)
    return None


def _measure_tree(tree: Expr | Case, text: str) -> Diagnostic | None:
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


def _depths(tokens: Sequence[Token]) -> list[int]:
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


@dataclass(frozen=True, slots=True)
class _Part:
    """A tree and its reach in the text."""

    node: Expr
    start: int
    end: int


Children: TypeAlias = "list[_Part | Token]"


def _start(child: _Part | Token) -> int:
    return child.start if isinstance(child, _Part) else span_of(child).start


def _end(child: _Part | Token) -> int:
    return child.end if isinstance(child, _Part) else span_of(child).end


def _reach(children: Children) -> Span:
    return Span(_start(children[0]), _end(children[-1]))


def _parts(children: Children) -> list[_Part]:
    return [child for child in children if isinstance(child, _Part)]


def _whole(build: Callable[[Children, Span], Expr], children: Children) -> _Part:
    reach = _reach(children)
    return _Part(build(children, reach), reach.start, reach.end)


class TreeBuilder(Transformer):  # type: ignore[type-arg]
    """One method for each rule (or alias) of the grammar."""

    def single(self, children: Children) -> _Part | Token:
        """A rule that only passes its child on."""
        return children[0]

    def literal(self, children: list[Token]) -> _Part:
        """A literal; strings lose their quotes and escapes."""
        token, kind = children[0], LiteralKind(children[0].type)
        text = str(token)
        if kind is LiteralKind.STRING:
            text = _unescape(text[1:-1])
        span = span_of(token)
        return _Part(Literal(kind, text, span), span.start, span.end)

    def path(self, children: Children) -> _Part:
        """Names, and a key if there is one."""
        names = [child for child in children if isinstance(child, Token) and child.type == "NAME"]
        key = next((child for child in children if isinstance(child, _Part)), None)
        reach = _reach(children)
        key_span = Span(key.start, key.end) if key else reach
        node = Path(
            tuple(str(name) for name in names),
            key.node if key else None,
            reach,
            tuple(span_of(name) for name in names),
            key_span,
        )
        return _Part(node, reach.start, reach.end)

    def arguments(self, children: Children) -> list[_Part]:
        """The arguments of a call."""
        return _parts(children)

    def call(self, children: list[_Part | Token | list[_Part]]) -> _Part:
        """A path, its arguments and its `by`."""
        arguments = next((child for child in children if isinstance(child, list)), [])
        flat: Children = [child for child in children if not isinstance(child, list)]
        paths = [part.node for part in _parts(flat) if isinstance(part.node, Path)]
        reach = _reach(flat)
        by = paths[1] if len(paths) > 1 else None
        node = Call(paths[0], tuple(part.node for part in arguments), by, reach)
        return _Part(node, reach.start, reach.end)

    def listing(self, children: Children) -> _Part:
        """A list of literals."""
        return _whole(lambda c, s: Listing(tuple(part.node for part in _parts(c)), s), children)

    def group(self, children: Children) -> _Part:
        """Brackets: they widen the reach and leave the tree as it is."""
        reach = _reach(children)
        return _Part(_parts(children)[0].node, reach.start, reach.end)

    def negation(self, children: Children) -> _Part:
        """`-x`."""
        return _whole(lambda c, s: Negation(_parts(c)[0].node, s), children)

    def inversion(self, children: Children) -> _Part:
        """`not x`."""
        return _whole(lambda c, s: Inversion(_parts(c)[0].node, s), children)

    def chain(self, children: Children) -> _Part | Token:
        """A chain of operators of one level."""
        if len(children) == 1:
            return children[0]
        return _whole(_chain, children)

    def comparison(self, children: list[Token]) -> Token:
        """A comparison operator: `not in` becomes one token."""
        return children[0].update(value=" ".join(children))

    def comparing(self, children: Children) -> _Part | Token:
        """A comparison, or its left side alone."""
        if len(children) == 1:
            return children[0]
        return _whole(lambda c, s: Comparison(str(c[1]), _parts(c)[0].node, _parts(c)[1].node, s), children)

    def conjunction(self, children: Children) -> _Part | Token:
        """A chain of `and`."""
        return _logic("and", children)

    def disjunction(self, children: Children) -> _Part | Token:
        """A chain of `or`."""
        return _logic("or", children)

    def guard(self, children: Children) -> _Part | Token:
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


def _logic(operator: str, children: Children) -> _Part | Token:
    if len(children) == 1:
        return children[0]
    return _whole(lambda c, s: Logic(operator, tuple(part.node for part in _parts(c)), s), children)


def _unescape(text: str) -> str:
    # Only \" and \\ pass the lexer, so dropping the backslash before each character is enough.
    pieces = text.split("\\\\")
    return "\\".join(piece.replace('\\"', '"') for piece in pieces)
