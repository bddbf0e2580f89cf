"""Simulates a pod group's cycle in the cluster without some placed pods, for PodGroupPostFilter plugins.

The pods are removed from the cluster and the members are assumed in it, all without a yield to the event loop; at the
end the cluster is as before. If the answers of extenders are needed, the simulation ends, and is repeated with the
answers and with the same draws.

Source: pkg/scheduler/framework/preemption/podgrouppreemption.go (selectVictimsOnDomain), v1.37 and v1.38.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import numpy as np

from policysched.framework import (
    ABOUT_PODS,
    AssumedPod,
    Cluster,
    Code,
    Status,
    VictimGuard,
    WhatIfFilter,
    unschedulable,
)
from policysched.framework.binding import Undo
from policysched.framework.pod_groups import CandidatePlacement, NodeRanks
from policysched.model.objects import Pod, PodGroup
from policysched.schedule.cycle.decision import Decision
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.evaluation import Evaluation
from policysched.schedule.cycle.post_filter import at_once
from policysched.schedule.cycle.results.plugin_results import NARROWED, FilterResults
from policysched.schedule.groups.cycle import GroupCycle, MemberPlacement, Steps
from policysched.schedule.groups.extender_answers import ExtenderAnswers
from policysched.schedule.groups.placements import decide_group
from policysched.schedule.observer import AttemptResult
from policysched.schedule.queue.queued_pod import QueuedPod
from policysched.state.placed.pods import PlacedPod, pod_id

ABOUT: int = int(ABOUT_PODS)


class RejectedPodGroup:
    """A pod group that does not fit, as PodGroupPostFilter plugins get it (implements `RejectedGroup`).

    Args:
        group: The group.
        scheduled: Returns the number of its members that are placed or assumed now.
        members: The members of the attempt, in the order of evaluation.
        engine: The engine of the members' profile.
        steps: The steps of the cycle; decisions are made by the engine.
        answers: The known answers of extenders; default: none is known yet.
    """

    def __init__(
        self,
        group: PodGroup,
        scheduled: Callable[[], int],
        members: Sequence[QueuedPod],
        engine: Engine,
        steps: Steps,
        answers: ExtenderAnswers | None = None,
    ) -> None:
        self.group, self._scheduled, self._members = group, scheduled, members
        self._engine, self._steps = engine, steps
        self.answers = answers or ExtenderAnswers(engine, steps.rng, len(members))

    @property
    def pods(self) -> Sequence[Pod]:
        """The pods of the group's members that are decided together."""
        return [member.pod for member in self._members]

    @property
    def cluster(self) -> Cluster:
        """The cluster in which the group was rejected."""
        return self._steps.cluster

    @property
    def victim_guards(self) -> Sequence[VictimGuard]:
        """The guards that protect pods from preemption."""
        return self._engine.profile.victim_guards

    @contextmanager
    def without(self, pods: Sequence[PlacedPod], ranks: NodeRanks | None = None) -> Iterator[_Simulation]:
        """Simulate the group's cycle without some placed pods, inside a context."""
        simulation = _Simulation(self.group, self._members, self._engine, self._steps, ranks, self.answers)
        try:
            simulation.begin(pods, self._scheduled)
            yield simulation
        finally:
            simulation.end()


