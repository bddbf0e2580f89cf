"""Preemption for pod groups: finds pods of lower priority whose eviction lets a pod group fit.

All pods of lower priority are removed, and the whole cycle of the group runs once. Then the pods are restored one
victim after another, while the placed members still fit: first victims that violate a disruption budget, and in both
parts the most important first. The victims that cannot be restored are evicted.

Shapes: V listed pods, U victims.
Source: pkg/scheduler/framework/preemption/podgrouppreemption.go, v1.37 and v1.38; podgrouppreemption_state.go, util.go
(CompareVictimSets), plugins/defaultpreemption/default_preemption.go (RankNodes), v1.38.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress, groupby, pairwise
from operator import not_
from typing import Final

import numpy as np
from numpy.typing import NDArray

from policysched.framework import Cluster, Code, Status, unresolvable, unschedulable
from policysched.framework.pod_groups import Disruption, GroupSimulation, PodGroupPostFilterResult, RejectedGroup
from policysched.model.objects import Pod
from policysched.model.pod_requirements import pod_priority
from policysched.plugins.default_preemption.budgets import Budgets
from policysched.plugins.default_preemption.evictable import Evictable
from policysched.plugins.default_preemption.eviction import is_going_for_another
from policysched.plugins.default_preemption.guards import Guarded, ask_for
from policysched.plugins.default_preemption.search import SearchRules, lower_on, ties_of
from policysched.state.placed.pods import PlacedPod, pod_id

PREFIX: Final = "pod group preemption: "
NEVER: Final = "not eligible due to preemptionPolicy=Never."
NO_VICTIMS: Final = "No preemption victims found for incoming preemptor"
ONGOING: Final = "ongoing preemption on nominated nodes"

MOST_EVALUATIONS: Final = 5_000
"""Maximum number of member evaluations while victims that affect members on other nodes are restored one by one.

Beyond it, victims are restored by the members on their nodes, and all members are evaluated once. One evaluation takes
about 0.2 ms.
"""


@dataclass(frozen=True, slots=True)
class GroupRules:
    """Rules for preemption by pod groups that differ between Kubernetes minors."""

    lack_is_final: bool = False
    """Whether results of later PostFilter plugins are ignored if no victim is found for a pod group."""
    policy_comes_first: bool = False
    """Whether a pod group with preemptionPolicy Never does not wait for victims of its earlier preemption."""
    ranks_nodes: bool = False
    """Whether members are placed on the nodes whose victims cost least."""
    clears_nominations: bool = False
    """Whether nominations of pods of lower priority to the members' nodes are cleared."""


@dataclass(frozen=True, slots=True)
class Victim:
    """Placed pods that are only evicted together: a single pod, or a pod group."""

    pods: tuple[PlacedPod, ...]
    priority: int
    is_group: bool
    violations: int
    """Number of the victim's pods whose eviction violates a disruption budget."""


def search_for_group(
    rejected: RejectedGroup, budgets: Budgets, searching: SearchRules, rules: GroupRules
) -> PodGroupPostFilterResult:
    """Return the result of preemption for a pod group; the caller executes the evictions.

    Args:
        rejected: The group.
        budgets: The disruption budgets.
        searching: How victims are chosen.
        rules: How pod groups preempt.

    Cost: one cycle of the group, and for each victim an evaluation of the members on the victim's nodes. If filters
    read the pods of other nodes: of all members.
    """
    if (early := _early(rejected, rules)) is not None:
        return early
    victims, guarded = _victims(rejected, budgets, searching)
    if not victims:
        lack = unresolvable if rules.lack_is_final else unschedulable
        return PodGroupPostFilterResult(lack(*_told(NO_VICTIMS, guarded)), searched=rules.lack_is_final)
    pods = [placed for victim in victims for placed in victim.pods]
    ranks = VictimRanks(rejected.cluster, victims) if rules.ranks_nodes else None
    with rejected.without(pods, ranks) as simulation:
        failure = simulation.failure
        if failure is not None:
            return PodGroupPostFilterResult(Status(failure.code, _told(failure.message, guarded)), searched=True)
        evicted = _evicted(victims, simulation, rejected.cluster)
        nodes = dict(simulation.nodes)
    going = tuple(placed.pod for one in evicted for placed in one.pods)
    status = Status(Code.SUCCESS, (f"{PREFIX}found a placement for podgroup, preempting {len(going)} victims",))
    groups, violations = sum(one.is_group for one in evicted), sum(one.violations for one in evicted)
    disruption = Disruption(groups, len(evicted) - groups, violations)
    return PodGroupPostFilterResult(status, nodes, victims=going, searched=True, disruption=disruption)


def _early(rejected: RejectedGroup, rules: GroupRules) -> PodGroupPostFilterResult | None:
    """Return the result for a pod group that may not preempt or has to wait; None if victims have to be searched."""
    policy, pods = rejected.group.spec.preemption_policy, rejected.pods
    never = policy == "Never" or (policy is None and any(one.spec.preemption_policy == "Never" for one in pods))
    waits = _waits(rejected)
    if never and (rules.policy_comes_first or not waits):
        return PodGroupPostFilterResult(unschedulable(f"{PREFIX}{NEVER}"))
    if waits:
        nominated = {pod_id(one): one.status.nominated_node_name or "" for one in pods}
        return PodGroupPostFilterResult(Status(Code.SUCCESS, (f"{PREFIX}{ONGOING}",)), nominated)
    return None


def _waits(rejected: RejectedGroup) -> bool:
    """Return whether a preempted pod of lower priority is still being deleted on a member's nominated node."""
    cluster, priority = rejected.cluster, rejected.group.priority
    names = {one.status.nominated_node_name for one in rejected.pods if one.status.nominated_node_name}
    rows = [row for name in names if (row := cluster.nodes.row_of.get(name)) is not None]
    there = (placed.pod for row in rows if cluster.nodes.present.data[row] for placed in cluster.pods.on_row(row))
    return any(pod_priority(one) < priority and is_going_for_another(one) for one in there)


def _told(reason: str, guarded: Guarded) -> tuple[str, ...]:
    """Return the reasons of a status: the given reason, and the reasons for which victim guards protect pods."""
    return f"{PREFIX}{reason}", *guarded.examples().values()


def _victims(rejected: RejectedGroup, budgets: Budgets, searching: SearchRules) -> tuple[list[Victim], Guarded]:
    """Return all possible victims, in the order in which the search restores them."""
    cluster = rejected.cluster
    rows = np.flatnonzero(cluster.nodes.present.data[: cluster.nodes.size])
    slots = lower_on(cluster, rejected.group.priority, rows)
    found = Evictable.of(cluster, slots, np.zeros(slots.size, np.intp), ranks_members=searching.ranks_members)
    guarded = ask_for(_distinct(rejected.pods), rejected.victim_guards, cluster, found.slots, found.rows)
    found = found.without(~guarded.may_go)
    slots, starts = found.slots, cluster.pods.starts(found.slots)
    priorities = cluster.signatures.priorities()[cluster.pods.signatures[slots]]
    ties = ties_of(cluster, slots, np.isinf(starts), searching)
    starts[np.isinf(starts)] = cluster.time.seconds
    order = found.order(priorities, starts, ties)
    slots, numbers, priorities = slots[order], found.victims[order], priorities[order]
    violating = budgets.violating(cluster, slots, found.rows[order])
    begins = np.flatnonzero(np.diff(numbers, prepend=-1, append=-1)) if slots.size else np.zeros(1, np.intp)
    by_slot = cluster.pods.by_slot
    victims = [
        Victim(
            tuple(placed for slot in slots[begin:end].tolist() if (placed := by_slot[slot]) is not None),
            int(priorities[begin]),
            bool(found.of_group[numbers[begin]]),
            int(np.count_nonzero(violating[begin:end])),
        )
        for begin, end in pairwise(begins.tolist())
    ]
    return sorted(victims, key=lambda one: one.violations == 0), guarded


def _distinct(pods: Sequence[Pod]) -> list[Pod]:
    """Return one pod of each set of pods with equal spec and labels, which victim guards cannot distinguish."""
    found: list[Pod] = []
    for pod in pods:
        if not any(one.spec == pod.spec and one.metadata.labels == pod.metadata.labels for one in found):
            found.append(pod)
    return found


