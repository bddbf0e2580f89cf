"""The policies that decide together in a profile, as plugins of the engine.

Each is a filter and a score plugin of its own, under its own name; what they say of a pod class is worked out by one
sheet for all of them. What a policy is by itself (whom it selects, what it tells, whom it wakes) stays its own.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic
from weakref import WeakKeyDictionary

from numpy.typing import NDArray

from policysched.framework import SKIP, Cluster, Codes, Hint, Mask, RowNumbers, Rows, Scores, Status
from policysched.model.objects import Pod
from policysched.rules.board import Board, CommonLine, FilterLine, ScoreLine
from policysched.rules.plugin import PolicyPlugin
from policysched.rules.reach import Reach
from policysched.rules.scoring import Finals
from policysched.rules.shared import Shared
from policysched.rules.sheet import FilterSheet, LineT, ScoreSheet, Sheet
from policysched.rules.subject import Subject

BYTES_PER_LANE = 512
"""What a lane takes beside its part of the sheet. Units: bytes."""


@dataclass(slots=True)
class Lane(Generic[LineT]):
    """One policy's part of a sheet."""

    sheet: Sheet[LineT]
    place: int
    alone: Callable[[], Sheet[LineT]]
    """Makes a sheet of this lane only, for rows that no other policy is asked about."""
    reach: Reach
    own_sheet: Sheet[LineT] | None = None
    own_rows: Rows | None = None
    """The rows that this policy was last found to be asked about by itself."""
    moves: int = -1
    """How often something had moved when this was last asked what it reaches."""

    @property
    def nbytes(self) -> int:
        """The memory that it takes; the first one's is that of the sheet as well. Units: bytes."""
        alone = self.own_sheet.nbytes if self.own_sheet is not None else 0
        return BYTES_PER_LANE + alone + (0 if self.place else self.sheet.nbytes)

    def reached(self, rows: Rows) -> Rows:
        """Add the rows that see something else of what many rows look at together."""
        moves, self.own_rows = self.sheet.moves(), None
        if moves == self.moves:
            return rows
        self.moves = moves
        found = self.reach.extend(rows)
        self.own_rows = None if found is rows else found
        return found

    def answers(self, rows: Rows) -> NDArray[Any]:
        """Give what the policy says of rows. Shapes: (R,)."""
        if rows is not self.own_rows:
            return self._of(self.sheet, rows, self.place)
        if self.own_sheet is None:
            self.own_sheet = self.alone()
        return self._of(self.own_sheet, rows, 0)

    @staticmethod
    def _of(sheet: Sheet[LineT], rows: Rows, place: int) -> NDArray[Any]:
        answers: NDArray[Any] = sheet.answers(rows)[place]
        return answers


Begin = Callable[[], Lane[LineT]]
"""Makes a lane: each who asks has one of its own, because a lane knows what was asked of it last."""


class Store:
    """What a group knows of one cluster."""

    def __init__(self, group: Group, shared: Shared) -> None:
        self.shared = shared
        filters = [line for lines in group.filter_lines.values() for line in lines if line.common]
        scores = [line for lines in group.score_lines.values() for line in lines if line.common]
        self.board = Board(shared, filters, scores)
        self._filters: tuple[Subject, dict[PolicyPlugin, Begin[FilterLine]]] | None = None
        self._scores: tuple[Subject, dict[PolicyPlugin, Begin[ScoreLine]]] | None = None
        self._group = group

    def filters(self, pod: Pod) -> dict[PolicyPlugin, Begin[FilterLine]]:
        """Give what makes the lanes of the policies that filter nodes for a pod."""
        subject = self.shared.subject(pod)
        if self._filters is None or self._filters[0] is not subject:
            speaking = {
                plugin: [lines[place] for place, _ in plugin.filters_for(pod, self.shared)]
                for plugin, lines in self._group.filter_lines.items()
            }
            self._filters = (subject, self._lanes(FilterSheet, subject, speaking))
        return self._filters[1]

    def scores(self, pod: Pod) -> dict[PolicyPlugin, Begin[ScoreLine]]:
        """Give what makes the lanes of the policies that score nodes for a pod without normalising."""
        subject = self.shared.subject(pod)
        if self._scores is None or self._scores[0] is not subject:
            speaking = {
                plugin: [lines[place] for place, _ in plugin.scores_for(pod, self.shared)]
                for plugin, lines in self._group.score_lines.items()
                if not plugin.normalizes
            }
            self._scores = (subject, self._lanes(ScoreSheet, subject, speaking))
        return self._scores[1]

    def _lanes(self, make: Any, subject: Subject, speaking: dict[PolicyPlugin, list[Any]]) -> dict[PolicyPlugin, Any]:
        longest_first = sorted(speaking.items(), key=lambda one: len(one[1]), reverse=True)
        speaking = {plugin: lines for plugin, lines in longest_first if lines}
        build = partial(make, self.shared, self.board, subject)
        sheet = build(list(speaking.values()))

        def begin(place: int, lines: list[Any]) -> Lane[Any]:
            return Lane(sheet, place, partial(build, [lines]), sheet.reach(place))

        return {plugin: partial(begin, place, lines) for place, (plugin, lines) in enumerate(speaking.items())}


