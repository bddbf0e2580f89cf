"""Printing: Rich on a terminal, the same texts without colour and at full width elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Final

from rich.console import Console, RenderableType

WIDTH: Final = 200
"""The width where nobody looks at a terminal, so that no table is cut."""


def console() -> Console:
    """Make the console of stdout; Rich itself heeds NO_COLOR, TERM and COLUMNS."""
    return Console(width=None if sys.stdout.isatty() else WIDTH, highlight=False, markup=False, emoji=False)


def print_parts(parts: Iterable[RenderableType]) -> None:
    """Print parts one after another."""
    out = console()
    for part in parts:
        out.print(part)
