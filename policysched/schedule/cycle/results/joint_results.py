"""Results of plugins evaluated as one batch (all policies), updated with one call per change.

Twenty policies are one matrix of rules; what each of them says of a row that changed is one row of its answer. Here
these answers are kept and compared all at once. Each plugin's own results stay what they are (a view of one row each),
and each can still be asked by itself.

Shapes: P plugins, Q of them that ever rejected a row, C the capacity of the columns, R rows that changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from policysched.framework import NO_ROWS, Codes, RowNumbers, Together, together_of
from policysched.schedule.cycle.results.plugin_results import FilterResults, ScoreResults

ResultsT = TypeVar("ResultsT", FilterResults, ScoreResults)


class JointFilters:
    """The reason codes of filters that answer together.

    Args:
        members: Their results, in the order of their answers.
    """

    __slots__ = ("_answers", "_codes", "_members", "_rejecting", "names", "reads")

    def __init__(self, members: Sequence[FilterResults], together: Together) -> None:
        self._members, self._answers = members, _Answers(together, members)
        self.names = tuple(one.plugin.name for one in members)
        """The names of the plugins."""
        self.reads = _reads(members)
        self._gather()

    def update(self, rows: RowNumbers) -> RowNumbers:
        """Ask all about the rows that changed, and each about those that it sees affected; return what differs."""
        found = self._update_moved(rows)
        answers = self._answers.of(rows)
        rejections = int(np.count_nonzero(answers))
        if self._rejecting.size:
            codes = answers[self._rejecting]
            differs = (codes != self._codes[:, rows]).any(axis=0)
            if np.count_nonzero(differs):
                self._codes[:, rows] = codes
                found.append(rows[differs])
            rejections -= int(np.count_nonzero(codes))
        if rejections:
            for one, codes in zip(self._members, answers, strict=True):
                if not one.rejects_any:
                    found.append(one.take(rows, codes))
            self._gather()
        return _joined(found)

    def _update_moved(self, rows: RowNumbers) -> list[RowNumbers]:
        if not self._answers.have_moved():
            return []
        found = [one.update_affected(rows) for one in self._members]
        if len(self._rejecting) != sum(one.rejects_any for one in self._members):
            self._gather()
        return [one for one in found if one.size]

    def _gather(self) -> None:
        """Put the codes of those that rejected a row into one array. Shapes: (Q, C)."""
        self._rejecting = np.array([place for place, one in enumerate(self._members) if one.rejects_any], np.intp)
        rejecting = [self._members[place] for place in self._rejecting.tolist()]
        if rejecting:
            self._codes: Codes = np.array([one.codes for one in rejecting])
            for one, codes in zip(rejecting, self._codes, strict=True):
                one.codes = codes


class TierSums:
    """The weighted sums of those members whose scores count in one tier.

    Args:
        members: All members, in the order of their answers.
        tier: The tier.
        scores: Their scores. Shapes: (P, C).
        dtype: What holds the sums.
    """

    __slots__ = ("_members", "_places", "_weights", "values")

    flat = False

    def __init__(
        self,
        members: Sequence[ScoreResults],
        tier: int,
        scores: NDArray[np.integer],
        dtype: np.dtype[np.signedinteger],
    ) -> None:
        places = [place for place, one in enumerate(members) if one.tier == tier]
        self._places = None if len(places) == len(members) else np.array(places, np.intp)
        self._members = [members[place] for place in places]
        self._weights = np.array([one.weight for one in self._members], np.int64)
        self.values: NDArray[np.signedinteger] = np.zeros(scores.shape[1], dtype)
        """The weighted sums. Shapes: (C,)."""
        for place in places:
            if not members[place].flat:
                self.values += members[place].weight * scores[place].astype(dtype)

    def reweigh(self, scores: NDArray[np.integer]) -> None:
        """Add what the members that got other weights add to the sums. Shapes: (P, C)."""
        weights = np.array([one.weight for one in self._members], np.int64)
        [changed] = (weights != self._weights).nonzero()
        rows = changed if self._places is None else self._places[changed]
        self.values += ((weights - self._weights)[changed] @ scores[rows]).astype(self.values.dtype)
        self._weights = weights

    def update(self, rows: RowNumbers, scores: NDArray[np.integer]) -> RowNumbers:
        """Add up the scores of rows; return those with another sum. Shapes: (P, R)."""
        sums = self._weights @ (scores if self._places is None else scores[self._places])
        differs = sums != self.values[rows]
        self.values[rows] = sums
        changed: RowNumbers = rows[differs]
        return changed


class JointScores:
    """The scores of plugins that answer together, and their weighted sums by tier.

    Args:
        members: Their results, in the order of their answers.
        dtype: What holds the sums.
    """

    __slots__ = ("_answers", "_members", "_scores", "names", "reads", "sums")

    def __init__(
        self, members: Sequence[ScoreResults], together: Together, capacity: int, dtype: np.dtype[np.signedinteger]
    ) -> None:
        self._members, self._answers = members, _Answers(together, members)
        self.names = tuple(one.plugin.name for one in members)
        """The names of the plugins."""
        self.reads = _reads(members)
        self._scores = np.zeros((len(members), capacity), np.int8)
        """Shapes: (P, C)."""
        for scores, one in zip(self._scores, members, strict=True):
            if not one.flat:
                scores[:] = one.values
        tiers = {one.tier for one in members}
        self.sums = {tier: TierSums(members, tier, self._scores, dtype) for tier in tiers}
        """By tier, the sums of its members."""
        for scores, one in zip(self._scores, members, strict=True):
            one.values, one.flat = scores, False

    @property
    def nbytes(self) -> int:
        """The memory of the sums; that of scores belongs to the members. Units: bytes."""
        return sum(one.values.nbytes for one in self.sums.values())

    def reweigh(self) -> None:
        """Add up again after members got other weights."""
        for sums in self.sums.values():
            sums.reweigh(self._scores)

    def update(self, rows: RowNumbers) -> RowNumbers:
        """Ask all about the rows that changed, and each about those that it sees affected; return what differs."""
        found = []
        if self._answers.have_moved():
            moved = [one for member in self._members if (one := member.update_affected(rows)).size]
            found = [sums.update(one, self._scores[:, one]) for one in moved for sums in self.sums.values()]
        answers = self._answers.of(rows)
        self._scores[:, rows] = answers
        found += [sums.update(rows, answers) for sums in self.sums.values()]
        return _joined(found)


def joint_filters(results: Iterable[FilterResults]) -> list[FilterResults | JointFilters]:
    """Put filters together that answer together; what is asked about all rows was asked before."""
    alone, groups = _grouped(results)
    return [*alone, *(JointFilters(members, together) for together, members in groups)]


def joint_scores(
    results: Iterable[ScoreResults], capacity: int, dtype: np.dtype[np.signedinteger]
) -> list[ScoreResults | JointScores]:
    """Put plugins together whose scores come together; what is asked about all rows was asked before."""
    alone, groups = _grouped(results)
    return [*alone, *(JointScores(members, together, capacity, dtype) for together, members in groups)]


def adding_by_tier(results: Iterable[ScoreResults | JointScores]) -> dict[int, list[ScoreResults | TierSums]]:
    """Return what needs no normalising and is added up, by tier, the highest first; tier 0 is always there.

    A tier whose plugins all normalise has an empty list.
    """
    found: dict[int, list[ScoreResults | TierSums]] = {0: []}
    for one in results:
        if isinstance(one, JointScores):
            for tier, sums in one.sums.items():
                found.setdefault(tier, []).append(sums)
        else:
            added = found.setdefault(one.tier, [])
            if not one.normalizes:
                added.append(one)
    return dict(sorted(found.items(), reverse=True))


def _grouped(results: Iterable[ResultsT]) -> tuple[list[ResultsT], list[tuple[Together, list[ResultsT]]]]:
    """Return results of plugins that answer by themselves, and the others by what answers for them."""
    alone: list[ResultsT] = []
    groups: dict[int, tuple[Together, dict[int, ResultsT]]] = {}
    for one in results:
        together = together_of(one.state)
        if together is None:
            alone.append(one)
        else:
            groups.setdefault(id(together), (together, {}))[1][one.state.place] = one
    return alone, [(together, [places[place] for place in sorted(places)]) for together, places in groups.values()]


class _Answers:
    """What members of a group say of rows, of all for whom something answers together. Shapes: (P, R)."""

    __slots__ = ("_places", "_together", "moves")

    def __init__(self, together: Together, members: Sequence[FilterResults | ScoreResults]) -> None:
        self._together = together
        self._places = None if len(members) == len(together) else np.array([one.state.place for one in members])
        self.moves = -1
        """How often something had moved when it was last asked about."""

    def have_moved(self) -> bool:
        """Return whether something moved since this was asked last."""
        before, self.moves = self.moves, self._together.moves()
        return self.moves != before

    def of(self, rows: RowNumbers) -> NDArray[Any]:
        """Ask all of them."""
        answers = self._together.answers(rows)
        return answers if self._places is None else answers[self._places]


def _reads(members: Iterable[FilterResults | ScoreResults]) -> int:
    reads = 0
    for one in members:
        reads |= one.reads
    return reads


def _joined(found: Sequence[RowNumbers]) -> RowNumbers:
    if len(found) < 2:
        return found[0] if found else NO_ROWS
    return np.concatenate(found)
