"""Results that belong to one pod alone (because of its volumes), laid over the evaluation of its class.

Siblings of a StatefulSet are equal but for their claims. Their class is evaluated without these; the plugins that read
them are asked about the pod at hand, on all rows, and what they say is laid over what the class's plugins say, in the
order of the profile. Answers from elsewhere than plugins, such as those of a webhook about the nodes that are feasible,
can be laid over in the same way before a node is chosen. The class's evaluation stays as it was.

Shapes: N rows in use.
Source: pkg/scheduler/framework/runtime/framework.go (RunPreFilterPlugins, RunFilterPlugins).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from policysched.framework import SKIP, Code, Status
from policysched.framework.profile import Profile
from policysched.model.objects import Pod
from policysched.schedule.cycle.evaluation import FEASIBLE, Evaluation, prepare_scores
from policysched.schedule.cycle.plugin_results import FilterResults, ScoreResults

Rejection = tuple[int, Status]
"""A PreFilter status with the place of its plugin."""


def with_per_pod_results(evaluation: Evaluation, profile: Profile, pod: Pod) -> Evaluation:
    """Return a pod's evaluation, made of its class's and of what the plugins say that have answers of the pod's own.

    Cost: what these plugins take for all rows, and a few operations over them.
    """
    filters: list[FilterResults] = []
    rejections: list[Rejection] = []
    for place, plugin in profile.pod_filters(pod):
        state = plugin.prepare_filter(pod, evaluation.cluster)
        if isinstance(state, Status):
            rejections.append((place, state.by(plugin.name)))
        elif state is not SKIP and plugin.name in profile.places:
            filters.append(FilterResults(plugin, state, profile.places[plugin.name]))
    made = evaluation
    if rejections:
        made = evaluation.copy()
        if evaluation.rejection is not None:
            rejections.append((evaluation.rejected_at, evaluation.rejection))
        made.rejection = _outcome(rejections)
    if made.rejection is not None:
        return made
    scores, failure = prepare_scores(profile.pod_scores(pod), pod, evaluation.cluster)
    made = laid_over(made, filters, scores)
    if failure is not None and made.score_failure is None:
        made = made.copy()
        made.score_failure = failure
    return made


def _outcome(rejections: Iterable[Rejection]) -> Status | None:
    """Return the status that PreFilter ends with: the first that ends it, else the last."""
    outcome: Status | None = None
    for _, status in sorted(rejections, key=lambda one: one[0]):
        outcome = status
        if status.code is not Code.UNSCHEDULABLE:
            break
    return outcome


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
    capacity, size = made.cluster.nodes.columns.capacity, made.cluster.nodes.size
    for one in filters:
        one.recompute(capacity, size)
    for other in scores:
        other.recompute(capacity, size)
    if filters:
        _lay_filters(made, filters, size)
    if scores:
        made.scores = [*made.scores, *scores]
        _lay_scores(made, scores, size)
    return made


def _lay_filters(made: Evaluation, filters: Sequence[FilterResults], size: int) -> None:
    known = made.filters
    made.filters = sorted([*known, *filters], key=lambda one: one.place)
    first = _moved(made.first[:size], known, made.filters)
    rejecting = [one for one in filters if one.rejects_any]
    for one in rejecting:
        place = made.filters.index(one) + 1
        rejected = (one.codes[:size] != 0) & ((first == FEASIBLE) | (first > place))
        np.putmask(first, rejected, place)
    made.first = first
    if not rejecting:
        return
    made.feasible_count = size - int(np.count_nonzero(first))
    made.ranked = np.where(first == FEASIBLE, made.ranked[:size], made.ranked.dtype.type(made.infeasible))
    made.filter_failure = made.failure_of([one for one in made.filters if one.fails or one in rejecting])


def _lay_scores(made: Evaluation, scores: Sequence[ScoreResults], size: int) -> None:
    """Add scores that need no normalising to the sums; the others are added when nodes are ranked."""
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
