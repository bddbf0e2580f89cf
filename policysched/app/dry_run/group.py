"""The dry-run of a pod group: the cycle of a running scheduler for all members, with an explanation.

The group's pending members of the cluster are decided with the given pods. A group without its quorum is not tried.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeVar

from policysched.app.configuration.model import Configuration
from policysched.app.configuration.reading import ConfigurationInput
from policysched.app.dry_run.dry_run import Simulation, simulate_pods
from policysched.app.dry_run.metrics import Measure, Numbers
from policysched.app.dry_run.results import GroupReport
from policysched.app.files.given import Objects, cluster_objects, given_objects
from policysched.app.files.group_members import group_named_by, pending_members, release_of_groups
from policysched.errors import UsageError
from policysched.framework.registry import PluginRegistry
from policysched.model.policy import KIND
from policysched.model.release_choice import AUTO, release_named
from policysched.reading.documents import of_kind
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.record import Observe, Record
from policysched.schedule.groups.extender_answers import ExtenderAnswers
from policysched.schedule.groups.record import ObservePlacements, make_group_record

T = TypeVar("T")
Decide = Callable[[Engine, random.Random, ExtenderAnswers | None], T]
"""Function that decides about the pods of a simulation, with the extenders' answers that are known so far."""


def dry_run_group(  # noqa: PLR0913 - what a decision depends on
    objects: Objects,
    pods: Objects,
    policies: Objects = (),
    *,
    config: ConfigurationInput | None = None,
    now: datetime | str | None = None,
    seed: int | None = None,
    metrics: Numbers | Measure | None = None,
    plugins: PluginRegistry | None = None,
    observe: Observe | None = None,
    observe_placements: ObservePlacements | None = None,
    kube_version: str = AUTO,
) -> GroupReport:
    """Schedule the pods of a pod group on given objects and explain the result; change nothing.

    Args:
        objects: The cluster, with the PodGroup; as `dry_run` takes it.
        pods: Members of the group to schedule, together with its pending members of the cluster.
        policies: SchedulingPolicy objects, as `dry_run` takes them.
        config: A KubeSchedulerConfiguration, as `dry_run` takes it.
        now: The current time, as `dry_run` takes it.
        seed: Seed of the draws among equally good nodes; default: random.
        metrics: Values of metrics, as `dry_run` takes them.
        plugins: Plugins that a configuration can enable besides the default ones.
        observe: Called with the decision about each member and the policies that applied.
        observe_placements: Called with the group, the placements that were tried, and the policies that applied.
        kube_version: The Kubernetes minor whose kube-scheduler the decision follows, 1.37 or later.

    Raises:
        UsageError: an object is malformed, the pods name no group of the cluster, or the configuration has no profile
            for the pods.
    """
    wanted = _of_one_group(pods)
    given = cluster_objects(objects)
    tried = list(given_objects(policies, "policies", KIND))
    release = release_of_groups((*given, *tried), release_named(kube_version))
    if release is None:
        raise UsageError(f"Kubernetes {release_named(kube_version).minor} does not schedule pod groups")
    members = (*wanted, *pending_members(given, wanted))
    made = simulate_pods(given, members, tried, release, config=config, now=now, metrics=metrics, plugins=plugins)
    waiting, new = made.pods[len(wanted) :], made.pods[: len(wanted)]
    acting = made.policies.acting(made.profile)

    def decide(engine: Engine, rng: random.Random, answers: ExtenderAnswers | None) -> Record:
        members = (*waiting, *new)
        return make_group_record(engine, members, rng, acting, made.stated, observe, answers, observe_placements)

    record = with_answers(made, seed, decide)
    report = GroupReport(record, made.diagnostics, made.problems, (*made.notes, *made.admission_notes))
    return report.with_not_applied(made.not_applied)


def _of_one_group(pods: Objects) -> list[Mapping[str, Any]]:
    """Return pods of one pod group as plain values.

    Raises:
        UsageError: a pod is malformed, or the pods name no group or several.
    """
    wanted = [of_kind(one, "Pod") for one in given_objects(pods, "pods", "Pod")]
    groups = {group_named_by(one) for one in wanted}
    if len(groups) != 1 or None in groups:
        raise UsageError("pods: expected pods whose spec.schedulingGroup names one pod group")
    return wanted


def with_answers(made: Simulation, seed: int | None, decide: Decide[T]) -> T:
    """Return the result of a function that decides about the pods of a simulation; call the configured extenders.

    Args:
        made: The simulation.
        seed: Seed of the draws among equally good nodes.
        decide: Called with an engine, its random source and the known answers of extenders, None without extenders;
            called again each time that extenders have answered.

    Raises:
        UsageError: an extender's URL or certificate is invalid, or its answers change all the time.
    """
    if made.configuration is None or not made.configuration.extenders:
        return decide(*made.engine(seed), None)
    return asyncio.run(_with_extenders(made, seed, made.configuration, decide))


async def _with_extenders(made: Simulation, seed: int | None, configuration: Configuration, decide: Decide[T]) -> T:
    """Return the result of a function that decides about the pods of a simulation; call a configuration's extenders.

    Raises:
        UsageError: an extender's URL or certificate is invalid, or its answers change all the time.
    """
    from policysched.app.configuration.extenders import make_extenders  # noqa: PLC0415 - few have extenders
    from policysched.app.dry_run.with_extenders import GivenTexts  # noqa: PLC0415 - as above

    extenders = make_extenders(configuration, GivenTexts(made.raws, made.objects))
    try:
        engine, rng = made.engine(seed, tuple(extenders))
        answers = ExtenderAnswers(engine, rng, len(made.pods))
        found = await answers.run(lambda: decide(engine, rng, answers))
    finally:
        for one in extenders:
            await one.retire()
    if found is None:
        raise UsageError("the decision about the pod group does not end: extenders were called too often")
    return found
