"""`ClassResults`: cached filter and score results for all nodes, shared by pods that are equal for scheduling.

Pods of a class are equal in all fields that scheduling reads, so a result for one pod is valid for the next pod of the
class. At a decision, each plugin is called only for the rows that changed in an aspect that the plugin reads. The rest
of a decision is a few array operations over all rows, however many plugins there are.

Shapes: C capacity of the columns, N ≤ C rows in use.
Source: pkg/scheduler/framework/runtime/framework.go (RunFilterPlugins, RunScorePlugins).
"""

from __future__ import annotations

import logging
from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from policysched.framework import MAX_NODE_SCORE, NO_ROWS, Incremental, RowNumbers, Rows, Status
from policysched.framework.profile import Profile
from policysched.model.objects import Pod
from policysched.schedule.cycle.preparing import PreFilter, prepare_scores
from policysched.schedule.cycle.results.carried_over import EarlierResults
from policysched.schedule.cycle.results.out_of_tree_results import KnownAnswers
from policysched.schedule.cycle.results.plugin_results import PRESENCE, FilterResults, RowChanges, ScoreResults
from policysched.schedule.cycle.results.rejections import ABSENT, FEASIBLE, failure_of, judge
from policysched.schedule.timing import FILTER, FILTERED, PRE_SCORED, PREPARED, SCORE, CycleTimes, timed
from policysched.state.cluster import Cluster
from policysched.state.tables.amounts import PodResources

Results = FilterResults | ScoreResults
Sums = Mapping[int, NDArray[np.signedinteger]]
"""For each tier of scores, the sum of the weighted scores of each node. Shapes: (C,)."""
MANY = 8
"""If more than 1/MANY of all nodes changed, all nodes are evaluated, because a slice is faster than an index array."""
BYTES = 2048
"""Memory of a `ClassResults` object without its arrays and without the results of plugins. Units: bytes."""
MEASURED_EVERY = 32
"""Number of refreshes of cached results after which their memory is measured again."""
WIDEST_NARROW_TOTAL = 2**31 - 1 - 2**24
"""Largest sum of plugins' scores for which 32-bit integers are used; the scores of policies add less than 2^24."""

log = logging.getLogger(__name__)


class ClassResults:
    """The filter and score results for all nodes, under one profile, for pods that are equal for scheduling.

    Args:
        cluster: The cluster.
        profile: The plugins and their weights.
        pod: A pod of the class.
        stamps: The value of `Profile.stamps` for which the results are valid.
        times: Measures the plugins; None if they are not measured.
        earlier: Results of the class under an earlier profile, to reuse.
    """

    filters: tuple[FilterResults, ...]
    """The results of the filters that do not skip the pod, in the order of Filter."""
    first: NDArray[np.int16]
    """For each node's row, the place of the first filter that rejects the node, or FEASIBLE; ABSENT without a node."""
    feasible_count: int
    """Number of nodes that pass all filters."""
    filter_failure: Status | None
    """The status of a filter that failed on a node; None if no filter failed."""
    scores: tuple[ScoreResults, ...]
    """The results of the score plugins that do not skip the pod; outdated while no node is feasible."""
    score_failure: Status | None
    """The status of a plugin that failed at PreScore, which fails decisions with more than one feasible node."""
    sums: dict[int, NDArray[np.signedinteger]]
    """For each tier, the highest first, the nodes' sums of weighted raw scores; `infeasible` for infeasible nodes."""
    known: dict[str, KnownAnswers]
    """The cached results of out-of-tree plugins that declare `reads`, by extension point and plugin."""
    nbytes: int
    """The memory of the results at the last measurement; 0 before the first measurement. Units: bytes."""

    def __init__(
        self,
        cluster: Cluster,
        profile: Profile,
        pod: Pod,
        stamps: Hashable,
        times: CycleTimes | None = None,
        earlier: EarlierResults | None = None,
    ) -> None:
        self.cluster, self.profile, self._stamps, self._times = cluster, profile, stamps, times
        self.nbytes = self._refreshes = 0
        self._position = cluster.journal.position
        """Number of changes in the journal of changed nodes that the filter results already include."""
        self._scored_position: int | None = None
        """Number of changes in the journal that the scores include; None if every node has to be scored."""
        self._namespaces_stamp = cluster.namespaces_stamp
        self._namespace = pod.metadata.namespace
        self._namespace_labels = cluster.namespaces.get(self._namespace)
        self.pod_resources: PodResources = cluster.pod_resources(pod)
        self.pre_filter = PreFilter.of(cluster, profile, pod, times, earlier)
        self._lap(PREPARED)
        self.filters = tuple(self.pre_filter.filters)
        self._failing = [one for one in self.filters if one.fails]
        self.first = np.zeros(0, np.int16)
        self.feasible_count = 0
        self.filter_failure = self.score_failure = None
        self._dtype = _width(profile)
        self.infeasible = int(np.iinfo(self._dtype).min)
        self.scores, self.sums, self.known = (), {0: np.zeros(0, self._dtype)}, {}
        self._following: Sequence[FilterResults] = ()
        """The filters whose results may change although the journal lists no changed node."""
        self._adding: Mapping[int, Sequence[ScoreResults]] = {}
        """The results of score plugins without NormalizeScore, by tier of the scores."""
        if self.pre_filter.rejection is None:
            scores, self.score_failure = prepare_scores(profile.class_scores, pod, cluster, times, earlier)
            self.scores = tuple(scores)
            self._lap(PRE_SCORED)
            # changes that plugins made while they prepared are in the results, unless results are reused
            self._recompute(cluster.journal.position if earlier is None else self._position, earlier)
        prepared: tuple[FilterResults | ScoreResults, ...] = (*self.filters, *self.scores)
        self._incremental = [(one.plugin, one.state) for one in prepared if isinstance(one.plugin, Incremental)]

    def is_current(self, profile: Profile, stamps: Hashable) -> bool:
        """Return whether `refresh` can make the results current; if not, all plugins have to prepare again."""
        return self.profile is profile and self._stamps == stamps and self._is_valid_for_namespaces()

    def _is_valid_for_namespaces(self) -> bool:
        """Return whether the data that plugins prepared is still valid after changes of namespace labels."""
        stamp = self.cluster.namespaces_stamp
        if self._namespaces_stamp == stamp:
            return True
        own = self.cluster.namespaces.get(self._namespace)
        if own is not self._namespace_labels and own != self._namespace_labels and self.profile.reads_own_namespace:
            return False
        if not all(plugin.is_current(state) for plugin, state in self._incremental):
            return False
        self._namespaces_stamp = stamp
        return True

    def measure(self) -> None:
        """Estimate the memory of the results and of the data that plugins prepared, and store it in `nbytes`."""
        results = sum(one.nbytes for one in self.filters) + sum(one.nbytes for one in self.scores)
        results += sum(one.nbytes for one in self.known.values())
        sums = sum(one.nbytes for one in self.sums.values())
        self.nbytes = BYTES + results + self.first.nbytes + sums

    @property
    def may_have_grown(self) -> bool:
        """Whether the memory of the results has to be measured again."""
        return self._refreshes % MEASURED_EVERY == 1

    def handed_over(self, stamps: Hashable) -> EarlierResults | None:
        """Update the results and return them for reuse under another profile; this object is then invalid.

        Args:
            stamps: The present value of `Profile.stamps` of the profile of these results.

        Returns:
            None if a plugin rejected the pod or failed, or if `refresh` cannot make the results current.
        """
        if self.pre_filter.rejection is not None or self.score_failure is not None:
            return None
        if not self.is_current(self.profile, stamps) or self.cluster.journal.since(self._position) is None:
            return None
        self._times = None
        try:
            self.refresh()
        except Exception:
            log.exception("refreshing the cached evaluation of a pod class failed; it is recomputed")
            return None
        scored = self._scored_position == self._position
        return EarlierResults(self.profile, self.filters, self.scores, self.pre_filter.outcomes, scored=scored)

    def refresh(self) -> None:
        """Evaluate the filters on the nodes that changed; if any node is feasible, also the scores."""
        self._refreshes += 1
        journal, before = self.cluster.journal, self._position
        if self.pre_filter.rejection is not None or (journal.position == before and not self._following):
            return
        changed = journal.since(before)
        if changed is None:
            self._recompute(journal.position)
            return
        self._position = journal.position
        followed = [rows for one in self._following if (rows := one.update(NO_ROWS)).size]
        changes = RowChanges(*changed)
        found = self._updated(self.filters, changes, FILTER) + followed
        if (present := changes.of(PRESENCE)) is not None:
            found.append(present)
        judged = np.concatenate(found) if found else NO_ROWS
        if judged.size:
            self._judge(self._or_all(judged))
        self._lap(FILTERED)
        if not self.feasible_count:
            return
        if self._scored_position == before:
            self._update_scores(changes, judged)
        else:
            self.score()

    def score(self) -> None:
        """Evaluate the scores on changed nodes; `refresh` leaves out the scores while no node is feasible."""
        if self._scored_position == self._position:
            return
        changed = None if self._scored_position is None else self.cluster.journal.since(self._scored_position)
        if changed is None:
            self._score_all()
        else:
            self._update_scores(RowChanges(*changed), None)

    @cached_property
    def plugin_names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The names of the plugins that do not return Skip for the pod: at Filter, and at Score."""
        filters = tuple(name for one in self.filters if one.is_of_profile for name in one.names)
        return filters, tuple(name for one in self.scores for name in one.names)

    def _recompute(self, position: int, earlier: EarlierResults | None = None) -> None:
        """Evaluate the filters on all nodes; if any node is feasible, also the scores.

        Args:
            position: The journal's position up to which the results are current afterwards.
            earlier: Results to reuse.
        """
        nodes = self.cluster.nodes
        capacity = nodes.columns.capacity
        self._position, self._scored_position = position, None
        self.first = np.full(capacity, ABSENT, np.int16)
        self.sums = {0: np.full(capacity, self.infeasible, self._dtype)}
        for one in [one for one in self.filters if earlier is None or not earlier.reuse_codes(one)]:
            timed(self._times, one.names, FILTER, one.recompute, capacity, nodes.size)
        self._following = [one for one in self.filters if one.follows_changes]
        self._judge(slice(0, nodes.size))
        self._lap(FILTERED)
        if self.feasible_count:
            self._score_all(earlier)

    def _score_all(self, earlier: EarlierResults | None = None) -> None:
        """Score all nodes with all plugins."""
        nodes, self._scored_position = self.cluster.nodes, self._position
        capacity = nodes.columns.capacity
        for one in [one for one in self.scores if earlier is None or not earlier.reuse_scores(one)]:
            timed(self._times, one.names, SCORE, one.recompute, capacity, nodes.size)
        self._adding = _by_tier(self.scores)
        self.sums = {tier: np.full(capacity, self.infeasible, self._dtype) for tier in self._adding}
        self._rank(slice(0, nodes.size))

    def _update_scores(self, changes: RowChanges, judged: RowNumbers | None) -> None:
        """Score the nodes that changed, and update the sums of scores.

        Args:
            changes: The rows that changed since the scores were current.
            judged: The rows with other verdicts since then; None if they are unknown.
        """
        self._scored_position = self._position
        found = self._updated(self.scores, changes, SCORE)
        if judged is None:
            self._rank(slice(0, self.cluster.nodes.size))
            return
        scored = np.concatenate((judged, *found))
        if scored.size:
            self._rank(self._or_all(scored))

    def _updated(self, results: Sequence[Results], changes: RowChanges, point: str) -> list[RowNumbers]:
        """Evaluate the plugins that read something that changed; return for each the nodes whose results changed."""
        times = self._times
        due = [(one, rows) for one in results if (rows := changes.of(one.reads)) is not None]
        if times is None or not times.by_plugin:
            return [one.update(rows) for one, rows in due]
        return [times.measured(one.names, point, one.update, rows) for one, rows in due]

    def _lap(self, place: int) -> None:
        if self._times is not None:
            self._times.lap(place)

    def _or_all(self, rows: RowNumbers) -> Rows:
        """Return the node numbers `rows`, or a slice of all nodes if `rows` are more than 1/MANY of all nodes."""
        size = self.cluster.nodes.size
        return rows if rows.size * MANY < size else slice(0, size)

    def _judge(self, rows: Rows) -> None:
        """Find the first filter that rejects each of some nodes, and count the feasible nodes."""
        judge(self.first, self.filters, self.cluster.nodes.present.data, rows)
        self.feasible_count = self.first.size - int(np.count_nonzero(self.first))
        if self._failing:
            self.filter_failure = failure_of(self._failing, self.first[: self.cluster.nodes.size])

    def _rank(self, rows: Rows) -> None:
        """Add up the weighted raw scores of some nodes, separately for each tier."""
        infeasible = self.first[rows] != FEASIBLE
        for tier, adding in self._adding.items():
            sums = np.zeros(infeasible.size, self._dtype)
            for score in adding:
                if not score.flat:
                    sums += score.values[rows]
            np.putmask(sums, infeasible, self.infeasible)
            self.sums[tier][rows] = sums


def _by_tier(scores: Sequence[ScoreResults]) -> dict[int, list[ScoreResults]]:
    """Return the results of score plugins without NormalizeScore by tier, the highest first; tier 0 always exists."""
    found: dict[int, list[ScoreResults]] = {0: []}
    for one in scores:
        added = found.setdefault(one.tier, [])
        if not one.normalizes:
            added.append(one)
    return dict(sorted(found.items(), reverse=True))


def _width(profile: Profile) -> type[np.signedinteger]:
    """Return the narrowest integer type that can hold every sum of the scores of a profile's plugins."""
    most = sum(abs(weight) for _, weight in profile.scores) * MAX_NODE_SCORE
    return np.int32 if most <= WIDEST_NARROW_TOTAL else np.int64
