"""Tables as lines of a given width; one row is one line, and names in the first column are never broken.

On a terminal that is too narrow, headers become short, then the least important columns are left out and texts are cut.
The lines below the table state what a reader does not see in it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Final

from rich.cells import cell_len, set_cell_size
from rich.table import Table
from rich.text import Text

from policysched.app.report_table import ReportTable

_GAP: Final = "  "
_LEAST_TEXT: Final = 12
"""Smallest width to which a text is cut. Units: columns."""
_LEAST_IMPORTANT: Final = 44
"""Smallest width to which a text is cut while less important columns can be left out. Units: columns."""
_LEAST_PROSE: Final = 32
"""Smallest width to which prose in the first column of a table is cut. Units: columns."""
_PROSE: Final = 3
"""Largest number of words in the cells of a column of names; a column with longer cells is treated as prose."""
PIPE_WIDTH: Final = 100
"""Width for output to a pipe: wider tables get shortened headers, and the line below the headers ends there.

Units: columns.
"""


@dataclass(slots=True)
class _Column:
    """A column of a table."""

    header: str
    cells: list[str]
    is_number: bool
    head: list[str] = field(default_factory=list)
    """The lines of the header as shown, which can be shortened."""
    is_cut: bool = False

    @property
    def width(self) -> int:
        """The width that shows every cell whole."""
        return max(cell_len(line) for one in (*self.head, *self.cells) for line in one.split("\n"))

    @property
    def is_equal(self) -> bool:
        """Whether all cells are equal."""
        return len(set(self.cells)) == 1

    @property
    def is_prose(self) -> bool:
        """Whether a cell of the column has more than `_PROSE` words."""
        return any(len(one.split()) > _PROSE for one in self.cells)


def table_lines(table: Table, width: int | None, *, wide: bool = False) -> Iterator[Text]:
    """Yield the lines of a table.

    Args:
        table: The table.
        width: The width of the terminal; None for no limit, as in a pipe.
        wide: Whether all columns are shown, whole and with full headers.
    """
    columns = [
        _Column(str(one.header), [str(cell) for cell in one.cells], one.justify == "right", [str(one.header)])
        for one in table.columns
    ]
    below: list[str] = []
    if isinstance(table, ReportTable) and not wide:
        columns, below = _narrowed(table, columns, width)
    if table.title:
        yield Text(str(table.title), "bold")
    for head in zip_longest(*(one.head for one in columns), fillvalue=""):
        yield Text(_line(columns, head), "bold")
    yield Text("─" * (_total(columns) if wide else min(_total(columns), width or PIPE_WIDTH)))
    for row in zip(*(one.cells for one in columns), strict=True):
        for line in zip_longest(*(cell.split("\n") for cell in row), fillvalue=""):
            yield Text(_line(columns, line))
    for text in (*below, *([str(table.caption)] if table.caption else [])):
        yield Text(text if width is None else _wrapped(text, width))


def _line(columns: Iterable[_Column], cells: Iterable[str]) -> str:
    shown = []
    for column, cell in zip(columns, cells, strict=True):
        blanks = " " * (column.width - cell_len(cell))
        shown.append(blanks + cell if column.is_number else cell + blanks)
    return _GAP.join(shown).rstrip()


def _total(columns: Sequence[_Column]) -> int:
    return sum(one.width for one in columns) + len(_GAP) * (len(columns) - 1)


def _narrowed(table: ReportTable, columns: list[_Column], width: int | None) -> tuple[list[_Column], list[str]]:
    """Return the columns to show, and the lines below the table about columns that are omitted or shortened."""
    limit = width or PIPE_WIDTH
    can_sum_up = len(columns[0].cells) > 1 or _total(columns) > limit
    equal = [one for one in columns if can_sum_up and one.header in table.sums_up and one.is_equal]
    kept = [one for one in columns if one not in equal]
    below = [f"equal in all rows: {', '.join(f'{one.header} {one.cells[0]}' for one in equal)}"] if equal else []
    if _total(kept) > limit:
        for one in kept:
            one.head = [table.short.get(one.header, one.header)]
    left_out = _fit(table, kept, width) if width is not None else []
    legend = [f"{one.head[0]} = {one.header}" for one in kept if one.header in table.short and one.head != [one.header]]
    below += [", ".join(legend)] if legend else []
    hint = [f"not shown: {', '.join(left_out)}"] if left_out else []
    if left_out or any(one.is_cut for one in kept):
        below.append("; ".join([*hint, "-o wide shows all"]))
    return kept, below


def _fit(table: ReportTable, kept: list[_Column], width: int) -> list[str]:
    """Wrap headers, omit columns and cut texts until the columns fit; return the headers of omitted columns."""
    if _total(kept) > width:
        for one in kept:
            one.head = textwrap.wrap(one.head[0], max(map(cell_len, ("", *one.cells))), break_long_words=False) or [""]
    order = [*table.least, *(one.header for one in reversed(kept) if one.header not in table.least)]
    left_out: list[str] = []
    for header in order:
        if sum(_least(one, kept, table) + len(_GAP) for one in kept) - len(_GAP) <= width:
            break
        found = [one for one in kept[1:] if one.header == header]
        left_out += [one.header for one in found]
        kept[:] = [one for one in kept if one not in found]
    for one in reversed(kept):
        least = max(_least(one, kept, table), one.width - max(0, _total(kept) - width))
        if least < one.width and table.wraps:
            one.cells = [_wrapped(cell, least) for cell in one.cells]
        elif least < one.width:
            one.cells, one.is_cut = [_shortened(cell, least) for cell in one.cells], True
    return left_out


def _least(one: _Column, kept: Sequence[_Column], table: ReportTable) -> int:
    """Return the smallest width of a column: names, numbers and columns that can be omitted are not cut."""
    if one is kept[0]:
        return min(one.width, _LEAST_PROSE) if one.is_prose else one.width
    if one.is_number or one.header in table.least:
        return one.width
    least = _LEAST_IMPORTANT if any(other.header in table.least for other in kept) else _LEAST_TEXT
    words = [cell_len(word) for cell in one.cells for word in cell.split()] if table.wraps else []
    return min(one.width, max(least, *words, *map(cell_len, one.head)))


def _wrapped(text: str, width: int) -> str:
    return textwrap.fill(text, width, break_long_words=False, break_on_hyphens=False)


def _shortened(text: str, width: int) -> str:
    """Cut a text after its last whole word that fits, or within the first word."""
    if cell_len(text) <= width:
        return text
    cut = set_cell_size(text, width - 1)
    words = cut.rpartition(" ")[0].rstrip(" ,;:")
    return f"{words or cut} …" if words and cell_len(words) < width - 1 else f"{cut.rstrip()}…"
