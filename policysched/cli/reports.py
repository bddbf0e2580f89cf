"""Reports: lines and tables, printed as tables, Markdown, values or annotations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from policysched.cli.formats import OutputFormat, markdown_table, markdown_text, say_document, workflow_command
from policysched.cli.output import print_parts, say_command, say_lines


def say_report(
    value: Mapping[str, Any], parts: Iterable[RenderableType], output: OutputFormat, kind: str, title: str
) -> None:
    """Print a report.

    Args:
        value: The whole report, for JSON and YAML.
        parts: The lines and tables of the report; an annotation has only the lines.
        output: The format.
        kind: The kind of the value in JSON and YAML.
        title: The title of an annotation.
    """
    match output:
        case OutputFormat.JSON | OutputFormat.YAML:
            say_document(kind, value, output)
        case OutputFormat.TABLE | OutputFormat.WIDE:
            print_parts(parts, wide=output is OutputFormat.WIDE)
        case OutputFormat.MARKDOWN:
            say_lines("\n\n".join(_markdown(parts)))
        case OutputFormat.GITHUB:
            lines = [str(part) for part in parts if isinstance(part, Text)]
            say_command(workflow_command("notice", "\n".join(lines), {"title": title}))


def _markdown(parts: Iterable[RenderableType]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, Table):
            yield from _markdown_of(part)
        else:
            text = str(part)
            bold = isinstance(part, Text) and part.style == "bold"
            yield f"**{markdown_text(text)}**" if bold else markdown_text(text)


def _markdown_of(table: Table) -> Iterator[str]:
    if table.title:
        yield f"**{markdown_text(str(table.title))}**"
    columns = [[str(cell) for cell in column.cells] for column in table.columns]
    rows = [list(row) for row in zip(*columns, strict=True)]
    yield markdown_table([markdown_text(str(column.header)) for column in table.columns], rows)
    if table.caption:
        yield markdown_text(str(table.caption))
