"""From text to syntax tree, or to one diagnostic.

The steps are length, tokens, number of tokens, depth, grammar, depth of the tree, in that order: nothing that takes
more than linear time, and no recursion, sees a text that has not been measured for it. Tokens are fed to Lark's
parser one by one: it never raises past this module, and none of its sentences does.
"""

from __future__ import annotations

import functools
from typing import TypeAlias

from lark import Lark, Token
from lark.exceptions import UnexpectedCharacters, UnexpectedToken

from policysched.language.ir.tree import Case, Expr, Span
from policysched.language.messages.diagnostics import Diagnostic, diagnose
from policysched.language.syntax import errors, limits
from policysched.language.syntax.grammar import STARTS, make_parser
from policysched.language.syntax.tree_builder import Part, TreeBuilder

Parsed: TypeAlias = Expr | Case | Diagnostic


@functools.cache
def _lark() -> Lark:
    return make_parser(TreeBuilder())


def load_grammar() -> None:
    """Make the parser now, so that nobody waits for it at the first text."""
    _lark()


def parse(text: str, start: str = "expr") -> Parsed:
    """Parse a text.

    Args:
        text: The text of one field, or of one case.
        start: `expr` or `case`.

    Returns:
        The tree, or the first mistake.
    """
    if len(text) > limits.MAX_CHARACTERS:
        return diagnose(
            "E0107", text, Span(limits.MAX_CHARACTERS, len(text)), number=len(text), limit=limits.MAX_CHARACTERS
        )
    tokens, stopped_at = _tokens(text)
    problem = limits.measure(tokens, text)
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
            return errors.unexpected_token(text, tokens, index, _accepted(tokens[:index], start))
    if stopped_at is not None:
        return errors.unexpected_character(text, tokens, stopped_at)
    try:
        part = parser.feed_token(Token("$END", ""))
    except UnexpectedToken:
        return errors.unexpected_end(text, tokens, _accepted(tokens, start))
    return _measured(text, part)


def _measured(text: str, part: Case | Part) -> Parsed:
    tree = part.node if isinstance(part, Part) else part
    return limits.measure_tree(tree, text) or tree


def _accepted(tokens: list[Token], start: str) -> frozenset[str]:
    """Return the terminals that may follow, asked for before the parser reduces for a token that cannot come."""
    parser = _lark().parse_interactive(start=start)
    for token in tokens:
        parser.feed_token(token)
    return frozenset(parser.accepts())  # type: ignore[no-untyped-call]
