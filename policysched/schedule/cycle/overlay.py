"""What belongs to one pod alone, such as its claims, added to its class's evaluation.

Siblings of a StatefulSet are equal but for their claims. Their class is evaluated without these; the filters that read
them are asked about the pod at hand, on all rows, and their answers are laid over those of the class in the order of
the profile. The class's evaluation stays as it was.

Shapes: N rows in use.
Source: pkg/scheduler/framework/runtime/framework.go (RunPreFilterPlugins, RunFilterPlugins).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from policysched.framework import SKIP, Code, FilterPlugin, Status
from policysched.framework.profile import Profile
from policysched.model.objects import Pod
from policysched.schedule.cycle.evaluation import FEASIBLE, Evaluation
from policysched.schedule.cycle.tracks import FilterTrack

Rejection = tuple[int, Status]
"""A PreFilter status with the place of its plugin."""
Firsts = NDArray[np.int16]
"""The first rejecting filter of each row."""


def for_pod(
    evaluation: Evaluation, profile: Profile, pod: Pod, filters: Sequence[tuple[int, FilterPlugin]]
) -> Evaluation:
    """Give a pod's evaluation, made of its class's and of what its own filters say.

    Args:
        evaluation: That of the class.
        profile: The profile.
        pod: The pod.
        filters: The filters that have answers of the pod's own.

    Cost: what these filters take for all rows, and a few operations over them.
    """
    tracks: list[FilterTrack] = []
    rejections: list[Rejection] = []
    for place, plugin in filters:
        state = plugin.prepare_filter(pod, evaluation.cluster)
        if isinstance(state, Status):
            rejections.append((place, Status(state.code, state.reasons, plugin.name)))
        elif state is not SKIP and plugin.name in profile.places:
            tracks.append(FilterTrack(plugin, state, profile.places[plugin.name]))
    if not tracks and not rejections:
        return evaluation
    made = evaluation.copy()
    if evaluation.rejection is not None:
        rejections.append((evaluation.rejected_at, evaluation.rejection))
    made.rejection = _outcome(rejections)
    if made.rejection is None:
        _lay_over(made, tracks)
    return made


def _outcome(rejections: Iterable[Rejection]) -> Status | None:
    """Choose the status that PreFilter ends with: the first that ends it, else the last."""
    outcome: Status | None = None
    for _, status in sorted(rejections, key=lambda one: one[0]):
        outcome = status
        if status.code is not Code.UNSCHEDULABLE:
            break
    return outcome


def _lay_over(made: Evaluation, tracks: Sequence[FilterTrack]) -> None:
    nodes = made.cluster.nodes
    size, known = nodes.size, made.filters
    for track in tracks:
        track.recompute(nodes.columns.capacity, size)
    made.filters = sorted([*known, *tracks], key=lambda track: track.place)
    first = _moved(made.first[:size], known, made.filters)
    rejecting = [track for track in tracks if track.rejects_any]
    for track in rejecting:
        place = made.filters.index(track) + 1
        rejected = (track.codes[:size] != 0) & ((first == FEASIBLE) | (first > place))
        np.putmask(first, rejected, place)
    made.first = first
    if not rejecting:
        return
    made.feasible_count = size - int(np.count_nonzero(first))
    made.ranked = np.where(first == FEASIBLE, made.ranked[:size], made.ranked.dtype.type(made.infeasible))
    made.filter_failure = made.failure_of([track for track in made.filters if track.fails or track in rejecting])


def _moved(first: Firsts, known: Sequence[FilterTrack], filters: Sequence[FilterTrack]) -> Firsts:
    """Turn places among the class's filters into places among all of them; ABSENT and FEASIBLE stay."""
    if list(known) == filters[: len(known)]:
        return first.copy()
    moved = np.array([-1, FEASIBLE, *(filters.index(track) + 1 for track in known)], np.int16)
    return moved[first + 1]
