"""Filter and score results for a single pod, not shared by equal pods: of volume, claim and out-of-tree plugins.

The pods of a StatefulSet differ in their claims. The results of their class omit the plugins that read claims; these
plugins are called for each pod, on all rows, in the order of the profile. Each function returns a new evaluation.

Shapes: N rows in use.
Source: pkg/scheduler/framework/runtime/framework.go (RunPreFilterPlugins, RunFilterPlugins).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from policysched.framework import SKIP, ScorePlugin, Status
from policysched.framework.out_of_tree.adapter import OutOfTreePlugin, PodCycle
from policysched.framework.profile import Filter, PerPodPlugins
from policysched.schedule.cycle.evaluation import Evaluation
from policysched.schedule.cycle.preparing import PreFilter, prepare_scores
from policysched.schedule.cycle.results.out_of_tree_results import KnownAnswers, OutOfTreeResults, call_scores
from policysched.schedule.cycle.results.plugin_results import (
    NARROWED,
    FilterResults,
    NarrowedNodes,
    ScoreResults,
)
from policysched.schedule.cycle.results.rejections import FEASIBLE, with_rejections
from policysched.schedule.timing import FILTER, PRE_FILTER, SCORE, CycleTimes, timed


def with_per_pod_results(evaluation: Evaluation, plugins: PerPodPlugins, times: CycleTimes | None) -> Evaluation:
    """Return an evaluation to which the results of plugins that evaluate each pod separately are added.

    Of out-of-tree plugins only PreFilter is called; see `with_out_of_tree_filters`.

    Args:
        evaluation: The results of the pod's class.
        plugins: The plugins.
        times: Measures the plugins.

    Cost: the calls of these plugins for all rows, and a few operations over all rows.
    """
    cluster = evaluation.cluster
    if not cluster.nodes.count:
        return evaluation
    cycle = PodCycle(evaluation.pod, cluster) if evaluation.profile.out_of_tree_cycle else None
    prepared = _PodPreFilter(evaluation, cycle, times)
    prepared.run(plugins.filters)
    if prepared.rejection is not None:
        uncalled = sorted([*evaluation.filters, *prepared.filters], key=lambda one: one.place)
        return evaluation._replace(pre_filter=prepared, cycle=cycle, filters=tuple(uncalled))
    filters = _computed_filters(evaluation, prepared, times)
    called = [(plugin, weight) for plugin, weight in plugins.scores if not isinstance(plugin, OutOfTreePlugin)]
    pending = [(plugin, weight) for plugin, weight in plugins.scores if isinstance(plugin, OutOfTreePlugin)]
    scores, failure = _computed_scores(evaluation, called, times)
    return evaluation.extended(
        filters,
        scores,
        score_failure=evaluation.score_failure or failure,
        pending_scores=tuple(pending),
        pre_filter=prepared,
        cycle=cycle,
    )


class _PodPreFilter(PreFilter):
    """PreFilter for one pod: uses the results shared by equal pods, and calls the plugins that evaluate each pod."""

    def __init__(self, evaluation: Evaluation, cycle: PodCycle | None, times: CycleTimes | None) -> None:
        super().__init__(evaluation.profile.places)
        self._evaluation, self._cycle, self._times = evaluation, cycle, times

    def run(self, plugins: Sequence[tuple[int, Filter | None]]) -> None:
        """Call the given PreFilter plugins in order, until a plugin ends PreFilter by rejecting the pod."""
        known = {place: (name, outcome) for place, name, outcome in self._evaluation.pre_filter.outcomes}
        if known:
            plugins = sorted([*plugins, *((place, None) for place in known)])
        for place, plugin in plugins:
            if self.ends_with(place, *known[place]) if plugin is None else self._call(place, plugin):
                break

    def narrowed(self) -> FilterResults | None:
        """Return a filter for the nodes that PreFilter excluded for this pod; None if equal pods share the filter."""
        if self._allowed is None or self.narrowing == self._evaluation.narrowing:
            return None
        cluster = self._evaluation.cluster
        return FilterResults(NarrowedNodes(self.narrowing), NarrowedNodes.prepare(self._allowed, cluster), NARROWED)

    def _call(self, place: int, plugin: Filter) -> bool:
        """Call a plugin's PreFilter; return True if PreFilter ends because the plugin rejected the pod."""
        if isinstance(plugin, OutOfTreePlugin):
            return self._cycle is not None and self._call_out_of_tree(place, plugin, self._cycle)
        of = self._evaluation
        state = timed(self._times, plugin.name, PRE_FILTER, plugin.prepare_filter, of.pod, of.cluster)
        return self.ends(place, plugin, state)

    def _call_out_of_tree(self, place: int, plugin: OutOfTreePlugin, cycle: PodCycle) -> bool:
        answer = timed(self._times, plugin.name, PRE_FILTER, plugin.pre_filter, cycle)
        if answer is SKIP:
            return False
        if isinstance(answer, Status | frozenset) and self.ends_with(place, plugin.name, answer):
            return True
        if plugin.name in self._places:
            # preemption calls Filter of a plugin that rejected the pod, too: only SKIP omits Filter
            self.filters.append(self._results(plugin))
        return False

    def _results(self, plugin: OutOfTreePlugin) -> OutOfTreeResults:
        known = None
        if plugin.reads is not None:
            key, all_known = f"{plugin.name} Filter", self._evaluation.of_class.known
            known = all_known.get(key)
            if known is None:
                known = all_known[key] = KnownAnswers(self._evaluation.cluster, plugin.reads)
        return OutOfTreeResults(plugin, self._places[plugin.name], known)


