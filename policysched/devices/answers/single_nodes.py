"""Nodes that own their devices, asked all at once as arrays: counted, or one search for all that are alike.

Shapes: D devices, N rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from policysched.budget import Budget
from policysched.devices.answers.group_outcomes import POOLS_A_STEP, GroupOutcomes
from policysched.devices.answers.wanted_kinds import WantedKinds
from policysched.devices.inventory.batch import Places
from policysched.devices.inventory.columns import NOBODY, Codes
from policysched.devices.inventory.tables import DeviceTables
from policysched.devices.outcomes import AllocationAnswer, Outcome
from policysched.devices.requests.kinds import combined_codes

UNANSWERED: Final = -1
_WIDEST: Final = 64
"""Up to how many devices nodes have that are compared as a whole."""


class NodeAnswers:
    """What came of asking about nodes that own their devices.

    Attributes:
        codes: An `AllocationAnswer` for each row, UNANSWERED for those about which nothing is known; (N,).
        details: The outcomes of rows that say more than their codes.
    """

    __slots__ = ("codes", "details")

    def __init__(self, rows: int) -> None:
        self.codes: NDArray[np.int8] = np.full(rows, UNANSWERED, np.int8)
        self.details: dict[int, Outcome] = {}


@dataclass(frozen=True, slots=True)
class OwnedDevices:
    """Devices that single nodes own.

    Attributes:
        rows: Their rows; (D,).
        owners: The rows of their nodes; (D,).
        kinds: Their kinds; (D,).
    """

    rows: Places
    owners: Codes
    kinds: Codes

    def of(self, chosen: NDArray[np.bool_]) -> OwnedDevices:
        """Return some of them. Shapes: chosen (D,)."""
        if chosen.all():
            return self
        places = chosen.nonzero()[0]
        return OwnedDevices(self.rows[places], self.owners[places], self.kinds[places])


class SingleNodes:
    """Asks nodes that see devices of their own alone what claims get there."""

    def __init__(self, tables: DeviceTables, groups: GroupOutcomes, wanted: WantedKinds) -> None:
        self._tables, self._groups, self._wanted = tables, groups, wanted

    def answer(self, rows: Sequence[int] | None, found: NodeAnswers, steps: Budget) -> None:
        """Answer nodes by counting, or by searching where they differ.

        Args:
            rows: the rows to answer, of other nodes NOBODY; None for all nodes that own their devices.
            found: takes the answers.
            steps: what it may take.

        Raises:
            BudgetExceededError: it takes more steps; some nodes may be answered.
        """
        columns, codes = self._tables.columns, found.codes
        [devices] = (columns.owner[: columns.size] != NOBODY).nonzero()
        if rows is not None:
            is_asked = np.zeros(codes.size + 1, np.bool_)  # the last one stands for NOBODY
            is_asked[rows] = True
            is_asked[NOBODY] = False
            devices = devices[is_asked[columns.owner[devices]]]
        if not devices.size:
            return
        owned = OwnedDevices(devices, columns.owner[devices], self._groups.kinds.of(devices, steps))
        if self._groups.wanted:
            self._count(owned, codes, steps)
        takes_search = codes[owned.owners] == UNANSWERED
        if np.count_nonzero(takes_search):
            self._search(self._narrow(owned.of(takes_search), codes.size), found, steps)

    def _count(self, owned: OwnedDevices, codes: NDArray[np.int8], steps: Budget) -> None:
        """Answer nodes by counting their free devices, but those that take a search. Shapes: codes (N,)."""
        columns, owners, kinds = self._tables.columns, owned.owners, owned.kinds
        fit, is_odd = self._wanted.suiting(kinds, steps)
        free = ~columns.used[owned.rows]
        codes[owners] = AllocationAnswer.YES
        for place, (_, count) in enumerate(self._groups.wanted):
            free_there = np.bincount(owners[(fit[place][kinds] & free).nonzero()[0]], minlength=codes.size)
            codes[(free_there < count) & (codes == AllocationAnswer.YES)] = AllocationAnswer.NO
        takes_search = columns.consumed[owned.rows]
        if np.count_nonzero(is_odd):
            takes_search |= is_odd[kinds]
        if np.count_nonzero(takes_search):
            codes[owners[takes_search]] = UNANSWERED

    def _narrow(self, owned: OwnedDevices, rows: int) -> OwnedDevices:
        """Leave out the devices of nodes that have more than are compared as a whole."""
        is_narrow = self._tables.columns.order[owned.rows] < 2 * _WIDEST
        if is_narrow.all():
            return owned
        is_wide = np.zeros(rows, np.bool_)
        is_wide[owned.owners[~is_narrow]] = True
        return owned.of(~is_wide[owned.owners])

    def _search(self, owned: OwnedDevices, found: NodeAnswers, steps: Budget) -> None:
        """Answer nodes by one search for all of them whose devices are alike, one after the other."""
        if not owned.rows.size:
            return
        alike, examples = self._alike(owned, found.codes.size)
        answers = np.full(len(examples), UNANSWERED, np.int8)
        outcomes: dict[int, Outcome] = {}
        try:
            for number, row in enumerate(examples):
                if row == NOBODY:
                    continue
                group = self._tables.node(row)[1]
                steps.spend(1 + len(group.pools) // POOLS_A_STEP)
                outcome = self._groups.outcome(group, steps)
                answers[number] = outcome.answer
                if outcome.has_details:
                    outcomes[number] = outcome
        finally:
            of_rows = answers[alike]
            np.copyto(found.codes, of_rows, where=of_rows != UNANSWERED)
            for number, outcome in outcomes.items():
                found.details.update(dict.fromkeys((alike == number).nonzero()[0].tolist(), outcome))

    def _alike(self, owned: OwnedDevices, rows: int) -> tuple[Places, list[int]]:
        """Number rows so that two have one number if their devices are alike, place by place.

        Returns:
            The number of each row, and for each number a row that has it, NOBODY for rows without devices.
            Shapes: (N,).
        """
        columns = self._tables.columns
        devices, order = owned.rows, columns.order[owned.rows]
        used = columns.used[devices].astype(np.int32)
        codes, _ = combined_codes((owned.kinds, used, order & 1, columns.signed[devices]))
        by_place = np.zeros((int(order.max()) // 2 + 1, rows), np.int32)
        by_place[order >> 1, owned.owners] = codes + 1
        alike, firsts = combined_codes([*by_place])
        return alike, np.where(by_place[0, firsts] != 0, firsts, NOBODY).tolist()
