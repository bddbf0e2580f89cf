"""What is wrong with a field or a method behind a value, as in `node.labels["a"].contains("x")`: values have neither.

Gets tokens and says in one sentence what to write, with the writer's own value; nothing where that cannot be told.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from lark import Token

from policysched.language.functions import FUNCTIONS
from policysched.language.ir.names import FIELDS, GROUPS, POD_FUNCTIONS, Names
from policysched.language.messages import foreign_syntax
from policysched.language.messages.foreign_syntax import snake
from policysched.language.syntax.grammar import CLOSING, OPENING, span_of

_MEMBER: Final = re.compile(r"\.\s*+(\w++)\s*+(\(([^()]*+)\))?")
_NAMES: Final = frozenset({"NAME", "DOT"})
LONGEST: Final = 80
"""How long the user's own texts may be that a help repeats. Units: characters."""
_NO_FIELDS: Final = "values have no fields"


def behind_value(text: str, tokens: Sequence[Token], index: int) -> str:
    """Return what to write in place of the name behind a dot that stands behind a value."""
    found = _MEMBER.match(text, span_of(tokens[index]).start) if tokens[index].type == "DOT" and index else None
    if found is None:
        return ""
    first = _begin(tokens[:index])
    path = names_of(tokens[first:index])
    wrong = wrong_field((*path, snake(found[1])) if found[2] is None else path)
    if wrong or found[2] is None:
        return wrong or _NO_FIELDS
    bracket = int(tokens[first].type == "LPAR")
    receiver = " ".join(text[span_of(tokens[first]).start + bracket : found.start() - bracket].split())
    given = " ".join(found[3].split())
    if len(receiver) + len(given) > LONGEST:
        receiver, given = "...", given and "..."
    return foreign_syntax.method(snake(found[1]), receiver, given, FUNCTIONS)


def wrong_field(path: Names) -> str:
    """Return what was meant by a path that begins with names of which there is no field; nothing where there is one."""
    for size in range(2, len(path) + 1):
        if path[:1] in GROUPS and not any(path[:size] in known for known in (FIELDS, GROUPS, POD_FUNCTIONS)):
            return foreign_syntax.field(path, size) if path[: size - 1] not in FIELDS else ""
    return ""


def names_of(tokens: Sequence[Token]) -> Names:
    """Return the names, with dots between them, that some tokens begin with."""
    names = []
    for token in tokens:
        if token.type not in _NAMES:
            break
        names.append(str(token))
    return tuple(name for name in names if name != ".")


def _begin(tokens: Sequence[Token]) -> int:
    """Find where the value begins that some tokens end with: a path with or without a key, a call, brackets, a text."""
    place = len(tokens) - 1
    if tokens[place].type == "STRING":
        return place
    while place >= 0 and tokens[place].type in _NAMES | CLOSING:
        if tokens[place].type in CLOSING:
            place = _opening(tokens, place)
        place -= 1
    return place + 1


def _opening(tokens: Sequence[Token], place: int) -> int:
    """Find the bracket that one closes."""
    depth = 0
    while place > 0:
        depth += (tokens[place].type in CLOSING) - (tokens[place].type in OPENING)
        if not depth:
            break
        place -= 1
    return place