def _computed_filters(evaluation: Evaluation, prepared: _PodPreFilter, times: CycleTimes | None) -> list[FilterResults]:
    """Evaluate on all nodes the filters that PreFilter prepared, except out-of-tree filters."""
    nodes, narrowed = evaluation.cluster.nodes, prepared.narrowed()
    if narrowed is not None:
        narrowed.recompute(nodes.columns.capacity, nodes.size)
    for one in prepared.filters:
        if not isinstance(one, OutOfTreeResults):
            timed(times, one.plugin.name, FILTER, one.recompute, nodes.columns.capacity, nodes.size)
    return prepared.filters if narrowed is None else [narrowed, *prepared.filters]


def _computed_scores(
    evaluation: Evaluation, plugins: Sequence[tuple[ScorePlugin[Any], int | None]], times: CycleTimes | None
) -> tuple[list[ScoreResults], Status | None]:
    """Evaluate score plugins on all nodes; return the results, or the status of a plugin that failed at PreScore."""
    nodes = evaluation.cluster.nodes
    scores, failure = prepare_scores(plugins, evaluation.pod, evaluation.cluster, times)
    for one in scores:
        timed(times, one.plugin.name, SCORE, one.recompute, nodes.columns.capacity, nodes.size)
    return scores, failure


def with_out_of_tree_filters(evaluation: Evaluation, cycle: PodCycle, times: CycleTimes | None) -> Evaluation:
    """Call Filter of out-of-tree plugins for the nodes that pass all earlier filters; return the new evaluation.

    Args:
        evaluation: An evaluation that PreFilter does not reject.
        cycle: The state that its out-of-tree plugins share.
        times: Measures the plugins.
    """
    nominations, nodes = evaluation.cluster.nominations, evaluation.cluster.nodes
    if nominations:
        kept = nominations.rows(nodes.row_of)
        # nodes with nominated pods that this pod must respect were filtered with them before; this is the second time
        cycle.apart = {row: cycle.state.clone() for row in kept.difference(evaluation.nominated_pods)}
    first, filters = evaluation.first[: nodes.size], []
    failure: Status | None = None
    for one in evaluation.filters:
        if not isinstance(one, OutOfTreeResults):
            continue
        left = ((first == FEASIBLE) | (first > one.place)).nonzero()[0]
        if not left.size:
            continue
        results = timed(times, one.plugin.name, FILTER, one.called, cycle, left)
        if isinstance(results, Status):
            failure = results
            break
        filters.append(results)
        if results.rejects_any:
            first = with_rejections(first, [results])
    return evaluation.extended(filters, failure=failure)


def with_out_of_tree_scores(evaluation: Evaluation, times: CycleTimes | None = None) -> Evaluation | Status:
    """Return an evaluation with the scores of the out-of-tree plugins, or the status of a failed plugin."""
    if evaluation.cycle is None or not evaluation.pending_scores:
        return evaluation
    feasible = evaluation.feasible().nonzero()[0]
    scores = call_scores(evaluation.cycle, evaluation.pending_scores, feasible, evaluation.of_class.known, times)
    if isinstance(scores, Status):
        return scores
    return evaluation.extended(scores=scores, pending_scores=())
