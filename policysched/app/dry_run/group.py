"""The dry-run of a pod group: the cycle of a running scheduler for all members, with an explanation.

The group's pending members of the cluster are decided with the given pods. A group without its quorum is not tried.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from policysched.app.configuration.reading import ConfigurationInput
from policysched.app.dry_run.dry_run import Measure, Numbers, Simulation, simulate_pods
from policysched.app.dry_run.results import GroupReport
from policysched.app.files.given import Objects
from policysched.app.files.group_members import group_named_by, key_of
from policysched.errors import UsageError
from policysched.framework import Status
from policysched.framework.pod_groups import CandidatePlacement
from policysched.framework.registry import PluginRegistry
from policysched.model.decode import decode_pod
from policysched.model.kinds import FINISHED, PODS, kind_of
from policysched.model.objects import Pod, PodGroup
from policysched.model.release import Release
from policysched.reading.documents import metadata_of
from policysched.schedule.binding_points import reserve, unreserve
from policysched.schedule.cycle.decision import Decision, drawn
from policysched.schedule.cycle.record import MOST_EXPLAINED, Record, make_record
from policysched.schedule.groups.cycle import GroupDecision, Steps, TriedPlacement
from policysched.schedule.groups.outcomes import GroupResult, post_filtered, rejection
from policysched.schedule.groups.placements import run_cycle
from policysched.schedule.groups.simulation import RejectedPodGroup
from policysched.schedule.groups.validation import refusal_of
from policysched.schedule.observer import AttemptResult
from policysched.schedule.queue.queued_pod import QueuedPod
from policysched.schedule.queue.queued_pod_group import evaluation_key
from policysched.state.placed.pods import pod_id
from policysched.state.pod_groups import group_key

Object = Mapping[str, Any]
_RESULTS = {
    AttemptResult.SCHEDULED: "Scheduled",
    AttemptResult.UNSCHEDULABLE: "Unschedulable",
    AttemptResult.ERROR: "Error",
}


def group_dry_run(  # noqa: PLR0913 - what a decision depends on
    objects: Sequence[Object],
    pods: Sequence[Object],
    policies: Objects,
    release: Release,
    *,
    config: ConfigurationInput | None = None,
    now: datetime | str | None = None,
    seed: int | None = None,
    metrics: Numbers | Measure | None = None,
    plugins: PluginRegistry | None = None,
) -> GroupReport:
    """Schedule a pod group on given objects and explain the result; change nothing.

    Args:
        objects: The cluster, with the group; see `dry_run`.
        pods: Members of the group; at least one.
        policies: SchedulingPolicy objects.
        release: The release whose kube-scheduler the decision follows, with the feature gate GenericWorkload.
        config: A KubeSchedulerConfiguration.
        now: The current time.
        seed: Seed of the draws among equally good nodes; default: random.
        metrics: The metrics.
        plugins: Plugins that a configuration can enable besides the default ones.

    Raises:
        UsageError: an object is malformed, or the configuration has no profile for the pods.
    """
    members = (*pods, *_pending(objects, pods))
    made = simulate_pods(
        objects, members, policies, release, config=config, now=now, metrics=metrics, plugins=plugins
    )  # fmt: skip
    if made.configuration is not None and made.configuration.extenders:
        raise UsageError("a dry-run of a pod group cannot call the extenders of the configuration")
    waiting, new = made.pods[len(pods) :], made.pods[: len(pods)]
    record = asyncio.run(_GroupCycle(made, (*waiting, *new), seed).record())
    report = GroupReport(record, made.diagnostics, made.problems, (*made.notes, *made.admission_notes))
    return report.with_not_applied(made.not_applied)


def _pending(objects: Iterable[Object], pods: Sequence[Object]) -> Iterator[Object]:
    """Yield pending pods of the cluster that name the group of pods, except these pods themselves."""
    key, scheduler, given = group_named_by(pods[0]), _scheduler_of(pods[0]), {key_of(one) for one in pods}
    for one in objects:
        if kind_of(one) is PODS and group_named_by(one) == key and key_of(one) not in given:
            is_pending = not (one["spec"].get("nodeName") or metadata_of(one).get("deletionTimestamp"))
            is_pending = is_pending and (one.get("status") or {}).get("phase") not in FINISHED
            if is_pending and _scheduler_of(one) == scheduler:
                yield one


def _scheduler_of(pod: Object) -> object:
    return pod["spec"].get("schedulerName")


class _GroupCycle:
    """The cycle of a pod group in a simulation.

    Args:
        made: The simulation.
        pods: The members in the order of their creation.
        seed: Seed of the draws among equally good nodes.
    """

    def __init__(self, made: Simulation, pods: Iterable[Pod], seed: int | None) -> None:
        self._made, self._cluster = made, made.cluster
        self._engine, self._rng = made.engine(seed)
        queued = (QueuedPod(_ungated(pod), pod_id(pod), float(time)) for time, pod in enumerate(pods))
        self._members = sorted(queued, key=evaluation_key)
        self._records: dict[str, dict[str, Record]] = {}
        """By placement, the decision records of the first members that fit no node, by identity."""

    async def record(self) -> Record:
        """Decide, and return the record."""
        first, groups = self._members[0].pod, self._cluster.pod_groups
        state = None
        if groups is not None:
            for member in self._members:
                groups.await_pod(member.pod)
            state = groups.of_pod(first)
        if state is None or (group := state.group) is None:
            raise UsageError(f'pod group "{group_key(first)}" is not among the objects')
        placed = state.scheduled_count
        head = {
            "podGroup": group.key,
            "schedulerName": self._made.profile.scheduler_name,
            "reference": self._cluster.release.minor,
        }
        told = await self._told(group, tuple(state.scheduled))
        counts = {"minCount": group.min_count} | ({"placed": placed} if placed else {})
        return head | counts | told

    async def _told(self, group: PodGroup, scheduled: Sequence[Pod]) -> Record:
        """Return the result of a group, its message and its members."""
        gated = self._gate()
        if gated is not None:
            return self._untried("Unschedulable", gated.message)
        pods, named = [decode_pod(raw) for raw in self._made.raws], self._cluster.release.messages_name_pod_group
        known = {pods[0].spec.scheduler_name}
        refusal = refusal_of(group, pods, scheduled, known, names_group=named)
        if refusal is not None:
            return self._untried("Error", refusal.message)
        claims = self._cluster.resource_claims
        claims.share(begins=True)
        try:
            outcome, victims = await self._outcome(group)
        finally:
            claims.share(begins=False)
        told = Record(message=outcome.message, victims=[one.key for one in victims]) | _placements(outcome.decision)
        said = {key: value for key, value in told.items() if value}
        return {"result": _RESULTS[outcome.result], **said, "members": list(self._outcomes(outcome))}

    async def _outcome(self, group: PodGroup) -> tuple[GroupResult, Sequence[Pod]]:
        """Run the cycle, and PodGroupPostFilter if the group does not fit; return the result and the victims."""
        steps, name, named = self._steps(), group.metadata.name, self._cluster.release.messages_name_pod_group
        decision = await run_cycle(group, self._scheduled, self._members, steps)
        if decision.verdict.result is not AttemptResult.UNSCHEDULABLE:
            return GroupResult(name, decision, decision.verdict.message, named), ()
        rejected = RejectedPodGroup(group, self._scheduled, self._members, self._engine, steps)
        result = post_filtered(self._engine.profile, rejected)
        return rejection(name, decision, result, names_group=named), tuple(result.victims)

    def _scheduled(self) -> int:
        """Return the number of members that have a node."""
        groups = self._cluster.pod_groups
        state = None if groups is None else groups.of_pod(self._members[0].pod)
        return 0 if state is None else state.scheduled_count

    def _gate(self) -> Status | None:
        """Return the status of the first PreEnqueue plugin that rejects a member."""
        plugins = self._engine.profile.pre_enqueue
        answers = (one.pre_enqueue(member.pod, self._cluster) for member in self._members for one in plugins)
        return next((answer for answer in answers if answer is not None), None)

    def _untried(self, result: str, message: str) -> Record:
        return {
            "result": result,
            "message": message,
            "members": [{"pod": one.pod.key, "evaluated": False} for one in self._members],
        }

    def _steps(self) -> Steps:
        profile = self._engine.profile
        return Steps(
            cluster=self._cluster,
            profile=profile,
            rng=self._rng,
            decide=self._decide,
            cleanups=lambda _member, _decision: (),
            reserve=lambda assumed: reserve(assumed, profile.reserving(assumed.pod, assumed.cluster)),
            unreserve=lambda assumed: unreserve(assumed, profile),
            now=lambda: 0.0,
            measure=lambda _point, _profile, run, *arguments: run(*arguments),
            names_group=self._cluster.release.messages_name_pod_group,
            searched=lambda _generated, _tried: None,
        )

    async def _decide(self, member: QueuedPod, placement: CandidatePlacement) -> Decision | None:
        decision = drawn(self._engine.decide(member.pod, rows=placement.limit(self._cluster)), self._rng)
        records = self._records.setdefault(placement.name, {})
        if decision.row < 0 and len(records) < MOST_EXPLAINED:
            acting = self._made.policies.acting(self._made.profile)
            records[member.identity] = make_record(decision, acting)
        return decision

    def _outcomes(self, outcome: GroupResult) -> Iterator[Record]:
        """Yield the node and the message of each member, evaluated members first."""
        evaluated, reported = outcome.decision.members, outcome.decision.reported
        records = self._records.get("" if reported is None else reported.placement.name, {})
        for one in evaluated:
            failure, told = outcome.failure_of(one), Record(pod=one.queued.pod.key)
            if one.placement is not None:
                told["node"] = one.placement.assumed.node
            if failure is not None:
                told["message"] = failure.message
            if outcome.nominated.get(one.queued.identity):
                told["nominated"] = outcome.nominated[one.queued.identity]
            if one.queued.identity in records:
                told["decision"] = records[one.queued.identity]
            yield told
        known = {one.queued.identity for one in evaluated}
        for member in self._members:
            if member.identity not in known:
                message = outcome.failure_of_other(member.identity).message
                yield {"pod": member.pod.key, "evaluated": False, "message": message}


def _placements(decision: GroupDecision) -> Record:
    """Return the chosen placement, and the result of each placement that was tried; empty without a constraint."""
    tried = [one for one in decision.tried if one.placement.name]
    if not tried:
        return {}
    told = {one.placement.name: _placement(one) for one in tried[:MOST_EXPLAINED]}
    return {"placement": "" if decision.chosen is None else decision.chosen.placement.name, "placements": told}


def _placement(one: TriedPlacement) -> Record:
    fitting = sum(member.placement is not None for member in one.members)
    told = Record(nodes=int(one.placement.rows.size), fitting=fitting, fits=one.verdict.fits)
    return told | {key: value for key, value in (("message", one.verdict.message), ("scores", one.scores)) if value}


def _ungated(pod: Pod) -> Pod:
    """Return a pod without scheduling gates, which a dry-run ignores."""
    return replace(pod, spec=replace(pod.spec, scheduling_gates=[])) if pod.spec.scheduling_gates else pod
