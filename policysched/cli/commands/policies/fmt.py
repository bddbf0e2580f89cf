"""`policysched fmt`: rewrite the expressions of policies in canonical form."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from rich.text import Text

from policysched.app.formatting.policies import FormattedFile, format_files, write
from policysched.cli.flags.policies import FmtFlags
from policysched.cli.output import count, print_error, print_text
from policysched.cli.rich_output import console, print_finding
from policysched.errors import PolicyschedError
from policysched.reading.files import STDIN
from policysched.visible import visible_lines, without_commands

_STYLES: Final = {"+++": "bold", "---": "bold", "@@": "cyan", "+": "green", "-": "red"}


@dataclass(slots=True)
class _Run:
    """The flags of a run, and the number of files with each outcome."""

    check: bool
    diff: bool
    err: bool
    changed: int = 0
    kept: int = 0
    broken: int = 0
    unusable: int = 0

    def take(self, one: FormattedFile) -> None:
        """Write, print or count one file."""
        findings = one.formatted.findings if one.formatted else ()
        for finding in findings:
            print_finding(finding.text(), stderr=True)
        try:
            if one.problem is not None:
                raise one.problem
            self._deal(one)
        except PolicyschedError as error:
            self.unusable += 1
            print_error(error)
            return
        self.broken += bool(findings)
        self.changed += one.count > 0
        self.kept += one.count == 0 and not findings

    def _deal(self, one: FormattedFile) -> None:
        if self.diff:
            _print_diff(one.diff())
        elif one.name == STDIN and not self.check:
            sys.stdout.buffer.write(one.after)
            sys.stdout.buffer.flush()
        elif one.count and not self.check:
            write(one.name, one.after)
        if one.count:
            done = "would reformat" if self.check or self.diff else "reformatted"
            print_text(f"{done} {one.shown} ({count(one.count, 'expression')})", stderr=self.err)

    def summary(self) -> str:
        """Return the number of files with each outcome."""
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


def fmt(flags: FmtFlags) -> int:
    """Format files and print a summary; return the exit code."""
    run = _Run(flags.check, flags.diff, err=flags.diff or STDIN in flags.files)
    notes: list[str] = []
    for outcome in format_files(flags.files, notes):
        run.take(outcome)
    for note in notes:
        print_text(f"note: {note}", stderr=True)
    print_text(run.summary(), stderr=run.err)
    return run.code()


def _without_commands(line: str) -> str:
    """Escape workflow commands of GitHub Actions in a line of a patch, also after the first character."""
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
