"""`WantedKinds`: which kinds of devices fit what claims want so many of, as arrays over all kinds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from policysched.budget import Budget
from policysched.devices.answers.group_outcomes import GroupOutcomes
from policysched.devices.inventory.columns import Codes
from policysched.devices.requests.requirements import DeviceKind


class WantedKinds:
    """Which kinds of devices fit, for claims that are answered by counting.

    Shapes: W requirements, K kinds.
    """

    def __init__(self, groups: GroupOutcomes) -> None:
        self._groups = groups
        self._is_asked: NDArray[np.bool_] = np.zeros(0, np.bool_)
        """Of each kind whether it is known if it fits."""
        self._is_odd: NDArray[np.bool_] = np.zeros(0, np.bool_)
        """Of each kind that is known whether its devices take a search."""
        self._fits: NDArray[np.bool_] = np.zeros((len(groups.wanted), 0), np.bool_)
        """Of each wanted requirement and kind that is known whether it fits."""

    def suiting(self, kinds: Codes, steps: Budget) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Ask about all kinds among those of some devices that were not asked about.

        Returns:
            For each wanted requirement which kinds fit; which kinds take a search. Shapes: (W, K), (K,).

        Raises:
            BudgetExceededError: it takes more steps; what was found out is known then.
        """
        known = self._groups.kinds.kinds
        if len(known) > len(self._is_asked):
            more = max(len(known), 2 * len(self._is_asked)) - len(self._is_asked)
            nothing = np.zeros(more, np.bool_)
            self._is_asked, self._is_odd = (np.append(one, nothing) for one in (self._is_asked, self._is_odd))
            self._fits = np.hstack((self._fits, np.zeros((len(self._fits), more), np.bool_)))
        if np.count_nonzero(self._is_asked) < len(known):
            is_there = np.zeros(len(self._is_asked), np.bool_)
            is_there[kinds] = True
            for number in np.flatnonzero(is_there & ~self._is_asked).tolist():
                self._ask_about(known[number], steps)
        return self._fits, self._is_odd

    def _ask_about(self, kind: DeviceKind, steps: Budget) -> None:
        """Note which wanted requirements a kind of device fits, and whether more than its number counts."""
        groups = self._groups
        groups.ask_about([kind], steps)
        each = [remembered[kind.number] for remembered in groups.known]
        fits = [one.is_able and one.is_tolerated for one in each]
        takes_part = bool(kind.traits.counter_sets) or kind.traits.shareable or any(one.failure for one in each)
        self._is_odd[kind.number] = takes_part or (len(groups.wanted) > 1 and sum(fits) > 1)
        for place, (requirement, _) in enumerate(groups.wanted):
            self._fits[place, kind.number] = fits[requirement]
        self._is_asked[kind.number] = True
