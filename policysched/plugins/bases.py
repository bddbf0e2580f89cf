"""Base classes that several default plugins share: filters with one reason, and scores within 0 to 100.

Shapes: R rows selected.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from policysched.framework import Codes, FilterPlugin, Mask, Rows, Status
from policysched.plugins.columns import codes_where


class RejectedRows(Protocol):
    """The state of a filter that rejects all rows for the same reason: an object that returns the rejected rows."""

    def rejects(self, rows: Rows) -> Mask:
        """Return a mask of the rejected rows. Shapes: (R,)."""


RejectedT = TypeVar("RejectedT", bound=RejectedRows)


@dataclass(frozen=True, slots=True)
class RowTest:
    """The state of a filter that rejects all rows for the same reason: a function that returns the rejected rows."""

    rejects: Callable[[Rows], Mask]


class OneReasonFilter(FilterPlugin[RejectedT]):
    """Base of filters with a single rejection reason; the state computes which rows are rejected."""

    rejection: Status
    """The status of rejected rows."""

    def filter(self, state: RejectedT, rows: Rows) -> Codes:
        """Return reason code 1 for rejected rows, and 0 for others."""
        return codes_where(state.rejects(rows))

    def reason(self, state: RejectedT, code: int) -> Status:  # noqa: ARG002 - there is one reason
        """Return the status of rejected rows."""
        return self.rejection


class ScoresInRange:
    """Base of score plugins whose final scores are always 0 to 100."""

    def stays_in_range(self, state: object) -> bool:  # noqa: ARG002 - the base's signature
        """Return True: final scores are always 0 to 100."""
        return True