class Group:
    """Some policies, in their order."""

    def __init__(self, filters: Sequence[PolicyPlugin], scores: Sequence[PolicyPlugin]) -> None:
        self.filter_lines = {plugin: plugin.filter_lines() for plugin in filters}
        self.score_lines = {plugin: [ScoreLine(rule) for rule in plugin.policy.scores] for plugin in scores}
        self._stores: WeakKeyDictionary[Shared, Store] = WeakKeyDictionary()
        members = {plugin: Member(self, plugin) for plugin in (*filters, *scores)}
        self.filters = tuple(members[plugin] for plugin in filters)
        self.scores = tuple(members[plugin] for plugin in scores)

    def store(self, shared: Shared) -> Store:
        """Give what the group knows of a cluster."""
        found = self._stores.get(shared)
        if found is None:
            found = self._stores[shared] = Store(self, shared)
        return found


class Member:
    """One policy at the points Filter and Score, evaluated together with the others of its group."""

    def __init__(self, group: Group, plugin: PolicyPlugin) -> None:
        self._group = group
        self.plugin = plugin
        self.policy = plugin.policy
        self.name = plugin.name
        self.lasting = plugin.lasting
        self.filter_reads = plugin.filter_reads
        self.score_reads = plugin.score_reads
        self.normalizes = plugin.normalizes

    def prepare_filter(self, pod: Pod, cluster: Cluster) -> Any:
        """Keep the filter rules that speak for the pod; reject it while a namespace that they need is not known."""
        store = self._store(cluster)
        waiting = self.plugin.awaits(pod, store.shared)
        if waiting is not None:
            return waiting
        begin = store.filters(pod).get(self.plugin)
        return SKIP if begin is None else begin()

    def filter_reach(self, state: Lane[FilterLine], rows: RowNumbers) -> Rows:
        """Add the rows that see another aggregate, or another value for all rows."""
        return state.reached(rows)

    def filter(self, state: Lane[FilterLine], rows: Rows) -> Codes:
        """Reject rows where a rule's condition is not true; the first such rule gives the code."""
        return state.answers(rows)

    def reason(self, state: Lane[FilterLine], code: int) -> Status:  # noqa: ARG002 - codes name rules of the policy
        """Name the policy, the rule and what it says."""
        return self.plugin.reason(None, code)

    def prepare_score(self, pod: Pod, cluster: Cluster) -> Any:
        """Keep the score rules that speak for the pod."""
        store = self._store(cluster)
        if not self.normalizes:
            begin = store.scores(pod).get(self.plugin)
            return SKIP if begin is None else begin()
        lines = self._group.score_lines[self.plugin]
        free = [line for line in lines if line.common]
        common = {line.rule.name: CommonLine(store.board, line) for line in free}
        state = self.plugin.score_state(pod, store.shared, common, store.board.sources(free))
        return state if state is SKIP else Finals(state)

    def score_reach(self, state: Lane[ScoreLine] | Finals, rows: RowNumbers) -> Rows:
        """Add the rows that see another aggregate, or another value for all rows."""
        return state.reached(rows)

    def score(self, state: Lane[ScoreLine] | Finals, rows: Rows) -> Scores:
        """Score rows; where a rule normalises, the final scores come with `normalize` alone."""
        return state.answers(rows)

    def stays_in_range(self, state: Lane[ScoreLine] | Finals) -> bool:  # noqa: ARG002 - scores are clipped
        """Give True."""
        return True

    def normalize(self, state: Finals, scores: Scores, feasible: Mask) -> Scores:  # noqa: ARG002 - see `score`
        """Normalise each rule's values over the feasible rows and combine them."""
        return state.of(feasible)

    def events(self) -> Sequence[Hint]:
        """Name the changes of what the filters read."""
        return self.plugin.events()

    def epoch(self, cluster: Cluster) -> Hashable:
        """Move with what decides whether rules speak."""
        return self.plugin.epoch(cluster)

    def turned_away(self, pod: Pod, cluster: Cluster) -> None:
        """Remember where the rules hold now for a pod that is turned away."""
        self.plugin.turned_away(pod, cluster)

    def looks_again(self, pod: Pod, cluster: Cluster) -> float | None:
        """Give the time at which time alone can change what the filters say of a pod."""
        return self.plugin.looks_again(pod, cluster)

    def _store(self, cluster: Cluster) -> Store:
        return self._group.store(self.plugin.shared(cluster))
