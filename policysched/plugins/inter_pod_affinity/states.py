"""InterPodAffinity's states for a class of equal pods: `RequiredState` of the filter, `PreferredState` of the score.

The own terms of a class are resolved when its state is prepared. Existing terms and sums are refreshed before each
evaluation.

Source: plugins/interpodaffinity/filtering.go and scoring.go, v1.36.
"""

from __future__ import annotations

import numpy as np

from policysched.framework import NO_ROWS, ChangedRow, ChangedRows, Cluster, Codes, RowNumbers, Rows, Scores, SizedState
from policysched.plugins.columns import row_count
from policysched.plugins.inter_pod_affinity.matching_terms import MatchingExistingTerms
from policysched.plugins.inter_pod_affinity.sums import (
    KeyedCounter,
    WeightedCounter,
    WeightedSums,
    refresh_all,
    sums_by_key,
)
from policysched.plugins.inter_pod_affinity.terms import ResolvedTerms
from policysched.state.placed.pods import PlacedPod

NEAR, AWAY, REPELLED = 1, 2, 3
"""Reason codes: the pod's affinity, the pod's anti-affinity, or anti-affinity of placed pods rejects the node."""


class RequiredState(SizedState):
    """The filter's state for a class of equal pods: which nodes required affinity and anti-affinity allow.

    Args:
        affinity: Its required affinity: a pod has to match all of these terms.
        anti_affinity: Its required anti-affinity.
        existing: The anti-affinity of placed pods that matches it.
        cluster: The cluster.
        may_be_first: Whether the pod matches its own affinity, so that the first pod of a group is not rejected.
    """

    __slots__ = (
        *("_affinity", "_anti_affinity", "_away", "_cluster", "_existing", "_first", "_stamp", "_evaluated"),
        *("_may_be_first", "_near", "_nowhere", "_position", "_repelling", "_skips"),
    )

    def __init__(
        self,
        affinity: ResolvedTerms,
        anti_affinity: ResolvedTerms,
        existing: MatchingExistingTerms,
        cluster: Cluster,
        *,
        may_be_first: bool,
    ) -> None:
        self._cluster = cluster
        self._affinity, self._anti_affinity, self._existing = affinity, anti_affinity, existing
        self._near: list[WeightedSums] = []
        self._away: list[WeightedSums] = []
        self._repelling: list[WeightedSums] = []
        self._nowhere = False
        """Whether the pod's affinity has a topology key that no node has as label."""
        self._stamp = -1
        """The value of the nodes' `label_keys_stamp` when the sums were set up."""
        self._may_be_first = may_be_first
        self._first = False
        self._evaluated = slice(0, 0)
        self._position = -1
        self._skips: bool | None = None
        """Whether kube-scheduler's PreFilter returns Skip for the class of pods; None if that is not computed yet."""

    def refresh(self, changed: RowNumbers) -> Rows:
        """Update the sums of matching pods; return the nodes whose reason codes may have changed."""
        cluster = self._cluster
        if self._position == cluster.journal.position:
            return NO_ROWS
        self._position, self._skips = cluster.journal.position, None
        other = self._existing.refresh()
        if self._stamp != cluster.nodes.label_keys_stamp:
            self._stamp, other = cluster.nodes.label_keys_stamp, True
            self._sum_own()
        if other:
            self._repelling = sums_by_key(self._existing.parts(), cluster)
        reached = refresh_all((*self._near, *self._away, *self._repelling), changed, signs=True)
        first = self._may_be_first and not any(sums.counts_any() for sums in self._near)
        # new rows have no code yet, and affinity rejects even rows without any label
        everything = slice(0, cluster.nodes.size)
        other |= first is not self._first or self._evaluated != everything
        self._first, self._evaluated = first, everything
        return self._evaluated if other else reached

    def is_current(self) -> bool:
        """Return whether the state's terms match the same pods after changes of namespace labels."""
        return all(one.are_current() for one in (self._existing, self._affinity, self._anti_affinity))

    def _sum_own(self) -> None:
        """Set up sums of the placed pods that the pod's terms match, for topology keys that nodes have as labels."""
        cluster = self._cluster
        self._away = sums_by_key(self._anti_affinity.parts(), cluster)
        keys = sorted({one.key for one in self._affinity.terms})
        self._nowhere = not all(map(cluster.nodes.has_label, keys))
        if not keys or self._nowhere:
            self._near = []
            return
        matched = WeightedCounter(self._affinity.count_all(), 1)
        self._near = sums_by_key(((key, matched) for key in keys), cluster)

    def counts(self, placed: PlacedPod) -> bool:
        """Return whether a placed pod is counted in any of the sums."""
        return any(sums.counts(placed) for sums in (*self._near, *self._away, *self._repelling))

    def memory(self, rows: int) -> int:
        """Estimate the memory of the state, whose arrays have `rows` elements. Units: bytes."""
        sums = sum(one.memory(rows) for one in (*self._near, *self._away, *self._repelling))
        return self._existing.nbytes + sums

    def codes(self, rows: Rows) -> Codes:
        """Return the reason codes of nodes; of several reasons, the reason that kube-scheduler reports."""
        if self._nowhere:
            return np.full(row_count(self._cluster.nodes, rows), NEAR, np.int32)
        codes: Codes = np.zeros(row_count(self._cluster.nodes, rows), np.int32)
        for sums in self._repelling:
            codes[sums.of(rows) > 0] = REPELLED
        for sums in self._away:
            codes[sums.of(rows) > 0] = AWAY
        for sums in self._near:
            codes[~sums.labelled(rows) if self._first else sums.of(rows) <= 0] = NEAR
        return codes

    def _is_skipped(self) -> bool:
        """Return whether kube-scheduler's PreFilter skips: the pod has no terms, and no placed pod's term rejects it.

        Nominated pods with anti-affinity do not reject it then either.
        """
        if self._skips is None:
            has_terms = bool(self._affinity.terms or self._anti_affinity.terms)
            self._skips = not has_terms and not any(sums.counts_any() for sums in self._repelling)
        return self._skips

    def on(self, changed: ChangedRow) -> int:
        """Return the reason code of a simulated node; 0 if the pod fits."""
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
        return REPELLED if repelled or self._existing.repels_on(changed) else 0

    def on_rows(self, changed: ChangedRows) -> Codes | None:
        """Return the reason codes (0 accepts) of simulated nodes; None if nodes can only be evaluated one by one.

        Shapes: (R,).
        """
        if self._nowhere:
            return np.full(changed.rows.size, NEAR, np.int32)
        if self._is_skipped():
            return np.zeros(changed.rows.size, np.int32)
        sums_of_all = (*self._near, *self._away, *self._repelling)
        if (changed.reaches_others and sums_of_all) or not all(sums.tells(changed) for sums in sums_of_all):
            return None
        codes: Codes = np.where(self._existing.repels_on_rows(changed), REPELLED, 0).astype(np.int32)
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


class PreferredState(SizedState):
    """The score's state for a class of equal pods: how much preferences of these and of placed pods favor each node.

    Args:
        preferences: The preferences of the pod.
        existing: The terms of placed pods that match it.
        cluster: The cluster.
    """

    __slots__ = ("_cluster", "_existing", "_own", "_position", "_preferences", "_stamp", "_sums")

    def __init__(self, preferences: ResolvedTerms, existing: MatchingExistingTerms, cluster: Cluster) -> None:
        self._cluster = cluster
        self._preferences, self._existing = preferences, existing
        self._own: list[KeyedCounter] = []
        self._sums: list[WeightedSums] = []
        self._position = self._stamp = -1

    def refresh(self, changed: RowNumbers) -> Rows:
        """Update the sums of matching pods; return the nodes whose scores may have changed."""
        cluster = self._cluster
        if self._position == cluster.journal.position:
            return NO_ROWS
        self._position = cluster.journal.position
        other = self._existing.refresh()
        if self._stamp != cluster.nodes.label_keys_stamp:
            self._stamp, other = cluster.nodes.label_keys_stamp, True
            self._own = self._preferences.parts()
        if other:
            self._sums = sums_by_key((*self._own, *self._existing.parts()), cluster)
        reached = refresh_all(self._sums, changed, signs=False)
        return slice(0, cluster.nodes.size) if other else reached

    def is_current(self) -> bool:
        """Return whether the state's terms match the same pods after changes of namespace labels."""
        return self._existing.are_current() and self._preferences.are_current()

    def score(self, rows: Rows) -> Scores:
        """Return for each node the sum of the weights of matching pods in its topology domains."""
        if not self._sums:
            return np.zeros(row_count(self._cluster.nodes, rows), np.int64)
        scores: Scores = self._sums[0].of(rows)
        for sums in self._sums[1:]:
            scores += sums.of(rows)
        return scores

    def memory(self, rows: int) -> int:
        """Estimate the memory of the state, whose arrays have `rows` elements. Units: bytes."""
        return self._existing.nbytes + sum(one.memory(rows) for one in self._sums)

    @property
    def idle(self) -> bool:
        """Whether no placed pod affects the scores of the class of pods."""
        return not any(sums.counts_any() for sums in self._sums)
