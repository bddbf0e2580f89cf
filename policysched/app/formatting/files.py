"""Formatting of files: read as bytes, written whole or not at all.

It knows files and nothing of what is in them. A file keeps its byte order mark, its line ends and its mode; it is
replaced by a new one in a single step, so that nobody ever reads half of it.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from policysched.app.files.objects import as_text, expand, read_bytes, shown
from policysched.app.formatting.policies import Formatted, format_source
from policysched.errors import PolicyschedError, UsageError
from policysched.model.policy import KIND

_MARK: Final = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class FormattedFile:
    """A file, and what became of its text or why nothing did."""

    name: str
    before: bytes = b""
    formatted: Formatted | None = None
    problem: PolicyschedError | None = None

    @property
    def shown(self) -> str:
        """The file's name for messages."""
        return shown(self.name)

    @property
    def count(self) -> int:
        """How many expressions of the file are not in canonical form."""
        return self.formatted.count if self.formatted else 0

    @property
    def after(self) -> bytes:
        """The formatted file."""
        if self.formatted is None:
            return self.before
        return (_MARK if self.before.startswith(_MARK) else b"") + self.formatted.text.encode()

    def diff(self) -> Iterator[str]:
        """Return the lines of a unified diff, as `patch` takes it."""
        old, new = (_lines(data.decode()) for data in (self.before, self.after))
        for line in difflib.unified_diff(old, new, self.shown, self.shown):
            yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def format_files(names: Iterable[str]) -> Iterator[FormattedFile]:
    """Format files, folders and `-`, the standard input, one after another; nothing is written."""
    for name in names:
        try:
            files = expand(name)
        except UsageError as error:
            yield FormattedFile(name, problem=error)
            continue
        yield from map(_format, files)


def write(name: str, data: bytes) -> None:
    """Replace a file in one step; a symbolic link stays one.

    Raises:
        UsageError: it cannot be written.
    """
    path = Path(name).resolve()
    temporary: Path | None = None
    if not path.is_file():
        raise UsageError(f"{name}: cannot be written: not a regular file")
    try:
        # A folder that may be written to lets a file be replaced that may not.
        path.open("r+b").close()
        descriptor, made = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        temporary = Path(made)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        _replace(temporary, path)
    except OSError as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise UsageError(f"{name}: cannot be written: {(error.strerror or str(error)).lower()}") from error


def _replace(new: Path, old: Path) -> None:
    before = old.stat()
    new.chmod(before.st_mode & 0o7777)
    # Who may write a file of somebody else may not give it to him.
    with contextlib.suppress(PermissionError):
        os.chown(new, before.st_uid, before.st_gid)
    new.replace(old)


def _format(name: str) -> FormattedFile:
    try:
        data = read_bytes(name)
        if KIND.encode() not in data:
            return FormattedFile(name, data)
        return FormattedFile(name, data, format_source(as_text(data, shown(name)), shown(name)))
    except PolicyschedError as error:
        return FormattedFile(name, problem=error)


def _lines(text: str) -> list[str]:
    """Split a text as `patch` does: at line feeds and nowhere else."""
    lines = [f"{line}\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines
