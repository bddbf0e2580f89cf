"""`RowOutcomes`: what came of asking about each node, and on which nodes that changed since an earlier revision."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from policysched.devices.inventory.batch import Places
from policysched.devices.inventory.columns import NOBODY
from policysched.devices.inventory.pool_views import NodeGroup
from policysched.devices.inventory.tables import DeviceTables
from policysched.devices.outcomes import BYTES_AN_OUTCOME, NO, YES, AllocationAnswer, Outcome

_MOST_LOGGED: Final = 1024
"""How many rows that changed are named."""
_FEW_ROWS: Final = 32
"""Up to how many rows of a group are looked at one by one."""
_LAST_ANSWER: Final = int(AllocationAnswer.INVALID_POOLS)
"""The last code that is no failure."""


class RowOutcomes:
    """The outcome of each row.

    Args:
        tables: the devices, which number what is answered of whatever claims.

    Attributes:
        codes: An `AllocationAnswer` for each row.
        revision: A number that no other codes have had, of whatever claims.
    """

    def __init__(self, tables: DeviceTables) -> None:
        self._tables = tables
        self.codes: NDArray[np.int8] = np.zeros(0, np.int8)
        self.revision = 0
        self._details: dict[int, Outcome] = {}
        """The outcomes of rows that say more than their codes."""
        self._failing: int | None = None
        """How many rows have the code ERROR or TIMEOUT, None where they are to be counted."""
        self._log: list[tuple[int, int]] = []
        """The revisions from one on, each with the row that changed."""
        self._logged_from = 0
        self._renew()

    @property
    def has_failures(self) -> bool:
        """Whether the code of any row is ERROR or TIMEOUT."""
        if self._failing is None:
            self._failing = int(np.count_nonzero(self.codes > _LAST_ANSWER))
        return self._failing > 0

    @property
    def size(self) -> int:
        """About how much memory it takes. Units: bytes."""
        return len(self.codes) + len(self._details) * BYTES_AN_OUTCOME

    def rows_since(self, revision: int) -> list[int] | None:
        """Return the rows of which codes changed since a revision, None where that is not known."""
        if revision < self._logged_from:
            return None
        rows = []
        for when, row in reversed(self._log):
            if when <= revision:
                break
            rows.append(row)
        return rows

    def outcome(self, row: int) -> Outcome:
        """Return the outcome of a row; it need not name devices."""
        return self._details.get(row) or Outcome(AllocationAnswer(int(self.codes[row])))

    def grow(self, rows: int) -> None:
        """Have a code for so many rows at least; it is NO for those that are new."""
        if rows > len(self.codes):
            grown = np.full(max(rows, 2 * len(self.codes)), AllocationAnswer.NO, np.int8)
            grown[: len(self.codes)] = self.codes
            self.codes = grown
            self._renew()

    def note(self, group: NodeGroup, outcome: Outcome) -> None:
        """Take over what came of asking about a group."""
        answer = int(outcome.answer)
        has_details = outcome is not YES and outcome is not NO and outcome.has_details
        for row in group.rows if len(group.rows) <= _FEW_ROWS else self._otherwise(group, answer):
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

    def note_many(self, rows: Places, codes: NDArray[np.int8], details: Mapping[int, Outcome]) -> None:
        """Take over what came of asking about many rows.

        Shapes: rows (R,), codes (R,).
        """
        if not rows.size:
            return
        self.codes[rows] = codes
        self._failing = None
        self._renew()
        for row in rows.tolist() if self._details else ():
            self._details.pop(row, None)
        self._details.update(details)

    def _otherwise(self, group: NodeGroup, answer: int) -> list[int]:
        """Return the rows of a group that had another answer."""
        rows = np.fromiter(group.rows, np.int64, len(group.rows))
        found: list[int] = rows[self.codes[rows] != answer].tolist()
        return found

    def _renew(self, row: int = NOBODY) -> None:
        """Take another revision after the code of a row changed, or perhaps those of many."""
        self._tables.answered += 1
        self.revision = self._tables.answered
        if row == NOBODY or len(self._log) >= _MOST_LOGGED:
            self._log.clear()
            self._logged_from = self.revision
        else:
            self._log.append((self.revision, row))
