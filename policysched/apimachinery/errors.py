"""API errors as `metav1.Status` objects with a reason, a code and details.

It knows nothing of HTTP beyond the status code. Failures are exceptions here, and not values, because every
one of them ends the request it happens in: the server turns them into the response at one place.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from policysched.apimachinery import Json

REASONS = {
    400: "BadRequest",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    409: "Conflict",
    410: "Expired",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    504: "Timeout",
}


@dataclass(frozen=True, slots=True)
class Cause:
    """A StatusCause: what is wrong with a field of an object, its reason and its text."""

    field: str
    reason: str
    text: str


class StatusError(Exception):
    """A request that failed; `status` is the Status object that answers it."""

    def __init__(self, code: int, message: str, reason: str | None = None, details: Json | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.status = failure(code, message, REASONS.get(code, "Unknown") if reason is None else reason, details)


def failure(code: int, message: str, reason: str, details: Json | None = None) -> Json:
    """Build a Status object of a failed request."""
    status = _STATUS | {"status": "Failure", "message": message} | ({"reason": reason} if reason else {})
    return status | ({} if details is None else {"details": details}) | {"code": code}


def success(**more: Any) -> Json:
    """Build the Status object that answers a deletion or a binding."""
    return _STATUS | {"status": "Success"} | more


_STATUS: Json = {"kind": "Status", "apiVersion": "v1", "metadata": {}}


def _refused(code: int, group: str, plural: str, name: str, text: str, reason: str | None = None) -> StatusError:
    details = {"name": name} | ({"group": group} if group else {}) | {"kind": plural}
    resource = f"{plural}.{group}" if group else plural
    return StatusError(code, text.replace("@", f'{resource} "{name}"', 1), reason, details)


def not_found(group: str, plural: str, name: str) -> StatusError:
    """404: there is no such object."""
    return _refused(404, group, plural, name, "@ not found")


def already_exists(group: str, plural: str, name: str) -> StatusError:
    """409: an object of that name is there."""
    return _refused(409, group, plural, name, "@ already exists", "AlreadyExists")


def conflict(group: str, plural: str, name: str, why: str) -> StatusError:
    """409: the object is no longer as the request supposes."""
    return _refused(409, group, plural, name, f"Operation cannot be fulfilled on @: {why}")


def forbidden(group: str, plural: str, name: str, why: str) -> StatusError:
    """403: not allowed."""
    return _refused(403, group, plural, name, f"@ is forbidden: {why}")


def precondition_failed(resource: str, place: tuple[str, str], word: str, wanted: str, found: str) -> str:
    """Write the message of a failed precondition: the object's UID or version is not the one asked for."""
    key = "/".join(["/registry", resource, *filter(None, place)])
    return (
        f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: "
        f"Precondition failed: {word} in precondition: {wanted}, {word} in object meta: {found}"
    )


NO_SUCH = "the server could not find the requested resource"
NOT_ALLOWED = "the server does not allow this method on the requested resource"
STALE = "the object has been modified; please apply your changes to the latest version and try again"


def invalid(group: str, kind: str, name: str, causes: Sequence[Cause]) -> StatusError:
    """422: the object breaks its kind's rules; every cause is listed."""
    texts = [f"{cause.field}: {cause.text}" for cause in causes]
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    full = f"{kind}.{group}" if group else kind
    details: Json = {"name": name} if name else {}
    details |= ({"group": group} if group else {}) | {"kind": kind}
    details["causes"] = [{"reason": cause.reason, "message": cause.text, "field": cause.field} for cause in causes]
    return StatusError(422, f'{full} "{name}" is invalid: {listed}', details=details)


def required(field: str, why: str = "") -> Cause:
    """Return the cause "Required value" of a field that is not there."""
    return Cause(field, "FieldValueRequired", "Required value" + (f": {why}" if why else ""))


def wrong(field: str, value: object, why: str) -> Cause:
    """Return the cause "Invalid value" of a field."""
    return Cause(field, "FieldValueInvalid", f"Invalid value: {shown(value)}: {why}")


def unsupported(field: str, value: object, choices: Sequence[str]) -> Cause:
    """Return the cause "Unsupported value" of a field whose value is none of its choices."""
    listed = ", ".join(f'"{choice}"' for choice in choices)
    text = f"Unsupported value: {shown(value)}: supported values: {listed}"
    return Cause(field, "FieldValueNotSupported", text)


def shown(value: object) -> str:
    """Write a value the way field errors show it."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return json.dumps(value, ensure_ascii=False)
        case None:
            return "null"
        case dict():
            return "{" + ",".join(f'"{key}":{shown(item)}' for key, item in sorted(value.items())) + "}"
        case list():
            return "[" + ",".join(map(shown, value)) + "]"
    return str(value)


def unreadable_patch(patched: str, why: str) -> StatusError:
    """422: the patched object has fields that its kind does not have."""
    text = f"Invalid value: {shown(patched)}: {why}"
    causes = [{"reason": "FieldValueInvalid", "message": text, "field": "patch"}]
    return StatusError(422, f' "" is invalid: patch: {text}', details={"causes": causes})


def gone(asked: int, oldest: int) -> StatusError:
    """410: the history no longer reaches back to the version asked for."""
    return StatusError(410, f"too old resource version: {asked} ({oldest})", "Expired")
