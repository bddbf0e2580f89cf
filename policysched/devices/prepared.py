"""`PreparedClaims`: on which node groups claims of equal specs can be allocated, and why not elsewhere.

It is updated incrementally, by what moved. Nodes are asked by groups that see the same pools, and groups that look
alike to these claims get the same answer. Claims that want nothing but enough devices of each kind are answered by
counting.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from policysched.devices.inventory.batch import GroupBatch, Places
from policysched.devices.inventory.columns import NOBODY, Codes
from policysched.devices.inventory.pools import NodeGroup, PoolView, SeenPool
from policysched.devices.inventory.tables import DeviceTables
from policysched.devices.outcomes import AllocationAnswer, Outcome
from policysched.devices.refusals import Refusals, refusals_of
from policysched.devices.requests.kinds import Kinds, combined_codes
from policysched.devices.requests.plans import Plans, selectors_of
from policysched.devices.requests.requirements import DeviceKind, Suitability
from policysched.devices.search import DeviceSearch
from policysched.devices.search_space import SearchSpace, ViewShape, suitabilities
from policysched.devices.steps import OutOfStepsError, Steps
from policysched.devices.wide_spaces import WIDE, WideSpaces
from policysched.model.objects import ResourceClaim

_YES: Final = Outcome(AllocationAnswer.YES)
_NO: Final = Outcome(AllocationAnswer.NO)
_INVALID_POOLS: Final = Outcome(AllocationAnswer.INVALID_POOLS)
_OUT_OF_STEPS: Final = Outcome(AllocationAnswer.TIMEOUT)
_MOST_REMEMBERED: Final = 20_000
"""How many answers and shapes are remembered."""
_MOST_VIEWS: Final = 8_000
"""Of how many views, some of them perhaps gone, it is remembered which kinds of devices they have."""
_MOST_WIDE_OUTCOMES: Final = 256
"""How many answers are remembered of nodes that see many pools: what is left there is hardly ever the same again."""
_WIDEST: Final = 64
"""Up to how many devices nodes have that are compared as a whole."""
_MANY: Final = 32
"""From how many groups on they are answered together."""
_MOST_LOGGED: Final = 1024
"""How many rows that changed are named."""
_UNANSWERED: Final = -1
_LAST_ANSWER: Final = int(AllocationAnswer.INVALID_POOLS)
"""The last code that is no failure."""
_BYTES_A_KIND: Final = 600
_BYTES_A_VERDICT: Final = 300
_BYTES_AN_ANSWER: Final = 1500
_BYTES_A_VIEW: Final = 300
_BYTES_A_CHARACTER: Final = 100
"""What the program of a selector takes for each character of its text."""
_BYTES_OF_PLANS: Final = 8
"""What requests and constraints take for each byte of their JSON."""
_STEPS_A_GROUP: Final = 16
"""How many steps each group of nodes has besides those of the whole question."""
_STEPS_OF_GROUPS: Final = 4096
"""How many steps all groups of nodes have at most besides those of the whole question."""
_POOLS_A_STEP: Final = 4
"""For how many pools that a group sees it is one step to look whether the answer is known."""
_STEPS_A_SEARCH: Final = 32
"""What it takes to begin with a search, besides a step for each requirement of each pool and for each 16 devices."""


class PreparedClaims:
    """Claims of certain specs, and what is known of them.

    Args:
        tables: the devices.
        claims: claims with these specs.
        length: how long what they ask for is as JSON.
    """

    def __init__(self, tables: DeviceTables, claims: Sequence[ResourceClaim], length: int) -> None:
        self._tables = tables
        self.plans = Plans(claims, tables.classes)
        self._length = length
        self._characters = sum(map(len, selectors_of(claims, tables.classes)))
        self._kinds = Kinds(tables.columns, self.plans.names_read())
        self._known: list[dict[int, Suitability]] = [{} for _ in self.plans.requirements]
        self._wanted = self._wanted_by_requirement()
        self._is_asked: NDArray[np.bool_] = np.zeros(0, np.bool_)
        """Of each kind whether it is known if it fits."""
        self._is_odd: NDArray[np.bool_] = np.zeros(0, np.bool_)
        """Of each kind that is known whether its devices take a search."""
        self._fits: NDArray[np.bool_] = np.zeros((len(self._wanted), 0), np.bool_)
        """Of each wanted requirement and kind that is known whether it fits."""
        self._shapes: dict[bytes, ViewShape] = {}
        self._by_view: dict[PoolView, bytes] = {}
        self._outcomes: dict[Hashable, Outcome] = {}
        self._begun: tuple[Hashable, DeviceSearch] | None = None
        """The search that ran out of steps: it goes on where one in pools that look alike is wanted next."""
        self._wide = WideSpaces(self._known, self._state_of)
        self._wide_outcomes: dict[bytes, Outcome] = {}
        """What was found in search spaces that are kept."""
        self._waiting: dict[NodeGroup, None] = {}
        self._awaits_single_nodes = False
        """Whether all nodes that own their devices are to be asked again, too."""
        self._place = -1
        self._caught_up = -1
        """The revision of the tables that was caught up with."""
        self.answered_at = -1
        """The revision of the tables at which nothing was left to be asked."""
        self._classes_at = tables.classes_revision
        """At which revision of the classes the plans were of them."""
        self._trouble = self._trouble_now()
        self._details: dict[int, Outcome] = {}
        self.codes: NDArray[np.int8] = np.zeros(0, np.int8)
        """An `AllocationAnswer` for each row."""
        self.revision = 0
        """A number that no other codes have had, of whatever claims."""
        self._log: list[tuple[int, int]] = []
        """The revisions from one on, each with the row that changed."""
        self._logged_from = 0
        self._renew()
        self._failing: int | None = None
        """How many rows have the code ERROR or TIMEOUT, None where they are to be counted."""

    @property
    def has_failures(self) -> bool:
        """Whether the code of any row is ERROR or TIMEOUT."""
        if self._failing is None:
            self._failing = int(np.count_nonzero(self.codes > _LAST_ANSWER))
        return self._failing > 0

    def _renew(self, row: int = NOBODY) -> None:
        """Take another revision after the code of a row changed, or perhaps those of many."""
        self._tables.answered += 1
        self.revision = self._tables.answered
        if row == NOBODY or len(self._log) >= _MOST_LOGGED:
            self._log.clear()
            self._logged_from = self.revision
        else:
            self._log.append((self.revision, row))

    def rows_since(self, revision: int) -> list[int] | None:
        """Return the rows of which codes changed since a revision, None where that is not known."""
        if revision < self._logged_from:
            return None
        rows = []
        for when, row in reversed(self._log):
            if when <= revision:
                break
            rows.append(row)
        return rows

    def outcome(self, row: int) -> Outcome:
        """Return the outcome of a row; it need not name devices."""
        return self._details.get(row) or Outcome(AllocationAnswer(int(self.codes[row])))

    def work_on(self, steps: int) -> bool:
        """Do a part of what `refresh` does; return whether another part would find out more."""
        before = self._found_out
        self.refresh(steps)
        return bool(self._waiting) and (self._begun is not None or self._found_out != before)

    @property
    def _found_out(self) -> tuple[int, ...]:
        """Numbers of which some changes as long as there is progress."""
        verdicts = sum(map(len, self._known))
        found = len(self._shapes), len(self._outcomes) + len(self._wide_outcomes), self._wide.looked_at
        return self._waiting_count, len(self._kinds.kinds), verdicts, *found

    def refresh(self, steps: int) -> None:
        """Ask about the nodes that moved.

        Args:
            steps: how many steps searches may take in all; where they run out, what is left is asked next time.
        """
        self.catch_up()
        waiting = self._waiting_count
        if not waiting:
            self.answered_at = self._caught_up
            return
        left = Steps(steps + min(_STEPS_A_GROUP * waiting, _STEPS_OF_GROUPS))
        try:
            if waiting > _MANY and self._sees_groups_alone:
                self._answer_single_nodes(left)
            self._await_groups()
            if len(self._waiting) > _MANY and self._sees_groups_alone:
                self._answer_many(self._tables.batch(), left)
            for group in list(self._waiting):
                left.take(1 + len(group.pools) // _POOLS_A_STEP)
                outcome = self._answer(group, left)
                del self._waiting[group]
                self._note(group, outcome)
            self.answered_at = self._caught_up
        except OutOfStepsError:
            self._await_groups()
            for group in self._waiting:
                self._note(group, _OUT_OF_STEPS)

    @property
    def size(self) -> int:
        """About how much memory it takes. Units: bytes."""
        nodes, devices, kinds = len(self.codes), self._tables.columns.size, len(self._kinds.kinds)
        of_kinds = kinds * (_BYTES_A_KIND + _BYTES_A_VERDICT * len(self._known))
        of_answers = (len(self._outcomes) + len(self._shapes) + len(self._details)) * _BYTES_AN_ANSWER
        of_answers += len(self._by_view) * _BYTES_A_VIEW + len(self._wide_outcomes) * _BYTES_AN_ANSWER
        of_answers += self._wide.pool_count * _BYTES_A_VIEW
        of_texts = _BYTES_A_CHARACTER * self._characters + _BYTES_OF_PLANS * self._length
        return nodes + 4 * devices + of_kinds + of_answers + of_texts

    @property
    def is_current(self) -> bool:
        """Whether classes are still what they were, and not too much is remembered of devices that are gone."""
        revision = self._tables.classes_revision
        if self._classes_at != revision:
            if not self.plans.is_current(self._tables.classes):
                return False
            self._classes_at = revision
        return not self._kinds.is_overgrown

    def search(self, group: NodeGroup, steps: int) -> Outcome:
        """Return what a search finds on the nodes of a group as they were caught up with, with its devices."""
        try:
            return self._settled(group, self._searched(group, Steps(steps)))
        except OutOfStepsError:
            return _OUT_OF_STEPS

    def refusals(self, group: NodeGroup, steps: int) -> list[Refusals]:
        """Say for each request and alternative what stands against the devices of a group's nodes.

        Only of the first ones where there are more than the steps allow.

        Raises:
            OutOfStepsError: not even the selectors could all be asked; some more are known now.
        """
        pools, plans = self.pools(group), self.plans
        left = Steps(steps)
        space = SearchSpace(pools, self._shapes_of(pools, left), len(plans.requirements))
        asks = (ask for claim in plans.claims for ask in claim.asks() if ask.failure is None)
        told: list[Refusals] = []
        with suppress(OutOfStepsError):
            for ask in asks:
                told.append(refusals_of(ask, plans.requirements[ask.requirement], space, left))  # noqa: PERF401
        return told

    def _wanted_by_requirement(self) -> list[tuple[int, int]]:
        """Return how many devices are wanted by each requirement, for claims that are answered by counting."""
        wanted: Counter[int] = Counter()
        if self.plans.failure is None and self.plans.is_simple:
            for claim in self.plans.claims:
                for ask in claim.asks():
                    wanted[ask.requirement] += ask.count
        return list(wanted.items())

    # What moved

    def catch_up(self) -> None:
        """Take over what changed in the tables, and note which groups are to be asked again."""
        tables = self._tables
        revision = tables.revision
        if self._caught_up == revision:
            return
        self._caught_up = revision
        tables.refresh()
        self._kinds.refresh()
        if tables.row_count > len(self.codes):
            grown = np.full(max(tables.row_count, 2 * len(self.codes)), AllocationAnswer.NO, np.int8)
            grown[: len(self.codes)] = self.codes
            self.codes = grown
            self._renew()
        trouble = self._trouble_now()
        moved = None if self._place < 0 or trouble != self._trouble else tables.moved_since(self._place)
        self._place, self._trouble = tables.end, trouble
        if moved is None:
            self._wide.clear()
            self._waiting, self._awaits_single_nodes = dict.fromkeys(tables.shared), True
            return
        for one in moved:
            if isinstance(one, PoolView):
                self._wide.note(one)
                self._waiting.update(dict.fromkeys(one.groups))
            else:
                self._waiting[one] = None
        for group in [one for one in self._waiting if not one.rows]:
            del self._waiting[group]

    @property
    def _waiting_count(self) -> int:
        """How many groups are to be asked again."""
        return len(self._tables.groups) if self._awaits_single_nodes else len(self._waiting)

    def _await_groups(self, is_answered: Callable[[int], bool] = lambda _row: False) -> None:
        """Have the nodes that own their devices wait as groups, unless they are answered."""
        if self._awaits_single_nodes:
            self._awaits_single_nodes = False
            tables = self._tables
            single = (one for one in tables.groups if one.alone != NOBODY and not is_answered(one.alone))
            self._waiting.update(dict.fromkeys(single))

    @property
    def _sees_groups_alone(self) -> bool:
        """Whether no request or pool fails claims on nodes of every group."""
        return self.plans.failure is None and not (self.plans.asks_for_all and self._tables.unusable)

    def _trouble_now(self) -> int:
        """Return a number that changes with those pools that no node can use and that make a difference."""
        unusable = self._tables.unusable
        return unusable.revision if self.plans.asks_for_all else unusable.invalid_revision

    def pools(self, group: NodeGroup) -> Sequence[SeenPool]:
        """Return the pools that a search on the nodes of a group notices, in its order."""
        first = self._tables.unusable.first(group) if self.plans.asks_for_all else None
        return group.pools if first is None else sorted((*group.pools, first), key=lambda one: one.view.order)

    def _note(self, group: NodeGroup, outcome: Outcome) -> None:
        answer = int(outcome.answer)
        has_details = outcome is not _YES and outcome is not _NO and outcome.has_details
        for row in group.rows if len(group.rows) <= _MANY else self._otherwise(group, answer):
            before = int(self.codes[row])
            if before != answer:
                self.codes[row] = answer
                self._renew(row)
                if before > _LAST_ANSWER or answer > _LAST_ANSWER:
                    self._failing = None
        if has_details:
            self._details.update(dict.fromkeys(group.rows, outcome))
        elif self._details:
            for row in group.rows:
                self._details.pop(row, None)

    def _otherwise(self, group: NodeGroup, answer: int) -> list[int]:
        """Return the rows of a group that had another answer."""
        rows = np.fromiter(group.rows, np.int64, len(group.rows))
        found: list[int] = rows[self.codes[rows] != answer].tolist()
        return found

    # Many nodes at once

    def _answer_single_nodes(self, steps: Steps) -> None:
        """Answer all nodes that see devices of their own alone: by counting, or by searching where they differ.

        Raises:
            OutOfStepsError: the nodes that are not answered are waiting.
        """
        columns, size = self._tables.columns, self._tables.row_count
        if self._tables.unusable.are_invalid:
            return
        [devices] = (columns.owner[: columns.size] != NOBODY).nonzero()
        if not self._awaits_single_nodes:
            is_waiting = np.zeros(size + 1, np.bool_)
            is_waiting[[one.alone for one in self._waiting]] = True
            is_waiting[NOBODY] = False
            devices = devices[is_waiting[columns.owner[devices]]]
        if not devices.size:
            return
        owners = columns.owner[devices]
        kinds = self._kinds.of(devices, steps)
        codes = np.full(size, _UNANSWERED, np.int8)
        details: dict[int, Outcome] = {}
        try:
            if self._wanted:
                self._count_single_nodes(devices, owners, kinds, codes, steps)
            takes_search = codes[owners] == _UNANSWERED
            if np.count_nonzero(takes_search):
                chosen = takes_search.nonzero()[0] if not takes_search.all() else slice(None)
                self._search_single_nodes(devices[chosen], owners[chosen], kinds[chosen], codes, details, steps)
        finally:
            self._note_single_nodes(codes, details)

    def _note_single_nodes(self, codes: NDArray[np.int8], details: dict[int, Outcome]) -> None:
        """Take over the answers of nodes that own their devices. Shapes: codes (N,)."""
        is_answered = codes != _UNANSWERED
        np.copyto(self.codes[: codes.size], codes, where=is_answered)
        self._failing = None
        self._renew()
        for row in is_answered.nonzero()[0].tolist() if self._details else ():
            self._details.pop(row, None)
        self._details.update(details)
        if not self._awaits_single_nodes:
            answered = is_answered.tolist()
            self._waiting = {one: None for one in self._waiting if one.alone == NOBODY or not answered[one.alone]}
        elif self._are_all_single(is_answered):
            self._awaits_single_nodes = False
        else:
            self._await_groups(is_answered.tolist().__getitem__)

    def _are_all_single(self, is_answered: NDArray[np.bool_]) -> bool:
        """Whether every node that owns its devices is answered. Shapes: is_answered (N,)."""
        return int(np.count_nonzero(is_answered)) == len(self._tables.groups) - len(self._tables.shared)

    def _count_single_nodes(
        self, devices: Places, owners: Codes, kinds: Codes, codes: NDArray[np.int8], steps: Steps
    ) -> None:
        """Answer nodes by counting their free devices, but those that take a search.

        Shapes: devices, owners, kinds (D,), codes (N,).
        """
        columns, size = self._tables.columns, codes.size
        fit, is_odd = self._suitable_kinds(kinds, steps)
        free = ~columns.used[devices]
        codes[owners] = AllocationAnswer.YES
        for place, (_, count) in enumerate(self._wanted):
            found = np.bincount(owners[(fit[place][kinds] & free).nonzero()[0]], minlength=size)
            codes[(found < count) & (codes == AllocationAnswer.YES)] = AllocationAnswer.NO
        takes_search = columns.consumed[devices]
        if np.count_nonzero(is_odd):
            takes_search |= is_odd[kinds]
        if np.count_nonzero(takes_search):
            codes[owners[takes_search]] = _UNANSWERED

    def _search_single_nodes(
        self,
        devices: Places,
        owners: Codes,
        kinds: Codes,
        codes: NDArray[np.int8],
        details: dict[int, Outcome],
        steps: Steps,
    ) -> None:
        """Answer nodes by one search for all of them whose devices are alike, one after the other.

        Shapes: devices, owners, kinds (D,), codes (N,).
        """
        columns = self._tables.columns
        order = columns.order[devices]
        is_narrow = order < 2 * _WIDEST
        if not is_narrow.all():
            is_wide = np.zeros(codes.size, np.bool_)
            is_wide[owners[~is_narrow]] = True
            chosen = ~is_wide[owners]
            devices, owners, kinds, order = devices[chosen], owners[chosen], kinds[chosen], order[chosen]
            if not devices.size:
                return
        alike, _ = combined_codes((kinds, columns.used[devices].astype(np.int32), order & 1, columns.signed[devices]))
        by_place = np.zeros((int(order.max()) // 2 + 1, codes.size), np.int32)
        by_place[order >> 1, owners] = alike + 1
        sort, rows = combined_codes([*by_place])
        answers = np.full(len(rows), _UNANSWERED, np.int8)
        found: dict[int, Outcome] = {}
        try:
            for number, row in enumerate(rows.tolist()):
                if not by_place[0, row]:
                    continue  # these have no devices
                group = self._tables.node(row)[1]
                steps.take(1 + len(group.pools) // _POOLS_A_STEP)
                outcome = self._answer(group, steps)
                answers[number] = outcome.answer
                if outcome.has_details:
                    found[number] = outcome
        finally:
            of_rows = answers[sort]
            np.copyto(codes, of_rows, where=of_rows != _UNANSWERED)
            for number, outcome in found.items():
                details.update(dict.fromkeys((sort == number).nonzero()[0].tolist(), outcome))

    def _answer_many(self, batch: GroupBatch, steps: Steps) -> None:
        """Answer all groups of which nothing but devices counts."""
        if not batch.groups:
            return
        kinds = self._kinds.of(batch.devices, steps)
        codes = self._count_many(batch, kinds, steps)
        is_done = np.fromiter((one in self._waiting for one in batch.groups), np.bool_, len(batch.groups))
        unanswered = np.flatnonzero(is_done & (codes == _UNANSWERED)).tolist()
        is_done[unanswered] = False
        details: dict[int, Outcome] = {}
        states = self._states_of(batch, kinds) if unanswered else []
        seen, bounds = batch.seen.tolist(), batch.seen_bounds.tolist()
        try:
            for place in unanswered:
                steps.take(1 + (bounds[place + 1] - bounds[place]) // _POOLS_A_STEP)
                key = tuple([states[view] for view in seen[bounds[place] : bounds[place + 1]]])
                outcome = self._outcomes.get(key)
                if outcome is None:
                    outcome = self._search_once(key, batch.groups[place].pools, steps)
                codes[place] = outcome.answer
                is_done[place] = True
                if outcome.has_details:
                    details.update(dict.fromkeys(batch.groups[place].rows, outcome))
        finally:
            self._note_many(batch, codes, is_done, details)

    def _note_many(
        self, batch: GroupBatch, codes: NDArray[np.int8], is_done: NDArray[np.bool_], details: dict[int, Outcome]
    ) -> None:
        """Take over the answers of some groups: what else is waiting goes on from there.

        Shapes: codes, is_done (G,).
        """
        self._mark_invalid(batch, codes)
        of_done = is_done[batch.group_of]
        rows = batch.nodes[of_done]
        self.codes[rows] = codes[batch.group_of[of_done]]
        self._failing = None
        self._renew()
        for row in rows.tolist() if self._details else ():
            self._details.pop(row, None)
        self._details.update(details)
        for place in np.flatnonzero(is_done).tolist():
            self._waiting.pop(batch.groups[place], None)

    def _mark_invalid(self, batch: GroupBatch, codes: NDArray[np.int8]) -> None:
        """Have invalid pools that no node can use count where nothing was found."""
        unusable = self._tables.unusable
        if unusable.are_invalid:
            for place in np.flatnonzero(codes == AllocationAnswer.NO).tolist():
                if unusable.has_invalid(batch.groups[place]):
                    codes[place] = AllocationAnswer.INVALID_POOLS

    def _states_of(self, batch: GroupBatch, kinds: Codes) -> list[Hashable]:
        """Return for each view what a search finds in it, as `_state_of` does.

        Shapes: kinds (D,).
        """
        devices, bounds = kinds.tobytes(), (batch.bounds * kinds.itemsize).tolist()
        return [
            (devices[start:stop], view.used, None, view.signature)
            for view, (start, stop) in zip(batch.views, pairwise(bounds), strict=True)
        ]

    def _count_many(self, batch: GroupBatch, kinds: Codes, steps: Steps) -> NDArray[np.int8]:
        """Answer groups by counting free devices, -1 for those that take a search.

        Shapes: kinds (D,) -> (G,).
        """
        codes = np.full(len(batch.groups), _UNANSWERED, np.int8)
        if not self._wanted:
            return codes
        fit, is_odd = self._suitable_kinds(kinds, steps)
        columns = self._tables.columns
        free = ~columns.used[batch.devices]
        codes[:] = AllocationAnswer.YES
        for place, (_, count) in enumerate(self._wanted):
            codes[_sums(fit[place][kinds] & free, batch) < count] = AllocationAnswer.NO
        codes[_sums(is_odd[kinds] | columns.consumed[batch.devices], batch) > 0] = _UNANSWERED
        return codes

    def _suitable_kinds(self, kinds: Codes, steps: Steps) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Ask about all kinds among some devices that were not asked about.

        Returns:
            For each wanted requirement which kinds fit; which kinds take a search. Shapes: (W, K), (K,).
        """
        known = self._kinds.kinds
        if len(known) > len(self._is_asked):
            more = max(len(known), 2 * len(self._is_asked)) - len(self._is_asked)
            nothing = np.zeros(more, np.bool_)
            self._is_asked, self._is_odd = (np.append(one, nothing) for one in (self._is_asked, self._is_odd))
            self._fits = np.hstack((self._fits, np.zeros((len(self._wanted), more), np.bool_)))
        if np.count_nonzero(self._is_asked) < len(known):
            is_there = np.zeros(len(self._is_asked), np.bool_)
            is_there[kinds] = True
            for number in np.flatnonzero(is_there & ~self._is_asked).tolist():
                self._ask_about(known[number], steps)
        return self._fits, self._is_odd

    def _ask_about(self, kind: DeviceKind, steps: Steps) -> None:
        """Note which wanted requirements a kind of device fits, and whether more than its number counts."""
        suitabilities(self.plans.requirements, [kind], self._known, steps)
        each = [remembered[kind.number] for remembered in self._known]
        fits = [one.is_able and one.is_tolerated for one in each]
        takes_part = bool(kind.traits.counter_sets) or kind.traits.shareable or any(one.failure for one in each)
        self._is_odd[kind.number] = takes_part or (len(self._wanted) > 1 and sum(fits) > 1)
        for place, (requirement, _) in enumerate(self._wanted):
            self._fits[place, kind.number] = fits[requirement]
        self._is_asked[kind.number] = True

    # Answers

    def _answer(self, group: NodeGroup, steps: Steps) -> Outcome:
        if self.plans.failure is not None:
            outcome = Outcome(AllocationAnswer.ERROR, self.plans.failure)
        else:
            outcome = self._counted(group.pools, steps) or self._searched(group, steps)
        return self._settled(group, outcome)

    def _settled(self, group: NodeGroup, outcome: Outcome) -> Outcome:
        """Have pools that no node can use count where nothing was found."""
        is_invalid = outcome.answer is AllocationAnswer.NO and self._tables.unusable.has_invalid(group)
        return _INVALID_POOLS if is_invalid else outcome

    def _searched(self, group: NodeGroup, steps: Steps) -> Outcome:
        """Search, unless a search in pools that look alike has been made."""
        if len(group.pools) >= WIDE and not self.plans.asks_for_all:
            return self._searched_widely(group, steps)
        pools = self.pools(group)
        key = tuple([self._state_of(seen) for seen in pools])
        return self._outcomes.get(key) or self._search_once(key, pools, steps)

    def _searched_widely(self, group: NodeGroup, steps: Steps) -> Outcome:
        """Search in many pools, of which those are looked at that moved since the last search."""
        key, space = self._wide.space_of(group, lambda: self._shapes_of(group.pools, steps), steps)
        outcome = self._wide_outcomes.get(key)
        if outcome is None:
            if len(self._wide_outcomes) > _MOST_WIDE_OUTCOMES:
                self._wide_outcomes.clear()
            begun, self._begun = self._begun, None
            if begun is not None and begun[0] == key and begun[1].is_in(space):
                search = begun[1]
            else:
                steps.take(_STEPS_A_SEARCH)
                search = DeviceSearch(self.plans, space, self._known)
            outcome = self._wide_outcomes[key] = self._run(key, search, steps)
        return outcome

    def _state_of(self, seen: SeenPool) -> Hashable:
        """Return a value that is equal where a search finds the same in a pool as a node sees it."""
        view, reached = seen
        if not view.is_usable:
            return view.is_incomplete
        return self._kinds_in(view), view.used, reached, view.signature

    def _kinds_in(self, view: PoolView) -> bytes:
        """Return the kinds of a view's devices, which never change."""
        known = self._by_view.get(view)
        if known is None:
            if len(self._by_view) > _MOST_VIEWS:
                self._by_view.clear()
            known = self._kinds.known(view.rows).tobytes()
            if known not in self._shapes:  # some may not be known yet
                known = self._kinds.of(view.rows).tobytes()
            self._by_view[view] = known
        return known

    def _search_once(self, key: Hashable, pools: Sequence[SeenPool], steps: Steps) -> Outcome:
        if len(self._outcomes) > _MOST_REMEMBERED:
            self._outcomes.clear()
        begun, self._begun = self._begun, None
        if begun is not None and begun[0] == key:
            search = begun[1]
        else:
            shapes, requirements = self._shapes_of(pools, steps), len(self.plans.requirements)
            steps.take(_STEPS_A_SEARCH + requirements * len(pools) + sum(len(one.view.rows) for one in pools) // 16)
            space = SearchSpace(pools, shapes, requirements)
            search = DeviceSearch(self.plans, space, self._known)
        outcome = self._outcomes[key] = self._run(key, search, steps)
        return outcome

    def _run(self, key: Hashable, search: DeviceSearch, steps: Steps) -> Outcome:
        try:
            return search.run(steps)
        except OutOfStepsError:
            self._begun = key, search
            raise

    def _counted(self, pools: Sequence[SeenPool], steps: Steps) -> Outcome | None:
        """Answer by counting free devices; None where it takes a search."""
        wanted = self._wanted
        if not wanted:
            return None
        totals = [0] * len(wanted)
        is_invalid = False
        for view, reached in pools:
            if not view.is_usable:
                is_invalid = is_invalid or view.is_invalid
                continue
            shape = self._shape(view, steps)
            if not shape.is_plain or view.consumed or (len(wanted) > 1 and not shape.is_disjoint):
                return None
            free = ~view.used if reached is None else reached & ~view.used
            for place, (requirement, _) in enumerate(wanted):
                totals[place] += (shape.fit[requirement] & free).bit_count()
        for total, (_, count) in zip(totals, wanted, strict=True):
            if total < count:
                return _INVALID_POOLS if is_invalid else _NO
        return _YES

    def _shapes_of(self, pools: Sequence[SeenPool], steps: Steps) -> list[ViewShape | None]:
        return [self._shape(seen.view, steps) if seen.view.is_usable else None for seen in pools]

    def _shape(self, view: PoolView, steps: Steps) -> ViewShape:
        key = self._kinds_in(view)
        shape = self._shapes.get(key)
        if shape is None:
            if len(self._shapes) > _MOST_REMEMBERED:
                self._shapes.clear()
            numbers = self._kinds.of(view.rows).tolist()
            shape = self._shapes[key] = self._shape_of([self._kinds.kinds[one] for one in numbers], steps)
        return shape

    def _shape_of(self, kinds: Sequence[DeviceKind], steps: Steps) -> ViewShape:
        suitabilities(self.plans.requirements, dict.fromkeys(kinds), self._known, steps)
        return ViewShape(kinds, self._known)


def _sums(is_counted: NDArray[np.bool_], batch: GroupBatch) -> NDArray[np.int64]:
    """Count devices of each group.

    Shapes: (D,) -> (G,).
    """
    before = np.zeros(len(is_counted) + 1, np.int64)
    np.cumsum(is_counted, out=before[1:])
    in_views = before[batch.bounds[1:]] - before[batch.bounds[:-1]]
    sums: NDArray[np.int64] = np.add.reduceat(in_views[batch.seen], batch.seen_bounds[:-1])
    return sums
