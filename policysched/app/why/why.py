"""`why`: explains why a pod of a cluster is on its node or pending, and what would change that.

The pod is removed from the cluster and scheduled as if it were new. The real cluster does not change; changes of a
repair are undone before the next one is tried.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from policysched.app.amounts import counted
from policysched.app.configuration.model import DEFAULT_SCHEDULER
from policysched.app.configuration.profiles import DEFAULT_NAME
from policysched.app.configuration.reading import ConfigurationInput, ReadConfiguration, load_configuration
from policysched.app.configuration.scheduler_names import (
    FLAG,
    SchedulerNames,
    choose_scheduler_names,
    names_of_policies,
)
from policysched.app.dry_run.dry_run import Simulation, simulate_pods
from policysched.app.dry_run.metrics import Measure, Numbers
from policysched.app.files.given import Objects, cluster_objects, given_objects
from policysched.app.files.group_members import (
    all_members,
    group_named_by,
    is_group,
    pending_members,
    release_of_groups,
)
from policysched.app.files.workload_pods import HASH
from policysched.app.object_names import nearest, nearest_key, without_kind
from policysched.app.recording.kept_annotations import refuse_missing_annotations
from policysched.app.why.decision import DecisionExplainer
from policysched.app.why.group import GroupExplainer, placed_group
from policysched.app.why.results import Explanation, State
from policysched.app.why.variants import VariantEvaluator
from policysched.errors import UsageError
from policysched.framework.registry import PluginRegistry
from policysched.model.decode import decode_pod
from policysched.model.kinds import FINISHED, POD_GROUPS, kind_of
from policysched.model.objects import Pod, PodGroup
from policysched.model.pod_requirements import is_static
from policysched.model.policy import KIND
from policysched.model.release import Release
from policysched.model.release_choice import AUTO, release_named
from policysched.reading.documents import metadata_of
from policysched.reading.folders import listed

Object = Mapping[str, Any]


def why(  # noqa: PLR0913 - what a decision depends on
    objects: Objects,
    pod: str,
    node: str = "",
    *,
    policies: Objects = (),
    config: ConfigurationInput | None = None,
    scheduler_name: str | Collection[str] = (),
    now: datetime | str | None = None,
    seed: int | None = None,
    metrics: Numbers | Measure | None = None,
    plugins: PluginRegistry | None = None,
    kube_version: str = AUTO,
) -> Explanation:
    """Explain why a pod of a cluster is on its node or pending.

    Args:
        objects: The cluster with the pod, as `dry_run` takes it.
        pod: The pod: `namespace/name`, or a name in the namespace `default`.
        node: The node to compare with; empty: the runner-up.
        policies: SchedulingPolicy objects to try. A policy replaces the cluster's policy of the same name.
        config: A KubeSchedulerConfiguration, as `dry_run` takes it.
        scheduler_name: One or several names: a pod with another `schedulerName` is not evaluated; default: the profiles
            of the configuration, else the `schedulerNames` of the policies, else the name of the pod.
        now: The current time, as `dry_run` takes it.
        seed: Seed of the draw among equally good nodes.
        metrics: Values of metrics, as `dry_run` takes them.
        plugins: Plugins that a configuration can enable besides the default ones.
        kube_version: The Kubernetes minor whose kube-scheduler decides, as `dry_run` takes it.

    Raises:
        UsageError: the pod or node does not exist, an object is malformed, or the configuration has no profile for the
            pod.
    """
    given = cluster_objects(objects)
    tried = list(given_objects(policies, "policies", KIND))
    found = _find(given, pod if "/" in pod else f"default/{pod}")
    node = without_kind("node", node)
    _refuse_unknown(given, node)
    read = None if config is None else load_configuration(config, release=release_named(kube_version))
    names = _scheduler_names(found, read, scheduler_name, (*given, *tried))
    sentence = _undecided(found, names)
    if sentence is not None:
        return sentence
    group, release = _group_of(found, (*given, *tried), release_named(kube_version))
    waits = group is not None and not _spec(found).get("nodeName")
    wanted = [_as_new(_named(found, names)), *(pending_members(given, [found]) if waits else ())]
    simulation = simulate_pods(given, wanted, tried, release, config=config, now=now, metrics=metrics, plugins=plugins)
    refuse_missing_annotations(given, [one.policy for one in simulation.policies.active])
    variants = VariantEvaluator(simulation, seed)
    if waits:
        explained = _member_explanation(variants, node, seed)
    else:
        explainer = DecisionExplainer(variants, _spec(found).get("nodeName") or "", node)
        told = None if group is None else placed_group(group, all_members(given, group.key))
        explained = replace(explainer.explanation(), pod_group=told)
    interrupted = explained.interrupted or variants.interrupted
    notes = tuple(_notes(simulation, names, explained, interrupted=interrupted))
    return replace(explained, notes=notes, diagnostics=simulation.diagnostics, interrupted=interrupted)


def _group_of(pod: Object, objects: Sequence[Object], release: Release) -> tuple[PodGroup | None, Release]:
    """Return the pod group of a pod, if its object exists and the release has pod groups; and the release to use."""
    groups, grouped = [one for one in objects if kind_of(one) is POD_GROUPS], release_of_groups(objects, release)
    if grouped is None or not groups:
        return None, release
    found = next((one for one in groups if is_group(one, group_named_by(pod))), None)
    return None if found is None else POD_GROUPS.decode(found), grouped


def _member_explanation(variants: VariantEvaluator, node: str, seed: int | None) -> Explanation:
    """Explain a pending pod of a pod group: the group first, then the pod after the earlier members."""
    group = GroupExplainer(variants.simulation, seed)
    told = group.explanation()
    variants.rows = group.rows
    with group.with_earlier_members(variants.simulation.pod):
        explained = DecisionExplainer(variants, "", node, group).explanation()
    notes = (*explained.notes, *group.notes)
    return replace(explained, pod_group=told, notes=notes, interrupted=group.interrupted)


def _notes(
    simulation: Simulation, names: SchedulerNames, explained: Explanation, *, interrupted: bool
) -> Iterator[str]:
    """Yield the notes about the inputs and the evaluation."""
    yield from _foreign(simulation.pod, names)
    yield from simulation.kept
    yield from simulation.admission_notes
    yield from explained.notes
    yield from simulation.problems
    for key, reason in sorted(simulation.not_applied.items()):
        yield f"policy {key} does not apply: {reason}"
    if interrupted:
        yield "interrupted: not all fixes and weights were tried"


def _find(objects: Sequence[Object], key: str) -> Object:
    pods = {_key(one): one for one in objects if one["kind"] == "Pod"}
    if key not in pods:
        raise UsageError(_unknown("pod", key, len(pods), _meant(key, pods)))
    return pods[key]


def _meant(key: str, pods: Mapping[str, Object]) -> str:
    """Return a suggestion for an unknown pod: in another namespace, of a workload, or with a similar name."""
    namespace, _, name = key.partition("/")
    if not any(one.partition("/")[2] == name for one in pods):
        of_workload = [one for one, raw in pods.items() if name in _workloads(raw)]
        inside = [one for one in of_workload if one.startswith(f"{namespace}/")]
        if of_workload:
            return f"pods of {name} are {listed(inside or of_workload)}"
    return nearest_key(key, pods)


def _workloads(raw: Object) -> Iterable[str]:
    """Yield the name of the controller of a pod; for a ReplicaSet, also the name of its Deployment."""
    metadata = metadata_of(raw)
    labels = metadata.get("labels")
    suffix = f"-{labels.get(HASH)}" if isinstance(labels, Mapping) and labels.get(HASH) else ""
    for owner in metadata.get("ownerReferences") or ():
        if isinstance(owner, Mapping) and owner.get("controller"):
            name = str(owner.get("name"))
            yield from {name, name.removesuffix(suffix)}


def _key(raw: Object) -> str:
    metadata = metadata_of(raw)
    return f"{metadata.get('namespace') or 'default'}/{metadata.get('name')}"


def _refuse_unknown(objects: Sequence[Object], node: str) -> None:
    names = [str(metadata_of(one).get("name")) for one in objects if one["kind"] == "Node"]
    if node and node not in names:
        raise UsageError(_unknown("node", node, len(names), nearest(node, names)))


def _unknown(kind: str, name: str, known: int, meant: str) -> str:
    text = f"{kind} {name} is not in the cluster, which has {counted(known, kind)}"
    return f"{text}; {meant}" if meant else text


def _spec(raw: Object) -> Mapping[str, Any]:
    found = raw.get("spec")
    return found if isinstance(found, Mapping) else {}


def _as_new(raw: Object) -> Object:
    """Return an existing pod as a new pod."""
    if not _spec(raw).get("nodeName"):
        return raw
    return {**raw, "status": {"phase": "Running", **(raw.get("status") or {})}}


def _scheduler_names(
    raw: Object, read: ReadConfiguration | None, given: str | Collection[str], objects: Iterable[Object]
) -> SchedulerNames:
    """Choose the scheduler names whose pods are evaluated."""
    own = _spec(raw).get("schedulerName")
    of_pod = Counter([own] if isinstance(own, str) and own else [DEFAULT_NAME])
    return choose_scheduler_names(given, [] if read is None else [read], names_of_policies(objects), of_pod)


def _named(raw: Object, names: SchedulerNames) -> Object:
    """Return a pod of a file; if the pod has no `schedulerName`, set the name of the flag, if the flag has only one."""
    if _spec(raw).get("schedulerName") or names.source != FLAG or len(names.names) > 1:
        return raw
    return {**raw, "spec": {**_spec(raw), "schedulerName": names.names[0]}}


def _foreign(pod: Pod, names: SchedulerNames) -> Iterable[str]:
    """Yield a note if default plugins evaluate a pod, because its scheduler has no known configuration."""
    name = pod.spec.scheduler_name
    if names.source == "the pods" and name not in {DEFAULT_NAME, DEFAULT_SCHEDULER}:
        yield f"schedulerName of the pod is {name}; the pod is evaluated with the default plugins"


def _undecided(raw: Object, names: SchedulerNames) -> Explanation | None:
    """Return the explanation of a pod that no scheduler, or another scheduler, places; else None.

    Raises:
        UsageError: the pod is malformed.
    """
    pod = decode_pod(raw)
    found = _no_decision(pod, _spec(raw).get("schedulerName") or "", names)
    if found is None:
        return None
    state, text = found
    key, node = _key(raw), pod.spec.node_name
    return Explanation(key, _spec(raw).get("schedulerName") or "", state, f"pod {key} {text}", node=node)


def _no_decision(pod: Pod, name: str, names: SchedulerNames) -> tuple[State, str] | None:
    phase, node = pod.status.phase, pod.spec.node_name
    if phase in FINISHED:
        return State.FINISHED, f"is finished ({phase}) and is not scheduled again"
    if pod.metadata.deletion_timestamp:
        return State.TERMINATING, "is being deleted and is not scheduled again"
    if is_static(pod):
        return State.STATIC, f"is a static pod: the kubelet of {node} runs it, and no scheduler places it"
    if name and name not in names:
        hint = "" if names.source == "the configuration" else f"; set --scheduler-name {name}"
        return State.OTHER_SCHEDULER, f"is scheduled by {name}, but only {names} is evaluated{hint}"
    if pod.spec.scheduling_gates and not node:
        return State.GATED, f"has scheduling gates: {', '.join(one.name for one in pod.spec.scheduling_gates)}"
    return None
