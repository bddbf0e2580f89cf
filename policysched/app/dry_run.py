"""What would happen to a pod: one scheduling cycle over given objects, explained; nothing is changed.

It runs the engine of the running scheduler on a cluster built from plain dicts. Finished pods hold nothing, and an
object of the dry-run pod's own name is taken out first.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from policysched.app.profiles import DEFAULT_NAME, configured_profiles, default_profile
from policysched.errors import UsageError
from policysched.framework.profile import Profile
from policysched.language.diagnostics import Diagnostic
from policysched.model.decode import decode_device_class, decode_namespace, decode_node, decode_pod
from policysched.model.defaults import PriorityClasses, fill, priority_classes
from policysched.model.objects import Pod
from policysched.model.policy import KIND, decode_policy
from policysched.rules.compile import compile_policy
from policysched.rules.compiled import CompiledPolicy
from policysched.rules.policyset import PolicySet
from policysched.schedule.decision import Decision
from policysched.schedule.engine import Engine
from policysched.schedule.record import Record, make_record
from policysched.state.cluster import Cluster

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Report:
    """A decision with what the policies said."""

    record: Record
    diagnostics: tuple[Diagnostic, ...]
    """Errors and warnings of the policies that took part; one with errors does nothing."""

    def to_dict(self) -> Record:
        """Give the decision record of docs/dry-run.md."""
        return self.record


def dry_run(
    objects: Iterable[Object],
    pod: Object,
    policies: Iterable[Object] = (),
    *,
    config: str | Object | None = None,
    now: datetime | None = None,
    seed: int | None = None,
) -> Report:
    """Say where a pod would go and why.

    Args:
        objects: The cluster as kubectl prints it: nodes, pods, namespaces, priority classes, policies.
        pod: The pod to place.
        policies: SchedulingPolicy objects; one replaces an object of its name.
        config: A KubeSchedulerConfiguration as text or dict; absent, the default plugins.
        now: The time rules see; no rule reads one yet.
        seed: What draws among equally good nodes.

    Raises:
        UsageError: an object is malformed, or the configuration does not fit the pod.
    """
    del now
    given = list(objects)
    classes = priority_classes(given)
    wanted = decode_pod(fill(pod, classes))
    profile, wanted = _choose_profile(wanted, pod, config)
    cluster = Cluster()
    _fill_cluster(cluster, given, classes, wanted)
    compiled, diagnostics = _compile(given, policies)
    policy_set = PolicySet.of(compiled)
    rng = random.Random(seed)  # noqa: S311 - a draw among equals, no secret
    engine = Engine(cluster, policy_set.join(profile), rng)
    decision = _in_name_order(engine.decide(wanted), rng)
    return Report(make_record(decision, policy_set.plugins), diagnostics)


def _in_name_order(decision: Decision, rng: random.Random) -> Decision:
    """Draw among the best nodes by name, so that the same seed gives the same node however objects are ordered."""
    if len(decision.best) > 1:
        names = decision.cluster.nodes.names
        decision.row = rng.choice(sorted(decision.best, key=lambda row: names[row]))
    return decision


def _choose_profile(wanted: Pod, raw: Object, config: str | Object | None) -> tuple[Profile, Pod]:
    stated = (raw.get("spec") or {}).get("schedulerName")
    if config is None:
        return _under(default_profile(stated or DEFAULT_NAME), wanted)
    profiles = configured_profiles(config)
    if stated in profiles:
        return _under(profiles[stated], wanted)
    if len(profiles) == 1:
        return _under(next(iter(profiles.values())), wanted)
    raise UsageError(f'no profile is named "{stated}": the pod has to name one of {", ".join(sorted(profiles))}')


def _under(profile: Profile, wanted: Pod) -> tuple[Profile, Pod]:
    spec = replace(wanted.spec, scheduler_name=profile.scheduler_name)
    return profile, replace(wanted, spec=spec)


def _fill_cluster(cluster: Cluster, objects: Iterable[Object], classes: PriorityClasses, wanted: Pod) -> None:
    for raw in objects:
        match raw.get("kind"):
            case "Node":
                cluster.set_node(decode_node(fill(raw, classes)))
            case "Namespace":
                cluster.set_namespace(decode_namespace(raw))
            case "DeviceClass":
                cluster.set_device_class(decode_device_class(raw))
            case "Pod":
                placed = decode_pod(fill(raw, classes))
                if placed.spec.node_name and placed.key != wanted.key:
                    cluster.set_pod(placed)


def _compile(
    objects: Iterable[Object], policies: Iterable[Object]
) -> tuple[list[CompiledPolicy], tuple[Diagnostic, ...]]:
    named = {raw["metadata"]["name"]: raw for raw in (*objects, *policies) if raw.get("kind") == KIND}
    results = [compile_policy(decode_policy(raw)) for raw in named.values()]
    compiled = [result.policy for result in results if result.policy is not None]
    return compiled, tuple(diagnostic for result in results for diagnostic in result.diagnostics)
