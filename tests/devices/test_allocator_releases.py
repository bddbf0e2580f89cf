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


def sharing(amount: str | None = None, name: str = "memory") -> Any:
    """A claim that has a share of device x."""
    consumed = {"consumedCapacity": {name: amount}} if amount else {}
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
    made = tables(slice_of("n0", parts), release=release(capacity_errors_fail=False))
    assert allocate(made, asking("-1")) is not None


FRACTIONS: dict[str, tuple[tuple[str, str, str], str, str, str]] = {
    "steps below one": (("4", "500m", "250m"), "600m", "1", "750m"),
    "whole result": (("4", "500m", "250m"), "900m", "1", "1"),
    "least amount": (("4", "500m", "250m"), "100m", "500m", "500m"),
    "whole steps": (("8Gi", "1Gi", "1Gi"), "1500Mi", "2Gi", "2Gi"),
    "bounds without thousandths": (("10", "1", "1000001u"), "1500m", "3", "3"),
}
"""Value, least amount and step of a capacity; the requested amount; the taken amounts: whole units, and fractions."""


@pytest.mark.parametrize("is_fractional", [False, True])
@pytest.mark.parametrize("case", FRACTIONS)
def test_capacity_is_rounded_to_whole_units_or_to_thousandths(case: str, is_fractional: bool) -> None:
    (value, least, step), amount, whole, fraction = FRACTIONS[case]
    of = release(capacities_are_fractional=is_fractional, rounded_capacities_keep_form=True)
    made = tables(slice_of("n0", [stepping(value, least, step)]), release=of)
    found = allocate(made, asking(amount))
    assert found is not None
    assert found[0].devices.results[0].consumed_capacity == {"memory": fraction if is_fractional else whole}


@pytest.mark.parametrize(
    ("least", "step", "amount", "reason"),
    [
        ("1", "500m", "1.0001", "request 1000100u is not a representable milli value"),
        ("1Gi", "500m", "10P", "request 10P is not a representable milli value"),
        ("1", "5P", "6P", "rounding request 6P up to the next step passes the milli-value range"),
    ],
)
def test_capacity_beyond_thousandths_fails_the_request(least: str, step: str, amount: str, reason: str) -> None:
    of = release(capacities_are_fractional=True, capacity_errors_fail=True)
    made = tables(slice_of("n0", [stepping("20P", least, step)]), release=of)
    with pytest.raises(AllocationError, match=f"range arithmetic: {reason}$"):
        allocate(made, asking(amount))


def test_capacity_fails_the_request_only_on_nodes_that_reach_the_device() -> None:
    parts = [{**stepping("9E", "10P", "7E"), "nodeName": "n1"}, {**device("y"), "allNodes": True}]
    spread = slice_of("", parts, pool="all", perDeviceNodeSelection=True)
    made = tables(spread, nodes=["n0", "n1"], release=release(capacity_errors_fail=True))
    wanted = asking("9E", allocationMode="All")
    assert allocate(made, wanted) is None
    with pytest.raises(AllocationError, match=r"passes MaxInt64$"):
        allocate(made, wanted, row=1)


@pytest.mark.parametrize("ignores", [False, True])
def test_compatibility_groups_make_a_pool_incomplete(ignores: bool) -> None:
    taken = [{"counterSet": "set", "counters": {"memory": {"value": "5"}}, "compatibilityGroups": ["g"]}]
    parts = [device("x", consumesCounters=taken), device("y")]
    other = slice_of("n0", [device("z")], name="other", slices=3)
    made = tables(slice_of("n0", parts, slices=3), other, release=release(ignores_compatibility_groups=ignores))
    sets = [{"name": "set", "counters": {"memory": {"value": "10"}}}]
    made.set_slice(slice_of("", [], name="sets", pool="n0", slices=3, sharedCounters=sets, allNodes=True))
    assert names(allocate(made, claim(request()))) == (None if ignores else [["z"]])
    made.set_slice(slice_of("n0", [device("x")], slices=3))
    assert names(allocate(made, claim(request(3)))) is None
    assert names(allocate(made, claim(request(2)))) == [["z", "x"]]


def test_a_newer_slice_with_compatibility_groups_still_replaces_a_pool() -> None:
    taken = [{"counterSet": "set", "counters": {}, "compatibilityGroups": ["g"]}]
    newer = slice_of("n9", [device("x", consumesCounters=taken)], name="newer", pool="n0", generation=2)
    made = tables(slice_of("n0", [device("z")], slices=2), newer, release=release(ignores_compatibility_groups=True))
    wanted = claim(request(allocationMode="All"))
    assert allocate(made, wanted) is None
    made.remove_slice("newer")
    with pytest.raises(AllocationError, match="is currently being updated"):
        allocate(made, wanted)


@pytest.mark.parametrize("refuses", [False, True])
def test_derived_attributes_fail_the_request(refuses: bool) -> None:
    made = tables(slice_of("n0", devices(1)), release=release(refuses_derived_attributes=refuses))
    wanted = claim(request(derivedAttributes=[{"name": "a", "expression": "1"}]))
    if not refuses:
        assert allocate(made, wanted) is not None
        return
    with pytest.raises(
        AllocationError, match=r"^claim ns/c, request r: cannot handle request with derived attributes, "
    ):
        allocate(made, wanted)


