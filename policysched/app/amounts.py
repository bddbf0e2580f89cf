"""Write amounts of resources as Kubernetes quantities, and numbers with their nouns."""

from __future__ import annotations

from typing import Final

from policysched.language.ir.types import Unit
from policysched.language.messages.amounts import written

MAY_OVERCOMMIT: Final = frozenset(("cpu", "memory", "ephemeral-storage"))
"""The resources whose limits may exceed the requests."""
_ROUNDED: Final = ((1 << 40, "Ti"), (1 << 30, "Gi"), (1 << 20, "Mi"), (1 << 10, "Ki"))


def quantity(resource: str, amount: int) -> str:
    """Write an amount exactly. Units: millicores of cpu; other resources as they are."""
    return written(amount, _unit(resource))


def rounded(resource: str, amount: int) -> str:
    """Write an amount with about three digits. Units: as in `quantity`."""
    unit = _unit(resource)
    if unit is Unit.CPU and amount >= 10_000:
        return str(round(amount / 1000)) if amount >= 100_000 else f"{amount / 1000:.1f}".removesuffix(".0")
    if unit is Unit.BYTES:
        size, name = next((one for one in _ROUNDED if amount >= one[0]), (1, ""))
        value = amount / size
        return f"{value:.0f}{name}" if value >= 100 else f"{value:.1f}".removesuffix(".0") + name
    return quantity(resource, amount)


def counted(number: int, noun: str) -> str:
    """Write a number with its noun: `1 node`, `2 nodes`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _unit(resource: str) -> Unit | None:
    if resource == "cpu":
        return Unit.CPU
    return Unit.BYTES if resource in MAY_OVERCOMMIT or resource.startswith("hugepages-") else None
