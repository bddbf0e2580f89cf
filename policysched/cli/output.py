"""Printing of lines of text, in which control characters of objects, files and responses are escaped.

Commands print only through this module and `rich_output`, which adds colors and tables.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import typer

from policysched.klog import body
from policysched.visible import visible, visible_json, visible_lines

_OWN_CODE: Final = f"{Path(__file__).parents[1]}{os.sep}"
FAILED: Final = 2
"""Exit code after invalid input or a failure."""
INTERRUPTED: Final = 130
"""Exit code after Ctrl-C, as in shells."""
NO_READER: Final = 141
"""Exit code after a broken pipe: the exit code of a program that SIGPIPE kills."""


def print_text(text: str, *, stderr: bool = False) -> None:
    """Print one line; line breaks in the text are escaped."""
    typer.echo(visible(text, None), err=stderr)


def print_command(text: str) -> None:
    """Print a workflow command; line breaks in the text are escaped."""
    typer.echo(visible_lines(text.replace("\n", r"\n"), commands=True))


def print_lines(text: str, *, commands: bool = False) -> None:
    """Print a text of several lines.

    Args:
        text: The text.
        commands: Whether lines that look like workflow commands stay as they are; else they are escaped.
    """
    typer.echo(visible_lines(text.rstrip("\n"), commands=commands))


def print_error(problem: object) -> None:
    """Print an error as one line on stderr; long errors are cut."""
    typer.echo(f"error: {visible(str(problem))}", err=True)


def print_json(value: Any) -> None:
    """Print a value as JSON."""
    typer.echo(visible_json(value))


def print_left_out(objects: Iterable[object]) -> None:
    """Print on stderr which objects of the input were left out, with reasons."""
    for one in objects:
        print_text(f"left out: {one}", stderr=True)


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
        """Return the traceback from the first frame outside policysched, such as a plugin's; empty if there is none."""
        _, error, place = record.exc_info or (None, None, None)
        while place is not None and place.tb_frame.f_code.co_filename.startswith(_OWN_CODE):
            place = place.tb_next
        if error is None or place is None:
            return []
        return self.formatException((type(error), error, place)).splitlines()


class _Once(logging.Filter):
    """Log filter that passes each message once, because a plugin can fail for every pod."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a log record has a message that was not printed before."""
        text = f"{record.getMessage()} {record.exc_info and repr(record.exc_info[1])}"
        is_new = text not in self._seen
        self._seen.add(text)
        return is_new


def show_every_record() -> None:
    """Print the log of commands without logging flags on stderr: each message once, hidden characters escaped."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(MessageFormatter())
        logging.lastResort.addFilter(_Once())
