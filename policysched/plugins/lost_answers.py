"""Writes whose answers are lost or are no verdict: how long the API server is asked what became of them."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from policysched.framework import ApiError, Clock

NOT_FOUND: Final = "NotFound"
"""The reason of an API server's Status about an object that is not there."""
PATIENCE: Final = 30.0
"""How long it is asked again of a server that answers and refuses to tell: one that has just started refuses until it
knows the roles. Units: seconds."""


def is_verdict(error: ApiError) -> bool:
    """Return whether a write that failed was not carried out for sure.

    A gateway may have sent it twice: then a conflict may be one with itself.
    """
    return error.is_refusal and error.status != HTTPStatus.CONFLICT


def is_gone(error: ApiError) -> bool:
    """Return whether an answer says that an object is not there."""
    return (error.status, error.reason) == (HTTPStatus.NOT_FOUND, NOT_FOUND)


class Asking:
    """Whether to ask again: as long as no API server answers, or is busy, and of one that refuses for a while."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._refused_since = clock.monotonic()

    def goes_on(self, error: ApiError) -> bool:
        """Take an answer that did not tell; return whether to ask again."""
        now = self._clock.monotonic()
        if not error.is_refusal or error.status == HTTPStatus.TOO_MANY_REQUESTS:
            self._refused_since = now
        return now - self._refused_since < PATIENCE
