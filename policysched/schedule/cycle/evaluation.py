"""`Evaluation`: the filter and score results of one pod in one scheduling cycle.

An evaluation is made from the cached results of the pod's class. Further results that apply to this pod only (volume
plugins, nominated pods, out-of-tree plugins, extenders) each make a new evaluation; no evaluation changes. The arrays
of the class are shared, not copied: an evaluation is valid until the cluster changes.

Shapes: C capacity of the columns, N ≤ C rows in use.
Source: pkg/scheduler/schedule_one.go (findNodesThatFitPod, prioritizeNodes).
"""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from policysched.framework import MAX_NODE_SCORE, NO_ROWS, Code, Mask, RowNumbers, Scores, Status
from policysched.framework.out_of_tree.adapter import PodCycle
from policysched.framework.profile import Profile
from policysched.model.objects import Pod
from policysched.schedule.cycle.class_results import ClassResults
from policysched.schedule.cycle.preparing import PreFilter
from policysched.schedule.cycle.results.out_of_tree_results import ScoreWeights
from policysched.schedule.cycle.results.plugin_results import (
    EXTENDERS,
    FilterResults,
    MemberCodes,
    MemberScores,
    ScoreResults,
)
from policysched.schedule.cycle.results.rejections import ABSENT, FEASIBLE, failure_of, with_rejections
from policysched.schedule.cycle.what_if import Trial
from policysched.schedule.timing import NORMALIZE, CycleTimes, timed
from policysched.state.cluster import Cluster
from policysched.state.nominated.columns import PodsByRow
from policysched.state.tables.amounts import PodResources

NO_PODS: Final[PodsByRow] = MappingProxyType({})
_OUT_OF_RANGE: Final = (
    'applying score defaultWeights on Score plugins: plugin "{}" returns an invalid score {}, '
    f"it should in the range of [0, {MAX_NODE_SCORE}] after normalizing"
)


class NominatedNode(NamedTuple):
    """The pod's nominated node, which is evaluated before all other nodes."""

    row: int
    status: Status | None
    """The status of the first filter that rejects the nominated node; None if the pod fits on the node."""


