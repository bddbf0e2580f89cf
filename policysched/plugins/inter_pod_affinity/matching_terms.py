"""The existing terms that are about a pod class: of placed pods, counted in blocks, and of nominated ones that come.

What is listed is kept up to date as terms appear, so that a new one costs only the classes that it means.

Source: plugins/interpodaffinity/filtering.go (getExistingAntiAffinityCounts) and scoring.go, v1.36.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from policysched.framework import ChangedRow, ChangedRows, Mask
from policysched.model.objects import Metadata, Pod
from policysched.model.selection.pod_affinity import ExistingTerm, TermKind, pod_terms
from policysched.plugins.inter_pod_affinity.shared_counts import SharedCounts
from policysched.plugins.inter_pod_affinity.sums import KeyedCounter
from policysched.plugins.inter_pod_affinity.terms import Weighted
from policysched.state.nominated.terms import NONE, RepelledClass, RepellingTerms
from policysched.state.placed.pods import PlacedPod
from policysched.state.tables.interner import MISSING

BYTES_PER_EXISTING_TERM = 512
"""The memory that knowing an existing term of placed pods takes. Units: bytes."""
LEAST_TOGETHER, USUALLY_TOGETHER, MOST_TOGETHER = 64, 512, 2048
"""How many existing terms of placed pods are counted together where there are many."""
MOST_GONE = 256
"""How many existing terms that nobody states any more may be listed, beside as many as there are."""
SPREADING, PRIME = 2654435761, 4294967291
"""What spreads the ends of blocks over the numbers of terms."""


class TermBlock:
    """Existing terms that are counted together, so that a new one has only the last few counted anew.

    Where a block ends depends on the numbers in it, so that classes share blocks that list the same terms.
    """

    __slots__ = ("_parts", "stated")

    def __init__(self) -> None:
        self.stated: list[Weighted[int]] = []
        self._parts: list[KeyedCounter] | None = None

    def add(self, one: Weighted[int]) -> None:
        """Put a term with a higher number behind the others."""
        self.stated.append(one)
        self._parts = None

    @property
    def is_full(self) -> bool:
        """Whether the next term begins another block."""
        count = len(self.stated)
        return count >= MOST_TOGETHER or (
            count >= LEAST_TOGETHER and self.stated[-1].said * SPREADING % PRIME < PRIME // USUALLY_TOGETHER
        )

    def parts(self, shared: SharedCounts) -> list[KeyedCounter]:
        """Return what the terms add, by topology key."""
        if self._parts is None:
            self._parts = shared.parts_of_existing_terms(self.stated)
        return self._parts


class MatchingExistingTerms:
    """The affinity terms of placed pods that match one pod class, of the kinds that have a weight."""

    __slots__ = (
        *("__weakref__", "_blocks", "_generation", "_keys", "_known", "_labels", "_labels_seen"),
        *("_nominated", "_pod", "_seen", "_shared", "_weights"),
    )

    def __init__(self, pod: Pod, shared: SharedCounts, weights: Mapping[TermKind, int]) -> None:
        # of the pod no more is kept than what existing terms are about
        self._pod = Pod(metadata=Metadata(namespace=pod.metadata.namespace, labels=pod.metadata.labels))
        self._labels = shared.namespace_labels.get(pod.metadata.namespace, {})
        self._labels_seen = shared.namespace_changes.position
        self._shared = shared
        self._weights = weights
        self._generation = -1
        """That of the topology keys by which terms were chosen."""
        self._keys: Set[str] = frozenset()
        """The topology keys by which they were."""
        self._seen = 0
        """The number of the first term that was not looked at."""
        self._known = 0
        """How many terms are listed."""
        self._blocks: list[TermBlock] = []
        self._nominated = RepelledClass(self._pod)

    @property
    def nbytes(self) -> int:
        """The memory that it takes, what counts the existing terms included. Units: bytes."""
        own = BYTES_PER_EXISTING_TERM * self._known + 128 * len(self._pod.metadata.labels)
        return own + self._nominated.nbytes

    def are_outdated(self) -> bool:
        """Return whether terms that were looked at may be about the class otherwise, by its own namespace's labels.

        Namespaces of other pods do not matter, nor do labels that no term reads.
        """
        shared = self._shared
        if self._labels_seen == shared.namespace_changes.position:
            return False
        labels = shared.namespace_labels.get(self._pod.metadata.namespace, {})
        if labels != self._labels and shared.existing_terms.may_tell_apart(self._labels, labels):
            return True
        # those that appear are asked by the labels there are
        self._labels, self._labels_seen = labels, shared.namespace_changes.position
        return False

    def renew(self) -> bool:
        """Look for new existing terms, and for new topology keys of nodes; tell whether the list is another.

        Cost: O(new existing terms), but all of them when nodes have other ones of the topology keys that are stated.
        """
        terms, generation = self._shared.existing_terms, self._generation
        self._choose_keys()
        if self._generation != generation:
            self._seen = terms.version
            before = [one for block in self._blocks for one in block.stated]
            listed = self._listed(0)
            if listed == before:
                return False
            self._blocks, self._known = [], 0
            self._append(listed)
            return True
        if self._seen == terms.version:
            return False
        added = self._listed(self._seen)
        self._seen = terms.version
        if self._known + len(added) > MOST_GONE + 2 * len(terms):
            known = [one for block in self._blocks for one in block.stated if one.said in terms]
            self._blocks, self._known = [], 0
            self._append(known + added)
            return True
        self._append(added)
        return bool(added)

    def _choose_keys(self) -> None:
        """Take the topology keys that count from here on; those that nodes lose meanwhile count until the next time."""
        keys = self._shared.topology_keys
        keys.follow()
        self._generation, self._keys = keys.generation, keys.present

    def _listed(self, since: int) -> list[Weighted[int]]:
        """List the terms from a number on, in their order."""
        found = self._shared.existing_terms.about(self._pod, self._labels, self._counts, since)
        found.sort(key=itemgetter(0))
        return self._weighted(found)

    def _weighted(self, found: Iterable[tuple[int, ExistingTerm]]) -> list[Weighted[int]]:
        weights = self._weights
        return [Weighted(one.term.topology_key, weights[one.sort] + one.weight, number) for number, one in found]

    def _append(self, stated: Iterable[Weighted[int]]) -> None:
        for one in stated:
            if not self._blocks or self._blocks[-1].is_full:
                self._blocks.append(TermBlock())
            self._blocks[-1].add(one)
            self._known += 1

    def _counts(self, existing: ExistingTerm) -> bool:
        return existing.sort in self._weights and existing.term.topology_key in self._keys

    def repels_on(self, changed: ChangedRow) -> bool:
        """Return whether pods that come to a row, and are like none that is placed, keep the class away from it."""
        return any(map(self._is_repelled_by, changed.new_pods()))

    def repels_on_rows(self, changed: ChangedRows) -> Mask:
        """Return for each row whether such pods that come to it keep the class away.

        Shapes: (R,).
        """
        return changed.repelled(self._repelling)

    def _repelling(self, terms: RepellingTerms) -> Mapping[str, NDArray[np.bool_]]:
        """Return by topology key which of what nominated pods state keeps the class away; others' pods are not kept."""
        shared = self._shared
        kept = self._nominated if terms is shared.nominations.terms else RepelledClass(self._pod)
        return kept.by_key(terms, shared.nodes, self._labels)

    def _is_repelled_by(self, placed: PlacedPod) -> bool:
        nodes, nominations = self._shared.nodes, self._shared.nominations
        number = nominations.repelling_of(placed.pod)
        if number is not None:
            return number != NONE and any(
                meaning[number] and nodes.labels(key)[placed.row] != MISSING
                for key, meaning in self._repelling(nominations.terms).items()
            )
        return any(
            nodes.has_label(term.topology_key)
            and nodes.labels(term.topology_key)[placed.row] != MISSING
            and term.peers.matches(self._pod, self._labels)
            for term in pod_terms(placed.pod).anti_affinity
        )

    def parts(self) -> list[KeyedCounter]:
        """Return what the existing terms add, by topology key; a preference adds its own weight besides."""
        return [part for block in self._blocks for part in block.parts(self._shared)]
