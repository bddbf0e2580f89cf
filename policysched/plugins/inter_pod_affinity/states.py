"""The prepared state of InterPodAffinity for a pod class, at PreFilter and PreScore, and how it is kept up to date.

Knows compiled terms, counters and domains. A state keeps the existing terms about its class itself (`matching_terms`);
what a class states of its own is fixed when it is prepared.

Source: plugins/interpodaffinity/filtering.go and scoring.go, v1.36.
"""

from __future__ import annotations

import numpy as np

from policysched.framework import NO_ROWS, ChangedRow, ChangedRows, Codes, RowNumbers, Rows, Scores
from policysched.plugins.inter_pod_affinity.matching_terms import MatchingExistingTerms
from policysched.plugins.inter_pod_affinity.shared_counts import SharedCounts
from policysched.plugins.inter_pod_affinity.sums import KeyedCounter, WeightedCounter, WeightedSums, renewed
from policysched.plugins.inter_pod_affinity.terms import ResolvedTerms

NEAR, AWAY, REPELLED = 1, 2, 3
"""Reason codes: affinity, anti-affinity of the pod's own, and anti-affinity of placed pods."""


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
        self._near_terms, self._away_terms = near.terms, away
        self._own_nbytes = near.nbytes + away.nbytes
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
            has_terms = bool(self._near_terms or self._away_terms.terms)
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
        "_shared",
        "_sums",
        "_terms",
        "shared_sums",
    )

    def __init__(self, terms: ResolvedTerms, concerning: MatchingExistingTerms, shared: SharedCounts) -> None:
        self._shared = shared
        self._terms = terms
        self._own_nbytes = terms.nbytes
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
        return self._concerning.are_outdated() or self._terms.are_outdated()

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
