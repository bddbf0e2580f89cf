"""Base classes of plugins: what many of them say of themselves, and the filter that has one reason.

Shapes: R rows asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from policysched.framework import Cluster, Codes, Hint, Mask, Rows, Scores, Status
from policysched.plugins.columns import codes_where


class OwnRowOnly:
    """A plugin whose answers depend on their own row alone, so prepared states never go stale as a whole."""

    lasting = True

    def generation(self, cluster: Cluster) -> Hashable:  # noqa: ARG002 - the protocol's signature
        """Return the same value always."""
        return 0


class HintTable:
    """A plugin whose queueing hints are a table."""

    hints: ClassVar[Sequence[Hint]] = ()

    def events(self) -> Sequence[Hint]:
        """Return the changes that can help a pod which the plugin rejected."""
        return self.hints


class RejectedRows(Protocol):
    """The state of a filter that has one reason."""

    def rejects(self, rows: Rows) -> Mask:
        """Return which rows are rejected. Shapes: (R,)."""


@dataclass(frozen=True, slots=True)
class RowTest:
    """A state made of a function, and of what that keeps."""

    rejects: Callable[[Rows], Mask]
    keeps: Any = None

    @property
    def nbytes(self) -> int:
        """The memory that it takes. Units: bytes."""
        return int(getattr(self.keeps, "nbytes", 0))


class OneReasonFilter(OwnRowOnly, HintTable):
    """A filter with one reason: `prepare_filter` gives a state that tells the rejected rows."""

    rejection: ClassVar[Status]

    def filter(self, state: RejectedRows, rows: Rows) -> Codes:
        """Return the one reason's code to rejected rows."""
        return codes_where(state.rejects(rows))

    def reason(self, state: Any, code: int) -> Status:  # noqa: ARG002 - there is one reason
        """Return the only reason."""
        return self.rejection


class ScoresInRange:
    """A score plugin whose final scores are 0 to 100 whatever objects say."""

    def stays_in_range(self, state: object) -> bool:  # noqa: ARG002 - the protocol's signature
        """Return True."""
        return True


class FinalScores:
    """A score plugin without normalisation."""

    normalizes = False

    def normalize(self, state: object, scores: Scores, feasible: Mask) -> Scores:  # noqa: ARG002 - as above
        """Return the scores as they are."""
        return scores
