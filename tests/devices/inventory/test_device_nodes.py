"""Which devices of a slice a node reaches: as if each device's selector were asked, and without asking them all."""

from __future__ import annotations

import random
from typing import Any, Final

import msgspec
import pytest

from policysched.devices.inventory.slices import DeviceNodes
from policysched.model.objects import SliceDevice
from policysched.model.selection.node_selectors import lenient_node_selector
from tests.work import calls

HOST: Final = "kubernetes.io/hostname"
REQUIREMENTS: Final[tuple[dict[str, Any], ...]] = (
    *({"key": key, "operator": "In", "values": [value]} for key in (HOST, "rack") for value in "abc"),
    {"key": "rack", "operator": "In", "values": [*"abc"]},
    {"key": "rack", "operator": "In", "values": [f"r{number}" for number in range(50)] + ["a"]},
    {"key": "rack", "operator": "NotIn", "values": ["a"]},
    {"key": HOST, "operator": "Exists"},
    {"key": "rack", "operator": "DoesNotExist"},
    {"key": "rack", "operator": "Strange"},
)
FIELDS: Final = tuple(
    {"key": "metadata.name", "operator": operator, "values": [value]} for operator in ("In", "NotIn") for value in "ab"
)


def device(number: int, *terms: dict[str, Any]) -> SliceDevice:
    return msgspec.convert({"name": f"d{number}", "nodeSelector": {"nodeSelectorTerms": [*terms]}}, SliceDevice)


def on_host(number: int) -> SliceDevice:
    return device(number, {"matchExpressions": [{"key": HOST, "operator": "In", "values": [f"n{number}"]}]})


@pytest.mark.parametrize("seed", range(20))
def test_node_reaches_the_devices_whose_selectors_match_it(seed: int) -> None:
    rng = random.Random(seed)
    devices = tuple(
        device(
            number,
            *(
                {
                    "matchExpressions": rng.sample(REQUIREMENTS, rng.randrange(3)),
                    "matchFields": rng.sample(FIELDS, rng.choice((0, 0, 1))),
                }
                for _ in range(rng.randrange(4))
            ),
        )
        for number in range(30)
    )
    reached = DeviceNodes(devices)
    for name in ("", "a", "b", "n"):
        for _ in range(10):
            labels = {key: rng.choice("abd") for key in (HOST, "rack") if rng.random() < 0.7}
            matching = (one.node_selector and lenient_node_selector(one.node_selector) for one in devices)
            naive = sum(1 << place for place, one in enumerate(matching) if one and one.matches(name, labels))
            assert reached.reached_from(name, labels) == naive


def test_a_node_is_not_compared_with_the_selectors_of_all_devices() -> None:
    few, many = (DeviceNodes(tuple(map(on_host, range(count)))) for count in (4, 128))
    labels = {HOST: "n3"}
    assert many.reached_from("n3", labels) == few.reached_from("n3", labels) == 1 << 3
    assert calls(lambda: many.reached_from("n3", labels)) == calls(lambda: few.reached_from("n3", labels))
