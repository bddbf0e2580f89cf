"""`MatchingExistingTerms`: the affinity terms of placed and nominated pods that match one class of equal pods.

Source: plugins/interpodaffinity/filtering.go (getExistingAntiAffinityCounts) and scoring.go, v1.36.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from policysched.framework import ChangedRow, ChangedRows, Cluster, Mask
from policysched.model.objects import Metadata, Pod
from policysched.model.selection.pod_affinity import ExistingTerm, TermKind, pod_terms
from policysched.plugins.inter_pod_affinity.sums import KeyedCounter, WeightedCounter, sign_of, size_of
from policysched.state.nominated.terms import NONE, RepelledClass, RepellingTerms
from policysched.state.placed.counter import PodCounter
from policysched.state.placed.pods import PlacedPod
from policysched.state.tables.interner import MISSING

BYTES_PER_EXISTING_TERM: Final = 512
"""Memory for each term of a placed pod that matches a class of equal pods. Units: bytes."""
TERMS_PER_BLOCK: Final = 512
"""Number of consecutively numbered terms that share a pod counter; a new term recomputes the counter."""
MOST_GONE: Final = 256
"""Terms of deleted pods are dropped if a class of pods stores more than twice all existing terms plus this number."""


class _Block(NamedTuple):
    """The topology key, sign and numbers of those terms of placed pods that share a pod counter."""

    key: str
    """The topology key that the terms share."""
    sign: int
    """1 if the terms raise a score or reject a pod; −1 if they lower a score; 0 if they have weight 0."""
    number: int
    """The number of each term, divided by `TERMS_PER_BLOCK` and rounded down."""


class MatchingExistingTerms:
    """The affinity terms of placed pods, of kinds such as required anti-affinity, that match a class of equal pods.

    Args:
        pod: A pod of the class. Only its namespace and labels are kept.
        cluster: The cluster.
        weights: The kinds, each with what a term of it adds; a preference adds its own weight besides.
    """

    __slots__ = (
        *("_blocks", "_cluster", "_counters", "_known", "_labels", "_labels_position", "_nominated", "_pod", "_seen"),
        "_weights",
    )

    def __init__(self, pod: Pod, cluster: Cluster, weights: Mapping[TermKind, int]) -> None:
        self._pod = Pod(metadata=Metadata(namespace=pod.metadata.namespace, labels=pod.metadata.labels))
        self._cluster = cluster
        self._weights = weights
        self._labels = cluster.namespaces.get(pod.metadata.namespace, {})
        """The labels of the namespace of the class of pods."""
        self._labels_position = cluster.namespaces_stamp
        self._seen = 0
        """The number of the first term of a placed pod that was not evaluated yet."""
        self._blocks: dict[_Block, dict[int, int]] = {}
        """The matching terms by block: the number of each term, with the absolute value of its weight."""
        self._counters: dict[_Block, PodCounter] = {}
        self._known = 0
        """The number of terms in all blocks."""
        self._nominated = RepelledClass(self._pod)

    @property
    def nbytes(self) -> int:
        """The memory of the matching terms, and of the evaluated terms of nominated pods. Units: bytes."""
        return BYTES_PER_EXISTING_TERM * self._known + self._nominated.nbytes

    def are_current(self) -> bool:
        """Return False if changed labels of the namespace of the class of pods may change which terms match."""
        cluster = self._cluster
        if self._labels_position == cluster.namespaces_stamp:
            return True
        labels = cluster.namespaces.get(self._pod.metadata.namespace, {})
        if labels != self._labels and cluster.existing_terms.read_any(self._labels, labels):
            return False
        self._labels, self._labels_position = labels, cluster.namespaces_stamp
        return True

    def refresh(self) -> bool:
        """Evaluate new affinity terms of placed pods; return whether the terms that match the class of pods changed.

        Cost: O(new existing terms).
        """
        terms = self._cluster.existing_terms
        if self._seen == terms.next_number:
            return False
        added = terms.about(self._pod, self._labels, self._has_weight, self._seen)
        self._seen = terms.next_number
        are_many_gone = self._known + len(added) > MOST_GONE + 2 * len(terms)
        if are_many_gone:
            self._forget_gone()
        for number, one in added:
            weight = self._weights[one.sort] + one.weight
            block = _Block(one.term.topology_key, sign_of(weight), number // TERMS_PER_BLOCK)
            self._blocks.setdefault(block, {})[number] = size_of(weight)
            self._counters.pop(block, None)
        self._known += len(added)
        return bool(added) or are_many_gone

    def parts(self) -> list[KeyedCounter]:
        """Return the topology keys and weighted counters of the matching terms, for keys that nodes have as labels."""
        parts: list[KeyedCounter] = []
        for block, sizes in self._blocks.items():
            if not self._cluster.nodes.has_label(block.key):
                self._counters.pop(block, None)
                continue
            counter = self._counters.get(block)
            if counter is None:
                counter = self._counters[block] = _count_statements(self._cluster, sizes)
            parts.append((block.key, WeightedCounter(counter, block.sign)))
        return parts

    def repels_on(self, changed: ChangedRow) -> bool:
        """Return whether required anti-affinity of pods added to a simulated node rejects the class of pods."""
        return any(map(self._is_repelled_by, changed.new_pods()))

    def repels_on_rows(self, changed: ChangedRows) -> Mask:
        """Return for each simulated node whether anti-affinity of pods added to the node rejects the class of pods.

        Shapes: (R,).
        """
        return changed.repelled(self._repelling)

    def _has_weight(self, existing: ExistingTerm) -> bool:
        return existing.sort in self._weights

    def _forget_gone(self) -> None:
        terms = self._cluster.existing_terms
        for block, sizes in [*self._blocks.items()]:
            kept = {number: size for number, size in sizes.items() if number in terms}
            if len(kept) < len(sizes):
                self._counters.pop(block, None)
                self._blocks[block] = kept
            if not kept:
                del self._blocks[block]
        self._known = sum(map(len, self._blocks.values()))

    def _repelling(self, terms: RepellingTerms) -> Mapping[str, NDArray[np.bool_]]:
        """Return by topology key which anti-affinity terms of nominated pods reject the class of pods."""
        cluster = self._cluster
        known = self._nominated if terms is cluster.nominations.terms else RepelledClass(self._pod)
        return known.by_key(terms, cluster.nodes, self._labels)

    def _is_repelled_by(self, placed: PlacedPod) -> bool:
        nodes, nominations = self._cluster.nodes, self._cluster.nominations
        number = nominations.repelling_of(placed.pod)
        if number is not None:
            return number != NONE and any(
                repelling[number] and nodes.labels(key)[placed.row] != MISSING
                for key, repelling in self._repelling(nominations.terms).items()
            )
        return any(
            nodes.has_label(term.topology_key)
            and nodes.labels(term.topology_key)[placed.row] != MISSING
            and term.peers.matches(self._pod, self._labels)
            for term in pod_terms(placed.pod).anti_affinity
        )


def _count_statements(cluster: Cluster, sizes: Mapping[int, int]) -> PodCounter:
    """Return a pod counter in which each placed pod counts the weights of those of its terms that are in `sizes`."""
    existing_terms = cluster.existing_terms
    sizes = dict(sizes)

    def weigh(placed: PlacedPod) -> int:
        stated = existing_terms.of_signature(placed.signature)
        if len(sizes) < len(stated):
            return sum(stated.get(number, 0) * size for number, size in sizes.items())
        return sum(times * sizes.get(number, 0) for number, times in stated.items())

    return cluster.counters.of(("existing terms", frozenset(sizes.items())), weigh, among=[*sizes])
