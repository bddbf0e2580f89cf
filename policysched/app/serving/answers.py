"""Answers of the port: texts, JSON, and rejections in the API server's form (`metav1.Status`)."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

import msgspec
from aiohttp import web

from policysched.app.serving.refused import RefusedError

PLAIN: Final = "text/plain; charset=utf-8"
JSON: Final = "application/json"
HEADERS: Final = {"Server": "policysched", "Cache-Control": "no-cache, private", "X-Content-Type-Options": "nosniff"}
_REASONS: Final[Mapping[int, str]] = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    413: "RequestEntityTooLarge",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
}


def text_answer(text: str, code: int = 200, media: str = PLAIN) -> web.Response:
    """Return an answer with a text."""
    return web.Response(body=text.encode(), status=code, headers={**HEADERS, "Content-Type": media})


def json_answer(value: Any, code: int = 200) -> web.Response:
    """Return an answer with indented JSON."""
    body = msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"
    return web.Response(body=body, status=code, headers={**HEADERS, "Content-Type": JSON})


def refusal(error: RefusedError) -> web.Response:
    """Return an answer that contains the error as a Kubernetes Status."""
    status: dict[str, Any] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": str(error),
        "reason": _REASONS.get(error.code, HTTPStatus(error.code).phrase.replace(" ", "")),
    }
    if error.code == HTTPStatus.FORBIDDEN:
        status["details"] = {}
    answer = json_answer(status | {"code": error.code}, error.code)
    answer.headers.update(error.headers)
    return answer
