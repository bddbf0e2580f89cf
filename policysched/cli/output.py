"""Printing and logging: Rich on a terminal, the same texts without colour and at full width elsewhere.

All that commands print goes through here, so that nothing of an object, a file or a server's answer reaches a terminal
as it is. Rich is imported by who prints with it: a scheduler only logs.
"""

from __future__ import annotations

import logging
import platform
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import typer

import policysched
from policysched.klog import body
from policysched.visible import visible, visible_json, visible_lines, without_commands

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

WIDTH: Final = 200
"""The width where nobody looks at a terminal, so that no table is cut."""
INTERRUPTED: Final = 130
"""The exit code after Ctrl-C, as shells have it."""
NO_READER: Final = 141
"""The exit code where nobody reads the output any more, as of a program that SIGPIPE ends."""
_FINDING: Final[Mapping[str, str]] = {
    r"\Aerror\[\w+\](?=:)": "bold red",
    r"\Awarning\[\w+\](?=:)": "bold yellow",
    r"\A\w+\[\w+\]: .*": "bold",
    r"(?m)^ *\d* \|| *-->|^ *= (in|help)": "blue",
    r"(?m)(?<=\|) *\^+$": "bold red",
}


def console(*, stderr: bool = False) -> Console:
    """Make the console of stdout or stderr; Rich itself heeds NO_COLOR, TERM and COLUMNS."""
    from rich.console import Console  # noqa: PLC0415 - see above

    stream = sys.stderr if stderr else sys.stdout
    return Console(stderr=stderr, width=None if stream.isatty() else WIDTH, highlight=False, markup=False, emoji=False)


@contextmanager
def working(text: str) -> Iterator[Callable[[str], None]]:
    """Show on stderr what is being done meanwhile, where that is a terminal; the line goes away again.

    Yields a function that says what is done now.
    """
    from rich.text import Text  # noqa: PLC0415 - see above

    out = console(stderr=True)
    if not out.is_terminal:
        yield lambda _: None
        return
    with out.status(Text(visible(text))) as status:
        yield lambda now: status.update(Text(visible(f"{text}: {now}")))


def print_parts(parts: Iterable[RenderableType]) -> None:
    """Print parts one after another, with an empty line before each table."""
    from rich.table import Table  # noqa: PLC0415 - see above

    out = console()
    for part in parts:
        if isinstance(part, Table):
            out.print()
        if sys.stdout.isatty():
            out.print(part)
            continue
        # Where a program may read it a line of text stays one line, and no line of a table ends with blanks.
        with out.capture() as printed:
            out.print(part, soft_wrap=not isinstance(part, Table))
        typer.echo("\n".join(without_commands(line.rstrip()) for line in printed.get().splitlines()))


def say(text: str, *, stderr: bool = False) -> None:
    """Print a line; whatever it holds, it stays one line."""
    typer.echo(visible(text, None), err=stderr)


def say_command(text: str) -> None:
    """Print a command of a workflow's runner; whatever it holds, it stays one line."""
    typer.echo(visible_lines(text.replace("\n", r"\n"), commands=True))


def say_version() -> None:
    """Print the version."""
    say(f"policysched {policysched.__version__} (Python {platform.python_version()})")


def say_lines(text: str, *, commands: bool = False) -> None:
    """Print a text of several lines, with what a workflow's runner takes for commands where it is data."""
    typer.echo(visible_lines(text.rstrip("\n"), commands=commands))


def say_error(problem: object) -> None:
    """Print what is wrong as one line on stderr, cut where it is long."""
    typer.echo(f"error: {visible(str(problem))}", err=True)


def say_json(value: Any) -> None:
    """Print a value as JSON."""
    typer.echo(visible_json(value))


def print_finding(text: str, *, stderr: bool = False) -> None:
    """Print what a finding says, with an empty line behind it."""
    console(stderr=stderr).print(finding_text(text), "", sep="\n", soft_wrap=True)


def say_beside(notes: Iterable[str], findings: Iterable[str]) -> None:
    """Print what is to know of an answer on stderr, where no program reads the answer."""
    for note in notes:
        say(f"note: {note}", stderr=True)
    for one in findings:
        print_finding(one, stderr=True)


def say_left_out(objects: Iterable[object]) -> None:
    """Print on stderr which objects of a cluster cannot be used, each with the reason."""
    for one in objects:
        say(f"left out: {one}", stderr=True)


def finding_text(text: str) -> Text:
    """Colour what a finding says."""
    from rich.text import Text  # noqa: PLC0415 - see above

    shown = Text(visible_lines(text))
    for pattern, style in _FINDING.items():
        shown.highlight_regex(pattern, style)
    return shown


def count(number: int, one: str, many: str = "") -> str:
    """Say how many there are of something."""
    return f"{number} {one if number == 1 else many or one + 's'}"


class MessageFormatter(logging.Formatter):
    """Writes what a record says, as one line that begins with how bad it is."""

    def format(self, record: logging.LogRecord) -> str:
        """Write a record."""
        return f"{'error' if record.levelno >= logging.ERROR else 'warning'}: {body(record)}"


def show_every_record() -> None:
    """Write warnings of commands that log nothing as lines of visible characters."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(MessageFormatter())
