"""The search for victims: on every node the fewest pods of lower priority that have to go for a pod to fit.

All pods of lower priority are taken away first. Where the pod fits then, they are brought back one by one, those whose
going would violate a disruption budget first, and in each group the more important ones first; those beside which the
pod does not fit any more are the victims. Pods stand in arrays, ordered by node and then in this order, so that one
step is made on all nodes at once as long as filters answer for many nodes; where one does not, node by node.

Shapes: R nodes that may become candidates, V pods on them of lower priority.
Source: plugins/defaultpreemption/default_preemption.go (SelectVictimsOnNode), pkg/scheduler/util/utils.go
(MoreImportantPod), v1.36.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Sequence
from dataclasses import field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from policysched.framework import (
    ChangedRows,
    Cluster,
    Code,
    FailedDecision,
    Mask,
    RowNumbers,
    RowVerdicts,
    Status,
    WhatIf,
    unresolvable,
    unschedulable,
)
from policysched.late_dataclass import dataclass
from policysched.model.objects import Pod
from policysched.pausing import finished
from policysched.plugins.default_preemption.budgets import Budgets
from policysched.plugins.default_preemption.guards import Guarded, ask_guards
from policysched.plugins.default_preemption.reprieve import Places, Reprieve, Steps, until_moved
from policysched.state.placed.pods import PlacedPod

NO_VICTIMS = unresolvable("No preemption victims found for incoming pod")
MOVED: Final = unschedulable("the node changed during the search for victims")
FEW: Final = 64
"""Of how many rows at most the pods are listed row by row, rather than looked for among all pods."""
READ: Final = 4096
"""Of how many pods the start is read at once."""


@dataclass(slots=True)
class Search:
    """What was found on each node."""

    cluster: Cluster
    rows: RowNumbers
    """The nodes with pods of lower priority that may go, among those that preemption may help on."""
    begins: Places
    """(R + 1,): where the pods of each node begin."""
    slots: Places
    """(V,): the pods, by their slots in the pod table, in the order in which they are brought back."""
    priorities: NDArray[np.int64]
    starts: NDArray[np.float64]
    """When each pod started; one that has not started counts as starting now."""
    importance: Places
    """(V,): the place of each pod in an order in which those of a node stand by importance."""
    violating: Mask
    """(V,): whose going violates a budget."""
    victims: Mask
    """(V,): who has to go."""
    fits: Mask
    """(R,): where the pod fits with all of them gone."""
    verdicts: RowVerdicts | None = None
    statuses: dict[int, Status] = field(default_factory=dict)
    """Why the pod fits not even then, by the node's place, where nodes were asked one by one."""
    empty_rows: RowNumbers = field(default_factory=lambda: np.zeros(0, np.intp))
    """The nodes without pods of lower priority that may go."""
    guarded: Guarded | None = None
    """What guards say of the pods of lower priority; None where there are no guards."""
    moved: list[int] = field(default_factory=list)
    """The places of nodes whose pods changed while nodes were asked one by one: nothing is known of these."""

    @property
    def candidates(self) -> Places:
        """The places of the nodes where victims are known that make the pod fit."""
        return np.flatnonzero(self.fits & self.counts().astype(np.bool_))

    def counts(self) -> NDArray[np.int64]:
        """Count the victims of each node.

        Shapes: (R,).
        """
        return self.sum_up(self.victims.astype(np.int64))

    def sum_up(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Sum values of pods up by node; sums wrap around in 64 bits.

        Shapes: (V,) -> (R,).
        """
        return np.add.reduceat(values, self.begins[:-1]) if self.rows.size else np.zeros(0, np.int64)

    def victims_and_violations(self, place: int) -> tuple[tuple[Pod, ...], frozenset[str]]:
        """Return a node's victims, the most important first, and the names of those whose going violates a budget."""
        begin, end = int(self.begins[place]), int(self.begins[place + 1])
        places = begin + np.flatnonzero(self.victims[begin:end])
        by_importance = places[np.argsort(self.importance[places])].tolist()
        placed = [(number, self.cluster.pods.by_slot[int(self.slots[number])]) for number in by_importance]
        pods = [(number, one.pod) for number, one in placed if one is not None]
        violating = frozenset(pod.key for number, pod in pods if self.violating[number])
        return tuple(pod for _, pod in pods), violating

    def failures(self) -> Counter[Status]:
        """Count the nodes that are no candidates by their statuses; those of which nothing is known do not count."""
        reasons = {} if self.guarded is None else self.guarded.reasons()
        protected = [row for row in self.empty_rows.tolist() if row in reasons] if reasons else []
        found = Counter({NO_VICTIMS: self.empty_rows.size - len(protected)})
        found.update(unschedulable(*reasons[row]) for row in protected)
        known = np.setdiff1d(np.arange(self.rows.size), self.moved) if self.moved else np.arange(self.rows.size)
        for place in np.setdiff1d(known, self.candidates).tolist():
            status = self._failure(place)
            more = reasons.get(int(self.rows[place])) if reasons else None
            if more is not None and status.code is not Code.ERROR:
                status = unschedulable(*status.reasons, *more)
            found[status] += 1
        return found

    def _failure(self, place: int) -> Status:
        status = self.statuses.get(place)
        if status is None and self.verdicts is not None:
            status = self.verdicts.status_of(place)
        name = self.cluster.nodes.names[int(self.rows[place])]
        return status or Status(Code.ERROR, (f'expected at least one victim pod on node "{name}"',))


def answers_together(failed: FailedDecision) -> bool:
    """Return whether all filters answer for many nodes at once."""
    nowhere = np.zeros(0, np.intp)
    return failed.verdicts(ChangedRows(failed.cluster, nowhere, nowhere, nowhere)) is not None


def search_victims(failed: FailedDecision, priority: int, rows: RowNumbers, budgets: Budgets, now: float) -> Search:
    """Find the victims on all of some nodes.

    Args:
        failed: The decision.
        priority: The priority of the pod that is to fit.
        rows: The rows of the nodes.
        budgets: The disruption budgets.
        now: When pods count as started that have not. Units: seconds since 1970.

    Cost: O(pods of lower priority), plus a few operations over the nodes for each of the pods of the fullest one.
    """
    found, is_whole = finished(searching_victims(failed, priority, rows, budgets, now))
    if not is_whole:
        finished(searching_one_by_one(found, failed, budgets))
    return found


def searching_victims(
    failed: FailedDecision, priority: int, rows: RowNumbers, budgets: Budgets, now: float, *, pauses: bool = False
) -> Steps[tuple[Search, bool]]:
    """Find the victims on all of some nodes together, pausing after each filter, as `search_victims` does.

    Args:
        failed: The decision.
        priority: The priority of the pod that is to fit.
        rows: The rows of the nodes.
        budgets: The disruption budgets.
        now: When pods count as started that have not. Units: seconds since 1970.
        pauses: Whether the cluster may change in a pause.

    Returns:
        What was found, and whether all filters could tell of many nodes at once; it means nothing where they could not.
    """
    if pauses and (yield from _reading_starts(failed, priority, rows)):
        rows = np.intersect1d(rows, failed.rows_with(Code.UNSCHEDULABLE))
    found, changed = _without_lower(failed, priority, rows, now)
    if not found.rows.size:
        return found, True
    moved, verdicts = yield from until_moved(failed.asking(changed))
    if moved:
        rows = np.intersect1d(rows, failed.rows_with(Code.UNSCHEDULABLE))
        found, changed = _without_lower(failed, priority, rows, now)
        verdicts = failed.verdicts(changed)
    if not found.rows.size:
        return found, True
    if verdicts is None:
        return found, False
    found.verdicts, found.fits = verdicts, verdicts.fits.copy()
    _put_violating_first(found, budgets)
    return found, (yield from _bringing_back(found, failed, pauses=pauses))


def _reading_starts(failed: FailedDecision, priority: int, rows: RowNumbers) -> Steps[bool]:
    """Read when pods of lower priority started, of those that nobody has asked about; return whether anything changed.

    It is kept with the pods, and what a slot's next pod has is read anew: so a change does no harm.
    """
    moved, pods = False, failed.cluster.pods
    slots = lower_on(failed.cluster, priority, rows)
    for begin in range(0, slots.size, READ):
        pods.starts(slots[begin : begin + READ])
        moved |= bool((yield))
    return moved


def _without_lower(failed: FailedDecision, priority: int, rows: RowNumbers, now: float) -> tuple[Search, ChangedRows]:
    """Gather the pods of lower priority, and take them all away."""
    found = _gather(failed, priority, rows, now)
    of = np.repeat(np.arange(found.rows.size), np.diff(found.begins))
    changed = ChangedRows(found.cluster, found.rows, found.slots, of)
    changed.remove(np.arange(found.slots.size))
    return found, changed


def searching_one_by_one(found: Search, failed: FailedDecision, budgets: Budgets) -> Steps[None]:
    """Find the victims on one node after the other, pausing after each verdict."""
    if found.verdicts is None:
        found.fits[:] = True
        _put_violating_first(found, budgets)
    held = [failed.cluster.pods.on_row(row) for row in found.rows.tolist()]
    nodes = [NodeReprieve(found, failed, place, there) for place, there in enumerate(held)]
    moved = False
    for node in nodes:
        if not moved or node.stays:
            yield from node.run()
        moved |= node.moved
    if moved:
        found.moved = [place for place, node in enumerate(nodes) if not (node.done and node.stays)]
        found.fits[found.moved] = False


def searching_on(
    failed: FailedDecision, priority: int, rows: RowNumbers, budgets: Budgets, now: float
) -> Steps[Search]:
    """Find the victims on some nodes, one after the other, pausing after each verdict; see `searching_victims`."""
    found = _gather(failed, priority, rows, now)
    if found.guarded is not None:
        found.guarded.read()
    yield from searching_one_by_one(found, failed, budgets)
    return found


def _gather(failed: FailedDecision, priority: int, rows: RowNumbers, now: float) -> Search:
    """List the pods of lower priority that may go by node and importance; no budget is asked yet."""
    cluster = failed.cluster
    pods = cluster.pods
    slots = lower_on(cluster, priority, rows)
    guarded = ask_guards(failed, slots) if failed.victim_guards else None
    if guarded is not None:
        slots = slots[guarded.may_go]
    priorities = cluster.signatures.priorities()[pods.signatures[slots]]
    starts = pods.starts(slots)
    starts[np.isinf(starts)] = now
    order = np.lexsort((starts, -priorities, pods.rows[slots]))
    slots = slots[order]
    there, begins = np.unique(pods.rows[slots].astype(np.intp), return_index=True)
    return Search(
        cluster,
        there,
        np.append(begins, slots.size),
        slots,
        priorities[order],
        starts[order],
        np.arange(slots.size),
        np.zeros(slots.size, np.bool_),
        np.zeros(slots.size, np.bool_),
        np.zeros(there.size, np.bool_),
        empty_rows=np.setdiff1d(rows, there),
        guarded=guarded,
    )


def lower_on(cluster: Cluster, priority: int, rows: RowNumbers) -> Places:
    """Return the slots of the pods of lower priority on some rows."""
    if cluster.signatures.lowest_priority() >= priority:
        return np.zeros(0, np.intp)
    slots = _slots_on(cluster, rows)
    return slots[cluster.signatures.priorities()[cluster.pods.signatures[slots]] < priority]


def _slots_on(cluster: Cluster, rows: RowNumbers) -> Places:
    """Return the slots of the pods on some rows."""
    pods = cluster.pods
    if rows.size <= FEW:
        return np.array([placed.slot for row in rows.tolist() for placed in pods.on_row(row)], np.intp)
    wanted = np.zeros(cluster.nodes.columns.capacity, np.bool_)
    wanted[rows] = True
    held = np.flatnonzero(pods.rows >= 0)
    return held[wanted[pods.rows[held]]]


def _put_violating_first(found: Search, budgets: Budgets) -> None:
    """Ask budgets about the pods of the nodes where the pod fits, and put those first whose going violates one."""
    of = np.repeat(np.arange(found.rows.size), np.diff(found.begins))
    asked = np.flatnonzero(found.fits[of])
    found.violating[asked] = budgets.violating(found.cluster, found.slots[asked])
    order = np.lexsort((~found.violating, of))
    found.slots, found.violating = found.slots[order], found.violating[order]
    found.priorities, found.starts, found.importance = found.priorities[order], found.starts[order], order


def _bringing_back(found: Search, failed: FailedDecision, *, pauses: bool) -> Steps[bool]:
    """Bring back one pod after another, on all nodes where the pod fits without them, and note who has to stay away.

    Returns:
        Whether all filters could tell.
    """
    kept = np.flatnonzero(found.fits)
    if not kept.size:
        return True
    lengths = np.diff(found.begins)
    places, of = np.flatnonzero(np.repeat(found.fits, lengths)), np.repeat(np.arange(kept.size), lengths[kept])
    reprieve = Reprieve(failed, found.rows[kept], found.slots[places], of, pauses=pauses)
    if not (yield from reprieve.run()):
        return False
    found.victims[places], found.slots[places] = reprieve.victims, reprieve.slots
    return True


class NodeReprieve:
    """Who of the pods of lower priority on one node has to stay away, where filters answer for one node at a time.

    After a change elsewhere it goes on, and asks once more in the end.

    Args:
        found: What is known of the node.
        failed: The decision.
        place: The place of the node.
        there: The pods of the node, as they were when those of lower priority were listed.
    """

    def __init__(self, found: Search, failed: FailedDecision, place: int, there: Sequence[PlacedPod]) -> None:
        self._found, self._failed, self._place, self._there = found, failed, place, there
        self._row = int(found.rows[place])
        self.moved = False
        """Whether anything changed in a pause."""
        self.done = False
        """Whether it is known who has to stay away."""

    def run(self) -> Steps[None]:
        """Take the pods away and bring them back one by one, as long as the node stays."""
        found, place = self._found, self._place
        self._pods = _pods_on(found, place)
        self._away = dict(self._pods)
        self._trial = self._without()
        status = self._trial.verdict()
        if not (yield from self._pausing()):
            return
        if status is None:
            if not (yield from self._bring_back()):
                return
            if self.moved and not self._may_go():
                return
            status = self._trial.verdict() if self.moved else None
        found.fits[place], self.done = status is None, True
        if status is None:
            found.victims[list(self._away)] = True
        else:
            found.statuses[place] = status

    @property
    def stays(self) -> bool:
        """Whether the node is in question still, with the pods that it had."""
        there = self._failed.cluster.pods.on_row(self._row)
        same = len(there) == len(self._there) and all(map(operator.is_, there, self._there))
        return same and self._row in self._failed.rows_with(Code.UNSCHEDULABLE)

    def _bring_back(self) -> Steps[bool]:
        row = self._found.rows[self._place : self._place + 1]
        count = self._found.cluster.nodes.pods_count.data[row]
        left = int((self._failed.most_pods(row) - count)[0]) + len(self._pods)
        for number, pod in self._pods:
            if left <= 0:
                break
            self._trial.add(pod)
            if self._trial.verdict() is None:
                del self._away[number]
                left -= 1
            else:
                self._trial.remove(pod)
            if not (yield from self._pausing()):
                return False
        return True

    def _pausing(self) -> Steps[bool]:
        """Pause; return whether the node stays."""
        if (yield):
            self.moved = True
            if not self.stays:
                return False
            self._trial = self._without()
        return True

    def _may_go(self) -> bool:
        """Return whether the guards that are in force now let the victims go."""
        return bool(ask_guards(self._failed, self._found.slots[list(self._away)]).may_go.all())

    def _without(self) -> WhatIf:
        trial = self._failed.trial(self._row)
        for pod in self._away.values():
            trial.remove(pod)
        return trial


def _pods_on(found: Search, place: int) -> list[tuple[int, Pod]]:
    """List the pods of a node in their order, by their places."""
    places = range(int(found.begins[place]), int(found.begins[place + 1]))
    placed = [(number, found.cluster.pods.by_slot[found.slots[number]]) for number in places]
    return [(number, one.pod) for number, one in placed if one is not None]
