"""What is wrong with policies, before they reach a cluster: shape, names, expressions.

It knows no cluster, so a warning that needs one never comes from here. Findings are values; the same ones are printed
with carets, written as JSON and returned to Python.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from policysched.app import places, shape
from policysched.app.files import Document
from policysched.app.places import Place
from policysched.errors import UsageError
from policysched.language import Diagnostic, render
from policysched.model.decode import ObjectError
from policysched.model.policy import KIND, decode_policy
from policysched.rules.compile import compile_policy

_COMMENT_HELP: Final = 'YAML takes what follows " #" for a comment: quote the text'
Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Finding:
    """A diagnostic with the policy it is about and the place in its file, where it has one."""

    policy: str
    diagnostic: Diagnostic
    document: Document | None = None

    @property
    def is_error(self) -> bool:
        """Whether the policy cannot be used because of it."""
        return self.diagnostic.severity == "error"

    def place(self) -> Place | None:
        """Give the place in the file."""
        found = self.diagnostic
        return self.document.place(found.field, found.line, found.column) if self.document else None

    def to_dict(self) -> dict[str, Any]:
        """Give the finding as docs/dry-run.md shows it."""
        found, place = self.diagnostic, self.place()
        said = {
            "file": self.document.file if self.document else None,
            "policy": self.policy,
            "severity": found.severity,
            "code": found.code,
            "field": found.field,
            "line": found.line,
            "column": found.column,
            "endColumn": found.end_column,
            "message": found.message,
            "help": found.help,
        }
        return said | ({"fileLine": place.line, "fileColumn": place.column} if place else {})

    def text(self) -> str:
        """Show the finding with carets under the line of its file."""
        found, place = self.diagnostic, self.place()
        about = f"{self.policy} {found.field}:{found.line}:{found.column}"
        if self.document is None or place is None:
            return f"{found.severity}[{found.code}]: {found.message}\n  --> {about}" + _help_line("  ", found.help)
        moved = replace(found, line=place.line, column=place.column, end_column=self._end(place), help=None)
        gutter = " " * (len(str(place.line)) + 2)
        shown = render(moved, "\n".join(self.document.source.lines), self.document.file)
        return f"{shown}\n{gutter}= in {about}{_help_line(gutter, found.help)}"

    def _end(self, begin: Place) -> int:
        """Give the column behind the finding in the file; one that runs on to another line ends with its own."""
        found, document = self.diagnostic, self.document
        if document is None or found.end_column <= found.column:
            return begin.column
        last = document.place(found.field, found.line, found.end_column - 1)
        if last is None or last.line != begin.line:
            return len(document.source.lines[begin.line - 1]) + 1
        return last.column + 1


def check(policies: Iterable[Object]) -> list[dict[str, Any]]:
    """Find what is wrong with policies.

    Args:
        policies: SchedulingPolicy objects as kubectl prints them.

    Returns:
        One dict a finding: `file`, `policy`, `severity`, `code`, `field`, `line`, `column`, `endColumn`, `message`
        and `help`. Line and column count code points inside the field's text, from 1; `endColumn` is exclusive.

    Raises:
        UsageError: an object is no SchedulingPolicy.
    """
    return [finding.to_dict() for policy in policies for finding in findings(policy)]


def check_documents(documents: Iterable[Document]) -> list[Finding]:
    """Find what is wrong with the policies among documents; others are left alone."""
    return [
        found
        for document in documents
        if document.object.get("kind") == KIND
        for found in findings(document.object, document)
    ]


def findings(policy: Object, document: Document | None = None) -> Iterator[Finding]:
    """Find what is wrong with one policy.

    Raises:
        UsageError: the object is no SchedulingPolicy.
    """
    if not isinstance(policy, Mapping) or policy.get("kind") != KIND:
        raise UsageError(f"expected an object of kind {KIND}")
    metadata = policy.get("metadata")
    name = str(metadata.get("name") or "") if isinstance(metadata, Mapping) else ""
    for one in _diagnostics(policy):
        yield Finding(name, _explained(one, document), document)


def _diagnostics(policy: Object) -> Iterator[Diagnostic]:
    misshapen = list(shape.faults(policy))
    yield from misshapen
    try:
        decoded = decode_policy(shape.mended(policy, misshapen))
    except ObjectError as error:
        if not misshapen:
            yield Diagnostic("error", shape.CODE, error.reason, 1, 1, 1, None, error.field)
        return
    seen = {one.field for one in misshapen}
    yield from (one for one in compile_policy(decoded).diagnostics if one.field not in seen)


def _explained(one: Diagnostic, document: Document | None) -> Diagnostic:
    """Add what YAML did, where the text is short of what stands in the file."""
    node = document.node(one.field) if document else None
    if document is None or node is None or not one.code.startswith("E01"):
        return one
    if not places.comment_after(node, document.source.lines):
        return one
    return replace(one, help=f"{one.help}; {_COMMENT_HELP}" if one.help else _COMMENT_HELP)


def _help_line(indent: str, text: str | None) -> str:
    return f"\n{indent}= help: {text}" if text else ""
