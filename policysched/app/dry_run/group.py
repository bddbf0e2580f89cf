"""The dry-run of a pod group: the cycle of a running scheduler for all members, with an explanation.

The group's pending members of the cluster are decided with the given pods. A group without its quorum is not tried.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime

from policysched.app.configuration.model import Configuration
from policysched.app.configuration.reading import ConfigurationInput
from policysched.app.dry_run.dry_run import Measure, Numbers, Observe, Simulation, simulate_pods, unlisted
from policysched.app.dry_run.results import GroupReport
from policysched.app.files.given import Objects, given_objects
from policysched.app.files.group_members import group_named_by, pending_members, release_of_groups
from policysched.errors import UsageError
from policysched.framework.registry import PluginRegistry
from policysched.model.objects import Pod
from policysched.model.policy import KIND
from policysched.model.release import AUTO, release_named
from policysched.reading.documents import of_kind
from policysched.schedule.cycle.decision import Decision
from policysched.schedule.cycle.record import Record
from policysched.schedule.groups.extender_answers import ExtenderAnswers
from policysched.schedule.groups.record import make_group_record


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
        kube_version: The Kubernetes minor whose kube-scheduler the decision follows, 1.37 or later.

    Raises:
        UsageError: an object is malformed, the pods name no group of the cluster, or the configuration has no profile
            for the pods.
    """
    wanted = [of_kind(one, "Pod") for one in given_objects(pods, "pods", "Pod")]
    groups = {group_named_by(one) for one in wanted}
    if len(groups) != 1 or None in groups:
        raise UsageError("pods: expected pods whose spec.schedulingGroup names one pod group")
    given = list(unlisted(given_objects(objects, "objects")))
    tried = list(given_objects(policies, "policies", KIND))
    release = release_of_groups((*given, *tried), release_named(kube_version))
    if release is None:
        raise UsageError(f"Kubernetes {release_named(kube_version).minor} does not schedule pod groups")
    members = (*wanted, *pending_members(given, wanted))
    made = simulate_pods(given, members, tried, release, config=config, now=now, metrics=metrics, plugins=plugins)
    waiting, new = made.pods[len(wanted) :], made.pods[: len(wanted)]
    acting = made.policies.acting(made.profile)

    def look(decision: Decision) -> None:
        if observe is not None:
            observe(decision, acting)

    if made.configuration is None or not made.configuration.extenders:
        engine, rng = made.engine(seed)
        record = make_group_record(engine, (*waiting, *new), rng, acting, made.stated, look)
    else:
        record = asyncio.run(_with_extenders(made, (*waiting, *new), seed, made.configuration, look))
    report = GroupReport(record, made.diagnostics, made.problems, (*made.notes, *made.admission_notes))
    return report.with_not_applied(made.not_applied)


async def _with_extenders(
    made: Simulation,
    pods: Sequence[Pod],
    seed: int | None,
    configuration: Configuration,
    look: Callable[[Decision], None],
) -> Record:
    """Return the decision record of a pod group, calling the configured extenders.

    Raises:
        UsageError: an extender's URL or certificate is invalid, or its answers change all the time.
    """
    from policysched.app.configuration.extenders import make_extenders  # noqa: PLC0415 - few have extenders
    from policysched.app.dry_run.with_extenders import GivenTexts  # noqa: PLC0415 - as above

    acting = made.policies.acting(made.profile)
    extenders = make_extenders(configuration, GivenTexts(made.raws, made.objects))
    try:
        engine, rng = made.engine(seed, tuple(extenders))
        answers = ExtenderAnswers(engine, rng, len(pods))
        record = await answers.run(lambda: make_group_record(engine, pods, rng, acting, made.stated, look, answers))
    finally:
        for one in extenders:
            await one.retire()
    if record is None:
        raise UsageError("the decision about the pod group does not end: extenders were called too often")
    return record


def refuse_extenders(made: Simulation) -> None:
    """Raise an error if the configuration of a simulation has extenders.

    Raises:
        UsageError: it has.
    """
    if made.configuration is not None and made.configuration.extenders:
        raise UsageError("the answer about a pod group cannot call the extenders of the configuration")
