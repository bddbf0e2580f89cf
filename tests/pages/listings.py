"""A page's listings: what each of its blocks is, and what its commands print now."""

from __future__ import annotations

import io
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from datetime import date
from pathlib import Path
from typing import Final

from policysched.cli import execute
from tests.controlplane.build import binary
from tests.pages.normal import normal
from tests.pages.shell import Shell
from tools.documents.markdown import ROOT, Block, blocks_of

_FILE: Final = re.compile(r"# (\S+\.(?:yaml|json))\n")
_OPERATORS: Final = re.compile(r"[|&;<>$`]")
_OF_WATCHES: Final = re.compile(r"^I\d{4} [\d:.]+ +\d+ reflector\.go:.*watch ended.*\n", re.M)
"""What kubectl logs now and then when it ends a watch that it needs no longer."""
_LINKED: Final = ("examples", "bench", "crds", "policysched")
CLASSES: Final = ("run", "file", "measured", "usage", "drawing")


class ListingError(RuntimeError):
    """A command that a page shows cannot be run, or fails where the reader needs it."""


def class_of(block: Block) -> str | None:
    """Say what a block is, None where it does not say so itself."""
    words = {word.partition("=")[0] for word in block.words}
    found = [name for name in CLASSES if name in words]
    if found:
        return found[0] if len(found) == 1 else None
    if file_of(block):
        return "file"
    return {"console": "run", "yaml": "policy"}.get(block.kind)


def file_of(block: Block) -> str:
    """Give the name of the file that a block is, empty where it is none."""
    named = next((word.partition("=")[2] for word in block.words if word.startswith("file=")), "")
    first = _FILE.match(block.text)
    return named or (first[1] if first else "")


def steps(block: Block) -> list[tuple[str, str]]:
    """Give the commands of a block as they are written, each with what stands below it."""
    found: list[tuple[str, str]] = []
    for line in block.text.splitlines(keepends=True):
        goes_on = bool(found) and not found[-1][1] and found[-1][0].endswith("\\\n")
        if goes_on:
            found[-1] = (found[-1][0] + line, "")
        elif line.startswith("$ "):
            found.append((line, ""))
        elif found:
            found[-1] = (found[-1][0], found[-1][1] + line)
        else:
            raise ListingError(f"line {block.line}: the block begins with no command")
    return found


def uses_kubectl(text: str) -> bool:
    """Tell whether commands of a page need a kubectl."""
    return any(class_of(one) == "run" and "kubectl " in one.text for one in blocks_of(text))


def refreshed(text: str, *, measure: bool = False) -> str:
    """Give a page with what its commands print now; a listing that differs in nothing that counts stays as it is.

    Args:
        text: The page.
        measure: Run what is measured, and nothing else.

    Raises:
        ListingError: a command cannot be run.
    """
    lines = text.splitlines(keepends=True)
    with _Run(text) as run:
        answers = [*_answers(text, run, "measured" if measure else "run")]
    for block, shown in reversed(answers):
        lines[block.line : block.line + len(block.text.splitlines())] = [shown]
        if measure:
            lines[block.line - 1] = re.sub(r"(?<=measured=)\S+", f"{date.today()}", lines[block.line - 1])
    return "".join(lines)


def _answers(text: str, run: _Run, wanted: str) -> Iterator[tuple[Block, str]]:
    """Run the blocks of a class in their order; give those that show something, with what they are to show."""
    for block in blocks_of(text):
        if class_of(block) != wanted:
            continue
        if block.kind == "console":
            yield block, run.console(block)
        else:
            run.silently(block)


class _Run:
    """The folder of a page, and how commands are run in it."""

    def __init__(self, text: str) -> None:
        found = blocks_of(text)
        self._files = {file_of(one): one.text for one in found if class_of(one) == "file"}
        self._shared = any(class_of(one) == "run" and one.kind == "sh" for one in found)
        self._needs_kubectl = uses_kubectl(text)
        self._stack = ExitStack()
        self._shell: Shell | None = None

    def __enter__(self) -> _Run:
        self._folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="policysched-page-")))
        for name in _LINKED:
            (self._folder / name).symlink_to(ROOT / name)
        (self._folder / ".venv").symlink_to(sys.prefix)
        self._write()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def console(self, block: Block) -> str:
        """Run the commands of a block and write down what they print."""
        self._write()
        return "".join(self._step(command, shown) for command, shown in steps(block))

    def silently(self, block: Block) -> None:
        """Run commands or a program that must succeed."""
        self._write()
        if block.kind == "python":
            with self._inside():
                exec(compile(block.text, f"line {block.line}", "exec"), {})  # noqa: S102 - the page's own program
        elif self._bash().start(block.text) != 0:
            log = (self._folder / "session.log").read_text("utf-8", "replace")
            raise ListingError(f"line {block.line}: a command fails:\n{log[-2000:]}")

    def _step(self, command: str, shown: str) -> str:
        printed = self._printed(command.removeprefix("$ ").replace("\\\n", "").strip())
        if normal(printed) == normal(shown):
            return command + shown
        text = "".join(f"{line.rstrip()}\n" for line in printed.strip("\n").splitlines())
        return command + text + ("\n" if shown.endswith("\n\n") else "")

    def _printed(self, command: str) -> str:
        if not self._shared and command.startswith("policysched ") and not _OPERATORS.search(command):
            return self._here(shlex.split(command)[1:])
        code, printed = self._bash().run(command)
        if code == 127:
            raise ListingError(printed)
        return _OF_WATCHES.sub("", printed)

    def _here(self, arguments: list[str]) -> str:
        """Run our own command in this process, which saves its start."""
        with self._inside() as printed:
            execute(arguments)
            return printed()

    @contextmanager
    def _inside(self) -> Iterator[Callable[[], str]]:
        """Be in the folder, and catch what is printed."""
        before, stream = Path.cwd(), io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)

        def printed() -> str:
            stream.seek(0)
            return stream.read()

        os.chdir(self._folder)
        try:
            with redirect_stdout(stream), redirect_stderr(stream):
                yield printed
        finally:
            os.chdir(before)

    def _bash(self) -> Shell:
        if self._shell is None:
            programs = binary("kubectl").parent if self._needs_kubectl else None
            self._shell = self._stack.enter_context(Shell(self._folder, programs))
        return self._shell

    def _write(self) -> None:
        """Put the page's files there, as they are written: commands may have changed them."""
        for name, text in self._files.items():
            path = self._folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
