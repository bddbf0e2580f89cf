"""Write amounts in the units of the language: `4`, `1500m`, `8Gi`, `332d`. Different amounts have different texts."""

from __future__ import annotations

from typing import Final

from policysched.language.ir.types import SECONDS, Unit

_BINARY: Final = tuple(
    (1 << power, unit) for power, unit in ((60, "Ei"), (50, "Pi"), (40, "Ti"), (30, "Gi"), (20, "Mi"), (10, "Ki"))
)
_DURATIONS: Final = ("d", "h", "min", "s")


def written(value: float, unit: Unit | None) -> str:
    """Write an amount.

    Args:
        value: The amount. Units: millicores, bytes or seconds; other amounts as they are.
        unit: The unit that the language gives the amount; None for a value without a unit.
    """
    if not float(value).is_integer():
        return f"{value!r}m" if unit is Unit.CPU else repr(value)
    whole = int(value)
    if unit is Unit.CPU:
        return f"{whole}m" if whole % 1000 else str(whole // 1000)
    if unit is Unit.BYTES:
        return next((f"{whole // size}{name}" for size, name in _BINARY if whole and not whole % size), str(whole))
    return _duration(whole) if unit is Unit.DURATION else str(whole)


def _duration(seconds: int) -> str:
    parts, left = [], abs(seconds)
    for unit in _DURATIONS:
        count, left = divmod(left, int(SECONDS[unit]))
        parts += [f"{count}{unit}"] if count else []
    return ("-" if seconds < 0 else "") + (" ".join(parts) or "0s")
