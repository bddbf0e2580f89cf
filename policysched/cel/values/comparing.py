"""Equality and order of CEL values; the result can be an error.

Source: cel-go v0.26 common/types (Equal and Compare of each type).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from policysched.budget import Budget
from policysched.cel.types import CelType
from policysched.cel.values.kinds import LISTS, MAPS
from policysched.cel.values.kubernetes import Address, CelQuantity, Format, Locator, Prefix, Semver
from policysched.cel.values.scalars import (
    ABSENT,
    INT_MAX,
    INT_MIN,
    NO_OVERLOAD,
    UINT_MAX,
    DefaultMap,
    Duration,
    Error,
    GrowingList,
    JoinedList,
    Map,
    Optional,
    Timestamp,
    Uint,
)

NOT_A_NUMBER: Final = Error("NaN values cannot be ordered")
_NUMBERS: Final = frozenset({int, Uint, float})


def equal(left: Any, right: Any, work: Budget) -> bool | Error:
    """Return whether two CEL values are equal, or the error of the comparison.

    Raises:
        BudgetExceededError: the values have too many parts.
    """
    kind = type(left)
    if kind is str:
        return type(right) is str and left == right
    if left is None or right is None:
        return left is right
    return same(left, right, work)


def same(left: Any, right: Any, work: Budget) -> bool | Error:
    """Return whether two list elements are equal; two nulls are equal, null and another value are not.

    Raises:
        BudgetExceededError: the elements have too many parts.
    """
    if left is None:
        return right is None
    kind = type(left)
    return _EQUAL_PARTS[kind](left, right, work) if kind in _EQUAL_PARTS else _EQUAL[kind](left, right)


def _equal_numbers(left: Any, right: Any) -> bool:
    if type(right) not in _NUMBERS:
        return False
    if left != left or right != right:  # noqa: PLR0124 - not a number
        return False
    return compare(left, right) == 0


def _equal_alike(left: Any, right: Any) -> bool:
    return type(left) is type(right) and left == right


def _equal_lists(left: Any, right: Any, work: Budget) -> bool | Error:
    if type(right) not in LISTS or len(left) != len(right):
        return False
    work.spend(4 * len(left) + 8)
    trouble: Error | None = None
    for one, another in zip(left, right, strict=True):
        same_element = equal(one, another, work)
        if same_element is False:
            return False
        if isinstance(same_element, Error) and trouble is None:
            trouble = same_element
    return trouble if trouble is not None and type(left) is JoinedList else True


def _equal_maps(left: Map, right: Any, work: Budget) -> bool:
    if type(right) not in MAPS or len(left) != len(right):
        return False
    work.spend(4 * len(left) + 8)
    for key in left.keys():  # noqa: SIM118 - not a dict
        other = right.find(key)
        if other is ABSENT or equal(left.find(key), other, work) is False:
            return False
    return True


def _equal_timestamps(left: Timestamp, right: Any) -> bool:
    return type(right) is Timestamp and left.nanoseconds == right.nanoseconds


def _equal_optional(left: Optional, right: Any, work: Budget) -> bool | Error:
    if type(right) is not Optional:
        return False
    if not (left.present and right.present):
        return left.present == right.present
    return same(left.value, right.value, work)


def _equal_types(left: CelType, right: Any) -> bool:
    return type(right) is CelType and left.name == right.name


def _equal_quantities(left: CelQuantity, right: Any) -> bool | Error:
    if type(right) is not CelQuantity or right.summed:
        return NO_OVERLOAD
    return left.amount.equals(right.amount)


def _equal_versions(left: Semver, right: Any) -> bool | Error:
    return left.order(right) == 0 if type(right) is Semver else NO_OVERLOAD


def _equal_or_no_overload(left: Any, right: Any) -> bool | Error:
    return left == right if type(left) is type(right) else NO_OVERLOAD


def _equal_locators(left: Locator, right: Any) -> bool | Error:
    return left.url.text() == right.url.text() if type(right) is Locator else NO_OVERLOAD


def _equal_formats(left: Format, right: Any) -> bool | Error:
    return left.name == right.name if type(right) is Format else NO_OVERLOAD


_EQUAL: Final[dict[type, Callable[[Any, Any], bool | Error]]] = {
    **dict.fromkeys((bool, bytes, str, Duration), _equal_alike),
    **dict.fromkeys((int, Uint, float), _equal_numbers),
    **dict.fromkeys((Address, Prefix), _equal_or_no_overload),
    Timestamp: _equal_timestamps,
    CelType: _equal_types,
    CelQuantity: _equal_quantities,
    Semver: _equal_versions,
    Locator: _equal_locators,
    Format: _equal_formats,
}
_EQUAL_PARTS: Final[dict[type, Callable[[Any, Any, Budget], bool | Error]]] = {
    **dict.fromkeys((list, GrowingList, JoinedList), _equal_lists),
    **dict.fromkeys((Map, DefaultMap), _equal_maps),
    Optional: _equal_optional,
}
"""Equality functions, by class, for values with parts (lists, maps, optionals); they spend a budget."""


def compare(left: Any, right: Any) -> int | Error:
    """Return -1, 0 or 1 if the left value is less than, equal to or greater than the right value, or an error.

    The type of the left value has an order.
    """
    kind, other = type(left), type(right)
    if kind in _NUMBERS:
        return _compare_numbers(left, right) if other in _NUMBERS else NO_OVERLOAD
    if kind is not other:
        return NO_OVERLOAD
    if kind is str:
        left, right = left.encode(errors="surrogatepass"), right.encode(errors="surrogatepass")
    elif kind is Timestamp or kind is Duration:
        left, right = left.nanoseconds, right.nanoseconds
    return int(left > right) - int(left < right)


def _compare_numbers(left: Any, right: Any) -> int | Error:
    if left != left or right != right:  # noqa: PLR0124 - not a number
        return NOT_A_NUMBER
    if type(left) is float:
        return _compare_float(left, right)
    if type(right) is float:
        return -_compare_float(right, left)
    return int(left > right) - int(left < right)


def _compare_float(left: float, right: Any) -> int:
    """Compare a float as Go does: an integer in the range of floats is converted and can lose digits."""
    if type(right) is not float:
        low, high = (INT_MIN, INT_MAX) if type(right) is int else (0, UINT_MAX)
        if left < low:
            return -1
        if left > float(high) or math.isinf(left):
            return 1
        right = float(right)
    return int(left > right) - int(left < right)
