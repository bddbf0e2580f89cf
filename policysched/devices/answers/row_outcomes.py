"""`RowOutcomes`: the outcome of claims on each node, and the nodes whose outcomes changed."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from policysched.devices.inventory.batch import Places
from policysched.devices.inventory.pool_views import NodeGroup
from policysched.devices.inventory.tables import DeviceTables
from policysched.devices.outcomes import BYTES_AN_OUTCOME, NO, YES, AllocationAnswer, Outcome

_MOST_LOGGED: Final = 1024
"""Maximum number of changed nodes in the log; beyond it, all nodes are treated as changed."""
_FEW_ROWS: Final = 32
"""Number of nodes of a group up to which answers are compared one by one instead of as arrays."""
_LAST_ANSWER: Final = int(AllocationAnswer.INVALID_POOLS)
"""Largest code of `AllocationAnswer` that is no error of the whole pod; larger codes are errors."""


class RowOutcomes:
    """The outcome of claims with equal specs on each node.

    Args:
        tables: The devices. Their counter `answered` gives stamps that are unique over all claims.

    Attributes:
        codes: An `AllocationAnswer` for each row.
        stamp: A number that changes with the codes; no codes of other claims ever have it.
    """

    def __init__(self, tables: DeviceTables) -> None:
        self._tables = tables
        self.codes: NDArray[np.int8] = np.zeros(0, np.int8)
        self.stamp = 0
        self._details: dict[int, Outcome] = {}
        """The outcomes that have more details than an `AllocationAnswer`, by row number of the node."""
        self._failing: int | None = None
        """Number of nodes with answer ERROR or TIMEOUT; None if it has to be counted again."""
        self._log: list[tuple[int, int]] = []
        """The latest values of `stamp`, each with the row number of the node whose answer changed."""
        self._logged_from = 0
        self._renew()

    @property
    def has_failures(self) -> bool:
        """Whether the answer of any node is ERROR or TIMEOUT."""
        if self._failing is None:
            self._failing = int(np.count_nonzero(self.codes > _LAST_ANSWER))
        return self._failing > 0

    @property
    def size(self) -> int:
        """Estimated memory of the outcomes. Units: bytes."""
        return len(self.codes) + len(self._details) * BYTES_AN_OUTCOME

    def rows_since(self, stamp: int) -> list[int] | None:
        """Return the row numbers of nodes whose answers changed since a value of `stamp`; None if any may have."""
        if stamp < self._logged_from:
            return None
        rows = []
        for when, row in reversed(self._log):
            if when <= stamp:
                break
            rows.append(row)
        return rows

    def outcome(self, row: int) -> Outcome:
        """Return the outcome on a node, possibly without its devices."""
        return self._details.get(row) or Outcome(AllocationAnswer(int(self.codes[row])))

    def grow(self, rows: int) -> None:
        """Extend the array of answers to at least `rows` nodes; new nodes have the answer NO."""
        if rows > len(self.codes):
            grown = np.full(max(rows, 2 * len(self.codes)), AllocationAnswer.NO, np.int8)
            grown[: len(self.codes)] = self.codes
            self.codes = grown
            self._renew()

    def note(self, group: NodeGroup, outcome: Outcome) -> None:
        """Store the outcome of a search for all nodes of a group."""
        answer = int(outcome.answer)
        has_details = outcome is not YES and outcome is not NO and outcome.has_details
        for row in group.rows if len(group.rows) <= _FEW_ROWS else self._with_other_answer(group, answer):
            before = int(self.codes[row])
            if before != answer:
                self.codes[row] = answer
                self._renew(row)
                if before > _LAST_ANSWER or answer > _LAST_ANSWER:
                    self._failing = None
        if has_details:
            self._details.update(dict.fromkeys(group.rows, outcome))
        elif self._details:
            for row in group.rows:
                self._details.pop(row, None)

    def note_many(self, rows: Places, codes: NDArray[np.int8]) -> None:
        """Store the answers for many nodes, whose outcomes have no details.

        Shapes: rows (R,), codes (R,).
        """
        if not rows.size:
            return
        self.codes[rows] = codes
        self._failing = None
        self._renew()
        for row in rows.tolist() if self._details else ():
            self._details.pop(row, None)

    def _with_other_answer(self, group: NodeGroup, answer: int) -> list[int]:
        """Return the row numbers of the nodes of a group whose stored answer is not `answer`."""
        rows = np.fromiter(group.rows, np.int64, len(group.rows))
        found: list[int] = rows[self.codes[rows] != answer].tolist()
        return found

    def _renew(self, row: int | None = None) -> None:
        """Increase `stamp`, and log the node whose answer changed; without a row, the answers of all nodes changed."""
        self._tables.answered += 1
        self.stamp = self._tables.answered
        if row is None or len(self._log) >= _MOST_LOGGED:
            self._log.clear()
            self._logged_from = self.stamp
        else:
            self._log.append((self.stamp, row))
