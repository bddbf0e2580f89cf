"""The counters and sums of placed pods that the states of all pod classes over one cluster share."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence, Set
from enum import Enum
from itertools import islice
from typing import Final, assert_never

from policysched.framework import Rows
from policysched.model.selection.pod_affinity import AffinityTerm, PodTerms
from policysched.plugins.columns import row_count
from policysched.plugins.inter_pod_affinity.namespaces import Namespaces
from policysched.plugins.inter_pod_affinity.sums import KeyedCounter, WeightedCounter, WeightedSums
from policysched.plugins.inter_pod_affinity.terms import (
    FEW,
    ResolvedPeers,
    ResolvedTerms,
    T,
    WeighedByExistingTerms,
    WeighedByTerms,
    Weighted,
    apart,
    in_portions,
    sizes,
)
from policysched.state.cluster import Cluster
from policysched.state.placed.counter import WIDEST, PodCounter
from policysched.state.placed.existing_terms import ExistingTerms
from policysched.state.placed.pods import PlacedPod
from policysched.state.placed.selector_index import narrowest
from policysched.state.placed.signature_labels import SignatureLabels
from policysched.state.tables.label_columns import Chosen
from policysched.state.tables.nodes import NodeTable

ASKED_AT_ONCE: Final = 8
"""How many terms that a pod has to meet together are asked before it is looked whether any pod is left."""
MOST_LOOKED_AT: Final = 64
"""Of how many such terms it is found out how few pods they may mean."""
Sizes = frozenset[tuple[T, int]]


class TermsOfPod(Enum):
    """Which terms of a pod to place."""

    AFFINITY = "requiredAffinity"
    ANTI_AFFINITY = "requiredAntiAffinity"
    PREFERENCES = "preferred"


class StatedKeys:
    """Which topology keys of the existing terms over one cluster nodes have, and when they become others.

    Nodes get and lose labels all the time that no term is about: these concern no pod class.

    Args:
        terms: The terms.
        nodes: The nodes.
    """

    __slots__ = ("_labels", "_nodes", "_stated", "_terms", "generation", "present")

    def __init__(self, terms: ExistingTerms, nodes: NodeTable) -> None:
        self._terms, self._nodes = terms, nodes
        self._labels = self._stated = -1
        """The generations of nodes' labels and of the keys stated when it was last looked."""
        self.generation = 0
        """Moves when nodes are the first to have a key of terms that there were, or the last to lose it."""
        self.present: Set[str] = frozenset()
        """The keys that are stated and nodes have; some may not be stated any more."""

    def follow(self) -> None:
        """Look which keys nodes have.

        Cost: O(keys that are stated, or labels of all nodes, whichever are fewer) after a key was stated for the first
            time, or a node was the first or last to have a label.
        """
        labels, stated = self._nodes.label_keys_generation, self._terms.topology_keys_generation
        if labels == self._labels and stated == self._stated:
            return
        found = self._nodes.labels_among(self._terms.topology_keys)
        if labels == self._labels:  # terms that are about a new key are new themselves
            self.present |= found
        elif not found <= self.present or self._nodes.labels_among(self.present) != self.present:
            self.present = frozenset(found)
            self.generation += 1
        self._labels, self._stated = labels, stated


