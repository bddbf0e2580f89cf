"""Simulation of the scheduling of one pod over given objects, with an explanation; nothing is changed.

The engine is that of the running scheduler, on a cluster built from plain dicts. Finished pods use no resources, and an
object with the dry-run pod's name is removed first. If a policy of the cluster does not compile, the last good
generation in its annotation decides. For policies without effect the reason is reported. Metrics are given as numbers,
or read once from a file or a server, and enter the state as in a running scheduler.
"""

from __future__ import annotations

import asyncio
import dataclasses
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from policysched.app.admission import Admission, take_ephemeral_claims
from policysched.app.clock import SystemClock
from policysched.app.configuration.model import Configuration
from policysched.app.configuration.profiles import DEFAULT_NAME, configured_profiles, default_profile
from policysched.app.configuration.reading import ConfigurationInput, ReadConfiguration, load_configuration
from policysched.app.dry_run.metrics import Measure, Numbers, measure
from policysched.app.dry_run.now import seconds_at
from policysched.app.dry_run.policies import compiled_policies, last_good_notes, standing_policies, try_policies
from policysched.app.dry_run.results import Report
from policysched.app.dry_run.saved_pods import SavedPods
from policysched.app.dry_run.template_claims import with_template_claims
from policysched.app.files.given import Objects, OneObject, cluster_objects, given_objects, one_object
from policysched.app.files.group_members import release_of_groups
from policysched.app.files.new_pods import as_new
from policysched.app.files.node_templates import given_node_templates
from policysched.app.plugins.discovery import find_plugins
from policysched.app.recording.kept_annotations import refuse_missing_annotations
from policysched.app.refusals import refusals
from policysched.errors import UsageError
from policysched.framework import PostFilterResult
from policysched.framework.extender import Extender
from policysched.framework.profile import Profile
from policysched.framework.registry import PluginRegistry
from policysched.language.messages.diagnostics import Diagnostic
from policysched.model.decode import decode_pod
from policysched.model.defaults import PriorityClasses, implied_namespace
from policysched.model.kinds import FINISHED, POD_GROUPS, PODS, POLICIES, kind_of
from policysched.model.objects import Node, Pod
from policysched.model.policy import KIND, PolicyKey
from policysched.model.release import Release
from policysched.model.release_choice import AUTO, release_named
from policysched.reading.documents import of_kind
from policysched.rules.policy_set.not_applied import not_applied
from policysched.rules.policy_set.policy_set import PolicySet
from policysched.schedule.cycle.decision import Decision, drawn
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.node_templates import TemplateEvaluator
from policysched.schedule.cycle.post_filter import at_once, post_filtered
from policysched.schedule.cycle.record import Observe, Record, make_record
from policysched.state.cluster import Cluster
from policysched.state.tables.amounts import PodResources

Object = Mapping[str, Any]


def dry_run(  # noqa: PLR0913 - what a decision depends on
    objects: Objects,
    pod: OneObject,
    policies: Objects = (),
    *,
    config: ConfigurationInput | None = None,
    now: datetime | str | None = None,
    seed: int | None = None,
    metrics: Numbers | Measure | None = None,
    plugins: PluginRegistry | None = None,
    observe: Observe | None = None,
    kube_version: str = AUTO,
    node_templates: Objects = (),
) -> Report:
    """Schedule one pod on given objects and explain the result; change nothing.

    Args:
        objects: The cluster: nodes, pods, namespaces, priority classes, services, controllers of pods, volumes, claims,
            policies. Dicts that kubectl prints, or Lists of them, YAML texts, or paths of files and folders. If a
            policy does not compile, the last valid version in its annotation decides.
        pod: The pod to schedule.
        policies: SchedulingPolicy objects. A policy replaces the cluster's policy of the same name.
        config: A KubeSchedulerConfiguration as text, dict or object of a file; default: the default plugins.
        now: The current time, a datetime or a text such as `2026-01-05T23:00:00+01:00`, in UTC if it has no zone;
            default: the system's time.
        seed: Seed of the draw among equally good nodes; default: random.
        metrics: A number by metric (its name or query) and node; other nodes have no value. Or a function that returns
            values.
        plugins: Plugins that a configuration can enable besides the default ones; default: those of installed
            distributions.
        observe: Called with the decision and the policies that applied, before the cluster is released.
        kube_version: The Kubernetes minor whose kube-scheduler the decision follows, such as `1.37`; `auto` is the
            default one.
        node_templates: Nodes that do not exist. The record states for each whether a new node like it would take the
            pod.

    Raises:
        UsageError: an object is malformed, or the configuration has no profile for the pod.
    """
    templates = given_node_templates(node_templates)
    made = simulate(
        objects, pod, policies, config=config, now=now, metrics=metrics, plugins=plugins, kube_version=kube_version
    )  # fmt: skip
    engine, rng = made.engine(seed)
    decision, outcome = made.decide(engine, rng)
    acting = made.policies.acting(made.profile)
    record = make_record(drawn(decision, rng), acting, outcome)
    if observe is not None:
        observe(decision, acting)
    record |= made.on_templates(engine, templates)
    unknown = made.admission_notes
    report = Report(record, made.diagnostics, made.problems, (*made.notes, *unknown), outcome, unknown)
    return report.with_not_applied(made.not_applied)


