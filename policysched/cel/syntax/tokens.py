"""Tokenizer of CEL, which reports characters that begin no token.

Source: cel-go v0.26 parser/gen/CEL.g4; the ANTLR runtime's Lexer (longest match, what an error message quotes).
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from policysched.cel.issues import Issues

EOF: Final = "<EOF>"
IDENTIFIER: Final = "IDENTIFIER"
ESCAPED: Final = "ESC_IDENTIFIER"
FLOAT, INT, UINT, STRING, BYTES = "NUM_FLOAT", "NUM_INT", "NUM_UINT", "STRING", "BYTES"
_SYMBOLS: Final = tuple("== != in < <= >= > && || [ ] { } ( ) . , - ! ? : + * / % true false null".split())  # noqa: SIM905
_KINDS: Final = (*_SYMBOLS, FLOAT, INT, UINT, STRING, BYTES, IDENTIFIER, ESCAPED)
ORDER: Final = {kind: place for place, kind in enumerate(_KINDS)}
"""The kinds of tokens in the order in which messages list them."""

_ESCAPE: Final = r"\\(?:[abfnrtv\"'\\?`]|[0-3][0-7][0-7]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"
_QUOTED: Final = "|".join(
    (
        rf'"""(?:{_ESCAPE}|[^\\])*?"""',
        rf"'''(?:{_ESCAPE}|[^\\])*?'''",
        r'[rR]"""[\s\S]*?"""',
        r"[rR]'''[\s\S]*?'''",
        rf'"(?:{_ESCAPE}|[^\\"\n\r])*+"',
        rf"'(?:{_ESCAPE}|[^\\'\n\r])*+'",
        r'[rR]"[^"\n\r]*+"',
        r"[rR]'[^'\n\r]*+'",
    )
)
_TOKEN: Final = re.compile(
    rf"(?P<hidden>[\t \r\n\f]++|//[^\n]*+)|(?P<BYTES>[bB](?:{_QUOTED}))|(?P<STRING>{_QUOTED})"
    r"|(?P<NUM_FLOAT>[0-9]++\.[0-9]++(?:[eE][+-]?[0-9]++)?|[0-9]++[eE][+-]?[0-9]++|\.[0-9]++(?:[eE][+-]?[0-9]++)?)"
    r"|(?P<NUM_UINT>(?:0x[0-9a-fA-F]++|[0-9]++)[uU])|(?P<NUM_INT>0x[0-9a-fA-F]++|[0-9]++)"
    r"|(?P<IDENTIFIER>[A-Za-z_][A-Za-z0-9_]*+)|(?P<ESC_IDENTIFIER>`[A-Za-z0-9_.\-/ ]++`)"
    r"|(?P<symbol>==|!=|<=|>=|&&|\|\||[<>\[\]{}().,\-!?:+*/%])"
)
_WORDS: Final = frozenset({"in", "true", "false", "null"})
_STARTED: Final = re.compile(
    rf'"(?:{_ESCAPE}|[^\\"\n\r])*+{{0}}|\'(?:{_ESCAPE}|[^\\\'\n\r])*+{{0}}|`[A-Za-z0-9_.\-/ ]*+|[=&|]'.replace(
        "{0}", r"(?:\\(?:[xX][0-9a-fA-F]?|u[0-9a-fA-F]{0,3}|U[0-9a-fA-F]{0,7}|[0-3][0-7]?)?)?"
    )
)
"""Pattern of the start of a token, such as a string, that is not terminated."""


class Token(NamedTuple):
    """A token of CEL with its start and end offsets."""

    kind: str
    text: str
    at: int
    end: int


def tokens(text: str, issues: Issues) -> tuple[list[Token], list[tuple[int, int]]]:
    """Split an expression into tokens; characters that begin no token are reported and skipped.

    Returns:
        The tokens, and the offsets of the skipped characters.
    """
    found, left_out, at, size = list[Token](), list[tuple[int, int]](), 0, len(text)
    while at < size:
        match = _TOKEN.match(text, at)
        if match is None:
            started = _STARTED.match(text, at)
            end = min(size, (started.end() if started else at) + 1)
            issues.report(at, f"Syntax error: token recognition error at: '{text[at:end]}'")
            left_out.append((at, end))
            at = end
            continue
        kind = str(match.lastgroup)
        if kind != "hidden":
            word = match[0]
            found.append(Token(word if kind == "symbol" or word in _WORDS else kind, word, at, match.end()))
        at = match.end()
    found.append(Token(EOF, EOF, size, size))
    return found, left_out
