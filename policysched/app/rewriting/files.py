"""Rewrite policies in files: an edit changes some scalars, and all other bytes of the file stay.

The new text is parsed again and compared with the expected objects: an error here must never change the meaning of a
policy. A file keeps byte order mark, line ends and mode. It is replaced atomically, so no process reads a partial file.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from policysched.app.checking.findings import Finding
from policysched.app.rewriting.scalars import Edit
from policysched.errors import PolicyschedError, UsageError
from policysched.model.policy import KIND
from policysched.reading.documents import Document, read
from policysched.reading.files import as_text, read_bytes, shown
from policysched.reading.loading import IgnoredFiles


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A text whose policies were rewritten, and the errors in these policies."""

    text: str
    count: int = 0
    """Number of edits of the text."""
    findings: tuple[Finding, ...] = ()
    """Syntax errors in expressions; an expression with a syntax error stays unchanged."""


Rewrite: TypeAlias = Callable[[str, str], Rewritten]
"""Function that rewrites the policies in a text; the arguments are the text and the name of the file."""
_MARK: Final = b"\xef\xbb\xbf"
_KINDS: Final = tuple(KIND.encode(encoding) for encoding in ("utf-8", "utf-16-le", "utf-16-be"))
"""The word SchedulingPolicy as bytes in UTF-8 and UTF-16; files in UTF-16 are rejected."""


def edited(text: str, edits: Iterable[Edit], file: str, expected: list[Any], meaning: Callable[[Document], Any]) -> str:
    """Apply edits to a text; raise an error if the new text does not contain the expected objects.

    Args:
        text: The text of a YAML or JSON file.
        edits: The edits, which do not overlap.
        file: Name of the file, for messages.
        expected: The meanings of the objects of the new text.
        meaning: Returns the meaning of an object.

    Raises:
        PolicyschedError: the new text has another meaning.
    """
    parts, done = [], 0
    for edit in sorted(edits):
        parts += [text[done : edit.begin], edit.text]
        done = edit.end
    new = "".join([*parts, text[done:]])
    if expected != list(map(meaning, read(new, file))):
        raise PolicyschedError(f"{file}: cannot change the text without changing other values; file is unchanged")
    return new


@dataclass(frozen=True, slots=True)
class RewrittenFile:
    """A file with its rewritten policies, or the error."""

    name: str
    before: bytes = b""
    rewritten: Rewritten | None = None
    """The new text; None if the file contains no policy, or after an error."""
    problem: PolicyschedError | None = None

    @property
    def shown(self) -> str:
        """Name of the file, for messages."""
        return shown(self.name)

    @property
    def count(self) -> int:
        """Number of edits of the file."""
        return self.rewritten.count if self.rewritten else 0

    @property
    def after(self) -> bytes:
        """The content of the file after the edits."""
        if self.rewritten is None:
            return self.before
        return (_MARK if self.before.startswith(_MARK) else b"") + self.rewritten.text.encode()

    def diff(self) -> Iterator[str]:
        """Yield the lines of a unified diff between the file before and after the edits, as input for `patch`."""
        if self.rewritten is None:
            return
        old, new = (_lines(data.decode()) for data in (self.before, self.after))
        for line in difflib.unified_diff(old, new, self.shown, self.shown):
            yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def rewrite_files(names: Iterable[str], rewrite: Rewrite, notes: list[str] | None = None) -> Iterator[RewrittenFile]:
    """Rewrite the policies of files, folders and standard input (`-`) one after another, without writing.

    Args:
        names: Files and folders.
        rewrite: Rewrites the policies in a text.
        notes: Receives a note about the subfolders of each folder.
    """
    ignored = IgnoredFiles()
    for name in names:
        try:
            files = ignored.expand(name)
        except UsageError as error:
            yield RewrittenFile(name, problem=error)
            continue
        yield from (_rewrite_file(file, rewrite) for file in files)
    if notes is not None:
        notes += ignored.notes()


def write(name: str, data: bytes) -> None:
    """Replace a file atomically; a symbolic link stays a link.

    Raises:
        UsageError: the file cannot be written.
    """
    path = Path(os.path.realpath(name))
    temporary: Path | None = None
    if not path.is_file():
        raise UsageError(f"{name}: cannot write: not a regular file")
    try:
        # In a writable folder, a read-only file could be replaced.
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
        raise UsageError(f"{name}: cannot write: {(error.strerror or str(error)).lower()}") from error


def _replace(new: Path, old: Path) -> None:
    before = old.stat()
    new.chmod(before.st_mode & 0o7777)
    # A user who may write another user's file may not be allowed to change its owner.
    with contextlib.suppress(PermissionError):
        os.chown(new, before.st_uid, before.st_gid)
    new.replace(old)


def _rewrite_file(name: str, rewrite: Rewrite) -> RewrittenFile:
    try:
        data = read_bytes(name)
        if not any(kind in data for kind in _KINDS):
            return RewrittenFile(name, data)
        return RewrittenFile(name, data, rewrite(as_text(data, shown(name)), shown(name)))
    except PolicyschedError as error:
        return RewrittenFile(name, problem=error)


def _lines(text: str) -> list[str]:
    """Split a text as `patch` does: only at line feeds."""
    lines = [f"{line}\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines
