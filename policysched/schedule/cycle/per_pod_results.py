"""Answers of volume and out-of-tree plugins to one pod, laid over the evaluation of its class.

Siblings of a StatefulSet are equal but for their claims. Their class is evaluated without these; the plugins that read
them are asked about the pod at hand, on all rows, and what they say is laid over what the class's plugins say, in the
order of the profile. Answers from elsewhere than plugins, such as those of a webhook about the nodes that are feasible,
can be laid over in the same way before a node is chosen. The class's evaluation stays as it was.

Shapes: N rows in use.
Source: pkg/scheduler/framework/runtime/framework.go (RunPreFilterPlugins, RunFilterPlugins).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from policysched.framework import SKIP, FilterPlugin, Status
from policysched.framework.out_of_tree.adapter import OutOfTreePlugin, PodCycle
from policysched.framework.profile import PerPodPlugins, Profile
from policysched.model.objects import Pod
from policysched.schedule.cycle.evaluation import BEHIND_ALL, Evaluation
from policysched.schedule.cycle.preparing import PreFilter, prepare_scores
from policysched.schedule.cycle.results.out_of_tree_results import (
    GivenScores,
    KnownAnswers,
    OutOfTreePart,
    OutOfTreeResults,
    ask_scores,
)
from policysched.schedule.cycle.results.plugin_results import FilterResults, NarrowedNodes, ScoreResults
from policysched.schedule.cycle.results.rejections import FEASIBLE, failure_of
from policysched.schedule.timing import FILTER, PRE_FILTER, SCORE, asked


def with_per_pod_results(evaluation: Evaluation, profile: Profile, pod: Pod, plugins: PerPodPlugins) -> Evaluation:
    """Return a pod's evaluation, made of its class's and of what the plugins say that have answers of the pod's own.

    Out-of-tree plugins have run PreFilter then; `with_out_of_tree_filters` asks them about nodes.

    Cost: what these plugins take for all rows, and a few operations over them.
    """
    if not evaluation.cluster.nodes.count:
        return evaluation
    cycle = PodCycle(pod, evaluation.cluster) if profile.out_of_tree_cycle else None
    prepared = _PodPreFilter(evaluation, profile, cycle)
    prepared.run(pod, plugins.filters)
    if cycle is None and prepared.changes_nothing:
        return evaluation if evaluation.rejection is not None else _with_scores(evaluation, plugins, pod)
    made = evaluation.copy()
    if cycle is not None:
        made.out_of_tree = OutOfTreePart(cycle)
    made.rejection, made.narrowing, made.ended_at = prepared.rejection, prepared.narrowing, prepared.ended_at
    if made.rejection is not None:
        made.filters = sorted([*evaluation.filters, *prepared.filters], key=lambda one: one.place)
        return made
    _lay_prepared(made, prepared)
    return _with_scores(made, plugins, pod)


class _PodPreFilter(PreFilter):
    """PreFilter for one pod: what its class's plugins said, and between them those that are asked about it alone."""

    def __init__(self, evaluation: Evaluation, profile: Profile, cycle: PodCycle | None) -> None:
        super().__init__(profile.places)
        self._class, self._cycle = evaluation, cycle

    def run(self, pod: Pod, asked: Sequence[tuple[int, FilterPlugin | None]]) -> None:
        """Walk through all of them in their order, until one ends it."""
        known = {place: (name, outcome) for place, name, outcome in self._class.outcomes}
        if known:
            asked = sorted([*asked, *((place, None) for place in known)])
        for place, plugin in asked:
            if self.ends_with(place, *known[place]) if plugin is None else self._ask(place, plugin, pod):
                break

    @property
    def changes_nothing(self) -> bool:
        """Whether nothing was said but what the class's plugins said."""
        return not self.filters and self.outcomes == self._class.outcomes

    def narrowed(self) -> FilterResults | None:
        """Return the filter of the nodes that are left, where that is another one than the class's."""
        if self._allowed is None or self.narrowing == self._class.narrowing:
            return None
        cluster = self._class.cluster
        return FilterResults(NarrowedNodes(self.narrowing), NarrowedNodes.prepare(self._allowed, cluster))

    def _ask(self, place: int, plugin: FilterPlugin, pod: Pod) -> bool:
        times = self._class.times
        if self._cycle is None or not isinstance(plugin, OutOfTreePlugin):
            state = asked(times, plugin.name, PRE_FILTER, plugin.prepare_filter, pod, self._class.cluster)
            return self.ends(place, plugin, state)
        answer = asked(times, plugin.name, PRE_FILTER, plugin.pre_filter, self._cycle)
        if answer is SKIP:
            return False
        if isinstance(answer, Status | frozenset) and self.ends_with(place, plugin.name, answer):
            return True
        if plugin.name in self._places:
            # preemption asks one that rejected the pod, too: only SKIP leaves Filter out
            self.filters.append(self._results(plugin))
        return False

    def _results(self, plugin: OutOfTreePlugin) -> OutOfTreeResults:
        known = None
        if plugin.reads is not None:
            key, all_known = f"{plugin.name} Filter", self._class.known
            known = all_known.get(key)
            if known is None:
                known = all_known[key] = KnownAnswers(self._class.cluster, plugin.reads)
        return OutOfTreeResults(plugin, self._places[plugin.name], known)


def _lay_prepared(made: Evaluation, prepared: _PodPreFilter) -> None:
    """Lay over what filters say to one pod."""
    narrowed = prepared.narrowed()
    if narrowed is None:
        _lay_filters(made, prepared.filters)
    elif made.filters and made.filters[0].place < 0:
        # it keeps off all nodes that the class's own one did
        made.filters = [narrowed, *made.filters[1:]]
        narrowed.recompute(made.cluster.nodes.columns.capacity, made.cluster.nodes.size)
        _lay_filters(made, prepared.filters, again=(narrowed,))
    else:
        _lay_filters(made, [narrowed, *prepared.filters])


def _with_scores(made: Evaluation, plugins: PerPodPlugins, pod: Pod) -> Evaluation:
    if not plugins.scores:
        return made
    found = [(plugin, weight) for plugin, weight in plugins.scores if not isinstance(plugin, OutOfTreePlugin)]
    scores, failure = prepare_scores(found, pod, made.cluster, made.times)
    made = laid_over(made, scores=scores)
    if failure is not None and made.score_failure is None:
        made = made.copy()
        made.score_failure = failure
    if made.out_of_tree is not None:
        weighed = ((one, weight) for one, weight in plugins.scores if isinstance(one, OutOfTreePlugin))
        made.out_of_tree.scores = tuple(weighed)
    return made


def with_out_of_tree_filters(evaluation: Evaluation, part: OutOfTreePart) -> Evaluation:
    """Run the Filter of out-of-tree plugins, each on the nodes that all filters before it let pass.

    Args:
        evaluation: One that PreFilter did not end.
        part: What its out-of-tree plugins share.
    """
    made = evaluation.copy()
    size, cycle = made.cluster.nodes.size, part.cycle
    if made.cluster.nominations:
        kept = made.cluster.nominations.rows(made.cluster.nodes.row_of)
        # nodes with pods to yield to were filtered beside those before, and now it is the second time
        cycle.apart = {row: cycle.state.clone() for row in kept.difference(made.nominated)}
    made.first = first = made.first[:size].copy()
    failure: Status | None = None
    for place, one in enumerate(made.filters, 1):
        if not isinstance(one, OutOfTreeResults):
            continue
        left = ((first == FEASIBLE) | (first > place)).nonzero()[0]
        failure = asked(made.times, one.plugin.name, FILTER, one.ask, cycle, left) if left.size else None
        if failure is not None:
            break
        if one.rejects_any:
            np.putmask(first, one.codes[:size] != 0, place)
    _count(made, size)
    if failure is not None or made.filter_failure is not None:
        made.filter_failure = failure or failure_of(made.filters, made.first[:size], made.filters)
    return made


def with_out_of_tree_scores(evaluation: Evaluation, part: OutOfTreePart) -> Evaluation:
    """Run PreScore, Score and NormalizeScore of out-of-tree plugins on the nodes that are left."""
    left = evaluation.feasible().nonzero()[0]
    found = ask_scores(part.cycle, part.scores, left, evaluation.known, evaluation.times)
    made = evaluation.copy()
    if isinstance(found, Status):
        made.out_of_tree = replace(part, scores=(), failure=found)
        return made
    made.out_of_tree = replace(part, scores=())
    if found:
        _lay_scores(made, found)
    return made


def laid_over(
    evaluation: Evaluation, filters: Sequence[FilterResults] = (), scores: Sequence[ScoreResults] = ()
) -> Evaluation:
    """Return an evaluation with more answers; without any it is the same one.

    Args:
        evaluation: One that PreFilter did not end.
        filters: What else keeps the pod off nodes; those behind the profile's filters have a higher place.
        scores: What else is added to the totals.
    """
    if not filters and not scores:
        return evaluation
    made = evaluation.copy()
    if filters:
        _lay_filters(made, filters)
    if scores:
        _lay_scores(made, scores)
    return made


def _lay_filters(made: Evaluation, filters: Sequence[FilterResults], again: Sequence[FilterResults] = ()) -> None:
    """Lay filters over; `again` are those of the evaluation that keep off more nodes than it has noted."""
    capacity, size = made.cluster.nodes.columns.capacity, made.cluster.nodes.size
    for one in filters:
        if 0 <= one.place < BEHIND_ALL and not isinstance(one, OutOfTreeResults):
            asked(made.times, one.plugin.name, FILTER, one.recompute, capacity, size)
        else:
            one.recompute(capacity, size)
    known = made.filters
    made.filters = sorted([*known, *filters], key=lambda one: one.place)
    first = _moved(made.first[:size], known, made.filters)
    rejecting = [one for one in (*again, *filters) if one.rejects_any]
    for one in rejecting:
        place = made.filters.index(one) + 1
        rejected = (one.codes[:size] != 0) & ((first == FEASIBLE) | (first > place))
        np.putmask(first, rejected, place)
    made.first = first
    if not rejecting:
        return
    _count(made, size)
    suspects = [one for one in made.filters if one.fails or one in rejecting]
    made.filter_failure = failure_of(suspects, made.first[:size], made.filters)


def _count(made: Evaluation, size: int) -> None:
    """Bring the number of nodes that are left, and their sums of scores, up to the verdicts."""
    made.feasible_count = size - int(np.count_nonzero(made.first))
    made.ranked = _left(made, made.ranked[:size])
    if made.higher:
        made.higher = {tier: _left(made, sums[:size]) for tier, sums in made.higher.items()}


def _left(made: Evaluation, sums: NDArray[np.signedinteger]) -> NDArray[np.signedinteger]:
    """Return sums without those of nodes that are not left."""
    sums = sums.copy()
    np.putmask(sums, made.first != FEASIBLE, made.infeasible)
    return sums


def _lay_scores(made: Evaluation, scores: Sequence[ScoreResults]) -> None:
    """Add scores that need no normalising to tier 0's sums; the others are added when nodes are ranked."""
    capacity, size = made.cluster.nodes.columns.capacity, made.cluster.nodes.size
    for one in scores:
        times = None if isinstance(one.plugin, GivenScores) else made.times  # these were measured when they were asked
        asked(times, one.plugin.name, SCORE, one.recompute, capacity, size)
    made.scores = [*made.scores, *scores]
    ranked = made.ranked[:size].astype(np.int64)
    for one in scores:
        if not one.normalizes and not one.flat:
            ranked += one.values[:size]
    made.ranked = np.where(made.first[:size] == FEASIBLE, ranked, made.infeasible)
    made.scored = True


def _moved(
    first: NDArray[np.int16], known: Sequence[FilterResults], filters: Sequence[FilterResults]
) -> NDArray[np.int16]:
    """Turn places among the class's filters into places among all of them; ABSENT and FEASIBLE stay."""
    if list(known) == filters[: len(known)]:
        return first.copy()
    moved = np.array([-1, FEASIBLE, *(filters.index(one) + 1 for one in known)], np.int16)
    return moved[first + 1]
