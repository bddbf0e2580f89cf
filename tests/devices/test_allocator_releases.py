"""The allocator follows the Kubernetes release of the tables."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from policysched.devices import AllocationError, NodeAllocationError
from policysched.model.device_decoding import decode_devices
from policysched.model.objects import DeviceClass, ResourceClaim, ResourceSlice
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


def sharing(amount: str | None = None) -> Any:
    """A claim that has a share of device x."""
    consumed = {"consumedCapacity": {"memory": amount}} if amount else {}
    share = {"request": "r", "driver": "gpu.example.com", "pool": "n0", "device": "x", "shareID": "s", **consumed}
    return decode_devices(
        ResourceClaim,
        {
            "metadata": {"name": "used", "namespace": "ns", "uid": "used"},
            "status": {"allocation": {"devices": {"results": [share]}}},
        },
    )


@pytest.mark.parametrize(("includes_consumed", "expected"), [(False, [["y"]]), (True, None)])
def test_request_for_all_devices_needs_those_without_free_capacity(includes_consumed: bool, expected: Any) -> None:
    shared = {"allowMultipleAllocations": True, "capacity": {"memory": {"value": "10"}}}
    parts = [device(name, **shared) for name in "xy"]
    made = tables(slice_of("n0", parts), release=release(all_includes_consumed=includes_consumed))
    made.allocated.set_claim(sharing("8"))
    wanted = request(0, allocationMode="All", capacity={"requests": {"memory": "5"}})
    assert names(allocate(made, claim(wanted))) == expected


def counting(name: str, counter_set: str = "set", **fields: Any) -> dict[str, Any]:
    """A device that takes the whole counter of a set."""
    taken = [{"counterSet": counter_set, "counters": {"memory": {"value": "10"}}}]
    return device(name, consumesCounters=taken, **fields)


def counters() -> ResourceSlice:
    """The second slice of the pool n0, with a counter set."""
    sets = [{"name": "set", "counters": {"memory": {"value": "10"}}}]
    return slice_of("", [], name="sets", pool="n0", slices=2, sharedCounters=sets)


@pytest.mark.parametrize(("counts", "expected"), [(False, None), (True, [["x"]])])
def test_share_of_a_device_in_use_takes_no_counters(counts: bool, expected: Any) -> None:
    parts = [counting("x", allowMultipleAllocations=True)]
    made = tables(slice_of("n0", parts, slices=2), counters(), release=release(empty_shares_count=counts))
    made.allocated.set_claim(sharing())
    assert names(allocate(made, claim(request()))) == expected


@pytest.mark.parametrize("reach_all", [True, False])
def test_invalid_pool_with_counters_rejects_the_nodes_that_see_it(reach_all: bool) -> None:
    of = release(counters_reach_all_nodes=reach_all)
    parts = [counting("x", "unknown")]
    made = tables(slice_of("n0", parts, slices=2), counters(), nodes=["n0", "n1"], release=of)
    with pytest.raises(NodeAllocationError):
        allocate(made, claim(request()))
    if reach_all:
        with pytest.raises(NodeAllocationError):
            allocate(made, claim(request()), row=1)
    else:
        assert allocate(made, claim(request()), row=1) is None


@pytest.mark.parametrize("reach_all", [True, False])
def test_counters_of_a_slice_that_no_node_reaches_limit_the_pool(reach_all: bool) -> None:
    of = release(counters_reach_all_nodes=reach_all)
    made = tables(slice_of("n0", [counting("x"), counting("y")], slices=2), counters(), release=of)
    assert names(allocate(made, claim(request(1)))) == [["x"]]
    assert allocate(made, claim(request(2))) is None


def stepping(value: str, least: str, step: str) -> dict[str, Any]:
    """A device that is shared by steps of its memory."""
    policy = {"default": least, "validRange": {"min": least, "step": step}}
    return device("x", allowMultipleAllocations=True, capacity={"memory": {"value": value, "requestPolicy": policy}})


def asking(amount: str, **fields: Any) -> ResourceClaim:
    return claim(request(capacity={"requests": {"memory": amount}}, **fields))


@pytest.mark.parametrize(("keeps_form", "written"), [(False, "3000"), (True, "3k")])
def test_rounded_capacity_is_written_in_the_form_of_the_release(keeps_form: bool, written: str) -> None:
    of = release(rounded_capacities_keep_form=keeps_form)
    found = allocate(tables(slice_of("n0", [stepping("9k", "2000", "1000")]), release=of), asking("2500"))
    assert found is not None
    assert found[0].devices.results[0].consumed_capacity == {"memory": written}


@pytest.mark.parametrize(("mode", "named"), [({}, "gpu.example.com/n0/x"), ({"allocationMode": "All"}, "x")])
def test_capacity_that_overflows_fails_the_request(mode: dict[str, Any], named: str) -> None:
    made = tables(slice_of("n0", [stepping("9E", "10P", "7E")]), release=release(capacity_errors_fail=True))
    with pytest.raises(AllocationError) as raised:
        allocate(made, asking("9E", **mode))
    assert str(raised.value) == (
        f'claim ns/c, request r: checking capacity for device {named}: capacity "memory": capacity request cannot be '
        "represented in the device's range arithmetic: rounding request 9E up to the next step passes MaxInt64"
    )


def test_negative_capacity_fails_the_request() -> None:
    parts = [device("x", capacity={"memory": {"value": "1"}})]
    made = tables(slice_of("n0", parts), release=release(capacity_errors_fail=True))
    with pytest.raises(AllocationError, match='capacity "memory": capacity value is neg'):
        allocate(made, asking("-1"))
    assert allocate(tables(slice_of("n0", parts)), asking("-1")) is not None
