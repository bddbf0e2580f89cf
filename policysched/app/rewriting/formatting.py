"""`fmt`: formats the expressions of policies and keeps all other bytes of a file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any

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
from policysched.app.rewriting.files import Rewritten, RewrittenFile, edited, rewrite_files
from policysched.app.rewriting.scalars import DocumentNodes, Edit, joined, rewrite
from policysched.language import Diagnostic, format_text
from policysched.reading.documents import Document, Source, read


def format_source(text: str, file: str) -> Rewritten:
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
        return Rewritten(text, 0, tuple(findings))
    new = edited(text, edits, file, list(map(_meaning, documents)), _meaning)
    return Rewritten(new, len(edits), tuple(findings))


class _Formatting:
    """The formatting of one document of a file: a policy or a list of policies."""

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
        """Yield the edits of the document; a scalar that an alias shares with another kind of field is skipped."""
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
    """Return whether a text equals the canonical form of an expression, apart from line breaks."""
    return text == wanted or ("\n" in text and joined(text) == wanted)


def _meaning(document: Document) -> Any:
    if not is_policy(document.object):
        return document.object

    def meant(one: Expression) -> str:
        new = canonical(one)
        return one.text if isinstance(new, Diagnostic) else new

    return with_expressions(document.object, meant)


def format_files(names: Iterable[str], notes: list[str] | None = None) -> Iterator[RewrittenFile]:
    """Format files, folders and standard input (`-`) one after another, see `rewrite_files`."""
    return rewrite_files(names, format_source, notes)