class Evaluation(NamedTuple):
    """The results of all plugins for one pod; immutable."""

    pod: Pod
    of_class: ClassResults
    """The results that all pods equal to this pod share (its pod class), on which the evaluation is based."""
    pre_filter: PreFilter
    """The outcome of PreFilter: prepared filters, the only possible nodes, or a rejection."""
    filters: tuple[FilterResults, ...]
    """The filter results in this order: nodes excluded by PreFilter, nominated pods, plugins, extenders."""
    first: NDArray[np.int16]
    """For each node's row, the place of the first filter that rejects the node, or FEASIBLE; ABSENT without a node.

    Shapes: (C,) or (N,).
    """
    feasible_count: int
    """Number of nodes that pass all filters."""
    filter_failure: Status | None
    """The status of a filter that failed on a node; None if no filter failed."""
    score_failure: Status | None
    """The status of a plugin that failed at PreScore, which fails decisions with more than one feasible node."""
    nominated_pods: PodsByRow
    """For each node's row, the pods nominated to the node for which this pod must leave room."""
    further_scores: tuple[ScoreResults, ...] = ()
    """The results of score plugins that were evaluated for this pod, not for all equal pods."""
    pending_scores: ScoreWeights = ()
    """The out-of-tree score plugins that are not called yet; they are called only if several nodes are feasible."""
    cycle: PodCycle | None = None
    """The CycleState of the out-of-tree plugins and their calls; None without out-of-tree plugins."""
    nominated_node: NominatedNode | None = None
    rows: RowNumbers | None = None
    """The rows of the pod group's placement to which the evaluation is limited; None for all nodes."""

    @classmethod
    def of(cls, pod: Pod, found: ClassResults) -> Evaluation:
        """Return the evaluation of a pod that has no results besides those shared by all equal pods."""
        return cls(
            pod,
            found,
            found.pre_filter,
            found.filters,
            found.first,
            found.feasible_count,
            found.filter_failure,
            found.score_failure,
            NO_PODS,
        )

    def extended(
        self,
        filters: Sequence[FilterResults] = (),
        scores: Sequence[ScoreResults] = (),
        failure: Status | None = None,
        **changes: Any,
    ) -> Evaluation:
        """Return a copy of the evaluation with additional results of filters and scores.

        Args:
            filters: Computed filters; a filter replaces an earlier filter with the same place, and rejects all nodes
                that the earlier filter rejects.
            scores: Computed scores.
            failure: The status of a filter that failed.
            changes: Other fields to replace.
        """
        if filters:
            by_place = {one.place: one for one in (*self.filters, *filters)}
            changes["filters"] = tuple([by_place[place] for place in sorted(by_place)])
        rejecting = [one for one in filters if one.rejects_any]
        if rejecting:
            first = with_rejections(self.first[: self.cluster.nodes.size], rejecting)
            changes["first"], changes["feasible_count"] = first, first.size - int(np.count_nonzero(first))
            of_class = set(map(id, self.of_class.filters))
            may_fail = [one for one in changes["filters"] if one.fails or id(one) not in of_class]
            changes["filter_failure"] = failure_of(may_fail, first)
        if failure is not None:
            changes["filter_failure"] = failure
        return self._replace(further_scores=(*self.further_scores, *scores), **changes)

    def within(self, rows: RowNumbers) -> Evaluation:
        """Return the evaluation limited to the nodes of a pod group's placement."""
        if self.rejection is not None:
            return self._replace(rows=rows)
        first = np.full(self.cluster.nodes.size, ABSENT, np.int16)
        rows = rows[rows < first.size]
        first[rows] = self.first[rows]
        failure = None if self.filter_failure is None else failure_of(self.filters, first)
        feasible = int(np.count_nonzero(first == FEASIBLE))
        return self._replace(first=first, feasible_count=feasible, filter_failure=failure, rows=rows)

    @property
    def cluster(self) -> Cluster:
        """The cluster for which the pod is evaluated."""
        return self.of_class.cluster

    @property
    def node_count(self) -> int:
        """Number of nodes that are evaluated: all nodes, or the nodes of the pod group's placement."""
        return self.cluster.nodes.count if self.rows is None else self.rows.size

    @property
    def profile(self) -> Profile:
        """The profile of the pod."""
        return self.of_class.profile

    @property
    def pod_resources(self) -> PodResources:
        """The resource requests of the pod."""
        return self.of_class.pod_resources

    @property
    def rejection(self) -> Status | None:
        """The PreFilter status that rejects the pod on all nodes, if any."""
        return self.pre_filter.rejection

    @property
    def narrowing(self) -> tuple[str, ...]:
        """The names of the plugins that allowed only some nodes at PreFilter, sorted."""
        return self.pre_filter.narrowing

    @property
    def nominated_row(self) -> int | None:
        """The row of the pod's nominated node if the pod fits on the node; else None."""
        nominated = self.nominated_node
        if nominated is None or nominated.status is not None:
            return None
        extenders = self.filters[-1] if self.filters and self.filters[-1].place == EXTENDERS else None
        return None if extenders is not None and extenders.codes[nominated.row] else nominated.row

    @property
    def scores(self) -> tuple[ScoreResults, ...]:
        """The results of all score plugins that do not skip the pod; results for this pod replace shared results."""
        if not self.further_scores:
            return self.of_class.scores
        own = {one.plugin.name for one in self.further_scores}
        return (*(one for one in self.of_class.scores if one.plugin.name not in own), *self.further_scores)

    @property
    def is_scored(self) -> bool:
        """Whether any plugin scores; without a score plugin, the total of every node is 1."""
        return bool(self.profile.scores or self.profile.extenders or self.further_scores)

    @property
    def tiers(self) -> tuple[int, ...]:
        """The tiers of the scores, the highest first; scores of lower tiers only break ties."""
        return tuple(self.of_class.sums)

    def feasible(self) -> Mask:
        """Return a mask of the nodes (by row) that pass all filters.

        Shapes: (N,).
        """
        feasible: Mask = self.first[: self.cluster.nodes.size] == FEASIBLE
        return feasible

    def best(self, times: CycleTimes | None = None) -> RowNumbers:
        """Return the rows of the feasible nodes with the highest total score; at least one node must be feasible.

        The totals of a lower tier decide between rows with equal totals in all higher tiers.
        """
        best: RowNumbers | None = None
        for tier in self.of_class.sums:
            totals = self.ranking(tier, times) if best is None else self.ranking(tier, times).take(best)
            [highest] = (totals == totals[totals.argmax()]).nonzero()
            best = highest if best is None else best.take(highest)
            if best.size == 1:
                break
        return NO_ROWS if best is None else best

    def ranking(self, tier: int = 0, times: CycleTimes | None = None) -> NDArray[np.signedinteger]:
        """Return each node's total score in a tier; infeasible nodes have the lowest value of the integer type.

        Plugins that give all rows the same score are omitted, so these are not the totals of decision records.
        Shapes: (N,).
        """
        of_class = self.of_class
        sums = of_class.sums[tier][: of_class.cluster.nodes.size]
        uneven = [one for one in of_class.scores if one.normalizes and not one.flat and one.tier == tier]
        if not uneven and not self.further_scores and self.first is of_class.first:
            return sums
        feasible, further = self.feasible(), [one for one in self.further_scores if one.tier == tier]
        normalizing = [*uneven, *(one for one in further if one.normalizes and not one.flat)]
        found = [timed(times, one.plugin.name, NORMALIZE, one.added, feasible) for one in normalizing]
        added = [scores for scores in found if scores is not None]
        added += [one.values[: feasible.size] for one in further if not one.normalizes and not one.flat]
        if not added and not further and self.first is of_class.first:
            return sums
        total: Scores = sums.astype(np.int64) if added or further else sums.copy()
        for scores in added:
            total += scores
        if self.feasible_count < total.size:
            np.putmask(total, ~feasible, of_class.infeasible)
        return total

    def score_out_of_range(self) -> Status | None:
        """Return an error that names the first plugin with a feasible node's score outside 0 to 100; None without one.

        Source: pkg/scheduler/framework/runtime/framework.go (RunScorePlugins).
        """
        for one in [*self.of_class.scores, *self.further_scores]:
            if one.may_leave_range and (score := one.score_out_of_range(self.feasible())) is not None:
                return Status(Code.ERROR, (_OUT_OF_RANGE.format(one.plugin.name, score),), one.plugin.name)
        return None

    def trial(self, row: int) -> Trial:
        """Return a simulation of one node, in which pods can be added or removed; PreFilter must not reject the pod."""
        return Trial(self.cluster, self.plugin_filters(), row, self.nominated_pods.get(row, ()), self.cycle)

    def plugin_names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the names of the plugins that do not return Skip for the pod: at Filter, and at Score."""
        if self.filters is self.of_class.filters and not self.further_scores:
            return self.of_class.plugin_names
        filters = tuple(name for one in self.plugin_filters() for name in one.names)
        return filters, tuple(name for one in self.scores for name in one.names)

    def filter_parts(self) -> list[FilterResults | MemberCodes]:
        """Return the results of the filters that reject any node, separately for each policy."""
        return [part for one in self.filters if one.rejects_any for part in one.parts()]

    def score_parts(self) -> list[ScoreResults | MemberScores]:
        """Return the results of the score plugins, separately for each policy."""
        return [part for one in self.scores for part in one.parts()]

    def plugin_filters(self) -> list[FilterResults]:
        """Return the results of filter plugins, without the results of extenders, nominated pods and PreFilter."""
        return [one for one in self.filters if one.is_of_profile]

    def filter_at(self, place: int) -> FilterResults:
        """Return the results of the filter with a given place in the order of filters."""
        return next(one for one in self.filters if one.place == place)

    def status(self, row: int) -> Status:
        """Return the status with which a filter rejects the infeasible node of a row."""
        results = self.filter_at(int(self.first[row]))
        return results.reason(int(results.codes[row]))
