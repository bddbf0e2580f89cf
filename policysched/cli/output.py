"""Printing: Rich on a terminal, the same texts without color and at full width elsewhere.

Commands print only through this module, which escapes control characters of objects, files and responses. Functions
import Rich on use, because a scheduler process only logs.
"""

from __future__ import annotations

import logging
import os
import platform
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from policysched.klog import body
from policysched.visible import visible, visible_json, visible_lines, without_commands

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

WIDTH: Final = 200
"""Width of the output if stdout is no terminal. Units: columns."""
_OWN_CODE: Final = f"{Path(__file__).parents[1]}{os.sep}"
FAILED: Final = 2
"""Exit code after invalid input or a failure."""
INTERRUPTED: Final = 130
"""Exit code after Ctrl-C, as in shells."""
NO_READER: Final = 141
"""Exit code after a broken pipe, as of a program that SIGPIPE ends."""
_FINDING: Final[Mapping[str, str]] = {
    r"\Aerror\[\w+\](?=:)": "bold red",
    r"\Awarning\[\w+\](?=:)": "bold yellow",
    r"\A\w+\[\w+\]: .*": "bold",
    r"(?m)^ *\d* \|| *-->|^ *= (in|help)": "blue",
    r"(?m)(?<=\|) *\^+$": "bold red",
}


def console(*, stderr: bool = False) -> Console:
    """Return the console of stdout or stderr; Rich reads NO_COLOR, TERM and COLUMNS."""
    from rich.console import Console  # noqa: PLC0415 - see above

    stream = sys.stderr if stderr else sys.stdout
    return Console(stderr=stderr, width=None if stream.isatty() else WIDTH, highlight=False, markup=False, emoji=False)


@contextmanager
def working(text: str) -> Iterator[Callable[[str], None]]:
    """Show a progress line on stderr, if that is a terminal; remove the line at the end.

    Yields a function that updates the line.
    """
    from rich.text import Text  # noqa: PLC0415 - see above

    out = console(stderr=True)
    if not out.is_terminal:
        yield lambda _: None
        return
    with out.status(Text(visible(text))) as status:
        yield lambda now: status.update(Text(visible(f"{text}: {now}")))


def print_parts(parts: Iterable[RenderableType], *, wide: bool = False, out: Console | None = None) -> None:
    """Print parts one after another, with an empty line before each table that follows other output.

    Args:
        parts: The parts.
        wide: Whether tables have all columns at any width.
        out: The console that shows progress and printed other parts; default: a new one.
    """
    from rich.table import Table  # noqa: PLC0415 - see above

    from policysched.cli.tables import table_lines  # noqa: PLC0415 - it imports Rich

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


def say(text: str, *, stderr: bool = False) -> None:
    """Print one line; line breaks in the text are escaped."""
    typer.echo(visible(text, None), err=stderr)


def say_command(text: str) -> None:
    """Print a workflow command; line breaks in the text are escaped."""
    typer.echo(visible_lines(text.replace("\n", r"\n"), commands=True))


def say_version() -> None:
    """Print the version."""
    from importlib.metadata import version  # noqa: PLC0415 - only --version needs it

    say(f"policysched {version('policysched')} (Python {platform.python_version()})")


def say_lines(text: str, *, commands: bool = False) -> None:
    """Print a text of several lines.

    Args:
        text: The text.
        commands: Whether lines that look like workflow commands stay as they are; else they are escaped.
    """
    typer.echo(visible_lines(text.rstrip("\n"), commands=commands))


def say_error(problem: object) -> None:
    """Print an error as one line on stderr; long errors are cut."""
    typer.echo(f"error: {visible(str(problem))}", err=True)


def say_json(value: Any) -> None:
    """Print a value as JSON."""
    typer.echo(visible_json(value))


def print_finding(text: str, *, stderr: bool = False) -> None:
    """Print a finding and an empty line."""
    console(stderr=stderr).print(finding_text(text), "", sep="\n", soft_wrap=True)


def say_beside(notes: Iterable[str], findings: Iterable[str]) -> None:
    """Print notes and findings on stderr, apart from the output that programs read."""
    for note in notes:
        say(f"note: {note}", stderr=True)
    for one in findings:
        print_finding(one, stderr=True)


def say_left_out(objects: Iterable[object]) -> None:
    """Print the objects that were left out on stderr, with reasons."""
    for one in objects:
        say(f"left out: {one}", stderr=True)


def finding_text(text: str) -> Text:
    """Color a finding."""
    from rich.text import Text  # noqa: PLC0415 - see above

    shown = Text(visible_lines(text))
    for pattern, style in _FINDING.items():
        shown.highlight_regex(pattern, style)
    return shown


def count(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun, such as `2 errors`."""
    return f"{number} {one if number == 1 else many or one + 's'}"


class MessageFormatter(logging.Formatter):
    """Formats a log record as a line that starts with `error:` or `warning:`, and the traceback of a plugin."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record."""
        line = f"{'error' if record.levelno >= logging.ERROR else 'warning'}: {body(record)}"
        return "\n".join([line, *(visible_lines(one) for one in self._traceback(record))])

    def _traceback(self, record: logging.LogRecord) -> list[str]:
        """Return the lines of the traceback from the first line of foreign code on; empty without foreign code."""
        _, error, place = record.exc_info or (None, None, None)
        while place is not None and place.tb_frame.f_code.co_filename.startswith(_OWN_CODE):
            place = place.tb_next
        if error is None or place is None:
            return []
        return self.formatException((type(error), error, place)).splitlines()


class _Once(logging.Filter):
    """Lets each message pass once, because a plugin can fail for every pod."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the message is new."""
        text = f"{record.getMessage()} {record.exc_info and repr(record.exc_info[1])}"
        is_new = text not in self._seen
        self._seen.add(text)
        return is_new


def show_every_record() -> None:
    """Print log records of commands without logging flags, each message once, as lines of visible characters."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(MessageFormatter())
        logging.lastResort.addFilter(_Once())
