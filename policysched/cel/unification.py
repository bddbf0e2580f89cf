"""Type unification: decides whether a type can be assigned to another, and with which type parameters.

Source: cel-go v0.26 checker/types.go, checker/mapping.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from policysched.budget import Budget
from policysched.cel import types
from policysched.cel.types import CelType, same_types

Substitutions = dict[str, CelType]
_NULLABLE: Final = frozenset({"null", "opaque", "struct", "any", "duration", "timestamp"})
_COMPOSED: Final = frozenset({"opaque", "list", "map"})


def assignable(known: Substitutions, first: CelType, second: CelType, work: Budget) -> Substitutions | None:
    """Return the type parameters with which `second` can be assigned to `first`; None if it cannot be."""
    made = dict(known)
    return made if _assignable(made, first, second, work) else None


def assignable_lists(
    known: Substitutions, first: Sequence[CelType], second: Sequence[CelType], work: Budget
) -> Substitutions | None:
    """Return the type parameters with which every pair of types can be assigned; None if a pair cannot be."""
    made = dict(known)
    return made if _all_assignable(made, first, second, work) else None


def substituted(known: Mapping[str, CelType], of: CelType, work: Budget, *, to_dyn: bool = False) -> CelType:
    """Return a type with its known type parameters replaced; `to_dyn` replaces unknown parameters by dyn."""
    if of.kind == "param":
        if of.name in known:
            return substituted(known, known[of.name], work, to_dyn=to_dyn)
        return types.DYN if to_dyn else of
    if not of.is_open:
        return of
    work.spend(len(of.parameters))
    return CelType(of.kind, of.name, tuple(substituted(known, one, work, to_dyn=to_dyn) for one in of.parameters))


def closed(known: Mapping[str, CelType], all_types: Iterable[CelType]) -> list[CelType]:
    """Return types with all type parameters replaced: known parameters by their types, unknown parameters by dyn."""
    made: dict[int, CelType] = {}

    def close(of: CelType) -> CelType:
        if not of.is_open:
            return of
        found = made.get(id(of))
        if found is None:
            if of.kind == "param":
                found = close(known[of.name]) if of.name in known else types.DYN
            else:
                found = CelType(of.kind, of.name, tuple(map(close, of.parameters)))
            made[id(of)] = found
        return found

    return list(map(close, all_types))


def most_general(first: CelType, second: CelType, work: Budget) -> CelType:
    """Return the less specific of two types of which one can be assigned to the other."""
    return first if _no_more_specific(first, second, work) else second


def without_optional(of: CelType) -> tuple[CelType, bool]:
    """Return the type inside an optional type, and whether the type was optional."""
    if of.kind == "opaque" and of.name == types.OPTIONAL.name and of.parameters:
        return of.parameters[0], True
    return of, False


def _no_more_specific(first: CelType, second: CelType, work: Budget) -> bool:
    if first.is_dynamic or first.kind == "param":
        return True
    if second.is_dynamic or second.kind == "param" or first.kind != second.kind:
        return False
    if first.kind in _COMPOSED:
        work.spend(len(first.parameters))
        if first.name != second.name or len(first.parameters) != len(second.parameters):
            return False
        pairs = zip(first.parameters, second.parameters, strict=True)
        return all(_no_more_specific(one, other, work) for one, other in pairs)
    return first.kind == "type" or same_types(first, second, work)


def _assignable(known: Substitutions, first: CelType, second: CelType, work: Budget) -> bool:
    if second.kind == "param":
        valid, known_before = _substitutable(known, first, second, work)
        if valid or known_before:
            return valid
    if first.kind == "param":
        return _substitutable(known, second, first, work)[0]
    kinds = {first.kind, second.kind}
    if kinds & {"dyn", "any", "error"}:
        return True
    if "null" in kinds:
        return kinds <= _NULLABLE
    if first.kind == "type" or first.kind != second.kind:
        return first.kind == second.kind
    work.spend(len(first.parameters))
    return first.name == second.name and _all_assignable(known, first.parameters, second.parameters, work)


def _all_assignable(known: Substitutions, first: Sequence[CelType], second: Sequence[CelType], work: Budget) -> bool:
    return len(first) == len(second) and all(
        _assignable(known, one, other, work) for one, other in zip(first, second, strict=True)
    )


def _substitutable(known: Substitutions, of: CelType, parameter: CelType, work: Budget) -> tuple[bool, bool]:
    """Return whether a type can replace a type parameter, and whether the parameter already had a type."""
    if same_types(of, parameter, work):
        return True, True
    before = known.get(parameter.name)
    if before is None:
        if not _free_of(known, parameter, of, work):
            return False, False
        known[parameter.name] = of
        return True, False
    if same_types(of, before, work):
        return True, True
    if not _assignable(known, of, before, work):
        return False, True
    general = most_general(of, before, work)
    if _free_of(known, parameter, general, work):
        known[parameter.name] = general
    return True, True


def _free_of(known: Substitutions, parameter: CelType, of: CelType, work: Budget) -> bool:
    if not of.is_open:
        return True
    if same_types(of, parameter, work):
        return False
    if of.kind == "param":
        return of.name not in known or _free_of(known, parameter, known[of.name], work)
    work.spend(len(of.parameters))
    return all(_free_of(known, parameter, one, work) for one in of.parameters)
