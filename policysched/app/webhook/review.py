"""An AdmissionReview and its answer: a policy with errors is refused, warnings go to who applies it.

What is found is what `policysched check` finds, and the scheduler compiles with the same code.

Source: k8s.io/api/admission/v1/types.go, k8s.io/apiserver/pkg/warning/context.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from policysched.app.checking.check import findings
from policysched.app.checking.findings import Finding
from policysched.app.checking.schema import is_meant
from policysched.errors import UsageError
from policysched.language import render
from policysched.visible import cut_bytes, visible

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"
LONGEST_WARNING: Final = 256
"""The API server cuts longer ones. Units: bytes."""
MOST_WARNINGS: Final = 16
"""The API server cuts all of them together at 4 KiB."""
LONGEST_MESSAGE: Final = 16 << 10
"""Units: bytes."""
_CHECKED: Final = frozenset(("CREATE", "UPDATE"))
Object = Mapping[str, Any]


class _Request(msgspec.Struct, rename="camel"):
    uid: str
    operation: str = ""
    object: Any = None
    old_object: Any = None


class _Review(msgspec.Struct, rename="camel"):
    request: _Request
    kind: str = ""
    api_version: str = ""


_DECODER: Final = msgspec.json.Decoder(_Review)


def answer(raw: bytes) -> bytes:
    """Answer a review.

    An update that leaves the spec as it is passes: labels, annotations and finalizers of a policy that does not compile
    can be changed.

    Raises:
        UsageError: it is no AdmissionReview of v1.
    """
    try:
        review = _DECODER.decode(raw)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise UsageError(f"expected an {KIND}: {error}") from error
    if (review.kind, review.api_version) != (KIND, API_VERSION):
        raise UsageError(f"expected an {KIND} of {API_VERSION}")
    try:
        verdict = _verdict(review.request)
    except RecursionError:
        verdict = _refused("the policy is nested too deeply")
    response = {"uid": review.request.uid, **verdict}
    return msgspec.json.encode({"apiVersion": API_VERSION, "kind": KIND, "response": response})


def _is_same(old: Any, new: Any) -> bool:
    """Compare as JSON, in which 1 is not true."""
    return old == new and msgspec.json.encode(old, order="sorted") == msgspec.json.encode(new, order="sorted")


def _verdict(request: _Request) -> Object:
    policy = request.object
    if request.operation not in _CHECKED or not isinstance(policy, Mapping) or not is_meant(policy):
        return {"allowed": True}
    old = request.old_object
    if isinstance(old, Mapping) and _is_same(old.get("spec"), policy.get("spec")):
        return {"allowed": True}
    found = list(findings(policy))
    errors = [one for one in found if one.is_error]
    warnings = [_line(one) for one in found if not one.is_error][:MOST_WARNINGS]
    said = {"warnings": warnings} if warnings else {}
    if not errors:
        return {"allowed": True, **said}
    return {**_refused(_message(errors, policy)), **said}


def _refused(why: str) -> dict[str, Any]:
    return {"allowed": False, "status": {"code": 422, "reason": "Invalid", "message": why}}


def _line(finding: Finding) -> str:
    found = finding.diagnostic
    text = f"{found.code} {found.field}: {found.message}" + (f" ({found.help})" if found.help else "")
    return cut_bytes(visible(text), LONGEST_WARNING, "...")


def _message(errors: Iterable[Finding], policy: Object) -> str:
    """Say what is wrong, with carets under the texts that are meant."""
    said = "\n".join(_shown(one, policy) for one in errors)
    return cut_bytes(f"the policy does not compile:\n{said}", LONGEST_MESSAGE, "...")


def _shown(finding: Finding, policy: Object) -> str:
    text = _text_of(policy, finding.diagnostic.field)
    return render(finding.diagnostic, text, visible(finding.diagnostic.field)) if text is not None else finding.text()


def _text_of(policy: Object, field: str) -> str | None:
    """Return the text of a field such as `spec.filters[0].require`; None where it is none."""
    value: Any = policy
    for step in field.replace("[", ".").replace("]", "").split("."):
        if isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        elif isinstance(value, Mapping):
            value = value.get(step)
        else:
            return None
    return value if isinstance(value, str) else None
