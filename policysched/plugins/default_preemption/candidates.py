"""Chooses the candidate node with the least costly victims, after calls of extenders (ProcessPreemption).

The criteria in order: fewest violations of disruption budgets, lowest priority of the most important victim, lowest sum
of priorities, fewest victims, latest start of the first started among the most important victims. Nodes that are equal
by all criteria are equally good.

Extenders receive the candidates first; they drop candidates or replace their victims. An extender may leave a candidate
without victims to the next one; such a candidate is dropped in the end.

Source: pkg/scheduler/framework/preemption/preemption.go (callExtenders, pickOneNodeForPreemption), extender.go
(convertToVictims), v1.36 and v1.38.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from policysched.framework import Cluster
from policysched.framework.extender import Extender, ExtenderError, NamedVictims, NodeVictims
from policysched.model.objects import Pod
from policysched.model.pod_requirements import pod_priority
from policysched.plugins.default_preemption.budgets import Places
from policysched.plugins.default_preemption.guards import Guarded
from policysched.plugins.default_preemption.search import Search
from policysched.state.placed.pods import PlacedPod

log = logging.getLogger(__name__)
NONE_LEFT: Final = "no candidate node for preemption"
LOWEST: Final = -(2**31)
"""The lowest priority; subtracted from priorities before they are summed, so that each victim raises the cost."""
CRITERIA: Final = (
    "violations of disruption budgets",
    "highest priority of a victim",
    "sum of priorities",
    "victims",
    "start of the most important victim",
)
"""The names, in decision records, of the criteria by which the costs of victims are compared."""
START: Final = 4
Costs = NDArray[np.float64 | np.int64]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node on which preemption is possible, with its victims."""

    node: str
    victims: tuple[Pod, ...]
    """The pods to evict from the node, the most important first."""
    violating: frozenset[str]
    """The victims whose eviction violates a disruption budget, as `namespace/name`."""
    loses_by: str = ""
    """The first criterion by which another node costs less, with both costs; empty for the best nodes."""


class Choice:
    """The candidate nodes of a search for victims, and the best of these nodes; read it before the cluster changes.

    Shapes: C candidates.

    Args:
        found: A search that found candidates.
    """

    def __init__(self, found: Search) -> None:
        self._found, self._places = found, found.candidates
        self._costs = list(_costs(found, self._places))
        self._loses_by = np.zeros(self._places.size, np.int8)
        best = np.arange(self._places.size)
        for number, cost in enumerate(self._costs, 1):
            of_best = cost[best]
            self._loses_by[best[of_best != of_best.min()]] = number
            best = best[of_best == of_best.min()]
        self._best = int(best[0])
        self._place_of = {self._name(at): at for at in best.tolist()}
        self.best: list[str] = sorted(self._place_of)
        """The names of the candidate nodes with the lowest cost."""

    def victims_on(self, node: str) -> NodeVictims:
        """Return the victims on one of the best nodes, most important first."""
        victims, violating = self._victims_and_violations(self._place_of[node])
        return NodeVictims(victims, len(violating))

    def candidates(self) -> Iterator[Candidate]:
        """Yield every candidate node with its victims, in the order of node names."""
        for at in sorted(range(self._places.size), key=self._name):
            yield Candidate(self._name(at), *self._victims_and_violations(at), self._why_not(at))

    def _name(self, at: int) -> str:
        return self._found.cluster.nodes.names[int(self._found.rows[self._places[at]])]

    def _victims_and_violations(self, at: int) -> tuple[tuple[Pod, ...], frozenset[str]]:
        return self._found.victims_and_violations(int(self._places[at]))

    def _why_not(self, at: int) -> str:
        number = int(self._loses_by[at]) - 1
        if number < 0:
            return ""
        costs = self._costs[number]
        here, there = (_shown(number, costs[one].item()) for one in (at, self._best))
        return f"{CRITERIA[number]}: {here} against {there}"


def _costs(found: Search, among: Places) -> Iterator[Costs]:
    """Yield for each criterion the costs of preemption on the given nodes of a search; lower is better.

    Shapes: (C,) each.
    """
    victims, firsts = found.victims, found.begins[:-1]
    yield found.sum_up((victims & found.violating).astype(np.int64))[among]
    highest = np.maximum.reduceat(np.where(victims, found.priorities, LOWEST), firsts)
    yield highest[among]
    yield found.sum_up(np.where(victims, found.priorities - LOWEST, 0))[among]
    yield found.counts()[among]
    first_ones = victims & (found.priorities == np.repeat(highest, np.diff(found.begins)))
    yield -np.minimum.reduceat(np.where(first_ones, found.starts, np.inf), firsts)[among]


def _shown(number: int, cost: float) -> str:
    """Return a cost as text; a start time may be outside of the years 1 to 9999, because of time zone offsets."""
    return f"{np.datetime64(math.floor(-cost), 's')}Z" if number == START else str(int(cost))


