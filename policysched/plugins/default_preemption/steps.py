"""The search for victims on all nodes together with pauses, so that others get their turn: where policies take long.

It costs what filters take in each step, however few the nodes: looking at some of them after others would take longer.
Where nothing changes it finds what a search without pauses finds. Each answer holds for a node as it was when it was
asked about; if anything has changed, all candidates are asked about once more in the end, in one piece.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from policysched.framework import ChangedRows, Code, FailedDecision, Mask, RowVerdicts, unschedulable
from policysched.model.pod_requirements import pod_priority
from policysched.plugins.default_preemption.budgets import Budgets
from policysched.plugins.default_preemption.guards import ask_guards
from policysched.plugins.default_preemption.reprieve import Places
from policysched.plugins.default_preemption.search import Search, lower_on, searching_victims

AT_ONCE: Final = 2048
"""How much filters are asked in a search without pauses. Units: units of the filters times steps."""
MANY: Final = 1 << 14
"""From how many placed pods on a search pauses, however little filters take."""
MOVED: Final = unschedulable("the node changed while victims were looked for")


def takes_steps(failed: FailedDecision) -> bool:
    """Return whether a search on all nodes together is to pause."""
    units, cluster = failed.filter_units, failed.cluster
    if len(cluster.pods) >= MANY:
        return True
    return units > 0 and units * (1 + int(cluster.nodes.pods_count.data.max(initial=0))) > AT_ONCE


async def search_in_steps(failed: FailedDecision, budgets: Budgets) -> tuple[Search, bool] | None:
    """Find the victims on all nodes where preemption may help, pausing between the filters of each step.

    Args:
        failed: The decision.
        budgets: The disruption budgets.

    Returns:
        What was found, and whether all filters could tell; None where the decision does not hold any more.
    """
    priority, moved = pod_priority(failed.pod), False
    rows = failed.rows_with(Code.UNSCHEDULABLE)
    work = searching_victims(failed, priority, rows, budgets, failed.cluster.time.seconds, pauses=True)
    try:
        next(work)
        while True:
            changed = await failed.pause()
            if changed and not failed.holds:
                work.close()
                return None
            moved |= changed
            work.send(changed)
    except StopIteration as end:
        found, is_whole = end.value
    return found, is_whole and (not moved or _confirm(found, failed, priority))


def _confirm(found: Search, failed: FailedDecision, priority: int) -> bool:
    """Leave out the nodes where the pod does not fit by now with the victims gone, or where guards keep one of them.

    Returns:
        Whether all filters could tell.
    """
    in_question = failed.rows_with(Code.UNSCHEDULABLE)
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
