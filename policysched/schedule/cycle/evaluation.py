"""One pod class's verdicts and scores on every row, kept up to date instead of recomputed.

Pods of a class are equal in everything scheduling reads, so what was found out for one holds for the next: only rows
that changed since, in aspects that a plugin reads, are asked again. A decision then costs a few array operations over
all rows, however many plugins there are.

Shapes: C the capacity of the columns, N ≤ C the rows in use, R the rows that changed.
Source: pkg/scheduler/framework/runtime/framework.go (RunPreFilterPlugins, RunFilterPlugins, RunScorePlugins).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from policysched.framework import MAX_NODE_SCORE, SKIP, Code, Mask, RowNumbers, Rows, Scores, Status
from policysched.framework.profile import Profile
from policysched.model.objects import Pod
from policysched.schedule.cycle.changes import PRESENCE, Changes, joined
from policysched.schedule.cycle.preparing import Preparing
from policysched.schedule.cycle.tracks import FilterTrack, ScoreTrack
from policysched.schedule.cycle.trial import Trial
from policysched.state.cluster import Cluster
from policysched.state.tables.amounts import PodResources, pod_resources

FEASIBLE = 0
ABSENT = -1
MANY = 8
"""One in how many rows are so many that it is quicker to go through all rows, without picking any."""
NARROWED = 1
"""The first rejecting filter of rows that narrowing leaves out, where anything narrows."""
_OUT_OF_RANGE = (
    'applying score defaultWeights on Score plugins: plugin "{}" returns an invalid score {}, '
    f"it should in the range of [0, {MAX_NODE_SCORE}] after normalizing"
)
BYTES = 3072
"""What an evaluation takes beside its arrays and its tracks. Units: bytes."""
MEASURED_EVERY = 32
"""How many refreshes there may be before the memory is counted again."""
WIDEST_NARROW_TOTAL = 2**31 - 1
"""The largest total that fits into 32 bits."""


class Evaluation:
    """A pod class under one profile and policy set."""

    filters: list[FilterTrack]
    """The filters that have something to say, in their order."""
    narrowing: tuple[str, ...]
    """The plugins that narrowed the nodes, sorted."""
    first: NDArray[np.int16]
    """Each row's first rejecting filter, counted from 1; FEASIBLE or ABSENT where there is none."""
    feasible_count: int
    """How many rows every filter lets pass."""
    rejection: Status | None
    """The status that rejected the pod outright."""
    rejected_at: int
    """The place of the plugin that gave it, in the order of PreFilter."""
    filter_failure: Status | None
    """The status of a filter that failed on some node."""
    ranked: NDArray[np.signedinteger]
    """Each row's sum of scores that need no normalising, `infeasible` for rows that are not feasible."""
    scored: bool
    """Whether any plugin scores; without one every node's total is 1."""
    score_failure: Status | None
    """The status of a plugin that failed at PreScore; it matters once there is more than one node to choose."""

    nbytes: int
    """The memory that it took when it was last measured, 0 before that. Units: bytes."""

    def __init__(self, cluster: Cluster, profile: Profile, pod: Pod, generations: Hashable) -> None:
        self.cluster = cluster
        self.nbytes = self._refreshes = 0
        self.generations = generations
        self._seen = cluster.journal.position
        self.pod_resources: PodResources = pod_resources(pod)
        prepared = Preparing(cluster, profile, pod)
        self.filters, self.narrowing = prepared.tracks, prepared.narrowing
        self._failing = [track for track in self.filters if track.fails]
        self.first = np.zeros(0, np.int16)
        self.feasible_count = 0
        self.rejection, self.rejected_at = prepared.rejection, prepared.rejected_at
        self.filter_failure = None
        self.ranked = np.zeros(0, _width(profile))
        self.infeasible = int(np.iinfo(self.ranked.dtype).min)
        self.scored = bool(profile.scores)
        self.scores: list[ScoreTrack] = []
        self.score_failure = None
        if self.rejection is None:
            self._prepare_scores(profile, pod)
            self._recompute()

    def measure(self) -> None:
        """Count the memory anew: its arrays, what plugins prepared, and their parts of what several classes share."""
        states = sum(track.nbytes for track in self._tracks())
        self.nbytes = BYTES + states + self.first.nbytes + self.ranked.nbytes

    @property
    def to_be_measured(self) -> bool:
        """Whether it was refreshed so often that it may have grown since it was measured."""
        return self._refreshes % MEASURED_EVERY == 1

    def copy(self) -> Evaluation:
        """Give another one of the same parts, to replace some of them."""
        made = object.__new__(Evaluation)
        made.__dict__ |= self.__dict__
        return made

    def refresh(self) -> None:
        """Bring verdicts and scores up to the journal's position."""
        self._refreshes += 1
        journal = self.cluster.journal
        if self.rejection is not None or journal.position == self._seen:
            return
        changed = journal.since(self._seen)
        if changed is None:
            self._recompute()
            return
        self._seen = journal.position
        changes = Changes(*changed)
        present = changes.of(PRESENCE)
        judged = [track.update(rows) for track in self.filters if (rows := changes.of(track.reads)) is not None]
        scored = [track.update(rows) for track in self.scores if (rows := changes.of(track.reads)) is not None]
        if present is not None:
            judged.append(present)
        self._combine(joined(judged), joined(scored))

    def feasible(self) -> Mask:
        """Tell which rows every filter lets pass.

        Shapes: (N,).
        """
        feasible: Mask = self.first[: self.cluster.nodes.size] == FEASIBLE
        return feasible

    def ranking(self) -> NDArray[np.signedinteger]:
        """Give the totals that order the rows, `infeasible` for rows that are not feasible.

        Plugins that give every row the same are left out, so these are no decision record's totals.
        Shapes: (N,).
        """
        size = self.cluster.nodes.size
        ranked = self.ranked[:size]
        uneven = [track for track in self.scores if track.normalizes and not track.flat]
        if not uneven:
            return ranked
        feasible = self.feasible()
        added = [scores for track in uneven if (scores := track.added(feasible)) is not None]
        if not added:
            return ranked
        total: Scores = ranked.astype(np.int64)
        for scores in added:
            total += scores
        if self.feasible_count < total.size:
            np.putmask(total, ~feasible, self.infeasible)
        return total

    def stray(self) -> Status | None:
        """Give the status of the first plugin whose final score on a feasible row is none of 0 to 100.

        Source: pkg/scheduler/framework/runtime/framework.go (RunScorePlugins).
        """
        for track in self.scores:
            if track.strays and (score := track.stray(self.feasible())) is not None:
                return Status(Code.ERROR, (_OUT_OF_RANGE.format(track.plugin.name, score),), track.plugin.name)
        return None

    def admits(self, row: int) -> bool:
        """Tell whether every filter lets a row pass, be it among the nodes that narrowing leaves or not."""
        first = int(self.first[row])
        if not self.narrowing or first != NARROWED:
            return first == FEASIBLE
        return not any(track.rejects_any and track.codes[row] for track in self.filters[1:])

    def trial(self, row: int) -> Trial:
        """Return a what-if of a node: its verdict with pods taken away or added; PreFilter did not end the pod."""
        return Trial(self.cluster, self.filters, row)

    def status(self, row: int) -> Status:
        """Say why a row is not feasible."""
        track = self.filters[int(self.first[row]) - 1]
        return track.reason(int(track.codes[row]))

    def status_before_narrowing(self, row: int) -> Status:
        """Say why a filter keeps a row out that other nodes' narrowing leaves out as well."""
        rejecting = (track for track in self.filters[1:] if track.rejects_any and track.codes[row])
        track = next(rejecting, self.filters[0])
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

    def _prepare_scores(self, profile: Profile, pod: Pod) -> None:
        unscored = profile.pre_scores if profile.scores else ()
        for plugin, weight in (*profile.scores, *((plugin, None) for plugin in unscored)):
            state = plugin.prepare_score(pod, self.cluster)
            if isinstance(state, Status):
                self.score_failure = state.by(plugin.name)
                self.scores.clear()
                return
            if state is not SKIP and weight is not None:
                self.scores.append(ScoreTrack(plugin, weight, state))

    def _recompute(self) -> None:
        nodes = self.cluster.nodes
        self._seen = self.cluster.journal.position
        self.first = np.full(nodes.columns.capacity, ABSENT, np.int16)
        self.ranked = np.full(nodes.columns.capacity, self.infeasible, self.ranked.dtype)
        for track in self._tracks():
            track.recompute(nodes.columns.capacity, nodes.size)
        self._judge(slice(0, nodes.size))
        self._rank(slice(0, nodes.size))

    def _combine(self, judged: RowNumbers, scored: RowNumbers) -> None:
        """Take note of rows that a filter answers otherwise, and of rows with another score."""
        size = self.cluster.nodes.size
        if judged.size:
            self._judge(judged if judged.size * MANY < size else slice(0, size))
            scored = np.concatenate((judged, scored))
        if scored.size:
            self._rank(scored if scored.size * MANY < size else slice(0, size))

    def _judge(self, rows: Rows) -> None:
        """Find rows' first rejecting filters."""
        present = self.cluster.nodes.present.data[rows]
        first = np.zeros(present.size, np.int16)
        for position in range(len(self.filters), 0, -1):
            track = self.filters[position - 1]
            if track.rejects_any:
                np.putmask(first, track.codes[rows] != 0, position)
        np.putmask(first, ~present, ABSENT)
        self.first[rows] = first
        self.feasible_count = self.first.size - int(np.count_nonzero(self.first))
        if self._failing:
            self.filter_failure = self.failure_of(self._failing)

    def _rank(self, rows: Rows) -> None:
        """Add up rows' scores that need no normalising."""
        first = self.first[rows]
        ranked = np.zeros(first.size, self.ranked.dtype)
        for score in self.scores:
            if not score.normalizes and not score.flat:
                ranked += score.values[rows]
        np.putmask(ranked, first != FEASIBLE, self.infeasible)
        self.ranked[rows] = ranked

    def failure_of(self, tracks: Sequence[FilterTrack]) -> Status | None:
        """Give the status of one of these filters that failed on a node where it was the first to object."""
        size = self.cluster.nodes.size
        for track in tracks:
            if not track.rejects_any:
                continue
            codes = track.codes[:size]
            for code in np.bincount(codes).nonzero()[0].tolist():
                if code and (status := track.reason(code)).code is Code.ERROR:
                    place = self.filters.index(track) + 1
                    if ((codes == code) & (self.first[:size] == place)).any():
                        return status
        return None


def _width(profile: Profile) -> type[np.signedinteger]:
    """Choose the narrowest integers that hold every total of the profile's weights."""
    most = sum(abs(weight) for _, weight in profile.scores) * MAX_NODE_SCORE
    return np.int32 if most <= WIDEST_NARROW_TOTAL else np.int64
