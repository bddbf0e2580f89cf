"""Answers to AdmissionReviews: a policy with errors is rejected, warnings go to the client.

The findings are those of `policysched check`, and the scheduler compiles with the same code.

Source: k8s.io/api/admission/v1/types.go, k8s.io/apiserver/pkg/warning/context.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from policysched.app.checking.check import findings
from policysched.app.checking.findings import Finding
from policysched.app.checking.schema import is_meant
from policysched.errors import UsageError
from policysched.language import render
from policysched.model import policy as policies
from policysched.reading.lenient_json import UNREADABLE, replaced, shallow
from policysched.visible import cut_bytes, visible

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"
LONGEST_WARNING: Final = 256
"""Longest warning; the API server cuts longer warnings. Units: bytes."""
MOST_WARNINGS: Final = 16
"""Largest number of warnings; the API server cuts their total at 4 KiB."""
LONGEST_MESSAGE: Final = 16 << 10
"""Largest size of the message, and of all causes together. Units: bytes."""
LARGEST_POLICY: Final = 1 << 20
"""Largest policy without metadata and status; a larger policy is rejected as slow to check. Units: bytes."""
LONGEST_KIND: Final = 1024
"""Longest text of a kind or apiVersion that can belong to a policy. Units: bytes."""
_CHECKED: Final = frozenset(("CREATE", "UPDATE"))
_UNCHECKED_FIELDS: Final = frozenset(("metadata", "status"))
_UNCHECKED_PATHS: Final = [
    ("request", version, *path)
    for version in ("object", "oldObject")
    for path in (("metadata", "managedFields"), ("status",))
]
MOST_BRACKETS: Final = 100_000
"""Largest number of brackets in a deeply nested review; more is an error, because searching needs memory."""
TOO_DEEP: Final = "the policy is nested too deeply"
_NULL: Final = msgspec.Raw(b"null")
Object = Mapping[str, Any]
Members = Mapping[str, msgspec.Raw]
"""The fields of an object, by name, as encoded JSON."""


class _Request(msgspec.Struct, rename="camel"):
    uid: str
    operation: str = ""
    object: msgspec.Raw = _NULL
    old_object: msgspec.Raw = _NULL


class _Metadata(msgspec.Struct):
    name: msgspec.Raw = _NULL


class _Review(msgspec.Struct, rename="camel"):
    request: _Request
    kind: str = ""
    api_version: str = ""


_DECODER: Final = msgspec.json.Decoder(_Review)
_MEMBERS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_METADATA: Final = msgspec.json.Decoder(_Metadata)


def answer(raw: bytes) -> bytes:
    """Answer a review.

    An update that leaves the spec as it is passes: labels, annotations and finalizers of a policy that does not compile
    can be changed.

    Raises:
        UsageError: the request is not an AdmissionReview of v1.
    """
    try:
        review, is_deep = _read(raw)
    except UNREADABLE as error:
        raise UsageError(f"expected an {KIND}: {error}") from error
    if (review.kind, review.api_version) != (KIND, API_VERSION):
        raise UsageError(f"expected an {KIND} of {API_VERSION}")
    try:
        verdict = _refused(TOO_DEEP) if is_deep else _verdict(review.request)
    except RecursionError:
        verdict = _refused(TOO_DEEP)
    except (msgspec.MsgspecError, UnicodeError) as error:
        verdict = _refused(f"the policy cannot be read: {error}")
    response = {"uid": review.request.uid, **verdict}
    return msgspec.json.encode({"apiVersion": API_VERSION, "kind": KIND, "response": response})


def _read(raw: bytes) -> tuple[_Review, bool]:
    """Decode a review; return the review, and whether a part that is checked is nested too deeply."""
    try:
        return _DECODER.decode(raw), False
    except RecursionError:
        if raw.count(b"[") + raw.count(b"{") > MOST_BRACKETS:
            said = f"expected an {KIND}: it is nested deeply and has more than {MOST_BRACKETS:,} brackets"
            raise UsageError(said) from None
        stated = replaced(raw, _UNCHECKED_PATHS, lambda _: bytes(_NULL))
        readable = shallow(stated)
        return _DECODER.decode(readable), readable != stated


def _verdict(request: _Request) -> Object:
    if request.operation not in _CHECKED:
        return {"allowed": True}
    new, old = _members(request.object), _members(request.old_object)
    if new is None or not _is_meant(new):
        return {"allowed": True}
    if old is not None and _is_same(old, new):
        return {"allowed": True}
    metadata = _metadata(new)
    size = _size(new) + len(metadata)
    if size > LARGEST_POLICY:
        return _refused(f"the policy is larger than {LARGEST_POLICY >> 10} KiB")
    policy = {name: _decoded(new, name) for name in new if name not in _UNCHECKED_FIELDS}
    if "metadata" in new:
        policy["metadata"] = msgspec.json.decode(metadata)
    found = list(findings(policy))
    errors = [one for one in found if one.is_error]
    warnings = [_line(one) for one in found if not one.is_error][:MOST_WARNINGS]
    said = {"warnings": warnings} if warnings else {}
    if not errors:
        return {"allowed": True, **said}
    shown = [(one.diagnostic.field, _shown(one, policy)) for one in errors]
    return {**_refused(_message(shown), shown, _text(policy, "metadata.name")), **said}


def _members(raw: msgspec.Raw) -> Members | None:
    """Split an object into its encoded fields; return None if the JSON value is not an object."""
    try:
        return _MEMBERS.decode(raw)
    except msgspec.ValidationError:
        return None


def _decoded(members: Members, name: str) -> Any:
    return msgspec.json.decode(members.get(name, _NULL))


def _is_meant(members: Members) -> bool:
    """Return whether an object is probably a policy, without decoding parts of unbounded size."""
    said = {name: members.get(name, _NULL) for name in ("kind", "apiVersion")}
    return is_meant(
        {name: msgspec.json.decode(raw) for name, raw in said.items() if len(memoryview(raw)) <= LONGEST_KIND}
    )


def _metadata(members: Members) -> bytes:
    """Return metadata reduced to the name, because managed fields are large; unchanged if not an object."""
    raw = members.get("metadata", _NULL)
    try:
        return b'{"name":%b}' % bytes(_METADATA.decode(raw).name)
    except msgspec.ValidationError:
        return bytes(raw)


def _size(members: Members) -> int:
    """Return the size of an object without its metadata, including field names."""
    checked = members.keys() - _UNCHECKED_FIELDS
    return sum(len(name) + len(memoryview(members[name])) for name in checked)


def _is_same(old: Members, new: Members) -> bool:
    """Return whether the specs of two policies are equal as JSON, in which 1 differs from true."""
    if bytes(old.get("spec", _NULL)) == bytes(new.get("spec", _NULL)):
        return True
    if max(_size(old), _size(new)) > LARGEST_POLICY:
        return False
    texts = (msgspec.json.encode(_decoded(one, "spec"), order="sorted") for one in (old, new))
    return next(texts) == next(texts)


def _refused(why: str, errors: Sequence[tuple[str, str]] = (), name: str | None = None) -> dict[str, Any]:
    """Return a rejection of a policy.

    kubectl prints the causes, and `kubectl edit` only these; other clients print the message.

    Args:
        why: The message.
        errors: Fields with their errors; without any, the message is the error of the whole spec.
        name: The name of the policy.
    """
    causes = _causes(errors or [("spec", why)])
    details = {"name": visible(name or ""), "group": policies.API_GROUP, "kind": policies.KIND, "causes": causes}
    return {"allowed": False, "status": {"code": 422, "reason": "Invalid", "message": why, "details": details}}


def _causes(errors: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
    """Return the causes of a rejection up to the size limit of a message, and the number of omitted causes."""
    causes: list[dict[str, str]] = []
    left = LONGEST_MESSAGE
    for number, (field, message) in enumerate(errors):
        if left < LONGEST_WARNING:
            return [*causes, _cause("spec", f"{len(errors) - number} more errors")]
        cause = _cause(cut_bytes(visible(field), LONGEST_WARNING, "..."), cut_bytes(message, left, "..."))
        left -= len(cause["field"].encode()) + len(cause["message"].encode())
        causes.append(cause)
    return causes


def _cause(field: str, message: str) -> dict[str, str]:
    return {"reason": "FieldValueInvalid", "field": field, "message": message}


def _line(finding: Finding) -> str:
    found = finding.diagnostic
    text = f"{found.code} {found.field}: {found.message}" + (f" ({found.help})" if found.help else "")
    return cut_bytes(visible(text), LONGEST_WARNING, "...")


def _message(errors: Iterable[tuple[str, str]]) -> str:
    """Return all errors, with carets under the expressions."""
    said = "\n".join(text for _, text in errors)
    return cut_bytes(f"the policy does not compile:\n{said}", LONGEST_MESSAGE, "...")


def _shown(finding: Finding, policy: Object) -> str:
    text = _text(policy, finding.diagnostic.field)
    return render(finding.diagnostic, text, visible(finding.diagnostic.field)) if text is not None else finding.text()


def _text(policy: Object, field: str) -> str | None:
    """Return the text of a field such as `spec.filters[0].require`; None if the field's value is not a text."""
    value: Any = policy
    for step in field.replace("[", ".").replace("]", "").split("."):
        if isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        elif isinstance(value, Mapping):
            value = value.get(step)
        else:
            return None
    return value if isinstance(value, str) else None