def _evicted(victims: Sequence[Victim], simulation: GroupSimulation, cluster: Cluster) -> list[Victim]:
    """Return the victims that have to be evicted, after restoring as many as possible."""
    reaching = sum(simulation.reaches(one.pods) for one in victims)
    if reaching * len(simulation.nodes) <= MOST_EVALUATIONS:
        return [one for one in victims if not simulation.restore(one.pods)]
    restored = [simulation.restore(one.pods, locally=True) for one in victims]
    if simulation.all_fit():
        return list(compress(victims, map(not_, restored)))
    simulation.remove([placed for one in compress(victims, restored) for placed in one.pods])
    taken = {cluster.nodes.row_of[name] for name in simulation.nodes.values()}
    is_near = [any(placed.row in taken for placed in one.pods) for one in victims]
    left = _restored_by_halves(list(compress(victims, map(not_, is_near))), simulation)
    return left + [one for one in compress(victims, is_near) if not simulation.restore(one.pods)]


def _restored_by_halves(victims: Sequence[Victim], simulation: GroupSimulation) -> list[Victim]:
    """Restore all victims at once, or else each half separately; return the victims that cannot be restored.

    The result is that of single restorations if a filter never needs a victim to pass, as filters for spreading do.
    """
    if not victims or simulation.restore([placed for one in victims for placed in one.pods]):
        return []
    if len(victims) == 1:
        return list(victims)
    middle = len(victims) // 2
    first = _restored_by_halves(victims[:middle], simulation)
    return first + _restored_by_halves(victims[middle:], simulation)


class VictimRanks:
    """Ranks nodes by the cost of the possible victims on them (implements `NodeRanks`).

    Nodes without victims have rank 0. A member that is placed on a node displaces the victims with a pod on this node.
    """

    def __init__(self, cluster: Cluster, victims: Sequence[Victim]) -> None:
        self._capacity = cluster.nodes.columns.capacity
        self._victims = victims
        self._left: dict[int, dict[int, Victim]] = {}
        """The possible victims that no member displaces, by row number of the node and number of the victim."""
        self._rows: dict[int, set[int]] = {}
        self._condemned: dict[str, tuple[int, ...]] = {}
        """The numbers of the victims that each member displaces, by the member's identity."""
        self._ranks: NDArray[np.intp] | None = None
        """The rank of each node, possibly with gaps; None if the ranks have to be computed again."""
        for number, victim in enumerate(victims):
            rows = self._rows[number] = {placed.row for placed in victim.pods}
            for row in rows:
                self._left.setdefault(row, {})[number] = victim

    def ranks(self) -> NDArray[np.intp]:
        """Return the rank of each node; nodes with equal victim costs share a rank. `place` changes the array."""
        if self._ranks is None:
            self._ranks = self._computed()
        return self._ranks

    def _computed(self) -> NDArray[np.intp]:
        costs = {row: _cost(tuple(left.values())) for row, left in self._left.items() if left}
        ranks = {cost: rank for rank, cost in enumerate(sorted(set(costs.values())), 1)}
        found = np.zeros(self._capacity, np.intp)
        for row, cost in costs.items():
            found[row] = ranks[cost]
        return found

    def place(self, member: str, row: int) -> None:
        """Record that a member is placed on a node and displaces the node's victims, on all nodes of these victims."""
        condemned = self._condemned[member] = tuple(self._left.get(row, ()))
        for number in condemned:
            for other in self._rows[number]:
                del self._left[other][number]
        changed = {other for number in condemned for other in self._rows[number]}
        if any(self._left[other] for other in changed):
            self._ranks = None
        elif self._ranks is not None:
            self._ranks[list(changed)] = 0

    def remove(self, member: str) -> None:
        """Record that a member is no longer placed, and displaces no victims."""
        condemned = self._condemned.pop(member, ())
        self._ranks = None if condemned else self._ranks
        for number in condemned:
            for row in self._rows[number]:
                self._left[row][number] = self._victims[number]


Cost = tuple[int, tuple[tuple[int, int], ...], int, tuple[tuple[bool, int], ...]]


def _cost(victims: Sequence[Victim]) -> Cost:
    """Return the cost of evicting victims: violations, pods by priority, number of pods, sizes of the victims."""
    ordered = sorted(victims, key=lambda one: (one.priority, one.is_group, len(one.pods)), reverse=True)
    levels = tuple((priority, sum(len(one.pods) for one in level)) for priority, level in groupby(ordered, _priority))
    violations = sum(one.violations for one in victims)
    return violations, levels, sum(len(one.pods) for one in victims), tuple((o.is_group, len(o.pods)) for o in ordered)


def _priority(victim: Victim) -> int:
    return victim.priority
