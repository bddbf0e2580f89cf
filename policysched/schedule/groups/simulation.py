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
    PluginBlock,
    Status,
    VictimGuard,
    WhatIfFilter,
    unschedulable,
)
from policysched.framework.binding import Undo
from policysched.framework.cycle_state import CycleState
from policysched.framework.pod_groups import CandidatePlacement, NodeRanks
from policysched.model.objects import Pod, PodGroup
from policysched.schedule.cycle.decision import Decision
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.evaluation import Evaluation
from policysched.schedule.cycle.post_filter import at_once
from policysched.schedule.cycle.results.plugin_results import NARROWED, FilterResults
from policysched.schedule.cycle.what_if import Trial
from policysched.schedule.groups.cycle import GroupCycle, MemberPlacement, Steps
from policysched.schedule.groups.extender_answers import ExtenderAnswers
from policysched.schedule.groups.placements import decide_group
from policysched.schedule.observer import AttemptResult
from policysched.schedule.queue.queued_pod import QueuedPod
from policysched.state.placed.pods import PlacedPod, pod_id

Member = tuple[QueuedPod, MemberPlacement]
"""A member of a pod group, in the queue's form, and the node on which it is assumed."""

ABOUT: int = int(ABOUT_PODS)


class RejectedPodGroup:
    """A pod group that does not fit, as PodGroupPostFilter plugins get it (implements `RejectedGroup`).

    Args:
        group: The group.
        scheduled: Returns the number of its members that are placed or assumed now.
        members: The members of the attempt, in the order of evaluation.
        engine: The engine of the members' profile.
        steps: The steps of the cycle; decisions are made by the engine.
        state: The state of the group's cycle.
        answers: The known answers of extenders; default: none is known yet.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - dependencies are passed in
        self,
        group: PodGroup,
        scheduled: Callable[[], int],
        members: Sequence[QueuedPod],
        engine: Engine,
        steps: Steps,
        state: CycleState,
        answers: ExtenderAnswers | None = None,
    ) -> None:
        self.group, self._scheduled, self._members, self.state = group, scheduled, members, state
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
        """Inside this context, simulate the group's cycle in the cluster without some placed pods."""
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
            note=lambda *_: None,
            reserve=partial(self._reserve, steps.reserve),
            unreserve=partial(self._unreserve, steps.unreserve),
        )
        self._cycle = GroupCycle(group, members, self._steps)
        self._removed: dict[str, PlacedPod] = {}
        self._order: dict[int, list[str]] = {}
        """The pods of each row with removed pods, by their identities, in the order before the removal."""
        self._placed: list[Member] = []
        """The members of the group that are assumed on a node, in the order of evaluation."""
        self._on_row: dict[int, list[Member]] = {}
        """The members of the group that are assumed on a node, by the node's row."""
        self._evaluations: dict[str, Evaluation] = {}
        """The filter results of each member when it was last evaluated, by pod identity."""
        self._distant: list[FilterResults] = []
        """The filters of assumed members that also read pods on other nodes than the evaluated node."""
        self._reaching: dict[int, bool] = {}
        """Whether removed pods of a kind affect members on other nodes, by signature number before the removal."""
        self.failure: Status | None = None
        """The reason why the group does not fit; None if the group fits."""

    @property
    def nodes(self) -> Mapping[str, str]:
        """The node of each assumed member, by pod identity."""
        return {member.identity: placement.assumed.node for member, placement in self._placed}

    def begin(self, pods: Sequence[PlacedPod], scheduled: Callable[[], int]) -> None:
        """Remove placed pods and run the group's cycle; the members that fit stay assumed."""
        self._cycle.begin()
        there = self._cluster.pods
        self._order = {row: [pod_id(one.pod) for one in there.on_row(row)] for row in {one.row for one in pods}}
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
            for one in self._placed:
                self._on_row.setdefault(self._row_of(one), []).append(one)
            self._distant = self._distant_filters()

    def end(self) -> None:
        """Remove the assumed members, and restore all removed pods."""
        self._cycle.undo()
        for placed in self._removed.values():
            self._cluster.put_back(placed)
        for row, identities in self._order.items():
            self._cluster.pods.arrange(row, identities)
        self._cycle.end()

    def reaches(self, pods: Iterable[PlacedPod]) -> bool:
        """Return whether removing the given pods affects members on other nodes."""
        return any(self._reaches(placed) for placed in pods)

    def restore(self, pods: Sequence[PlacedPod], *, locally: bool = False) -> bool:
        """Restore removed pods; if an assumed member then no longer fits, remove the pods again and return False.

        The members on the nodes of the pods are evaluated first. If the pods affect no other node, only filters that
        read the pods of one node are called, and no other member is evaluated.

        Args:
            pods: The pods.
            locally: Whether to evaluate no members on other nodes.
        """
        reaches = self.reaches(pods)
        fits = self._row_fits_reached if reaches else self._row_fits
        if not all(fits(row, pods) for row in {placed.row for placed in pods} & self._on_row.keys()):
            return False
        for placed in pods:
            del self._removed[pod_id(placed.pod)]
            self._cluster.put_back(placed)
        if locally or not reaches or self.all_fit():
            return True
        self.remove(pods)
        return False

    def all_fit(self) -> bool:
        """Return whether all assumed members fit, one after another; as in kube-scheduler, Reserve may fail."""
        for member, placement in reversed(self._placed):
            self._steps.unreserve(placement.assumed)
            self._cluster.forget(member.identity)
        fits = True
        for one in self._placed:
            fits = fits and self._fits(one)
            placement = one[1]
            self._cluster.assume(placement.assumed.pod, self._row_of(one), placement.resources)
            self._steps.reserve(placement.assumed)
        return fits

    def _row_fits(self, row: int, pods: Sequence[PlacedPod]) -> bool:
        """Return whether a node's members fit one after another beside restored pods that affect no other node."""
        called, trial = None, None
        members = self._on_row[row]
        for place, (member, _) in enumerate(members):
            evaluation = self._evaluations[member.identity]
            filters = _what_if_filters(evaluation, only_own=True)
            if trial is None or filters != called:
                called, trial = filters, Trial(self._cluster, filters, row, evaluation.nominated_pods.get(row, ()))
                for later, _ in members[place:]:
                    trial.remove(later.pod)
                for placed in pods:
                    if placed.row == row:
                        trial.add(placed.pod)
            if trial.verdict() is not None:
                return False
            trial.add(member.pod)
        return True

    def _row_fits_reached(self, row: int, pods: Sequence[PlacedPod]) -> bool:
        """Return whether each member on a node passes the filters that read pods, without the members after it."""
        identities = [member.identity for member, _ in self._placed]
        for member, _ in self._on_row[row]:
            evaluation = self._engine.find(member.pod)
            filters = _what_if_filters(evaluation, only_own=False)
            trial = Trial(self._cluster, filters, row, evaluation.nominated_pods.get(row, ()))
            for identity in identities[identities.index(member.identity) :]:
                later = self._cluster.pods.by_id[identity]
                if later.row == row:
                    trial.remove(later.pod)
                else:
                    trial.remove_elsewhere(later)
            for one in pods:
                if one.row == row:
                    trial.add(one.pod)
                else:
                    trial.restore_elsewhere(_without_signature(one))
            if trial.verdict() is not None:
                return False
        return True

    def _reaches(self, placed: PlacedPod) -> bool:
        known = self._reaching.get(placed.signature)
        if known is None:
            bare = _without_signature(placed)
            known = any(_is_affected_by(one, bare) for one in self._distant)
            self._reaching[placed.signature] = known
        return known

    def _distant_filters(self) -> list[FilterResults]:
        """Return the different filters of assumed members that also read pods on other nodes."""
        evaluations = (self._evaluations[member.identity] for member, _ in self._placed)
        found = (one for evaluation in evaluations for one in evaluation.plugin_filters() if one.reads & ABOUT)
        return list({id(one.state): one for one in found if _reads_other_nodes(one)}.values())

    async def _decide(self, member: QueuedPod, placement: CandidatePlacement) -> Decision:
        evaluation = self._engine.find(member.pod, rows=placement.limit(self._cluster))
        self._evaluations[member.identity] = evaluation
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

    def _row_of(self, one: Member) -> int:
        return self._cluster.nodes.row_of[one[1].assumed.node]

    def _fits(self, one: Member) -> bool:
        evaluation = self._engine.find(one[0].pod)
        return evaluation.rejection is None and evaluation.trial(self._row_of(one)).verdict() is None


