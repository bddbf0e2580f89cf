"""The affinity terms of a pod to schedule: the placed pods that each term matches, and counters of these pods.

Terms of one topology key share a counter, which evaluates for a placed pod only terms that its labels may match.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from policysched.framework import Cluster
from policysched.model.objects import Pod
from policysched.model.selection.pod_affinity import AffinityTerm, PeerSelector
from policysched.model.selection.selectors import LabelMatcher
from policysched.plugins.inter_pod_affinity.sums import KeyedCounter, WeightedCounter, sign_of, size_of
from policysched.state.namespace_sets import NO_NAMESPACES, NamespaceSet
from policysched.state.placed.counter import WIDEST, PodCounter
from policysched.state.placed.counters import PodCounters
from policysched.state.placed.pods import PlacedPod
from policysched.state.placed.selector_index import (
    MOST,
    MOST_PER_TERM,
    IndexKey,
    index_keys_met,
    index_keys_of_selector,
    narrowest,
)
from policysched.state.placed.signature_labels import SignatureLabels
from policysched.state.tables.label_columns import Chosen

NO_NAMES: Final[frozenset[str]] = frozenset()
_Inside = tuple[NamespaceSet | None, frozenset[str]]
"""The namespaces of matching pods: a set shared by several terms (None for all namespaces), and further namespaces."""


@dataclass(frozen=True, slots=True)
class ResolvedPeers:
    """The selectors of an affinity term, with its namespaceSelector replaced by the namespaces that it matches.

    Attributes:
        pods: The label selector.
        namespaces: The namespaces that the namespaceSelector selects, None for all. Terms share equal sets.
        also: The namespaces that the term names.
    """

    pods: LabelMatcher
    namespaces: NamespaceSet | None
    also: frozenset[str] = NO_NAMES

    def is_in(self, namespace: str) -> bool:
        """Return whether pods of a namespace can match the term."""
        return self.namespaces is None or namespace in self.namespaces or namespace in self.also

    def matches(self, pod: Pod) -> bool:
        """Return whether the term matches a pod."""
        return self.is_in(pod.metadata.namespace) and self.pods.matches(pod.metadata.labels)

    def restrict(self, chosen: Chosen, labels: SignatureLabels) -> None:
        """Remove from a set of pod signatures (numbers of sets of equal pods) those that the term does not match.

        Shapes: chosen (S,).
        """
        labels.within(chosen, self.namespaces, self.also)
        labels.restrict(chosen, self.pods)

    @property
    def index_keys(self) -> list[IndexKey]:
        """The term's keys for an index of pods: every pod that the term matches has at least one of these keys."""
        if self.namespaces is None or len(self.namespaces) + len(self.also) > MOST:
            return index_keys_of_selector(self.pods, None)
        return index_keys_of_selector(self.pods, self.also.union(self.namespaces))


class CountedTerm(NamedTuple):
    """An affinity term with the weight that each matching pod adds to a sum."""

    key: str
    """The topology key of the term."""
    weight: int
    peers: ResolvedPeers


def resolve_peers(
    peers: PeerSelector, selected: Mapping[LabelMatcher, NamespaceSet], *, merges: bool = False
) -> ResolvedPeers:
    """Return a term's selectors, with its namespaceSelector replaced by the namespaces that it matches.

    Args:
        peers: The term's pods.
        selected: The namespaces of each selector that reads labels.
        merges: Whether the selector is evaluated for existing namespaces only. Otherwise it is evaluated with empty
            labels too, so a selector that only excludes selects every namespace.
    """
    selector = peers.namespace_selector
    if selector.selects_everything or (not merges and selector.matches({})):
        return ResolvedPeers(peers.pods, None)
    return ResolvedPeers(peers.pods, selected.get(selector, NO_NAMESPACES), peers.namespaces)


class ResolvedTerms:
    """The affinity terms of a pod to schedule, with the namespaces that their namespaceSelectors match.

    Args:
        stated: The terms, each with what a pod that it matches adds: 1 where it is required.
        cluster: The cluster.
        merges: See `resolve_peers`.

    Attributes:
        terms: The terms.
    """

    __slots__ = ("_cluster", "_position", "_selecting", "terms")

    def __init__(self, stated: Iterable[tuple[int, AffinityTerm]], cluster: Cluster, *, merges: bool) -> None:
        stated = [*stated]
        self._cluster = cluster
        self._position = cluster.namespaces_stamp
        selectors = [term.peers.namespace_selector for _, term in stated if term.peers.reads_namespaces]
        selected = cluster.namespace_sets.select(selectors) if selectors else {}
        resolved: dict[PeerSelector, ResolvedPeers] = {}
        self.terms: list[CountedTerm] = []
        for weight, (peers, key) in stated:
            found = resolved.get(peers)
            if found is None:
                found = resolved[peers] = resolve_peers(peers, selected, merges=merges)
            self.terms.append(CountedTerm(key, weight, found))
        self._selecting = {
            peers.namespace_selector: found.namespaces
            for peers, found in resolved.items()
            if peers.reads_namespaces and found.namespaces is not None
        }
        """The namespaceSelectors that read labels, each with the namespaces that it matches."""

    def are_current(self) -> bool:
        """Return whether the namespaceSelectors still match the same namespaces after changes of namespace labels."""
        cluster = self._cluster
        if self._position == cluster.namespaces_stamp:
            return True
        if self._selecting:
            selected = cluster.namespace_sets.select(self._selecting)
            if any(selected[selector] is not names for selector, names in self._selecting.items()):
                return False
        self._position = cluster.namespaces_stamp
        return True

    def parts(self) -> list[KeyedCounter]:
        """Return topology keys with weighted counters of the pods that terms match, for keys that are node labels."""
        return count_terms(self.terms, self._cluster)

    def count_all(self) -> PodCounter:
        """Return a counter of the placed pods that match all of the terms."""
        return count_matching((one.peers for one in self.terms), self._cluster.counters)


