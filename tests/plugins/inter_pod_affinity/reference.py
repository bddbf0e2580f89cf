"""InterPodAffinity worked out one node and one pod at a time from objects.

Written for reading, from kube-scheduler's sources: every existing pod is looked at for every question. It shares
nothing with the plugin but the meaning of a single label selector.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from policysched.framework import Code, Status, unresolvable, unschedulable
from policysched.model.objects import Node, Pod, PodAffinity, PodAffinityTerm, WeightedPodAffinityTerm
from policysched.model.selection.selectors import LabelMatcher, SelectorError, compile_selector

AFFINITY = unresolvable("node(s) didn't match pod affinity rules")
ANTI_AFFINITY = unschedulable("node(s) didn't match pod anti-affinity rules")
EXISTING = unschedulable("node(s) didn't satisfy existing pods anti-affinity rules")
Pairs = Counter[tuple[str, str]]
"""Counts by topology key and value."""


@dataclass
class Scene:
    """What kube-scheduler's snapshot and its listers hold; placed pods name their nodes."""

    nodes: Mapping[str, Node]
    placed: Sequence[Pod]
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def known(self) -> list[tuple[Pod, Node]]:
        """The pods whose node is there."""
        return [(one, self.nodes[one.spec.node_name]) for one in self.placed if one.spec.node_name in self.nodes]


@dataclass
class Term:
    selector: LabelMatcher
    namespaces: set[str]
    namespace_selector: LabelMatcher
    key: str
    weight: int = 0

    def matches(self, pod: Pod, namespace_labels: Mapping[str, str]) -> bool:
        if pod.metadata.namespace not in self.namespaces and not self.namespace_selector.matches(namespace_labels):
            return False
        return self.selector.matches(pod.metadata.labels)


