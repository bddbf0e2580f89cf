"""Base classes of plugins with common answers, and of filters with one reason.

Shapes: R rows asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from policysched.framework import Cluster, Codes, Hint, Mask, Rows, Scores, Status
from policysched.plugins.columns import codes_where


class OwnRowOnly:
    """Base of plugins whose results depend on their own row alone, so a prepared state stays current."""

    lasting = True

    def generation(self, cluster: Cluster) -> Hashable:  # noqa: ARG002 - the protocol's signature
        """Return a constant."""
        return 0


class HintTable:
    """Base of plugins whose queueing hints are a fixed table."""

    hints: ClassVar[Sequence[Hint]] = ()

    def events(self) -> Sequence[Hint]:
        """Return the changes that can help a pod which the plugin rejected."""
        return self.hints


class RejectedRows(Protocol):
    """State of a filter with one reason."""

    def rejects(self, rows: Rows) -> Mask:
        """Return which rows are rejected. Shapes: (R,)."""


@dataclass(frozen=True, slots=True)
class RowTest:
    """State that consists of a function, and an object whose memory it reports."""

    rejects: Callable[[Rows], Mask]
    keeps: Any = None

    @property
    def nbytes(self) -> int:
        """The memory of the kept object. Units: bytes."""
        return int(getattr(self.keeps, "nbytes", 0))


class OneReasonFilter(OwnRowOnly, HintTable):
    """Base of filters with one reason; the prepared state computes the rejected rows."""

    rejection: ClassVar[Status]

    def filter(self, state: RejectedRows, rows: Rows) -> Codes:
        """Return code 1 for rejected rows."""
        return codes_where(state.rejects(rows))

    def reason(self, state: Any, code: int) -> Status:  # noqa: ARG002 - there is one reason
        """Return the only reason."""
        return self.rejection


class ScoresInRange:
    """Base of score plugins whose final scores are always 0 to 100."""

    def stays_in_range(self, state: object) -> bool:  # noqa: ARG002 - the protocol's signature
        """Return True."""
        return True


class FinalScores:
    """Base of score plugins without normalization."""

    normalizes = False

    def normalize(self, state: object, scores: Scores, feasible: Mask) -> Scores:  # noqa: ARG002 - as above
        """Return the scores as they are."""
        return scores