def count_terms(terms: Iterable[CountedTerm], cluster: Cluster) -> list[KeyedCounter]:
    """Return topology keys with weighted counters of the pods that terms match, for keys that are node labels."""
    alike: dict[tuple[str, int], dict[ResolvedPeers, int]] = {}
    for key, weight, peers in terms:
        if cluster.nodes.has_label(key):
            sizes = alike.setdefault((key, sign_of(weight)), {})
            sizes[peers] = sizes.get(peers, 0) + size_of(weight)
    return [(key, WeightedCounter(_count_each(sizes, cluster.counters), sign)) for (key, sign), sizes in alike.items()]


def count_matching(peers: Iterable[ResolvedPeers], counters: PodCounters) -> PodCounter:
    """Return a counter of the placed pods that match all of the given terms."""
    wanted = frozenset(peers)

    def matches(placed: PlacedPod) -> bool:
        return all(one.matches(placed.pod) for one in wanted)

    def matches_all(labels: SignatureLabels) -> Chosen:
        labels.prepare(one.pods for one in wanted)
        chosen = labels.present()
        for one in wanted:
            if not chosen.any():
                break
            one.restrict(chosen, labels)
        return chosen

    among = narrowest(one.index_keys for one in wanted)
    return counters.of(("affinity", wanted), matches, among=among, weigh_all=matches_all)


def _count_each(sizes: Mapping[ResolvedPeers, int], counters: PodCounters) -> PodCounter:
    """Return a counter to which each placed pod adds the weights of the given terms that match the pod."""
    key = "affinity terms", frozenset(sizes.items())
    known = counters.get(key)
    if known is not None:
        return known
    weigh = WeighedByTerms(sizes.items())
    weigh_all = weigh.all if sum(sizes.values()) <= WIDEST else None
    return counters.of(key, weigh, among=weigh.index_keys, terms=len(sizes), weigh_all=weigh_all)


class WeighedByTerms:
    """A function that returns the weight of a placed pod: the sum of the weights of the terms that match the pod.

    Args:
        terms: The terms, each with what a pod that it matches adds.
    """

    __slots__ = ("_by_index_key", "_by_selector", "index_keys")

    def __init__(self, terms: Iterable[tuple[ResolvedPeers, int]]) -> None:
        by_selector: dict[LabelMatcher, dict[_Inside, int]] = {}
        terms = [*terms]
        for peers, weight in terms:
            by_namespaces = by_selector.setdefault(peers.pods, {})
            inside = peers.namespaces, peers.also
            by_namespaces[inside] = by_namespaces.get(inside, 0) + weight
        self._by_selector: Mapping[LabelMatcher, Mapping[_Inside, int]] = by_selector
        self._by_index_key: dict[IndexKey, list[tuple[LabelMatcher, Mapping[_Inside, int]]]] = {}
        for selector, weights in by_selector.items():
            for index_key in index_keys_of_selector(selector, None, MOST_PER_TERM):
                self._by_index_key.setdefault(index_key, []).append((selector, weights))
        self.index_keys: Collection[IndexKey] = self._with_namespaces(peers for peers, _ in terms)
        """All terms' keys for an index of pods; if there are many namespaces, keys without namespaces."""

    def _with_namespaces(self, terms: Iterable[ResolvedPeers]) -> Collection[IndexKey]:
        """Return terms' keys for an index of pods; if there are many namespaces, keys without namespaces."""
        index_keys: dict[IndexKey, None] = {}
        for peers in terms:
            index_keys |= dict.fromkeys(peers.index_keys)
            if len(index_keys) > max(MOST, len(self._by_index_key)):
                return tuple(self._by_index_key)
        return tuple(index_keys)

    def __call__(self, placed: PlacedPod) -> int:
        """Return the weight of a placed pod: the sum of the weights of the terms that match the pod."""
        namespace, labels = placed.pod.metadata.namespace, placed.pod.metadata.labels
        total = 0
        for index_key in index_keys_met(namespace, labels, self._by_index_key):
            for selector, weights in self._by_index_key[index_key]:
                weight = sum(
                    one
                    for (namespaces, also), one in weights.items()
                    if namespaces is None or namespace in namespaces or namespace in also
                )
                if weight and selector.matches(labels):
                    total += weight
        return total

    def all(self, labels: SignatureLabels) -> NDArray[np.int64]:
        """Return the weight of each pod signature (number of a set of equal pods). Shapes: (S,)."""
        labels.prepare(self._by_selector)
        present = labels.present()
        totals: NDArray[np.int64] = np.zeros(present.size, np.int64)
        of_label: dict[_Inside, dict[str, list[tuple[LabelMatcher, int]]]] = {}
        for selector, weights in self._by_selector.items():
            if len(selector.keys) == 1:
                (label,) = selector.keys
                for inside, weight in weights.items():
                    of_label.setdefault(inside, {}).setdefault(label, []).append((selector, weight))
                continue
            chosen = present.copy()
            labels.restrict(chosen, selector)
            for inside, weight in weights.items():
                matched = chosen.copy()
                labels.within(matched, *inside)
                totals[matched] += weight
        for inside, by_its_label in of_label.items():
            added: NDArray[np.int64] = np.zeros(present.size, np.int64)
            added += sum(labels.add_by_label(added, label, weighted) for label, weighted in by_its_label.items())
            matched = present.copy()
            labels.within(matched, *inside)
            totals[matched] += added[matched]
        return totals
