"""`PreparedClaims`: the nodes on which claims with equal specs can be allocated, updated when devices change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from policysched.budget import Budget, BudgetExceededError
from policysched.devices.answers.device_counts import UNANSWERED, DeviceCounts
from policysched.devices.answers.group_search import GroupSearch
from policysched.devices.answers.row_outcomes import RowOutcomes
from policysched.devices.inventory.pool_views import NodeGroup, PoolView
from policysched.devices.inventory.tables import DeviceTables
from policysched.devices.outcomes import OUT_OF_STEPS
from policysched.devices.requests.plans import Plans, selectors_of
from policysched.model.objects import ResourceClaim

_MANY: Final = 32
"""Number of changed node groups above which the groups are evaluated together in arrays."""
_POOLS_A_STEP: Final = 4
_BYTES_A_CHARACTER: Final = 100
"""Estimated memory of a compiled selector, per character of the selector. Units: bytes."""
_BYTES_OF_PLANS: Final = 8
"""Estimated memory of compiled requests and constraints, per byte of their JSON. Units: bytes."""
_BYTES_A_DEVICE: Final = 4
_STEPS_A_GROUP: Final = 16
"""Steps (about a microsecond each) that each changed node group adds to the step limit of a refresh."""
_STEPS_OF_GROUPS: Final = 4096
"""Maximum number of steps that all changed node groups together add to the step limit of a refresh."""


class PreparedClaims:
    """Compiled claims with equal specs, and their outcome on each node.

    Args:
        tables: The devices.
        claims: Claims of these specs.
        length: The length of their requests and constraints. Units: bytes of JSON.

    Attributes:
        plans: The compiled claims.
        search: Finds the outcome on a group of nodes.
        rows: The outcome on each node.
        answered_at: The stamp of the tables at the last refresh that evaluated all changed nodes.
    """

    def __init__(self, tables: DeviceTables, claims: Sequence[ResourceClaim], length: int) -> None:
        self._tables = tables
        self.plans = Plans(claims, tables.classes, tables.release)
        self._length = length
        self._characters = sum(map(len, selectors_of(claims, tables.classes)))
        self.search = GroupSearch(tables, self.plans)
        self._counts = DeviceCounts(tables, self.search)
        self.rows = RowOutcomes(tables)
        self._waiting: dict[NodeGroup, None] = {}
        """The node groups (nodes with the same device pools) that changed since they were evaluated."""
        self._place = -1
        """The position up to which changes were read in the log of the device tables (`tables.moved`)."""
        self._caught_up = -1
        """The value of the device tables' stamp up to which changes were read."""
        self.answered_at = -1
        self._classes_at = tables.classes_stamp
        """The value of `tables.classes_stamp` when the compiled claims were last compared with the device classes."""
        self._unusable_at = self._unusable_stamp()

    @property
    def size(self) -> int:
        """Estimated memory of the compiled claims and their outcomes. Units: bytes."""
        of_texts = _BYTES_A_CHARACTER * self._characters + _BYTES_OF_PLANS * self._length
        return self.rows.size + self.search.size + _BYTES_A_DEVICE * self._tables.columns.size + of_texts

    @property
    def is_current(self) -> bool:
        """Whether the compiled claims can be reused: device classes are unchanged, most cached device kinds in use."""
        stamp = self._tables.classes_stamp
        if self._classes_at != stamp:
            if not self.plans.is_current(self._tables.classes):
                return False
            self._classes_at = stamp
        return not self.search.kinds.is_overgrown

    def refresh(self, steps: int) -> None:
        """Evaluate the claims on the nodes whose devices changed.

        Args:
            steps: The budget. If it is used up, the remaining nodes have the answer TIMEOUT until the next refresh.
        """
        self.catch_up()
        left = Budget(steps + min(_STEPS_A_GROUP * len(self._waiting), _STEPS_OF_GROUPS))
        try:
            if len(self._waiting) > _MANY and self._depends_on_devices_alone:
                self._count(left)
            for group in list(self._waiting):
                left.spend(1 + len(group.pools) // _POOLS_A_STEP)
                outcome = self.search.outcome(group, left)
                del self._waiting[group]
                self.rows.note(group, outcome)
            self.answered_at = self._caught_up
        except BudgetExceededError:
            for group in self._waiting:
                self.rows.note(group, OUT_OF_STEPS)

    def catch_up(self) -> None:
        """Read the changes of the device tables, and record which node groups have to be evaluated."""
        tables = self._tables
        stamp = tables.stamp
        if self._caught_up == stamp:
            return
        self._caught_up = stamp
        tables.refresh()
        self.search.refresh()
        self.rows.grow(tables.row_count)
        unusable = self._unusable_stamp()
        changes = None if self._place < 0 or unusable != self._unusable_at else tables.moved.since(self._place)
        self._place, self._unusable_at = tables.moved.end, unusable
        if changes is None:
            self.search.note_all()
            self._waiting = dict.fromkeys(tables.groups.all)
            return
        for one in changes:
            if isinstance(one, PoolView):
                self.search.note(one)
                self._waiting.update(dict.fromkeys(one.groups))
            else:
                self._waiting[one] = None
        for group in [one for one in self._waiting if not one.rows]:
            del self._waiting[group]

    def _unusable_stamp(self) -> int:
        """Return a number that changes when the incomplete or invalid pools that can reject these claims change."""
        unusable = self._tables.unusable
        return unusable.stamp if self.plans.asks_for_all else unusable.invalid_stamp

    @property
    def _depends_on_devices_alone(self) -> bool:
        """Return whether no invalid request and no unusable pool rejects the claims on every node."""
        return self.plans.failure is None and not (self.plans.asks_for_all and self._tables.unusable)

    def _count(self, steps: Budget) -> None:
        """Evaluate the node groups for which it is enough to count free devices.

        Raises:
            BudgetExceededError: The budget is used up.
        """
        batch = self._tables.groups.batch()
        if not batch.groups:
            return
        codes = self._counts.codes(batch, steps)
        is_answered = codes != UNANSWERED
        of_answered = is_answered[batch.group_of]
        self.rows.note_many(batch.nodes[of_answered], codes[batch.group_of[of_answered]])
        for place in is_answered.nonzero()[0].tolist():
            self._waiting.pop(batch.groups[place], None)
