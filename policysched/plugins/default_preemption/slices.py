"""The search for victims in slices, so that others get their turn: where asking about all nodes takes long.

Volumes, some policies that read pods and out-of-tree filters answer for one node at a time, and guards may ask much of
each pod. The cluster goes on between two slices: each answer holds for a node as it was when it was asked about, and
the node that is chosen in the end is asked about once more if anything has changed since. A node that came into
question meanwhile is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from policysched.framework import NO_ROWS, Cluster, Code, FailedDecision, Status
from policysched.model.objects import Pod
from policysched.model.pod_requirements import pod_priority
from policysched.plugins.default_preemption.budgets import Budgets
from policysched.plugins.default_preemption.candidates import Choice, costs_of
from policysched.plugins.default_preemption.guards import Guarded
from policysched.plugins.default_preemption.search import search_victims

SLICE: Final = 64
"""About how many pods are taken away and brought back between two turns where filters answer for one node at a time."""
LARGEST: Final = 4096
"""Of how many pods, and nodes, a slice is at most where filters answer for many nodes at once."""
CHEAP: Final = 128
"""Up to how many units of the filters a slice is of so many pods; of fewer, in proportion, where they take more."""
ASKED: Final = 1 << 20
"""How much guards are asked in a slice. Units: pods times the units of the guards."""
TOGETHER: Final = 8
"""How many times that much they may be asked at once: slices cost more than they ask."""


def guards_take_long(failed: FailedDecision) -> bool:
    """Return whether guards may not be asked about all pods at once."""
    return len(failed.cluster.pods) * _guard_units(failed) > TOGETHER * ASKED


def pods_at_once(failed: FailedDecision, *, together: bool) -> int:
    """Return of about how many pods a slice is, where filters answer for many nodes together and where not."""
    if not together:
        return max(1, SLICE * CHEAP // max(CHEAP, failed.filter_units))
    return max(1, min(LARGEST, ASKED // max(1, _guard_units(failed))))


def _guard_units(failed: FailedDecision) -> int:
    return sum(one.units for one in failed.victim_guards)


@dataclass(frozen=True, slots=True)
class Found:
    """A candidate as it was when its node was asked about."""

    name: str
    victims: tuple[Pod, ...]
    violating: frozenset[str]
    costs: tuple[float, ...]
    generation: int
    """How often the cluster had changed since the search began."""


class SearchInSlices:
    """A search on some nodes after others.

    Args:
        failed: The decision.
        budgets_of: Gives the disruption budgets of a cluster as it is.
        pods: About how many pods are looked at between two turns.
    """

    def __init__(self, failed: FailedDecision, budgets_of: Callable[[Cluster], Budgets], pods: int = SLICE) -> None:
        self._failed, self._budgets_of, self._pods = failed, budgets_of, pods
        self.budgets = budgets_of(failed.cluster)
        self.failures: Counter[Status] = Counter()
        """The nodes that are no candidates, counted by their statuses."""
        self.guarded: Guarded | None = None
        """What guards said of the pods of lower priority; None where there are no guards."""
        self._found: dict[str, Found] = {}
        self._generation = 0

    async def run(self, rows: Sequence[int], most: int) -> bool:
        """Search on rows in their order, until there are so many candidates and one of them violates no budget.

        Returns:
            Whether the decision still holds.
        """
        left = list(rows)
        while left and not self._is_enough(most):
            number = self._slice(left, most)
            self._look_at(left[:number])
            left = left[number:]
            if left and await self._failed.pause():
                self._generation += 1
                if not self._failed.holds:
                    return False
                self.budgets = self._budgets_of(self._failed.cluster)
                still = set(self._failed.rows_with(Code.UNSCHEDULABLE).tolist())
                left = [row for row in left if row in still]
        return True

    def choose(self) -> tuple[str, Choice] | None:
        """Draw one of the candidates that cost least, with the choice among all; None where there is none."""
        while self._found:
            choice = self._choice()
            node = self._failed.rng.choice(choice.best)
            if self._found.pop(node).generation == self._generation:
                return node, choice
            row = self._failed.cluster.nodes.row_of.get(node, -1)
            if row in self._failed.rows_with(Code.UNSCHEDULABLE):
                self._look_at([row])
        return None

    def _is_enough(self, most: int) -> bool:
        return len(self._found) >= most and any(not one.violating for one in self._found.values())

    def _slice(self, rows: Sequence[int], most: int) -> int:
        """Return how many rows come before the next turn."""
        number, pods, on_row = 0, 0, self._failed.cluster.pods.on_row
        limit = min(len(rows), self._pods, max(1, most - len(self._found)))
        while number < limit and pods < self._pods:
            pods += len(on_row(rows[number]))
            number += 1
        return number

    def _look_at(self, rows: Sequence[int]) -> None:
        failed = self._failed
        cluster, priority = failed.cluster, pod_priority(failed.pod)
        wanted = np.array(sorted(rows), np.intp)
        found = search_victims(failed, priority, wanted, self.budgets, cluster.time.seconds)
        self.failures.update(found.failures())
        if found.guarded is not None:
            self.guarded = self.guarded or Guarded(cluster, NO_ROWS)
            self.guarded.add(found.guarded)
        places = found.candidates
        if not places.size:
            return
        costs = zip(*(one.tolist() for one in costs_of(found, places)), strict=True)
        for place, cost in zip(places.tolist(), costs, strict=True):
            name = cluster.nodes.names[int(found.rows[place])]
            self._found[name] = Found(name, *found.victims_and_violations(place), cost, self._generation)

    def _choice(self) -> Choice:
        found = list(self._found.values())
        costs = [np.array(one) for one in zip(*(one.costs for one in found), strict=True)]
        return Choice(costs, lambda at: found[at].name, lambda at: (found[at].victims, found[at].violating))
