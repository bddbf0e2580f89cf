"""The prepared state of InterPodAffinity for a pod class, at PreFilter and PreScore, and how it is kept up to date.

Knows compiled terms, counters and domains. A state lists the existing terms of placed pods about its class itself, so
that new ones concern only the classes they mean; what a class states of its own is fixed when it is prepared.

Source: plugins/interpodaffinity/filtering.go and scoring.go, v1.36.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Iterable, Mapping
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from policysched.framework import NO_ROWS, ChangedRow, ChangedRows, Codes, Mask, RowNumbers, Rows, Scores
from policysched.model.objects import Metadata, Pod
from policysched.model.selection.pod_affinity import AffinityTerm, ExistingTerm, TermKind, pod_terms
from policysched.pausing import Pausing
from policysched.plugins.columns import row_count
from policysched.plugins.inter_pod_affinity.sums import WeightedCounter, WeightedSums, renewed
from policysched.plugins.inter_pod_affinity.terms import (
    FEW,
    Namespaces,
    ResolvedPeers,
    ResolvedTerms,
    T,
    WeighedByExistingTerms,
    WeighedByTerms,
    Weighted,
    apart,
    sizes,
    terms_nbytes,
)
from policysched.state.cluster import Cluster
from policysched.state.nominated.terms import NONE, RepelledClass, RepellingTerms
from policysched.state.placed.counters import PodCounter
from policysched.state.placed.existing_terms import TERMS_PER_PIECE
from policysched.state.placed.pods import PlacedPod
from policysched.state.placed.selector_index import narrowest
from policysched.state.tables.interner import MISSING

KeyedCounter = tuple[str, WeightedCounter]
"""A topology key and what is summed up over its domains."""
BYTES_PER_EXISTING_TERM = 512
"""The memory that knowing an existing term of placed pods takes. Units: bytes."""
LEAST_TOGETHER, USUALLY_TOGETHER, MOST_TOGETHER = 64, 512, 2048
"""How many existing terms of placed pods are counted together where there are many."""
MOST_GONE = 256
"""How many existing terms that nobody states any more may be listed, beside as many as there are."""
SPREADING, PRIME = 2654435761, 4294967291
"""What spreads the ends of blocks over the numbers of terms."""
Sizes = frozenset[tuple[T, int]]
NEAR, AWAY, REPELLED = 1, 2, 3
"""Reason codes: affinity, anti-affinity of the pod's own, and anti-affinity of placed pods."""


