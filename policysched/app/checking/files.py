"""Checks of the policies in files; an unreadable file is reported and does not end the check."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from policysched.app.checking.check import FindAbsent, check_documents, repeated_policies
from policysched.app.checking.findings import Finding
from policysched.app.checking.schema import is_meant
from policysched.app.checking.selectors import KINDS, has_selectors, selector_findings
from policysched.errors import UsageError
from policysched.model.policy import KIND
from policysched.reading.documents import Document, read
from policysched.reading.files import as_text, read_bytes, shown
from policysched.reading.loading import IgnoredFiles


@dataclass(slots=True)
class CheckedPolicies:
    """The policies found in files, and the findings about them."""

    policies: int = 0
    selecting: int = 0
    """Number of device classes, claims and claim templates in the files."""
    findings: list[Finding] = field(default_factory=list)
    problems: list[UsageError] = field(default_factory=list)
    """Errors about unreadable files, and about equal names of policies in a folder."""
    documents: list[Document] = field(default_factory=list)
    """The policies in the files."""
    ignored: IgnoredFiles = field(default_factory=IgnoredFiles)
    """Skipped entries of folders: files that contain no Kubernetes objects, and subfolders."""

    @property
    def errors(self) -> int:
        """Number of errors among the findings."""
        return sum(one.is_error for one in self.findings)

    @property
    def warnings(self) -> int:
        """Number of warnings among the findings."""
        return len(self.findings) - self.errors


def check_files(
    names: Iterable[str], find_absent: FindAbsent | None = None, *, lenient: bool = False
) -> CheckedPolicies:
    """Check the policies in files, folders and `-`, the standard input.

    Args:
        names: Files, folders and `-`.
        find_absent: Finds labels, resources and values that no node or namespace has; default: no such check.
        lenient: Whether to ignore files without the name of a checked kind, whatever they contain.
    """
    made = CheckedPolicies()
    for name in names:
        try:
            files = made.ignored.expand(name)
        except UsageError as error:
            made.problems.append(error)
            continue
        for file in files:
            _check(file, find_absent, made, lenient=lenient, is_named=file == name)
    # Policies of several folders may be for several clusters.
    made.problems += repeated_policies(made.documents, lambda one: Path(one.file).parent)
    return made


def _check(file: str, find_absent: FindAbsent | None, made: CheckedPolicies, *, lenient: bool, is_named: bool) -> None:
    policies: list[Document] = []
    selecting: list[Document] = []
    try:
        data = read_bytes(file)
        if not lenient or any(kind.encode() in data for kind in (KIND, *KINDS)):
            documents = _read(data, file) if is_named else made.ignored.read(file, lambda _: _read(data, file))
            policies = [one for one in documents if is_meant(one.object)]
            selecting = [one for one in documents if has_selectors(one.object)]
    except UsageError as error:
        made.problems.append(error)
        return
    made.policies += len(policies)
    made.documents += policies
    made.findings += check_documents(policies, find_absent)
    made.selecting += len(selecting)
    made.findings += [found for one in selecting for found in selector_findings(one)]


def _read(data: bytes, file: str) -> list[Document]:
    return read(as_text(data, shown(file)), shown(file))
