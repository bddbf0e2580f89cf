"""`DeviceCounts`: evaluates claims on all groups of nodes together, by counting free devices in arrays.

Shapes: D devices, G groups of nodes, K kinds of devices, W requirements.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from policysched.budget import Budget
from policysched.devices.answers.group_search import GroupSearch
from policysched.devices.inventory.batch import GroupBatch
from policysched.devices.inventory.columns import Codes
from policysched.devices.inventory.tables import DeviceTables
from policysched.devices.outcomes import AllocationAnswer
from policysched.devices.requests.requirements import evaluate_kinds

UNANSWERED: Final = -1


class DeviceCounts:
    """Evaluates claims that only need a number of suitable devices, without constraints and shared counters.

    Args:
        tables: The devices.
        search: What is known of the claims and of kinds of devices.
    """

    def __init__(self, tables: DeviceTables, search: GroupSearch) -> None:
        self._tables, self._search = tables, search

    def codes(self, batch: GroupBatch, steps: Budget) -> NDArray[np.int8]:
        """Return the `AllocationAnswer` of each group of nodes; UNANSWERED if a group needs a search. Shapes: (G,).

        Even if all groups need a search, the kinds of all devices are found, which is cheaper than group by group.

        Raises:
            BudgetExceededError: The budget is used up; the next call continues.
        """
        codes: NDArray[np.int8] = np.full(len(batch.groups), UNANSWERED, np.int8)
        kinds = self._search.kinds.of(batch.devices, steps)
        wanted = self._search.plans.wanted
        if not wanted:
            return codes
        fit, needs_search = self._suitability(kinds, steps)
        columns = self._tables.columns
        free = ~columns.used[batch.devices]
        codes[:] = AllocationAnswer.YES
        for place, count in enumerate(wanted.values()):
            codes[_sums(fit[place][kinds] & free, batch) < count] = AllocationAnswer.NO
        if self._tables.unusable.are_invalid:
            for place in np.flatnonzero(codes == AllocationAnswer.NO).tolist():
                if self._tables.unusable.has_invalid(batch.groups[place]):
                    codes[place] = AllocationAnswer.INVALID_POOLS
        codes[_sums(needs_search[kinds] | columns.consumed[batch.devices], batch) > 0] = UNANSWERED
        return codes

    def _suitability(self, kinds: Codes, steps: Budget) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return which kinds of devices are suitable for each request, and which kinds need a search.

        Shapes: kinds (D,) -> (W, K), (K,).
        """
        search, wanted = self._search, self._search.plans.wanted
        every = search.kinds.kinds
        is_there = np.zeros(len(every), np.bool_)
        is_there[kinds] = True
        numbers = np.flatnonzero(is_there).tolist()
        evaluate_kinds(search.plans.requirements, [every[number] for number in numbers], search.known, steps)
        fit, needs_search = np.zeros((len(wanted), len(every)), np.bool_), np.zeros(len(every), np.bool_)
        for number in numbers:
            traits, each = every[number].traits, [suitabilities[number] for suitabilities in search.known]
            fits = [each[requirement].is_able and each[requirement].is_tolerated for requirement in wanted]
            fit[:, number] = fits
            is_special = bool(traits.counter_sets) or traits.shareable or any(one.failure for one in each)
            needs_search[number] = is_special or sum(fits) > 1
        return fit, needs_search


def _sums(values: NDArray[np.bool_], batch: GroupBatch) -> NDArray[np.int64]:
    """Return for each group of nodes how many of its devices have a true value.

    Shapes: (D,) -> (G,).
    """
    before = np.zeros(len(values) + 1, np.int64)
    np.cumsum(values, out=before[1:])
    in_views = before[batch.bounds[1:]] - before[batch.bounds[:-1]]
    sums: NDArray[np.int64] = np.add.reduceat(in_views[batch.seen], batch.seen_bounds[:-1])
    return sums
