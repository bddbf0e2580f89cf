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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

import msgspec
from cachetools import LRUCache
from msgspec.structs import replace

from policysched.app.admission import Admission, take_ephemeral_claims
from policysched.app.clock import SystemClock
from policysched.app.configuration.model import Configuration
from policysched.app.configuration.profiles import DEFAULT_NAME, configured_profiles, default_profile
from policysched.app.configuration.reading import ConfigurationInput, ReadConfiguration, load_configuration
from policysched.app.dry_run.policies import compiled_policies, last_good_notes, standing_policies, try_policies
from policysched.app.dry_run.results import Report
from policysched.app.dry_run.template_claims import with_template_claims
from policysched.app.files.given import Objects, OneObject, given_objects, one_object
from policysched.app.files.group_members import release_of_groups
from policysched.app.files.new_pods import as_new
from policysched.app.files.node_templates import given_node_templates
from policysched.app.files.saved_clusters import SavedObject
from policysched.app.plugins.discovery import find_plugins
from policysched.app.recording.kept_annotations import refuse_missing_annotations
from policysched.app.refusals import refusals
from policysched.app.running.metric_options import MetricOptions, metrics_read, wanted_by
from policysched.errors import UsageError
from policysched.framework import MetricAnswer, MetricKey, PostFilterResult, Sample, Wanted
from policysched.framework.extender import Extender
from policysched.framework.profile import Profile
from policysched.framework.registry import PluginRegistry
from policysched.language.messages.diagnostics import Diagnostic
from policysched.metric_sources.problems import values_of_others
from policysched.metric_sources.table import as_table, load_table
from policysched.metric_sources.table_answers import answers
from policysched.model.decode import decode_pod
from policysched.model.defaults import PriorityClasses, implied_namespace
from policysched.model.kinds import FINISHED, POD_GROUPS, PODS, POLICIES, kind_of
from policysched.model.objects import Node, Pod
from policysched.model.policy import KIND, PolicyKey
from policysched.model.release import Release
from policysched.model.release_choice import AUTO, release_named
from policysched.model.requests import amounts_in_use
from policysched.reading.documents import of_kind
from policysched.rules.compile.policy import CompiledPolicy
from policysched.rules.policy_set.not_applied import not_applied
from policysched.rules.policy_set.policy_set import PolicySet
from policysched.schedule.cycle.decision import Decision, drawn
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.node_templates import TemplateEvaluator
from policysched.schedule.cycle.post_filter import at_once, post_filtered
from policysched.schedule.cycle.record import Observe, Record, make_record
from policysched.state.cluster import Cluster
from policysched.state.tables.amounts import PodResources, pod_resources_by

Object = Mapping[str, Any]
Measure: TypeAlias = Callable[[Wanted, float], Iterable[MetricAnswer]]
"""Function that returns the answers of a metric source at a time. Units of the time: seconds since 1970."""
Numbers: TypeAlias = Mapping[str, Mapping[str, float]]
NOT_GIVEN = "no metric source; pass metrics="
NO_FLAG = "no metric source; set --metrics-file or --prometheus-url"
_ENCODER: Final = msgspec.json.Encoder()
_MOST_TEMPLATES: Final = 4096
"""Largest number of pod templates whose defaults and requests are cached."""


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
        """The pods with the scheduler names of their specs."""
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
        """Return the part of the decision record about nodes that do not exist.

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
    given = list(unlisted(given_objects(objects, "objects")))
    release = release_named(kube_version)
    if any(kind_of(one) is POD_GROUPS for one in given):
        release = release_of_groups(given, release) or release
    pods = [of_kind(one_object(pod, "pod"), "Pod")]
    return simulate_pods(given, pods, policies, release, config=config, now=now, metrics=metrics, plugins=plugins)


def simulate_pods(  # noqa: PLR0913 - what a decision depends on
    objects: Objects,
    pods: Sequence[Object],
    policies: Objects,
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
    given = list(unlisted(given_objects(objects, "objects")))
    admission = Admission(given, release)
    read = None if config is None else load_configuration(config, release=release)
    raws, notes = _new_pods(pods, given, admission)
    profile = _choose_profile(decode_pod(raws[0]), pods[0], read, plugins, release)
    named = [_under(profile, decode_pod(raw)) for raw in raws]
    cluster = _cluster(given, admission, named, release)
    for pod in named:
        take_ephemeral_claims(cluster, pod, admission)
    named = [with_template_claims(pod, cluster) for pod in named]
    cluster.time.move(seconds_at(now or SystemClock().now()))
    store = standing_policies(one for one in given if one["kind"] == KIND)
    tried = [of_kind(one, KIND) for one in given_objects(policies, "policies", KIND)]
    taken = compiled_policies(store, try_policies(store, tried))
    refuse_missing_annotations(given, taken.compiled, pod_is_given=True)
    policy_set = PolicySet.of(taken.compiled)
    problems = measure(cluster, (plugin.policy for plugin in policy_set.active), metrics)
    configuration = None if read is None else read.completed
    kept = (*last_good_notes(given, tried), *taken.edit_notes)
    unapplied = not_applied(taken.compiled, named[0], cluster, profile) | taken.failed
    return Simulation(
        given, admission.classes, raws, named, cluster, profile, policy_set, configuration,
        taken.diagnostics, unapplied, problems, (*notes, *kept), admission.notes, kept,
    )  # fmt: skip


def seconds_at(now: datetime | str) -> float:
    """Convert a date and time into seconds since 1970.

    Raises:
        UsageError: the text is not a time.
    """
    if isinstance(now, str):
        try:
            now = datetime.fromisoformat(now)
        except ValueError as error:
            raise UsageError(f'now: expected a time such as 2026-01-05T23:00:00+01:00, got "{now:.40}"') from error
    if not isinstance(now, datetime):
        raise UsageError(f"now: expected a datetime or a text, got {type(now).__name__}")
    return (now if now.tzinfo is not None else now.replace(tzinfo=UTC)).timestamp()


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


def unlisted(objects: Iterable[Object], kind: str = "") -> Iterator[Object]:
    """Yield the objects that are not Lists, and the items of Lists.

    Raises:
        UsageError: a value is not an object or has no kind.
    """
    for raw in objects:
        if not isinstance(raw, Mapping) or not isinstance(raw.get("kind", kind or None), str):
            raise UsageError(f"expected an object with a kind, got {raw!r:.80}")
        whole = raw if "kind" in raw else {"kind": kind, **raw}
        if whole["kind"].endswith("List"):
            yield from unlisted(whole.get("items") or (), whole["kind"].removesuffix("List"))
        else:
            yield whole


class SavedPods:
    """Decodes the pods of a saved cluster; computes defaults and requests once for pods of one template.

    Pods of one template differ only in names and nodes, on which neither defaults nor requests depend.
    """

    def __init__(self, admission: Admission) -> None:
        self._admission = admission
        self._resources_of = pod_resources_by(amounts_in_use(compares_sums=admission.release.resizes_compare_sums))
        self._known: LRUCache[bytes, tuple[Pod, PodResources]] = LRUCache(_MOST_TEMPLATES)

    def read(self, raw: Object) -> tuple[Pod, PodResources]:
        """Decode a pod; return the pod and its resource requests."""
        saved = raw.struct() if isinstance(raw, SavedObject) else None
        if not isinstance(saved, Pod):
            return self._measured(raw)
        # Only a pod without a UID needs admission, which applies the defaults of its namespace.
        namespace = None if saved.metadata.uid else saved.metadata.namespace
        spec = replace(saved.spec, node_name="")
        template = _ENCODER.encode((saved.metadata.labels, spec, saved.status, namespace))
        known = self._known.get(template)
        if known is None:
            known = self._known[template] = self._measured(raw)
            return known
        pod, resources = known
        metadata = saved.metadata if saved.metadata.namespace else replace(saved.metadata, namespace="default")
        return replace(pod, metadata=metadata, spec=replace(pod.spec, node_name=saved.spec.node_name)), resources

    def __len__(self) -> int:
        return len(self._known)

    def _measured(self, raw: Object) -> tuple[Pod, PodResources]:
        pod = decode_pod(self._admission.complete_pod(raw))
        return pod, self._resources_of(pod)


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


def measuring(options: MetricOptions) -> Measure:
    """Return the metric reader that the flags define; without flags, the reader reports a problem for each metric.

    Raises:
        UsageError: a flag or file is invalid.
    """
    options.check()
    if options.file is not None:
        table, name = load_table(options.file), str(options.file)
        return lambda wanted, at: answers(table, wanted, at, name)
    if options.url is not None:
        from policysched.app.running.metric_clients import make_prometheus_source  # noqa: PLC0415 - aiohttp takes 200 ms

        source = make_prometheus_source(options, options.url, SystemClock())
        return lambda wanted, at: _aged(asyncio.run(source.ask(wanted)), at - SystemClock().now().timestamp())
    return lambda wanted, _: (MetricAnswer(key, None, NO_FLAG) for key in wanted)


def _aged(found: Iterable[MetricAnswer], shift: float) -> Iterator[MetricAnswer]:
    """Shift sample times so that values keep their current age in a decision at another time."""
    for answer in found:
        samples = answer.samples
        if samples is not None:
            samples = {node: Sample(one.value, one.at + shift) for node, one in samples.items()}
        yield MetricAnswer(answer.key, samples, answer.problem)


def measure(cluster: Cluster, policies: Iterable[CompiledPolicy], metrics: Numbers | Measure | None) -> tuple[str, ...]:
    """Set the metrics that policies read in a cluster; return the problems of these metrics.

    Raises:
        UsageError: the numbers have another format.
    """
    policies = list(policies)
    wanted = wanted_by(policies)
    at = cluster.time.seconds
    if metrics is None:
        found: Iterable[MetricAnswer] = (MetricAnswer(key, None, NOT_GIVEN) for key in wanted)
    elif callable(metrics):
        found = metrics(wanted, at)
    else:
        found = answers(as_table(metrics), wanted, at, "metrics=")
    problems: dict[MetricKey, str] = {}
    for answer in found:
        cluster.metrics.take(answer)
        problems[answer.key] = answer.problem or values_of_others(answer.samples or (), cluster.nodes.row_of)
    read = {f"metrics.{item.path[0]}": problems.get(item.metric, "") for _, item in metrics_read(policies)}
    return tuple(f"{name}: {problem}" for name, problem in read.items() if problem)