def parts(pod: Pod) -> tuple[PodAffinity, PodAffinity]:
    affinity = pod.spec.affinity
    near, away = (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else (None, None)
    return near or PodAffinity(), away or PodAffinity()


def term(pod: Pod, one: PodAffinityTerm, weight: int = 0) -> Term:
    named = set(one.namespaces)
    if not one.namespaces and one.namespace_selector is None:
        named = {pod.metadata.namespace}
    return Term(
        compile_selector(one.label_selector), named, compile_selector(one.namespace_selector), one.topology_key, weight
    )


class Parsed:
    """A pod with its terms; a sort with a term that cannot be parsed has none."""

    def __init__(self, pod: Pod) -> None:
        self.pod = pod
        self.errors: list[str] = []
        near, away = parts(pod)
        self.required = self._terms("requiredAffinityTerms", near.required)
        self.anti = self._terms("requiredAntiAffinityTerms", away.required)
        self.preferred = self._terms("preferredAffinityTerms", near.preferred)
        self.preferred_anti = self._terms("preferredAntiAffinityTerms", away.preferred)

    def _terms(self, sort: str, stated: Sequence[Any]) -> list[Term]:
        try:
            return [
                term(self.pod, one.pod_affinity_term, one.weight)
                if isinstance(one, WeightedPodAffinityTerm)
                else term(self.pod, one)
                for one in stated
            ]
        except SelectorError as error:
            self.errors.append(f"{sort}: {error}")
            return []

    @property
    def error(self) -> str:
        return self.errors[0] if len(self.errors) == 1 else f"[{', '.join(self.errors)}]"

    def merge_namespaces(self, terms: Sequence[Term], scene: Scene, *, merges: bool) -> None:
        """The namespaces that selectors match join the named ones; before 1.37 the selectors stay what they are."""
        for one in terms:
            if not one.namespace_selector.selects_everything:
                one.namespaces |= {
                    name for name, labels in scene.namespaces.items() if one.namespace_selector.matches(labels)
                }
                if merges:
                    one.namespace_selector = compile_selector(None)


def count(pairs: Pairs, node: Node, key: str, value: int = 1) -> None:
    if key in node.metadata.labels:
        pairs[key, node.metadata.labels[key]] += value


def matches_all(terms: Sequence[Term], pod: Pod) -> bool:
    return bool(terms) and all(one.matches(pod, {}) for one in terms)


class Counts:
    """How many existing pods are near each topology pair: those with anti-affinity to the pod, those that it needs,
    and those that it avoids.
    """

    def __init__(self, incoming: Parsed, scene: Scene) -> None:
        self.existing, self.near, self.away = Pairs(), Pairs(), Pairs()
        self._incoming = incoming
        self._namespace_labels = scene.namespaces.get(incoming.pod.metadata.namespace, {})
        for other, node in scene.known():
            self._add(other, node)

    def _add(self, other: Pod, node: Node) -> None:
        for one in Parsed(other).anti:
            add(self.existing, one, self._incoming.pod, self._namespace_labels, node, 1)
        for one in self._incoming.required if matches_all(self._incoming.required, other) else ():
            count(self.near, node, one.key)
        for one in self._incoming.anti:
            add(self.away, one, other, {}, node, 1)

    def judge(self, node: Node) -> Status | None:
        if not satisfies_affinity(self._incoming, self.near, node):
            return AFFINITY
        if any(self.away[pair(node, one.key)] > 0 for one in self._incoming.anti):
            return ANTI_AFFINITY
        return EXISTING if any(self.existing[item] > 0 for item in node.metadata.labels.items()) else None


def verdicts(pod: Pod, scene: Scene, *, merges_namespaces: bool = False) -> dict[str, Status] | Status | None:
    """Rejections by node, the status that rejects the pod as a whole, or None where the plugin is skipped."""
    incoming = Parsed(pod)
    if incoming.errors:
        return unresolvable(f"parsing pod: {incoming.error}")
    incoming.merge_namespaces(incoming.required + incoming.anti, scene, merges=merges_namespaces)
    counts = Counts(incoming, scene)
    if not counts.existing and not incoming.required and not incoming.anti:
        return None
    judged = {name: counts.judge(node) for name, node in scene.nodes.items()}
    return {name: status for name, status in judged.items() if status is not None}


def pair(node: Node, key: str) -> Any:
    return (key, node.metadata.labels[key]) if key in node.metadata.labels else None


def satisfies_affinity(incoming: Parsed, near: Pairs, node: Node) -> bool:
    if any(one.key not in node.metadata.labels for one in incoming.required):
        return False
    if all(near[pair(node, one.key)] > 0 for one in incoming.required):
        return True
    return not near and matches_all(incoming.required, incoming.pod)


def raw_scores(
    pod: Pod,
    scene: Scene,
    hard_weight: int = 1,
    *,
    ignore_preferred: bool = False,
    merges_namespaces: bool = False,
) -> dict[str, int] | Status | None:
    """Sums by node before normalisation, an error, or None where the plugin is skipped."""
    near, away = parts(pod)
    constrained = bool(near.preferred or away.preferred)
    if ignore_preferred and not constrained:
        return None
    incoming = Parsed(pod)
    if incoming.errors:
        return Status(Code.ERROR, (f"failed to parse pod: {incoming.error}",))
    incoming.merge_namespaces(incoming.preferred + incoming.preferred_anti, scene, merges=merges_namespaces)
    sums = Pairs()
    for other, node in scene.known():
        for one in incoming.preferred:
            add(sums, one, other, {}, node, one.weight)
        for one in incoming.preferred_anti:
            add(sums, one, other, {}, node, -one.weight)
        add_symmetric(sums, Parsed(other), pod, scene, node, hard_weight)
    if not sums:
        return None
    return {
        name: sum(sums[item] for item in node.metadata.labels.items() if item in sums)
        for name, node in scene.nodes.items()
    }


def add_symmetric(sums: Pairs, theirs: Parsed, pod: Pod, scene: Scene, node: Node, hard_weight: int) -> None:
    namespace_labels = scene.namespaces.get(pod.metadata.namespace, {})
    for one in theirs.required if hard_weight > 0 else ():
        add(sums, one, pod, namespace_labels, node, hard_weight)
    for one in theirs.preferred:
        add(sums, one, pod, namespace_labels, node, one.weight)
    for one in theirs.preferred_anti:
        add(sums, one, pod, namespace_labels, node, -one.weight)


def add(sums: Pairs, one: Term, pod: Pod, namespace_labels: Mapping[str, str], node: Node, weight: int) -> None:
    if one.matches(pod, namespace_labels):
        count(sums, node, one.key, weight)


def normalized(sums: Mapping[str, int]) -> dict[str, int]:
    """Scores of 0 to 100; `sums` are those of the feasible nodes."""
    lowest, highest = min(sums.values(), default=0), max(sums.values(), default=0)
    if highest == lowest:
        return dict.fromkeys(sums, 0)
    return {name: int(100.0 * (float(value - lowest) / float(highest - lowest))) for name, value in sums.items()}
