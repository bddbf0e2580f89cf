"""PodTopologySpread worked out one node and one pod at a time, from objects.

Written for reading, from kube-scheduler's sources (plugins/podtopologyspread, plugins/helper/spread.go); it shares
nothing with the plugin but what matches node affinity and tolerations.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from policysched.model.objects import (
    LabelSelector,
    Node,
    Pod,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
    TopologySpreadConstraint,
    Workload,
)
from policysched.model.selection.node_selectors import TolerationMatcher, required_nodes

Labels = Mapping[str, str]
HOSTNAME = "kubernetes.io/hostname"
SYSTEM = (
    TopologySpreadConstraint(topology_key=HOSTNAME, when_unsatisfiable="ScheduleAnyway", max_skew=3),
    TopologySpreadConstraint(
        topology_key="topology.kubernetes.io/zone", when_unsatisfiable="ScheduleAnyway", max_skew=5
    ),
)
UNEVEN = "node(s) didn't match pod topology spread constraints"
UNLABELLED = f"{UNEVEN} (missing required label)"


class InvalidError(Exception):
    """A selector that is not valid."""


@dataclass
class Around:
    """What a decision looks at."""

    nodes: Sequence[Node]
    placed: Sequence[tuple[Pod, str]] = ()
    """Pods with the names of their nodes."""
    workloads: Sequence[Workload] = ()
    defaults: Sequence[TopologySpreadConstraint] = SYSTEM
    system: bool = True


@dataclass
class Selector:
    """Tests of labels; a selector that selects nothing has none and says so."""

    tests: list[Callable[[Labels], bool]] = field(default_factory=list)
    nothing: bool = False

    @property
    def empty(self) -> bool:
        return not self.tests and not self.nothing

    def selects(self, labels: Labels) -> bool:
        return not self.nothing and all(test(labels) for test in self.tests)


@dataclass
class Parsed:
    given: TopologySpreadConstraint
    selector: Selector
    min_domains: int
    affinity: str
    taints: str

    @property
    def key(self) -> str:
        return self.given.topology_key


def equals(key: str, value: str) -> Callable[[Labels], bool]:
    return lambda labels: labels.get(key) == value


def expression(key: str, operator: str, values: Sequence[str]) -> Callable[[Labels], bool]:
    match operator:
        case "In" if values:
            return lambda labels: key in labels and labels[key] in values
        case "NotIn" if values:
            return lambda labels: key not in labels or labels[key] not in values
        case "Exists" if not values:
            return lambda labels: key in labels
        case "DoesNotExist" if not values:
            return lambda labels: key not in labels
    raise InvalidError(operator)


def parse(selector: LabelSelector | None) -> Selector:
    if selector is None:
        return Selector(nothing=True)
    tests = [equals(key, value) for key, value in selector.match_labels.items()]
    return Selector(tests + [expression(one.key, one.operator, one.values) for one in selector.match_expressions])


def default_selector(pod: Pod, workloads: Iterable[Workload]) -> Selector:
    near = [one for one in workloads if one.metadata.namespace == pod.metadata.namespace]
    labels = service_labels(pod, near)
    owner = next((one for one in pod.metadata.owner_references if one.controller), None)
    found: Any = owner and next(
        (one for one in near if (type(one).__name__, one.metadata.name) == (owner.kind, owner.name)), None
    )
    tests: list[Callable[[Labels], bool]] = []
    if owner and isinstance(found, ReplicationController) and owner.api_version == "v1":
        labels.update(found.spec.selector or {})
    elif owner and isinstance(found, ReplicaSet | StatefulSet) and owner.api_version == "apps/v1":
        with contextlib.suppress(InvalidError):
            tests = parse(found.spec.selector).tests
    return Selector([equals(key, value) for key, value in labels.items()] + tests)


def service_labels(pod: Pod, near: Iterable[Workload]) -> dict[str, str]:
    labels: dict[str, str] = {}
    for one in near:
        wanted = (one.spec.selector or {}) if isinstance(one, Service) else {}
        if isinstance(wanted, dict) and all(pod.metadata.labels.get(key) == value for key, value in wanted.items()):
            labels.update(wanted)
    return labels


def constraints(pod: Pod, around: Around, action: str) -> list[Parsed]:
    own = pod.spec.topology_spread_constraints
    found = []
    for one in own or around.defaults:
        if one.when_unsatisfiable != action:
            continue
        selector = parse(one.label_selector)
        if not selector.nothing:
            kept = [key for key in one.match_label_keys if key in pod.metadata.labels]
            selector.tests += [equals(key, pod.metadata.labels[key]) for key in kept]
        minimum = 1 if one.min_domains is None else one.min_domains
        found.append(
            Parsed(one, selector, minimum, one.node_affinity_policy or "Honor", one.node_taints_policy or "Ignore")
        )
    if own or not found:
        return found
    selector = default_selector(pod, around.workloads)
    if selector.empty:
        return []
    for parsed in found:
        parsed.selector = selector
    return found


def included(one: Parsed, pod: Pod, node: Node) -> bool:
    if one.affinity == "Honor" and not required_nodes(pod).matches(node.metadata.name, node.metadata.labels):
        return False
    return one.taints != "Honor" or TolerationMatcher(pod.spec.tolerations).covers_all(node.spec.taints)


def count(one: Parsed, pod: Pod, node: Node, around: Around) -> int:
    if one.selector.empty:
        return 0
    return sum(
        on == node.metadata.name
        and placed.metadata.deletion_timestamp is None
        and placed.metadata.namespace == pod.metadata.namespace
        and one.selector.selects(placed.metadata.labels)
        for placed, on in around.placed
    )


def has_all(node: Node, parsed: Iterable[Parsed]) -> bool:
    return all(one.key in node.metadata.labels for one in parsed)


def rejections(pod: Pod, around: Around) -> dict[str, str] | None:
    """The reason for each node that is rejected; None for a pod that is skipped."""
    hard = constraints(pod, around, "DoNotSchedule")
    if not hard:
        return None
    sums = [sums_of(one, pod, around, hard, None) for one in hard]
    found = {node.metadata.name: rejection(pod, node, hard, sums) for node in around.nodes}
    return {name: reason for name, reason in found.items() if reason}


def rejection(pod: Pod, node: Node, hard: Iterable[Parsed], sums: Iterable[dict[str, int]]) -> str:
    for one, by_value in zip(hard, sums, strict=True):
        if one.key not in node.metadata.labels:
            return UNLABELLED
        least = min(by_value.values(), default=2**31 - 1)
        if len(by_value) < one.min_domains:
            least = 0
        itself = int(one.selector.selects(pod.metadata.labels))
        if by_value.get(node.metadata.labels[one.key], 0) + itself - least > one.given.max_skew:
            return UNEVEN
    return ""


def scores(pod: Pod, around: Around, feasible: Iterable[str]) -> dict[str, int] | None:
    """The final score of each feasible node; None for a pod that is skipped."""
    soft = constraints(pod, around, "ScheduleAnyway")
    if not soft:
        return None
    names = set(feasible)
    candidates = [node for node in around.nodes if node.metadata.name in names]
    need_all = bool(pod.spec.topology_spread_constraints) or not around.system
    ignored = {node.metadata.name for node in candidates if need_all and not has_all(node, soft)}
    scored = [node for node in candidates if node.metadata.name not in ignored]
    raw: dict[str, Any] = {node.metadata.name: 0.0 for node in scored}
    for one in soft:
        by_value = sums_of(one, pod, around, soft if need_all else [], scored)
        size = len(scored) if one.key == HOSTNAME else len(by_value)
        weight = math.log(size + 2)
        for node in scored:
            if one.key not in node.metadata.labels:
                continue
            pods = count(one, pod, node, around) if one.key == HOSTNAME else by_value[node.metadata.labels[one.key]]
            raw[node.metadata.name] += pods * weight + (one.given.max_skew - 1)
    rounded = {name: math.floor(score + 0.5) for name, score in raw.items()}
    highest, lowest = max(rounded.values(), default=0), min(rounded.values(), default=0)
    finals = dict.fromkeys(ignored, 0)
    for name, score in rounded.items():
        finals[name] = 100 if highest == 0 else 100 * (highest + lowest - score) // highest
    return finals


def sums_of(
    one: Parsed, pod: Pod, around: Around, required: Iterable[Parsed], scored: Iterable[Node] | None
) -> dict[str, int]:
    """Count the pods by value, where there are scored nodes for their values alone; a missing label is an empty one."""
    by_value: dict[str, int] = {}
    if scored is not None:
        by_value = {node.metadata.labels.get(one.key, ""): 0 for node in scored}
    for node in around.nodes:
        value = node.metadata.labels.get(one.key, "")
        if has_all(node, required) and included(one, pod, node) and (scored is None or value in by_value):
            by_value[value] = by_value.get(value, 0) + count(one, pod, node, around)
    return by_value
