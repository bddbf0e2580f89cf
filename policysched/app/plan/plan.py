"""`plan`: predicts the effect of a change of policies, configuration, nodes or replicas on the pods of a cluster.

Both sides are built from the same objects, read once. They differ only by the change, and are evaluated at the same
time with the same seed. If only policies differ, pods to which no changed policy applies are not evaluated again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from policysched.app.clock import SystemClock
from policysched.app.configuration.reading import ConfigurationInput, ReadConfiguration, load_configuration
from policysched.app.configuration.scheduler_names import SchedulerNames, choose_scheduler_names, counts_by_name
from policysched.app.dry_run.metrics import Measure, Numbers, measure
from policysched.app.dry_run.now import seconds_at
from policysched.app.dry_run.policies import CompiledPolicies, compiled_policies, last_good_notes, standing_policies
from policysched.app.files.given import Objects, cluster_objects, given_objects
from policysched.app.files.group_members import release_of_groups
from policysched.app.files.saved_clusters import NO_NODES
from policysched.app.object_names import without_kind
from policysched.app.plan.change import (
    PlannedChange,
    SideInputs,
    changed_objects,
    changed_policies,
    profiles_of,
)
from policysched.app.plan.deciding import ClusterSide, Progress, SideComparison
from policysched.app.plan.demand import excesses
from policysched.app.plan.reach import AffectedPods, counting_policies, idle_policies, pod_classes, policy_pods
from policysched.app.plan.reading import ClusterObjects, read_objects
from policysched.app.plan.results import EXAMPLES, DaemonPods, Effect, GroupFits, Plan, UnplacedPods
from policysched.app.recording.kept_annotations import refuse_missing_annotations
from policysched.errors import UsageError
from policysched.framework import MetricAnswer, Wanted
from policysched.framework.profile import Profile
from policysched.framework.registry import PluginRegistry
from policysched.metric_sources.table import as_table
from policysched.metric_sources.table_answers import answers
from policysched.model.kinds import POD_GROUPS, kind_of
from policysched.model.policy import KIND, PolicyKey, PolicySpec
from policysched.model.release import Release
from policysched.model.release_choice import AUTO, release_named
from policysched.rules.compile.policy import CompiledPolicy
from policysched.rules.policy_set.policy_set import PolicySet
from policysched.state.cluster import Cluster

Object = Mapping[str, Any]


def plan(  # noqa: PLR0913 - a change may be in any of these
    objects: Objects,
    *,
    policies: Objects = (),
    without_policies: str | Collection[str] = (),
    config: ConfigurationInput | None = None,
    current_config: ConfigurationInput | None = None,
    nodes: Objects = (),
    without_nodes: str | Collection[str] = (),
    replicas: Mapping[str, int] | None = None,
    scheduler_name: str | Collection[str] = (),
    now: datetime | str | None = None,
    seed: int = 0,
    metrics: Numbers | Measure | None = None,
    plugins: PluginRegistry | None = None,
    progress: Progress | None = None,
    kube_version: str = AUTO,
) -> Plan:
    """Schedule all pods of a cluster without and with a change, and return the differences.

    Args:
        objects: The cluster with its policies, as `dry_run` takes it.
        policies: SchedulingPolicy objects to add or replace.
        without_policies: One or several names of policies to delete.
        config: The new KubeSchedulerConfiguration; default: the current one.
        current_config: The current KubeSchedulerConfiguration; default: the default plugins.
        nodes: Nodes to add or replace.
        without_nodes: One or several names of nodes to delete. Their pods become pending.
        replicas: The new number of pods of workloads, by `[namespace/]name`.
        scheduler_name: One or several names: only pods with such a `schedulerName` are evaluated; default: the profiles
            of the configurations, else the `schedulerNames` of the policies, else all names of the pods.
        now: The current time, as `dry_run` takes it.
        seed: Seed of the draw among equally good nodes.
        metrics: Values of metrics, as `dry_run` takes them; a function is called once.
        plugins: Plugins that configurations can enable besides the default ones.
        progress: Called with the number of scheduled pods and the number of all pods.
        kube_version: The Kubernetes minor whose kube-scheduler decides, as `dry_run` takes it.

    Raises:
        UsageError: a policy of the change does not compile, a name is not there, a configuration does not fit, or there
            is no node or no pod to evaluate.
    """
    given = cluster_objects(objects)
    tried = list(given_objects(policies, "policies", KIND))
    release = _release((*given, *tried), release_named(kube_version))
    read = read_objects(given, release)
    store = standing_policies(read.policies)
    standing = compiled_policies(store)
    both = (current_config, config)
    configurations = [None if one is None else load_configuration(one, release=release) for one in both]
    lost, deleted = _names("node", without_nodes), _names("policy", without_policies)
    after = changed_objects(read, given_objects(nodes, "nodes", "Node"), lost, replicas or {})
    coming = changed_policies(store, tried, deleted)
    refuse_missing_annotations(given, (*standing.compiled, *coming))
    names = _evaluated_names(scheduler_name, configurations, _policies_of_the_change(standing.compiled, coming), read)
    current, planned = (partial(profiles_of, one, names.names, plugins, release) for one in configurations)
    change = PlannedChange(
        SideInputs(read, current, standing.compiled),
        SideInputs(after, current if config is None else planned, coming),
        _notes_of_today(read, standing),
    )
    sides = _Sides(seconds_at(now or SystemClock().now()), seed, _called_once(metrics))
    return _compared(change, sides, names, progress or (lambda _done, _all: None))


def _release(objects: Sequence[Object], release: Release) -> Release:
    """Return the release that decides; pod groups are enabled if the cluster has any and the release has them."""
    has_groups = any(kind_of(one) is POD_GROUPS for one in objects)
    return (release_of_groups(objects, release) or release) if has_groups else release


def _names(kind: str, given: str | Collection[str]) -> Collection[str]:
    return [without_kind(kind, one) for one in ([given] if isinstance(given, str) else given)]


def _policies_of_the_change(standing: Iterable[CompiledPolicy], coming: Iterable[CompiledPolicy]) -> list[PolicySpec]:
    """Return the specs of the policies that differ, or of all policies if none differs."""
    before, after = ({one.key: one.spec for one in side} for side in (standing, coming))
    keys = list({**before, **after})
    differing = [key for key in keys if before.get(key) != after.get(key)]
    return [side[key] for key in differing or keys for side in (before, after) if key in side]


def _evaluated_names(
    given: str | Collection[str],
    configurations: Iterable[ReadConfiguration | None],
    policies: Iterable[PolicySpec],
    objects: ClusterObjects,
) -> SchedulerNames:
    """Choose the scheduler names whose pods are evaluated."""
    return choose_scheduler_names(
        given,
        [one for one in configurations if one is not None],
        [one.scheduler_names for one in policies],
        Counter(one.spec.scheduler_name for one in objects.schedulable),
    )


def _notes_of_today(objects: ClusterObjects, standing: CompiledPolicies) -> list[str]:
    """Return the notes about the cluster without the change: objects that it lacks, policies without effect."""
    return [
        *objects.admission.notes,
        *last_good_notes(objects.policies),
        *(f"policy {key} has no effect today: {why}" for key, why in sorted(standing.failed.items())),
    ]


class _Sides:
    """Creates both sides of a plan (without and with the change), for decisions at one time.

    Args:
        seconds: The time. Units: seconds since 1970.
        seed: Seed of the draw among equally good nodes.
        metrics: Source of metrics.
    """

    def __init__(self, seconds: float, seed: int, metrics: Measure | None) -> None:
        self._seconds, self._seed, self._metrics = seconds, seed, metrics
        self.problems: list[str] = []
        """Problems of metrics that the policies read, one line each."""

    def make(
        self, of: SideInputs, *, cluster: Cluster | None = None, profiles: Mapping[str, Profile] | None = None
    ) -> ClusterSide:
        """Create a side, on an existing or new cluster, with existing or new profiles."""
        cluster = of.objects.cluster(self._seconds) if cluster is None else cluster
        policies = PolicySet.of(of.policies)
        problems = measure(cluster, (one.policy for one in policies.active), self._metrics)
        self.problems += [one for one in problems if one not in self.problems]
        return ClusterSide(of.objects, of.profiles() if profiles is None else profiles, policies, cluster, self._seed)


def _compared(change: PlannedChange, sides: _Sides, names: SchedulerNames, progress: Progress) -> Plan:
    """Evaluate both sides and return the differences.

    Raises:
        UsageError: there is no node or no pod to evaluate.
    """
    if not (change.before.objects.nodes or change.after.objects.nodes):
        raise UsageError(NO_NODES)
    before = sides.make(change.before)
    after = sides.make(
        change.after,
        cluster=before.cluster if change.keeps_objects else None,
        profiles=before.profiles if change.is_of_policies_alone else None,
    )
    differing = change.differing()
    affected = AffectedPods(before, after, differing if change.is_of_policies_alone else None)
    found = SideComparison(before, after, affected, partial(sides.make, change.after), progress)
    found.run()
    if not found.evaluated:
        raise UsageError(_nothing_to_evaluate(change.before.objects, names, found))
    notes = (*change.notes, *sides.problems, *_notes(change, names, before, after))
    return _result(change, differing, found, notes)


def _result(change: PlannedChange, differing: set[PolicyKey], found: SideComparison, notes: Sequence[str]) -> Plan:
    """Return the plan: the differences, and the number of pods to which each changed policy applies."""
    before, after = found.before, found.after
    classes = pod_classes(before, after, found.evaluated) if differing and not found.unseen else []
    reach = policy_pods(before, after, differing, classes) if classes else ()
    coming = [one for one in change.after.policies if one.key in differing]
    failed = before.failed | after.failed
    order = list(Effect)
    return Plan(
        found.pods,
        tuple(sorted(found.effects, key=lambda one: (order.index(one.effect), one.pod))),
        tuple(idle_policies(after, coming, reach, classes)) if classes else (),
        found.others,
        found.gated,
        found.stranded,
        tuple(dict.fromkeys((*change.before.objects.left_out, *change.after.objects.left_out))),
        (*notes, *_failure(failed)),
        interrupted=found.unseen > 0,
        unseen=found.unseen,
        over=excesses(found.effects, after.cluster, after.objects.pods),
        policies=reach,
        daemons=DaemonPods(len(change.after.objects.created), len(change.after.objects.deleted)),
        groups=_groups(before, after),
        unplaced=UnplacedPods(found.unplaced.total(), found.decided, _most_common(found.unplaced)),
        failed=len(failed),
    )


def _most_common(reasons: Counter[str]) -> tuple[tuple[str, int], ...]:
    """Return the most common reasons with their numbers, the largest first."""
    ranked = sorted(((why, count) for why, count in reasons.items() if count), key=lambda one: (-one[1], one[0]))
    return tuple(ranked[:EXAMPLES])


def _groups(before: ClusterSide, after: ClusterSide) -> tuple[GroupFits, ...]:
    """Return the pod groups that were decided on both sides, groups with different results first."""
    both = before.groups.keys() & after.groups.keys()
    found = [GroupFits(key, before.groups[key], after.groups[key]) for key in both]
    return tuple(sorted(found, key=lambda one: (bool(one.before) is bool(one.after), one.group)))


def _failure(failed: Mapping[str, str]) -> list[str]:
    """Return a note about failed evaluations, with the first error."""
    if not failed:
        return []
    pod, why = next(iter(failed.items()))
    return [f"scheduling failed for {len(failed):,} {'pod' if len(failed) == 1 else 'pods'}; pod {pod}: {why}"]


def _nothing_to_evaluate(objects: ClusterObjects, names: SchedulerNames, found: SideComparison) -> str:
    """Return why no pod of a cluster is evaluated, with the number of pods by scheduler name."""
    others = Counter(one.spec.scheduler_name for one in objects.schedulable)
    ours = sum(others.pop(name, 0) for name in names.names)
    rest = len(objects.pods) - sum(others.values()) - ours
    with_nodes = ours - found.gated - found.stranded
    parts = [f"{counts_by_name(others)}, but only {names} is evaluated; set --scheduler-name"] if others else []
    reasons = (
        (found.gated, "with scheduling gates"),
        (found.stranded, "on nodes that are not in the cluster"),
        (with_nodes, "of DaemonSets, deleted with their nodes"),
        (rest, "static, finished or being deleted"),
    )
    parts += [f"{count:,} {reason}" for count, reason in reasons if count]
    return f"no pods to evaluate: {'; '.join(parts) or 'the cluster has no pods'}"


def _notes(change: PlannedChange, names: SchedulerNames, before: ClusterSide, after: ClusterSide) -> Iterator[str]:
    if names.source == "the pods" and len(names.names) > 1:
        counts = Counter(one.spec.scheduler_name for one in change.before.objects.schedulable)
        yield f"pods of several schedulers are evaluated: {counts_by_name(counts)}; choose with --scheduler-name"
    changed = change.differing()
    counting = counting_policies(one for one in change.after.policies if one.key in changed)
    if counting:
        one = len(counting) == 1
        yield (
            f"{'policy' if one else 'policies'} {', '.join(counting)} {'reads' if one else 'read'} the pods on nodes: "
            "for a running pod, all other pods stay where they are"
        )
    if any(one.extenders for side in (before.profiles, after.profiles) for one in side.values()):
        yield "extenders are not called"


def _called_once(metrics: Numbers | Measure | None) -> Measure | None:
    """Return a metrics source that is called once for several clusters; None without metrics."""
    if metrics is None:
        return None
    known: dict[Hashable, MetricAnswer] = {}

    def once(wanted: Wanted, at: float) -> Iterable[MetricAnswer]:
        missing = {key: value for key, value in wanted.items() if key not in known}
        if missing:
            found = metrics(missing, at) if callable(metrics) else answers(as_table(metrics), missing, at, "metrics=")
            known.update((one.key, one) for one in found)
        return [known[key] for key in wanted if key in known]

    return once
