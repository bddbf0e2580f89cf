"""Diagnostics for texts that do not parse.

Functions take the tokens, the position and the accepted terminals, and return one diagnostic. Common errors are
recognized by the text at the position, in a fixed order. Other errors are E0100, with suggestions for syntax of other
languages.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Sequence
from typing import Final

from lark import Token

from policysched.language.functions import FUNCTIONS
from policysched.language.ir.tree import Span
from policysched.language.ir.types import FIELDS, GROUPS, METHODS, ROOTS, Names
from policysched.language.messages import foreign_syntax
from policysched.language.messages.diagnostics import Diagnostic, diagnose
from policysched.language.messages.foreign_syntax import LISTS, snake
from policysched.language.messages.suggestions import shown, table
from policysched.language.syntax.list_errors import CONSTANTS, OPENS_VALUE, in_list
from policysched.language.syntax.terminals import (
    CLOSING,
    COMPARISONS,
    KEYWORDS,
    OPENING,
    OPERAND_ENDS,
    OPERATORS,
    TERMINALS,
    expectation,
    span_of,
)
from policysched.language.syntax.units import NUMERIC, apart, is_apart_from, number_meant, touch, unknown_unit

_MEMBER: Final = re.compile(r"\.\s*+(\w++)\s*+(\(([^()]*+)\))?")
_NAMES: Final = frozenset({"NAME", "DOT"})
_BLANKS: Final = re.compile(r'("(?:[^"\\\n]|\\.)*+")|(?:\s|#[^\n]*+)++')
LONGEST: Final = 80
"""Maximum length of the part of the user's text that a help text repeats. Units: characters."""
_TEXT: Final = r'"(?:[^"\\\n]|\\["\\])*+"'
_BRACES: Final = re.compile(rf"\{{\s*+({_TEXT}(?:\s*+,\s*+{_TEXT})*+)\s*+\}}")
_ELVIS: Final = re.compile(rf"\?:\s*+({_TEXT}|[a-z0-9_.]++%?+(?:\[{_TEXT}\])?+(?:\([^()]*+\))?+)", re.IGNORECASE)
_NO_FIELDS: Final = "values have no fields"


def behind_value(text: str, tokens: Sequence[Token], index: int) -> str:
    """Return the suggestion for a name after a dot that follows a value."""
    found = _MEMBER.match(text, span_of(tokens[index]).start) if tokens[index].type == "DOT" and index else None
    if found is None:
        return ""
    first = _begin(tokens[:index])
    path = names_of(tokens[first:index])
    wrong = wrong_field((*path, snake(found[1])) if found[2] is None else path)
    if wrong or found[2] is None:
        return wrong or _NO_FIELDS
    name, start = snake(found[1]), span_of(tokens[first]).start
    # The argument of a function needs no parentheses.
    bracket = int(tokens[first].type == "LPAR" and name not in table("operators"))
    receiver = one_line(text[start + bracket : found.start() - bracket])
    given = one_line(found[3])
    if len(receiver) + len(given) > LONGEST:
        receiver, given = "...", given and "..."
    return foreign_syntax.method(name, receiver, given, FUNCTIONS, foreign_syntax.around(text, start, found.end()))


def one_line(text: str) -> str:
    """Return a part of the text on a single line, without comments."""
    return _BLANKS.sub(lambda found: found[1] or " ", text).strip()


def wrong_field(path: Names) -> str:
    """Return the suggestion for a path that begins with unknown names; empty if the field exists."""
    if said := path and (foreign_syntax.without_root(path) or foreign_syntax.foreign_root(path)):
        return said
    for size in range(2, len(path) + 1):
        if path[:1] in GROUPS and not any(path[:size] in known for known in _PATHS):
            parent = path[: size - 1]
            inside = parent in FIELDS and parent != ("pod", "containers")
            return "" if inside else foreign_syntax.field(path, size)
    return ""


def names_of(tokens: Sequence[Token]) -> Names:
    """Return the names at the beginning of a sequence of tokens, up to a token that is neither a name nor a dot."""
    names = []
    for token in tokens:
        if token.type not in _NAMES:
            break
        names.append(str(token))
    return tuple(name for name in names if name != ".")


