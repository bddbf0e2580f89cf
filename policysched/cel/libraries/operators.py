"""Operators, and functions that accept any type: `size`, `type`, `matches`, `sort`.

For a value of an unsupported type, the error names the operator. For a type with methods (strings, durations and
timestamps), the error names nothing.

Source: cel-go v0.26 common/stdlib/standard.go, interpreter/interpretable.go (evalUnary, evalBinary), common/types.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from policysched.budget import Budget
from policysched.cel.types import CelType
from policysched.cel.values.comparing import compare, same
from policysched.cel.values.kinds import KINDS, LISTS, MAPS, require_hashable
from policysched.cel.values.scalars import (
    INT_MAX,
    INT_MIN,
    INT_OVERFLOW,
    MAX_TIME,
    MIN_TIME,
    NO_OVERLOAD,
    SECOND,
    TIME_OVERFLOW,
    UINT_MAX,
    UINT_OVERFLOW,
    Duration,
    Error,
    GrowingList,
    JoinedList,
    Map,
    Timestamp,
    Uint,
)

_WITH_METHODS: Final = frozenset({str, Timestamp, Duration})
Operation = Callable[..., Any]


def no_overload(value: Any, name: str) -> Error:
    """Return the error of an operator that does not support the type of a value."""
    return NO_OVERLOAD if type(value) in _WITH_METHODS else Error(f"no such overload: {name}")


def _by_type(name: str, operations: dict[type, Operation]) -> Operation:
    """Return an operator that selects its operation by the type of the first argument."""

    def operator(first: Any, *rest: Any) -> Any:
        operation = operations.get(type(first))
        return no_overload(first, name) if operation is None else operation(first, *rest)

    return operator


def _checked_int(value: int) -> Any:
    return value if INT_MIN <= value <= INT_MAX else INT_OVERFLOW


def _checked_uint(value: int) -> Any:
    return Uint(value) if 0 <= value <= UINT_MAX else UINT_OVERFLOW


def _arithmetic(kind: type, compute: Callable[[Any, Any], Any]) -> Operation:
    def operation(left: Any, right: Any) -> Any:
        return compute(left, right) if type(right) is kind else NO_OVERLOAD

    return operation


def _divided(left: int, right: int) -> Any:
    if right == 0:
        return Error("division by zero")
    quotient = abs(left) // abs(right)
    return _checked_int(quotient if (left < 0) == (right < 0) else -quotient)


def _remainder(left: int, right: int) -> Any:
    if right == 0:
        return Error("modulus by zero")
    if left == INT_MIN and right == -1:
        return INT_OVERFLOW
    rest = abs(left) % abs(right)
    return rest if left >= 0 else -rest


def _divided_uint(left: int, right: int) -> Any:
    return Uint(int(left) // int(right)) if right else Error("division by zero")


def _remainder_uint(left: int, right: int) -> Any:
    return Uint(int(left) % int(right)) if right else Error("modulus by zero")


def _divided_float(left: float, right: float) -> float:
    if right:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1, right)


def _times_float(left: float, right: float) -> float:
    return left * right


def _checked_time(nanoseconds: int, offset: int) -> Any:
    if MIN_TIME * SECOND <= nanoseconds < (MAX_TIME + 1) * SECOND:
        return Timestamp(nanoseconds, offset)
    return TIME_OVERFLOW


def _checked_duration(nanoseconds: int) -> Any:
    return Duration(nanoseconds) if INT_MIN <= nanoseconds <= INT_MAX else INT_OVERFLOW


def _add_duration(left: Duration, right: Any) -> Any:
    if type(right) is Duration:
        return _checked_duration(left.nanoseconds + right.nanoseconds)
    if type(right) is Timestamp:
        return _checked_time(left.nanoseconds + right.nanoseconds, right.offset)
    return NO_OVERLOAD


def _add_timestamp(left: Timestamp, right: Any) -> Any:
    return _add_duration(right, left) if type(right) is Duration else NO_OVERLOAD


def _subtract_timestamp(left: Timestamp, right: Any) -> Any:
    if type(right) is Timestamp:
        seconds = left.nanoseconds // SECOND - right.nanoseconds // SECOND
        whole = _checked_duration(seconds * SECOND)
        return whole if isinstance(whole, Error) else _checked_duration(left.nanoseconds - right.nanoseconds)
    if type(right) is not Duration:
        return NO_OVERLOAD
    if right.nanoseconds == INT_MIN:
        return INT_OVERFLOW
    return _checked_time(left.nanoseconds - right.nanoseconds, left.offset)


def add(work: Budget, left: Any, right: Any) -> Any:
    """Return the sum of two values; two strings, bytes or lists are concatenated."""
    kind = type(left)
    if kind in LISTS:
        return _add_lists(work, left, right)
    if kind not in {str, bytes}:
        return add_numbers(left, right)
    if type(right) is not kind:
        return NO_OVERLOAD
    work.spend((len(left) + len(right)) // 10)
    return left + right


def _add_lists(work: Budget, left: list[Any], right: Any) -> Any:
    if type(right) not in LISTS:
        return NO_OVERLOAD
    if type(left) is GrowingList:
        left.extend(right)
        return left
    if not left or not right:
        return left or right
    work.spend(len(left) + len(right))
    made = JoinedList(left)
    made.extend(right)
    return made


def _negated_int(value: int) -> Any:
    return _checked_int(-value)


def _size(value: Any) -> int:
    return len(value)


def _ordered(name: str, outcomes: frozenset[int]) -> Operation:
    def operator(left: Any, right: Any) -> Any:
        if type(left) not in _ORDERED:
            return no_overload(left, name)
        order = compare(left, right)
        return order if isinstance(order, Error) else order in outcomes

    return operator


_ORDERED: Final = frozenset({bool, bytes, float, int, Uint, str, Duration, Timestamp})


def contained_in(work: Budget, element: Any, container: Any) -> Any:
    """Return whether a value is an element of a list or a key of a map."""
    if type(container) in LISTS:
        work.spend(len(container))
        return any(same(element, one, work) is True for one in container)
    if type(container) not in MAPS:
        return NO_OVERLOAD
    if type(container) is Map and len(container) and not container.of_strings:
        require_hashable(element)
    return container.contains(element)


def _not(value: Any) -> Any:
    return not value if type(value) is bool else NO_OVERLOAD


def _kind(value: Any) -> CelType:
    return KINDS[type(value)]


def _sorted_by(work: Budget, values: Any, keys: Any) -> Any:
    if len(values) != len(keys):
        sizes = f"{len(values)} and {len(keys)} elements respectively"
        return Error(
            f"@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got {sizes}"
        )
    if not values:
        return values
    if type(keys[0]) not in _ORDERED:
        return Error("list elements must be comparable")
    if len({type(one) for one in keys}) > 1:
        return Error("list elements must have the same type")
    work.spend(2 * len(values))
    order = sorted(range(len(values)), key=lambda place: _sort_key(keys[place]))
    return [values[place] for place in order]


def _sort_key(value: Any) -> Any:
    if type(value) is str:
        return value.encode(errors="surrogatepass")
    return value.nanoseconds if type(value) in {Duration, Timestamp} else value


def _sort(work: Budget, values: Any, *keys: Any) -> Any:
    name = "@sortByAssociatedKeys" if keys else "sort"
    if type(values) not in LISTS:
        return no_overload(values, name)
    return _sorted_by(work, values, *keys or (values,))


add_numbers: Final = _by_type(
    "_+_",
    {
        int: _arithmetic(int, lambda left, right: _checked_int(left + right)),
        Uint: _arithmetic(Uint, lambda left, right: _checked_uint(int(left) + int(right))),
        float: _arithmetic(float, lambda left, right: left + right),
        Duration: _add_duration,
        Timestamp: _add_timestamp,
    },
)
"""Function that adds numbers, durations and timestamps."""
OPERATORS: Final[dict[str, Operation]] = {
    "!_": _not,
    "-_": _by_type(
        "-_",
        {
            bool: lambda _: NO_OVERLOAD,
            int: _negated_int,
            float: lambda value: -value,
            Duration: lambda value: _checked_duration(-value.nanoseconds),
        },
    ),
    "_-_": _by_type(
        "_-_",
        {
            int: _arithmetic(int, lambda left, right: _checked_int(left - right)),
            Uint: _arithmetic(Uint, lambda left, right: _checked_uint(int(left) - int(right))),
            float: _arithmetic(float, lambda left, right: left - right),
            Duration: _arithmetic(
                Duration, lambda left, right: _checked_duration(left.nanoseconds - right.nanoseconds)
            ),
            Timestamp: _subtract_timestamp,
        },
    ),
    "_*_": _by_type(
        "_*_",
        {
            int: _arithmetic(int, lambda left, right: _checked_int(left * right)),
            Uint: _arithmetic(Uint, lambda left, right: _checked_uint(int(left) * int(right))),
            float: _arithmetic(float, _times_float),
        },
    ),
    "_/_": _by_type(
        "_/_",
        {
            int: _arithmetic(int, _divided),
            Uint: _arithmetic(Uint, _divided_uint),
            float: _arithmetic(float, _divided_float),
        },
    ),
    "_%_": _by_type("_%_", {int: _arithmetic(int, _remainder), Uint: _arithmetic(Uint, _remainder_uint)}),
    "_<_": _ordered("_<_", frozenset({-1})),
    "_<=_": _ordered("_<=_", frozenset({-1, 0})),
    "_>_": _ordered("_>_", frozenset({1})),
    "_>=_": _ordered("_>=_", frozenset({0, 1})),
    "size": _by_type("size", dict.fromkeys((str, bytes, *LISTS, *MAPS), _size)),
    "type": _kind,
    "dyn": lambda value: value,
}
"""Functions that accept values of any type, and return an error for types that they do not support."""
SPENDING_OPERATORS: Final[dict[str, Operation]] = {
    "_+_": add,
    "@in": contained_in,
    "sort": _sort,
    "@sortByAssociatedKeys": _sort,
}
"""Operators whose first argument is a budget; the sizes of the other arguments are subtracted from it."""
