"""Printing with Rich: colors and progress on a terminal, plain text at full width elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import typer
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from policysched.cli.output import print_text
from policysched.cli.tables import table_lines
from policysched.visible import visible, visible_lines, without_commands

WIDTH: Final = 200
"""Width of the output if stdout is no terminal. Units: columns."""
_FINDING: Final[Mapping[str, str]] = {
    r"\Aerror\[\w+\](?=:)": "bold red",
    r"\Awarning\[\w+\](?=:)": "bold yellow",
    r"\A\w+\[\w+\]: .*": "bold",
    r"(?m)^ *\d* \|| *-->|^ *= (in|help)": "blue",
    r"(?m)(?<=\|) *\^+$": "bold red",
}


def console(*, stderr: bool = False) -> Console:
    """Return the console of stdout or stderr; Rich reads NO_COLOR, TERM and COLUMNS."""
    stream = sys.stderr if stderr else sys.stdout
    return Console(stderr=stderr, width=None if stream.isatty() else WIDTH, highlight=False, markup=False, emoji=False)


@contextmanager
def working(text: str) -> Iterator[Callable[[str], None]]:
    """Show a progress line on stderr inside this context, if stderr is a terminal; then remove the line.

    Yields a function that updates the line.
    """
    out = console(stderr=True)
    if not out.is_terminal:
        yield lambda _: None
        return
    with out.status(Text(visible(text))) as status:
        yield lambda now: status.update(Text(visible(f"{text}: {now}")))


def print_parts(parts: Iterable[RenderableType], *, wide: bool = False, out: Console | None = None) -> None:
    """Print lines and tables one after another, with an empty line before each table that follows other output.

    Args:
        parts: The parts.
        wide: Whether tables have all columns at any width.
        out: The console that shows progress and printed other parts; default: a new one.
    """
    follows = out is not None
    out = out or console()
    is_terminal = sys.stdout.isatty()
    for number, part in enumerate(parts):
        if isinstance(part, Table):
            if number or follows:
                _print_line(out, "")
            for line in table_lines(part, out.width if is_terminal else None, wide=wide):
                _print_line(out, line)
        elif is_terminal:
            out.print(part)
        else:
            _print_line(out, part)


def _print_line(out: Console, line: RenderableType) -> None:
    """Print one line, of any width."""
    if sys.stdout.isatty():
        out.print(line, soft_wrap=True)
        return
    with out.capture() as printed:
        out.print(line, soft_wrap=True)
    typer.echo("\n".join(without_commands(one.rstrip()) for one in printed.get().splitlines()))


def print_finding(text: str, *, stderr: bool = False) -> None:
    """Print a finding and an empty line."""
    console(stderr=stderr).print(finding_text(text), "", sep="\n", soft_wrap=True)


def print_notes(notes: Iterable[str], findings: Iterable[str]) -> None:
    """Print notes and findings on stderr, apart from the output that programs read."""
    for note in notes:
        print_text(f"note: {note}", stderr=True)
    for one in findings:
        print_finding(one, stderr=True)


def finding_text(text: str) -> Text:
    """Color a finding."""
    shown = Text(visible_lines(text))
    for pattern, style in _FINDING.items():
        shown.highlight_regex(pattern, style)
    return shown
