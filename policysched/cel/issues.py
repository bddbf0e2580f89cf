"""Errors in a CEL expression with their positions, formatted as by cel-go.

Source: cel-go v0.26 common/error.go, common/errors.go.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

NOWHERE: Final = -1
"""The offset of an error that concerns the whole text."""
_MOST: Final = 100
_LONGEST_LINE: Final = 16384


@dataclass(frozen=True, slots=True)
class Issue:
    """An error in an expression; `at` is an offset in code points; line and column count from 1."""

    message: str
    at: int
    line: int
    column: int


@dataclass(slots=True)
class Issues:
    """The errors of one expression."""

    text: str
    found: list[Issue] = field(default_factory=list)
    number: int = 0

    def report(self, at: int, message: str) -> None:
        """Add an error; after 100 errors, further errors are only counted."""
        self.number += 1
        if self.number <= _MOST:
            self.found.append(Issue(message, at, *self._place(at)))

    def shown(self) -> str:
        """Return all errors as text in the order of their positions, each with its line and a caret."""
        lines = self.text.split("\n")
        said = [_shown(one, lines) for one in self.ordered()]
        if self.number > _MOST:
            said.append(f"{self.number - _MOST} more errors were truncated")
        return "\n".join(said)

    def ordered(self) -> list[Issue]:
        """Return the errors in the order of their positions."""
        return sorted(self.found, key=lambda one: (one.line, one.column))

    def _place(self, at: int) -> tuple[int, int]:
        if at < 0:
            return -1, 0
        if not self.text:
            return 1, 0
        before = self.text[:at]
        return before.count("\n") + 1, at - (before.rfind("\n") + 1) + 1


def _shown(one: Issue, lines: list[str]) -> str:
    said = f"ERROR: <input>:{one.line}:{one.column}: {one.message}"
    if one.line < 1 or one.column < 1:
        return said
    line = lines[one.line - 1]
    if len(line.encode(errors="surrogatepass")) > _LONGEST_LINE:
        return said
    line = line.replace("\t", " ")
    dots = "".join("." if character < "\x80" else "．" for character in line[: one.column - 1])
    here = line[one.column - 1 : one.column]
    return f"{said}\n | {line}\n | {dots}{'＾' if here > chr(127) else '^'}"
