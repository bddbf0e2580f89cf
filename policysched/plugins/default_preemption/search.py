"""Search for victims: for each node, the fewest pods of lower priority whose eviction lets a pod fit.

The search simulates removing all pods of lower priority. Where the pod then fits, it restores them one by one: first
those whose eviction would violate a disruption budget, and in both groups the most important first. The pods that
cannot be restored are the victims. Pods are in arrays, ordered by node and by importance, so that one step covers all
nodes. If a filter can evaluate one node only, the same search runs node by node.

Shapes: R nodes with pods of lower priority, V these pods.
Source: plugins/defaultpreemption/default_preemption.go (SelectVictimsOnNode), pkg/scheduler/util/utils.go
(MoreImportantPod), v1.36; pkg/scheduler/framework/preemption (DryRunPreemption, MoreImportantVictim), v1.38.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from policysched.framework import (
    NO_ROWS,
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
from policysched.model.objects import Pod
from policysched.model.pod_requirements import pod_priority
from policysched.plugins.default_preemption.budgets import Budgets, Places
from policysched.plugins.default_preemption.evictable import Evictable, Ties
from policysched.plugins.default_preemption.guards import Guarded, ask_guards
from policysched.state.placed.pods import PlacedPod

NO_VICTIMS: Final = unresolvable("No preemption victims found for incoming pod")


@dataclass(frozen=True, slots=True)
class SearchRules:
    """Rules for the choice of victims that differ between Kubernetes minors."""

    uid_breaks_ties: bool = False
    """Whether, of pods with equal priority and start time, the pod with the lowest UID is the most important.

    Otherwise, the first pod of the node is the most important.
    """
    ranks_members: bool = False
    """Whether a pod of a pod group is more important than other pods of the same priority."""
    extenders_add_victims: bool = False
    """Whether extenders get nodes on which the pod fits without evictions; without extenders, these are no error."""
    evicts_first_unstarted: bool = False
    """Whether, of pods with equal priority and no start time, the last pod of the node is the most important.

    Otherwise, the first pod is.
    """


ANY_ORDER: Final = SearchRules()


@dataclass(slots=True)
class Search:
    """The result of a search for victims: pods of lower priority by node, and which of these pods are victims."""

    cluster: Cluster
    rows: RowNumbers
    """The row numbers of the nodes with pods of lower priority that may be evicted. Shapes: (R,)."""
    begins: Places
    """The index of each node's first pod, and finally the number of pods. Shapes: (R + 1,)."""
    slots: Places
    """The index of each pod in the pod table, in the order in which the search restores pods. Shapes: (V,)."""
    first_pods: Places
    """The index of the first pod of each victim. Shapes: (U + 1,).

    Pods of a group that is evicted as a whole are one victim, listed for each node with one of them.
    """
    priorities: NDArray[np.int64]
    starts: NDArray[np.float64]
    """The start time of each pod; the current time for a pod that has not started. Shapes: (V,)."""
    importance: Places
    """The rank of each pod, by importance, among the pods of its node. Shapes: (V,)."""
    violating: Mask
    """Mask of pods whose eviction violates a budget; their victims are restored first. Shapes: (V,)."""
    victims: Mask
    """Mask of the pods to evict: the pods that could not be restored. Shapes: (V,)."""
    fits: Mask
    """Mask of the nodes on which the pod fits if all pods of lower priority are evicted. Shapes: (R,)."""
    empty_rows: RowNumbers
    """The row numbers of the nodes without pods of lower priority that may be evicted."""
    rules: SearchRules = ANY_ORDER
    is_extended: bool = False
    """Whether extenders get the candidate nodes."""
    guarded: Guarded | None = None
    """The pods that victim guards (policies) protect; None if there is no victim guard."""
    verdicts: RowVerdicts | None = None
    """The filter results without lower-priority pods; None if a filter simulates single nodes only. Shapes: (R,)."""
    statuses: dict[int, Status] = field(default_factory=dict)
    """The status that rejects each node, by the node's index, if the search simulated one node after the other."""
    left_out: Places = field(default_factory=lambda: NO_ROWS)
    """The indices in `rows` of nodes that are left out because enough other candidate nodes were found."""

    @property
    def node_of_pod(self) -> Places:
        """For each pod, the index in `rows` of the node that evicting the pod frees. Shapes: (V,)."""
        return np.repeat(np.arange(self.rows.size), np.diff(self.begins))

    @property
    def are_single(self) -> bool:
        """Whether every victim is a single pod."""
        return self.first_pods.size == self.slots.size + 1

    @property
    def is_local(self) -> Mask:
        """Mask of the pods on the node that evicting them frees; a pod group's pods may be elsewhere. Shapes: (V,)."""
        if self.are_single:
            return np.ones(self.slots.size, np.bool_)
        is_local: Mask = self.cluster.pods.rows[self.slots] == np.repeat(self.rows, np.diff(self.begins))
        return is_local

    @property
    def candidates(self) -> Places:
        """The indices in `rows` of the nodes on which the pod fits after evicting the victims."""
        return np.flatnonzero(self.fits if self.keeps_empty else self.fits & self.counts().astype(np.bool_))

    @property
    def keeps_empty(self) -> bool:
        """Whether nodes without victims remain candidates, because extenders can add victims."""
        return self.is_extended and self.rules.extenders_add_victims

    def counts(self) -> NDArray[np.int64]:
        """Return the number of pods to evict for each node. Shapes: (R,)."""
        return self.sum_up(self.victims.astype(np.int64))

    def sum_up(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return for each node the sum of its pods' values; sums wrap around at 64 bits.

        Shapes: (V,) -> (R,).
        """
        return np.add.reduceat(values, self.begins[:-1]) if self.rows.size else np.zeros(0, np.int64)

    def leave_out(self, places: Places) -> None:
        """Remove the nodes at given indices from the candidates, because enough other candidate nodes were found."""
        self.left_out = places
        self.fits[places] = False

    def victims_and_violations(self, place: int) -> tuple[tuple[Pod, ...], frozenset[str]]:
        """Return a node's victims, most important first, and the names of those whose eviction violates a budget."""
        begin, end = int(self.begins[place]), int(self.begins[place + 1])
        places = begin + np.flatnonzero(self.victims[begin:end])
        by_importance = places[np.argsort(self.importance[places])]
        pods = self.pods_at(by_importance)
        violating = self.violating[by_importance].tolist()
        return tuple(pods), frozenset(pod.key for pod, violates in zip(pods, violating, strict=True) if violates)

    def pods_at(self, places: Places) -> list[Pod]:
        """Return the pods at given indices; call it before the cluster changes."""
        by_slot = self.cluster.pods.by_slot
        return [placed.pod for slot in self.slots[places].tolist() if (placed := by_slot[slot]) is not None]

    def pods_of(self, victims: Places) -> tuple[Places, Places]:
        """Return the indices of the pods of given victims, and for each pod the index of its victim in `victims`."""
        if self.are_single:
            return victims, np.arange(victims.size)
        begins, sizes = self.first_pods[victims], self.first_pods[victims + 1] - self.first_pods[victims]
        of = np.repeat(np.arange(victims.size), sizes)
        return begins[of] + np.arange(of.size) - (np.cumsum(sizes) - sizes)[of], of

    def failures(self) -> Counter[Status]:
        """Count the statuses of the nodes that are not candidates, except nodes that PreFilter excluded."""
        reasons = {} if self.guarded is None else self.guarded.reasons()
        protected = [row for row in self.empty_rows.tolist() if row in reasons] if reasons else []
        found = Counter({NO_VICTIMS: self.empty_rows.size - len(protected)})
        found.update(unschedulable(*reasons[row]) for row in protected)
        failing = np.ones(self.rows.size, np.bool_)
        failing[self.candidates] = failing[self.left_out] = False
        for place in np.flatnonzero(failing).tolist():
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
        if status is None and self.rules.extenders_add_victims:
            return NO_VICTIMS
        name = self.cluster.nodes.names[int(self.rows[place])]
        return status or Status(Code.ERROR, (f'expected at least one victim pod on node "{name}"',))


def search_victims(
    failed: FailedDecision, rows: RowNumbers, budgets: Budgets, most: int, rules: SearchRules = ANY_ORDER
) -> Search:
    """Search for victims on each of the given nodes.

    Args:
        failed: The decision.
        rows: The rows of the nodes, in ascending order.
        budgets: The disruption budgets.
        most: The number of candidates after which the search may end, if one of them violates no budget.
        rules: How victims are chosen.

    Cost: O(pods of lower priority), and one evaluation of the filters over all nodes for each of the pods of the
    fullest node. Node by node: one evaluation of the filters for each pod.
    """
    found = _gather(failed, rows, rules)
    if not found.rows.size:
        return found
    found.verdicts = failed.verdicts(_without_lower(found))
    if found.verdicts is not None:
        found.fits = found.verdicts.fits.copy()
    _put_violating_first(found, budgets)
    if found.verdicts is not None and _restore_pods(found, failed):
        _bound(found, most, failed.rng)
    else:
        _search_node_by_node(found, failed, rows, most)
    return found


def _gather(failed: FailedDecision, rows: RowNumbers, rules: SearchRules) -> Search:
    """Return the pods of lower priority that no victim guard protects, sorted by node and importance."""
    cluster = failed.cluster
    pods = cluster.pods
    lower = lower_on(cluster, pod_priority(failed.pod), rows)
    found = Evictable.of(cluster, lower, pods.rows[lower].astype(np.intp), ranks_members=rules.ranks_members)
    guarded = ask_guards(failed, found.slots, found.rows) if failed.victim_guards else None
    if guarded is not None:
        found = found.without(~guarded.may_go)
    slots = found.slots
    priorities = cluster.signatures.priorities()[pods.signatures[slots]]
    starts = pods.starts(slots)
    ties = ties_of(cluster, slots, np.isinf(starts), rules)
    starts[np.isinf(starts)] = cluster.time.seconds
    order = found.order(priorities, starts, ties)
    slots = slots[order]
    there, begins = np.unique(found.rows[order], return_index=True)
    return Search(
        cluster,
        there,
        np.append(begins, slots.size),
        slots,
        _first_of_each(found.victims[order]),
        priorities[order],
        starts[order],
        importance=np.arange(slots.size),
        violating=np.zeros(slots.size, np.bool_),
        victims=np.zeros(slots.size, np.bool_),
        fits=np.ones(there.size, np.bool_),
        empty_rows=np.setdiff1d(rows, there, assume_unique=True),
        rules=rules,
        is_extended=bool(failed.extenders),
        guarded=guarded,
    )


def _first_of_each(victims: Places) -> Places:
    """Return the index of the first pod of each victim, and the number of pods; the pods of a victim are adjacent.

    Shapes: (V,) -> (U + 1,).
    """
    return np.flatnonzero(np.diff(victims, prepend=-1, append=-1)) if victims.size else np.zeros(1, np.intp)


def ties_of(cluster: Cluster, slots: Places, are_unstarted: Mask, rules: SearchRules) -> Ties:
    """Return the keys by which pods of equal priority and start are sorted, the most important first.

    A pod that has not started has the current time as its start, which kube-scheduler reads once more for each pod.
    Only a node's first twelve pods have a defined order in kube-scheduler unless they are sorted already.
    """
    rows, places = cluster.pods.rows[slots], cluster.pods.places[slots]
    if rules.uid_breaks_ties:
        return places, rows, np.where(are_unstarted, "", _uids_of(cluster, slots))
    return np.where(are_unstarted & rules.evicts_first_unstarted, -places, places), rows


def _uids_of(cluster: Cluster, slots: Places) -> NDArray[np.str_]:
    """Return the UIDs of pods. Shapes: (V,)."""
    by_slot = cluster.pods.by_slot
    placed = (by_slot[slot] for slot in slots.tolist())
    return np.array(["" if one is None else one.pod.metadata.uid for one in placed], np.str_)


def lower_on(cluster: Cluster, priority: int, rows: RowNumbers) -> Places:
    """Return the pod-table indices of the pods on given nodes whose priority is lower than `priority`."""
    if cluster.signatures.lowest_priority() >= priority:
        return np.zeros(0, np.intp)
    pods = cluster.pods
    wanted = np.zeros(cluster.nodes.columns.capacity, np.bool_)
    wanted[rows] = True
    held = np.flatnonzero(pods.rows >= 0)
    slots = held[wanted[pods.rows[held]]]
    return slots[cluster.signatures.priorities()[pods.signatures[slots]] < priority]


def _without_lower(found: Search) -> ChangedRows:
    """Return a simulation of the nodes in `fits` without their pods of lower priority."""
    nodes, of = np.flatnonzero(found.fits), found.node_of_pod
    is_local = found.is_local
    pods = np.flatnonzero(found.fits[of] & is_local)
    rows, of_pods = found.rows[nodes], np.searchsorted(nodes, of[pods])
    changed = ChangedRows(
        found.cluster, rows, found.slots[pods], of_pods, reaches_others=not is_local[found.fits[of]].all()
    )
    changed.remove(np.arange(pods.size))
    return changed


def _put_violating_first(found: Search, budgets: Budgets) -> None:
    """Evaluate disruption budgets, and move pods whose eviction violates one before the other pods of their node."""
    of = found.node_of_pod
    asked = np.flatnonzero(found.fits[of])
    found.violating[asked] = budgets.violating(found.cluster, found.slots[asked], found.rows[of[asked]])
    violates = found.violating
    if not found.are_single:
        victims = np.repeat(np.arange(found.first_pods.size - 1), np.diff(found.first_pods))
        violates = np.bincount(victims, found.violating).astype(np.bool_)[victims]
    order = np.lexsort((~violates, of))
    if not found.are_single:
        found.first_pods = _first_of_each(victims[order])
    found.slots, found.violating = found.slots[order], found.violating[order]
    found.priorities, found.starts, found.importance = found.priorities[order], found.starts[order], order


def _restore_pods(found: Search, failed: FailedDecision) -> bool:
    """Restore the removed pods one by one on all nodes at once; pods that cannot be restored become victims.

    Returns:
        False if a filter can evaluate single nodes only, which may depend on the pods that are restored.
    """
    is_tried = found.fits[found.node_of_pod]
    victims, is_local = is_tried.copy(), found.is_local
    number_of = np.cumsum(is_tried & is_local) - 1  # of each local pod among those that are removed
    begins = np.searchsorted(found.first_pods, found.begins)
    begins, lengths = begins[:-1][found.fits], np.diff(begins)[found.fits]
    changed = _without_lower(found)
    room = failed.most_pods(changed.rows) - found.cluster.nodes.pods_count.data[changed.rows]
    for step in range(int(lengths.max(initial=0))):
        tried = np.flatnonzero((step < lengths) & (changed.more_pods() < room))
        if not tried.size:
            break
        pods, of = found.pods_of(begins[tried] + step)
        local = is_local[pods]
        changed.restore(number_of[pods[local]])
        verdicts = failed.verdicts(changed)
        if verdicts is None:
            return False
        fits = verdicts.fits[tried][of]
        changed.remove(number_of[pods[local & ~fits]])
        victims[pods[fits]] = False
    found.victims = victims
    return True


def _bound(found: Search, most: int, rng: random.Random) -> None:
    """Leave out the candidates beyond the number `most`, starting at a random candidate."""
    candidates = found.candidates
    if candidates.size <= most:
        return
    turned = np.roll(candidates, rng.randrange(candidates.size))
    violates = found.sum_up((found.victims & found.violating).astype(np.int64))[turned] > 0
    enough = (np.cumsum(~violates) > 0) & (np.arange(1, turned.size + 1) >= most)
    if enough.any():
        found.leave_out(turned[int(enough.argmax()) + 1 :])


def _search_node_by_node(found: Search, failed: FailedDecision, rows: RowNumbers, most: int) -> None:
    """Search for victims on one node after another, from a random node on, until there are enough candidates."""
    order = np.flatnonzero(found.fits)
    if most < rows.size:
        begin = rows[failed.rng.randrange(rows.size)]
        order = np.roll(order, -np.searchsorted(found.rows[order], begin))
    candidates, is_any_harmless = 0, False
    for done, place in enumerate(order.tolist()):
        if candidates >= most and is_any_harmless:
            found.leave_out(order[done:])
            return
        violating = _search_node(found, failed, place)
        is_candidate = bool(found.fits[place]) and (found.keeps_empty or violating.size > 0)
        candidates += is_candidate
        is_any_harmless |= is_candidate and not violating.any()


def _search_node(found: Search, failed: FailedDecision, place: int) -> Mask:
    """Search for victims on one node; return which of the victims violate a budget. Shapes: (victims,)."""
    begin, end = int(found.begins[place]), int(found.begins[place + 1])
    row = found.rows[place : place + 1]
    trial = failed.trial(int(row[0]))
    _remove(trial, found, begin, end)
    status = trial.verdict()
    found.fits[place] = status is None
    if status is not None:
        found.statuses[place] = status
        return np.zeros(0, np.bool_)
    found.victims[begin:end] = True
    is_local = found.is_local[begin:end]
    room = int(failed.most_pods(row)[0] - found.cluster.nodes.pods_count.data[row[0]] + np.count_nonzero(is_local))
    victims = found.first_pods[np.searchsorted(found.first_pods, begin) : np.searchsorted(found.first_pods, end) + 1]
    for first, after in pairwise(victims.tolist()):
        if room <= 0:
            break
        _restore(trial, found, first, after)
        if trial.verdict() is None:
            found.victims[first:after] = False
            room -= int(np.count_nonzero(is_local[first - begin : after - begin]))
        else:
            _remove(trial, found, first, after)
    violating: Mask = found.violating[begin:end][found.victims[begin:end]]
    return violating


def _remove(trial: WhatIf, found: Search, begin: int, end: int) -> None:
    """Remove the pods from index `begin` to `end` in the simulation of a node."""
    for placed, is_local in _placed(found, begin, end):
        if is_local:
            trial.remove(placed.pod)
        else:
            trial.remove_elsewhere(placed)


def _restore(trial: WhatIf, found: Search, begin: int, end: int) -> None:
    """Restore the removed pods from index `begin` to `end` in the simulation of a node."""
    for placed, is_local in _placed(found, begin, end):
        if is_local:
            trial.add(placed.pod)
        else:
            trial.restore_elsewhere(placed)


def _placed(found: Search, begin: int, end: int) -> Iterator[tuple[PlacedPod, bool]]:
    """Yield the pods from index `begin` to `end`, each with whether the pod is on the simulated node."""
    by_slot = found.cluster.pods.by_slot
    for slot, is_local in zip(found.slots[begin:end].tolist(), found.is_local[begin:end].tolist(), strict=True):
        if (placed := by_slot[slot]) is not None:
            yield placed, is_local
