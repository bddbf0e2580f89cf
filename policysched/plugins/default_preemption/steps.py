"""Victim search on all nodes at once, yielding between reprieve steps: for many pods and costly filters.

It costs what filters take in each step, however few the nodes: looking at some of them after others would take longer.
Where nothing changes it finds what a search without pauses finds. Each answer holds for a node as it was when it was
asked about; if anything has changed, all candidates are asked about once more in the end, in one piece.
"""

from __future__ import annotations

from typing import Final, TypeVar

import numpy as np

from policysched.framework import ChangedRows, Code, FailedDecision, Mask, RowNumbers, RowVerdicts
from policysched.model.pod_requirements import pod_priority
from policysched.plugins.default_preemption.budgets import Budgets
from policysched.plugins.default_preemption.guards import ask_guards
from policysched.plugins.default_preemption.reprieve import Places, Steps
from policysched.plugins.default_preemption.search import MOVED, Search, lower_on, searching_victims

T = TypeVar("T")
AT_ONCE: Final = 2048
"""How much filters are asked in a search without pauses. Units: units of the filters times steps."""
MANY: Final = 1 << 14
"""From how many placed pods on a search pauses, however little filters take."""


def takes_steps(failed: FailedDecision) -> bool:
    """Return whether a search on all nodes together is to pause."""
    units, cluster = failed.filter_units, failed.cluster
    if len(cluster.pods) >= MANY:
        return True
    return units > 0 and units * (1 + int(cluster.nodes.pods_count.data.max(initial=0))) > AT_ONCE


class Pauses:
    """The pauses of a search.

    Args:
        failed: The decision.
    """

    def __init__(self, failed: FailedDecision) -> None:
        self._failed = failed
        self.changes = 0
        """After how many of them something had changed."""

    async def take(self) -> bool:
        """Let others have their turn if it is time; return whether anything has changed."""
        changed = await self._failed.pause()
        self.changes += changed
        return changed

    async def run(self, work: Steps[T]) -> T | None:
        """Do work that tells something; return None where the decision does not hold any more."""
        try:
            next(work)
            while True:
                changed = await self.take()
                if changed and not self._failed.holds:
                    work.close()
                    return None
                work.send(changed)
        except StopIteration as end:
            outcome: T = end.value
            return outcome


async def search_in_steps(
    failed: FailedDecision, rows: RowNumbers, budgets: Budgets, pauses: Pauses
) -> tuple[Search, bool] | None:
    """Find the victims on nodes where preemption may help, pausing between the filters of each step.

    Args:
        failed: The decision.
        rows: The rows of the nodes.
        budgets: The disruption budgets.
        pauses: Takes the pauses.

    Returns:
        What was found, and whether all filters could tell; None where the decision does not hold any more.
    """
    priority, before = pod_priority(failed.pod), pauses.changes
    work = searching_victims(failed, priority, rows, budgets, failed.cluster.time.seconds, pauses=True)
    answer = await pauses.run(work)
    if answer is None:
        return None
    found, is_whole = answer
    return found, is_whole and (pauses.changes == before or _confirm(found, failed, priority, rows))


def _confirm(found: Search, failed: FailedDecision, priority: int, rows: RowNumbers) -> bool:
    """Leave out the nodes where the pod does not fit by now with the victims gone, or where guards keep one of them.

    Returns:
        Whether all filters could tell.
    """
    in_question = np.intersect1d(rows, failed.rows_with(Code.UNSCHEDULABLE))
    were = found.fits.copy()
    found.fits &= np.isin(found.rows, in_question)
    if failed.victim_guards:
        guarded = found.guarded = ask_guards(failed, lower_on(found.cluster, priority, in_question))
        kept = np.isin(found.slots, guarded.slots[~guarded.may_go]) & found.victims
        found.fits &= found.sum_up(kept.astype(np.int64)) == 0
    candidates = found.candidates
    verdicts = failed.verdicts(_without_victims(found, candidates))
    if verdicts is None:
        return False
    found.fits[candidates[~verdicts.fits]] = False
    _tell_why(found, were, candidates, verdicts)
    return True


def _without_victims(found: Search, candidates: Places) -> ChangedRows:
    rows = found.rows[candidates]
    of = np.repeat(np.arange(found.rows.size), np.diff(found.begins))
    places = np.flatnonzero(found.victims & np.isin(of, candidates))
    changed = ChangedRows(found.cluster, rows, found.slots[places], np.searchsorted(candidates, of[places]))
    changed.remove(np.arange(places.size))
    return changed


def _tell_why(found: Search, were: Mask, candidates: Places, verdicts: RowVerdicts) -> None:
    """Say of the nodes that were to be candidates why they are none."""
    for place in np.setdiff1d(np.flatnonzero(were), found.candidates).tolist():
        found.statuses[place] = MOVED
    for number in np.flatnonzero(~verdicts.fits).tolist():
        found.statuses[int(candidates[number])] = verdicts.status_of(number) or MOVED