def _reads_other_nodes(results: FilterResults) -> bool:
    """Return whether a filter that reads pods reads the pods of nodes other than the evaluated node."""
    plugin = results.plugin
    return not isinstance(plugin, WhatIfFilter) or plugin.reads_other_rows(results.state)


def _is_affected_by(results: FilterResults, placed: PlacedPod) -> bool:
    """Return whether placing a pod may change a filter's results."""
    plugin = results.plugin
    return not isinstance(plugin, WhatIfFilter) or plugin.is_affected_by(results.state, placed)


def _what_if_filters(evaluation: Evaluation, *, only_own: bool) -> list[FilterResults]:
    """Return a member's filters that read pods and can simulate nodes; `only_own`: only the pods on one node.

    Policies that read other rows are left out, because their what-if does not cover pods on other rows.
    """
    found = (one for one in evaluation.plugin_filters() if one.reads & ABOUT and isinstance(one.plugin, WhatIfFilter))
    return [one for one in found if not (_reads_other_nodes(one) and (only_own or isinstance(one.plugin, PluginBlock)))]


def _without_signature(placed: PlacedPod) -> PlacedPod:
    """Return a removed pod without the number of its kind (signature), which other pods may have got meanwhile."""
    return PlacedPod(placed.pod, placed.row, placed.pod_resources, assumed=placed.assumed)


def _of_lowest_rank(evaluation: Evaluation, ranks: NodeRanks) -> Evaluation:
    """Return an evaluation in which feasible nodes of a higher than the lowest rank are rejected."""
    if evaluation.rejection is not None or not evaluation.feasible_count:
        return evaluation
    feasible = evaluation.feasible()
    of_rows = ranks.ranks()[: feasible.size]
    chosen = feasible & (of_rows == of_rows[feasible].min())
    first = np.where(feasible & ~chosen, NARROWED, evaluation.first[: feasible.size]).astype(np.int16)
    return evaluation._replace(first=first, feasible_count=int(np.count_nonzero(chosen)))
