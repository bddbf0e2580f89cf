"""`Budget`: a limit on units of work or entries, which code spends until an error is raised.

A budget is passed to the code that spends it. Units are the caller's: steps, characters, entries. A budget measures no
time, so the same input always stops at the same place.
"""

from __future__ import annotations


class BudgetExceededError(Exception):
    """Error: code spent more units of work or entries than its `Budget` allows."""


class Budget:
    """A limited amount of work or entries, which code spends until nothing is left.

    Args:
        limit: Amount that can be spent.
    """

    __slots__ = ("left", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.left = limit
        """Amount that is not yet spent; negative if code spent more than the limit."""

    @property
    def spent(self) -> int:
        """Amount that code has spent."""
        return self.limit - self.left

    def spend(self, amount: int = 1) -> None:
        """Subtract an amount from the budget.

        Raises:
            BudgetExceededError: less than the amount was left.
        """
        self.left -= amount
        if self.left < 0:
            raise BudgetExceededError

    def refill(self) -> None:
        """Reset the spent amount to 0."""
        self.left = self.limit