class _Simulation:
    """A pod group's cycle in the cluster without some placed pods (implements `GroupSimulation`)."""

    def __init__(
        self,
        group: PodGroup,
        members: Sequence[QueuedPod],
        engine: Engine,
        steps: Steps,
        ranks: NodeRanks | None,
        answers: ExtenderAnswers,
    ) -> None:
        self._cluster, self._engine, self._ranks, self._answers = steps.cluster, engine, ranks, answers
        self._steps = replace(
            steps,
            decide=self._decide,
            cleanups=lambda *_: (),
            reserve=partial(self._reserve, steps.reserve),
            unreserve=partial(self._unreserve, steps.unreserve),
        )
        self._cycle = GroupCycle(group, members, self._steps)
        self._removed: dict[str, PlacedPod] = {}
        self._placed: list[tuple[QueuedPod, MemberPlacement]] = []
        """The members that are assumed on a node, in the order of evaluation."""
        self._on_row: dict[int, list[int]] = {}
        """The indices in `_placed` of the members on each row."""
        self.reads_other_nodes = False
        """Whether a filter of a member reads the pods of nodes other than the evaluated node."""
        self._local = frozenset[str]()
        """The names of the filters that read the pods of the evaluated node only."""
        self.failure: Status | None = None
        """The reason why the group does not fit; None if the group fits."""

    @property
    def nodes(self) -> Mapping[str, str]:
        """The nodes of the placed members, by the identity of the pod."""
        return {member.identity: placement.assumed.node for member, placement in self._placed}

    def begin(self, pods: Iterable[PlacedPod], scheduled: Callable[[], int]) -> None:
        """Remove placed pods and run the group's cycle; the members that fit stay assumed."""
        self._cycle.begin()
        self._classify_filters()
        self.remove(pods)
        decision = at_once(decide_group(self._cycle, scheduled))
        verdict = decision.verdict
        if verdict.result is AttemptResult.ERROR:
            self.failure = Status(Code.ERROR, (verdict.message,))
        elif not verdict.fits:
            self.failure = unschedulable(verdict.message)
        else:
            placed = self._cycle.hold(decision.members)
            self._placed = [(one.queued, one.placement) for one in placed if one.placement is not None]
            for position, one in enumerate(self._placed):
                self._on_row.setdefault(self._row_of(one), []).append(position)

    def _classify_filters(self) -> None:
        by_reach: dict[bool, set[str]] = {True: set(), False: set()}
        for member in self._cycle.members:
            for one in self._engine.find(member.pod).plugin_filters():
                if one.reads & ABOUT:
                    by_reach[_reads_other_nodes(one)].add(one.plugin.name)
        self.reads_other_nodes = bool(by_reach[True])
        self._local = frozenset(by_reach[False] - by_reach[True])

    def end(self) -> None:
        """Remove the assumed members, and restore all removed pods."""
        self._cycle.undo()
        for placed in self._removed.values():
            self._cluster.put_back(placed)
        self._cycle.end()

    def restore(self, pods: Sequence[PlacedPod], *, locally: bool = False) -> bool:
        """Restore removed pods; if an assumed member no longer fits, remove them again and return False.

        Args:
            pods: The pods.
            locally: Whether only the nodes of the pods are evaluated, by the filters that read no other node.
        """
        near = self._placed_on({placed.row for placed in pods})
        self._take_out(near)
        for placed in pods:
            del self._removed[pod_id(placed.pod)]
            self._cluster.put_back(placed)
        if not self._put_in(near, pods, locally=self.reads_other_nodes):
            return False
        if locally or not self.reads_other_nodes:
            return True
        self._take_out(self._placed)
        return self._put_in(self._placed, pods, locally=False)

    def _placed_on(self, rows: Iterable[int]) -> list[tuple[QueuedPod, MemberPlacement]]:
        """Return the members in place on some rows, in the order of evaluation."""
        return [self._placed[position] for position in sorted(p for row in rows for p in self._on_row.get(row, ()))]

    async def _decide(self, member: QueuedPod, placement: CandidatePlacement) -> Decision:
        evaluation = self._engine.find(member.pod, rows=placement.limit(self._cluster))
        extended = self._answers.applied(member.pod, evaluation)
        if isinstance(extended, Decision):
            return extended
        if self._ranks is not None:
            extended = _of_lowest_rank(extended, self._ranks)
        return self._engine.choose(extended)

    def _reserve(self, reserve: Callable[[AssumedPod], Status | None], assumed: AssumedPod) -> Status | None:
        status = reserve(assumed)
        if status is None and self._ranks is not None:
            self._ranks.place(pod_id(assumed.pod), self._cluster.nodes.row_of[assumed.node])
        return status

    def _unreserve(self, unreserve: Callable[[AssumedPod], tuple[Undo, ...]], assumed: AssumedPod) -> tuple[Undo, ...]:
        if self._ranks is not None:
            self._ranks.remove(pod_id(assumed.pod))
        return unreserve(assumed)

    def remove(self, pods: Iterable[PlacedPod]) -> None:
        """Remove placed pods from the cluster until `restore` or the end of the simulation."""
        for placed in pods:
            self._cluster.take_away(placed)
            self._removed[pod_id(placed.pod)] = placed

    def _row_of(self, one: tuple[QueuedPod, MemberPlacement]) -> int:
        return self._cluster.nodes.row_of[one[1].assumed.node]

    def _fits(self, one: tuple[QueuedPod, MemberPlacement], *, locally: bool) -> bool:
        evaluation = self._engine.find(one[0].pod)
        status = evaluation.rejection or evaluation.trial(self._row_of(one)).verdict()
        return status is None or (locally and status.plugin not in self._local)

    def _take_out(self, members: Sequence[tuple[QueuedPod, MemberPlacement]]) -> None:
        for member, placement in reversed(members):
            self._steps.unreserve(placement.assumed)
            self._cluster.forget(member.identity)

    def _put_in(
        self, members: Iterable[tuple[QueuedPod, MemberPlacement]], pods: Sequence[PlacedPod], *, locally: bool
    ) -> bool:
        """Assume members again; return whether all fit; before a member that does not fit, `pods` are removed.

        As in kube-scheduler, a failure of Reserve is ignored.
        """
        fits = True
        for one in members:
            if fits and not self._fits(one, locally=locally):
                fits = False
                self.remove(pods)
            placement = one[1]
            self._cluster.assume(placement.assumed.pod, self._row_of(one), placement.resources)
            self._steps.reserve(placement.assumed)
        return fits


def _reads_other_nodes(results: FilterResults) -> bool:
    """Return whether a filter that reads pods reads the pods of nodes other than the evaluated node."""
    plugin = results.plugin
    return not isinstance(plugin, WhatIfFilter) or plugin.reads_other_rows(results.state)


def _of_lowest_rank(evaluation: Evaluation, ranks: NodeRanks) -> Evaluation:
    """Return an evaluation in which only the feasible nodes with the lowest rank are feasible."""
    if evaluation.rejection is not None or not evaluation.feasible_count:
        return evaluation
    feasible = evaluation.feasible()
    of_rows = ranks.ranks()[: feasible.size]
    chosen = feasible & (of_rows == of_rows[feasible].min())
    first = np.where(feasible & ~chosen, NARROWED, evaluation.first[: feasible.size]).astype(np.int16)
    return evaluation._replace(first=first, feasible_count=int(np.count_nonzero(chosen)))
