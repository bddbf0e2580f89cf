"""Calls of victim guards, which protect pods of lower priority from preemption and give the reasons.

Guards are evaluated once for all pods that the search may evict, and again for the victims that extenders return. A pod
that is being deleted is never protected: it is deleted anyway.

Shapes: V pods.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

import numpy as np

from policysched.framework import Cluster, FailedDecision, Mask, Protection, RowNumbers, VictimGuard
from policysched.model.objects import Pod
from policysched.state.placed.pods import PlacedPod, pod_id

MOST_TOLD: Final = 1000
"""Maximum number of protected pods that a decision record describes; further pods are only counted."""
_CODE_BITS: Final = 32
_CODES: Final = (1 << _CODE_BITS) - 1
Rank = tuple[int, float, str]
"""Sort key of pods in the order of eviction: priority, negative start time, name."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """The answer of one victim guard: for each pod, whether and why the guard protects the pod. Shapes: (V,)."""

    guard: str
    slots: RowNumbers
    protection: Protection
    kept: Mask
    """Mask of the pods that the victim guard protects. Shapes: (V,)."""


@dataclass(frozen=True, slots=True, repr=False)
class Guarded:
    """The possible victims that victim guards protect from preemption; read it before the cluster changes."""

    cluster: Cluster
    slots: RowNumbers
    """The index of each possible victim in the pod table. Shapes: (V,)."""
    rows: RowNumbers
    """The row number of the node that evicting each pod frees. Shapes: (V,)."""
    answers: Sequence[_Answer] = ()

    @property
    def may_go(self) -> Mask:
        """Mask of the pods that no victim guard protects. Shapes: (V,)."""
        free = np.ones(self.slots.size, np.bool_)
        for one in self.answers:
            free &= ~one.kept
        return free

    @property
    def names(self) -> frozenset[str]:
        """The names of the victim guards that protect at least one of the pods."""
        return frozenset(one.guard for one in self.answers)

    def reasons(self) -> dict[int, dict[str, None]]:
        """Return, by row number of the node, the reasons for which pods on the node are protected.

        Cost: a few operations over the pods, and one step for each row and reason.
        """
        found: dict[int, dict[str, None]] = {}
        for one in self.answers:
            places = np.flatnonzero(one.kept)
            codes, rows = one.protection.codes[places], self.rows[places]
            texts = {code: one.protection.reason_of(code) for code in np.unique(codes).tolist()}
            for both in np.unique(rows.astype(np.int64) << _CODE_BITS | codes).tolist():
                found.setdefault(both >> _CODE_BITS, {})[texts[both & _CODES]] = None
        return found

    def examples(self) -> dict[str, str]:
        """Return for each reason a text with the least important protected pod and the values that the guard read."""
        found: dict[str, tuple[Rank, str]] = {}
        for one in self.answers:
            places = np.flatnonzero(one.kept)
            codes = one.protection.codes[places]
            for code in np.unique(codes).tolist():
                reason = one.protection.reason_of(code)
                rank, place = self._least_important(one, places[codes == code])
                if reason not in found or rank < found[reason][0]:
                    found[reason] = rank, _with_example(reason, rank[2], one.protection.values_of(place))
        return {reason: text for reason, (_, text) in found.items()}

    def describe(self) -> dict[str, Any]:
        """Return a description of the first protected pods by node, and the number of the remaining protected pods."""
        kept = [(one, place) for one in self.answers for place in np.flatnonzero(one.kept).tolist()]
        named = sorted((*self._names(*which), number) for number, which in enumerate(kept))
        found: dict[str, dict[str, str]] = {}
        for node, pod, number in named[:MOST_TOLD]:
            told, why = found.setdefault(node, {}), self._why(*kept[number])
            told[pod] = f"{told[pod]}; {why}" if pod in told else why
        more = len(named) - MOST_TOLD
        return ({"protected": found} if found else {}) | ({"protectedMore": more} if more > 0 else {})

    def _names(self, answer: _Answer, place: int) -> tuple[str, str]:
        placed = self._placed(answer, place)
        return self.cluster.nodes.names[placed.row], placed.pod.key

    def _why(self, answer: _Answer, place: int) -> str:
        reason = answer.protection.reason_of(int(answer.protection.codes[place]))
        values = answer.protection.values_of(place)
        return f"{reason} ({values})" if values not in reason else reason

    def _least_important(self, answer: _Answer, places: RowNumbers) -> tuple[Rank, int]:
        """Return sort key and index of the protected pod that would be evicted first."""
        pods = self.cluster.pods
        priorities = self.cluster.signatures.priorities()[pods.signatures[answer.slots[places]]]
        least = places[priorities == priorities.min()]
        starts = pods.starts(answer.slots[least])
        pod, place = min(
            (self._placed(answer, place).pod.key, place) for place in least[starts == starts.max()].tolist()
        )
        return (int(priorities.min()), -float(starts.max()), pod), place

    def _placed(self, answer: _Answer, place: int) -> PlacedPod:
        placed = self.cluster.pods.by_slot[int(answer.slots[place])]
        if placed is None:
            raise RuntimeError("the cluster changed after policies were evaluated for preemption")
        return placed


def _with_example(reason: str, pod: str, values: str) -> str:
    if not values:
        return reason
    return f"{reason} ({pod})" if values in reason else f"{reason} ({pod}: {values})"


def ask_guards(failed: FailedDecision, slots: RowNumbers, rows: RowNumbers) -> Guarded:
    """Call the victim guards for pods of lower priority than the pod of a failed decision.

    Args:
        failed: The decision.
        slots: The pods, by their slots in the pod table. Shapes: (V,).
        rows: The node that the eviction of each pod is to free. Shapes: (V,).
    """
    return ask_for([failed.pod], failed.victim_guards, failed.cluster, slots, rows)


def ask_for(
    preemptors: Sequence[Pod], guards: Sequence[VictimGuard], cluster: Cluster, slots: RowNumbers, rows: RowNumbers
) -> Guarded:
    """Call the victim guards for pods of lower priority, once for each preempting pod.

    Args:
        preemptors: The pods that are to fit.
        guards: The guards.
        cluster: The cluster.
        slots: The pods, by their slots in the pod table. Shapes: (V,).
        rows: The node that the eviction of each pod is to free. Shapes: (V,).
    """
    if not guards or not slots.size:
        return Guarded(cluster, slots, rows)
    answers, going = [], cluster.pods.terminating(slots)
    for guard, preemptor in product(guards, preemptors):
        found = guard.protected(preemptor, cluster, slots)
        if found is not None:
            answers.append(_Answer(guard.name, slots, found, (found.codes != 0) & ~going))
    return Guarded(cluster, slots, rows, [one for one in answers if one.kept.any()])


def ask_about(failed: FailedDecision, victims: Mapping[str, Sequence[Pod]]) -> Guarded:
    """Call the victim guards for given victims by node; pods and nodes that no longer exist are skipped."""
    by_id, row_of = failed.cluster.pods.by_id, failed.cluster.nodes.row_of
    placed = ((by_id.get(pod_id(pod)), row_of.get(node)) for node, pods in victims.items() for pod in pods)
    found = [(one.slot, row) for one, row in placed if one is not None and row is not None]
    return ask_guards(failed, *np.array(found, np.intp).reshape(-1, 2).T)
