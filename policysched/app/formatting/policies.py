"""`fmt`: write the expressions of policies in canonical form, and everything else byte for byte as it was.

The new text is read again and compared with the old one before it is given out: an error here must end in a refusal,
never in a policy that says something else. A file keeps its byte order mark, its line ends and its mode; it is replaced
by a new one in a single step, so that nobody ever reads half of it.
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
    """What became of a text."""

    text: str
    count: int = 0
    """How many expressions are written differently."""
    findings: tuple[Finding, ...] = ()
    """Expressions with an error in their syntax, which stay as they are."""


def format_source(text: str, file: str) -> Formatted:
    """Write the expressions of the policies in a text in canonical form.

    Args:
        text: The text of a YAML or JSON file.
        file: Its name, for messages.

    Raises:
        UsageError: the text has policies and cannot be read.
        PolicyschedError: the new text would mean something else.
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
    """The policies of one document, a policy or a list of them."""

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
        """Return the changes; a text that stands elsewhere too, by an alias, as something else stays."""
        changed = {key: wanted for key, wanted in self._wanted.items() if wanted != {None}}
        if not changed:
            return
        around = DocumentNodes(self._source.root)
        for key, wanted in changed.items():
            node, new = self._nodes[key], next(iter(wanted))
            if new is not None and len(wanted) == 1 and around.uses(node) == self._places[key]:
                yield rewrite(node, self._source, new, flow=around.in_flow(node))


def canonical(one: Expression) -> str | Diagnostic:
    """Return an expression's canonical form, or its first error.

    A form that is too long for a field, as `and` is longer than `&&`, is left as it was.
    """
    new = _format(one.text, one.start)
    if isinstance(new, Diagnostic) or new == one.text:
        return new
    return new if _format(new, one.start) == new else one.text


@lru_cache(maxsize=4096)
def _format(text: str, start: str) -> str | Diagnostic:
    """Format a text; the same one is asked for again when the new file is compared with the old one."""
    return format_text(text, start)


def is_canonical(text: str, wanted: str) -> bool:
    """Whether a text is in canonical form; its author may break it into lines where he likes."""
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
"""What a file names that holds policies, in an encoding that is read and in those that are refused."""


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
        if self.formatted is None:
            return
        old, new = (_lines(data.decode()) for data in (self.before, self.after))
        for line in difflib.unified_diff(old, new, self.shown, self.shown):
            yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def format_files(names: Iterable[str], notes: list[str] | None = None) -> Iterator[FormattedFile]:
    """Format files, folders and `-`, the standard input, one after another; nothing is written.

    Args:
        names: The files and folders.
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
    """Replace a file in one step; a symbolic link stays one.

    Raises:
        UsageError: it cannot be written.
    """
    path = Path(os.path.realpath(name))
    temporary: Path | None = None
    if not path.is_file():
        raise UsageError(f"{name}: cannot write: not a regular file")
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
        raise UsageError(f"{name}: cannot write: {(error.strerror or str(error)).lower()}") from error


def _replace(new: Path, old: Path) -> None:
    before = old.stat()
    new.chmod(before.st_mode & 0o7777)
    # Who may write a file of somebody else may not give it to him.
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
    """Split a text as `patch` does: at line feeds and nowhere else."""
    lines = [f"{line}\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines
