"""The cost limit of a selector's evaluation: the work that the running one may still do.

cel-go counts a cost for each step and stops an expression at a limit. Here loops, comparisons and functions spend what
they take in proportion to the sizes of their values: selectors of devices stay far below, whatever they are asked
about, and one that does not end within some 20 to 45 ms is stopped. One evaluation runs at a time.

Source: cel-go v0.26 interpreter/runtimecost.go; k8s.io/api/resource/v1 (CELSelectorExpressionMaxCost).
"""

from __future__ import annotations

from typing import Any, Final

LIMIT: Final = 160_000
"""15 to 45 ms."""
_EFFORTS: Final = {
    "cidr": 60, "url": 50, "tz": 40, "ip": 30, "format": 30, "semver": 16, "quantity": 12, "timestamp": 20,
    "duration": 4, "string": 3,
}  # fmt: skip
"""What functions of some words in their names take beside what their values are long."""
_SIZED: Final = frozenset({str, bytes})


class CostLimitError(Exception):
    """The expression did more work than it may."""


class Work:
    """The work left."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = LIMIT

    def spend(self, amount: int) -> None:
        """Take some of it.

        Raises:
            CostLimitError: there is not as much left.
        """
        self.left -= amount
        if self.left < 0:
            raise CostLimitError

    def spend_on(self, value: Any) -> None:
        """Take what going through a string, bytes or a list once costs."""
        if type(value) in _SIZED:
            self.spend(len(value) // 10)
        elif isinstance(value, list):
            self.spend(len(value))


WORK: Final = Work()


def effort_of(overload: str) -> int:
    """Return what calling a function takes, whatever its values are; a step of a loop takes 1 for each of its parts."""
    return max((_EFFORTS.get(word, 1) for word in overload.replace(".", "_").replace("-", "_").split("_")), default=1)