def proposals(found: Search) -> dict[str, NodeVictims]:
    """Return the victims on each candidate node of a search, by node name."""
    made = {}
    for place in found.candidates.tolist():
        victims, violating = found.victims_and_violations(place)
        made[found.cluster.nodes.names[int(found.rows[place])]] = NodeVictims(victims, len(violating))
    return made


async def ask_extenders(
    pod: Pod, extenders: Sequence[Extender], candidates: Mapping[str, NodeVictims], cluster: Cluster
) -> dict[str, NodeVictims]:
    """Call extenders (ProcessPreemption) one after another; each gets the candidate nodes that earlier extenders kept.

    The cluster may change meanwhile: the victims that an extender names are looked up after its answer.

    Args:
        pod: The pod that is to fit.
        extenders: The extenders that are interested in the pod and take part in preemption.
        candidates: The victims by node.
        cluster: The cluster.

    Raises:
        ExtenderError: An extender that is not ignorable failed, or named an unknown node or pod.
    """
    left = dict(candidates)
    for extender in extenders:
        try:
            left = _known(extender, await extender.preempt(pod, left), left, cluster)
        except ExtenderError as error:
            if not extender.ignorable:
                raise
            log.warning(
                'extender "%s" failed to process preemption for pod "%s" and is ignored: %s',
                extender.name,
                pod.key,
                error,
            )
        if not left:
            break
    return {node: victims for node, victims in left.items() if victims.pods}


def without_guarded(pod: Pod, candidates: Mapping[str, NodeVictims], guarded: Guarded) -> dict[str, NodeVictims]:
    """Return the candidate nodes without protected victims; extenders may have named other victims before."""
    kept = guarded.reasons()
    row_of = guarded.cluster.nodes.row_of
    left = {node: victims for node, victims in candidates.items() if row_of.get(node) not in kept}
    if len(left) < len(candidates):
        nodes = ",".join(sorted(candidates.keys() - left.keys()))
        log.warning(
            'preemption for pod "%s" skips nodes %s: extenders kept or named victims that policies protect',
            pod.key,
            nodes,
        )
    return left


def _known(
    extender: Extender, named: Mapping[str, NamedVictims], asked: Mapping[str, NodeVictims], cluster: Cluster
) -> dict[str, NodeVictims]:
    """Return the pods that an extender named as victims, without pods that were deleted during the call.

    Raises:
        ExtenderError: A victim was never on the node, or a node has no victims.
    """
    found = {}
    for node, victims in named.items():
        told = {one.metadata.uid for one in asked[node].pods} if node in asked else set()
        pods = {one.pod.metadata.uid: one.pod for one in _placed_on(node, cluster, told, may_be_deleted=node in asked)}
        for uid in victims.uids:
            if uid not in pods and uid not in told:
                raise ExtenderError(
                    f"extender: {extender.name} claims to preempt pod (UID: {uid}) on node: {node}, "
                    "but the pod is not found on that node"
                )
        if not victims.uids and node in asked and not asked[node].pods:
            found[node] = asked[node]
        elif not victims.uids and not extender.ignorable:
            raise ExtenderError(f'expected at least one victim pod on node "{node}"')
        if there := tuple(pods[uid] for uid in victims.uids if uid in pods):
            found[node] = NodeVictims(there, victims.pdb_violations)
    return found


def _placed_on(node: str, cluster: Cluster, uids: Iterable[str], *, may_be_deleted: bool) -> list[PlacedPod]:
    """Return the pods on a node and the pods with given UIDs; for a missing node, an empty list or an error."""
    row = cluster.nodes.row_of.get(node, -1)
    if row >= 0 and cluster.nodes.present.data[row]:
        placed = (cluster.pods.by_id.get(uid) for uid in uids)
        return [*cluster.pods.on_row(row), *filter(None, placed)]
    if may_be_deleted:
        return []
    raise ExtenderError(f'nodeinfo not found for node name "{node}"')


def least_costly(candidates: Mapping[str, NodeVictims], cluster: Cluster) -> list[str]:
    """Return the names of the candidate nodes with the least costly victims."""
    costs = {node: _cost(victims, cluster) for node, victims in candidates.items()}
    least = min(costs.values(), default=None)
    return sorted(node for node, cost in costs.items() if cost == least)


def _cost(victims: NodeVictims, cluster: Cluster) -> tuple[float, ...]:
    """Return the cost of a node's victims by each criterion; the first victim must be the most important."""
    priorities = [pod_priority(one) for one in victims.pods]
    highest = max(priorities)
    first_ones = [one for one, priority in zip(victims.pods, priorities, strict=True) if priority == highest]
    started = _first_start(first_ones, cluster)
    total = sum(priority - LOWEST for priority in priorities)
    return victims.pdb_violations, priorities[0], total, len(priorities), -started


def _first_start(pods: Sequence[Pod], cluster: Cluster) -> float:
    """Return the earliest start time of some pods; the current time is used for a pod that has not started."""
    placed = (cluster.pods.by_id.get(one.metadata.uid) for one in pods)
    slots = np.array([one.slot for one in placed if one is not None], np.intp)
    return min(cluster.time.seconds, float(cluster.pods.starts(slots).min(initial=np.inf)))
