"""One pod class's verdicts and scores on every row, kept up to date instead of recomputed.

Pods of a class are equal in everything scheduling reads, so what was found out for one holds for the next: only rows
that changed since, in aspects that a plugin reads, are asked again. A decision then costs a few array operations over
all rows, however many plugins there are.

Shapes: C the capacity of the columns, N ≤ C the rows in use, R the rows that changed.
Source: pkg/scheduler/framework/runtime/framework.go (RunPreFilterPlugins, RunFilterPlugins, RunScorePlugins).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

import numpy as np
from numpy.typing import NDArray

from policysched.framework import SKIP, Code, Mask, Narrow, Rows, Scores, Status, unresolvable
from policysched.framework.profile import Profile
from policysched.model.objects import Pod
from policysched.schedule.tracks import FilterTrack, Narrowing, ScoreTrack
from policysched.state.cluster import Cluster
from policysched.state.footprint import Footprint, footprint

FEASIBLE = 0
ABSENT = -1
INFEASIBLE_SCORE = -1


class Evaluation:
    """A pod class under one profile and policy set."""

    def __init__(self, cluster: Cluster, profile: Profile, pod: Pod, epochs: Hashable) -> None:
        self.cluster = cluster
        self.epochs = epochs
        self._seen = cluster.journal.position
        self.footprint: Footprint = footprint(pod)
        self.narrowing: tuple[str, ...] = ()
        """The plugins that narrowed the nodes, sorted."""
        self.filters: list[FilterTrack] = []
        self.first: NDArray[np.int16] = np.zeros(0, np.int16)
        """Each row's first rejecting filter, counted from 1; FEASIBLE or ABSENT where there is none."""
        self.ranked: NDArray[np.int32] = np.zeros(0, np.int32)
        """Each row's sum of scores that need no normalising."""
        self.rejected_at = 0
        """The place of the plugin that rejected the pod outright."""
        self.rejection = self._prepare_filters(profile, pod)
        self.filter_failure: Status | None = None
        """The status of a filter that failed on some node."""
        self.scores: list[ScoreTrack] = []
        self.score_failure: Status | None = None
        """The status of a plugin that failed at PreScore; it matters once there is more than one node to choose."""
        if self.rejection is None:
            self._prepare_scores(profile, pod)
            self._recompute()

    def refresh(self) -> None:
        """Bring verdicts and scores up to the journal's position."""
        journal = self.cluster.journal
        if self.rejection is not None or journal.position == self._seen:
            return
        changed = journal.since(self._seen)
        if changed is None:
            self._recompute()
            return
        rows, aspects = changed
        self._seen = journal.position
        touched = int(np.bitwise_or.reduce(aspects))
        asked: list[Rows] = [rows]
        for track in self._tracks():
            if touched & track.reads:
                reached = track.update(rows[(aspects & track.reads) != 0])
                if track.reaches:
                    asked.append(reached)
        self._combine(self._together(asked))

    def feasible(self) -> Mask:
        """Tell which rows every filter lets pass.

        Shapes: (N,).
        """
        feasible: Mask = self.first[: self.cluster.nodes.size] == FEASIBLE
        return feasible

    def ranking(self) -> NDArray[np.signedinteger]:
        """Give the totals that order the rows, −1 for rows that are not feasible.

        Plugins that give every row the same are left out, so these are no decision record's totals.
        Shapes: (N,).
        """
        size = self.cluster.nodes.size
        ranked = self.ranked[:size]
        uneven = [track for track in self.scores if track.normalizes and not track.flat]
        if not uneven:
            return ranked
        feasible = ranked != INFEASIBLE_SCORE
        total: Scores = ranked.astype(np.int64)
        for track in uneven:
            total += track.final(feasible)
        total[~feasible] = INFEASIBLE_SCORE
        return total

    def status(self, row: int) -> Status:
        """Say why a row is not feasible."""
        track = self.filters[int(self.first[row]) - 1]
        return track.reason(int(track.codes[row]))

    def histogram(self) -> list[tuple[Status, int]]:
        """Count the rows by the status that keeps them out."""
        first = self.first[: self.cluster.nodes.size]
        counted = []
        for position in np.unique(first[first > 0]).tolist():
            track = self.filters[position - 1]
            codes, counts = np.unique(track.codes[: first.size][first == position], return_counts=True)
            counted += [
                (track.reason(code), count) for code, count in zip(codes.tolist(), counts.tolist(), strict=True)
            ]
        return counted

    def _tracks(self) -> Iterator[FilterTrack | ScoreTrack]:
        yield from self.filters
        yield from self.scores

    def _prepare_filters(self, profile: Profile, pod: Pod) -> Status | None:
        rejection: Status | None = None
        allowed: frozenset[str] | None = None
        narrowing: set[str] = set()
        for place, plugin in profile.class_filters:
            state = plugin.prepare_filter(pod, self.cluster)
            if state is SKIP:
                continue
            if isinstance(state, Status):
                self.rejected_at = place
                rejection = Status(state.code, state.reasons, plugin.name)
                if state.code is not Code.UNSCHEDULABLE:
                    return rejection
                continue
            if isinstance(state, Narrow):
                narrowing.add(plugin.name)
                allowed = state.nodes if allowed is None else allowed & state.nodes
                self.narrowing = tuple(sorted(narrowing))
                if not allowed:
                    self.rejected_at = place
                    return unresolvable(_narrowed_to_nothing(self.narrowing))
                state = state.state
            self.filters.append(FilterTrack(plugin, state, place))
        if allowed is not None and rejection is None:
            self.filters.insert(0, FilterTrack(Narrowing(self.narrowing), Narrowing.prepare(allowed, self.cluster)))
        return rejection

    def _prepare_scores(self, profile: Profile, pod: Pod) -> None:
        for plugin, weight in profile.scores:
            state = plugin.prepare_score(pod, self.cluster)
            if isinstance(state, Status):
                self.score_failure = state.by(plugin.name)
                self.scores.clear()
                return
            if state is not SKIP:
                self.scores.append(ScoreTrack(plugin, weight, state))

    def _recompute(self) -> None:
        nodes = self.cluster.nodes
        self._seen = self.cluster.journal.position
        self.first = np.full(nodes.columns.capacity, ABSENT, np.int16)
        self.ranked = np.full(nodes.columns.capacity, INFEASIBLE_SCORE, np.int32)
        for track in self._tracks():
            track.recompute(nodes.columns.capacity, nodes.size)
        self._combine(slice(0, nodes.size))

    def _together(self, asked: list[Rows]) -> Rows:
        """Join rows, those that changed first, into one selection; slices are all rows."""
        arrays = [rows for rows in asked if not isinstance(rows, slice)]
        if len(arrays) < len(asked):
            return slice(0, self.cluster.nodes.size)
        return np.concatenate(arrays)

    def _combine(self, rows: Rows) -> None:
        """Find each row's first rejecting filter, and its sum of scores that need no normalising."""
        present = self.cluster.nodes.present.data[rows]
        first = np.zeros(present.size, np.int16)
        for position in range(len(self.filters), 0, -1):
            track = self.filters[position - 1]
            if track.rejects_any:
                first[track.codes[rows] != 0] = position
        first[~present] = ABSENT
        self.first[rows] = first
        ranked = np.zeros(present.size, np.int32)
        for score in self.scores:
            if not score.normalizes and not score.flat:
                ranked += score.values[rows]
        ranked[first != FEASIBLE] = INFEASIBLE_SCORE
        self.ranked[rows] = ranked


def _narrowed_to_nothing(plugins: tuple[str, ...]) -> str:
    if len(plugins) == 1:
        return f"node(s) didn't satisfy plugin {plugins[0]}"
    return f"node(s) didn't satisfy plugin(s) [{' '.join(plugins)}] simultaneously"
