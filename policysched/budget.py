"""`Budget`: work, or a number of entries, that code may still use before it has to stop.

A budget is passed to the code that spends it. Units are the caller's: steps, characters, entries. A budget measures no
time, so the same input always stops at the same place.
"""

from __future__ import annotations


class BudgetExceededError(Exception):
    """More was spent than the limit of a budget."""


class Budget:
    """An amount that code spends down from a limit.

    Args:
        limit: Amount that can be spent.
    """

    __slots__ = ("left", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.left = limit
        """Amount that is not spent; negative if more was spent than the limit."""

    @property
    def spent(self) -> int:
        """Amount that was spent."""
        return self.limit - self.left

    def spend(self, amount: int = 1) -> None:
        """Spend an amount.

        Raises:
            BudgetExceededError: less than the amount was left.
        """
        self.left -= amount
        if self.left < 0:
            raise BudgetExceededError

    def refill(self) -> None:
        """Restore the whole limit."""
        self.left = self.limit
