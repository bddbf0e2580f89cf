"""Checks of a type-checked CEL expression: invalid literals, lists of mixed types, invalid formats.

Source: cel-go v0.26 cel/validator.go, ext/formatting.go (stringFormatValidator).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from policysched.budget import Budget
from policysched.cel import types
from policysched.cel.checker import Checked
from policysched.cel.issues import Issues
from policysched.cel.libraries.conversions import OVERLOADS
from policysched.cel.libraries.formatting import ONLY, Clause, FormatError, parts
from policysched.cel.libraries.patterns import compiled
from policysched.cel.syntax.tree import CallNode, CelNode, ConstantNode, ListOf, MapOf, children, walk
from policysched.cel.types import CelType, same_types
from policysched.cel.values.scalars import Error

_EXEMPT: Final = "format"
_KINDS: Final = {
    "s": frozenset(
        ["list", "map", "int", "uint", "double", "bool", "string", "timestamp", "bytes", "duration", "type", "null"]
    ),
    "d": frozenset({"int", "uint"}),
    "f": frozenset({"double", "string"}),
    "e": frozenset({"double", "string"}),
    "b": frozenset({"int", "uint", "bool"}),
    "x": frozenset({"int", "uint", "string", "bytes"}),
    "X": frozenset({"int", "uint", "string", "bytes"}),
    "o": frozenset({"int", "uint"}),
}


def validate(node: CelNode, checked: Checked, issues: Issues, work: Budget) -> None:
    """Report invalid literals, lists of mixed types and invalid formats in a checked expression.

    Raises:
        BudgetExceededError: types or patterns are too large.
    """
    calls = [one for one in walk(node) if isinstance(one, CallNode)]
    for name in ("duration", "timestamp", "matches"):
        for one in calls:
            if checked.functions.get(one, one.function) == name and one.arguments:
                _check_argument(name, one.arguments[0], issues, work)
    literals = list(_not_exempt(node))
    for kind in (_check_list, _check_map):
        for literal in literals:
            kind(literal, checked, issues, work)
    for one in reversed(calls):
        if one.function == "format" and one.target is not None:
            _check_format(one, one.target, checked, issues)


def _check_argument(name: str, argument: CelNode, issues: Issues, work: Budget) -> None:
    if not isinstance(argument, ConstantNode):
        return
    value = argument.value
    if name == "matches":
        wrong = type(value) is str and isinstance(compiled(value, work), Error)
    else:
        kind = {str: "string", int: "int64"}.get(type(value))
        wrong = kind is None or isinstance(OVERLOADS[f"{kind}_to_{name}"](value), Error)
    if wrong:
        issues.report(argument.at, f"invalid {name} argument")


def _not_exempt(node: CelNode) -> Iterator[CelNode]:
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, CallNode) and one.function == _EXEMPT:
            continue
        yield one
        waiting.extend(reversed(children(one)))


def _check_list(node: CelNode, checked: Checked, issues: Issues, work: Budget) -> None:
    if not isinstance(node, ListOf):
        return
    wanted: CelType | None = None
    for place, one in enumerate(node.elements):
        of = _inner(checked.types[one], optional=place in node.optional)
        wanted = wanted or of
        if not same_types(wanted, of, work):
            _mismatch(one, wanted, of, issues, work)
            break


def _check_map(node: CelNode, checked: Checked, issues: Issues, work: Budget) -> None:
    if not isinstance(node, MapOf):
        return
    keys: CelType | None = None
    values: CelType | None = None
    for one in node.entries:
        if not isinstance(one.key, CelNode):
            continue
        key, value = checked.types[one.key], _inner(checked.types[one.value], optional=one.optional)
        keys, values = keys or key, values or value
        if not same_types(keys, key, work):
            _mismatch(one.key, keys, key, issues, work)
        if not same_types(values, value, work):
            _mismatch(one.value, values, value, issues, work)


def _inner(of: CelType, *, optional: bool) -> CelType:
    return of.parameters[0] if optional and of.parameters else of


def _mismatch(node: CelNode, wanted: CelType, of: CelType, issues: Issues, work: Budget) -> None:
    issues.report(node.at, f"expected type '{wanted.formatted(work)}' but found '{of.formatted(work)}'")


def _check_format(call: CallNode, target: CelNode, checked: Checked, issues: Issues) -> None:
    values = call.arguments[0] if len(call.arguments) == 1 else None
    if not (isinstance(target, ConstantNode) and type(target.value) is str and isinstance(values, ListOf)):
        return None
    clauses = [part for part in parts(target.value) if not isinstance(part, str)]
    for place, part in enumerate(clauses):
        fault = _clause_fault(part, place, values, checked)
        if fault is not None:
            return issues.report(fault[0].at if fault[0] else call.at, fault[1])
    if len(values.elements) > len(clauses):
        supplied = f"(expected {len(clauses)}, got {len(values.elements)})"
        issues.report(call.at, f"too many arguments supplied to string.format {supplied}")
    return None


def _clause_fault(
    part: Clause | FormatError, place: int, values: ListOf, checked: Checked
) -> tuple[CelNode | None, str] | None:
    """Return the error of a format clause, with the argument that is wrong if any; None if the clause is valid."""
    if place >= len(values.elements):
        return None, f"index {place} out of range"
    if isinstance(part, FormatError):
        return None, str(part)
    wrong = _misfit(part[0], values.elements[place], checked)
    if wrong is None:
        return None
    return wrong, f"error during formatting: {ONLY[part[0]]}, was given {checked.types[wrong].name}"


def _misfit(clause: str, node: CelNode, checked: Checked) -> CelNode | None:
    """Return the part of a `format()` argument that a clause cannot format; None if it can format all of it."""
    of = checked.types[node]
    if of is types.DYN:
        return None
    if of.kind not in _KINDS[clause]:
        return node
    if clause != "s" or not isinstance(node, ListOf | MapOf):
        return None if clause == "s" or of.kind in _KINDS[clause] else node
    found = (_misfit(clause, one, checked) for one in children(node))
    return next((one for one in found if one is not None), None)