@dataclass(frozen=True, slots=True)
class Simulation:
    """A cluster built from plain objects, pods to schedule, and the profile and policies that decide."""

    objects: Sequence[Object]
    """The objects of the cluster; Lists are split into their items."""
    classes: PriorityClasses
    raws: Sequence[Object]
    """The pods, completed as by an API server."""
    pods: Sequence[Pod]
    """The pods with the profile's scheduler name: one pod, or the members of a pod group."""
    cluster: Cluster
    profile: Profile
    """The plugins of the pod's profile, without policies."""
    policies: PolicySet
    configuration: Configuration | None
    diagnostics: tuple[Diagnostic, ...]
    not_applied: Mapping[PolicyKey, str]
    """Policies that do not take part in the decision, with reasons."""
    problems: tuple[str, ...]
    """Problems of metrics that the policies read, one line each."""
    notes: tuple[str, ...]
    admission_notes: tuple[str, ...]
    """Objects that admission plugins need and the cluster lacks, one line each."""
    kept: tuple[str, ...]
    """Notes, one line each, about policies whose newest generation has errors, so that the last good one decides."""

    @property
    def raw(self) -> Object:
        """The first pod, completed as by an API server."""
        return self.raws[0]

    @property
    def pod(self) -> Pod:
        """The first pod."""
        return self.pods[0]

    @property
    def stated(self) -> Sequence[Pod]:
        """The pods with their own scheduler names in place of the profile's scheduler name."""
        return [decode_pod(raw) for raw in self.raws]

    def engine(self, seed: int | None, extenders: tuple[Extender, ...] = ()) -> tuple[Engine, random.Random]:
        """Return an engine for the profile with the policies, and the random source of the engine's decisions."""
        rng = random.Random(seed)  # noqa: S311 - a draw among equals, no secret
        profile = self.policies.join(self.profile)
        if extenders:
            profile = dataclasses.replace(profile, extenders=extenders)
        return Engine(self.cluster, profile, rng), rng

    def decide(self, engine: Engine, rng: random.Random) -> tuple[Decision, PostFilterResult | None]:
        """Decide about the pod, calling the configured extenders; run PostFilter if no node is feasible.

        Raises:
            UsageError: an extender's URL or certificate is invalid.
        """
        if self.configuration is None or not self.configuration.extenders:
            decision = engine.decide(self.pod)
            return decision, at_once(post_filtered(engine, decision, rng))
        from policysched.app.dry_run.with_extenders import GivenTexts, decide  # noqa: PLC0415 - few have extenders

        return asyncio.run(decide(engine, self.pod, self.configuration, GivenTexts(self.raws, self.objects), rng))

    def on_templates(self, engine: Engine, templates: Sequence[Node]) -> Record:
        """Return the part of the decision record about node templates, which are nodes that do not exist.

        Raises:
            UsageError: the cluster has a node of the name of a template.
        """
        evaluator = TemplateEvaluator(engine, self.pod, self.policies.acting(self.profile))
        found = {one.metadata.name: evaluator.evaluate(one) for one in templates}
        return {"nodeTemplates": found} if found else {}


def simulate(  # noqa: PLR0913 - what a decision depends on
    objects: Objects,
    pod: OneObject,
    policies: Objects = (),
    *,
    config: ConfigurationInput | None = None,
    now: datetime | str | None = None,
    metrics: Numbers | Measure | None = None,
    plugins: PluginRegistry | None = None,
    kube_version: str = AUTO,
) -> Simulation:
    """Build the simulation of a pod on a cluster from the arguments of a dry-run.

    Raises:
        UsageError: an object is malformed, or the configuration has no profile for the pod.
    """
    given = cluster_objects(objects)
    release = release_named(kube_version)
    if any(kind_of(one) is POD_GROUPS for one in given):
        release = release_of_groups(given, release) or release
    pods = [of_kind(one_object(pod, "pod"), "Pod")]
    tried = given_objects(policies, "policies", KIND)
    return simulate_pods(given, pods, tried, release, config=config, now=now, metrics=metrics, plugins=plugins)