class SharedCounts:
    """The pod counters and sums that all states over one cluster share."""

    __slots__ = (
        *("__weakref__", "_counters", "_domains", "_listed_ahead", "_namespaces", "_sums"),
        *("existing_terms", "journal", "namespace_changes", "namespace_labels", "nodes"),
        "nominations",
    )

    def __init__(self, cluster: Cluster) -> None:
        self.existing_terms = cluster.existing_terms
        self.nodes, self.nominations = cluster.nodes, cluster.nominations
        self.journal = cluster.journal
        self._domains, self._sums = cluster.domains, cluster.sums
        self._counters = cluster.counters
        self.namespace_labels, self.namespace_changes = cluster.namespaces, cluster.namespace_changes
        self._namespaces = Namespaces(self.namespace_labels, self.namespace_changes)
        self._listed_ahead: weakref.WeakValueDictionary[Hashable, MatchingExistingTerms] = weakref.WeakValueDictionary()

    def listing_ahead(self, pod: Pod, weights: Mapping[TermKind, int]) -> Pausing[MatchingExistingTerms]:
        """List and count the existing terms about a pod in pieces, for the state that is made next for its class."""
        made = MatchingExistingTerms(pod, self, weights)
        yield from made.listing()
        self._listed_ahead[_what_terms_are_about(pod, weights)] = made
        return made

    def existing_terms_about(self, pod: Pod, weights: Mapping[TermKind, int]) -> MatchingExistingTerms:
        """Return the existing terms about a pod: what was listed ahead, or what lists them when it is renewed."""
        ahead = self._listed_ahead.pop(_what_terms_are_about(pod, weights), None) if self._listed_ahead else None
        if ahead is not None and not ahead.are_outdated():
            return ahead
        return MatchingExistingTerms(pod, self, weights)

    def resolved(self, terms: Iterable[tuple[int, AffinityTerm]]) -> ResolvedTerms:
        """Resolve the namespaces of terms of a pod to place, each with its weight."""
        return ResolvedTerms(terms, self._namespaces, self.namespace_labels, self.namespace_changes)

    def count(self, rows: Rows) -> int:
        """Count the rows selected."""
        return row_count(self.nodes, rows)

    def matching(self, meant: Iterable[ResolvedPeers]) -> PodCounter:
        """Count by row the pods that all of these mean."""
        wanted = frozenset(meant)

        def counts(placed: PlacedPod) -> bool:
            return all(one.matches(placed.pod) for one in wanted)

        among = narrowest(one.index_keys for one in wanted)
        return self._counters.of(("affinity", wanted), counts, among=among)

    def stating(self, number: int) -> PodCounter:
        """Count by row how often placed pods state something."""
        existing_terms = self.existing_terms

        def times(placed: PlacedPod) -> int:
            return existing_terms.of_signature(placed.signature).get(number, 0)

        return self._counters.of(("existing term", number), times, among=(number,))

    def parts_of_terms(self, stated: Iterable[Weighted[ResolvedPeers]]) -> list[KeyedCounter]:
        """Count the pods that terms mean, with what these add."""

        def many(terms: Sizes[ResolvedPeers]) -> PodCounter:
            weigh = WeighedByTerms(terms)
            return self._counters.of(("affinity terms", terms), weigh, among=weigh.index_keys, terms=len(terms))

        return self._parts(stated, lambda meant: self.matching([meant]), many)

    def parts_of_existing_terms(self, stated: Iterable[Weighted[int]]) -> list[KeyedCounter]:
        """Count how often placed pods make existing terms, given by number, with what these add."""

        def many(made: Sizes[int]) -> PodCounter:
            among = [number for number, _ in made]
            weigh = WeighedByExistingTerms(self.existing_terms, made)
            return self._counters.of(("existing terms", made), weigh, among=among)

        return self._parts(stated, self.stating, many)

    def _parts(
        self, said: Iterable[Weighted[T]], one: Callable[[T], PodCounter], many: Callable[[Sizes[T]], PodCounter]
    ) -> list[KeyedCounter]:
        """Count what is said by topology keys that nodes have: a few things each by itself, many together."""
        parts: list[KeyedCounter] = []
        for (key, sign), alike in apart(said).items():
            if not self.nodes.has_label(key):
                continue
            if len(alike) <= FEW:
                parts += [(key, WeightedCounter(one(each.said), each.weight)) for each in alike]
            else:
                parts.append((key, WeightedCounter(many(sizes(alike)), sign)))
        return parts

    def sums(self, parts: Iterable[KeyedCounter]) -> list[WeightedSums]:
        """Sum up parts by topology key."""
        by_key: dict[str, list[WeightedCounter]] = {}
        for key, part in parts:
            by_key.setdefault(key, []).append(part)
        return [WeightedSums(self._domains.of(key), parts, self._sums) for key, parts in by_key.items()]


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
        *("__weakref__", "_blocks", "_generation", "_is_news", "_known", "_labels", "_labels_seen"),
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
        """That of nodes' label keys by which terms were chosen."""
        self._seen = 0
        """The number of the first term that was not looked at."""
        self._known = 0
        """How many terms are listed."""
        self._is_news = False
        """Whether they were listed ahead of the first question."""
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

    def listing(self) -> Pausing[None]:
        """List and count the terms that there are, pausing after so many; `renew` catches up with what changed."""
        terms = self._shared.existing_terms
        self._generation, self._seen = self._shared.nodes.label_keys_generation, terms.version
        found = yield from terms.listing(self._pod, self._labels, self._counts)
        found.sort(key=itemgetter(0))
        for start in range(0, len(found), TERMS_PER_PIECE):
            self._append(self._weighted(found[start : start + TERMS_PER_PIECE]))
            yield
        looked = 0
        for block in self._blocks:
            block.parts(self._shared)
            looked += len(block.stated)
            if looked >= TERMS_PER_PIECE:
                looked = 0
                yield
        self._is_news = bool(self._blocks)
        if TermKind.REPELS in self._weights:
            yield from self._nominated.renewing(self._shared.nominations.terms, self._shared.nodes, self._labels)

    def renew(self) -> bool:
        """Look for new existing terms, and for new topology keys of nodes; tell whether the list is another.

        Cost: O(new existing terms), but all of them when nodes have other topology keys.
        """
        is_news, self._is_news = self._is_news, False
        return self._renewed() or is_news

    def _renewed(self) -> bool:
        terms, generation = self._shared.existing_terms, self._shared.nodes.label_keys_generation
        if self._generation != generation:
            self._generation, self._seen = generation, terms.version
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
        return existing.sort in self._weights and self._shared.nodes.has_label(existing.term.topology_key)

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


def _what_terms_are_about(pod: Pod, weights: Mapping[TermKind, int]) -> Hashable:
    return pod.metadata.namespace, frozenset(pod.metadata.labels.items()), frozenset(weights.items())


class RequiredState:
    """Where a pod may go.

    Args:
        near: what its required affinity means, by topology key: pods that all of it means.
        away: what its required anti-affinity means, by topology key.
        concerning: what placed pods state about it.
        shared: what all states share.
        may_be_first: whether it meets its own affinity, so that the first of a group is not kept out.
    """

    __slots__ = (
        *("_away", "_away_terms", "_concerning", "_generation", "_first", "_judged", "_may_be_first", "_near"),
        *("_near_terms", "_nowhere", "_own_nbytes", "_position", "_repelling", "_resolved", "_shared", "_skips"),
    )

    def __init__(
        self,
        near: ResolvedTerms,
        away: ResolvedTerms,
        concerning: MatchingExistingTerms,
        shared: SharedCounts,
        *,
        may_be_first: bool,
    ) -> None:
        self._shared = shared
        self._resolved = near, away
        self._near_terms, self._away_terms = near.terms, away.terms
        self._own_nbytes = terms_nbytes((*near.terms, *away.terms))
        self._near: list[WeightedSums] = []
        self._away: list[WeightedSums] = []
        self._nowhere = False
        """Whether it needs to be near by a topology key that no node has."""
        self._generation = -1
        self._concerning = concerning
        self._repelling: list[WeightedSums] = []
        self._may_be_first = may_be_first
        self._first = False
        self._judged = slice(0, 0)
        self._position = -1
        self._skips: bool | None = None
        """Whether kube-scheduler's PreFilter skips; None where that is not found out yet."""

    def renew(self, changed: RowNumbers) -> Rows:
        """Catch up; give the rows that may be judged otherwise now."""
        if self._position == self._shared.journal.position:
            return NO_ROWS
        self._position, self._skips = self._shared.journal.position, None
        other = self._concerning.renew()
        if other:
            self._repelling = self._shared.sums(self._concerning.parts())
        if self._generation != self._shared.nodes.label_keys_generation:
            self._renew_terms()
            other = True
        reached = renewed((*self._near, *self._away, *self._repelling), changed, signs=True)
        first = self._may_be_first and not any(sums.counts_any() for sums in self._near)
        # a row that was never in use was never judged, and affinity rejects even rows without any label
        everything = slice(0, self._shared.nodes.size)
        other |= first is not self._first or self._judged != everything
        self._first, self._judged = first, everything
        return self._judged if other else reached

    def is_outdated(self) -> bool:
        """Return whether labels of namespaces changed so that other pods, or other terms, may matter to the class."""
        return self._concerning.are_outdated() or any(one.are_outdated() for one in self._resolved)

    def _renew_terms(self) -> None:
        """Look which terms are about topology keys that nodes have."""
        shared, near = self._shared, self._near_terms
        self._generation = shared.nodes.label_keys_generation
        self._away = shared.sums(shared.parts_of_terms(self._away_terms))
        keys = sorted({one.key for one in near})
        self._nowhere = not all(map(shared.nodes.has_label, keys))
        together = shared.matching(one.said for one in near) if keys and not self._nowhere else None
        self._near = [] if together is None else shared.sums((key, WeightedCounter(together, 1)) for key in keys)

    @property
    def nbytes(self) -> int:
        """The memory that it takes. Units: bytes."""
        return self._own_nbytes + self._concerning.nbytes + _nbytes(*self._near, *self._away, *self._repelling)

    def judge(self, rows: Rows) -> Codes:
        """Return the reason codes of rows, of several the one that kube-scheduler names."""
        if self._nowhere:
            return np.full(self._shared.count(rows), NEAR, np.int32)
        codes: Codes = np.zeros(self._shared.count(rows), np.int32)
        for sums in self._repelling:
            codes[sums.of(rows) > 0] = REPELLED
        for sums in self._away:
            codes[sums.of(rows) > 0] = AWAY
        for sums in self._near:
            codes[~sums.labelled(rows) if self._first else sums.of(rows) <= 0] = NEAR
        return codes

    def _is_skipped(self) -> bool:
        """Return whether kube-scheduler's PreFilter skips: it has no terms, and no pod that is placed keeps it away.

        Pods that come are not looked at then, as nominated ones with anti-affinity.
        """
        if self._skips is None:
            has_terms = bool(self._near_terms or self._away_terms)
            self._skips = not has_terms and not any(sums.counts_any() for sums in self._repelling)
        return self._skips

    def on(self, changed: ChangedRow) -> int:
        """Return the reason code of a row if other pods were on it, 0 where the pod could go there."""
        if self._nowhere:
            return NEAR
        if self._is_skipped():
            return 0
        if self._near:
            first = self._may_be_first and not any(sums.counts_any_on(changed) for sums in self._near)
            row = slice(changed.row, changed.row + 1)
            if any(not sums.labelled(row)[0] if first else sums.on(changed) <= 0 for sums in self._near):
                return NEAR
        if any(sums.on(changed) > 0 for sums in self._away):
            return AWAY
        repelled = any(sums.on(changed) > 0 for sums in self._repelling)
        return REPELLED if repelled or self._concerning.repels_on(changed) else 0

    def on_rows(self, changed: ChangedRows) -> Codes | None:
        """Return the reason code of each row if other pods were on it, None where they have to be asked one by one.

        Shapes: (R,).
        """
        if self._nowhere:
            return np.full(changed.rows.size, NEAR, np.int32)
        if self._is_skipped():
            return np.zeros(changed.rows.size, np.int32)
        if not all(sums.tells(changed) for sums in (*self._near, *self._away, *self._repelling)):
            return None
        codes: Codes = np.where(self._concerning.repels_on_rows(changed), REPELLED, 0).astype(np.int32)
        for sums in self._repelling:
            codes[sums.on_rows(changed) > 0] = REPELLED
        for sums in self._away:
            codes[sums.on_rows(changed) > 0] = AWAY
        first = np.full(changed.rows.size, self._may_be_first)
        for sums in self._near if self._may_be_first else ():
            first &= ~sums.count_any_on_rows(changed)
        for sums in self._near:
            codes[np.where(first, ~sums.labelled(changed.rows), sums.on_rows(changed) <= 0)] = NEAR
        return codes