def _begin(tokens: Sequence[Token]) -> int:
    """Return the index of the token at which the value that ends the tokens begins."""
    place, depth = len(tokens) - 1, 0
    if tokens[place].type in CONSTANTS:
        return place
    while place >= 0 and (depth or tokens[place].type in _NAMES | CLOSING):
        depth += (tokens[place].type in CLOSING) - (tokens[place].type in OPENING)
        place -= 1
    return place + 1


_ARROWS: Final = frozenset({"ARROW", "ARROW_SIGN"})
_ARROW_MEANT: Final = re.compile(
    r"(?:=+>?|-+\s*+>|[\u2013\u2014]\s*+>?|:|[\u21d2\u27f6\u279c\u2794\u279d\u27a1\ufe0f]++)\s*+(\d++(?:\.\d++)?+)\s*+\Z"
)
"""Pattern of symbols that probably mean the arrow of a case, with the number after them."""
_QUOTES: Final = {
    "'": "'", "`": "`", "\u201c": "\u201d", "\u201d": "\u201d", "\u201e": "\u201c", "\u201f": "\u201d",
    "\u2018": "\u2019", "\u2019": "\u2019", "\u201a": "\u2018", "\u201b": "\u2019", "\u00ab": "\u00bb",
    "\u00bb": "\u00ab", "\u2039": "\u203a", "\u203a": "\u2039", "\u300c": "\u300d",
    **{quote: quote for quote in "\u00b4\u2032\u2033\u02ba\u301d\u301e\uff02\uff07"},
}  # fmt: skip
"""Closing quotes by opening quotes, for quotation marks that the language does not accept."""
_SYMBOLS: Final = re.compile(r"[=!<>~%&|^?:;@$*/+-]+")
_TIME: Final = re.compile(r"\d:\d")
_QUOTE_TIMES: Final = 'write times in quotes, as in "22:00"'
_KNOWN: Final = {*KEYWORDS, *ROOTS, *(name for names in FIELDS for name in names)}
_PATHS: Final = (FIELDS, GROUPS, METHODS)
_TOP: Final = ("node", "pod", "cluster")
_WORD: Final = re.compile(r"\w+")
_IS_NOTHING: Final = re.compile(r"is\s++(not\s++)?+(\w++)")
_PATH: Final = re.compile(r'(\w++(?:\.\w++)*+)(?:\["([^"\\\n]*+)"\])?')
_EQUALITIES: Final = frozenset({"EQ", "NE"})
_EQUALS: Final = re.compile(rf"\s*+(==|!=)\s*+({_PATH.pattern})")


def unexpected_token(text: str, tokens: Sequence[Token], index: int, accepted: Collection[str]) -> Diagnostic:
    """Return the diagnostic for a token that the grammar does not accept at its position."""
    token = tokens[index]
    before = tokens[index - 1] if index else None
    minus = before if before is not None and before.type == "MINUS" and token.type in _ARROWS else None
    if minus and (arrow := _wrong_arrow(text, tokens[: index - 1], span_of(minus).start, _ARROWS)):
        span = Span(span_of(minus).start, span_of(token).end)
        return diagnose("E0101", text, span, found=text[span.start : span.end], instead=arrow)
    for recognise in (_unit, _symbols):
        if error := recognise(text, before, token):
            return error
    if token.type in _ARROWS and "$END" in accepted and not any(one.type in _ARROWS for one in tokens[:index]):
        return diagnose("E0505", text, span_of(token))
    following = [one.type for one in tokens[index + 1 : index + 2]]
    compares = token.type in COMPARISONS or (token.type == "NOT" and following == ["IN"])
    if compares and "AND" in accepted and tokens[index - 1].type in OPERAND_ENDS:
        return diagnose("E0106", text, span_of(token))
    found_name = TERMINALS[token.type]
    found = f"`{token}`" if found_name.startswith("a ") else found_name
    instead = (
        _is_nothing(text, tokens, index)
        or _instead(tokens, index)
        or _arrow(text, tokens, index, accepted)
        or behind_value(text, tokens, index)
    )
    return diagnose("E0100", text, span_of(token), found=found, expected=expectation(accepted), instead=instead)


def _instead(tokens: Sequence[Token], index: int) -> str:
    """Return the suggestion for syntax that other languages have, such as `&&`; empty for other tokens."""
    token = tokens[index]
    if token.type == "BY" or (index and tokens[index - 1].type == "BY"):
        return "write `by` and a field after the brackets, as in sum(x) by node.zone"
    listing = in_list(tokens, index)
    if listing:
        return listing
    if index and (numbers := number_meant(tokens[index - 1], token, tokens[index + 1 :])):
        return numbers
    # `if x` is a name followed by another name for the grammar.
    names = [str(one) for one in (token, *tokens[index - 1 : index]) if one.type == "NAME"]
    return next((table("words")[name] for name in names if name in table("words")), "")


