"""`make_group_record`: the decision record of a pod group, with the results of its members.

`docs/reference/decision-record.md` describes the fields.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from policysched.framework.pod_groups import CandidatePlacement, PodGroupContext
from policysched.model.objects import Pod
from policysched.rules.plugin.active_policy import ActivePolicy
from policysched.rules.plugin.placement_record import describe_placements
from policysched.schedule.cycle.decision import Decision
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.record import MOST_EXPLAINED, Observe, Record, make_record
from policysched.schedule.groups.cycle import GroupDecision, TriedPlacement
from policysched.schedule.groups.dry_run import DecidedGroup, GroupDryRun
from policysched.schedule.groups.extender_answers import ExtenderAnswers
from policysched.schedule.groups.outcomes import GroupResult
from policysched.schedule.observer import AttemptResult
from policysched.schedule.queue.queued_pod import QueuedPod

ObservePlacements = Callable[[PodGroupContext, Sequence[TriedPlacement], Sequence[ActivePolicy]], object]
"""Callback for the placements on which a pod group was tried, with the policies that applied."""
RESULTS: Final = {
    AttemptResult.SCHEDULED: "Scheduled",
    AttemptResult.UNSCHEDULABLE: "Unschedulable",
    AttemptResult.ERROR: "Error",
}


def make_group_record(  # noqa: PLR0913, PLR0917 - dependencies are passed in
    engine: Engine,
    pods: Iterable[Pod],
    rng: random.Random,
    policies: Sequence[ActivePolicy],
    stated: Sequence[Pod] = (),
    observe: Observe | None = None,
    answers: ExtenderAnswers | None = None,
    observe_placements: ObservePlacements | None = None,
) -> Record:
    """Decide about a pod group without placing it; return the decision record.

    Args:
        engine: The engine of the members' profile.
        pods: The members without a node, in the order of their creation.
        rng: Random generator that chooses among equally good nodes.
        policies: The policies to describe.
        stated: The members under their own scheduler names, if `pods` have another name.
        observe: Called with the decision about each member and `policies`, while the earlier members have their nodes.
        answers: The known answers of extenders.
        observe_placements: Called with the placements that were tried and `policies`, while no member has a node.

    Raises:
        UsageError: the cluster has no PodGroup object of the group.
        UnansweredError: the answers of extenders are needed.
    """
    records: dict[str, dict[str, Record]] = {}

    def look(member: QueuedPod, decision: Decision, placement: CandidatePlacement) -> None:
        if observe is not None:
            observe(decision, policies)
        own = records.setdefault(placement.name, {})
        if decision.row < 0 and len(own) < MOST_EXPLAINED:
            own[member.identity] = make_record(decision, policies)

    dry_run = GroupDryRun(engine, pods, rng, None, stated, look, answers)
    decided = dry_run.decide()
    tried = decided.outcome is not None
    fitting = dry_run.most().count if tried and decided.result is AttemptResult.UNSCHEDULABLE else None
    reported = None if decided.outcome is None else decided.outcome.decision.reported
    own = records.get("" if reported is None else reported.placement.name, {})
    told = _record(decided, engine, own, fitting)
    if decided.outcome is not None and decided.outcome.decision.tried:
        with dry_run.counted() as group:
            if observe_placements is not None:
                observe_placements(group, decided.outcome.decision.tried, policies)
            _add_policies(told, decided.outcome.decision, group, policies)
    return told


def _add_policies(
    told: Record, decision: GroupDecision, group: PodGroupContext, policies: Sequence[ActivePolicy]
) -> None:
    """Add the results of the policies to each placement of a record."""
    listed = _listed(decision)
    placements, fits = [one.placement for one in listed], [one.verdict.fits for one in listed]
    described = describe_placements(policies, group, placements, fits)
    for one, by_policy in zip(listed, described, strict=True):
        told["placements"][one.placement.name] |= {"policies": by_policy} if by_policy else {}


def _record(decided: DecidedGroup, engine: Engine, records: Mapping[str, Record], fitting: int | None) -> Record:
    outcome = decided.outcome
    told = {
        "podGroup": decided.group.key,
        "schedulerName": engine.profile.scheduler_name,
        "reference": engine.cluster.release.minor,
        "minCount": decided.group.min_count,
        "placed": decided.placed,
        "result": RESULTS[decided.result],
        "message": decided.message,
        "fitting": fitting,
        "victims": [one.key for one in decided.victims],
    }
    kept = {key: value for key, value in told.items() if value or (key == "fitting" and value is not None)}
    kept |= {} if outcome is None else _placements(outcome.decision)
    return kept | {"members": [*(_untried(decided) if outcome is None else _outcomes(decided, outcome, records))]}


def _placements(decision: GroupDecision) -> Record:
    """Return the chosen placement and the result of each tried placement; empty without a topology constraint."""
    told = {one.placement.name: _placement(one) for one in _listed(decision)}
    if not told:
        return {}
    chosen = {} if decision.chosen is None else {"placement": decision.chosen.placement.name}
    return {**chosen, "placements": told}


def _listed(decision: GroupDecision) -> list[TriedPlacement]:
    """Return the named placements of a decision that the record lists, at most `MOST_EXPLAINED`."""
    return [one for one in decision.tried if one.placement.name][:MOST_EXPLAINED]


def _placement(one: TriedPlacement) -> Record:
    fitting = sum(member.placement is not None for member in one.members)
    told = Record(nodes=int(one.placement.rows.size), fitting=fitting, fits=one.verdict.fits)
    return told | {key: value for key, value in (("message", one.verdict.message), ("scores", one.scores)) if value}


def _untried(decided: DecidedGroup) -> Iterator[Record]:
    return ({"pod": one.pod.key, "evaluated": False} for one in decided.members)


def _outcomes(decided: DecidedGroup, outcome: GroupResult, records: Mapping[str, Record]) -> Iterator[Record]:
    """Yield a record entry for each member, with node and message: evaluated members first."""
    evaluated = outcome.decision.members
    for one in evaluated:
        identity, failure, told = one.queued.identity, outcome.failure_of(one), Record(pod=one.queued.pod.key)
        if one.placement is not None:
            told["node"] = one.placement.assumed.node
        if failure is not None:
            told["message"] = failure.message
        if outcome.nominated.get(identity):
            told["nominated"] = outcome.nominated[identity]
        if identity in records:
            told["decision"] = records[identity]
        yield told
    known = {one.queued.identity for one in evaluated}
    for member in decided.members:
        if member.identity not in known:
            message = outcome.failure_of_other(member.identity).message
            yield {"pod": member.pod.key, "evaluated": False, "message": message}
