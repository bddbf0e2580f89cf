"""Formatting of resource amounts as Kubernetes quantities, and of numbers with nouns."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

from policysched.language.ir.types import Unit
from policysched.language.messages.amounts import written
from policysched.model.quantity import Quantity

MAY_OVERCOMMIT: Final = frozenset(("cpu", "memory", "ephemeral-storage"))
"""Resources whose limits may exceed the requests."""
_BINARY: Final = ((60, "Ei"), (50, "Pi"), (40, "Ti"), (30, "Gi"), (20, "Mi"), (10, "Ki"))
_DECIMAL: Final = (
    (18, "E"), (15, "P"), (12, "T"), (9, "G"), (6, "M"), (3, "k"), (0, ""), (-3, "m"), (-6, "u"), (-9, "n"),
)  # fmt: skip
_ROUNDED: Final = ((1 << 40, "Ti"), (1 << 30, "Gi"), (1 << 20, "Mi"), (1 << 10, "Ki"))


def quantity(resource: str, amount: int) -> str:
    """Format an amount of a resource exactly. Units of the amount: millicores for cpu, else the resource's unit."""
    return written(amount, _unit(resource))


def canonical(amount: Quantity, like: object) -> str:
    """Format a quantity as an API server prints it: `500m`, `1G`, `1Gi`.

    Args:
        amount: The quantity.
        like: An amount as the user wrote it; a binary suffix selects a binary suffix.
    """
    number = Fraction(amount.number)
    if str(like).strip().endswith("i") and abs(number) >= 1024:
        whole = math.ceil(number)
        return next((f"{whole >> bits}{suffix}" for bits, suffix in _BINARY if not whole % (1 << bits)), str(whole))
    for exponent, suffix in _DECIMAL:
        scaled = number / Fraction(10) ** exponent
        if number and scaled.denominator == 1:
            return f"{scaled}{suffix}"
    return str(math.ceil(number))


def rounded(resource: str, amount: int) -> str:
    """Format an amount of a resource with about three digits. Units: millicores for cpu, else the resource's unit."""
    unit = _unit(resource)
    if unit is Unit.CPU and amount >= 10_000:
        return str(round(amount / 1000)) if amount >= 100_000 else f"{amount / 1000:.1f}".removesuffix(".0")
    if unit is Unit.BYTES:
        size, name = next((one for one in _ROUNDED if amount >= one[0]), (1, ""))
        value = amount / size
        return f"{value:.0f}{name}" if value >= 100 else f"{value:.1f}".removesuffix(".0") + name
    return quantity(resource, amount)


def counted(number: int, noun: str) -> str:
    """Format a number with its noun: `1 node`, `2 nodes`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _unit(resource: str) -> Unit | None:
    if resource == "cpu":
        return Unit.CPU
    return Unit.BYTES if resource in MAY_OVERCOMMIT or resource.startswith("hugepages-") else None
