"""Compiled node selectors, node affinity, taints and tolerations.

This module knows names and labels of nodes, but no columns: a term lists its requirements, so that a column can
evaluate each of them per distinct value. A required term that cannot be parsed matches no node and is not reported, as
in kube-scheduler; an invalid preferred term is an error. A toleration with the operators `Lt` and `Gt`, which are
behind a gate that is off in v1.36, or with an unknown operator tolerates nothing.

Source: component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go,
component-helpers/scheduling/corev1/helpers.go, k8s.io/api/core/v1/toleration.go,
plugins/tainttoleration/taint_toleration.go, v1.36.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from policysched.model.objects import (
    NodeSelector,
    NodeSelectorTerm,
    Pod,
    PreferredSchedulingTerm,
    Requirement,
    Taint,
    Toleration,
)
from policysched.model.selection.pod_part_cache import PodPartCache
from policysched.model.selection.selectors import FEW, ByLabel, LabelRequirement, SelectorError, requirement

NAME_FIELD: Final = "metadata.name"


@dataclass(frozen=True, slots=True)
class FieldRequirement:
    """A requirement on a field of a node (`matchFields`): the value that it must have, or must not if `negated`."""

    key: str
    value: str
    negated: bool = False

    def admits(self, name: str) -> bool:
        """Return whether a node with a name meets the requirement; all fields except the name are empty."""
        actual = name if self.key == NAME_FIELD else ""
        return (actual == self.value) is not self.negated


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """A compiled term of a node selector: requirements on labels and fields of a node, all of which must match."""

    labels: tuple[LabelRequirement, ...] = ()
    fields: tuple[FieldRequirement, ...] = ()
    _by_label: ByLabel | None = field(default=None, init=False, repr=False, compare=False)

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        """Return whether a node with a name and labels matches all requirements; an empty name ignores fields.

        Cost: with many label requirements O(labels of the node), and once O(requirements).
        """
        if len(self.labels) > FEW:
            if not self.by_label.admit(labels):
                return False
        elif not all(one.admits(labels.get(one.key)) for one in self.labels):
            return False
        return not name or all(one.admits(name) for one in self.fields)

    @property
    def by_label(self) -> ByLabel:
        """The requirements on labels, indexed by label; cached if there are many."""
        known = self._by_label
        if known is None:
            known = ByLabel(self.labels)
            if len(self.labels) > FEW:
                object.__setattr__(self, "_by_label", known)
        return known


@dataclass(frozen=True, slots=True)
class NodeSelectorMatcher:
    """A compiled node selector: a node must match one or more terms and have all required labels.

    Missing: terms None require nothing; an empty list of terms matches no node.
    """

    labels: Mapping[str, str] = field(default_factory=dict)
    terms: tuple[NodeTerm, ...] | None = None
    _hash: int | None = field(default=None, init=False, repr=False, compare=False)

    def __hash__(self) -> int:
        if self._hash is None:
            object.__setattr__(self, "_hash", hash((frozenset(self.labels.items()), self.terms)))
        return self._hash or 0

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        """Return whether a node with a name and labels matches a term and has the required label values."""
        if not all(labels.get(key) == value for key, value in self.labels.items()):
            return False
        return self.terms is None or any(term.matches(name, labels) for term in self.terms)

    @property
    def demands_nothing(self) -> bool:
        """Whether the selector matches every node."""
        return self.terms is None and not self.labels

    @property
    def keys(self) -> frozenset[str]:
        """The labels on which the result of the node selector depends."""
        return frozenset(self.labels).union(one.key for term in self.terms or () for one in term.labels)


@dataclass(frozen=True, slots=True)
class WeightedTerm:
    """A compiled preferred node affinity term with its weight."""

    weight: int
    term: NodeTerm


def required_nodes(pod: Pod) -> NodeSelectorMatcher:
    """Return the compiled nodeSelector and required node affinity of a pod."""
    return NodeSelectorMatcher(pod.spec.node_selector, _required_terms(pod))


def node_selector(selector: NodeSelector) -> NodeSelectorMatcher:
    """Return the compiled form of a NodeSelector, such as a volume's; raise SelectorError if a term is invalid.

    Raises:
        SelectorError: a term is invalid.
    """
    return NodeSelectorMatcher(
        terms=tuple(_term(one) for one in selector.node_selector_terms if _has_requirements(one))
    )


def lenient_node_selector(selector: NodeSelector) -> NodeSelectorMatcher:
    """Return the compiled form of a NodeSelector, such as a volume's; an invalid term matches no node."""
    return NodeSelectorMatcher(terms=tuple(_valid_terms(selector.node_selector_terms)))


