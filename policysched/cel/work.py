"""Cost limits of compiling and of evaluating a device selector.

cel-go counts a cost for each step and stops an expression at a limit. Loops, comparisons and functions spend costs in
proportion to the sizes of their values. Usual device selectors stay far below the limit; others are stopped after 20 to
45 ms.

Source: cel-go v0.26 interpreter/runtimecost.go; k8s.io/api/resource/v1 (CELSelectorExpressionMaxCost).
"""

from __future__ import annotations

from typing import Any, Final

from policysched.budget import Budget

LIMIT: Final = 160_000
"""Cost limit of one evaluation of a selector, about 15 to 45 ms; beyond it, the evaluation returns an error."""
_EFFORTS: Final = {
    "cidr": 60, "url": 50, "tz": 40, "ip": 30, "format": 30, "semver": 16, "quantity": 12, "timestamp": 20,
    "duration": 4, "string": 3,
}  # fmt: skip
"""The costs of calling a CEL function, by a word in the name of its overload."""
_SIZED: Final = frozenset({str, bytes})


def spend_on(work: Budget, value: Any) -> None:
    """Spend the cost of one pass over a string, bytes or list; other values cost nothing.

    Raises:
        BudgetExceededError: the cost limit is exceeded.
    """
    if type(value) in _SIZED:
        work.spend(len(value) // 10)
    elif isinstance(value, list):
        work.spend(len(value))


def effort_of(overload: str) -> int:
    """Return the cost of calling a CEL function, without the cost of its arguments' sizes."""
    return max((_EFFORTS.get(word, 1) for word in overload.replace(".", "_").replace("-", "_").split("_")), default=1)
