"""Printing: Rich on a terminal, the same texts without colour and at full width elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Final

from rich.console import Console, RenderableType
from rich.table import Table

WIDTH: Final = 200
"""The width where nobody looks at a terminal, so that no table is cut."""


def console() -> Console:
    """Make the console of stdout; Rich itself heeds NO_COLOR, TERM and COLUMNS."""
    return Console(width=None if sys.stdout.isatty() else WIDTH, highlight=False, markup=False, emoji=False)


def print_parts(parts: Iterable[RenderableType]) -> None:
    """Print parts one after another, with an empty line before each table."""
    out = console()
    for part in parts:
        if isinstance(part, Table):
            out.print()
        # A line of text stays one line where a program may read it.
        out.print(part, soft_wrap=not (out.is_terminal or isinstance(part, Table)))