def _is_nothing(text: str, tokens: Sequence[Token], index: int) -> str:
    """Return the condition to suggest for `x is null` or `x is not null`."""
    found = _IS_NOTHING.match(text, span_of(tokens[index]).start) if index else None
    if found is None or found[2].lower() not in table("nothing"):
        return ""
    value = one_line(text[span_of(tokens[_begin(tokens[:index])]).start : span_of(tokens[index]).start])
    return foreign_syntax.nothing(value, differs=found[1] is not None)


def _arrow(text: str, tokens: Sequence[Token], index: int, accepted: Collection[str]) -> str:
    """Return the suggestion for a case without an arrow."""
    if not _ARROWS & set(accepted) or tokens[index].type not in NUMERIC or index + 1 < len(tokens):
        return ""
    guard = one_line(text[: span_of(tokens[index]).start])
    return f"write `{guard} → {tokens[index]}`" if shown(guard) == guard else "write `→` between guard and number"


def unexpected_character(
    text: str, tokens: Sequence[Token], position: int, accepted: Collection[str] = ()
) -> Diagnostic:
    """Return the diagnostic of a position at which no token begins."""
    character = text[position]
    if character == '"':
        return _open_string(text, position)
    if character in _QUOTES:
        return _wrong_quotes(text, position)
    found = _bad_word(text, tokens, position)
    if found is not None:
        return found
    if _SYMBOLS.match(text, position):
        arrow = _wrong_arrow(text, tokens, position, accepted)
        return _elvis(text, tokens, position) or _no_operator(text, position, arrow)
    template = text.startswith(("{{", "}}"), position)
    if template or character in "{}":
        items = _BRACES.match(text, position)
        instead = f"write `[{one_line(items[1])}]`" if items and len(items[1]) <= LONGEST else LISTS
        instead = "expressions are not templates; remove {{ and }}" if template else instead
    elif arrow := _wrong_arrow(text, tokens, position, accepted):
        instead = arrow
    elif character.isspace() or not character.isprintable():
        instead = "write a plain space" if character.isspace() else "remove this invisible character"
    else:
        instead = "" if character.isascii() else "outside of strings, use only a to z, digits and signs"
    span = Span(position, position + 1 + template)
    return diagnose("E0100", text, span, "character", found=_named(character), instead=instead)


def _bad_word(text: str, tokens: Sequence[Token], position: int) -> Diagnostic | None:
    """Return the diagnostic of a word that is not a token: a unit, or a name with capitals."""
    word = _WORD.match(text, position)
    if word is None:
        return None
    before = tokens[-1] if tokens else None
    touching = before if before is not None and span_of(before).end == position else None
    if touching is not None and touching.type in NUMERIC:
        return unknown_unit(text, touching, word.end())
    if before is not None and touching is None and is_apart_from(before, word.group()):
        return apart(text, before, word.group(), word.end())
    if not re.search("[A-Z]", word.group()):
        return None
    start = word.start()
    if touching is not None and touching.type in {"NAME", *(kind.upper() for kind in KEYWORDS)}:
        start, tokens = span_of(touching).start, tokens[:-1]
    span = Span(start, word.end())
    found, names = text[span.start : span.end], _before(tokens)
    path, key = _whole(text, names, span)
    said = foreign_syntax.foreign_root(path, key) or _method(text, names, span) or foreign_syntax.keyed(names, found)
    said = said or wrong_field(path) or wrong_field((*names, snake(found)))
    known = found.lower() in KEYWORDS or found.lower() in table("nothing")
    if not said and not names and not known and text[span.end : span.end + 1] not in {".", "("}:
        said = foreign_syntax.name(snake(found), (), (), _TOP)
    if said:
        return diagnose("E0105", text, span, found=found, help=said)
    return _no_field(text, names, span) or _upper_case(text, tokens, span)


