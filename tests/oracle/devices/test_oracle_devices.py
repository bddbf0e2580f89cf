"""What kube-scheduler says of small cases about devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.oracle import configs
from tests.oracle.minors import AT_EACH_MINOR
from tests.oracle.objects import container, node, pod

from .things import claim, device, device_class, given, request, resource_slice, using

if TYPE_CHECKING:
    from tests.oracle.oracle import Oracle

pytestmark = pytest.mark.oracle

WANTED = [node("a"), device_class()]


def ask(oracle: Oracle, objects: list[Any], wanted: Any) -> Any:
    return oracle.decide({"objects": objects, "pod": wanted, "config": configs.base()})


def of_slice(*devices: Any, **spec: Any) -> list[Any]:
    return [*WANTED, resource_slice("s", *devices, **spec)]


def test_first_devices_that_fit_are_given(oracle: Oracle) -> None:
    objects = [*of_slice(device("x"), device("y"), device("z")), claim(request(count=2))]
    record = ask(oracle, objects, using("c"))
    assert given(record) == {"c": ["a/x", "a/y"]}
    [allocation] = record["allocations"]["a"]
    [term] = allocation["result"]["nodeSelector"]["nodeSelectorTerms"]
    assert term["matchFields"] == [{"key": "metadata.name", "operator": "In", "values": ["a"]}]


def test_every_feasible_node_has_an_allocation_of_its_own(oracle: Oracle) -> None:
    slices = [resource_slice(f"s-{name}", device(f"on-{name}"), node=name) for name in "ab"]
    record = ask(oracle, [*map(node, "abc"), device_class(), *slices, claim(request())], using("c"))
    assert [given(record, name) for name in "abc"] == [{"c": ["a/on-a"]}, {"c": ["b/on-b"]}, {}]
    assert record["rejected"]["c"] == {
        "plugin": "DynamicResources",
        "code": "UnschedulableAndUnresolvable",
        "reasons": ["cannot allocate all claims"],
    }


def counting(name: str, amount: str, **fields: Any) -> Any:
    consumed = [{"counterSet": "set", "counters": {"memory": {"value": amount}}}]
    return device(name, consumesCounters=consumed, **fields)


def counters(driver: str = "gpu.example.com", amount: str = "10") -> Any:
    sets = [{"name": "set", "counters": {"memory": {"value": amount}}}]
    return resource_slice("sets", sharedCounters=sets, told={"resourceSliceCount": 2}, driver=driver)


def test_device_that_is_refused_for_a_taint_leaves_its_counters(oracle: Oracle) -> None:
    tainted = counting("x", "10", taints=[{"key": "broken", "effect": "NoSchedule"}])
    devices = resource_slice("s", tainted, counting("y", "10"), told={"resourceSliceCount": 2})
    record = ask(oracle, [*WANTED, devices, counters(), claim(request())], using("c"))
    assert given(record) == {"c": ["a/y"]}


def test_pools_of_two_drivers_with_one_name_have_counters_of_their_own(oracle: Oracle) -> None:
    other: dict[str, Any] = {"driver": "nic.example.com", "told": {"resourceSliceCount": 2}}
    slices = [
        resource_slice("s", counting("x", "10"), told={"resourceSliceCount": 2}),
        counters(),
        resource_slice("s-other", counting("x", "4"), **other),
        {**counters(driver="nic.example.com", amount="4"), "metadata": {"name": "sets-other"}},
    ]
    record = ask(oracle, [*WANTED, *slices, claim(request(count=2))], using("c"))
    assert given(record) == {"c": ["a/x", "a/x"]}


@AT_EACH_MINOR
def test_distinct_values_within_one_request_are_compared_in_1_36_with_the_last_one_alone(oracle: Oracle) -> None:
    objects = of_slice(device("x", model="A"), device("y", model="B"), device("z", model="A"))
    constraint = {"distinctAttribute": "gpu.example.com/model"}
    record = ask(oracle, [*objects, claim(request(count=3), constraints=[constraint])], using("c"))
    assert given(record) == ({"c": ["a/x", "a/y", "a/z"]} if oracle.minor == "1.36" else {})


def test_error_counts_only_where_the_search_gets_there(oracle: Oracle) -> None:
    erring = [{"cel": {"expression": 'device.attributes["gpu.example.com"].model == "A"'}}]
    good, bad = device("good", model="A"), device("bad")
    record = ask(oracle, [*of_slice(good, bad), claim(request(selectors=erring))], using("c"))
    assert given(record) == {"c": ["a/good"]}
    record = ask(oracle, [*of_slice(bad, good), claim(request(selectors=erring))], using("c"))
    assert record["result"] == "Error"
    assert [*record["errors"]] == ["a"]
    assert "CEL runtime error: no such key: model" in record["error"]


def test_amount_is_rounded_up_and_written(oracle: Oracle) -> None:
    policy = {"default": "4Gi", "validRange": {"min": "2Gi", "step": "2Gi"}}
    capacity = {"memory": {"value": "16Gi", "requestPolicy": policy}}
    objects = of_slice(device("x", allowMultipleAllocations=True, capacity=capacity))
    asking = request(capacity={"requests": {"memory": "3Gi"}})
    record = ask(oracle, [*objects, claim(asking)], using("c"))
    [result] = record["allocations"]["a"][0]["result"]["devices"]["results"]
    assert result["consumedCapacity"] == {"memory": "4Gi"}
    assert set(result["shareID"]) == {"0", "-"}


def test_extended_resource_gets_a_claim_that_is_made_for_the_node(oracle: Oracle) -> None:
    asking = pod("web", containers=[container(requests={"cpu": "1", "example.com/gpu": "2"})])
    objects = [
        node("a"),
        node("b", allocatable={"cpu": "4", "memory": "8Gi", "pods": "110", "example.com/gpu": "2"}),
        device_class(extendedResourceName="example.com/gpu"),
        resource_slice("s", device("x"), device("y")),
    ]
    record = ask(oracle, objects, asking)
    [made] = record["allocations"]["a"]
    assert [one["name"] for one in made["requests"]] == ["container-0-request-1"]
    assert given(record) == {"<extended-resources>": ["a/x", "a/y"]}
    assert record["best"] and "b" in record["total"] and "b" not in record["allocations"]


def test_claims_are_in_flight_then_written_then_given_back(oracle: Oracle) -> None:
    first, second = (using(name, name=name) for name in ("one", "two"))
    again = using("one", name="again")
    claims = [claim(request(), name=name) for name in ("one", "two")]
    case = {
        "objects": [*of_slice(device("x")), *claims],
        "sequence": [first, second, again, {**second, "metadata": {**second["metadata"], "name": "late"}}],
        "between": [[], [], [{"set": first}], [{"remove": first}, {"set": claims[0]}]],
        "config": configs.base(),
    }
    records = oracle.decide_sequence(case)
    assert [record["result"] for record in records] == ["Scheduled", "Unschedulable", "Scheduled", "Scheduled"]
    assert [given(record) for record in records] == [{"one": ["a/x"]}, {}, {}, {"two": ["a/x"]}]


def test_claim_in_flight_keeps_other_pods_waiting_until_its_pod_goes(oracle: Oracle) -> None:
    first, second = using("c", name="first"), using("c", name="second")
    third = using("c", name="third")
    case = {
        "objects": [*of_slice(device("x")), claim(request())],
        "sequence": [first, second, third],
        "between": [[], [], [{"remove": first}]],
        "config": configs.base(),
    }
    records = oracle.decide_sequence(case)
    assert records[1]["preFilter"]["reasons"] == ["resource claim default/c is in the process of being allocated"]
    assert given(records[2]) == {"c": ["a/x"]}


def test_hints_and_gate_are_told(oracle: Oracle) -> None:
    free = claim(request())
    taken = {**claim(request(), name="other"), "status": {"allocation": {"devices": {}}}}
    case = {
        "objects": [*WANTED, free, taken],
        "pod": using("c"),
        "hints": [{"old": None, "new": free}, {"old": None, "new": taken}, {"old": taken, "new": claim(name="other")}],
        "config": configs.base(),
    }
    assert oracle.hints(case) == {"gate": "", "hints": ["Queue", "QueueSkip", "Queue"]}
    gone = oracle.hints(case | {"objects": WANTED})
    assert gone == {"gate": 'could not find ResourceClaim "default/c"', "hints": ["QueueSkip"] * 3}


def test_claim_that_is_nowhere_available_is_given_back(oracle: Oracle) -> None:
    held = claim(request())
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["gone"]}]}
    results = [{"request": "r", "driver": "gpu.example.com", "pool": "a", "device": "x"}]
    allocation = {"devices": {"results": results}, "nodeSelector": {"nodeSelectorTerms": [term]}}
    held["status"] = {"allocation": allocation}
    case = {"objects": [*WANTED, held], "pod": using("c"), "config": configs.base(), "preempt": True}
    found = oracle.decide(case)["preemption"]
    assert found["message"].startswith("deallocation of ResourceClaim completed")
    assert found["written"] == ["update/status c"]
