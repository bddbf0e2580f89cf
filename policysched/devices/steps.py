"""How long a question may take, counted in steps: the engine has no clock."""

from __future__ import annotations


class OutOfStepsError(Exception):
    """The search took more steps than it may."""


class Steps:
    """How many steps searches may still take. Units: about a microsecond each."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left

    def take(self, count: int = 1) -> None:
        """Take some steps.

        Raises:
            OutOfStepsError: there are not as many left.
        """
        self.left -= count
        if self.left < 0:
            raise OutOfStepsError
