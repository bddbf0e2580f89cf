"""The InterPodAffinity plugin at PreFilter, Filter, PreScore, Score and NormalizeScore, with its queueing hints.

A pod class is matched with each distinct existing term once. A placement then changes the sums of one domain, and only
the rows whose answer that changes are evaluated again.

Source: plugins/interpodaffinity, v1.36 and v1.37; pkg/scheduler/apis/config/v1 (InterPodAffinityArgs, defaults.go) and
validation_pluginargs.go for the arguments.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence

import numpy as np

from policysched.framework import (
    MAX_NODE_SCORE,
    NO_ROWS,
    SKIP,
    Action,
    Aspect,
    ChangedRow,
    ChangedRows,
    Cluster,
    Code,
    Codes,
    Hint,
    Incremental,
    Mask,
    PreparedFilter,
    PreparedScore,
    Resource,
    RowNumbers,
    Rows,
    ScorePlugin,
    Scores,
    Status,
    WhatIfFilter,
    unresolvable,
    unschedulable,
)
from policysched.model.objects import Pod
from policysched.model.selection.pod_affinity import AffinityTerm, TermKind, pod_terms
from policysched.plugins.arguments import Fault, Int32, PluginArguments
from policysched.plugins.bases import ScoresInRange
from policysched.plugins.columns import levelled
from policysched.plugins.inter_pod_affinity.hints import INDEX, namespace_helps, node_helps, pod_helps
from policysched.plugins.inter_pod_affinity.matching_terms import MatchingExistingTerms
from policysched.plugins.inter_pod_affinity.states import AWAY, NEAR, REPELLED, PreferredState, RequiredState
from policysched.plugins.inter_pod_affinity.terms import ResolvedTerms
from policysched.state.placed.pods import PlacedPod

STATUSES = {
    NEAR: unresolvable("node(s) didn't match pod affinity rules"),
    AWAY: unschedulable("node(s) didn't match pod anti-affinity rules"),
    REPELLED: unschedulable("node(s) didn't satisfy existing pods anti-affinity rules"),
}
READS = Aspect.PODS | Aspect.LABELS
DEFAULT_HARD_WEIGHT = 1
REPELLING = {TermKind.REPELS: 1}
"""The kinds of placed pods' terms that can reject a pod (required anti-affinity), each with weight 1."""


class InterPodAffinity(
    ScoresInRange,
    WhatIfFilter[RequiredState],
    ScorePlugin[PreferredState],
    Incremental[RequiredState | PreferredState],
):
    """The InterPodAffinity plugin: filters and scores nodes by affinity and anti-affinity between pods.

    Args:
        hard_weight: What the required affinity of a placed pod adds to the score of nodes near it.
        ignore_preferred: Whether preferences of placed pods do not apply to pods without preferences.
        merges_namespaces: Whether the namespaceSelectors of the pod are evaluated for existing namespaces only.
    """

    name = "InterPodAffinity"
    filter_reads = READS
    score_reads = READS
    normalizes = True

    def __init__(
        self, hard_weight: int = DEFAULT_HARD_WEIGHT, *, ignore_preferred: bool = False, merges_namespaces: bool = False
    ) -> None:
        self._merges_namespaces = merges_namespaces
        self._ignore_preferred = ignore_preferred
        self._weights = {TermKind.PREFERRED: 0} | ({TermKind.REQUIRED: hard_weight} if hard_weight > 0 else {})

    def prepare_filter(self, pod: Pod, cluster: Cluster) -> PreparedFilter[RequiredState]:
        """Return the filter's state: required affinity and anti-affinity of the pod, anti-affinity of placed pods."""
        terms = pod_terms(pod)
        if terms.faults:
            return unresolvable(f"parsing pod: {terms.fault}")
        if not cluster.existing_terms.ever and not terms.affinity and not terms.anti_affinity:
            return SKIP
        affinity = self._resolve(((1, term) for term in terms.affinity), cluster)
        return RequiredState(
            affinity=affinity,
            anti_affinity=self._resolve(((1, term) for term in terms.anti_affinity), cluster),
            existing=MatchingExistingTerms(pod, cluster, REPELLING),
            cluster=cluster,
            may_be_first=bool(affinity.terms) and all(one.peers.matches(pod) for one in affinity.terms),
        )

    def filter(self, state: RequiredState, rows: Rows) -> Codes:
        """Return reason codes that reject nodes in whose topology domains pods violate affinity or anti-affinity."""
        if isinstance(rows, slice):
            state.refresh(NO_ROWS)
        return state.codes(rows)

    def is_affected_by(self, state: RequiredState, placed: PlacedPod) -> bool:
        """Return whether terms of the pod match a placed pod, or the placed pod has anti-affinity."""
        return bool(pod_terms(placed.pod).anti_affinity) or state.counts(placed)

    def filter_changed(self, state: RequiredState, changed: ChangedRow) -> Status | None:
        """Return the status of a simulated node, from the pods in its topology domains; None if it passes.

        As in kube-scheduler, added pods do not reject a pod for which PreFilter skips.
        """
        code = state.on(changed)
        return STATUSES[code] if code else None

    def filter_changed_rows(self, state: RequiredState, changed: ChangedRows) -> Codes | None:
        """Return the reason codes (0 accepts) of simulated nodes; None if nodes can only be evaluated one by one."""
        return state.on_rows(changed)

    def reason(self, state: RequiredState, code: int) -> Status:  # noqa: ARG002 - the code says it all
        """Return the rejection status that a reason code of the filter stands for."""
        return STATUSES[code]

    def prepare_score(self, pod: Pod, cluster: Cluster) -> PreparedScore[PreferredState]:
        """Return the score's state: preferred affinity and anti-affinity of the pod, preferences of placed pods."""
        terms = pod_terms(pod)
        prefers = _states_preferences(pod)
        if not prefers and self._ignore_preferred:
            return SKIP
        if terms.faults:
            return Status(Code.ERROR, (f"failed to parse pod: {terms.fault}",))
        if not prefers and not cluster.existing_terms.ever:
            return SKIP
        avoided = ((-one.weight, one.term) for one in terms.preferred_anti)
        preferences = self._resolve((*terms.preferred, *avoided), cluster)
        return PreferredState(preferences, MatchingExistingTerms(pod, cluster, self._weights), cluster)

    def score(self, state: PreferredState, rows: Rows) -> Scores:
        """Return for each node the sum of the weights of matching pods in its topology domains."""
        if isinstance(rows, slice):
            state.refresh(NO_ROWS)
        return state.score(rows)

    def _resolve(self, stated: Iterable[tuple[int, AffinityTerm]], cluster: Cluster) -> ResolvedTerms:
        return ResolvedTerms(stated, cluster, merges=self._merges_namespaces)

    def normalize(self, state: PreferredState, scores: Scores, feasible: Mask) -> Scores | None:  # noqa: ARG002
        """Scale the scores, which may be negative, to 0 to 100."""
        chosen = scores if feasible.all() else levelled(scores, feasible)
        if not chosen.size:
            return None
        lowest = int(chosen.min())
        spread = int(chosen.max()) - lowest
        if not spread:
            return None
        scaled = (scores - lowest) / spread
        scaled *= MAX_NODE_SCORE  # in kube-scheduler's order of operations
        final: Scores = scaled.astype(np.int64)
        return final

    def leaves_out(self, state: PreferredState) -> bool:
        """Return whether decision records omit the scores of a class of equal pods, as no placed pod affects them."""
        return state.idle

    def stamp(self, cluster: Cluster) -> Hashable:
        """Return whether any placed pod ever had an affinity term; before that, pods without terms are skipped."""
        return cluster.existing_terms.ever

    def affected_rows(self, state: RequiredState | PreferredState, rows: RowNumbers) -> Rows:
        """Return the nodes whose results may change because the given nodes changed."""
        return state.refresh(rows)

    def is_current(self, state: RequiredState | PreferredState) -> bool:
        """Return whether the state's terms match the same pods after changes of namespace labels."""
        return state.is_current()

    def events(self) -> Sequence[Hint]:
        """Return the hints: changes of placed pods, of nodes and of namespace labels."""
        pods = Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE
        return (
            Hint(Resource.ASSIGNED_POD, pods, pod_helps, INDEX),
            Hint(Resource.PENDING_POD, pods, pod_helps),
            Hint(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL, node_helps),
            Hint(Resource.NAMESPACE, Action.ALL, namespace_helps),
        )


def _states_preferences(pod: Pod) -> bool:
    affinity = pod.spec.affinity
    parts = (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else ()
    return any(part is not None and part.preferred for part in parts)


HIGHEST_HARD_WEIGHT = 100


class AffinityArguments(PluginArguments, frozen=True):
    """The arguments of InterPodAffinity."""

    hard_pod_affinity_weight: Int32 = DEFAULT_HARD_WEIGHT
    ignore_preferred_terms_of_existing_pods: bool = False

    def faults(self) -> Iterator[Fault]:
        """Yield the invalid fields of the arguments, each with the reason."""
        weight = self.hard_pod_affinity_weight
        if not 0 <= weight <= HIGHEST_HARD_WEIGHT:
            yield "hardPodAffinityWeight", f"{weight} is not in valid range [0, {HIGHEST_HARD_WEIGHT}]"


def inter_pod_affinity(given: AffinityArguments, *, merges_namespaces: bool) -> InterPodAffinity:
    """Create InterPodAffinity from its plugin arguments."""
    return InterPodAffinity(
        given.hard_pod_affinity_weight,
        ignore_preferred=given.ignore_preferred_terms_of_existing_pods,
        merges_namespaces=merges_namespaces,
    )
