"""Groups of nodes of which nothing but devices counts, asked all at once as arrays.

Shapes: D devices, G groups of nodes.
"""

from __future__ import annotations

from collections.abc import Container, Hashable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from policysched.budget import Budget
from policysched.devices.answers.group_outcomes import POOLS_A_STEP, GroupOutcomes, state
from policysched.devices.answers.single_nodes import UNANSWERED
from policysched.devices.answers.wanted_kinds import WantedKinds
from policysched.devices.inventory.batch import GroupBatch
from policysched.devices.inventory.columns import Codes
from policysched.devices.inventory.pool_views import NodeGroup
from policysched.devices.inventory.tables import DeviceTables
from policysched.devices.outcomes import AllocationAnswer, Outcome


class GroupAnswers:
    """What came of asking about some groups of a batch.

    Attributes:
        codes: An `AllocationAnswer` for each group; (G,).
        is_done: Which groups were answered; (G,).
        details: The outcomes of rows that say more than their codes.
    """

    __slots__ = ("codes", "details", "is_done")

    def __init__(self, batch: GroupBatch) -> None:
        self.codes: NDArray[np.int8] = np.full(len(batch.groups), UNANSWERED, np.int8)
        self.is_done: NDArray[np.bool_] = np.zeros(len(batch.groups), np.bool_)
        self.details: dict[int, Outcome] = {}


class GroupBatches:
    """Asks many groups of nodes what claims get there."""

    def __init__(self, tables: DeviceTables, groups: GroupOutcomes, wanted: WantedKinds) -> None:
        self._tables, self._groups, self._wanted = tables, groups, wanted

    def answer(self, batch: GroupBatch, asked: Container[NodeGroup], found: GroupAnswers, steps: Budget) -> None:
        """Answer groups by counting free devices, or by searching.

        Args:
            batch: the groups.
            asked: those of them to answer.
            found: takes the answers.
            steps: what it may take.

        Raises:
            BudgetExceededError: it takes more steps; some groups may be answered.
        """
        kinds = self._groups.kinds.of(batch.devices, steps)
        if self._groups.wanted:
            self._count(batch, kinds, found.codes, steps)
        is_asked = np.fromiter((one in asked for one in batch.groups), np.bool_, len(batch.groups))
        found.is_done[:] = is_asked & (found.codes != UNANSWERED)
        unanswered = np.flatnonzero(is_asked & ~found.is_done).tolist()
        states = self._states(batch, kinds) if unanswered else []
        seen, bounds = batch.seen.tolist(), batch.seen_bounds.tolist()
        try:
            for place in unanswered:
                views = seen[bounds[place] : bounds[place + 1]]
                steps.spend(1 + len(views) // POOLS_A_STEP)
                group = batch.groups[place]
                outcome = self._groups.outcome_of(tuple([states[view] for view in views]), group.pools, steps)
                found.codes[place] = outcome.answer
                found.is_done[place] = True
                if outcome.has_details:
                    found.details.update(dict.fromkeys(group.rows, outcome))
        finally:
            self._mark_invalid(batch, found.codes)

    def _count(self, batch: GroupBatch, kinds: Codes, codes: NDArray[np.int8], steps: Budget) -> None:
        """Answer groups by counting free devices, but those that take a search.

        Shapes: kinds (D,), codes (G,).
        """
        fit, is_odd = self._wanted.suiting(kinds, steps)
        columns = self._tables.columns
        free = ~columns.used[batch.devices]
        codes[:] = AllocationAnswer.YES
        for place, (_, count) in enumerate(self._groups.wanted):
            codes[_sums(fit[place][kinds] & free, batch) < count] = AllocationAnswer.NO
        codes[_sums(is_odd[kinds] | columns.consumed[batch.devices], batch) > 0] = UNANSWERED

    def _states(self, batch: GroupBatch, kinds: Codes) -> list[Hashable]:
        """Return the state of each view. Shapes: kinds (D,)."""
        devices, bounds = kinds.tobytes(), (batch.bounds * kinds.itemsize).tolist()
        each = zip(batch.views, pairwise(bounds), strict=True)
        return [state(devices[start:stop], view, None) for view, (start, stop) in each]

    def _mark_invalid(self, batch: GroupBatch, codes: NDArray[np.int8]) -> None:
        """Have invalid pools that no node can use count where nothing was found. Shapes: codes (G,)."""
        unusable = self._tables.unusable
        if unusable.are_invalid:
            for place in np.flatnonzero(codes == AllocationAnswer.NO).tolist():
                if unusable.has_invalid(batch.groups[place]):
                    codes[place] = AllocationAnswer.INVALID_POOLS


def _sums(is_counted: NDArray[np.bool_], batch: GroupBatch) -> NDArray[np.int64]:
    """Count devices of each group.

    Shapes: (D,) -> (G,).
    """
    before = np.zeros(len(is_counted) + 1, np.int64)
    np.cumsum(is_counted, out=before[1:])
    in_views = before[batch.bounds[1:]] - before[batch.bounds[:-1]]
    sums: NDArray[np.int64] = np.add.reduceat(in_views[batch.seen], batch.seen_bounds[:-1])
    return sums