def _no_field(text: str, parent: Names, span: Span) -> Diagnostic | None:
    """Return the diagnostic of a name with capitals that is not a field in lower case either."""
    found, parent = text[span.start : span.end], foreign_syntax.without_layers(parent)
    if parent not in GROUPS or text[span.end : span.end + 1] == "(":
        return None
    if any(one in known for one in ((*parent, snake(found)), (*parent, found.lower())) for known in _PATHS):
        return None
    return diagnose("E0202", text, span, parent=".".join(parent), field=shown(found), suggestion="")


def _whole(text: str, before: Names, span: Span) -> tuple[Names, str]:
    """Return all names of the path that begins with the names `before`, and the key behind them."""
    found = _PATH.match(text, span.start)
    if found is None or text.startswith("(", found.end()):  # the name of a method is not a field
        return before or (snake(text[span.start : span.end]),), "..."
    return (*before, *map(snake, found[1].split("."))), "..." if found[2] is None else found[2]


def _named(character: str) -> str:
    """Return a character for a message, with its code point and name if it is ambiguous or invisible."""
    if character.isascii() and character.isprintable():
        return f"`{character}`"
    number = ", ".join(filter(None, (f"U+{ord(character):04X}", unicodedata.name(character, "").lower())))
    return f"`{character}` ({number})" if character.isprintable() else number


def unexpected_end(text: str, tokens: Sequence[Token], accepted: Collection[str]) -> Diagnostic:
    """Return the diagnostic of a text that ends too early."""
    end = max(len(text.rstrip()), span_of(tokens[-1]).end if tokens else 0)
    if not tokens:
        return diagnose("E0100", text, Span(end, end), "no case" if "ELSE" in accepted else "nothing")
    instead = _no_number(text, tokens) if _ARROWS & set(accepted) else ""
    return diagnose("E0100", text, Span(end, end), found="end", expected=expectation(accepted), instead=instead)


def _no_number(text: str, tokens: Sequence[Token]) -> str:
    """Return the suggestion for a case with only a guard, or only a number."""
    given = one_line(text)
    if len(given) > LONGEST:
        return "write a case as `guard → number`, as in `node.ready → 80`"
    if len(tokens) == 1 and tokens[0].type in NUMERIC:
        return f"write a case as `guard → number`: `else → {given}`, or a condition instead of `else`"
    return f"write a case as `guard → number`, as in `{given} → 80`"


def _unit(text: str, before: Token | None, token: Token) -> Diagnostic | None:
    if before is None or before.type not in NUMERIC:
        return None
    word = _WORD.match(text, span_of(token).start)
    if touch(before, token) and word is not None and word[0][0].isalpha():
        return unknown_unit(text, before, word.end())
    if token.type == "NAME" and is_apart_from(before, str(token)):
        return apart(text, before, str(token), span_of(token).end)
    return None


def _symbols(text: str, before: Token | None, token: Token) -> Diagnostic | None:
    """Return the diagnostic of invalid operators: two without a space between them, or `10%3`."""
    if token.type == "NOT_SIGN" and text.startswith("!~", span_of(token).start):
        return _no_operator(text, span_of(token).start)
    if before is not None and before.type == "PERCENT" and token.type in OPENS_VALUE:
        end = span_of(before).end
        return diagnose("E0101", text, Span(end - 1, end), found="%", instead=table("signs")["%"])
    if before is None or before.type not in OPERATORS or token.type not in OPERATORS | {"NOT_SIGN"}:
        return None
    if not touch(before, token) or not _SYMBOLS.fullmatch(str(before)):
        return None
    return _no_operator(text, span_of(before).start)


def _elvis(text: str, tokens: Sequence[Token], position: int) -> Diagnostic | None:
    """Return the diagnostic of `?:` between two values, which probably means `??`."""
    right = _ELVIS.match(text, position)
    if right is None or not tokens:
        return None
    left = one_line(text[span_of(tokens[_begin(tokens)]).start : span_of(tokens[-1]).end])
    fits = left and len(left) + len(right[1]) <= LONGEST
    instead = f"write `{left} ?? {one_line(right[1])}`" if fits else table("signs")["?:"]
    return diagnose("E0101", text, Span(position, position + 2), found="?:", instead=instead)


def _wrong_arrow(text: str, tokens: Sequence[Token], position: int, accepted: Collection[str]) -> str:
    """Return the suggestion for a case with a wrong symbol instead of the arrow."""
    found = _ARROW_MEANT.match(text, position)
    if found is None or not tokens or not _ARROWS & set(accepted):
        return ""
    guard = one_line(text[:position]).rstrip("- ")
    return f"write `{guard} → {found[1]}`" if len(guard) <= LONGEST else "write `→` between guard and number"


