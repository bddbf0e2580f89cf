"""`run_cycle`: decides about a pod group on one placement after another, and chooses the best that the group fits.

Without topology-aware scheduling, the only placement has all nodes. The caller places the members of a group that fits.
If the members of the chosen placement are still in place, and no Reserve plugin applies to them, placing them again
would change nothing: then the members stay, unless a Permit plugin does more than wait for members.

Source: pkg/scheduler/algorithm_podgroup.go (RunRootSchedulingAlgorithm, podGroupSchedulingPlacementAlgorithm), v1.38;
pkg/scheduler/schedule_one_podgroup.go (podGroupSchedulingPlacementAlgorithm), v1.37.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from policysched.framework import Code, Status
from policysched.framework.pod_groups import CandidatePlacement, FeasiblePlacement
from policysched.model.objects import PodGroup
from policysched.schedule.groups.cycle import (
    CHANGED,
    REJECTED,
    GroupCycle,
    GroupDecision,
    Steps,
    TriedPlacement,
    Verdict,
    error_verdict,
)
from policysched.schedule.groups.placement_points import all_nodes, best_of, generate, score
from policysched.schedule.observer import AttemptResult
from policysched.schedule.queue.queued_pod import QueuedPod
from policysched.schedule.timing import PLACEMENT_GENERATE, PLACEMENT_SCORE

NOTHING_PLACED: Final = "no pods were schedulable"
ONLY_NOMINATED: Final = "nominated placement is feasible but no pending pod was scheduled"
LEAST_PERCENTAGE: Final = 5
"""Default lower limit of the percentage of placements that must be found feasible before the search ends."""
NODES_OF_A_PERCENT: Final = (9, 500)
"""The default percentage is 100 minus 9 for each 500 nodes in all placements."""


async def run_cycle(
    group: PodGroup, scheduled: Callable[[], int], members: Sequence[QueuedPod], steps: Steps
) -> GroupDecision:
    """Decide about a pod group; afterwards no member is assumed, unless the group fits and its members stay assumed.

    Args:
        group: The group.
        scheduled: Returns the number of its members that are placed or assumed now.
        members: The members to place, in order of evaluation.
        steps: The steps of the cycle.
    """
    cycle = GroupCycle(group, members, steps)
    stays = False
    cycle.begin()
    try:
        decision = await decide_group(cycle, scheduled)
        stays = decision.verdict.fits and cycle.may_stay()
    finally:
        if not stays:
            cycle.undo()
        cycle.end()
    return replace(decision, stays=stays)


async def decide_group(cycle: GroupCycle, scheduled: Callable[[], int]) -> GroupDecision:
    """Decide about a pod group; afterwards no member, or each member of the chosen placement, is assumed on its node.

    Args:
        cycle: The cycle, without members in place.
        scheduled: Returns the number of members that are placed or assumed now.
    """
    if cycle.steps.cluster.release.topology_aware:
        decision = await _PlacementSearch(cycle, scheduled).run()
    else:
        only = await cycle.run(scheduled, all_nodes(cycle.steps.cluster))
        decision = GroupDecision(only.verdict, only.members)
    if decision.verdict.fits and not any(one.placement is not None for one in decision.members):
        message = NOTHING_PLACED if cycle.steps.names_group else REJECTED
        decision = replace(decision, verdict=Verdict(AttemptResult.UNSCHEDULABLE, message), chosen=None)
    return replace(decision, state=cycle.context.state)


class _PlacementSearch:
    """The search for the placement on which a pod group is scheduled.

    Args:
        cycle: The cycle, without members in place.
        scheduled: Returns the number of members that are placed or assumed now.
    """

    def __init__(self, cycle: GroupCycle, scheduled: Callable[[], int]) -> None:
        self._cycle, self._scheduled, self._steps = cycle, scheduled, cycle.steps
        self._ends_early = cycle.steps.cluster.release.placement_search_ends_early
        self._tried: list[TriedPlacement] = []

    async def run(self) -> GroupDecision:
        """Try placements and return the decision about the group."""
        found = self._generated()
        if isinstance(found, Status):
            return GroupDecision(_verdict_of(found))
        try:
            return await self._search(found)
        finally:
            self._steps.searched(len(found), self._tried)

    def _generated(self) -> Sequence[CandidatePlacement] | Status:
        profile, context = self._steps.profile, self._cycle.context
        found: Sequence[CandidatePlacement] | Status = self._steps.measure(
            PLACEMENT_GENERATE, profile, generate, profile.placement_generate, context
        )
        return found

    async def _search(self, found: Sequence[CandidatePlacement]) -> GroupDecision:
        nominated = self._nominated(found) if self._ends_early else None
        if nominated is not None:
            one = await self._try(nominated)
            if one.verdict.result is AttemptResult.ERROR:
                return self._decision(one.verdict, one)
            if one.verdict.fits and one.places:
                return self._chosen(one)
        return await self._search_all(found, nominated)

    async def _search_all(
        self, found: Sequence[CandidatePlacement], nominated: CandidatePlacement | None
    ) -> GroupDecision:
        feasible: list[TriedPlacement] = []
        order, enough = self._order(found)
        for placement in order:
            if placement is nominated:
                continue
            one = await self._try(placement)
            if one.verdict.result is AttemptResult.ERROR:
                return self._decision(one.verdict, one)
            if one.verdict.fits:
                feasible.append(one)
            if len(feasible) >= enough:
                break
        return self._best(feasible) if feasible else self._rejected(len(found))

    async def _try(self, placement: CandidatePlacement) -> TriedPlacement:
        """Decide about the members on a placement; members that fit are assumed until the next placement is tried."""
        self._cycle.undo()
        one = await self._cycle.run(self._scheduled, placement)
        self._tried.append(one)
        return one

    def _nominated(self, found: Sequence[CandidatePlacement]) -> CandidatePlacement | None:
        """Return the placement that contains nominated nodes of members, if there is exactly one; else None."""
        row_of = self._steps.cluster.nodes.row_of
        names = {one.pod.status.nominated_node_name for one in self._cycle.members}
        rows = [row_of[name] for name in names if name and name in row_of]
        if not rows:
            return None
        holding = [one for one in found if np.isin(rows, one.rows).any()]
        return holding[0] if len(holding) == 1 else None

    def _order(self, found: Sequence[CandidatePlacement]) -> tuple[Sequence[CandidatePlacement], int]:
        """Return placements in the order in which to try them, and the number of feasible placements that is enough."""
        if not self._ends_early:
            return found, len(found) + 1
        profile = self._steps.profile
        enough = 1
        if profile.placement_scores:
            percentage = profile.placements_percentage
            if percentage == 0:
                by, nodes = NODES_OF_A_PERCENT
                percentage = max(LEAST_PERCENTAGE, 100 - sum(one.rows.size for one in found) * by // nodes)
            enough = max(1, len(found) * percentage // 100)
        if enough >= len(found):
            return found, enough
        return self._steps.rng.sample(found, len(found)), enough

    def _best(self, feasible: Sequence[TriedPlacement]) -> GroupDecision:
        """Return the decision for the feasible placement with the highest score, a random one if several are equal."""
        if len(feasible) == 1:
            return self._chosen(feasible[0])
        self._cycle.undo()
        profile, context = self._steps.profile, self._cycle.context
        if not profile.placement_scores:
            return self._chosen(feasible[self._steps.rng.randrange(len(feasible))])
        scored = self._steps.measure(
            PLACEMENT_SCORE, profile, score, profile.placement_scores, context, [_feasible(one) for one in feasible]
        )
        if isinstance(scored, Status):
            return self._decision(error_verdict(scored.message))
        for plugin, scores in scored:
            for one, value in zip(feasible, scores.tolist(), strict=True):
                one.scores[plugin.name] = value
        best = best_of(scored)
        return self._chosen(feasible[best[0] if len(best) == 1 else self._steps.rng.choice(best)])

    def _chosen(self, one: TriedPlacement) -> GroupDecision:
        """Return the decision for a chosen placement; remove members that are assumed on another placement."""
        if one is not self._tried[-1]:
            self._cycle.undo()
        if not self._still_holds(one):
            return self._decision(error_verdict(CHANGED))
        return replace(self._decision(one.verdict, one), chosen=one)

    def _still_holds(self, one: TriedPlacement) -> bool:
        """Return whether a placement still contains its members' nodes after extenders were called."""
        if not any(self._steps.profile.extending(pod) for pod in self._cycle.context.pods):
            return True
        found, row_of = self._generated(), self._steps.cluster.nodes.row_of
        if isinstance(found, Status):
            return False
        rows = [row_of.get(node, -1) for node in _nodes_of(one)]
        return any(same.name == one.placement.name and np.isin(rows, same.rows).all() for same in found)

    def _rejected(self, count: int) -> GroupDecision:
        """Return the decision for a group that fits no placement, with the message of the first tried placement."""
        first = self._tried[0]
        message, rejectors = first.verdict.message, first.verdict.rejectors
        if first.verdict.fits:
            message, rejectors = ONLY_NOMINATED, frozenset()
        if not self._steps.names_group and message.startswith(f"{REJECTED}, "):
            message = REJECTED
        message = f"0/{count} placements are available, first placement status: {message}"
        if not self._steps.names_group:
            message = f"{REJECTED}, {message}"
        return self._decision(Verdict(AttemptResult.UNSCHEDULABLE, message, rejectors), first)

    def _decision(self, verdict: Verdict, one: TriedPlacement | None = None) -> GroupDecision:
        return GroupDecision(verdict, () if one is None else one.members, tried=tuple(self._tried))


def _verdict_of(status: Status) -> Verdict:
    """Return the verdict on a group for which plugins generated no placement."""
    if status.code is not Code.ERROR and status.rejects:
        return Verdict(AttemptResult.UNSCHEDULABLE, status.message, is_of_members=True)
    return error_verdict(status.message)


def _feasible(one: TriedPlacement) -> FeasiblePlacement:
    pods = [member.queued.pod for member in one.members if member.placement is not None]
    return FeasiblePlacement(one.placement, pods, tuple(_nodes_of(one)))


def _nodes_of(one: TriedPlacement) -> Iterator[str]:
    """Yield the node of each member that fits on a placement."""
    return (member.placement.assumed.node for member in one.members if member.placement is not None)
