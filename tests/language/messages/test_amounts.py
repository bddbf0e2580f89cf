"""Amounts in the units of the language."""

from __future__ import annotations

import pytest

from policysched.app.amounts import quantity, rounded
from policysched.language.ir.types import Unit
from policysched.language.messages.amounts import written


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (4000.0, Unit.CPU, "4"),
        (1500, Unit.CPU, "1500m"),
        (0.5, Unit.CPU, "0.5m"),
        (8 << 30, Unit.BYTES, "8Gi"),
        ((8 << 30) + 1, Unit.BYTES, "8589934593"),
        (0, Unit.BYTES, "0"),
        (332 * 86400, Unit.DURATION, "332d"),
        (86400 + 60, Unit.DURATION, "1d 1min"),
        (-60, Unit.DURATION, "-1min"),
        (0, Unit.DURATION, "0s"),
        (0.25, Unit.NUMBER, "0.25"),
        (10.0, None, "10"),
    ],
)
def test_amounts_are_written_as_the_language_does(value: float, unit: Unit | None, text: str) -> None:
    assert written(value, unit) == text


def test_a_duration_can_be_cut_after_its_largest_units() -> None:
    assert written(86400 + 6 * 3600 + 54 * 60, Unit.DURATION, time_units=2) == "1d 6h"
    assert written(86400 + 60, Unit.DURATION, time_units=2) == "1d"


@pytest.mark.parametrize(
    ("resource", "amount", "exact", "about"),
    [
        ("cpu", 369012, "369012m", "369"),
        ("cpu", 64200, "64200m", "64.2"),
        ("cpu", 1500, "1500m", "1500m"),
        ("memory", 979258 << 20, "979258Mi", "956Gi"),
        ("memory", 1536 << 20, "1536Mi", "1.5Gi"),
        ("nvidia.com/gpu", 5, "5", "5"),
    ],
)
def test_amounts_of_resources_are_quantities(resource: str, amount: int, exact: str, about: str) -> None:
    assert (quantity(resource, amount), rounded(resource, amount)) == (exact, about)