def simulate_pods(  # noqa: PLR0913 - what a decision depends on
    objects: Sequence[Object],
    pods: Sequence[Object],
    policies: Iterable[Object],
    release: Release,
    *,
    config: ConfigurationInput | None = None,
    now: datetime | str | None = None,
    metrics: Numbers | Measure | None = None,
    plugins: PluginRegistry | None = None,
) -> Simulation:
    """Build the simulation of pods under the profile of the first pod; see `simulate` for other arguments.

    Raises:
        UsageError: an object is malformed, or the configuration has no profile for the first pod.
    """
    admission = Admission(objects, release)
    read = None if config is None else load_configuration(config, release=release)
    raws, notes = _new_pods(pods, objects, admission)
    profile = _choose_profile(decode_pod(raws[0]), pods[0], read, plugins, release)
    named = [_under(profile, decode_pod(raw)) for raw in raws]
    cluster = _cluster(objects, admission, named, release)
    for pod in named:
        take_ephemeral_claims(cluster, pod, admission)
    named = [with_template_claims(pod, cluster) for pod in named]
    cluster.time.move(seconds_at(now or SystemClock().now()))
    store = standing_policies(one for one in objects if one["kind"] == KIND)
    tried = [of_kind(one, KIND) for one in policies]
    taken = compiled_policies(store, try_policies(store, tried))
    refuse_missing_annotations(objects, taken.compiled, pod_is_given=True)
    policy_set = PolicySet.of(taken.compiled)
    problems = measure(cluster, (plugin.policy for plugin in policy_set.active), metrics)
    configuration = None if read is None else read.completed
    kept = (*last_good_notes(objects, tried), *taken.edit_notes)
    unapplied = not_applied(taken.compiled, named[0], cluster, profile) | taken.failed
    return Simulation(
        objects, admission.classes, raws, named, cluster, profile, policy_set, configuration,
        taken.diagnostics, unapplied, problems, (*notes, *kept), admission.notes, kept,
    )  # fmt: skip


def _new_pods(
    pods: Iterable[Object], objects: Sequence[Object], admission: Admission
) -> tuple[Sequence[Object], tuple[str, ...]]:
    """Return pods as new pods, completed as by an API server, and notes about the pods, one line each."""
    completed, notes = [], dict[str, None]()
    for written in pods:
        pod, told = as_new(written)
        filled = admission.complete_pod(pod)
        completed.append(filled)
        notes |= dict.fromkeys((*told, *refusals(filled, pod, objects, admission.classes)))
    return completed, tuple(notes)


def _choose_profile(
    wanted: Pod, raw: Object, read: ReadConfiguration | None, plugins: PluginRegistry | None, release: Release
) -> Profile:
    stated = (raw.get("spec") or {}).get("schedulerName")
    if isinstance(stated, str) and not stated.strip():
        raise UsageError(f'pod "{wanted.key}": spec.schedulerName: name is empty; set a name or remove the field')
    if read is None:
        return default_profile(stated or DEFAULT_NAME, release=release)
    profiles = configured_profiles(read, find_plugins().registry if plugins is None else plugins)
    named = profiles.get(wanted.spec.scheduler_name)
    if named is not None:
        return named
    if len(profiles) == 1:
        return next(iter(profiles.values()))
    names = ", ".join(sorted(profiles))
    raise UsageError(
        f'no profile "{wanted.spec.scheduler_name}" in the configuration; set spec.schedulerName to one of {names}'
    )


def _under(profile: Profile, wanted: Pod) -> Pod:
    """Return a pod with the scheduler name of a profile."""
    return replace(wanted, spec=replace(wanted.spec, scheduler_name=profile.scheduler_name))


def _cluster(objects: Iterable[Object], admission: Admission, wanted: Sequence[Pod], release: Release) -> Cluster:
    cluster = Cluster(release=release)
    saved = SavedPods(admission)
    pods: dict[str, tuple[Pod, PodResources]] = {}
    for raw in objects:
        kind = kind_of(raw)
        if kind is PODS:
            pod, resources = saved.read(raw)
            pods[pod.key] = pod, resources
        elif kind is not None and kind is not POLICIES:
            cluster.take(kind.decode(admission.complete(raw)))
    for name in dict.fromkeys(pod.metadata.namespace for pod in (*wanted, *(pod for pod, _ in pods.values()))):
        if name not in cluster.namespaces:
            cluster.set_namespace(implied_namespace(name))
    for pod in wanted:
        pods.pop(pod.key, None)
    for pod, resources in pods.values():
        _take_pod(cluster, pod, resources)
    return cluster


def _take_pod(cluster: Cluster, pod: Pod, resources: PodResources) -> None:
    """Add a pod to its node in a cluster, or nominate the pod for its nominated node."""
    if pod.spec.node_name:
        cluster.set_pod(pod, resources)
    elif pod.status.phase not in FINISHED:
        cluster.nominations.update(pod)
