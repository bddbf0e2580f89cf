"""`fmt`: formats the expressions of policies and keeps all other bytes of a file.

The new text is parsed again and compared with the old one: an error here must never change the meaning of a policy. A
file keeps byte order mark, line ends and mode. It is replaced atomically, so no process reads a partial file.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from yaml.nodes import ScalarNode

from policysched.app.checking.findings import (
    Expression,
    Finding,
    explained,
    expressions,
    is_policy,
    policy_key,
    with_expressions,
)
from policysched.app.formatting.scalars import DocumentNodes, Edit, joined, rewrite
from policysched.errors import PolicyschedError, UsageError
from policysched.language import Diagnostic, format_text
from policysched.model.policy import KIND
from policysched.reading.documents import Document, Source, read
from policysched.reading.files import as_text, read_bytes, shown
from policysched.reading.loading import IgnoredFiles


@dataclass(frozen=True, slots=True)
class Formatted:
    """The result of formatting the policies in a text: the new text and the errors."""

    text: str
    count: int = 0
    """Number of expressions that changed."""
    findings: tuple[Finding, ...] = ()
    """Expressions with syntax errors, which stay unchanged."""


def format_source(text: str, file: str) -> Formatted:
    """Format the expressions of the policies in a text.

    Args:
        text: The text of a YAML or JSON file.
        file: Name of the file, for messages.

    Raises:
        UsageError: the text contains policies and cannot be parsed.
        PolicyschedError: the new text would have another meaning.
    """
    documents = read(text, file)
    policies = [one for one in documents if is_policy(one.object)]
    edits: list[Edit] = []
    findings: list[Finding] = []
    groups: dict[int, list[Document]] = defaultdict(list)
    for one in policies:
        groups[id(one.source)].append(one)
    for group in groups.values():
        formatting = _Formatting(group[0].source, group)
        edits += formatting.edits()
        findings += formatting.findings
    if not edits:
        return Formatted(text, 0, tuple(findings))
    parts, done = [], 0
    for edit in sorted(edits):
        parts += [text[done : edit.begin], edit.text]
        done = edit.end
    new = "".join([*parts, text[done:]])
    if list(map(_meaning, documents)) != list(map(_meaning, read(new, file))):
        raise PolicyschedError(f"{file}: cannot format without changing the meaning; file is unchanged")
    return Formatted(new, len(edits), tuple(findings))


class _Formatting:
    """The policies of one document: a policy or a list of policies."""

    def __init__(self, source: Source, policies: Iterable[Document]) -> None:
        self._source = source
        self._wanted: defaultdict[int, set[str | None]] = defaultdict(set)
        self._places: defaultdict[int, int] = defaultdict(int)
        self._nodes: dict[int, ScalarNode] = {}
        self.findings: list[Finding] = []
        for policy in policies:
            for one in expressions(policy.object):
                self._take(policy, one)

    def _take(self, policy: Document, one: Expression) -> None:
        node = policy.exact(one.field)
        if not isinstance(node, ScalarNode):
            return
        new = canonical(one)
        if isinstance(new, Diagnostic):
            found = explained(replace(new, field=one.field), policy)
            self.findings.append(Finding(policy_key(policy.object), found, policy))
        self._nodes[id(node)] = node
        self._places[id(node)] += 1
        self._wanted[id(node)].add(None if isinstance(new, Diagnostic) or is_canonical(one.text, new) else new)

    def edits(self) -> Iterator[Edit]:
        """Yield the changes; a scalar that an alias shares with another kind of field is skipped."""
        changed = {key: wanted for key, wanted in self._wanted.items() if wanted != {None}}
        if not changed:
            return
        around = DocumentNodes(self._source.root)
        for key, wanted in changed.items():
            node, new = self._nodes[key], next(iter(wanted))
            if new is not None and len(wanted) == 1 and around.uses(node) == self._places[key]:
                yield rewrite(node, self._source, new, flow=around.in_flow(node))


def canonical(one: Expression) -> str | Diagnostic:
    """Return the canonical form of an expression, or the first error of an expression that cannot be parsed.

    If the canonical form is too long for the field (`and` is longer than `&&`), the expression stays unchanged.
    """
    new = _format(one.text, one.start)
    if isinstance(new, Diagnostic) or new == one.text:
        return new
    return new if _format(new, one.start) == new else one.text


@lru_cache(maxsize=4096)
def _format(text: str, start: str) -> str | Diagnostic:
    """Return the canonical form of an expression of a kind, cached."""
    return format_text(text, start)


def is_canonical(text: str, wanted: str) -> bool:
    """Return whether a text is in canonical form, apart from line breaks."""
    return text == wanted or ("\n" in text and joined(text) == wanted)


def _meaning(document: Document) -> Any:
    if not is_policy(document.object):
        return document.object

    def meant(one: Expression) -> str:
        new = canonical(one)
        return one.text if isinstance(new, Diagnostic) else new

    return with_expressions(document.object, meant)


_MARK: Final = b"\xef\xbb\xbf"
_KINDS: Final = tuple(KIND.encode(encoding) for encoding in ("utf-8", "utf-16-le", "utf-16-be"))
"""The kind of policies in the supported and in the rejected encodings."""


@dataclass(frozen=True, slots=True)
class FormattedFile:
    """A file with the result of formatting, or the error."""

    name: str
    before: bytes = b""
    formatted: Formatted | None = None
    problem: PolicyschedError | None = None

    @property
    def shown(self) -> str:
        """Name of the file, for messages."""
        return shown(self.name)

    @property
    def count(self) -> int:
        """Number of expressions that are not in canonical form."""
        return self.formatted.count if self.formatted else 0

    @property
    def after(self) -> bytes:
        """The formatted content."""
        if self.formatted is None:
            return self.before
        return (_MARK if self.before.startswith(_MARK) else b"") + self.formatted.text.encode()

    def diff(self) -> Iterator[str]:
        """Yield the lines of a unified diff, for `patch`."""
        if self.formatted is None:
            return
        old, new = (_lines(data.decode()) for data in (self.before, self.after))
        for line in difflib.unified_diff(old, new, self.shown, self.shown):
            yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def format_files(names: Iterable[str], notes: list[str] | None = None) -> Iterator[FormattedFile]:
    """Format files, folders and standard input (`-`) one after another, without writing.

    Args:
        names: Files and folders.
        notes: Receives a note about the subfolders of each folder.
    """
    ignored = IgnoredFiles()
    for name in names:
        try:
            files = ignored.expand(name)
        except UsageError as error:
            yield FormattedFile(name, problem=error)
            continue
        yield from map(_format_file, files)
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


def _format_file(name: str) -> FormattedFile:
    try:
        data = read_bytes(name)
        if not any(kind in data for kind in _KINDS):
            return FormattedFile(name, data)
        return FormattedFile(name, data, format_source(as_text(data, shown(name)), shown(name)))
    except PolicyschedError as error:
        return FormattedFile(name, problem=error)


def _lines(text: str) -> list[str]:
    """Split a text as `patch` does: only at line feeds."""
    lines = [f"{line}\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines
