"""`Evaluation`: one pod class's filter and score results on every row, kept up to date instead of recomputed.

Pods of a class are equal in everything scheduling reads, so what was found out for one holds for the next: plugins are
asked again only about rows that changed since in aspects that they read. A decision then costs a few array operations
over all rows, however many plugins there are.

Shapes: C the capacity of the columns, N ≤ C the rows in use, R the rows that changed.
Source: pkg/scheduler/framework/runtime/framework.go (RunFilterPlugins, RunScorePlugins).
"""

from __future__ import annotations

import logging
from collections.abc import Hashable, Mapping, Sequence
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from policysched.framework import MAX_NODE_SCORE, NO_ROWS, Code, Mask, RowNumbers, Rows, Scores, Status
from policysched.framework.optional_interfaces import outdated_check
from policysched.framework.out_of_tree.adapter import PodCycle
from policysched.framework.profile import Profile
from policysched.model.objects import Pod
from policysched.schedule.cycle.preparing import PreFilter, prepare_scores
from policysched.schedule.cycle.results.carried_over import EarlierResults
from policysched.schedule.cycle.results.joint_results import (
    JointFilters,
    JointScores,
    TierSums,
    adding_by_tier,
    joint_filters,
    joint_scores,
)
from policysched.schedule.cycle.results.out_of_tree_results import KnownAnswers, OutOfTreePart
from policysched.schedule.cycle.results.plugin_results import PRESENCE, FilterResults, RowChanges, ScoreResults
from policysched.schedule.cycle.results.rejections import ABSENT, FEASIBLE, failure_of, judge
from policysched.schedule.cycle.what_if import Trial
from policysched.schedule.timing import FILTER, FILTERED, NORMALIZE, PRE_SCORED, PREPARED, SCORE, CycleTimes, asked
from policysched.state.cluster import Cluster
from policysched.state.nominated.columns import PodsByRow
from policysched.state.tables.amounts import PodResources, pod_resources

Results = FilterResults | ScoreResults | JointFilters | JointScores
MANY = 8
"""One in how many rows are so many that it is quicker to go through all rows, without picking any."""
NARROWED = 1
"""The first rejecting filter of rows that narrowing leaves out, where anything narrows."""
_OUT_OF_RANGE = (
    'applying score defaultWeights on Score plugins: plugin "{}" returns an invalid score {}, '
    f"it should in the range of [0, {MAX_NODE_SCORE}] after normalizing"
)
BEHIND_ALL = 1 << 30
"""The place of extenders, behind all filters of the profile."""
BYTES = 3072
"""What an evaluation takes beside its arrays and the results of its plugins. Units: bytes."""
MEASURED_EVERY = 32
"""How many refreshes there may be before the memory is counted again."""
WIDEST_NARROW_TOTAL = 2**31 - 1
"""The largest total that fits into 32 bits."""

log = logging.getLogger(__name__)


class Evaluation:
    """A pod class under one profile and policy set."""

    cluster: Cluster
    profile: Profile
    generations: Hashable
    """What its plugins prepared is of, see `Profile.generations`."""
    times: CycleTimes | None
    """What the extension points of the decision at hand take, None where nobody measures."""
    filters: list[FilterResults]
    """The filters that have something to say, in their order."""
    narrowing: tuple[str, ...]
    """The plugins that narrowed the nodes, sorted."""
    first: NDArray[np.int16]
    """Each row's first rejecting filter, counted from 1; FEASIBLE or ABSENT where there is none."""
    feasible_count: int
    """How many rows every filter lets pass."""
    rejection: Status | None
    """The status that rejected the pod outright."""
    pre_filter_names: tuple[str, ...]
    """The profile's plugins at PreFilter, in their order."""
    ended_at: int | None
    """The place among them of the one that turned the pod away for good."""
    outcomes: Sequence[tuple[int, str, Status | frozenset[str]]]
    """What PreFilter plugins said against the pod or nodes, see `preparing.PreFilter`."""
    filter_failure: Status | None
    """The status of a filter that failed on some node."""
    ranked: NDArray[np.signedinteger]
    """Each row's sum of tier 0's scores that need no normalising, `infeasible` for rows that are not feasible."""
    higher: dict[int, NDArray[np.signedinteger]]
    """The same of each higher tier in which something scores, the highest first."""
    scored: bool
    """Whether any plugin scores; without one every node's total is 1."""
    score_failure: Status | None
    """The status of a plugin that failed at PreScore; it matters once there is more than one node to choose."""
    known: dict[str, KnownAnswers]
    """What out-of-tree plugins have said to pods of the class, of those that declare what they read."""
    out_of_tree: OutOfTreePart | None = None
    """What the pod's out-of-tree plugins share; a class's evaluation has none."""

    nominated: PodsByRow = MappingProxyType({})
    """The nominated pods that the pod at hand has to leave their place, by row; a class's evaluation has none."""
    nbytes: int
    """The memory that it took when it was last measured, 0 before that. Units: bytes."""

    def __init__(
        self,
        cluster: Cluster,
        profile: Profile,
        pod: Pod,
        generations: Hashable,
        times: CycleTimes | None = None,
        earlier: EarlierResults | None = None,
    ) -> None:
        self.cluster, self.profile, self.generations, self.times = cluster, profile, generations, times
        self._names: tuple[tuple[str, ...], tuple[str, ...]] | None = None
        self.nbytes = self._refreshes = 0
        self._seen = cluster.journal.position
        self._namespaces_seen = cluster.namespaces_generation
        """The namespaces that the answers of plugins are about; others may make them stale."""
        self._namespace = pod.metadata.namespace
        self._namespace_labels = cluster.namespaces.get(self._namespace)
        self.pod_resources: PodResources = pod_resources(pod)
        prepared = PreFilter.of(cluster, profile, pod, times, earlier)
        self._lap(PREPARED)
        self.filters, self.narrowing, self.outcomes = prepared.filters, prepared.narrowing, prepared.outcomes
        self._failing = [one for one in self.filters if one.fails]
        self.first = np.zeros(0, np.int16)
        self.feasible_count = 0
        self.rejection, self.ended_at = prepared.rejection, prepared.ended_at
        self.pre_filter_names = profile.pre_filter_names
        self.filter_failure = None
        self.ranked = np.zeros(0, _width(profile))
        self.infeasible = int(np.iinfo(self.ranked.dtype).min)
        self.higher = {}
        self.scored = bool(profile.scores or profile.extenders)
        self.scores: list[ScoreResults] = []
        """The score plugins that have something to say; up to date where a row is feasible, and after `score`."""
        self._filtering: Sequence[FilterResults | JointFilters] = ()
        self._following: Sequence[FilterResults] = ()
        """The filters whose answers change with more than the journal tells."""
        self._ranking: Sequence[ScoreResults | JointScores] = ()
        """The same filters and scores, those that answer together as one; known once all rows were asked about."""
        self._adding: Mapping[int, Sequence[ScoreResults | TierSums]] = {}
        """The scores that need no normalising, by tier."""
        self.score_failure = None
        self.known = {}
        self._scored: int | None = None
        """The journal's position that the scores are of, None where they have to be computed anew."""
        if self.rejection is None:
            self.scores, self.score_failure = prepare_scores(profile.class_scores, pod, cluster, times, earlier)
            self._lap(PRE_SCORED)
            # what plugins noted while they prepared is in what is asked now, unless some of it was asked before
            seen = cluster.journal.position if earlier is None else self._seen
            self._recompute(seen, earlier)
        prepared_parts: tuple[FilterResults | ScoreResults, ...] = (*self.filters, *self.scores)
        asking = [(outdated_check(one.plugin), one) for one in prepared_parts]
        self._outdated_checks = [(asked, results) for asked, results in asking if asked is not None]

    @property
    def is_outdated(self) -> bool:
        """Whether a plugin says that what it prepared for the class is stale, so that all is to be made anew."""
        generation = self.cluster.namespaces_generation
        if self._namespaces_seen != generation:
            own = self.cluster.namespaces.get(self._namespace)
            if own is not self._namespace_labels and own != self._namespace_labels and self.profile.reads_own_namespace:
                return True
            if any(asked(results.state) for asked, results in self._outdated_checks):
                return True
            self._namespaces_seen = generation
        return False

    def measure(self) -> None:
        """Count the memory anew: its arrays, what plugins prepared, and their parts of what several classes share."""
        results = sum(one.nbytes for one in self.filters) + sum(one.nbytes for one in self.scores)
        results += sum(one.nbytes for one in self.known.values())
        results += sum(one.nbytes for one in self._ranking if isinstance(one, JointScores))
        sums = self.ranked.nbytes + sum(one.nbytes for one in self.higher.values())
        self.nbytes = BYTES + results + self.first.nbytes + sums

    @property
    def to_be_measured(self) -> bool:
        """Whether it was refreshed so often that it may have grown since it was measured."""
        return self._refreshes % MEASURED_EVERY == 1

    def reweigh(self, profile: Profile) -> None:
        """Go on under a profile that has the same plugins by other weights, where these change sums alone."""
        if not profile.has_plugins_of(self.profile) or _width(profile) != self.ranked.dtype:
            return
        weights = {plugin.name: weight for plugin, weight in profile.scores}
        changed = [one for one in self.scores if one.weight != weights[one.plugin.name]]
        if any(not one.is_raw for one in changed):
            return
        for one in changed:
            one.weight = weights[one.plugin.name]
        for group in self._ranking:
            if isinstance(group, JointScores):
                group.reweigh()
        self.profile = profile
        if changed:
            self._rank(slice(0, self.cluster.nodes.size))

    def handed_over(self) -> EarlierResults | None:
        """Return what an evaluation under other policies can go on with, brought up to date; this one ends with that.

        Missing: None where a plugin turned the pod away or failed, and where bringing it up to date is not possible.
        """
        if self.rejection is not None or self.score_failure is not None or self.is_outdated:
            return None
        if self.cluster.journal.since(self._seen) is None:
            return None
        self.times = None
        try:
            self.refresh()
        except Exception:
            log.exception("refreshing the cached evaluation of a pod class failed; it is recomputed")
            return None
        scored = self._scored == self._seen
        return EarlierResults(self.profile, self.filters, self.scores, self.outcomes, scored=scored)

    def copy(self) -> Evaluation:
        """Return another one of the same parts, to replace some of them."""
        made = object.__new__(Evaluation)
        made.__dict__ |= self.__dict__
        made._names = None
        return made

    def refresh(self) -> None:
        """Bring verdicts up to the journal's position, and scores where any row is feasible."""
        self._refreshes += 1
        journal, before = self.cluster.journal, self._seen
        if self.rejection is not None or (journal.position == before and not self._following):
            return
        changed = journal.since(before)
        if changed is None:
            self._recompute(journal.position)
            return
        self._seen = journal.position
        moved = [rows for one in self._following if (rows := one.update_moved()).size]
        changes = RowChanges(*changed)
        found = self._updated(self._filtering, changes, FILTER) + moved
        if (present := changes.of(PRESENCE)) is not None:
            found.append(present)
        judged = np.concatenate(found) if found else NO_ROWS
        if judged.size:
            self._judge(self._among_all(judged))
        self._lap(FILTERED)
        if not self.feasible_count:
            return
        if self._scored == before:
            self._update_scores(changes, judged)
        else:
            self.score()

    def score(self) -> None:
        """Bring scores up to the verdicts; they wait while no row is feasible."""
        if self._scored == self._seen:
            return
        changed = None if self._scored is None else self.cluster.journal.since(self._scored)
        if changed is not None:
            self._update_scores(RowChanges(*changed), None)
            return
        self._score_all()

    def _score_all(self, earlier: EarlierResults | None = None) -> None:
        """Ask about all rows, as of the verdicts' position."""
        nodes, self._scored = self.cluster.nodes, self._seen
        for one in [one for one in self.scores if earlier is None or not earlier.answers_score(one)]:
            asked(self.times, one.plugin.name, SCORE, one.recompute, nodes.columns.capacity, nodes.size)
        self._ranking = joint_scores(self.scores, nodes.columns.capacity, self.ranked.dtype)
        self._adding = adding_by_tier(self._ranking)
        self.higher = {tier: np.full_like(self.ranked, self.infeasible) for tier in self._adding if tier}
        self._rank(slice(0, nodes.size))

    def _update_scores(self, changes: RowChanges, judged: RowNumbers | None) -> None:
        """Ask about rows that changed since scores were last up to date; verdicts did on some rows, None for any."""
        self._scored = self._seen
        found = self._updated(self._ranking, changes, SCORE)
        if judged is None:
            self._rank(slice(0, self.cluster.nodes.size))
            return
        scored = np.concatenate((judged, *found))
        if scored.size:
            self._rank(self._among_all(scored))

    def _updated(self, results: Sequence[Results], changes: RowChanges, point: str) -> list[RowNumbers]:
        """Ask about the rows that changed in what each plugin reads; return those with other answers.

        What plugins take that answer together is told in equal parts.
        """
        times = self.times
        if times is None or not times.by_plugin:
            return [one.update(rows) for one in results if (rows := changes.of(one.reads)) is not None]
        found, timing = [], times.timing
        for one in results:
            if (rows := changes.of(one.reads)) is not None:
                began = timing.now()
                found.append(one.update(rows))
                took = (timing.now() - began) / len(one.names)
                for name in one.names:
                    timing.plugin(name, point, Code.SUCCESS, took)
        return found

    def _lap(self, place: int) -> None:
        if self.times is not None:
            self.times.lap(place)

    def _among_all(self, rows: RowNumbers) -> Rows:
        """Return all rows in the place of many."""
        size = self.cluster.nodes.size
        return rows if rows.size * MANY < size else slice(0, size)

    def feasible(self) -> Mask:
        """Return which rows every filter lets pass.

        Shapes: (N,).
        """
        feasible: Mask = self.first[: self.cluster.nodes.size] == FEASIBLE
        return feasible

    def best(self) -> RowNumbers:
        """Return the feasible rows of the highest total; some row is feasible.

        Of the rows that have the highest total of a tier those of the next lower tier decide, down to tier 0.
        """
        first, *lower = (*self.higher, 0)
        ranking = self.ranking(first)
        best: RowNumbers
        [best] = (ranking == ranking[ranking.argmax()]).nonzero()
        for tier in lower:
            if best.size == 1:
                break
            totals = self.ranking(tier).take(best)
            best = best.take((totals == totals[totals.argmax()]).nonzero()[0])
        return best

    def ranking(self, tier: int = 0) -> NDArray[np.signedinteger]:
        """Return the totals of a tier that order the rows, `infeasible` for rows that are not feasible.

        Plugins that give every row the same are left out, so these are no decision record's totals.
        Shapes: (N,).
        """
        size = self.cluster.nodes.size
        ranked = (self.higher[tier] if tier else self.ranked)[:size]
        uneven = [one for one in self.scores if one.normalizes and not one.flat and one.tier == tier]
        if not uneven:
            return ranked
        feasible = self.feasible()
        times = self.times
        found = [asked(times, one.plugin.name, NORMALIZE, one.added, feasible) for one in uneven]
        added = [scores for scores in found if scores is not None]
        if not added:
            return ranked
        total: Scores = ranked.astype(np.int64)
        for scores in added:
            total += scores
        if self.feasible_count < total.size:
            np.putmask(total, ~feasible, self.infeasible)
        return total

    def failed_score(self) -> Status | None:
        """Return the failure of a plugin that scores, None where each gave what it should."""
        part = self.out_of_tree
        return self.score_failure or (part and part.failure) or self.score_out_of_range()

    def score_out_of_range(self) -> Status | None:
        """Return the error of the first plugin whose final score on a feasible row is none of 0 to 100.

        Source: pkg/scheduler/framework/runtime/framework.go (RunScorePlugins).
        """
        for one in self.scores:
            if one.may_leave_range and (score := one.score_out_of_range(self.feasible())) is not None:
                return Status(Code.ERROR, (_OUT_OF_RANGE.format(one.plugin.name, score),), one.plugin.name)
        return None

    def trial(self, row: int) -> Trial:
        """Return a what-if of a node: its verdict with pods taken away or added.

        As where kube-scheduler tries single nodes, it is what filters say, whether or not PreFilter narrowed the node
        away. PreFilter did not end the pod.
        """
        return Trial(self.cluster, self.plugin_filters(), row, self.nominated.get(row, ()), self.pod_cycle)

    @property
    def pod_cycle(self) -> PodCycle | None:
        """What the out-of-tree plugins that are asked about the pod share."""
        return None if self.out_of_tree is None else self.out_of_tree.cycle

    def plugin_names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the names of the profile's plugins that have something to say at Filter and at Score."""
        if self._names is None:
            filters = tuple(one.plugin.name for one in self.plugin_filters())
            self._names = filters, tuple(one.plugin.name for one in self.scores)
        return self._names

    def plugin_filters(self) -> list[FilterResults]:
        """Return what the profile's filters say, without narrowing, nominated pods and extenders."""
        return [one for one in self.filters if 0 <= one.place < BEHIND_ALL]

    def is_rejected_outside(self, row: int) -> bool:
        """Return whether an extender keeps the pod off a row."""
        return any(one.codes[row] for one in self.filters if one.place >= BEHIND_ALL)

    def status(self, row: int) -> Status:
        """Return why a row is not feasible."""
        results = self.filters[int(self.first[row]) - 1]
        return results.reason(int(results.codes[row]))

    def _recompute(self, seen: int, earlier: EarlierResults | None = None) -> None:
        """Ask about all rows; what is after a position of the journal is caught up with later, again or not."""
        nodes = self.cluster.nodes
        self._seen, self._scored = seen, None
        self.first = np.full(nodes.columns.capacity, ABSENT, np.int16)
        self.ranked = np.full(nodes.columns.capacity, self.infeasible, self.ranked.dtype)
        for one in [one for one in self.filters if earlier is None or not earlier.answers_filter(one)]:
            asked(self.times, one.plugin.name, FILTER, one.recompute, nodes.columns.capacity, nodes.size)
        self._filtering = joint_filters(self.filters)
        self._following = [one for one in self.filters if one.follows]
        self._judge(slice(0, nodes.size))
        self._lap(FILTERED)
        if self.feasible_count:
            self._score_all(earlier)

    def _judge(self, rows: Rows) -> None:
        """Find rows' first rejecting filters."""
        judge(self.first, self.filters, self.cluster.nodes.present.data, rows)
        self.feasible_count = self.first.size - int(np.count_nonzero(self.first))
        if self._failing:
            self.filter_failure = failure_of(self._failing, self.first[: self.cluster.nodes.size], self.filters)

    def _rank(self, rows: Rows) -> None:
        """Add up rows' scores that need no normalising, tier by tier."""
        left_out = self.first[rows] != FEASIBLE
        for tier, adding in self._adding.items():
            ranked = np.zeros(left_out.size, self.ranked.dtype)
            for score in adding:
                if not score.flat:
                    ranked += score.values[rows]
            np.putmask(ranked, left_out, self.infeasible)
            (self.higher[tier] if tier else self.ranked)[rows] = ranked


def _width(profile: Profile) -> type[np.signedinteger]:
    """Choose the narrowest integers that hold every total of the profile's weights."""
    most = sum(abs(weight) for _, weight in profile.scores) * MAX_NODE_SCORE
    return np.int32 if most <= WIDEST_NARROW_TOTAL else np.int64
