"""Disruption budgets: which of the pods that may have to go cannot go without violating one.

Source: plugins/defaultpreemption/default_preemption.go (filterPodsWithPDBViolation), v1.36.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policysched.framework import Cluster, Mask
from policysched.model.objects import Pod, PodDisruptionBudget
from policysched.model.selection.selectors import LabelMatcher, SelectorError, compile_selector


@dataclass(frozen=True, slots=True, eq=False)
class SelectingBudget:
    """A disruption budget that selects some pods."""

    name: str
    matcher: LabelMatcher
    allowed: int
    """How many of its pods may go."""
    disrupted: frozenset[str]
    """The pods whose eviction it counts already."""


class Budgets:
    """The disruption budgets at one time.

    Args:
        cluster: The cluster.
        before: Those at an earlier time; what is the same object still is not compiled again.
    """

    def __init__(self, cluster: Cluster, before: Budgets | None = None) -> None:
        self._by_namespace: dict[str, list[SelectingBudget]] = {}
        self._compiled: dict[Hashable, tuple[PodDisruptionBudget, SelectingBudget | None]] = {}
        for key, one in cluster.objects.of(PodDisruptionBudget).items():
            known = before._compiled.get(key) if before is not None else None
            if known is None or known[0] is not one:
                known = one, _budget(one)
            self._compiled[key] = known
            if known[1] is not None:
                self._by_namespace.setdefault(one.metadata.namespace, []).append(known[1])

    def of(self, pod: Pod) -> list[SelectingBudget]:
        """Return the budgets that select a pod and do not count it already; a pod without labels has none."""
        return [one for one in self._selecting(pod) if pod.metadata.name not in one.disrupted]

    def _selecting(self, pod: Pod) -> Iterator[SelectingBudget]:
        """Give the budgets that select pods with the labels of this one."""
        metadata = pod.metadata
        if metadata.labels:
            among = self._by_namespace.get(metadata.namespace, ())
            yield from (one for one in among if one.matcher.matches(metadata.labels))

    def violating(self, cluster: Cluster, slots: NDArray[np.intp]) -> Mask:
        """Say of pods whose going violates a budget, where all before them on their node have gone.

        Every budget counts each of its pods, also after another one is spent.

        Args:
            cluster: The cluster.
            slots: The pods by their slots in the pod table, by node and on each from the most important one on.

        Shapes: (V,).
        Cost: O(pods, and for each budget its pods).
        """
        found: Mask = np.zeros(slots.size, np.bool_)
        if not self._by_namespace or not slots.size:
            return found
        signatures, rows = cluster.pods.signatures[slots], cluster.pods.rows[slots]
        order = np.argsort(signatures, kind="stable")
        present, begins = np.unique(signatures[order], return_index=True)
        of_budget: dict[SelectingBudget, list[NDArray[np.intp]]] = {}
        for number, places in zip(present.tolist(), np.split(order, begins[1:]), strict=True):
            placed = cluster.signatures.present[number]
            for one in self._selecting(placed.pod) if placed is not None else ():
                of_budget.setdefault(one, []).append(places)
        for budget, parts in of_budget.items():
            places = _not_counted_yet(budget, np.sort(np.concatenate(parts)), cluster, slots)
            found[places[_counted_on_row(rows[places]) > budget.allowed]] = True
        return found


def _not_counted_yet(
    budget: SelectingBudget, places: NDArray[np.intp], cluster: Cluster, slots: NDArray[np.intp]
) -> NDArray[np.intp]:
    """Leave out the pods whose eviction a budget counts already."""
    if not budget.disrupted:
        return places
    pods = [cluster.pods.by_slot[slot] for slot in slots[places].tolist()]
    return places[[one is not None and one.pod.metadata.name not in budget.disrupted for one in pods]]


def _counted_on_row(rows: NDArray[np.int32]) -> NDArray[np.intp]:
    """Number the elements of each run of equal rows from 1."""
    numbers = np.arange(rows.size)
    is_first = np.append(True, rows[1:] != rows[:-1])[: rows.size]
    return numbers - np.maximum.accumulate(np.where(is_first, numbers, 0)) + 1


def _budget(given: PodDisruptionBudget) -> SelectingBudget | None:
    """Compile a budget; one without a selector, with an empty one or with one that is not valid selects nothing."""
    try:
        matcher = compile_selector(given.spec.selector)
    except SelectorError:
        return None
    if matcher.selects_nothing or matcher.selects_everything:
        return None
    status = given.status
    return SelectingBudget(given.metadata.name, matcher, status.disruptions_allowed, frozenset(status.disrupted_pods))