LISTS: dict[str, tuple[dict[str, Any], str]] = {
    "strings": ({"strings": ["A", "B"]}, 'device.attributes["gpu.example.com"].model.includes("B")'),
    "integers": ({"ints": [1, 2]}, '2 in device.attributes["gpu.example.com"].model'),
    "booleans": ({"bools": [True]}, 'device.attributes["gpu.example.com"].model[0] == true'),
    "versions": ({"versions": ["1.2.0"]}, 'device.attributes["gpu.example.com"].model[0].minor() == 2'),
}


@pytest.mark.parametrize("case", LISTS)
def test_attributes_that_are_lists_are_read_or_fail(case: str) -> None:
    attribute, expression = LISTS[case]
    parts = [device("x", attributes={"model": {"strings": ["C"]}}), device("y", attributes={"model": attribute})]
    wanted = claim(request(1, expression))
    made = tables(slice_of("n0", parts[1:]), release=release(selectors_follow_cel_0_29=True))
    assert names(allocate(made, wanted)) == [["y"]]
    made = tables(slice_of("n0", parts[1:]), release=release(selectors_follow_cel_0_29=False))
    with pytest.raises(AllocationError, match="attribute model: unsupported attribute value"):
        allocate(made, wanted)


def test_devices_with_different_lists_are_different() -> None:
    parts = [device(name, attributes={"model": {"strings": [name]}}) for name in "xyz"]
    made = tables(slice_of("n0", parts), release=release(selectors_follow_cel_0_29=True))
    wanted = claim(request(1, 'device.attributes["gpu.example.com"].model.includes("y")'))
    assert names(allocate(made, wanted)) == [["y"]]


@pytest.mark.parametrize("reads", [False, True])
def test_a_list_with_a_malformed_version_fails_every_selector(reads: bool) -> None:
    parts = [device("x", attributes={"model": {"versions": ["1.0.0", "1.x"]}})]
    made = tables(slice_of("n0", parts), release=release(selectors_follow_cel_0_29=reads))
    reason = "parse semantic version: " if reads else "unsupported attribute value"
    with pytest.raises(AllocationError, match=f"attribute model: {reason}"):
        allocate(made, claim(request(1, "true")))


QUALIFIED = "gpu.example.com/memory"


@pytest.mark.parametrize(("stated", "wanted"), [("memory", QUALIFIED), (QUALIFIED, "memory"), ("memory", "memory")])
@pytest.mark.parametrize("qualifies", [False, True])
def test_capacity_without_a_domain_has_the_drivers(qualifies: bool, stated: str, wanted: str) -> None:
    part = device("x", allowMultipleAllocations=True, capacity={stated: {"value": "10"}})
    made = tables(slice_of("n0", [part]), release=release(qualifies_capacities=qualifies))
    asked = claim(request(1, capacity={"requests": {wanted: "6"}}))
    found = allocate(made, asked)
    assert (found is not None) is (qualifies or stated == wanted)
    if found is not None:
        assert found[0].devices.results[0].consumed_capacity == {stated: "6"}
    made.allocated.set_claim(sharing("5"))
    assert allocate(made, asked) is None


def test_capacity_that_a_device_states_twice_is_the_qualified_one_and_other_domains_stay() -> None:
    capacity = {"memory": {"value": "1"}, QUALIFIED: {"value": "10"}, "other.com/memory": {"value": "2"}}
    part = device("x", allowMultipleAllocations=True, capacity=capacity)
    made = tables(slice_of("n0", [part]), release=release(qualifies_capacities=True))
    found = allocate(made, claim(request(1, capacity={"requests": {"memory": "6", "other.com/memory": "1"}})))
    assert found is not None
    assert found[0].devices.results[0].consumed_capacity == {QUALIFIED: "6", "other.com/memory": "1"}
    made.allocated.set_claim(sharing("1", "other.com/memory"))
    assert allocate(made, claim(request(1, capacity={"requests": {"memory": "6", "other.com/memory": "1"}})))


def test_capacity_that_is_requested_twice_is_an_error() -> None:
    part = device("x", allowMultipleAllocations=True, capacity={"memory": {"value": "10"}})
    made = tables(slice_of("n0", [part]), release=release(qualifies_capacities=True))
    text = f'capacity "memory" requested both as "memory" and as "{QUALIFIED}"'
    with pytest.raises(AllocationError, match=text):
        allocate(made, claim(request(1, capacity={"requests": {"memory": "6", QUALIFIED: "7"}})))


@pytest.mark.parametrize(("rejects", "error"), [(False, AllocationError), (True, NodeAllocationError)])
def test_incomplete_pool_fails_the_pod_or_rejects_the_node(rejects: bool, error: type[AllocationError]) -> None:
    slices = [slice_of("n0", devices(1), slices=2), slice_of("n1", devices(1))]
    made = tables(*slices, nodes=["n0", "n1"], release=release(incomplete_pool_rejects_node=rejects))
    wanted = claim(request(0, allocationMode="All"))
    with pytest.raises(AllocationError, match="is currently being updated") as raised:
        allocate(made, wanted)
    assert type(raised.value) is error
    assert names(allocate(made, wanted, row=1)) == [["d00"]]