def _required(pod: Pod) -> NodeSelector | None:
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    return affinity.required if affinity else None


def _terms_of(pod: Pod) -> tuple[NodeTerm, ...]:
    required = _required(pod)
    return () if required is None else tuple(dict.fromkeys(_valid_terms(required.node_selector_terms)))


_required_terms: Final = PodPartCache[tuple[NodeTerm, ...] | None](_terms_of, _required, None)


def preferred_nodes(pod: Pod) -> tuple[WeightedTerm, ...]:
    """Return the compiled preferred node affinity of a pod.

    Raises:
        SelectorError: a term with a weight other than 0 is invalid.
    """
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    return preferred_terms(affinity.preferred if affinity else ())


def preferred_terms(terms: Iterable[PreferredSchedulingTerm]) -> tuple[WeightedTerm, ...]:
    """Return preferred node affinity terms in compiled form, without empty terms and terms of weight 0.

    Raises:
        SelectorError: a term with a weight other than 0 is invalid.
    """
    return tuple(
        WeightedTerm(one.weight, _term(one.preference))
        for one in terms
        if one.weight and _has_requirements(one.preference)
    )


def _has_requirements(term: NodeSelectorTerm) -> bool:
    return bool(term.match_expressions or term.match_fields)


def _valid_terms(terms: Iterable[NodeSelectorTerm]) -> Iterable[NodeTerm]:
    for one in terms:
        if _has_requirements(one):
            try:
                yield _term(one)
            except SelectorError:
                continue


def _term(term: NodeSelectorTerm) -> NodeTerm:
    return NodeTerm(
        labels=tuple(requirement(one) for one in term.match_expressions),
        fields=tuple(_field(one) for one in term.match_fields),
    )


def _field(one: Requirement) -> FieldRequirement:
    if one.operator not in ("In", "NotIn"):
        raise SelectorError(f'"{one.operator}" is not a valid operator for a field: use In or NotIn')
    if len(one.values) != 1:
        raise SelectorError("values of a field must have one element")
    return FieldRequirement(one.key, one.values[0], negated=one.operator == "NotIn")


NO_SCHEDULE: Final = "NoSchedule"
NO_EXECUTE: Final = "NoExecute"
PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"
REPELLING_EFFECTS: Final = frozenset({NO_SCHEDULE, NO_EXECUTE})
"""The taint effects that keep a pod off a node: NoSchedule and NoExecute."""

UNSCHEDULABLE_TAINT: Final = Taint(key="node.kubernetes.io/unschedulable", effect=NO_SCHEDULE)
"""The taint that a cordoned node (`spec.unschedulable`) is treated to have."""


class TolerationMatcher:
    """The compiled tolerations of a pod."""

    __slots__ = ("_covered",)

    def __init__(self, tolerations: Iterable[Toleration]) -> None:
        self._covered = frozenset(
            (one.effect, one.key, None if one.operator == "Exists" else one.value)
            for one in tolerations
            if one.operator in ("", "Equal", "Exists")
        )

    def covers(self, taint: Taint) -> bool:
        """Return whether any toleration of the pod tolerates a taint; an empty effect or key stands for all."""
        return any(
            (effect, key, value) in self._covered
            for effect in ("", taint.effect)
            for key in ("", taint.key)
            for value in (None, taint.value)
        )

    def covers_all(self, taints: Iterable[Taint], effects: Collection[str] = REPELLING_EFFECTS) -> bool:
        """Return whether the pod tolerates all taints that have one of the given effects."""
        return all(taint.effect not in effects or self.covers(taint) for taint in taints)

    def count_intolerable(self, taints: Iterable[Taint]) -> int:
        """Return the number of PreferNoSchedule taints that the pod does not tolerate."""
        return sum(taint.effect == PREFER_NO_SCHEDULE and not self.covers(taint) for taint in taints)
