"""Calls of CEL functions: choice of the overload, cost of the call, and errors among the arguments.

Source: cel-go v0.26 interpreter/interpretable.go (evalUnary, evalBinary, evalVarArgs), interpreter/runtimecost.go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from policysched.budget import Budget
from policysched.cel.declarations import Overload
from policysched.cel.libraries import clocks, conversions, kubernetes, lists, patterns, strings
from policysched.cel.libraries.operators import OPERATORS, SPENDING_OPERATORS, no_overload
from policysched.cel.values.kinds import GO_NAMES, KINDS, LISTS, fits
from policysched.cel.values.scalars import Duration, Error, InternalError, Timestamp, Uint
from policysched.cel.work import effort_of, spend_on

Slots = list[Any]
Closure = Callable[[Slots], Any]
_OVERLOADS: Final[dict[str, Callable[..., Any]]] = {
    **clocks.OVERLOADS,
    **conversions.OVERLOADS,
    **kubernetes.OVERLOADS,
    **lists.OVERLOADS,
    **strings.OVERLOADS,
}
_SPENDING: Final[dict[str, Callable[..., Any]]] = {**lists.SPENDING, **patterns.SPENDING, **strings.SPENDING}
NO_OVERLOAD: Final = Error("no such overload")
_UNGUARDED: Final = frozenset(
    {"contains_string", "ends_with_string", "list_flatten", "list_flatten_int", "starts_with_string"}
)


def applied(function: Callable[..., Any], arguments: list[Closure]) -> Closure:
    """Return a Python closure that evaluates a call; if an argument is an error, the first such error is the result."""
    if len(arguments) == 1:
        return _applied_to_one(function, arguments[0])
    if len(arguments) == 2:
        return _applied_to_two(function, *arguments)

    def many(slots: Slots) -> Any:
        values = []
        for part in arguments:
            value = part(slots)
            if type(value) is Error:
                return value
            values.append(value)
        return function(*values)

    return many


def _applied_to_one(function: Callable[..., Any], argument: Closure) -> Closure:
    def one(slots: Slots) -> Any:
        value = argument(slots)
        return value if type(value) is Error else function(value)

    return one


def _applied_to_two(function: Callable[..., Any], left: Closure, right: Closure) -> Closure:
    def two(slots: Slots) -> Any:
        first, second = left(slots), right(slots)
        if type(first) is Error:
            return first
        return second if type(second) is Error else function(first, second)

    return two


_WITH_SUM: Final = frozenset({bytes, float, int, Uint, str, Duration, Timestamp})


def measured(overload: str, arguments: list[Closure]) -> list[Closure]:
    """Wrap `sort`, `distinct` or `flatten` to fail on wrong argument types, as the cost estimate of cel-go does."""
    sorts = overload.endswith(("_sort", "_sortByAssociatedKeys"))
    if not sorts and overload not in {"list_distinct", "list_flatten_int"}:
        return arguments
    place = int(overload.endswith(("Keys", "_int")))
    number = overload == "list_flatten_int"
    argument = arguments[place]

    def checked(slots: Slots) -> Any:
        value = argument(slots)
        kind = type(value)
        if kind is int if number else kind in LISTS:
            return value
        name = GO_NAMES.get(kind, "*types.Err")
        method = "Contains" if kind in _WITH_SUM else "Add"
        said = (
            f"ref.Val is {name}, not types.Int" if number else f"{name} is not traits.Lister: missing method {method}"
        )
        raise InternalError(f"internal error: interface conversion: {said}")

    return [checked if at == place else one for at, one in enumerate(arguments)]


def implementation(
    name: str, fitting: Sequence[Overload], work: Budget, every: Sequence[Overload]
) -> Callable[..., Any]:
    """Return the Python function for a call: an operator, the only overload, or a choice of the overload at run time.

    Args:
        name: The name of the function.
        fitting: The overloads that fit the types of the arguments.
        work: The budget.
        every: All overloads of the function.
    """
    if name in OPERATORS:
        return OPERATORS[name]
    if name in SPENDING_OPERATORS:
        return partial(SPENDING_OPERATORS[name], work)
    if name == "matches":
        return partial(_matches, work)
    overloads = [
        (one, _function(one.name, work), effort_of(one.name)) for one in (fitting if len(fitting) == 1 else every)
    ]

    def call(*values: Any) -> Any:
        for one, function, effort in overloads:
            if function is not None and len(one.arguments) == len(values) and _takes(one, values):
                work.spend(effort)
                for value in values:
                    spend_on(work, value)
                return function(*values)
        return Error(f"no such overload: {name}({', '.join(KINDS[type(value)].name for value in values)})")

    return call


def _function(overload: str, work: Budget) -> Callable[..., Any] | None:
    return partial(_SPENDING[overload], work) if overload in _SPENDING else _OVERLOADS.get(overload)


def _takes(one: Overload, values: Sequence[Any]) -> bool:
    return one.name in _UNGUARDED or all(map(fits, one.arguments, values))


def _matches(work: Budget, text: Any, pattern: Any) -> Any:
    if type(text) is not str:
        return no_overload(text, "matches")
    return patterns.matches(work, text, pattern) if type(pattern) is str else NO_OVERLOAD
