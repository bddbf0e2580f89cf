"""Units that literals can take, and their values in canonical units.

`3` is a number or three cores: which of them its neighbours decide. So this module answers, without checking
anything, which units an expression that consists of literals could still take.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Final

from policysched.language.functions import FUNCTIONS
from policysched.language.ir.tree import Call, Chain, Expr, Literal, LiteralKind, Negation
from policysched.language.ir.types import FACTORS, SECONDS, Unit

EXACT: Final = 2**53
_ALL: Final = frozenset(Unit)
_NUMBER_OR_CPU: Final = frozenset({Unit.NUMBER, Unit.CPU})
_NUMBER_OR_BYTES: Final = frozenset({Unit.NUMBER, Unit.BYTES})
_BYTES: Final = frozenset({Unit.BYTES})


def _split(literal: Literal) -> tuple[Decimal, str]:
    digits = literal.text.rstrip("%abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    return Decimal(digits), literal.text[len(digits) :]


def literal_value(literal: Literal, unit: Unit) -> Decimal:
    """Return a numeric literal in the canonical units of a unit it can take."""
    digits, suffix = _split(literal)
    factor = SECONDS[suffix] if literal.kind is LiteralKind.DURATION else FACTORS[suffix]
    return digits * factor * (1000 if unit is Unit.CPU else 1)


def literal_units(literal: Literal) -> frozenset[Unit] | None:
    """Return the units that a literal can take; None where it is no quantity."""
    match literal.kind:
        case LiteralKind.STRING | LiteralKind.TRUE | LiteralKind.FALSE:
            return None
        case LiteralKind.DURATION:
            return frozenset({Unit.DURATION})
        case LiteralKind.PERCENT:
            return frozenset({Unit.NUMBER})
        case LiteralKind.NUMBER:
            return _NUMBER_OR_CPU if _split(literal)[0] else _ALL
        case _:
            suffix = _split(literal)[1]
            if suffix == "m":
                return _NUMBER_OR_CPU
            return _BYTES if suffix.endswith("i") else _NUMBER_OR_BYTES


def units_of(expr: Expr) -> frozenset[Unit] | None:
    """Return the units that an expression made of literals can take; None where it has one of its own."""
    match expr:
        case Literal():
            return literal_units(expr)
        case Negation():
            return units_of(expr.operand)
        case Chain() if expr.steps[0].operator not in {"*", "/"}:
            return _common((expr.first, *(step.operand for step in expr.steps)))
        case Call() if expr.arguments:
            function = FUNCTIONS.get(expr.function.dotted)
            return _common(expr.arguments[function.unit]) if function and function.unit else None
        case _:
            return None


def _common(operands: Iterable[Expr]) -> frozenset[Unit] | None:
    common = _ALL
    for operand in operands:
        units = units_of(operand)
        if units is None:
            return None
        common &= units
    return common


def suffixed(expr: Expr) -> bool:
    """Whether an expression made of literals has a suffix other than `%` in it."""
    match expr:
        case Literal():
            return expr.kind in {LiteralKind.QUANTITY, LiteralKind.DURATION}
        case Negation():
            return suffixed(expr.operand)
        case Chain():
            return suffixed(expr.first) or any(suffixed(step.operand) for step in expr.steps)
        case Call():
            return any(suffixed(argument) for argument in expr.arguments)
        case _:
            return False


def choose(units: frozenset[Unit], wanted: Unit | None) -> Unit:
    """Return the wanted unit where it is among those possible, else a number, else what is left."""
    if wanted in units:
        return wanted
    if Unit.NUMBER in units or not units:
        return Unit.NUMBER
    return min(units, key=lambda unit: unit.value)


def choose_common(operands: Iterable[Expr], wanted: Unit | None) -> Unit | None:
    """Return the unit for operands that are all made of literals; None where one is not."""
    common = _common(operands)
    return None if common is None else choose(common, wanted)
