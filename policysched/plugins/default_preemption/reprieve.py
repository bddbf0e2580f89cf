"""Reprieve: pods that were taken away are brought back one by one, on many nodes at once, where the pod fits still.

One step brings back one pod of each node and asks all filters. Between two filters of a step others may have their
turn. If the cluster has changed by then, that step is done again without a pause, with the pods that are still there;
pods that came meanwhile stay. A node whose pods have changed begins again, unless it is late: there are never more than
twice as many steps as the fullest node had pods, and two.

Shapes: R nodes, V pods that may go, W of them that are still there.
Source: plugins/defaultpreemption/default_preemption.go (SelectVictimsOnNode), v1.36.
"""

from __future__ import annotations

import operator
from collections.abc import Generator, Sequence
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from policysched.framework import ChangedRows, Code, FailedDecision, Mask, RowNumbers, RowVerdicts
from policysched.model.pod_requirements import pod_priority
from policysched.pausing import Pausing, finished
from policysched.state.placed.pods import PlacedPod, pod_id

T = TypeVar("T")
Places = NDArray[np.intp]
Steps: TypeAlias = Generator[None, bool | None, T]
"""Work that pauses and is told after each pause whether the cluster has changed."""


def until_moved(work: Pausing[T]) -> Steps[tuple[bool, T | None]]:
    """Do work that means nothing once the cluster has changed; return whether it has, and else the outcome."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            return False, end.value
        if (yield):
            work.close()
            return True, None


class Reprieve:
    """Who of some pods has to stay away.

    Args:
        failed: The decision.
        rows: The rows of the nodes, each fit for the pod with all of the pods gone.
        slots: The pods, by their slots in the pod table, node by node in the order in which they are brought back.
        of: For each of them where its node stands among the rows.
        pauses: Whether the cluster may change meanwhile.
    """

    def __init__(
        self, failed: FailedDecision, rows: RowNumbers, slots: Places, of: Places, *, pauses: bool = False
    ) -> None:
        self._failed, self._rows, self._of = failed, rows, of
        self.slots = slots
        """(V,): where the pods are by now; of one that is gone where it was last."""
        self.victims: Mask = np.ones(slots.size, np.bool_)
        """(V,): who is away; nobody who is gone."""
        self._places = np.arange(slots.size)
        """(W,): the pods that are still there."""
        self._held: Sequence[PlacedPod | None] = failed.cluster.pods.by_slot.copy() if pauses else ()
        """Who was in which slot when the pods were last looked up."""
        self._at = np.zeros(rows.size, np.intp)
        """(R,): how many of the pods of each node were tried."""
        self._left_out: Mask = np.zeros(rows.size, np.bool_)
        """(R,): the nodes that were out of question once, be they in question again or not: nobody goes there."""
        self._arrange()
        self._steps, self._longest = 0, int(self._lengths.max(initial=0))

    def run(self) -> Steps[bool]:
        """Bring the pods back; return whether all filters could tell.

        Sums of a rule may be whole with some of the pods and not with others.
        """
        moved = False
        while (tried := self._untried()).size:
            back = self._begins[tried] + self._at[tried]
            self._changed.restore(back)
            moved, verdicts = yield from self._asked(insist=moved)
            if moved:
                self._follow()
                continue
            if verdicts is None:
                return False
            fits = verdicts.fits[tried]
            self._changed.remove(back[~fits])
            self.victims[self._places[back[fits]]] = False
            self._at[tried] += 1
            self._steps += 1
        return True

    def _asked(self, *, insist: bool) -> Steps[tuple[bool, RowVerdicts | None]]:
        asking = self._failed.asking(self._changed)
        if insist:
            return False, finished(asking)
        return (yield from until_moved(asking))

    def _untried(self) -> Places:
        """Return the nodes with pods left to try that may have one more."""
        return np.flatnonzero((self._at < self._lengths) & (self._changed.more_pods() < self._spare))

    def _arrange(self) -> None:
        """Make the rows as they are with the victims away."""
        cluster = self._failed.cluster
        self._lengths = np.bincount(self._of, minlength=self._rows.size)
        self._begins = np.cumsum(self._lengths) - self._lengths
        self._counts = cluster.nodes.pods_count.data[self._rows]
        self._spare = self._failed.most_pods(self._rows) - self._counts
        self._changed = ChangedRows(cluster, self._rows, self.slots[self._places], self._of)
        self._changed.remove(np.flatnonzero(self.victims[self._places]))

    def _follow(self) -> None:
        """Go on with the cluster as it is now."""
        there = self._find()
        self.victims[self._places[~there]] = False
        tried = np.arange(self._of.size) < (self._begins + self._at)[self._of]
        self._at = np.bincount(self._of[there & tried], minlength=self._rows.size)
        others = np.bincount(self._of[~there], minlength=self._rows.size) > 0
        others |= self._failed.cluster.nodes.pods_count.data[self._rows] != self._counts
        self._left_out |= ~np.isin(self._rows, self._failed.rows_with(Code.UNSCHEDULABLE))
        self._places, self._of = self._places[there], self._of[there]
        if self._steps <= self._longest:
            self._at[others] = 0
            self.victims[self._places[others[self._of]]] = True
        self.victims[self._places[self._left_out[self._of]]] = False
        self._arrange()
        self._at[self._left_out] = self._lengths[self._left_out]

    def _find(self) -> Mask:
        """Look the pods up; return which are on their nodes and of lower priority still. Shapes: (W,)."""
        cluster, held = self._failed.cluster, self._held
        pods, slots = cluster.pods, self.slots[self._places]
        stayed = np.fromiter(map(operator.is_, held, pods.by_slot), np.bool_, len(held))
        for place in np.flatnonzero(~stayed[slots]).tolist():
            before = held[slots[place]]
            placed = None if before is None else pods.by_id.get(pod_id(before.pod))
            slots[place] = -1 if placed is None else placed.slot
        self._held = pods.by_slot.copy()
        lower = cluster.signatures.priorities()[pods.signatures[slots]] < pod_priority(self._failed.pod)
        there: Mask = (slots >= 0) & (pods.rows[slots] == self._rows[self._of]) & lower
        self.slots[self._places[there]] = slots[there]
        return there
