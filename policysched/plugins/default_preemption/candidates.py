"""Choice of the candidate node whose victims cost least.

The criteria in order: fewest violations of disruption budgets, lowest priority of the most important victim, lowest sum
of priorities, fewest victims, latest start of the first started among the most important victims. Nodes that are equal
by all criteria are equally good.

Source: pkg/scheduler/framework/preemption/preemption.go (pickOneNodeForPreemption), v1.36.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from policysched.model.objects import Pod
from policysched.plugins.default_preemption.budgets import Places
from policysched.plugins.default_preemption.search import Search

LOWEST: Final = -(2**31)
"""The lowest priority. Sums count priorities from here, so that every further victim adds to the cost."""
CRITERIA: Final = (
    "violations of disruption budgets",
    "highest priority of a victim",
    "sum of priorities",
    "victims",
    "start of the most important victim",
)
"""The names of the criteria in records."""
START: Final = 4
Costs = NDArray[np.float64 | np.int64]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A candidate node with its victims."""

    node: str
    victims: tuple[Pod, ...]
    """The most important first."""
    violating: frozenset[str]
    """The victims whose eviction violates a disruption budget, as `namespace/name`."""
    loses_by: str = ""
    """The first criterion by which the best node costs less, with both costs; empty for the best nodes."""


class Choice:
    """The candidates of a search and the best ones among them; read it before the cluster changes.

    Shapes: C candidates.

    Args:
        found: A search that found candidates.
    """

    def __init__(self, found: Search) -> None:
        self._found, self._places = found, found.candidates
        self._costs = list(_costs(found, self._places))
        self._loses_by = np.zeros(self._places.size, np.int8)
        best = np.arange(self._places.size)
        for number, cost in enumerate(self._costs, 1):
            of_best = cost[best]
            self._loses_by[best[of_best != of_best.min()]] = number
            best = best[of_best == of_best.min()]
        self._best = int(best[0])
        self._place_of = {self._name(at): at for at in best.tolist()}
        self.best: list[str] = sorted(self._place_of)
        """The names of the best nodes."""

    def victims_on(self, node: str) -> Sequence[Pod]:
        """List the victims on one of the best nodes, the most important first."""
        return self._victims_and_violations(self._place_of[node])[0]

    def candidates(self) -> Iterator[Candidate]:
        """Yield every candidate, by name."""
        for at in sorted(range(self._places.size), key=self._name):
            yield Candidate(self._name(at), *self._victims_and_violations(at), self._why_not(at))

    def _name(self, at: int) -> str:
        return self._found.cluster.nodes.names[int(self._found.rows[self._places[at]])]

    def _victims_and_violations(self, at: int) -> tuple[tuple[Pod, ...], frozenset[str]]:
        return self._found.victims_and_violations(int(self._places[at]))

    def _why_not(self, at: int) -> str:
        number = int(self._loses_by[at]) - 1
        if number < 0:
            return ""
        costs = self._costs[number]
        here, there = (_shown(number, costs[one].item()) for one in (at, self._best))
        return f"{CRITERIA[number]}: {here} against {there}"


def _costs(found: Search, among: Places) -> Iterator[Costs]:
    """Yield the costs of nodes of a search by each criterion; lower is better.

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
    """Return a cost as text; time zone offsets may move a start beyond the years 1 to 9999."""
    return f"{np.datetime64(math.floor(-cost), 's')}Z" if number == START else str(int(cost))
