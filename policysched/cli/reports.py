"""Reports: lines and tables of a command, printed for people, as Markdown, JSON, YAML or annotations."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from policysched.app.checking.findings import Finding
from policysched.app.plan.results import Plan
from policysched.app.plan.tables import plan_parts
from policysched.cli.flags.formats import OutputFormat
from policysched.cli.formats import markdown_table, markdown_text, print_document, workflow_command
from policysched.cli.output import FAILED, INTERRUPTED, print_command, print_lines, print_text
from policysched.cli.rich_output import print_finding, print_parts
from policysched.errors import UsageError


def print_report(
    value: Mapping[str, Any], parts: Iterable[RenderableType], output: OutputFormat, kind: str, title: str
) -> None:
    """Print a report as a table, Markdown, JSON, YAML or a GitHub annotation.

    Args:
        value: The whole report, for JSON and YAML.
        parts: The lines and tables of the report; an annotation has only the lines.
        output: The format.
        kind: The kind of the value in JSON and YAML.
        title: The title of an annotation.
    """
    match output:
        case OutputFormat.JSON | OutputFormat.YAML:
            print_document(kind, value, output)
        case OutputFormat.TABLE | OutputFormat.WIDE:
            print_parts(parts, wide=output is OutputFormat.WIDE)
        case OutputFormat.MARKDOWN:
            print_lines("\n\n".join(_markdown(parts)))
        case OutputFormat.GITHUB:
            lines = [str(part) for part in parts if isinstance(part, Text)]
            print_command(workflow_command("notice", "\n".join(lines), {"title": title}))


def print_plan(plan: Plan, notes: Iterable[str], output: OutputFormat, title: str) -> int:
    """Print a plan, and its notes on stderr; return the exit code.

    Args:
        plan: The plan.
        notes: Notes about the inputs, which are printed first.
        output: The format.
        title: The title of an annotation.
    """
    for note in (*notes, *plan.notes):
        print_text(f"note: {note}", stderr=True)
    print_report(plan.to_dict(), plan_parts(plan), output, "Plan", title)
    if plan.interrupted:
        return INTERRUPTED
    return FAILED if plan.failed else int(plan.changes)


def refuse_broken(findings: Iterable[Finding], names: Container[str] | None = None) -> None:
    """Print findings about policies on stderr; raise an error if a policy has an error.

    Args:
        findings: The findings of policies.
        names: The policies that are rejected if they have errors; default: all.

    Raises:
        UsageError: a policy has an error.
    """
    broken = set()
    for one in findings:
        print_finding(one.text(), stderr=True)
        if one.is_error and (names is None or one.policy in names):
            broken.add(str(one.policy))
    if broken:
        subject, verb = ("policies", "do") if len(broken) > 1 else ("policy", "does")
        raise UsageError(f"{subject} {', '.join(sorted(broken))} {verb} not compile")


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
