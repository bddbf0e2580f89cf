"""Formats amounts in units of the language, such as `1500m`, `8Gi` and `332d`; different amounts differ as text."""

from __future__ import annotations

from typing import Final

from policysched.language.ir.types import SECONDS, Unit

_BINARY: Final = tuple(
    (1 << power, unit) for power, unit in ((60, "Ei"), (50, "Pi"), (40, "Ti"), (30, "Gi"), (20, "Mi"), (10, "Ki"))
)
_DURATIONS: Final = ("d", "h", "min", "s")


def written(value: float, unit: Unit | None, *, time_units: int = len(_DURATIONS)) -> str:
    """Return an amount in a unit of the language, such as `8Gi`.

    Args:
        value: The amount. Units: millicores, bytes or seconds; other amounts as they are.
        unit: The unit that the language gives the amount; None for a value without a unit.
        time_units: The number of units of a duration, the largest first; the rest of the duration is dropped.
    """
    if not float(value).is_integer():
        return f"{value!r}m" if unit is Unit.CPU else repr(value)
    whole = int(value)
    if unit is Unit.CPU:
        return f"{whole}m" if whole % 1000 else str(whole // 1000)
    if unit is Unit.BYTES:
        return next((f"{whole // size}{name}" for size, name in _BINARY if whole and not whole % size), str(whole))
    return _duration(whole, time_units) if unit is Unit.DURATION else str(whole)


def _duration(seconds: int, time_units: int) -> str:
    counts: list[tuple[int, str]] = []
    left = abs(seconds)
    for unit in _DURATIONS:
        count, left = divmod(left, int(SECONDS[unit]))
        counts += [(count, unit)] if count or counts else []
    parts = [f"{count}{unit}" for count, unit in counts[:time_units] if count]
    return ("-" if seconds < 0 else "") + (" ".join(parts) or "0s")
