"""The search for victims where a filter answers for one node at a time: in slices, so that others get their turn.

Host ports, volumes, policies that read pods and out-of-tree filters answer so. The cluster goes on between two slices:
each answer holds for a node as it was when it was asked about, and the node that is chosen in the end is asked about
once more if anything has changed since. A node that came into question meanwhile is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from policysched.framework import Cluster, Code, FailedDecision, Status
from policysched.model.objects import Pod
from policysched.model.pod_requirements import pod_priority
from policysched.plugins.default_preemption.budgets import Budgets
from policysched.plugins.default_preemption.candidates import Choice, costs_of
from policysched.plugins.default_preemption.guards import Guarded, ask_guards
from policysched.plugins.default_preemption.search import FEW, lower_on, search_victims

SLICE: Final = 64
"""About how many pods are taken away and brought back between two turns."""


@dataclass(frozen=True, slots=True)
class Found:
    """A candidate as it was when its node was asked about."""

    name: str
    victims: tuple[Pod, ...]
    violating: frozenset[str]
    costs: tuple[float, ...]
    generation: int
    """How often the cluster had changed since the search began."""


class NodeByNode:
    """A search on one node after another.

    Args:
        failed: The decision.
        budgets_of: Gives the disruption budgets of a cluster as it is.
    """

    def __init__(self, failed: FailedDecision, budgets_of: Callable[[Cluster], Budgets]) -> None:
        self._failed, self._budgets_of = failed, budgets_of
        self.budgets = budgets_of(failed.cluster)
        self.failures: Counter[Status] = Counter()
        """The nodes that are no candidates, counted by their statuses."""
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

    def guarded(self, rows: Sequence[int]) -> Guarded | None:
        """Return what guards say of the pods of lower priority on some rows; None where there are no guards."""
        failed = self._failed
        if not failed.victim_guards:
            return None
        return ask_guards(failed, lower_on(failed.cluster, pod_priority(failed.pod), np.array(rows, np.intp)))

    def _is_enough(self, most: int) -> bool:
        return len(self._found) >= most and any(not one.violating for one in self._found.values())

    def _slice(self, rows: Sequence[int], most: int) -> int:
        """Return how many rows come before the next turn."""
        number, pods, on_row = 0, 0, self._failed.cluster.pods.on_row
        limit = min(len(rows), FEW, max(1, most - len(self._found)))
        while number < limit and pods < SLICE:
            pods += len(on_row(rows[number]))
            number += 1
        return number

    def _look_at(self, rows: Sequence[int]) -> None:
        failed = self._failed
        cluster, priority = failed.cluster, pod_priority(failed.pod)
        wanted = np.array(sorted(rows), np.intp)
        found = search_victims(failed, priority, wanted, self.budgets, cluster.time.seconds)
        self.failures.update(found.failures())
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
