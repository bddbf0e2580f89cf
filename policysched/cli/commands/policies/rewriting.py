"""Write, print or count the files that `fmt` and `convert` rewrite."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from rich.text import Text

from policysched.app.rewriting.files import RewrittenFile, write
from policysched.cli.output import count, print_error, print_text
from policysched.cli.rich_output import console, print_finding
from policysched.errors import PolicyschedError
from policysched.reading.files import STDIN
from policysched.visible import visible_lines, without_commands

_STYLES: Final = {"+++": "bold", "---": "bold", "@@": "cyan", "+": "green", "-": "red"}
_SEPARATOR: Final = b"---\n"


class Words(NamedTuple):
    """Words of the messages of `fmt` and `convert`: verb, participle, and noun for the changed items."""

    verb: str
    """The verb in messages, such as `reformat`."""
    done: str
    """The past participle of the verb in messages."""
    item: str
    """The noun for one changed item in messages, such as `expression`."""
    items: str
    kept: tuple[str, str]
    """With --check or --diff: the text after `1 file` and the text after `2 files` for unchanged files."""


@dataclass(slots=True)
class Rewriting:
    """One run of `fmt` or `convert`: its flags, and the number of files with each outcome."""

    words: Words
    check: bool
    diff: bool
    prints: bool
    """Whether rewritten files are printed instead of written; rewritten standard input is always printed."""
    err: bool
    """Whether messages go to stderr."""
    changed: int = 0
    kept: int = 0
    broken: int = 0
    unusable: int = 0
    _end: bytes = field(default=b"")
    """The last byte that was printed, which shows whether the next document needs a line break first."""

    def take(self, one: RewrittenFile) -> None:
        """Write, print or diff one rewritten file as the flags say, and count its outcome."""
        findings = one.rewritten.findings if one.rewritten else ()
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

    def _deal(self, one: RewrittenFile) -> None:
        if self.diff:
            _print_diff(one.diff())
        elif (self.prints or one.name == STDIN) and not self.check:
            self._print(one.after)
        elif one.count and not self.check:
            write(one.name, one.after)
        if one.count:
            done = f"would {self.words.verb}" if self.check or self.diff else self.words.done
            items = count(one.count, self.words.item, self.words.items)
            print_text(f"{done} {one.shown} ({items})", stderr=self.err)

    def _print(self, content: bytes) -> None:
        """Print the content of a file, as a further YAML document after other files."""
        out = sys.stdout.buffer
        if self._end:
            out.write(b"" if self._end.endswith(b"\n") else b"\n")
            out.write(b"" if content.startswith(_SEPARATOR) else _SEPARATOR)
        out.write(content)
        out.flush()
        self._end = content[-1:]

    def summary(self) -> str:
        """Return the number of files with each outcome."""
        would = self.check or self.diff
        done = f"would be {self.words.done}" if would else self.words.done
        kept = self.words.kept[self.kept != 1] if would else "unchanged"
        parts = ((self.changed, done), (self.kept, kept), (self.broken, "with errors"), (self.unusable, "failed"))
        return ", ".join(f"{count(number, 'file')} {what}" for number, what in parts if number)

    def code(self) -> int:
        """Return the exit code of the command."""
        if self.unusable:
            return 2
        return int(bool(self.broken or (self.check and self.changed)))

    def run(self, files: Iterable[RewrittenFile], notes: Iterable[str]) -> int:
        """Process all files with `take` and print a summary; return the exit code.

        Args:
            files: The files.
            notes: Notes, which are complete after the last file.
        """
        for one in files:
            self.take(one)
        for note in notes:
            print_text(f"note: {note}", stderr=True)
        print_text(self.summary(), stderr=self.err)
        return self.code()


def _without_commands(line: str) -> str:
    """Escape GitHub Actions workflow commands in a line of a diff, behind its first character (`+`, `-` or space)."""
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
