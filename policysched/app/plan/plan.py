"""`plan`: what a change of policies, configuration, nodes or replicas would do to the pods of a cluster.

Both sides are made of the same objects, read once; they differ by the change alone, and are decided at the same time
with the same seed. Where only policies differ, pods that none of the changed ones speaks for are not decided again.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from datetime import datetime
from functools import partial
from typing import Any

from policysched.app.clock import SystemClock
from policysched.app.configuration.profiles import DEFAULT_NAME
from policysched.app.configuration.reading import ConfigurationInput
from policysched.app.dry_run.dry_run import Measure, Numbers, measure, seconds_at
from policysched.app.dry_run.policies import compiled_policies, standing_policies
from policysched.app.plan.causes import POLICY
from policysched.app.plan.change import (
    InForce,
    PlannedChange,
    changed_objects,
    coming_policies,
    profiles_of,
)
from policysched.app.plan.deciding import ClusterSide, Comparing, Keys, Progress
from policysched.app.plan.demand import excesses
from policysched.app.plan.reading import read_objects
from policysched.app.plan.results import Effect, Plan
from policysched.framework import SKIP, MetricAnswer, Wanted
from policysched.framework.profile import Profile
from policysched.framework.registry import PluginRegistry
from policysched.metric_sources.file import answers
from policysched.metric_sources.table import as_table
from policysched.model.objects import Pod
from policysched.model.policy import PolicyKey
from policysched.rules.compile.policy import CompiledPolicy
from policysched.rules.plugin.guard import guard_of
from policysched.rules.plugin.policy_plugin import PolicyPlugin
from policysched.rules.policy_set.policy_set import PolicySet
from policysched.state.cluster import Cluster

Object = Mapping[str, Any]


def plan(  # noqa: PLR0913 - a change may be in any of these
    objects: Iterable[Object],
    *,
    policies: Iterable[Object] = (),
    without_policies: Collection[str] = (),
    config: ConfigurationInput | None = None,
    current_config: ConfigurationInput | None = None,
    nodes: Iterable[Object] = (),
    without_nodes: Collection[str] = (),
    replicas: Mapping[str, int] | None = None,
    scheduler_name: str = DEFAULT_NAME,
    now: datetime | str | None = None,
    seed: int = 0,
    metrics: Numbers | Measure | None = None,
    plugins: PluginRegistry | None = None,
    progress: Progress | None = None,
) -> Plan:
    """Schedule all pods of a cluster without and with a change, and return the differences.

    Args:
        objects: The cluster with its policies, as dicts that kubectl prints.
        policies: SchedulingPolicy objects to add or replace.
        without_policies: Names of policies to delete.
        config: The new KubeSchedulerConfiguration; default: the current one.
        current_config: The current KubeSchedulerConfiguration; default: the default plugins.
        nodes: Nodes to add or replace.
        without_nodes: Names of nodes to delete. Their pods become pending.
        replicas: The new number of pods of workloads, by `[namespace/]name`.
        scheduler_name: The profile whose pods are scheduled if there is no configuration.
        now: The current time, as `dry_run` takes it.
        seed: Seed of the draw among equally good nodes.
        metrics: Values of metrics, as `dry_run` takes them; a function is called once.
        plugins: Plugins that configurations can enable besides the default ones.
        progress: Called with the number of scheduled pods and the number of all pods.

    Raises:
        UsageError: a policy of the change does not compile, a name is not there, or a configuration does not fit.
    """
    read = read_objects(objects)
    store = standing_policies(read.policies)
    standing = compiled_policies(store)
    current = partial(profiles_of, current_config, scheduler_name, plugins)
    change = PlannedChange(
        InForce(read, current, standing.compiled),
        InForce(
            changed_objects(read, nodes, without_nodes, replicas or {}),
            current if config is None else partial(profiles_of, config, scheduler_name, plugins),
            coming_policies(store, policies, without_policies),
        ),
        [
            *read.admission.notes,
            *(f"policy {key} has no effect today: {why}" for key, why in sorted(standing.failed.items())),
        ],
    )
    sides = _Sides(seconds_at(now or SystemClock().now()), seed, _asked_once(metrics))
    return _told(change, sides, progress or (lambda _done, _all: None))


class _Sides:
    """Makes the sides of a plan, at one time.

    Args:
        seconds: The time. Units: seconds since 1970.
        seed: What draws among equals.
        metrics: What gives metrics.
    """

    def __init__(self, seconds: float, seed: int, metrics: Measure | None) -> None:
        self._seconds, self._seed, self._metrics = seconds, seed, metrics
        self.problems: list[str] = []
        """What is wrong with metrics."""

    def make(
        self, of: InForce, *, cluster: Cluster | None = None, profiles: Mapping[str, Profile] | None = None
    ) -> ClusterSide:
        """Make a side, on a cluster and with profiles that are there already or on its own."""
        cluster = of.objects.cluster(self._seconds) if cluster is None else cluster
        policies = PolicySet.of(of.policies)
        told = measure(cluster, (one.policy for one in policies.plugins), self._metrics)
        self.problems += [one for one in told if one not in self.problems]
        return ClusterSide(of.objects, of.profiles() if profiles is None else profiles, policies, cluster, self._seed)


def _told(change: PlannedChange, sides: _Sides, progress: Progress) -> Plan:
    """Decide on both sides, and tell what differs."""
    before = sides.make(change.before)
    after = sides.make(
        change.after,
        cluster=before.cluster if change.keeps_objects else None,
        profiles=before.profiles if change.is_of_policies_alone else None,
    )
    differing = change.differing()
    touching = _Touching(before, after, differing if change.is_of_policies_alone else None)
    found = Comparing(before, after, touching, partial(sides.make, change.after), progress)
    found.run()
    order = list(Effect)
    return Plan(
        found.pods,
        tuple(sorted(found.effects, key=lambda one: (order.index(one.effect), one.pod))),
        () if found.unseen else tuple(_idle(found.after, differing, change.after.policies)),
        found.others,
        found.gated,
        tuple(dict.fromkeys((*change.before.objects.left_out, *change.after.objects.left_out))),
        (*change.notes, *sides.problems, *_unasked(before.profiles, after.profiles)),
        interrupted=found.unseen > 0,
        unseen=found.unseen,
        over=excesses(found.effects, found.after.cluster, found.after.objects.pods),
    )


def _asked_once(metrics: Numbers | Measure | None) -> Measure | None:
    """Return what gives metrics to several clusters, each asked once; None where there are none."""
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


class _Touching:
    """Says whether a policy that differs speaks for pods; pods of a class are asked about once.

    Args:
        before: The side without the change.
        after: The one with it.
        differing: The policies that differ; None where more does, which is about every pod.
    """

    def __init__(self, before: ClusterSide, after: ClusterSide, differing: Collection[PolicyKey] | None) -> None:
        self._before, self._after = before, after
        self._plugins = [
            (side, [one for one in side.policies.plugins if differing is not None and one.policy.key in differing])
            for side in (before, after)
        ]
        self._is_all, self._is_none = differing is None, differing is not None and not differing
        self._known: dict[Hashable, bool] = {}

    def __call__(self, pod: Pod) -> Keys | None:
        """Return the keys of the pod's class where one does, None elsewhere."""
        if self._is_none:
            return None
        keys = self._before.key(pod), self._after.key(pod)
        return keys if self._is_all or self._is_touched(pod, keys) else None

    def _is_touched(self, pod: Pod, keys: Keys) -> bool:
        key = (pod.spec.scheduler_name, pod.spec.priority, *keys)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = any(
                _speaks(plugin, pod, side.cluster) for side, plugins in self._plugins for plugin in plugins
            )
        return found


def _speaks(plugin: PolicyPlugin, pod: Pod, cluster: Cluster) -> bool:
    """Return whether a policy has a say about a pod, as a filter, a score or a guard of victims."""
    if plugin.prepare_filter(pod, cluster) is not SKIP or plugin.prepare_score(pod, cluster) is not SKIP:
        return True
    guard = guard_of(plugin)
    return guard is not None and guard.speaks_for(pod, plugin.context(cluster))


def _idle(after: ClusterSide, differing: Collection[PolicyKey], coming: Iterable[CompiledPolicy]) -> Iterable[str]:
    """Name the policies of the change that make no difference to any pod."""
    for one in coming:
        if one.key not in differing or f"{POLICY}{one.key}" in after.acting or one.preemption is not None:
            continue
        if one.spec.mode != "Enforce":
            yield f"{one.key}: mode is {one.spec.mode}"
        else:
            yield f"{one.key}: rejects no node and scores all nodes equally"


def _unasked(*sides: Mapping[str, Profile]) -> Iterable[str]:
    if any(one.extenders for side in sides for one in side.values()):
        yield "extenders are not called"
