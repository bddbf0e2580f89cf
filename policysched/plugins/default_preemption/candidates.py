"""The choice among nodes on which preemption would make a pod fit: where the victims cost least.

Criteria one after the other: fewest violations of disruption budgets, lowest priority of the most important victim,
lowest sum of priorities, fewest victims, latest start of the first started among the most important ones. Of nodes that
are equal in all of them any will do.

Source: pkg/scheduler/framework/preemption/preemption.go (pickOneNodeForPreemption), v1.36.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from policysched.model.objects import Pod
from policysched.plugins.default_preemption.search import Places, Search

LOWEST: Final = -(2**31)
"""The lowest priority: in the sum each one counts from here on, so that a victim more always costs more."""
CRITERIA: Final = (
    "violations of disruption budgets",
    "highest priority of a victim",
    "sum of priorities",
    "victims",
    "start of the most important victim",
)
"""The sum is that of what priorities are above the lowest one."""
START: Final = 4


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node and what making room there costs."""

    node: str
    victims: tuple[Pod, ...]
    """The most important first."""
    violating: frozenset[str]
    """Those whose going violates a disruption budget, as `namespace/name`."""
    loses_by: str = ""
    """The first criterion by which another node costs less, with both costs; empty for the best."""


class Choice:
    """The candidates of a search, and which of them cost least.

    Shapes: C candidates.
    """

    def __init__(self, found: Search, among: Places) -> None:
        self._found = found
        self.places = among
        """Their places among the nodes of the search."""
        self._loses_by = np.zeros(among.size, np.int8)
        best = np.arange(among.size)
        self._costs = list(self._worked_out())
        for number, costs in enumerate(self._costs, 1):
            of_best = costs[best]
            self._loses_by[best[of_best != of_best.min()]] = number
            best = best[of_best == of_best.min()]
        self._best = int(best[0])
        self.best: list[str] = sorted(self._name(place) for place in among[best].tolist())
        """The names of the best nodes."""

    def victims_on(self, node: str) -> list[Pod]:
        """List the victims on a candidate, the most important first."""
        row = self._found.cluster.nodes.row_of[node]
        return self._found.victims_on(int(np.searchsorted(self._found.rows, row)))

    def candidates(self) -> Iterator[Candidate]:
        """Give every candidate, by name; read them before the cluster changes."""
        for at in sorted(range(self.places.size), key=lambda at: self._name(int(self.places[at]))):
            place = int(self.places[at])
            yield Candidate(self._name(place), *self._found.victims_and_violations(place), self._why_not(at))

    def _why_not(self, at: int) -> str:
        number = int(self._loses_by[at]) - 1
        if number < 0:
            return ""
        costs = self._costs[number]
        here, there = (_shown(number, costs[one].item()) for one in (at, self._best))
        return f"{CRITERIA[number]}: {here} against {there}"

    def _name(self, place: int) -> str:
        return self._found.cluster.nodes.names[int(self._found.rows[place])]

    def _worked_out(self) -> Iterator[NDArray[np.float64 | np.int64]]:
        """Give the costs of the candidates by each criterion: less is better."""
        found = self._found
        victims, firsts = found.victims, found.begins[:-1]
        yield found.sum_up((victims & found.violating).astype(np.int64))[self.places]
        highest = np.maximum.reduceat(np.where(victims, found.priorities, LOWEST), firsts)
        yield highest[self.places]
        yield found.sum_up(np.where(victims, found.priorities - LOWEST, 0))[self.places]
        yield found.counts()[self.places]
        first_ones = victims & (found.priorities == np.repeat(highest, np.diff(found.begins)))
        yield -np.minimum.reduceat(np.where(first_ones, found.starts, np.inf), firsts)[self.places]


def _shown(number: int, cost: float) -> str:
    """Write a cost; a start may lie outside the years that other dates have, because offsets lead there."""
    return f"{np.datetime64(math.floor(-cost), 's')}Z" if number == START else str(int(cost))
