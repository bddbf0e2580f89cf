"""The choice among nodes on which preemption would make a pod fit: where the victims cost least.

Criteria one after the other: fewest violations of disruption budgets, lowest priority of the most important victim,
lowest sum of priorities, fewest victims, latest start of the first started among the most important ones. Of nodes that
are equal in all of them any will do.

Source: pkg/scheduler/framework/preemption/preemption.go (pickOneNodeForPreemption), v1.36.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from policysched.late_dataclass import dataclass
from policysched.model.objects import Pod
from policysched.plugins.default_preemption.reprieve import Places
from policysched.plugins.default_preemption.search import Search

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
Costs = NDArray[np.float64 | np.int64]


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

    Shapes: C candidates, by their places.

    Args:
        costs: What making room there costs by each criterion: less is better. Shapes: (C,) each.
        name_of: Gives the name of a candidate.
        victims_of: Gives its victims, the most important first, and the names of those whose going violates a budget.
    """

    def __init__(
        self,
        costs: Sequence[Costs],
        name_of: Callable[[int], str],
        victims_of: Callable[[int], tuple[tuple[Pod, ...], frozenset[str]]],
    ) -> None:
        self._costs, self._name_of, self._victims_of = costs, name_of, victims_of
        self.size = costs[0].size
        self._loses_by = np.zeros(self.size, np.int8)
        best = np.arange(self.size)
        for number, cost in enumerate(costs, 1):
            of_best = cost[best]
            self._loses_by[best[of_best != of_best.min()]] = number
            best = best[of_best == of_best.min()]
        self._best = int(best[0])
        self._place_of = {name_of(at): at for at in best.tolist()}
        self.best: list[str] = sorted(self._place_of)
        """The names of the best nodes."""

    def victims_on(self, node: str) -> Sequence[Pod]:
        """List the victims on one of the best nodes, the most important first."""
        return self._victims_of(self._place_of[node])[0]

    def candidates(self) -> Iterator[Candidate]:
        """Give every candidate, by name; read them before the cluster changes."""
        for at in sorted(range(self.size), key=self._name_of):
            yield Candidate(self._name_of(at), *self._victims_of(at), self._why_not(at))

    def _why_not(self, at: int) -> str:
        number = int(self._loses_by[at]) - 1
        if number < 0:
            return ""
        costs = self._costs[number]
        here, there = (_shown(number, costs[one].item()) for one in (at, self._best))
        return f"{CRITERIA[number]}: {here} against {there}"


def choice_of(found: Search, among: Places) -> Choice:
    """Make the choice among some of the nodes of a search."""
    names, rows = found.cluster.nodes.names, found.rows[among]
    return Choice(
        list(costs_of(found, among)),
        lambda at: names[int(rows[at])],
        lambda at: found.victims_and_violations(int(among[at])),
    )


def costs_of(found: Search, among: Places) -> Iterator[Costs]:
    """Give the costs of some of the nodes of a search by each criterion: less is better.

    Shapes: (C,) each.
    """
    victims, firsts = found.victims, found.begins[:-1]
    yield found.sum_up((victims & found.violating).astype(np.int64))[among]
    highest = np.maximum.reduceat(np.where(victims, found.priorities, LOWEST), firsts)
    yield highest[among]
    yield found.sum_up(np.where(victims, found.priorities - LOWEST, 0))[among]
    yield found.counts()[among]
    first_ones = victims & (found.priorities == np.repeat(highest, np.diff(found.begins)))
    yield -np.minimum.reduceat(np.where(first_ones, found.starts, np.inf), firsts)[among]


def _shown(number: int, cost: float) -> str:
    """Write a cost; a start may lie outside the years that other dates have, because offsets lead there."""
    return f"{np.datetime64(math.floor(-cost), 's')}Z" if number == START else str(int(cost))
