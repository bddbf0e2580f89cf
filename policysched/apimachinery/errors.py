"""API errors: exceptions with a `metav1.Status` object, and functions that build them.

Failures are exceptions, not values, because each ends its request. The server converts them into responses in one
place.
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
    """A StatusCause of a 422 error: the invalid field, the API's reason, and a message."""

    field: str
    reason: str
    text: str


class StatusError(Exception):
    """Error: a request failed; `status` is the Status object of the response."""

    def __init__(self, code: int, message: str, reason: str | None = None, details: Json | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.status = failure(code, message, REASONS.get(code, "Unknown") if reason is None else reason, details)


def failure(code: int, message: str, reason: str, details: Json | None = None) -> Json:
    """Return the Status object of a failed request."""
    status = _STATUS | {"status": "Failure", "message": message} | ({"reason": reason} if reason else {})
    return status | ({} if details is None else {"details": details}) | {"code": code}


def success(**more: Any) -> Json:
    """Return the Status object of a successful deletion or binding."""
    return _STATUS | {"status": "Success"} | more


_STATUS: Json = {"kind": "Status", "apiVersion": "v1", "metadata": {}}


def _refused(code: int, group: str, plural: str, name: str, text: str, reason: str | None = None) -> StatusError:
    details = {"name": name} | ({"group": group} if group else {}) | {"kind": plural}
    resource = f"{plural}.{group}" if group else plural
    return StatusError(code, text.replace("@", f'{resource} "{name}"', 1), reason, details)


def not_found(group: str, plural: str, name: str) -> StatusError:
    """Return the 404 error for an object that does not exist."""
    return _refused(404, group, plural, name, "@ not found")


def already_exists(group: str, plural: str, name: str) -> StatusError:
    """Return the 409 error for an object whose name is in use."""
    return _refused(409, group, plural, name, "@ already exists", "AlreadyExists")


def conflict(group: str, plural: str, name: str, why: str) -> StatusError:
    """Return the 409 error for an object that has changed since the client read it."""
    return _refused(409, group, plural, name, f"Operation cannot be fulfilled on @: {why}")


def forbidden(group: str, plural: str, name: str, why: str) -> StatusError:
    """Return the 403 error for a request that is not allowed."""
    return _refused(403, group, plural, name, f"@ is forbidden: {why}")


def precondition_failed(resource: str, place: tuple[str, str], word: str, wanted: str, found: str) -> str:
    """Return the error message for a request with a UID or resourceVersion precondition that the object fails."""
    key = "/".join(["/registry", resource, *filter(None, place)])
    return (
        f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: "
        f"Precondition failed: {word} in precondition: {wanted}, {word} in object meta: {found}"
    )


NO_SUCH = "the server could not find the requested resource"
NOT_ALLOWED = "the server does not allow this method on the requested resource"
STALE = "the object has been modified; please apply your changes to the latest version and try again"


def invalid(group: str, kind: str, name: str, causes: Sequence[Cause]) -> StatusError:
    """Return the 422 error for an invalid object, with all causes."""
    texts = [f"{cause.field}: {cause.text}" for cause in causes]
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    full = f"{kind}.{group}" if group else kind
    details: Json = {"name": name} if name else {}
    details |= ({"group": group} if group else {}) | {"kind": kind}
    details["causes"] = [{"reason": cause.reason, "message": cause.text, "field": cause.field} for cause in causes]
    return StatusError(422, f'{full} "{name}" is invalid: {listed}', details=details)


def required(field: str, why: str = "") -> Cause:
    """Return the cause "Required value" of a missing field."""
    return Cause(field, "FieldValueRequired", "Required value" + (f": {why}" if why else ""))


def wrong(field: str, value: object, why: str) -> Cause:
    """Return the cause "Invalid value" of a field."""
    return Cause(field, "FieldValueInvalid", f"Invalid value: {shown(value)}: {why}")


def unsupported(field: str, value: object, choices: Sequence[str]) -> Cause:
    """Return the cause "Unsupported value" of a field whose value is not one of the allowed values."""
    listed = ", ".join(f'"{choice}"' for choice in choices)
    text = f"Unsupported value: {shown(value)}: supported values: {listed}"
    return Cause(field, "FieldValueNotSupported", text)


def shown(value: object) -> str:
    """Format a value as in the API server's error messages about fields."""
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
    """Return the 422 error for a patch that adds unknown fields."""
    text = f"Invalid value: {shown(patched)}: {why}"
    causes = [{"reason": "FieldValueInvalid", "message": text, "field": "patch"}]
    return StatusError(422, f' "" is invalid: patch: {text}', details={"causes": causes})


def gone(asked: int, oldest: int) -> StatusError:
    """Return the 410 error for a resourceVersion older than the stored history."""
    return StatusError(410, f"too old resource version: {asked} ({oldest})", "Expired")
