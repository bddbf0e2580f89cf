"""Checking of files: one that cannot be read is said and does not keep the others from being checked.

It knows files and who to ask about the policies in them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from policysched.app.checking.check import check_documents, twins
from policysched.app.checking.findings import Finding
from policysched.app.checking.shape import is_meant
from policysched.app.files.objects import Document, as_text, expand, read, read_bytes, shown
from policysched.errors import UsageError
from policysched.model.policy import KIND

if TYPE_CHECKING:
    from policysched.framework import Cluster


@dataclass(slots=True)
class Checked:
    """What checking files gave."""

    policies: int = 0
    findings: list[Finding] = field(default_factory=list)
    problems: list[UsageError] = field(default_factory=list)
    """Files that cannot be read, and policies of one name in a folder."""
    documents: list[Document] = field(default_factory=list)
    """The policies."""

    @property
    def errors(self) -> int:
        """The number of errors."""
        return sum(one.is_error for one in self.findings)

    @property
    def warnings(self) -> int:
        """The number of warnings."""
        return len(self.findings) - self.errors


def check_files(names: Iterable[str], cluster: Cluster | None = None, *, lenient: bool = False) -> Checked:
    """Check the policies in files, folders and `-`, the standard input.

    Args:
        names: What to read.
        cluster: The nodes that the policies are for; absent, nothing is said of what no node has.
        lenient: Leave files alone that do not name a policy, whatever they are.
    """
    made = Checked()
    for name in names:
        try:
            files = expand(name)
        except UsageError as error:
            made.problems.append(error)
            continue
        for file in files:
            _check(file, cluster, made, lenient=lenient)
    # Policies of one name in several folders may be for several clusters.
    made.problems += twins(made.documents, lambda one: Path(one.file).parent)
    return made


def _check(file: str, cluster: Cluster | None, made: Checked, *, lenient: bool) -> None:
    try:
        policies = _policies(file, lenient=lenient)
    except UsageError as error:
        made.problems.append(error)
        return
    made.policies += len(policies)
    made.documents += policies
    made.findings += check_documents(policies, cluster)


def _policies(file: str, *, lenient: bool) -> list[Document]:
    data = read_bytes(file)
    if lenient and KIND.encode() not in data:
        return []
    return [one for one in read(as_text(data, shown(file)), shown(file)) if is_meant(one.object)]
