"""The allocator follows the Kubernetes release of the tables."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from policysched.devices import AllocationError
from policysched.model.device_decoding import decode_devices
from policysched.model.objects import DeviceClass
from policysched.model.release import V1_36, Release
from tests.devices.build import allocate, claim, device, devices, names, request, slice_of, tables

HINT = (
    ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() for optional "
    "fields"
)
MODEL = 'device.attributes["gpu.example.com"].model == "A"'
FAST = {"opaque": {"driver": "gpu.example.com", "parameters": {"mode": "fast"}}}
TWICE = [("FromClaim", ("r", "q"))] * 2


def release(**fields: Any) -> Release:
    return replace(V1_36, **fields)


@pytest.mark.parametrize(
    ("names_device", "expression", "text"),
    [
        (False, MODEL, "selector #0: CEL runtime error: no such key: model"),
        (
            True,
            MODEL,
            "selector #0 on device {device}: CEL runtime error: no such key: model" + HINT,
        ),
        (True, "device.a", "selector #0: CEL compile error: "),
    ],
)
def test_selector_error_names_the_first_failing_device(names_device: bool, expression: str, text: str) -> None:
    of = release(selector_errors_name_devices=names_device)
    slices = [slice_of(node, devices(2)) for node in ("n0", "n1")]
    made = tables(*slices, nodes=["n0", "n1"], release=of)
    for row, node in enumerate(("n0", "n1")):
        with pytest.raises(AllocationError) as raised:
            allocate(made, claim(request(1, expression)), row=row)
        assert str(raised.value).startswith(f"claim ns/c: {text}".format(device=f"gpu.example.com/{node}/d00"))


@pytest.mark.parametrize(
    ("applies_to_all", "expected"),
    [
        (
            False,
            [("FromClass", ("q", "r")), *TWICE, ("FromClaim", ("r",)), ("FromClaim", ())],
        ),
        (True, [("FromClass", ()), ("FromClaim", ()), ("FromClaim", ("r",)), ("FromClaim", ())]),
    ],
)
def test_configuration_for_all_requests_names_none(applies_to_all: bool, expected: list[Any]) -> None:
    spec = {"metadata": {"name": "gpu"}, "spec": {"config": [FAST]}}
    of = release(configurations_apply_to_all=applies_to_all)
    configured = decode_devices(DeviceClass, spec)
    made = tables(slice_of("n0", devices(2)), classes=[configured], release=of)
    stated = [{**FAST, "requests": ["r", "q"]}, {**FAST, "requests": ["r"]}, FAST]
    found = allocate(made, claim(request(name="q"), request(name="r"), config=stated))
    assert found is not None
    assert [(one.source, one.requests) for one in found[0].devices.config] == expected


@pytest.mark.parametrize(("compares_all", "expected"), [(False, [["x", "y", "z"]]), (True, None)])
def test_distinct_values_are_compared_within_a_request(compares_all: bool, expected: Any) -> None:
    parts = [device(name, attributes={"model": {"string": model}}) for name, model in ("xA", "yB", "zA")]
    made = tables(slice_of("n0", parts), release=release(distinct_compares_all=compares_all))
    constraint = {"distinctAttribute": "gpu.example.com/model"}
    assert names(allocate(made, claim(request(3), constraints=[constraint]))) == expected


def test_distinct_values_are_forgotten_with_their_devices() -> None:
    parts = [device(name, attributes={"model": {"string": model}}) for name, model in ("xA", "yA", "zB")]
    made = tables(slice_of("n0", parts), release=release(distinct_compares_all=True))
    constraint = {"distinctAttribute": "gpu.example.com/model"}
    found = allocate(made, claim(request(1, name="q"), request(1, MODEL), constraints=[constraint]))
    assert names(found) == [["z", "x"]]