def _no_operator(text: str, position: int, meant: str = "") -> Diagnostic:
    start, end = position, position + 1
    while start > 0 and text[start - 1] in "=!<>~":
        start -= 1
    found = _SYMBOLS.match(text, start)
    run = found.group() if found else text[position]
    if run not in table("signs") and text[position] in table("signs"):
        start, run = position, text[position]
    end = start + len(run)
    usual = _QUOTE_TIMES if run == ":" and _TIME.match(text, start - 1) else table("signs").get(run, "")
    instead = meant or usual
    return diagnose("E0101", text, Span(start, end), found=run, instead=instead)


def _line_end(text: str, start: int) -> int:
    found = text.find("\n", start)
    return len(text) if found < 0 else found


def _open_string(text: str, start: int) -> Diagnostic:
    end = _line_end(text, start)
    escape = re.compile(r'"(?:[^"\\\n]|\\["\\])*(\\[^"\\\n])').match(text, start)
    if escape:
        span = Span(*escape.span(1))
        return diagnose("E0100", text, span, "escape", found=f"`{escape.group(1)}`")
    return diagnose("E0104", text, Span(start, start + len(text[start:end].rstrip())))


def _wrong_quotes(text: str, start: int) -> Diagnostic:
    closing = text.find(_QUOTES[text[start]], start + 1, _line_end(text, start))
    end = start + 1 if closing < 0 else closing + 1
    inside = text[start + 1 : closing] if closing > 0 else ""
    plain = inside.isprintable() and not set('"\\') & set(inside) and shown(inside) == inside
    instead = f'write `"{inside}"`' if inside and plain else 'write strings in double quotes, as in "a"'
    return diagnose("E0103", text, Span(start, end), found=f"`{text[start]}`", instead=instead)


def _method(text: str, receiver: Names, span: Span) -> str:
    """Return the suggestion for a method with capitals, such as `node.name.startsWith("a")`."""
    opens, end = span.end, text.find(")", span.end)
    given = text[opens + 1 : end]
    if not receiver or text[opens : opens + 1] != "(" or end < 0 or "(" in given:
        return ""
    name = snake(text[span.start : span.end])
    beside = foreign_syntax.around(text, span.start - len(".".join(receiver)) - 1, end + 1)
    return foreign_syntax.call((*receiver, name), FUNCTIONS, one_line(shown(given)), beside)


def _before(tokens: Sequence[Token]) -> Names:
    """Return the names before a dot that ends the tokens; empty if the tokens do not end with a dot."""
    first = len(tokens)
    while first > 0 and tokens[first - 1].type in _NAMES:
        first -= 1
    return names_of(tokens[first:]) if tokens[first:] and tokens[-1].type == "DOT" else ()


def _compared_with_nothing(text: str, tokens: Sequence[Token], end: int) -> str:
    """Return the condition to suggest for `x == None` or `None == x`.

    Args:
        text: The text.
        tokens: The tokens before `None`.
        end: End of `None`.
    """
    if tokens and tokens[-1].type in _EQUALITIES:
        operator, first = span_of(tokens[-1]), span_of(tokens[_begin(tokens[:-1])])
        value, sign = one_line(text[first.start : operator.start]), str(tokens[-1])
    elif found := _EQUALS.match(text, end):
        value, sign = found[2], found[1]
    else:
        return table("nothing")["none"]
    return foreign_syntax.nothing(value, differs=sign == "!=")


def _upper_case(text: str, tokens: Sequence[Token], span: Span) -> Diagnostic:
    found = text[span.start : span.end]
    lower = found.lower()
    usual = snake(found)
    instead = f"`{lower if lower in KEYWORDS else usual}`"
    if lower in table("nothing"):
        return diagnose("E0105", text, span, found=found, help=_compared_with_nothing(text, tokens, span.end))
    if lower in table("words") and text[: span.start].strip() and text[span.end : span.end + 1] not in {".", "(", "["}:
        return diagnose("E0105", text, span, found=found, help=table("words")[lower])
    if found[0].isupper() and usual not in _KNOWN and text[span.end : span.end + 1] not in {".", "(", "["}:
        instead += f', or `"{found}"` if it is a string'
    return diagnose("E0105", text, span, found=found, instead=instead)