class SharedCounts:
    """The pod counters and sums that all states over one cluster share."""

    __slots__ = (
        *("_counters", "_domains", "_namespaces", "_resolved", "_signatures", "_sums"),
        *("existing_terms", "journal", "namespace_changes", "namespace_labels", "nodes", "nominations"),
        "topology_keys",
    )

    def __init__(self, cluster: Cluster) -> None:
        self.existing_terms = cluster.existing_terms
        self.nodes, self.nominations = cluster.nodes, cluster.nominations
        self.journal = cluster.journal
        self._domains, self._sums = cluster.domains, cluster.sums
        self._counters, self._signatures = cluster.counters, cluster.signatures
        self.namespace_labels, self.namespace_changes = cluster.namespaces, cluster.namespace_changes
        self._namespaces = Namespaces(self.namespace_labels, self.namespace_changes)
        self._resolved: weakref.WeakValueDictionary[tuple[int, TermsOfPod], ResolvedTerms] = (
            weakref.WeakValueDictionary()
        )
        """What was resolved of the terms of pods that somebody holds."""
        self.topology_keys = StatedKeys(cluster.existing_terms, cluster.nodes)

    @property
    def signature_count(self) -> int:
        """How many signatures placed pods have, free ones included."""
        return len(self._signatures.present)

    def resolved(self, terms: PodTerms, of: TermsOfPod) -> ResolvedTerms:
        """Resolve the namespaces of some terms of a pod to place, once as long as somebody holds them."""
        key = id(terms), of
        known = self._resolved.get(key)
        if known is not None and known.are_of(terms) and not known.are_outdated():
            return known
        made = ResolvedTerms(terms, self.namespace_labels, self.namespace_changes)
        made.resolve(_weighted(terms, of), self._namespaces)
        self._resolved[key] = made
        return made

    def count(self, rows: Rows) -> int:
        """Count the rows selected."""
        return row_count(self.nodes, rows)

    def matching(self, meant: Iterable[ResolvedPeers]) -> PodCounter:
        """Count by row the pods that all of these mean."""
        wanted = frozenset(meant)

        def counts(placed: PlacedPod) -> bool:
            return all(one.matches(placed.pod) for one in wanted)

        def counts_all(labels: SignatureLabels) -> Chosen:
            labels.prepare(one.pods for one in wanted)
            chosen = labels.present()
            for number, one in enumerate(wanted):
                if number % ASKED_AT_ONCE == 0 and not chosen.any():
                    break
                one.restrict(chosen, labels)
            return chosen

        among = narrowest(one.index_keys for one in islice(wanted, MOST_LOOKED_AT))  # what is meant, all of them mean
        return self._counters.of(("affinity", wanted), counts, among=among, weigh_all=counts_all)

    def stating(self, number: int) -> PodCounter:
        """Count by row how often placed pods state something."""
        existing_terms = self.existing_terms

        def times(placed: PlacedPod) -> int:
            return existing_terms.of_signature(placed.signature).get(number, 0)

        return self._counters.of(("existing term", number), times, among=(number,))

    def parts_of_terms(self, resolved: ResolvedTerms) -> list[KeyedCounter]:
        """Count the pods that terms mean by topology keys that nodes have, with what these add."""
        generation = self.nodes.label_keys_generation
        if resolved.counted is None or resolved.counted[0] != generation:
            resolved.counted = generation, self.count_terms(resolved.terms)
        return resolved.counted[1]

    def count_terms(self, stated: Iterable[Weighted[ResolvedPeers]]) -> list[KeyedCounter]:
        def many(terms: Sizes[ResolvedPeers]) -> PodCounter:
            key = "affinity terms", terms
            if (known := self._counters.get(key)) is not None:
                return known
            weigh = WeighedByTerms(terms)
            weigh_all = weigh.all if sum(weight for _, weight in terms) <= WIDEST else None
            return self._counters.of(key, weigh, among=weigh.index_keys, terms=len(terms), weigh_all=weigh_all)

        def portions(terms: Sequence[Weighted[ResolvedPeers]]) -> Iterable[Sequence[Weighted[ResolvedPeers]]]:
            return in_portions(terms, lambda one: len(one.said.pods.requirements or ()))

        stated = [one for one in stated if self.nodes.has_label(one.key)]
        few = (one.said.pods for alike in apart(stated).values() if len(alike) <= FEW for one in alike)
        held = self._counters.columns(few)
        counted = self._counting(stated, lambda meant: self.matching([meant]), many, portions)
        del held
        return counted

    def parts_of_existing_terms(self, stated: Iterable[Weighted[int]]) -> list[KeyedCounter]:
        """Count how often placed pods make existing terms, given by number, with what these add."""

        def many(made: Sizes[int]) -> PodCounter:
            among = [number for number, _ in made]
            weigh = WeighedByExistingTerms(self.existing_terms, made)
            return self._counters.of(("existing terms", made), weigh, among=among)

        return self._counting(stated, self.stating, many, lambda alike: (alike,))

    def _counting(
        self,
        said: Iterable[Weighted[T]],
        one: Callable[[T], PodCounter],
        many: Callable[[Sizes[T]], PodCounter],
        portions: Callable[[Sequence[Weighted[T]]], Iterable[Sequence[Weighted[T]]]],
    ) -> list[KeyedCounter]:
        """Count what is said by topology keys: a few things each by itself, more some together."""
        parts: list[KeyedCounter] = []
        for (key, sign), alike in apart(said).items():
            if len(alike) <= FEW:
                parts += [(key, WeightedCounter(one(each.said), each.weight)) for each in alike]
                continue
            for some in portions(alike):
                parts.append((key, WeightedCounter(many(sizes(some)), sign)))
        return parts

    def sums(self, parts: Iterable[KeyedCounter]) -> list[WeightedSums]:
        """Sum up parts by topology key."""
        by_key: dict[str, list[WeightedCounter]] = {}
        for key, part in parts:
            by_key.setdefault(key, []).append(part)
        return [WeightedSums(self._domains.of(key), parts, self._sums) for key, parts in by_key.items()]


def _weighted(terms: PodTerms, of: TermsOfPod) -> Iterable[tuple[int, AffinityTerm]]:
    """Return some terms of a pod, each with its weight: 1 where they are required, negative where pods are avoided."""
    match of:
        case TermsOfPod.AFFINITY:
            return [(1, term) for term in terms.affinity]
        case TermsOfPod.ANTI_AFFINITY:
            return [(1, term) for term in terms.anti_affinity]
        case TermsOfPod.PREFERENCES:
            return [*terms.preferred, *((-one.weight, one.term) for one in terms.preferred_anti)]
        case _:
            assert_never(of)
