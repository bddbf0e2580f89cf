"""Regular expressions, matched by RE2 in linear time, with the error messages of Go's `regexp`.

Source: the Go library's regexp and regexp/syntax; k8s.io/apiserver v0.36 pkg/cel/library/regex.go.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, Protocol

import re2

from policysched.budget import Budget
from policysched.cel.values.scalars import Error

_MESSAGES: Final = {
    "missing ]": "missing closing ]",
    "pattern too large - compile failed": "expression too large",
    "missing )": "missing closing )",
    "trailing \\": "trailing backslash at end of expression",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
}
"""Error messages of Go's `regexp`, by the messages of RE2."""
_KEPT: Final = 256
_MOST_BYTES: Final = 1 << 20
"""Maximum memory of RE2 for a pattern; a larger pattern is an error. Units: bytes."""
_WORK_A_CHARACTER: Final = 2
_WORK_A_CLASS: Final = 600
"""Cost of a Unicode character class in a pattern, which RE2 expands to many byte ranges."""
_WORK_AN_INSTRUCTION: Final = 2
_FEW_INSTRUCTIONS: Final = 4


class _Match(Protocol):
    def start(self) -> int:
        """Return the offset of the start of the match."""

    def end(self) -> int:
        """Return the offset of the end of the match."""


class Pattern(Protocol):
    """A compiled regular expression."""

    @property
    def programsize(self) -> int:
        """Number of instructions of the compiled pattern."""

    def search(self, text: str, pos: int = 0) -> _Match | None:
        """Find the first match of the pattern at or after an offset."""


def compiled(pattern: str, work: Budget) -> Pattern | Error:
    """Return a compiled regular expression or its error; a cached pattern costs the same as a new one.

    Raises:
        BudgetExceededError: the pattern costs too much.
    """
    classes = pattern.count("\\p") + pattern.count("\\P")
    work.spend(_WORK_A_CHARACTER * len(pattern) + _WORK_A_CLASS * classes)
    made = _compiled(pattern)
    if not isinstance(made, Error):
        work.spend(_WORK_AN_INSTRUCTION * made.programsize)
    return made


@lru_cache(maxsize=_KEPT)
def _compiled(pattern: str) -> Pattern | Error:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MOST_BYTES
    try:
        made: Pattern = re2.compile(pattern, options)
    except re2.error as error:
        return Error(f"error parsing regexp: {_message(error.args[0])}")
    return made


def _message(said: bytes | str) -> str:
    text = said.decode(errors="replace") if isinstance(said, bytes) else said
    what, _, where = text.partition(": ")
    if what == "trailing \\":
        where = ""
    return f"{_MESSAGES.get(what, what)}: `{where}`"


def matches(work: Budget, text: str, pattern: str) -> Any:
    """Return whether a text contains a match of a pattern."""
    made = compiled(pattern, work)
    return made if isinstance(made, Error) else found_in(work, made, text)


def found_in(work: Budget, pattern: Pattern, text: str) -> bool:
    """Return whether a text contains a match of a compiled pattern."""
    _spend_on(work, pattern, len(text))
    return pattern.search(text) is not None


def _spend_on(work: Budget, pattern: Pattern, characters: int) -> None:
    """Spend the worst-case cost of searching a pattern in a text: instructions times characters."""
    work.spend(8 + characters // 10 * (1 + pattern.programsize // _FEW_INSTRUCTIONS))


def find(work: Budget, text: str, pattern: str) -> Any:
    """Return the first match of a pattern in a text; an empty text if nothing matches."""
    made = compiled(pattern, work)
    if isinstance(made, Error):
        return Error(f"Illegal regex: {made.message}")
    return first_of(work, made, text)


def first_of(work: Budget, pattern: Pattern, text: str) -> str:
    """Return the first match of a compiled pattern in a text; an empty text if nothing matches."""
    _spend_on(work, pattern, len(text))
    match = pattern.search(text)
    return text[match.start() : match.end()] if match else ""


def find_all(work: Budget, text: str, pattern: str, most: int = -1) -> Any:
    """Return the non-overlapping matches of a pattern in a text, at most `most`; -1 means all."""
    made = compiled(pattern, work)
    if isinstance(made, Error):
        return Error(f"Illegal regex: {made.message}")
    return all_of(work, made, text, most)


def all_of(work: Budget, pattern: Pattern, text: str, most: int = -1) -> list[str]:
    """Return the non-overlapping matches of a compiled pattern in a text, at most `most`; -1 means all."""
    found: list[str] = []
    at, before = 0, -1
    while at <= len(text) and (most < 0 or len(found) < most):
        _spend_on(work, pattern, len(text) - at)
        match = pattern.search(text, at)
        if match is None:
            break
        start, end = match.start(), match.end()
        if end == at and start == end:
            accepted = start != before
            at += 1
        else:
            accepted = True
            at = end
        before = end
        if accepted:
            found.append(text[start:end])
    return found


SPENDING: Final[dict[str, Callable[..., Any]]] = {
    "matches": matches,
    "matches_string": matches,
    "string_find_string": find,
    "string_find_all_string": find_all,
    "string_find_all_string_int": find_all,
}
"""Functions on patterns whose first argument is a budget; text and pattern sizes are subtracted from it."""
WITH_CONSTANT: Final[dict[str, Callable[..., Any]]] = {"matches": found_in, "find": first_of, "findAll": all_of}
"""Versions of the pattern functions for a constant pattern, which is compiled with the expression."""
