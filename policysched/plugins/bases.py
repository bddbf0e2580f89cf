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
    """The state of a filter that has one reason."""

    def rejects(self, rows: Rows) -> Mask:
        """Return which rows are rejected. Shapes: (R,)."""


RejectedT = TypeVar("RejectedT", bound=RejectedRows)


@dataclass(frozen=True, slots=True)
class RowTest:
    """A state that consists of a function."""

    rejects: Callable[[Rows], Mask]


class OneReasonFilter(FilterPlugin[RejectedT]):
    """A filter with one reason; the state of `prepare_filter` returns the rejected rows."""

    rejection: Status
    """The status of rejected rows."""

    def filter(self, state: RejectedT, rows: Rows) -> Codes:
        """Return code 1 for rejected rows."""
        return codes_where(state.rejects(rows))

    def reason(self, state: RejectedT, code: int) -> Status:  # noqa: ARG002 - there is one reason
        """Return the only reason."""
        return self.rejection


class ScoresInRange:
    """A score plugin whose final scores are 0 to 100 for all possible objects."""

    def stays_in_range(self, state: object) -> bool:  # noqa: ARG002 - the base's signature
        """Return True."""
        return True
