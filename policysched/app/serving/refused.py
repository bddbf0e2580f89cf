"""`RefusedError`: a request that the port rejects."""

from __future__ import annotations

from collections.abc import Mapping


class RefusedError(Exception):
    """Error: the port rejects a request, with status code, reason and message of the answer.

    Args:
        code: The status code.
        message: Reason for the client.
        headers: Additional headers, such as Allow or Retry-After.
    """

    def __init__(self, code: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.headers = headers or {}