class PreferredState:
    """Where a pod, and the pods that are placed, would like it to go.

    Args:
        terms: what its preferences mean and what each pod of these adds, by topology key.
        concerning: what placed pods state about it.
        shared: what all states share.
    """

    __slots__ = (
        "_concerning",
        "_generation",
        "_own",
        "_own_nbytes",
        "_position",
        "_resolved",
        "_shared",
        "_sums",
        "_terms",
        "shared_sums",
    )

    def __init__(self, terms: ResolvedTerms, concerning: MatchingExistingTerms, shared: SharedCounts) -> None:
        self._shared = shared
        self._resolved, self._terms = terms, terms.terms
        self._own_nbytes = terms_nbytes(terms.terms)
        self._own: list[KeyedCounter] = []
        self._concerning = concerning
        self._sums: list[WeightedSums] = []
        self._position = self._generation = -1
        self.shared_sums: WeightedSums | None = None
        """All that matters, where that is one label whose values rows share: scores are known by domain then."""

    def renew(self, changed: RowNumbers) -> Rows:
        """Catch up; give the rows whose scores may be others now."""
        if self._position == self._shared.journal.position:
            return NO_ROWS
        self._position = self._shared.journal.position
        other = self._concerning.renew()
        if self._generation != self._shared.nodes.label_keys_generation:
            self._generation, other = self._shared.nodes.label_keys_generation, True
            self._own = self._shared.parts_of_terms(self._terms)
        if other:
            self._sums = self._shared.sums((*self._own, *self._concerning.parts()))
        reached = renewed(self._sums, changed, signs=False)
        before = self.shared_sums
        self.shared_sums = self._sums[0] if len(self._sums) == 1 and self._sums[0].by_domain else None
        if other or self.shared_sums is not before:
            return slice(0, self._shared.nodes.size)
        return reached if before is None else NO_ROWS

    def is_outdated(self) -> bool:
        """Return whether labels of namespaces changed so that other pods, or other terms, may matter to the class."""
        return self._concerning.are_outdated() or self._resolved.are_outdated()

    def score(self, rows: Rows) -> Scores:
        """Add up what the pods around each row add; where scores are known by domain, mark that there are any."""
        if self.shared_sums is not None:
            return np.ones(self._shared.count(rows), np.int64)
        if not self._sums:
            return np.zeros(self._shared.count(rows), np.int64)
        scores: Scores = self._sums[0].of(rows)
        for sums in self._sums[1:]:
            scores += sums.of(rows)
        return scores

    @property
    def nbytes(self) -> int:
        """The memory that it takes. Units: bytes."""
        return self._own_nbytes + self._concerning.nbytes + _nbytes(*self._sums)

    @property
    def idle(self) -> bool:
        """Whether no placed pod has anything to do with the class."""
        return not any(sums.counts_any() for sums in self._sums)


def _nbytes(*all_sums: WeightedSums) -> int:
    return sum(sums.nbytes for sums in all_sums)
