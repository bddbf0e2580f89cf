"""Victim search over chunks of nodes, yielding between them: for per-node filters and costly guards.

Volumes, some policies that read pods and out-of-tree filters answer for one node at a time, and guards may ask much of
each pod. The cluster goes on between two slices, between the steps in a slice and between the verdicts of a node: each
answer holds for a node as it was when it was asked about, and the node that is chosen in the end is asked about once
more if anything has changed since. A node that came into question meanwhile is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from policysched.framework import NO_ROWS, Cluster, Code, FailedDecision, RowNumbers, Status
from policysched.late_dataclass import dataclass
from policysched.model.objects import Pod
from policysched.model.pod_requirements import pod_priority
from policysched.pausing import finished
from policysched.plugins.default_preemption.budgets import Budgets
from policysched.plugins.default_preemption.candidates import Choice, costs_of
from policysched.plugins.default_preemption.guards import Guarded
from policysched.plugins.default_preemption.search import Search, search_victims, searching_on
from policysched.plugins.default_preemption.steps import Pauses, search_in_steps

SLICE: Final = 64
"""Of about how many pods a slice is where filters answer for one node at a time."""
LARGEST: Final = 4096
"""Of how many pods, and nodes, a slice is at most where they answer for many."""
ASKED: Final = 1 << 20
"""How much guards are asked in a slice. Units: pods times the units of the guards."""
ONE_GUARD: Final = 10_000
"""What asking one guard takes beside, about however few pods. Units: as `ASKED`."""
TOGETHER: Final = 8
"""How many times that much they may be asked at once: slices cost more than they ask."""


def guards_take_long(failed: FailedDecision) -> bool:
    """Return whether guards may not be asked about all pods at once."""
    return len(failed.cluster.pods) * _guard_units(failed) > TOGETHER * ASKED


def pods_at_once(failed: FailedDecision) -> int:
    """Return of about how many pods a slice is, where filters answer for many nodes together."""
    asked = ASKED + ONE_GUARD * len(failed.victim_guards)
    return max(1, min(LARGEST, asked // max(1, _guard_units(failed))))


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
        together: Whether filters answer for many nodes at once; else one by one.
    """

    def __init__(self, failed: FailedDecision, budgets_of: Callable[[Cluster], Budgets], *, together: bool) -> None:
        self._failed, self._budgets_of, self._together = failed, budgets_of, together
        self._pods, self._pauses = pods_at_once(failed) if together else SLICE, Pauses(failed)
        self.budgets = budgets_of(failed.cluster)
        self.failures: Counter[Status] = Counter()
        """The nodes that are no candidates, counted by their statuses."""
        self.guarded: Guarded | None = None
        """What guards said of the pods of lower priority; None where there are no guards."""
        self._found: dict[str, Found] = {}
        self._renewed_at = 0
        """After how many changes it was last seen where preemption may help."""

    async def run(self, rows: Sequence[int], most: int) -> bool:
        """Search on rows in their order, until there are so many candidates and one of them violates no budget.

        Returns:
            Whether the decision still holds.
        """
        left = list(rows)
        while left and not self._is_enough(most):
            number, before = self._slice(left, most), self._pauses.changes
            if not await self._look_at(left[:number]):
                return False
            left = left[number:]
            if left:
                await self._pauses.take()
            if self._pauses.changes > before:
                if not self._failed.holds:
                    return False
                still = self._renewed()
                left = [row for row in left if row in still]
        return True

    async def choose(self) -> tuple[str, Choice] | None:
        """Draw one of the candidates that cost least, with the choice among all.

        A candidate that was asked about anew goes before its equals, or changes might lead from one to the next for
        ever; one that was asked about anew before is asked about without a pause.

        Returns:
            None where there is none, or where the decision does not hold any more.
        """
        again: set[str] = set()
        node = ""
        while self._found:
            choice = self._choice()
            if node not in choice.best:
                node = self._failed.rng.choice(choice.best)
            if self._found[node].generation == self._pauses.changes:
                return node, choice
            del self._found[node]
            row, still = self._failed.cluster.nodes.row_of.get(node, -1), self._renewed()
            if row in still and not await self._look_at([row], pauses=node not in again):
                return None
            again.add(node)
        return None

    def _renewed(self) -> set[int]:
        """Take the budgets as they are now; return the rows where preemption may help."""
        self.budgets, self._renewed_at = self._budgets_of(self._failed.cluster), self._pauses.changes
        return set(self._failed.rows_with(Code.UNSCHEDULABLE).tolist())

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

    async def _look_at(self, rows: Sequence[int], *, pauses: bool = True) -> bool:
        """Look at the nodes of a slice; return whether the decision still holds."""
        failed, wanted = self._failed, np.array(sorted(rows), np.intp)
        if not pauses:
            priority, seconds = pod_priority(failed.pod), failed.cluster.time.seconds
            self._take(search_victims(failed, priority, wanted, self.budgets, seconds), self._pauses.changes)
            return True
        if self._together:
            answer = await search_in_steps(failed, wanted, self.budgets, self._pauses)
            if answer is None:
                return False
            found, is_whole = answer
            if is_whole:
                self._take(found, self._pauses.changes)
                return True
        return await self._look_one_by_one(wanted)

    async def _look_one_by_one(self, rows: RowNumbers) -> bool:
        """Look at one node after the other, anew at those whose pods change; return whether the decision holds still.

        Of many nodes the first ones may have changed since they were asked about.
        """
        failed = self._failed
        for pauses in (True, True, False):
            before = self._pauses.changes
            if self._renewed_at != self._pauses.changes:
                rows = np.intersect1d(rows, failed.rows_with(Code.UNSCHEDULABLE))
            if not rows.size:
                break
            work = searching_on(failed, pod_priority(failed.pod), rows, self.budgets, failed.cluster.time.seconds)
            found = await self._pauses.run(work) if pauses else finished(work)
            if found is None:
                return False
            self._take(found, before if rows.size > 1 else self._pauses.changes)
            rows = found.rows[found.moved]
        return True

    def _take(self, found: Search, generation: int) -> None:
        cluster = self._failed.cluster
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
            self._found[name] = Found(name, *found.victims_and_violations(place), cost, generation)

    def _choice(self) -> Choice:
        found = list(self._found.values())
        costs = [np.array(one) for one in zip(*(one.costs for one in found), strict=True)]
        return Choice(costs, lambda at: found[at].name, lambda at: (found[at].victims, found[at].violating))
