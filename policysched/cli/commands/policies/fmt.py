"""`policysched fmt`: writes the expressions of policy files in canonical form."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.text import Text

from policysched.cli.output import console, count, print_finding, say, say_error
from policysched.errors import PolicyschedError
from policysched.visible import visible_lines, without_commands

if TYPE_CHECKING:
    from policysched.app.formatting.policies import FormattedFile

_STDIN: Final = "-"
_STYLES: Final = {"+++": "bold", "---": "bold", "@@": "cyan", "+": "green", "-": "red"}


@dataclass(slots=True)
class _Run:
    """What to do with each file, and the numbers of files by result."""

    check: bool
    diff: bool
    err: bool
    changed: int = 0
    kept: int = 0
    broken: int = 0
    unusable: int = 0

    def take(self, one: FormattedFile) -> None:
        """Process one file."""
        findings = one.formatted.findings if one.formatted else ()
        for finding in findings:
            print_finding(finding.text(), stderr=True)
        try:
            if one.problem is not None:
                raise one.problem
            self._deal(one)
        except PolicyschedError as error:
            self.unusable += 1
            say_error(error)
            return
        self.broken += bool(findings)
        self.changed += one.count > 0
        self.kept += one.count == 0 and not findings

    def _deal(self, one: FormattedFile) -> None:
        from policysched.app.formatting.policies import write  # noqa: PLC0415 - the parser is not needed for --help

        if self.diff:
            _print_diff(one.diff())
        elif one.name == _STDIN and not self.check:
            sys.stdout.buffer.write(one.after)
            sys.stdout.buffer.flush()
        elif one.count and not self.check:
            write(one.name, one.after)
        if one.count:
            done = "would reformat" if self.check or self.diff else "reformatted"
            say(f"{done} {one.shown} ({count(one.count, 'expression')})", stderr=self.err)

    def summary(self) -> str:
        """Return the numbers of files by result, as a sentence."""
        done = "would be reformatted" if self.check or self.diff else "reformatted"
        formatted = "is formatted" if self.kept == 1 else "are formatted"
        kept = formatted if self.check or self.diff else "unchanged"
        parts = ((self.changed, done), (self.kept, kept), (self.broken, "with errors"), (self.unusable, "failed"))
        return ", ".join(f"{count(number, 'file')} {what}" for number, what in parts if number)

    def code(self) -> int:
        """Return the exit code."""
        if self.unusable:
            return 2
        return int(bool(self.broken or (self.check and self.changed)))


def fmt(
    files: Annotated[list[str], typer.Argument(metavar="FILE", help="Files, folders, or - for standard input.")],
    check: Annotated[bool, typer.Option("--check", help="Change nothing; list the files that would change.")] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Change nothing; print a unified diff.")] = False,
) -> int:
    """Format the expressions of policies.

    The canonical form uses `and`, `or`, `not` and `→`, one space around operators and no redundant brackets. The rest
    of a file stays as it is, including comments and quotes. With -, standard input is formatted to standard output.
    An expression with a syntax error is reported and not changed.

    Example: `policysched fmt --check policies/`

    Exit codes: 0 success; 1 syntax errors, or with --check a file would change; 2 a file or a flag is invalid.
    """
    from policysched.app.formatting.policies import format_files  # noqa: PLC0415 - the parser is not needed for --help

    run = _Run(check, diff, err=diff or _STDIN in files)
    notes: list[str] = []
    for outcome in format_files(files, notes):
        run.take(outcome)
    for note in notes:
        say(f"note: {note}", stderr=True)
    say(run.summary(), stderr=run.err)
    return run.code()


def _without_commands(line: str) -> str:
    """Return a line of a patch in which GitHub's runner finds no workflow command, also after its first character."""
    return line[:1] + without_commands(line[1:])


def _print_diff(lines: Iterable[str]) -> None:
    out = console()
    if not out.is_terminal:
        in_workflow = os.environ.get("GITHUB_ACTIONS") == "true"
        sys.stdout.writelines(map(_without_commands, lines) if in_workflow else lines)
        return
    for line in lines:
        style = next((style for start, style in _STYLES.items() if line.startswith(start)), "")
        out.print(Text(visible_lines(line), style), end="", soft_wrap=True)
