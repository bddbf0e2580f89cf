"""Devices as rows: nothing stays of those that are gone, and equal ones have equal codes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from policysched.devices.inventory.columns import DeviceColumns
from policysched.model.decode import decode
from policysched.model.objects import SliceDevice
from policysched.model.quantity import QuantityError


def _devices(*raw: dict[str, Any]) -> list[SliceDevice]:
    return [decode(SliceDevice, "Device", {"name": f"d{place}", **one}) for place, one in enumerate(raw)]


def _codes(columns: DeviceColumns, start: int, count: int, names: list[str] | None) -> list[tuple[int, ...]]:
    rows = np.arange(start, start + count, dtype=np.int32)
    return list(zip(*(one.tolist() for one in columns.codes_of(rows, names)), strict=True))


def test_devices_are_alike_to_whoever_reads_what_is_equal() -> None:
    columns = DeviceColumns()
    made = _devices(
        {"attributes": {"a": {"int": 1}, "serial": {"string": "x"}}},
        {"attributes": {"a": {"int": 1}, "serial": {"string": "y"}}},
        {"attributes": {"a": {"bool": True}}},
        {"capacity": {"m": {"value": "1"}}},
    )
    start = columns.add("driver", made)
    first, second, third, fourth = _codes(columns, start, 4, ["a"])
    assert first == second
    assert len({first, third, fourth}) == 3
    assert len(set(_codes(columns, start, 4, None))) == 4
    assert len(set(_codes(columns, start, 4, []))) == 2


def test_nothing_stays_of_devices_that_are_gone() -> None:
    columns = DeviceColumns()
    for round_ in range(50):
        made = _devices(*({"attributes": {f"a{round_ % 7}": {"string": f"{round_}-{one}"}}} for one in range(8)))
        start = columns.add(f"driver-{round_}", made)
        assert columns.attributes(start, None)[f"a{round_ % 7}"].string == f"{round_}-0"
        columns.remove(start, 8)
    assert columns.size == 8
    assert not columns._values.codes
    assert not columns._traits.codes
    start = columns.add("driver", _devices({}))
    assert _codes(columns, start, 1, ["a0", "a6"])[0][1:] == (0, 0)


def test_attributes_beyond_the_first_have_columns_when_somebody_reads_them() -> None:
    columns = DeviceColumns()
    names = [f"a{one:03}" for one in range(100)]
    start = columns.add("driver", _devices({"attributes": {name: {"int": 1} for name in names}}))
    assert len(columns._by_name) < 100
    assert all(_codes(columns, start, 1, [name])[0][1] for name in names)


def test_slice_with_a_malformed_amount_changes_nothing() -> None:
    columns = DeviceColumns()
    with pytest.raises(QuantityError):
        columns.add("driver", _devices({"capacity": {"m": {"value": "1"}}}, {"capacity": {"m": {"value": "much"}}}))
    assert columns.size == 0
    assert not columns._traits.codes


@pytest.mark.parametrize(
    ("attribute", "trouble"),
    [
        ({"version": "1.x"}, "attribute b: parse semantic version: No Major.Minor.Patch elements found"),
        ({"strings": ["a"]}, "attribute b: unsupported attribute value"),
        ({"version": "1.2.3"}, None),
    ],
)
def test_trouble_of_a_device_is_known_with_its_traits(attribute: dict[str, Any], trouble: str | None) -> None:
    columns = DeviceColumns()
    start = columns.add("driver", _devices({"attributes": {"a": {"int": 1}, "b": attribute}}))
    assert columns.traits_at(start).trouble == trouble
