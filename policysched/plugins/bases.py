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
    """The state of a filter with one rejection reason: an object whose method returns the rejected nodes."""

    def rejects(self, rows: Rows) -> Mask:
        """Return a mask of the rejected nodes. Shapes: (R,)."""


RejectedT = TypeVar("RejectedT", bound=RejectedRows)


@dataclass(frozen=True, slots=True)
class RowTest:
    """The state of a filter with one rejection reason: a function that returns a mask of the rejected nodes."""

    rejects: Callable[[Rows], Mask]


class OneReasonFilter(FilterPlugin[RejectedT]):
    """Base of filters with a single rejection reason; the state computes which nodes are rejected."""

    rejection: Status
    """The status of rejected nodes."""

    def filter(self, state: RejectedT, rows: Rows) -> Codes:
        """Return reason code 1 for rejected nodes, and 0 for others."""
        return codes_where(state.rejects(rows))

    def reason(self, state: RejectedT, code: int) -> Status:  # noqa: ARG002 - there is one reason
        """Return the status of rejected nodes."""
        return self.rejection


class ScoresInRange:
    """Base of score plugins whose final scores are always 0 to 100."""

    def stays_in_range(self, state: object) -> bool:  # noqa: ARG002 - the base's signature
        """Return True: final scores are always 0 to 100."""
        return True
