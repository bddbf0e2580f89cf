"""`Diagnostic`: an error or warning with code, position, message and help; the table of codes; printing.

This module knows neither grammar nor types. A diagnostic contains positions but not the text, because the same one is
printed under a line of a file, stored in a status and sent as JSON. `messages.toml` has sentences, explanation and
examples of every code.
"""

from __future__ import annotations

import functools
import importlib.resources
import tomllib
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from policysched.language.ir.tree import Span
from policysched.visible import visible


@dataclass(frozen=True, slots=True)
class Message:
    """The texts of a diagnostic code: sentences, explanation and examples.

    Attributes:
        title: The code in a few words.
        meaning: Explanation beyond the title.
        reason: The reason for the rule, and the most frequent cause of the error.
        example: Part of a policy's spec, as YAML, that has only this diagnostic.
        fix: The same part without the error.
        nodes: Nodes that the example needs, as YAML.
        message: The usual sentence; empty for a code that the language itself never reports.
        help: Advice; empty if there is none.
        text: A text with this diagnostic.
        place: Field of that text: `filter`, `placement`, `appliesTo`, `score`, `cases` (one per line), `let`
            (`name = text` per line) or `policy`, for codes that need several texts.
        variants: Other sentences of the code, each with its help.
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
        """The message and help of each variant of the code; the default variant has an empty name."""
        return {"": (self.message, self.help), **self.variants}


@functools.cache
def message_table() -> Mapping[str, Message]:
    """Return all messages by code, in the order of the codes."""
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
"""Maximum length of the part of a source line that a printed diagnostic shows. Units: characters."""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """An error or a warning about the text of an expression.

    Columns count code points from 1; `end_column` is exclusive and can equal `column` at the end of a text. `field` is
    empty until a caller that knows the object sets it. `case` is the index of the line in a score's cases.
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
        """Key that sorts diagnostics by their position in the text."""
        return (-1 if self.case is None else self.case, self.line, self.column, self.end_column, self.code)


class Position(NamedTuple):
    """A position as editors show it: line, first column and last column."""

    line: int
    column: int
    end_column: int


def locate(text: str, span: Span) -> Position:
    """Return offsets as line and columns; a span over several lines ends with its first line."""
    start = min(max(span.start, 0), len(text))
    end = min(max(span.end, start), len(text))
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", start)
    end = min(end, len(text) if line_end < 0 else line_end)
    return Position(text.count("\n", 0, start) + 1, start - line_start + 1, max(end, start) - line_start + 1)


def diagnose(code: str, text: str, span: Span, variant: str = "", **values: object) -> Diagnostic:
    """Return the diagnostic of a code for a position in a text.

    Args:
        code: The code, such as `E0301`.
        text: The text to which the span refers.
        span: The smallest part that shows the cause.
        variant: The variant of the code's sentence; empty for the usual one.
        **values: Values of the placeholders; `help` replaces the sentence's own help.
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
    """Return a diagnostic as text, with the source line and carets under the position.

    Invisible characters and those that change the direction of text are escaped; carets count shown columns.
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
    """Return the part of a long source line around the marked characters.

    Returns:
        The line, the part before the mark, and the marked part.
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
    """Return the number of terminal columns of a text."""
    shown = (one for one in text if not unicodedata.combining(one))
    return sum(2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in shown)
