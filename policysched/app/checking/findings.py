"""Findings (diagnostics with policy and file position), and the expressions of a policy by field path.

This module knows fields, diagnostics and files, but not the language. An object with a wrong shape yields fewer
expressions but no error; `check` reports the shape. A finding determines its position in the file only when it is
shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from policysched.language import Diagnostic, render
from policysched.model.policy import API_GROUP, KIND, PolicyKey
from policysched.reading import positions
from policysched.reading.documents import Document
from policysched.reading.positions import SourcePosition
from policysched.visible import cut, visible

Start = Literal["expr", "case"]
FIELDS: Final[tuple[tuple[str, ...], ...]] = (
    ("appliesTo",),
    ("let", "*", "value"),
    ("filters", "*", "when"),
    ("filters", "*", "require"),
    ("preemption", "require"),
    ("scores", "*", "when"),
    ("scores", "*", "value"),
    ("scores", "*", "cases", "*"),
    ("placement", "filters", "*", "when"),
    ("placement", "filters", "*", "require"),
    ("placement", "scores", "*", "when"),
    ("placement", "scores", "*", "value"),
    ("placement", "scores", "*", "cases", "*"),
)
"""Paths of expressions below `spec`; `*` is every item of a list."""


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression of a policy: its text, its field path, and the syntax by which the parser reads the text."""

    field: str
    text: str
    start: Start


def is_policy(raw: Mapping[str, Any]) -> bool:
    """Return whether an object is a SchedulingPolicy of any version."""
    return raw.get("kind") == KIND and str(raw.get("apiVersion")).startswith(f"{API_GROUP}/")


def expressions(policy: Mapping[str, Any]) -> Iterator[Expression]:
    """Yield the expressions of a policy; numbers and values of wrong types are skipped."""
    spec = policy.get("spec")
    for steps in FIELDS:
        start: Start = "case" if "cases" in steps else "expr"
        for field, value in reach(spec, steps, "spec"):
            if isinstance(value, str):
                yield Expression(field, value, start)


def with_expressions(policy: Mapping[str, Any], change: Callable[[Expression], str]) -> dict[str, Any]:
    """Return a copy of a policy with every expression changed."""
    new = {one.field: change(one) for one in expressions(policy)}
    made: dict[str, Any] = _changed(dict(policy), "", new)
    return made


def reach(value: Any, steps: tuple[str, ...], path: str) -> Iterator[tuple[str, Any]]:
    """Yield the values to which a path leads, each with its own path; `*` in the path means every item of a list."""
    if not steps:
        yield path, value
    elif steps[0] == "*":
        for index, item in enumerate(value if isinstance(value, list) else ()):
            yield from reach(item, steps[1:], f"{path}[{index}]")
    elif isinstance(value, dict) and steps[0] in value:
        yield from reach(value[steps[0]], steps[1:], f"{path}.{steps[0]}")


def _changed(value: Any, path: str, new: Mapping[str, str]) -> Any:
    match value:
        case dict():
            return {key: _changed(item, f"{path}.{key}" if path else key, new) for key, item in value.items()}
        case list():
            return [_changed(item, f"{path}[{index}]", new) for index, item in enumerate(value)]
        case str():
            return new.get(path, value)
    return value


_COMMENT_HELP: Final = 'YAML treats everything after " #" as a comment: quote the text'
Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Finding:
    """An error or warning about a policy, with the policy and, if known, the position in the file."""

    policy: PolicyKey
    diagnostic: Diagnostic
    document: Document | None = None
    at_key: bool = False
    """Whether the finding is about a field's name, not its value."""

    @property
    def is_error(self) -> bool:
        """Whether the policy is unusable because of the finding."""
        return self.diagnostic.severity == "error"

    @property
    def severity(self) -> str:
        """`error` or `warning`."""
        return self.diagnostic.severity

    @property
    def code(self) -> str:
        """The error code, such as E0301."""
        return self.diagnostic.code

    @property
    def field(self) -> str:
        """Path of the field of the policy."""
        return self.diagnostic.field

    @property
    def line(self) -> int:
        """Line in the field's text, from 1."""
        return self.diagnostic.line

    @property
    def column(self) -> int:
        """First column in the line, from 1. Units: code points."""
        return self.diagnostic.column

    @property
    def end_column(self) -> int:
        """Column after the last column of the finding."""
        return self.diagnostic.end_column

    @property
    def message(self) -> str:
        """The message."""
        return self.diagnostic.message

    @property
    def help(self) -> str | None:
        """Advice on how to correct the policy; None without advice."""
        return self.diagnostic.help

    @property
    def file(self) -> str:
        """The file; empty for a dict."""
        return self.document.file if self.document else ""

    def place(self) -> SourcePosition | None:
        """Return the position in the file."""
        found, document = self.diagnostic, self.document
        if document is None:
            return None
        key = positions.key(document.source.root, document.inside(found.field)) if self.at_key else None
        return positions.start(key) if key else document.place(found.field, found.line, found.column)

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as `policysched check -o json` prints it, with long texts cut."""
        found, place = self.diagnostic, self.place()
        said = {
            "file": self.document.file if self.document else None,
            "policy": cut(self.policy),
            "severity": found.severity,
            "code": found.code,
            "field": cut(found.field),
            "line": found.line,
            "column": found.column,
            "endColumn": found.end_column,
            "message": cut(found.message),
            "help": found.help and cut(found.help),
        }
        return said | ({"fileLine": place.line, "fileColumn": place.column} if place else {})

    def text(self) -> str:
        """Return the finding with carets under the line of its file."""
        found, place = self.diagnostic, self.place()
        about = f"{visible(self.policy)} {visible(found.field)}:{found.line}:{found.column}".lstrip()
        if self.document is None or place is None:
            return f"{found.severity}[{found.code}]: {visible(found.message)}\n  --> {about}" + _help_line(
                "  ", found.help
            )
        moved = replace(found, line=place.line, column=place.column, end_column=self.end(place), help=None)
        gutter = " " * (len(str(place.line)) + 2)
        shown = render(moved, "\n".join(self.document.source.lines), self.document.file)
        return f"{shown}\n{gutter}= in {about}{_help_line(gutter, found.help)}"

    def end(self, begin: SourcePosition) -> int:
        """Return the end column of the finding in the file; a finding over several lines ends with its first line."""
        found, document = self.diagnostic, self.document
        if document is None or found.end_column <= found.column:
            return begin.column
        if self.at_key:
            return begin.column + found.end_column - found.column
        last = document.place(found.field, found.line, found.end_column - 1)
        if last.line != begin.line:
            return len(document.source.lines[begin.line - 1]) + 1
        return last.column + 1


def policy_key(policy: Object) -> PolicyKey:
    """Return the name of a policy; empty if the object has no name."""
    metadata = policy.get("metadata")
    return PolicyKey(str(metadata.get("name") or "") if isinstance(metadata, Mapping) else "")


def explained(one: Diagnostic, document: Document | None) -> Diagnostic:
    """Add a hint to an expression's error if YAML parses a part of the expression as a comment."""
    node = document.node(one.field) if document else None
    if document is None or node is None or not one.code.startswith("E01"):
        return one
    if not positions.comment_after(node, document.source.lines):
        return one
    return replace(one, help=f"{one.help}; {_COMMENT_HELP}" if one.help else _COMMENT_HELP)


def _help_line(indent: str, text: str | None) -> str:
    return f"\n{indent}= help: {visible(text)}" if text else ""
