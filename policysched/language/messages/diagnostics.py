"""Diagnostics as values (code, position, message, help), the table of all codes, and how diagnostics are printed.

This module knows nothing of grammar or types. A diagnostic carries no text of its own but positions, because the
same one is printed under a line of a file, stored in a status and sent as JSON. Every code has its sentences,
explanation and examples in `messages.toml`.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from policysched.language.ir.tree import Span
from policysched.visible import visible


@dataclass(frozen=True, slots=True)
class Message:
    """Everything that is said about a code.

    Attributes:
        title: The code in a few words.
        meaning: What the code says, beyond its title.
        reason: Why the language is like that, and what is behind the error most often.
        example: Part of a policy's spec, as YAML, that gets this code and no other.
        fix: The same part without the error.
        nodes: The nodes that the example needs, as YAML, where it needs any.
        message: The usual sentence; empty for a code that the language itself never gives.
        help: What to do; empty where there is nothing to say.
        text: A text that gets this code.
        place: Where that text stands: `filter`, `appliesTo`, `score`, `cases` (one a line), `let` (`name = text`
            a line) or `policy`, for the codes that need more than one text.
        variants: Other sentences of the same code, each with its own help.
    """

    title: str
    meaning: str
    reason: str
    example: str
    fix: str
    nodes: str = ""
    message: str = ""
    help: str = ""
    text: str = ""
    place: str = "filter"
    variants: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def sentences(self) -> Mapping[str, tuple[str, str]]:
        """All sentences with their help by variant, the usual one under the empty name."""
        return {"": (self.message, self.help), **self.variants}


@functools.cache
def message_table() -> Mapping[str, Message]:
    """Return all messages by code, in the order of the codes."""
    import importlib.resources  # noqa: PLC0415 texts without errors do not wait for it
    import tomllib  # noqa: PLC0415 - as above

    text = importlib.resources.files(__package__).joinpath("messages.toml").read_text("utf-8")
    return {code: _message(entry) for code, entry in tomllib.loads(text).items()}


def _message(entry: dict[str, Any]) -> Message:
    for name, parts in entry.pop("repeat", {}).items():
        numbers = map(str, range(parts.get("from", 0), parts["to"]))
        text = parts.get("between", "").join(parts["of"].replace("{n}", number) for number in numbers)
        for key in ("text", "example"):
            entry[key] = entry.get(key, "").replace(f"<{name}>", text)
    for key in ("meaning", "reason"):
        entry[key] = " ".join(entry[key].split())
    variants = {name: (message, hint) for name, (message, hint) in entry.pop("variants", {}).items()}
    return Message(**entry, variants=variants)


Severity: TypeAlias = Literal["error", "warning"]
WIDEST: Final = 120
"""How much is shown of a line at most. Units: characters."""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding about a text.

    Columns count code points from 1, `end_column` is exclusive and may equal `column` at the end of a text.
    `field` is left empty here: who knows the object fills it in. `case` is the index of the line in a score's cases.
    """

    severity: Severity
    code: str
    message: str
    line: int
    column: int
    end_column: int
    help: str | None = None
    field: str = ""
    case: int | None = None

    @property
    def sort_key(self) -> tuple[int, int, int, int, str]:
        """Order of reading."""
        return (-1 if self.case is None else self.case, self.line, self.column, self.end_column, self.code)


class Position(NamedTuple):
    """A position as editors count it."""

    line: int
    column: int
    end_column: int


def locate(text: str, span: Span) -> Position:
    """Turn offsets into a line and columns; a span over several lines is cut at the end of its first one."""
    start = min(max(span.start, 0), len(text))
    end = min(max(span.end, start), len(text))
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", start)
    end = min(end, len(text) if line_end < 0 else line_end)
    return Position(text.count("\n", 0, start) + 1, start - line_start + 1, max(end, start) - line_start + 1)


def diagnose(code: str, text: str, span: Span, variant: str = "", **values: object) -> Diagnostic:
    """Make a diagnostic from the table of codes.

    Args:
        code: The code, as `E0301`.
        text: The text that the span points into.
        span: The smallest part of it that shows the cause.
        variant: Which of the code's sentences; empty for the usual one.
        **values: What the sentence's placeholders stand for; `help` replaces the sentence's own help.
    """
    message, usual_help = message_table()[code].sentences[variant]
    special_help = values.pop("help", None)
    help_text = usual_help.format(**values) if special_help is None else str(special_help)
    place = locate(text, span)
    return Diagnostic(
        severity="warning" if code.startswith("W") else "error",
        code=code,
        message=message.format(**values),
        line=place.line,
        column=place.column,
        end_column=place.end_column,
        help=help_text or None,
    )


def render(diagnostic: Diagnostic, text: str, title: str) -> str:
    """Return a diagnostic under its line of the text, with carets.

    Characters that nobody sees or that turn others round are written out; carets count what is shown.
    """
    lines = text.split("\n")
    line = lines[min(diagnostic.line, len(lines)) - 1].removesuffix("\r")
    before, marked = line[: diagnostic.column - 1], line[diagnostic.column - 1 : diagnostic.end_column - 1]
    line, before, marked = (_printable(part) for part in _window(line, before, marked))
    number = str(diagnostic.line)
    gutter = " " * (len(number) + 2) + "|"
    shown = [
        f"{diagnostic.severity}[{diagnostic.code}]: {_printable(diagnostic.message)}",
        f"{' ' * (len(number) + 1)}--> {visible(title)}:{diagnostic.line}:{diagnostic.column}",
        gutter,
        f" {number} | {line}".rstrip(),
        f"{gutter} {' ' * _width(before)}{'^' * max(1, _width(marked))}",
    ]
    if diagnostic.help:
        shown.append(f"{' ' * (len(number) + 2)}= help: {_printable(diagnostic.help)}")
    return "\n".join(shown)


def _window(line: str, before: str, marked: str) -> tuple[str, str, str]:
    """Cut a long line to what stands around the mark.

    Returns:
        The line, what is before the mark, and what is marked.
    """
    if len(line) <= WIDEST:
        return line, before, marked
    start = max(0, len(before) - WIDEST // 3)
    shown = line[start : start + WIDEST]
    left, right = "…" if start else "", "…" if start + len(shown) < len(line) else ""
    before = left + before[start:]
    return left + shown + right, before, marked[: WIDEST + len(left) - len(before)]


def _printable(text: str) -> str:
    return visible(text.replace("\t", " "))


def _width(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    shown = (one for one in text if not unicodedata.combining(one))
    return sum(2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in shown)
