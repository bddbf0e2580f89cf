"""Checks of policies without a cluster: schema, names, expressions.

Without nodes, labels that no node has are not reported. One error never hides errors of other fields: a policy with a
wrong schema is repaired as far as possible and then compiled. Invisible characters are reported, because the text
differs from what it looks like.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, TypeAlias

from policysched.app.checking import schema
from policysched.app.checking.findings import Finding, explained, policy_key
from policysched.app.files.given import Objects, given_documents
from policysched.errors import UsageError
from policysched.language import Diagnostic, Span, diagnose
from policysched.model.decode import ObjectError
from policysched.model.policy import KIND, decode_policy
from policysched.reading.documents import Document
from policysched.rules.compile.compiler import compile_policy
from policysched.rules.compile.policy import CompiledPolicy
from policysched.visible import is_hidden, visible

_METRIC: Final = "`metrics."
"""First characters of a message about a metric. Metric values come from a metric source and not from nodes."""
WHOLE_POLICY: Final = frozenset({"W0709", "W0710", "W0711", "W0712"})
"""Codes of warnings about a whole policy; these warnings are suppressed while parts of the policy have errors."""
Object = Mapping[str, Any]
FindAbsent: TypeAlias = Callable[[CompiledPolicy], Iterable[Diagnostic]]
"""Function that returns warnings about labels, resources and values in a policy if no node or namespace has them."""


def check(policies: Objects) -> list[Finding]:
    """Return the errors and warnings of policies.

    Args:
        policies: SchedulingPolicy objects as dicts, YAML texts, or paths of files and folders.

    Returns:
        The findings, see `Finding`. Objects of other kinds in texts and files are ignored.

    Raises:
        UsageError: an object is not a SchedulingPolicy, or a file cannot be read.
    """
    given = list(given_documents(policies, "policies"))
    read = [one for one in given if isinstance(one, Document)]
    if read and not any(schema.is_meant(one.object) for one in read):
        raise UsageError(f"{read[0].file}: no {KIND} found")
    dicts = [one for one in given if not isinstance(one, Document)]
    return [found for one in dicts for found in findings(one)] + check_documents(read)


def check_documents(documents: Iterable[Document], find_absent: FindAbsent | None = None) -> list[Finding]:
    """Return the findings about the policies among documents; ignore documents of other kinds."""
    return [
        found
        for document in documents
        if schema.is_meant(document.object)
        for found in findings(document.object, document, find_absent)
    ]


def repeated_policies(
    documents: Iterable[Document], apart: Callable[[Document], Hashable] = lambda _: ()
) -> Iterator[UsageError]:
    """Yield an error for each policy whose name an earlier policy has; only one policy of a name can be in force.

    Args:
        documents: Objects of any kind.
        apart: Returns a key; documents with different keys are not compared.
    """
    first: dict[Hashable, Document] = {}
    for one in documents:
        name = policy_key(one.object)
        if not name or not schema.is_meant(one.object):
            continue
        before = first.setdefault((apart(one), name), one)
        if before is not one:
            yield UsageError(f'{one.where}: policy "{name}" is also defined at {before.where}')


def findings(
    policy: Object, document: Document | None = None, find_absent: FindAbsent | None = None
) -> Iterator[Finding]:
    """Return the errors and warnings of one policy.

    Raises:
        UsageError: the object is not a SchedulingPolicy.
    """
    if not isinstance(policy, Mapping) or not schema.is_meant(policy):
        raise UsageError(f"expected an object of kind {KIND}")
    name = policy_key(policy)
    said = list(_diagnostics(policy, find_absent))
    wrong = {one.field for one in said if one.severity == "error"}
    said += [one for one in hidden_characters(policy) if one.field not in wrong]
    found = [Finding(name, explained(one, document), document, one.message.startswith(schema.UNKNOWN)) for one in said]
    yield from sorted(found, key=lambda one: one.place() or (0, 0))


def _diagnostics(policy: Object, find_absent: FindAbsent | None) -> Iterator[Diagnostic]:
    misshapen = list(schema.faults(policy))
    yield from misshapen
    try:
        decoded = decode_policy(schema.mended(policy, misshapen))
    except ObjectError as error:
        if not misshapen:
            yield Diagnostic("error", schema.CODE, error.reason, 1, 1, 1, None, error.field)
        return
    result = compile_policy(decoded)
    idle = WHOLE_POLICY if misshapen else frozenset[str]()
    inside = tuple(f"{one.field}{end}" for one in misshapen for end in ".[")
    wrong = {one.field for one in misshapen}
    for one in result.diagnostics:
        if one.code not in idle and one.field not in wrong and not one.field.startswith(inside):
            yield one
    if result.policy is not None and find_absent is not None:
        yield from (one for one in find_absent(result.policy) if not one.message.startswith(_METRIC))


_LAYOUT: Final = frozenset("\n\t\r")
_SPEECH: Final = ".message"
"""Suffix of the paths of fields for messages to people; such a text may contain spaces other than U+0020."""
CODE: Final = "W0706"


def hidden_characters(policy: Mapping[str, Any]) -> Iterator[Diagnostic]:
    """Yield a warning per text of a policy: its first invisible character, and the number of the others."""
    for field, text in _texts(policy.get("spec"), "spec"):
        if text.isascii() and visible(text, None) == text:
            continue
        hidden = _is_unseen if field.endswith(_SPEECH) else _is_taken_for_another
        places = [place for place, one in enumerate(text) if hidden(one)]
        if places:
            name = unicodedata.name(text[places[0]], "").lower()
            character = f"U+{ord(text[places[0]]):04X}" + (f" ({name})" if name else "")
            more = f" and {len(places) - 1} more" if len(places) > 1 else ""
            variant = "" if _is_unseen(text[places[0]]) else "space"
            span = Span(places[0], places[0] + 1)
            yield replace(diagnose(CODE, text, span, variant, character=character, more=more), field=field)


def _is_unseen(character: str) -> bool:
    return character not in _LAYOUT and is_hidden(character)


def _is_taken_for_another(character: str) -> bool:
    """Return whether a character is invisible or looks like a plain space but is another character."""
    return _is_unseen(character) or (character != " " and unicodedata.category(character) == "Zs")


def _texts(value: Any, path: str) -> Iterator[tuple[str, str]]:
    match value:
        case str():
            yield path, value
        case dict():
            for key, item in value.items():
                yield from _texts(item, f"{path}.{key}")
        case list():
            for index, item in enumerate(value):
                yield from _texts(item, f"{path}[{index}]")
