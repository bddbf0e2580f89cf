"""CEL functions of lists, maps and optional values.

Source: cel-go v0.26 and v0.29 ext/lists.go, ext/sets.go, ext/comprehensions.go, cel/library.go; k8s.io/apiserver v0.36
pkg/cel/library/lists.go; k8s.io/dynamic-resource-allocation v0.36 cel/compile.go (includes).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from policysched.budget import Budget
from policysched.cel.libraries.operators import add_numbers
from policysched.cel.values.comparing import compare, same
from policysched.cel.values.kinds import LISTS
from policysched.cel.values.scalars import (
    ABSENT,
    NONE,
    Duration,
    Error,
    Map,
    Optional,
    Timestamp,
    Uint,
    key_form,
)
from policysched.cel.values.texts import shown

_LONGEST_RANGE: Final = 1_000_000
"""Maximum size of the result of `lists.range()` in cel-go 0.29; a larger range is an error."""
_MOST_INCLUDED: Final = 48
_TYPES: Final = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_ORDERED: Final = frozenset({int, Uint, float, bool, Duration, Timestamp, str, bytes})
_NO_OVERLOAD: Final = Error("no such overload")


def _is_sorted(values: list[Any]) -> Any:
    for place, one in enumerate(values):
        if type(one) not in _ORDERED:
            return _NO_OVERLOAD
        if place and compare(values[place - 1], one) == 1:
            return False
    return True


def _sum(start: Any) -> Callable[[list[Any]], Any]:
    def total(values: list[Any]) -> Any:
        so_far = start
        for one in values:
            so_far = add_numbers(so_far, one)
            if isinstance(so_far, Error):
                return _NO_OVERLOAD if so_far.message == "no such overload" else so_far
        return so_far

    return total


def _extreme(name: str, replaced_at: int) -> Callable[[list[Any]], Any]:
    def extreme(values: list[Any]) -> Any:
        if not values:
            return Error(f"{name} called on empty list")
        found = values[0]
        for one in values:
            if type(one) not in _ORDERED:
                return _NO_OVERLOAD
            if compare(found, one) == replaced_at:
                found = one
        return found

    return extreme


def _index_of(work: Budget, values: list[Any], wanted: Any) -> int:
    return next((place for place, one in enumerate(values) if same(one, wanted, work) is True), -1)


def _last_index_of(work: Budget, values: list[Any], wanted: Any) -> int:
    return next((place for place in range(len(values) - 1, -1, -1) if same(values[place], wanted, work) is True), -1)


def _slice(values: list[Any], start: int, end: int) -> Any:
    wanted = f"cannot slice({start}, {end}), "
    if start < 0 or end < 0:
        return Error(f"{wanted}negative indexes not supported")
    if start > end:
        return Error(f"{wanted}start index must be less than or equal to end index")
    if len(values) < end:
        return Error(f"{wanted}list is length {len(values)}")
    return values[start:end]


def _flatten(work: Budget, values: list[Any], depth: int = 1) -> Any:
    if depth < 0:
        return Error("level must be non-negative")
    work.spend(len(values))
    found = []
    for one in values:
        if type(one) in LISTS and depth:
            found.extend(_flatten(work, one, depth - 1))
        else:
            found.append(one)
    return found


def _range(work: Budget, number: int) -> list[int]:
    work.spend(max(number, 0))
    return list(range(number))


def _bounded_range(work: Budget, number: int) -> list[int] | Error:
    if number < 0:
        return Error(f"lists.range: size must be non-negative, got {number}")
    if number > _LONGEST_RANGE:
        return Error(f"lists.range: size {number} exceeds maximum allowed ({_LONGEST_RANGE})")
    return _range(work, number)


def _distinct(work: Budget, values: list[Any]) -> list[Any]:
    found: list[Any] = []
    for one in values:
        work.spend(4 * len(found))
        if not any(same(one, other, work) is True for other in found):
            found.append(one)
    return found


def _contains_all(work: Budget, values: list[Any], wanted: list[Any]) -> bool:
    work.spend(2 * len(values) * len(wanted))
    return all(any(same(one, other, work) is True for other in values) for one in wanted)


def _intersects(work: Budget, values: list[Any], others: list[Any]) -> bool:
    work.spend(2 * len(values) * len(others))
    return any(same(one, other, work) is True for one in values for other in others)


def _are_equivalent(work: Budget, one: list[Any], other: list[Any]) -> bool:
    return _contains_all(work, one, other) and _contains_all(work, other, one)


def _includes(work: Budget, target: Any, wanted: Any) -> Any:
    if type(target) not in LISTS:
        return same(target, wanted, work) is True
    for one in target[:_MOST_INCLUDED]:
        if same(one, wanted, work) is True:
            return True
    if len(target) > _MOST_INCLUDED:
        return Error(f"'includes' function cannot be applied to lists longer than {_MOST_INCLUDED} values")
    return False


def _insert(work: Budget, into: Map, key: Any, value: Any) -> Any:
    if into.find(key) is not ABSENT:
        return Error(f"insert failed: key {shown(key)} already exists")
    work.spend(1)
    into.entries[key_form(key)] = value
    return into


def _insert_all(work: Budget, into: Map, other: Map) -> Any:
    for key in other.keys():  # noqa: SIM118 - not a dict
        made = _insert(work, into, key, other.find(key))
        if isinstance(made, Error):
            return made
    return into


def _of_non_zero(value: Any) -> Optional:
    return NONE if _is_zero(value) else Optional(present=True, value=value)


def _is_zero(value: Any) -> bool:
    if isinstance(value, Duration):
        return value.nanoseconds == 0
    if isinstance(value, Timestamp):
        return value.nanoseconds == -62135596800 * 10**9
    if value is None or type(value) in {bool, int, Uint, float, str, bytes} or type(value) in LISTS:
        return not value
    return isinstance(value, Map) and not len(value)


def _unwrap(values: list[Any]) -> Any:
    for one in values:
        if type(one) is not Optional:
            return Error(f"value {shown(one)} is not optional")
    return [one.value for one in values if one.present]


def _value(one: Optional) -> Any:
    return one.value if one.present else Error("optional.none() dereference")


def _end(place: int) -> Callable[[list[Any]], Optional]:
    return lambda values: Optional(present=True, value=values[place]) if values else NONE


OVERLOADS: Final[dict[str, Callable[..., Any]]] = {
    **{f"list_{name}_is_sorted_bool": _is_sorted for name in _TYPES},
    **{f"list_{name}_max_{name}": _extreme("max", -1) for name in _TYPES},
    **{f"list_{name}_min_{name}": _extreme("min", 1) for name in _TYPES},
    "list_int_sum_int": _sum(0),
    "list_uint_sum_uint": _sum(Uint(0)),
    "list_double_sum_double": _sum(0.0),
    "list_duration_sum_duration": _sum(Duration(0)),
    "list_slice": _slice,
    "list_reverse": lambda values: values[::-1],
    "list_first": _end(0),
    "list_last": _end(-1),
    "optional_of": lambda value: Optional(present=True, value=value),
    "optional_ofNonZeroValue": _of_non_zero,
    "optional_none": lambda: NONE,
    "optional_value": _value,
    "optional_hasValue": lambda one: one.present,
    "optional_unwrap": _unwrap,
    "optional_unwrapOpt": _unwrap,
}
SPENDING: Final[dict[str, Callable[..., Any]]] = {
    "list_a_index_of_int": _index_of,
    "list_a_last_index_of_int": _last_index_of,
    "list_flatten": _flatten,
    "list_flatten_int": _flatten,
    "lists_range": _range,
    "lists_range_0_29": _bounded_range,
    "list_distinct": _distinct,
    "list_sets_contains_list": _contains_all,
    "list_sets_equivalent_list": _are_equivalent,
    "list_sets_intersects_list": _intersects,
    "dra_includes_dyn_dyn": _includes,
    "@mapInsert_map_key_value": _insert,
    "@mapInsert_map_map": _insert_all,
}
"""List functions whose first argument is a budget; the sizes of the other arguments are subtracted from it."""
