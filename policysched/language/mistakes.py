"""Which mistake a text that does not parse has.

Gets the tokens, the place and the terminals that could have come there, and answers with one diagnostic. Common
mistakes are recognised by what stands in the text at that place, in a fixed order; what remains is E0100. Every
terminal of the grammar has a name for users here (a test compares the two).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from lark import Token

from policysched.language.diagnostics import Diagnostic, diagnose
from policysched.language.limits import OPERAND_ENDS
from policysched.language.literals import FACTORS
from policysched.language.suggest import did_you_mean
from policysched.language.syntax import Span
from policysched.language.tree import span_of

VALUES: Final = frozenset(
    {
        "NAME",
        "NUMBER",
        "PERCENT",
        "QUANTITY",
        "DURATION",
        "STRING",
        "TRUE",
        "FALSE",
        "LPAR",
        "LSQB",
        "MINUS",
        "NOT",
        "NOT_SIGN",
    }
)
COMPARISONS: Final = frozenset({"EQ", "NE", "LT", "LE", "GT", "GE", "IN"})
OPERATORS: Final = COMPARISONS | {
    "OR",
    "OR_SIGN",
    "AND",
    "AND_SIGN",
    "NOT",
    "DEFAULT",
    "PLUS",
    "MINUS",
    "STAR",
    "SLASH",
}
TERMINALS: Final[Mapping[str, str]] = {
    "$END": "the end",
    "NAME": "a name",
    "NUMBER": "a number",
    "PERCENT": "a percentage",
    "QUANTITY": "a quantity",
    "DURATION": "a duration",
    "STRING": "a string",
    "TRUE": "`true`",
    "FALSE": "`false`",
    "ELSE": "`else`",
    "MISSING": "`missing`",
    "OR": "`or`",
    "OR_SIGN": "`||`",
    "AND": "`and`",
    "AND_SIGN": "`&&`",
    "NOT": "`not`",
    "NOT_SIGN": "`!`",
    "IN": "`in`",
    "BY": "`by`",
    "ARROW": "`→`",
    "ARROW_SIGN": "`→`",
    "EQ": "`==`",
    "NE": "`!=`",
    "LT": "`<`",
    "LE": "`<=`",
    "GT": "`>`",
    "GE": "`>=`",
    "DEFAULT": "`??`",
    "PLUS": "`+`",
    "MINUS": "`-`",
    "STAR": "`*`",
    "SLASH": "`/`",
    "LPAR": "`(`",
    "RPAR": "`)`",
    "LSQB": "`[`",
    "RSQB": "`]`",
    "COMMA": "`,`",
    "DOT": "`.`",
}
_ARROWS: Final = frozenset({"ARROW", "ARROW_SIGN"})
_NUMERIC: Final = frozenset({"NUMBER", "PERCENT", "QUANTITY", "DURATION"})
_OPENS_VALUE: Final = VALUES - {"MINUS", "LSQB", "NOT"}
_QUOTES: Final = {
    "'": "'",
    "`": "`",
    "\u201c": "\u201d",
    "\u201d": "\u201d",
    "\u201e": "\u201c",
    "\u2018": "\u2019",
    "\u2019": "\u2019",
    "\u00ab": "\u00bb",
}
_SYMBOLS: Final = re.compile(r"[=!<>~%&|^?:;@$*/+-]+")
_INSTEAD: Final[Mapping[str, str]] = {
    "=": "write `==` to compare",
    "===": "write `==` to compare",
    "=<": "write `<=`",
    "<>": "write `!=`",
    "!==": "write `!=`",
    "=>": "write `>=` to compare, `→` in a case",
    "=~": "write glob(...), starts_with(...), ends_with(...) or contains(...)",
    "!~": "write not glob(...)",
    "&": "write `and`",
    "|": "write `or`",
    "?": "write if(condition, a, b), or `??` for a default",
    ":": "write if(condition, a, b)",
    "%": "there is no remainder; percentages are written 80%",
}
_TIME: Final = re.compile(r"\d:\d")
_QUOTE_TIMES: Final = 'times are written in quotes, as in "22:00"'
_WORDS: Final = {"and", "or", "not", "in", "by", "true", "false", "else", "missing"}
_WORD: Final = re.compile(r"\w+")


def unexpected_token(text: str, tokens: Sequence[Token], index: int, accepted: Collection[str]) -> Diagnostic:
    """Return the diagnostic of a token that cannot stand where it stands."""
    token = tokens[index]
    before = tokens[index - 1] if index else None
    for recognise in (_unit, _symbols, _percent):
        found = recognise(text, before, token)
        if found is not None:
            return found
    if token.type in _ARROWS and "$END" in accepted and not any(one.type in _ARROWS for one in tokens[:index]):
        return diagnose("E0505", text, span_of(token))
    if _chains(tokens, index, accepted):
        return diagnose("E0106", text, span_of(token))
    found_name = TERMINALS[token.type]
    shown = f"`{token}`" if found_name.startswith("a ") else found_name
    return diagnose("E0100", text, span_of(token), found=shown, expected=expectation(accepted))


def unexpected_character(text: str, tokens: Sequence[Token], position: int) -> Diagnostic:
    """Return the diagnostic of a place where no token begins."""
    character = text[position]
    if character == '"':
        return _open_string(text, position)
    if character in _QUOTES:
        return diagnose("E0103", text, _quoted(text, position), found=f"`{character}`")
    before = tokens[-1] if tokens else None
    touching = before if before is not None and span_of(before).end == position else None
    word = _WORD.match(text, position)
    if word and touching is not None and touching.type in _NUMERIC:
        return _unknown_unit(text, touching, word.end())
    if word and re.search("[A-Z]", word.group()):
        return _upper_case(text, touching, word)
    if _SYMBOLS.match(text, position):
        return _no_operator(text, position)
    shown = f"`{character}`" if character.isprintable() else f"U+{ord(character):04X}"
    return diagnose("E0100", text, Span(position, position + 1), "character", found=shown)


def unexpected_end(text: str, tokens: Sequence[Token], accepted: Collection[str]) -> Diagnostic:
    """Return the diagnostic of a text that stops too early."""
    end = max(len(text.rstrip()), span_of(tokens[-1]).end if tokens else 0)
    return diagnose("E0100", text, Span(end, end), found="end", expected=expectation(accepted))


def expectation(accepted: Collection[str]) -> str:
    """Say which terminals could have come, those of one kind by their kind."""
    names: dict[str, None] = {}
    rest = set(accepted)
    if "LPAR" in rest and "STRING" in rest:
        names["a value"] = None
        rest -= VALUES
    if "OR" in rest:
        names["an operator"] = None
        rest -= OPERATORS | {"DOT", "LSQB", "LPAR", "BY"}
    for terminal, name in TERMINALS.items():
        if terminal in rest:
            names[name] = None
    *most, last = names
    return f"{', '.join(most)} or {last}" if most else last


def _touch(before: Token | None, token: Token) -> bool:
    return before is not None and span_of(before).end == span_of(token).start


def _unit(text: str, before: Token | None, token: Token) -> Diagnostic | None:
    if before is None or before.type not in _NUMERIC or not _touch(before, token):
        return None
    word = _WORD.match(text, span_of(token).start)
    if word is None or not word.group()[0].isalpha():
        return None
    return _unknown_unit(text, before, word.end())


def _unknown_unit(text: str, number: Token, end: int) -> Diagnostic:
    start = span_of(number).start
    digits = str(number).rstrip("%abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    unit = text[start + len(digits) : end]
    units = [suffix for suffix in FACTORS if suffix and suffix != "%"] + ["ms", "s", "min", "h", "d"]
    shortened = next((unit[:size] for size in (2, 1) if unit[:size] in units), "")
    meant = f"did you mean `{digits}{shortened}`?" if shortened else did_you_mean(unit, units)
    known = "units are m k M G T P E Ki Mi Gi Ti Pi Ei, and ms s min h d"
    return diagnose("E0102", text, Span(start, end), unit=unit, instead=meant or known)


def _symbols(text: str, before: Token | None, token: Token) -> Diagnostic | None:
    """Two operators without a space between them were meant as one."""
    if before is None or before.type not in OPERATORS or token.type not in OPERATORS | {"NOT_SIGN"}:
        return None
    if not _touch(before, token) or not _SYMBOLS.fullmatch(str(before)):
        return None
    return _no_operator(text, span_of(before).start)


def _percent(text: str, before: Token | None, token: Token) -> Diagnostic | None:
    """`10%3` was meant as a remainder."""
    if before is None or before.type != "PERCENT" or token.type not in _OPENS_VALUE:
        return None
    end = span_of(before).end
    return diagnose("E0101", text, Span(end - 1, end), found="%", instead=_INSTEAD["%"])


def _no_operator(text: str, position: int) -> Diagnostic:
    start, end = position, position + 1
    while start > 0 and text[start - 1] in "=!<>~":
        start -= 1
    found = _SYMBOLS.match(text, start)
    run = found.group() if found else text[position]
    if run not in _INSTEAD and text[position] in _INSTEAD:
        start, run = position, text[position]
    end = start + len(run)
    instead = _QUOTE_TIMES if run == ":" and _TIME.match(text, start - 1) else _INSTEAD.get(run, "")
    return diagnose("E0101", text, Span(start, end), found=run, instead=instead)


def _chains(tokens: Sequence[Token], index: int, accepted: Collection[str]) -> bool:
    token = tokens[index]
    following = tokens[index + 1].type if index + 1 < len(tokens) else ""
    compares = token.type in COMPARISONS or (token.type == "NOT" and following == "IN")
    return compares and "AND" in accepted and tokens[index - 1].type in OPERAND_ENDS


def _open_string(text: str, start: int) -> Diagnostic:
    line_end = text.find("\n", start)
    end = len(text) if line_end < 0 else line_end
    escape = re.compile(r'"(?:[^"\\\n]|\\["\\])*(\\[^"\\\n])').match(text, start)
    if escape:
        span = Span(*escape.span(1))
        return diagnose("E0100", text, span, "escape", found=f"`{escape.group(1)}`")
    return diagnose("E0104", text, Span(start, start + len(text[start:end].rstrip())))


def _quoted(text: str, start: int) -> Span:
    line_end = text.find("\n", start)
    closing = text.find(_QUOTES[text[start]], start + 1, len(text) if line_end < 0 else line_end)
    return Span(start, start + 1 if closing < 0 else closing + 1)


def _upper_case(text: str, touching: Token | None, word: re.Match[str]) -> Diagnostic:
    start = word.start()
    if touching is not None and touching.type in {"NAME", *(kind.upper() for kind in _WORDS)}:
        start = span_of(touching).start
    found = text[start : word.end()]
    lower = found.lower()
    snake = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", found).lower()
    return diagnose("E0105", text, Span(start, word.end()), found=found, instead=lower if lower in _WORDS else snake)
