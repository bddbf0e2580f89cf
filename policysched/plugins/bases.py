"""Bases that several default plugins share: filters with one reason, and scores that stay in range.

Shapes: R rows selected.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from policysched.framework import Codes, FilterPlugin, Mask, Rows, Status
from policysched.plugins.columns import codes_where


class RejectedRows(Protocol):
    """The state of a filter that rejects all rows for the same reason: it returns the rejected rows."""

    def rejects(self, rows: Rows) -> Mask:
        """Return a mask of the rejected rows. Shapes: (R,)."""


RejectedT = TypeVar("RejectedT", bound=RejectedRows)


@dataclass(frozen=True, slots=True)
class RowTest:
    """The state of a filter as a function that returns the rejected rows."""

    rejects: Callable[[Rows], Mask]


class OneReasonFilter(FilterPlugin[RejectedT]):
    """Base of filters with a single rejection reason, whose state returns the rejected rows."""

    rejection: Status
    """The status of rejected rows."""

    def filter(self, state: RejectedT, rows: Rows) -> Codes:
        """Return reason code 1 for rejected rows, and 0 for others."""
        return codes_where(state.rejects(rows))

    def reason(self, state: RejectedT, code: int) -> Status:  # noqa: ARG002 - there is one reason
        """Return the status with the filter's only reason."""
        return self.rejection


class ScoresInRange:
    """Base of score plugins whose final scores are always 0 to 100."""

    def stays_in_range(self, state: object) -> bool:  # noqa: ARG002 - the base's signature
        """Return True: final scores are always 0 to 100."""
        return True
