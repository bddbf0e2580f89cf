"""`plan`: what a change of policies, configuration, nodes or replicas would do to the pods of a cluster.

Both sides are made of the same objects, read once; they differ by the change alone, and are decided at the same time
with the same seed. Where only policies differ, pods that none of the changed ones speaks for are not decided again.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import replace as replace_field
from datetime import datetime
from typing import Any

from policysched.app.clock import SystemClock
from policysched.app.configuration.profiles import DEFAULT_NAME, configured_profiles, default_profile
from policysched.app.configuration.reading import ConfigurationInput, load_configuration
from policysched.app.dry_run.dry_run import Measure, Numbers, compile_policies, decode_policies, measure, seconds_at
from policysched.app.plan.deciding import POLICY, ClusterSide, Comparing, Progress
from policysched.app.plan.reading import ClusterObjects, read_objects, scaled
from policysched.app.plan.results import Effect, Plan
from policysched.app.plugins.discovery import find_plugins
from policysched.errors import UsageError
from policysched.framework import SKIP, MetricAnswer, Wanted
from policysched.framework.profile import Profile
from policysched.framework.registry import PluginRegistry
from policysched.metric_sources.file import answers, as_table
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
    """Say what a change would do to the pods of a cluster.

    Args:
        objects: The cluster as kubectl prints it, with the policies in force.
        policies: SchedulingPolicy objects that are new, or replace those of their names.
        without_policies: The names of policies that go.
        config: The KubeSchedulerConfiguration that would be in force; absent, the current one.
        current_config: The one in force; absent, the default plugins.
        nodes: Nodes that are new, or replace those of their names.
        without_nodes: The names of nodes that go. Their pods wait then.
        replicas: How many pods workloads would have, by `[namespace/]name`.
        scheduler_name: Whose pods are decided about where there is no configuration.
        now: The time that rules see, on both sides; absent, the present.
        seed: What draws among equally good nodes.
        metrics: Values of metrics, as `dry_run` takes them; a function is asked once.
        plugins: The plugins that configurations may enable beside the default ones.
        progress: Takes how many pods were decided about, and of how many.

    Raises:
        UsageError: a policy of the change does not compile, a name is not there, or a configuration does not fit.
    """
    read = read_objects(objects)
    changed = _changed_objects(read, nodes, without_nodes, replicas or {})
    standing, standing_notes = _compiled(read.policies)
    tried = _tried(policies)
    _refuse_unknown("policy", without_policies, (one.key for one in (*standing, *tried)))
    kept = (one for one in standing if one.key not in {other.key for other in tried})
    coming = [one for one in (*kept, *tried) if one.key not in without_policies]
    current = _profiles(current_config, scheduler_name, plugins)
    future = current if config is None else _profiles(config, scheduler_name, plugins)
    seconds = seconds_at(now or SystemClock().now())
    problems: list[str] = []
    known = _asked_once(metrics)

    def side(
        of: ClusterObjects, profiles: Mapping[str, Profile], policy_set: PolicySet, cluster: Cluster
    ) -> ClusterSide:
        told = measure(cluster, (one.policy for one in policy_set.plugins), known)
        problems.extend(one for one in told if one not in problems)
        return ClusterSide(of, profiles, policy_set, cluster, seed)

    before = side(read, current, PolicySet.of(standing), read.cluster(seconds))

    def make_after(cluster: Cluster | None = None) -> ClusterSide:
        return side(changed, future, PolicySet.of(coming), cluster or changed.cluster(seconds))

    after = make_after(before.cluster if changed is read else None)
    differing = _differing(standing, coming)
    same = changed is read and future is current
    touches = _Touching(before, after, differing) if same else _everything
    found = Comparing(before, after, touches, make_after, progress or (lambda _done, _all: None))
    found.run()
    idle = () if found.unseen else tuple(_idle(found.after, differing, coming))
    return Plan(
        found.pods, tuple(sorted(found.effects, key=lambda one: (list(Effect).index(one.effect), one.pod))),
        idle, found.others, found.gated, tuple(dict.fromkeys((*read.left_out, *changed.left_out))),
        (*standing_notes, *problems, *_unasked(current, future)), found.unseen,
    )  # fmt: skip


def _everything(_: Pod) -> bool:
    return True


def _changed_objects(
    read: ClusterObjects, nodes: Iterable[Object], without: Collection[str], replicas: Mapping[str, int]
) -> ClusterObjects:
    """Return the objects with the change; the same ones where they do not change."""
    coming = read_objects(nodes)
    if coming.left_out:
        raise UsageError(coming.left_out[0])
    if coming.pods or coming.others or coming.policies:
        raise UsageError("--nodes: expected nodes alone")
    _refuse_unknown("node", without, read.nodes)
    if not (coming.nodes or without or replicas):
        return read
    kept = {name: node for name, node in {**read.nodes, **coming.nodes}.items() if name not in without}
    pods = read.pods
    for workload, count in replicas.items():
        pods = scaled(pods, workload, count)
    return replace_field(read, nodes=kept, pods=pods)


def _refuse_unknown(kind: str, names: Iterable[str], known: Iterable[str]) -> None:
    there = set(known)
    for name in names:
        if name not in there:
            raise UsageError(f"{kind} {name} is not in the cluster")


def _compiled(policies: Iterable[Object]) -> tuple[list[CompiledPolicy], list[str]]:
    """Compile policies as they are in force; name those that do nothing."""
    compiled, _, failed = compile_policies(decode_policies(policies, ()))
    return compiled, [f"policy {key} does nothing today: {why}" for key, why in sorted(failed.items())]


def _tried(policies: Iterable[Object]) -> list[CompiledPolicy]:
    """Compile the policies of the change.

    Raises:
        UsageError: one does not compile.
    """
    compiled, _, failed = compile_policies(decode_policies((), policies))
    for key, why in sorted(failed.items()):
        raise UsageError(f"policy {key} would take no force: {why}")
    return compiled


def _profiles(
    config: ConfigurationInput | None, scheduler_name: str, plugins: PluginRegistry | None
) -> dict[str, Profile]:
    if config is None:
        return {scheduler_name: default_profile(scheduler_name)}
    return configured_profiles(load_configuration(config), find_plugins().registry if plugins is None else plugins)


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


def _differing(standing: Iterable[CompiledPolicy], coming: Iterable[CompiledPolicy]) -> set[PolicyKey]:
    """Return which policies are not the same on both sides."""
    before, after = ({one.key: one.spec for one in side} for side in (standing, coming))
    return {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}


class _Touching:
    """Says whether a policy that differs speaks for pods; pods of a class are asked about once."""

    def __init__(self, before: ClusterSide, after: ClusterSide, differing: Collection[PolicyKey]) -> None:
        self._sides = [
            (side, [one for one in side.policies.plugins if one.policy.key in differing]) for side in (before, after)
        ]
        self._known: dict[Hashable, bool] = {}

    def __call__(self, pod: Pod) -> bool:
        if not any(plugins for _, plugins in self._sides):
            return False
        keys = [engine.key(pod) for side, _ in self._sides if (engine := side.engine(pod)) is not None]
        key = (pod.spec.scheduler_name, pod.spec.priority, *keys)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = any(
                _speaks(plugin, pod, side.cluster) for side, plugins in self._sides for plugin in plugins
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
            yield f"{one.key}: its mode is {one.spec.mode}"
        else:
            yield f"{one.key}: it keeps no pod off any node and prefers no node to another"


def _unasked(*sides: Mapping[str, Profile]) -> Iterable[str]:
    if any(one.extenders for side in sides for one in side.values()):
        yield "extenders are not asked"
