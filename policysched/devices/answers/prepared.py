"""`PreparedClaims`: on which nodes claims of equal specs can be allocated, updated by what moved in the tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from policysched.budget import Budget, BudgetExceededError
from policysched.devices.answers.group_batches import GroupAnswers, GroupBatches
from policysched.devices.answers.group_outcomes import POOLS_A_STEP, GroupOutcomes
from policysched.devices.answers.row_outcomes import RowOutcomes
from policysched.devices.answers.single_nodes import UNANSWERED, NodeAnswers, SingleNodes
from policysched.devices.answers.wanted_kinds import WantedKinds
from policysched.devices.inventory.columns import NOBODY
from policysched.devices.inventory.pool_views import NodeGroup, PoolView
from policysched.devices.inventory.tables import DeviceTables
from policysched.devices.outcomes import OUT_OF_STEPS
from policysched.devices.requests.plans import Plans, selectors_of
from policysched.model.objects import ResourceClaim

_MANY: Final = 32
"""From how many groups on they are answered together."""
_BYTES_A_CHARACTER: Final = 100
"""What the program of a selector takes for each character of its text."""
_BYTES_OF_PLANS: Final = 8
"""What requests and constraints take for each byte of their JSON."""
_BYTES_A_DEVICE: Final = 4
_STEPS_A_GROUP: Final = 16
"""How many steps each group of nodes has besides those of the whole question."""
_STEPS_OF_GROUPS: Final = 4096
"""How many steps all groups of nodes have at most besides those of the whole question."""


class PreparedClaims:
    """Claims of certain specs, and what is known of them.

    Args:
        tables: the devices.
        claims: claims with these specs.
        length: how long what they ask for is as JSON.

    Attributes:
        groups: What they get on the nodes of a group.
        rows: What came of asking about each node.
    """

    def __init__(self, tables: DeviceTables, claims: Sequence[ResourceClaim], length: int) -> None:
        self._tables = tables
        self.plans = Plans(claims, tables.classes)
        self._length = length
        self._characters = sum(map(len, selectors_of(claims, tables.classes)))
        self.groups = GroupOutcomes(tables, self.plans)
        self.rows = RowOutcomes(tables)
        wanted = WantedKinds(self.groups)
        self._single_nodes = SingleNodes(tables, self.groups, wanted)
        self._batches = GroupBatches(tables, self.groups, wanted)
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

    @property
    def size(self) -> int:
        """About how much memory it takes. Units: bytes."""
        of_texts = _BYTES_A_CHARACTER * self._characters + _BYTES_OF_PLANS * self._length
        return self.rows.size + self.groups.size + _BYTES_A_DEVICE * self._tables.columns.size + of_texts

    @property
    def is_current(self) -> bool:
        """Whether classes are still what they were, and not too much is remembered of devices that are gone."""
        revision = self._tables.classes_revision
        if self._classes_at != revision:
            if not self.plans.is_current(self._tables.classes):
                return False
            self._classes_at = revision
        return not self.groups.kinds.is_overgrown

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
        left = Budget(steps + min(_STEPS_A_GROUP * waiting, _STEPS_OF_GROUPS))
        try:
            if waiting > _MANY and self._sees_groups_alone:
                self._answer_single_nodes(left)
            self._await_groups()
            if len(self._waiting) > _MANY and self._sees_groups_alone:
                self._answer_many(left)
            for group in list(self._waiting):
                left.spend(1 + len(group.pools) // POOLS_A_STEP)
                outcome = self.groups.outcome(group, left)
                del self._waiting[group]
                self.rows.note(group, outcome)
            self.answered_at = self._caught_up
        except BudgetExceededError:
            self._await_groups()
            for group in self._waiting:
                self.rows.note(group, OUT_OF_STEPS)

    # What moved

    def catch_up(self) -> None:
        """Take over what changed in the tables, and note which groups are to be asked again."""
        tables = self._tables
        revision = tables.revision
        if self._caught_up == revision:
            return
        self._caught_up = revision
        tables.refresh()
        self.groups.kinds.refresh()
        self.rows.grow(tables.row_count)
        trouble = self._trouble_now()
        moved = None if self._place < 0 or trouble != self._trouble else tables.moved.since(self._place)
        self._place, self._trouble = tables.moved.end, trouble
        if moved is None:
            self.groups.note_all()
            self._waiting, self._awaits_single_nodes = dict.fromkeys(tables.groups.shared), True
            return
        for one in moved:
            if isinstance(one, PoolView):
                self.groups.note(one)
                self._waiting.update(dict.fromkeys(one.groups))
            else:
                self._waiting[one] = None
        for group in [one for one in self._waiting if not one.rows]:
            del self._waiting[group]

    def _trouble_now(self) -> int:
        """Return a number that changes with those pools that no node can use and that make a difference."""
        unusable = self._tables.unusable
        return unusable.revision if self.plans.asks_for_all else unusable.invalid_revision

    @property
    def _waiting_count(self) -> int:
        """How many groups are to be asked again."""
        return len(self._tables.groups.all) if self._awaits_single_nodes else len(self._waiting)

    def _await_groups(self, is_answered: Callable[[int], bool] = lambda _row: False) -> None:
        """Have the nodes that own their devices wait as groups, unless they are answered."""
        if self._awaits_single_nodes:
            self._awaits_single_nodes = False
            single = (one for one in self._tables.groups.all if one.alone != NOBODY and not is_answered(one.alone))
            self._waiting.update(dict.fromkeys(single))

    # Many nodes at once

    @property
    def _sees_groups_alone(self) -> bool:
        """Whether no request or pool fails claims on nodes of every group."""
        return self.plans.failure is None and not (self.plans.asks_for_all and self._tables.unusable)

    def _answer_single_nodes(self, steps: Budget) -> None:
        """Answer all nodes that own their devices.

        Raises:
            BudgetExceededError: the nodes that are not answered are waiting.
        """
        if self._tables.unusable.are_invalid:
            return
        rows = None if self._awaits_single_nodes else [one.alone for one in self._waiting]
        found = NodeAnswers(self._tables.row_count)
        try:
            self._single_nodes.answer(rows, found, steps)
        finally:
            self._note_single_nodes(found)

    def _note_single_nodes(self, found: NodeAnswers) -> None:
        """Take over the answers of nodes that own their devices: what else is waiting goes on from there."""
        is_answered = found.codes != UNANSWERED
        [rows] = is_answered.nonzero()
        self.rows.note_many(rows, found.codes[rows], found.details)
        if not self._awaits_single_nodes:
            answered = is_answered.tolist()
            self._waiting = {one: None for one in self._waiting if one.alone == NOBODY or not answered[one.alone]}
        elif rows.size == len(self._tables.groups.all) - len(self._tables.groups.shared):
            self._awaits_single_nodes = False
        else:
            self._await_groups(is_answered.tolist().__getitem__)

    def _answer_many(self, steps: Budget) -> None:
        """Answer all groups of which nothing but devices counts.

        Raises:
            BudgetExceededError: the groups that are not answered are waiting.
        """
        batch = self._tables.groups.batch()
        if not batch.groups:
            return
        found = GroupAnswers(batch)
        try:
            self._batches.answer(batch, self._waiting, found, steps)
        finally:
            of_done = found.is_done[batch.group_of]
            self.rows.note_many(batch.nodes[of_done], found.codes[batch.group_of[of_done]], found.details)
            for place in found.is_done.nonzero()[0].tolist():
                self._waiting.pop(batch.groups[place], None)
