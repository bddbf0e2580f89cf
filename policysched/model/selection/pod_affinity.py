"""Compiled pod affinity and anti-affinity terms, required and preferred.

This module knows pods and labels, but neither nodes nor placed pods. A term without namespaces applies to the pod's own
namespace; a namespace selector applies in addition to named namespaces. If one term of a kind cannot be parsed, all
terms of that kind are dropped, as in kube-scheduler.

Source: k8s.io/kube-scheduler/framework/types.go (AffinityTerm, GetAffinityTerms), v0.36;
pkg/scheduler/framework/types.go (PodInfo.Update), v1.36.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, NamedTuple

from policysched.model.objects import Affinity, LabelSelector, Pod, PodAffinity, PodAffinityTerm
from policysched.model.selection.pod_part_cache import PodPartCache
from policysched.model.selection.selectors import LabelMatcher, SelectorError, compile_selector, selector_key

NO_LABELS: Final[Mapping[str, str]] = {}


@dataclass(frozen=True, slots=True)
class PeerSelector:
    """The pods that an affinity term matches: by labels, by namespace, or by labels of the namespace."""

    pods: LabelMatcher
    namespaces: frozenset[str]
    namespace_selector: LabelMatcher
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.pods, self.namespaces, self.namespace_selector)))

    def __hash__(self) -> int:
        return self._hash

    def matches(self, pod: Pod, namespace_labels: Mapping[str, str] = NO_LABELS) -> bool:
        """Return whether the affinity term matches a pod, given the labels of the pod's namespace."""
        metadata = pod.metadata
        return self.is_in(metadata.namespace, namespace_labels) and self.pods.matches(metadata.labels)

    def is_in(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Return whether the affinity term can match pods in a namespace with these labels."""
        return namespace in self.namespaces or self.namespace_selector.matches(labels)

    @property
    def reads_namespaces(self) -> bool:
        """Whether the result depends on the labels of namespaces."""
        return bool(self.namespace_selector.requirements)


class AffinityTerm(NamedTuple):
    """A compiled pod affinity or anti-affinity term: the pods that it matches, and the topology key."""

    peers: PeerSelector
    topology_key: str


class Preference(NamedTuple):
    """A preferred pod affinity or anti-affinity term with its weight."""

    weight: int
    term: AffinityTerm


@dataclass(frozen=True, slots=True, weakref_slot=True)
class PodTerms:
    """All pod affinity and anti-affinity terms of a pod, required and preferred."""

    affinity: tuple[AffinityTerm, ...] = ()
    anti_affinity: tuple[AffinityTerm, ...] = ()
    preferred: tuple[Preference, ...] = ()
    preferred_anti: tuple[Preference, ...] = ()
    faults: tuple[str, ...] = ()
    """The errors of invalid terms; an invalid term drops all terms of its kind, such as required affinity."""

    @property
    def fault(self) -> str:
        """All errors of invalid terms as one text; empty without errors."""
        return f"[{', '.join(self.faults)}]" if len(self.faults) > 1 else "".join(self.faults)


class TermKind(IntEnum):
    """The kinds of affinity terms of placed pods, by their effect on an incoming pod."""

    REPELS = 1
    """Required anti-affinity of a placed pod: rejects the nodes in the placed pod's topology domain."""
    REQUIRED = 2
    """Required affinity of a placed pod: adds to the score of nodes in the placed pod's topology domain."""
    PREFERRED = 3
    """Preferred affinity of a placed pod; preferred anti-affinity has a negative weight."""


class ExistingTerm(NamedTuple):
    """An affinity term of a placed pod; its `weight` is 0 unless the term is preferred."""

    sort: TermKind
    weight: int
    term: AffinityTerm


def _stated(pod: Pod) -> tuple[str, PodAffinity | None, PodAffinity | None] | None:
    """Return the namespace, affinity and anti-affinity of a pod, from which its terms are compiled; None without."""
    affinity = pod.spec.affinity
    if affinity is None or (affinity.pod_affinity is None and affinity.pod_anti_affinity is None):
        return None
    return pod.metadata.namespace, affinity.pod_affinity, affinity.pod_anti_affinity


def _terms_of(pod: Pod) -> PodTerms:
    affinity = pod.spec.affinity or Affinity()
    near, away = affinity.pod_affinity or PodAffinity(), affinity.pod_anti_affinity or PodAffinity()
    faults: list[str] = []
    compiler = _TermCompiler(pod.metadata.namespace)

    def compile_terms(sort: str, stated: Iterable[PodAffinityTerm]) -> tuple[AffinityTerm, ...]:
        try:
            return tuple(map(compiler.term, stated))
        except SelectorError as error:
            faults.append(f"{sort}: {error}")
            return ()

    required = compile_terms("requiredAffinityTerms", near.required)
    anti = compile_terms("requiredAntiAffinityTerms", away.required)
    liked = compile_terms("preferredAffinityTerms", (one.pod_affinity_term for one in near.preferred))
    disliked = compile_terms("preferredAntiAffinityTerms", (one.pod_affinity_term for one in away.preferred))
    return PodTerms(
        affinity=required,
        anti_affinity=anti,
        preferred=tuple(Preference(one.weight, term) for one, term in zip(near.preferred, liked, strict=False)),
        preferred_anti=tuple(Preference(one.weight, term) for one, term in zip(away.preferred, disliked, strict=False)),
        faults=tuple(faults),
    )


class _TermCompiler:
    """Compiles the affinity terms of one pod; terms that match the same pods share a selector."""

    __slots__ = ("_before", "_named", "_namespace", "_peers", "_selectors")

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._peers: dict[tuple[int, frozenset[str], int], PeerSelector] = {}
        """The compiled selectors of pods, by namespaces and `id` of the label selectors in `_selectors`."""
        self._selectors: dict[Hashable, LabelMatcher] = {}
        self._named: dict[frozenset[str], frozenset[str]] = {}
        """The sets of namespaces that terms name; equal sets are one object."""
        self._before: tuple[PodAffinityTerm, PeerSelector] | None = None

    def term(self, stated: PodAffinityTerm) -> AffinityTerm:
        """Compile a required affinity or anti-affinity term.

        Raises:
            SelectorError: a selector of the term is invalid.
        """
        of_namespaces = stated.namespace_selector
        if self._before is not None:
            before, peers_before = self._before
            # usually a term differs from the previous one only in its topology key
            if (
                before.label_selector == stated.label_selector
                and before.namespaces == stated.namespaces
                and before.namespace_selector == of_namespaces
            ):
                return AffinityTerm(peers_before, stated.topology_key)
        pods, selector = self._selector(stated.label_selector), self._selector(of_namespaces)
        own = not stated.namespaces and of_namespaces is None
        named = frozenset({self._namespace} if own else stated.namespaces)
        key = id(pods), named, id(selector)
        peers = self._peers.get(key)
        if peers is None:
            named = self._named.setdefault(named, named)
            peers = self._peers[key] = PeerSelector(pods, named, selector)
        self._before = stated, peers
        return AffinityTerm(peers, stated.topology_key)

    def _selector(self, stated: LabelSelector | None) -> LabelMatcher:
        key = selector_key(stated)
        known = self._selectors.get(key)
        if known is None:
            known = self._selectors[key] = compile_selector(stated)
        return known


def _existing_terms_of(pod: Pod) -> Mapping[ExistingTerm, int]:
    terms = pod_terms(pod)
    return Counter(
        [
            *[ExistingTerm(TermKind.REPELS, 0, term) for term in terms.anti_affinity],
            *[ExistingTerm(TermKind.REQUIRED, 0, term) for term in terms.affinity],
            *[ExistingTerm(TermKind.PREFERRED, weight, term) for weight, term in terms.preferred],
            *[ExistingTerm(TermKind.PREFERRED, -weight, term) for weight, term in terms.preferred_anti],
        ]
    )


pod_terms: Final = PodPartCache(_terms_of, _stated, PodTerms())
"""Function that returns the compiled affinity terms of an incoming pod; cached."""
existing_terms: Final = PodPartCache[Mapping[ExistingTerm, int]](_existing_terms_of, _stated, {})
"""Function that returns the affinity terms of a placed pod, each with its number of occurrences; cached."""
