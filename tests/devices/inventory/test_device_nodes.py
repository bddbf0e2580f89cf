"""Which devices of a slice a node reaches: as if each device's selector were asked, and without asking them all."""

from __future__ import annotations

import gc
import random
import tracemalloc
from collections.abc import Callable
from typing import Any, Final

import msgspec
import pytest

from policysched.devices import AllocatedState, Allocator, DeviceTables
from policysched.devices.inventory.pool_views import PoolView
from policysched.devices.inventory.row_bits import rows_of
from policysched.devices.inventory.slices import DeviceNodes, KeptSlice
from policysched.model.decode import decode
from policysched.model.objects import AllocationResult, ResourceSlice, SliceDevice
from policysched.model.objects.devices import DeviceAllocation, DeviceResult
from policysched.model.selection.node_selectors import lenient_node_selector
from tests.devices.build import claim, class_of, request
from tests.work import calls, lines

HOST: Final = "kubernetes.io/hostname"
REQUIREMENTS: Final[tuple[dict[str, Any], ...]] = (
    *({"key": key, "operator": "In", "values": [value]} for key in (HOST, "rack") for value in "abc"),
    {"key": "rack", "operator": "In", "values": [*"abc"]},
    {"key": "rack", "operator": "In", "values": [f"r{number}" for number in range(50)] + ["a"]},
    {"key": "rack", "operator": "NotIn", "values": ["a"]},
    {"key": HOST, "operator": "Exists"},
    {"key": "rack", "operator": "DoesNotExist"},
    {"key": "rack", "operator": "Strange"},
    {"key": "size", "operator": "Gt", "values": ["2"]},
    {"key": "size", "operator": "Lt", "values": ["4"]},
    {"key": "size", "operator": "NotIn", "values": ["3", "5"]},
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


def chosen(rng: random.Random) -> dict[str, Any]:
    """What says by requirements which nodes are meant."""
    stated: dict[str, Any] = {"matchExpressions": rng.sample(REQUIREMENTS, rng.choice((1, 1, 2)))}
    if rng.random() < 0.2:
        stated["matchFields"] = [rng.choice(FIELDS)]
    return {"nodeSelector": {"nodeSelectorTerms": [stated]}}


def published(rng: random.Random, number: int, devices: int = 3) -> ResourceSlice:
    """A slice of one of few pools, which nodes reach that have labels, names, or any."""
    pool = f"p{number % 3}"
    spec: dict[str, Any] = {"driver": "x.io", "pool": {"name": pool, "generation": rng.choice((1, 1, 2))}}
    spec["pool"]["resourceSliceCount"] = 1 + number % 3 % 2
    some = (chosen(rng) for _ in range(4))
    here, *others_here = some
    names = [f"d{number}-{place}" for place in range(devices)]
    match rng.randrange(6):
        case 0:
            spec |= {"nodeName": rng.choice("abc"), "devices": [{"name": name} for name in names]}
            if rng.random() < 0.3:
                spec |= {"perDeviceNodeSelection": True, "devices": [{"name": name, **here} for name in names]}
        case 1:
            spec |= {"allNodes": True, "devices": [{"name": name} for name in names]}
        case 2 | 3:
            spec |= here | {"devices": [{"name": name} for name in names]}
        case _:
            others: tuple[dict[str, Any], ...] = (
                {"nodeName": rng.choice("ab")},
                {"allNodes": True},
                here,
                here,
                *others_here,
            )
            if rng.random() < 0.3:
                others = others[2:]
            spec |= {
                "perDeviceNodeSelection": True,
                "devices": [{"name": name, **rng.choice(others)} for name in names],
            }
    return decode(ResourceSlice, "ResourceSlice", {"metadata": {"name": f"s{number}"}, "spec": spec})


def seen(tables: DeviceTables) -> dict[str, Any]:
    """What each node sees, and what no node can use."""
    found: dict[str, Any] = {}
    for row in tables._nodes.by_row:
        name, group = tables.node(row)
        found[name] = {
            one.view.pool: (sorted(each.name for each in one.view.slices), one.view.is_usable, one.reached)
            for one in group.pools
        }
    return found


@pytest.mark.parametrize("seed", range(40))
def test_many_nodes_see_what_each_would_see_that_is_asked_by_itself(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, made, asked = random.Random(seed), DeviceTables(), DeviceTables()
    monkeypatch.setattr("policysched.devices.inventory.row_bits._AT_ONCE", rng.choice((1, 1 << 22)))
    monkeypatch.setattr("policysched.devices.inventory.node_groups._MOST_PARTS", rng.choice((1, 3, 64)))
    names = [*"abcdef", *(f"n{number}" for number in range(60))]
    for _ in range(60):
        if rng.random() < 0.7:
            row = rng.randrange(len(names))
            given = {key: rng.choice("abcd") for key in (HOST, "rack") if rng.random() < 0.7}
            given |= {"size": str(rng.randrange(6))} if rng.random() < 0.7 else {}
            for each in (made, asked):
                each.set_node(row, names[row], given)
        else:
            one = published(rng, rng.randrange(6), 12)
            for each in (made, asked):
                each.set_slice(one)
        if rng.random() < 0.2:
            made.refresh()
            with monkeypatch.context() as patched:
                patched.setattr("policysched.devices.inventory.tables._FEW_ROWS", 1000)
                asked.refresh()
            assert seen(made) == seen(asked)
            for row, known in made._nodes.by_row.items():
                assert row in known.group.rows
            assert all(rows_of(group.bits) == sorted(group.rows) for group in made.groups.all)


@pytest.mark.parametrize("few", [0, 2, 8])
@pytest.mark.parametrize("seed", range(30))
def test_nodes_see_after_each_change_what_they_would_see_at_first(
    seed: int, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("policysched.devices.inventory.tables._FEW_ROWS", few)  # up to so many are looked at one by one
    rng, made = random.Random(seed), DeviceTables()
    slices: dict[str, ResourceSlice] = {}
    labels: dict[str, dict[str, str]] = {}
    rows = {name: row for row, name in enumerate("abcdef")}
    for _ in range(120):
        name = rng.choice("abcdef")
        match rng.randrange(6):
            case 0 | 1:
                labels[name] = {key: rng.choice("abcd") for key in (HOST, "rack") if rng.random() < 0.7}
                made.set_node(rows[name], name, labels[name])
            case 2:
                labels.pop(name, None)
                made.remove_node(rows[name])
            case 3:
                gone = f"s{rng.randrange(6)}"
                slices.pop(gone, None)
                made.remove_slice(gone)
            case _:
                one = published(rng, rng.randrange(6))
                slices[one.metadata.name] = one
                made.set_slice(one)
        if rng.random() < 0.5:
            made.refresh()
            anew = DeviceTables()
            for each in slices.values():
                anew.set_slice(each)
            for node, said in labels.items():
                anew.set_node(rows[node], node, said)
            anew.refresh()
            assert seen(made) == seen(anew)
            assert all(group.rows for group in made.groups.all)
            assert {row for group in made.groups.all for row in group.rows} == {rows[node] for node in labels}


def of_one_pool(rng: random.Random, number: int, count: int) -> ResourceSlice:
    """One of the slices of a pool that is complete, which nodes reach by labels or names, as a whole or by devices."""
    names = [f"d{number}-{place}" for place in range(rng.randrange(1, 20))]
    spec: dict[str, Any] = {
        "driver": "x.io",
        "pool": {"name": "p", "generation": 1, "resourceSliceCount": count},
        "devices": [{"name": name} for name in names],
    }
    if rng.random() < 0.3:
        spec |= chosen(rng)
    else:
        others = ({"nodeName": rng.choice("abc")}, {"allNodes": True}, chosen(rng), chosen(rng), chosen(rng))
        some = rng.choices(others[rng.choice((0, 2, 2)) :], k=len(names))
        spec |= {
            "perDeviceNodeSelection": True,
            "devices": [{"name": n, **o} for n, o in zip(names, some, strict=True)],
        }
    return decode(ResourceSlice, "ResourceSlice", {"metadata": {"name": f"s{number}"}, "spec": spec})


def allocated(rng: random.Random, state: AllocatedState) -> None:
    """Allocate a device, or give one back."""
    uid = f"c{rng.randrange(12)}"
    if rng.random() < 0.4:
        state.forget(uid)
        return
    result = DeviceResult(driver="x.io", pool="p", device=f"d{rng.randrange(8)}-{rng.randrange(20)}")
    if rng.random() < 0.5:
        amount = f"{rng.randrange(1, 4)}"
        result = msgspec.structs.replace(result, share_id=uid, consumed_capacity={"memory": amount})
    state.assume(uid, AllocationResult(devices=DeviceAllocation(results=(result,))))


def taken(tables: DeviceTables) -> dict[str, Any]:
    """What nodes see of what is allocated, and what is noted of each device."""
    columns = tables.columns
    found: dict[str, Any] = {}
    for row in tables._nodes.by_row:
        name, group = tables.node(row)
        found[name] = [(dict(one.view.consumed), one.view.used, one.view.signature is None) for one in group.pools]
    for one in tables._slices.values():
        flags = columns.used[one.rows].tolist(), columns.consumed[one.rows].tolist()
        found[one.name] = dict(zip(one.devices, zip(*flags, strict=True), strict=True))
    return found


@pytest.mark.parametrize("seed", range(40))
def test_slices_that_are_replaced_are_seen_as_if_they_came_at_first(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("policysched.devices.inventory.tables._FEW_ROWS", seed % 9)
    rng, count, named = random.Random(seed), 8, [*"abcdef", *(f"n{row}" for row in range(60))]
    state = AllocatedState()
    made = DeviceTables(state)
    slices = {number: of_one_pool(rng, number, count) for number in range(count)}
    for one in slices.values():
        made.set_slice(one)
    labels: dict[int, dict[str, str]] = {}
    for _ in range(40):
        for row in rng.sample(range(60), rng.choice((0, 1, 20))):
            labels[row] = {key: rng.choice("abcd") for key in (HOST, "rack", "size") if rng.random() < 0.7}
            made.set_node(row, named[row], labels[row])
        for number in rng.sample(range(count), rng.choice((1, 1, 2, 5))):
            slices[number] = of_one_pool(rng, number, count)
            made.set_slice(slices[number])
        for _ in range(rng.randrange(3)):
            allocated(rng, state)
        made.refresh()
        anew = DeviceTables(state)
        for one in slices.values():
            anew.set_slice(one)
        for row, said in labels.items():
            anew.set_node(row, named[row], said)
        anew.refresh()
        assert seen(made) == seen(anew)
        assert taken(made) == taken(anew)


def spread(rng: random.Random, number: int, nodes: int, devices: int, slices: int) -> ResourceSlice:
    """One of several slices of a pool that some of the nodes see, each some devices; all devices differ."""
    spec: dict[str, Any] = {"driver": "x.io", "perDeviceNodeSelection": True, "devices": []}
    spec["pool"] = {"name": "p", "generation": 1, "resourceSliceCount": slices}
    hosts = rng.sample([f"n{row}" for row in range(nodes)], nodes // 2)
    for place in range(devices):
        where = {"key": HOST, "operator": "In", "values": hosts[place % 8 :: 8]}
        selector = {"nodeSelectorTerms": [{"matchExpressions": [where]}]}
        attributes = {"id": {"string": f"{number}-{place}"}}
        spec["devices"].append({"name": f"d{number}-{place}", "attributes": attributes, "nodeSelector": selector})
    return decode(ResourceSlice, "ResourceSlice", {"metadata": {"name": f"s{number}"}, "spec": spec})


def spread_over(nodes: int, devices: int, slices: int = 6) -> DeviceTables:
    """Tables with a pool of several slices, of which every node sees some of its own."""
    rng, made = random.Random(5), DeviceTables()
    for row in range(nodes):
        made.set_node(row, f"n{row}", {HOST: f"n{row}"})
    made.refresh()
    for number in range(slices):
        made.set_slice(spread(rng, number, nodes, devices, slices))
    return made


def memory_of(action: Callable[[], object]) -> int:
    gc.collect()
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def test_what_nodes_see_of_a_pool_holds_nothing_of_each_of_its_devices() -> None:
    def memory(devices: int) -> int:
        made = spread_over(200, devices)

        def look() -> None:
            made.refresh()
            result = DeviceResult(driver="x.io", pool="p", device="d1-1")
            made.allocated.assume("c", AllocationResult(devices=DeviceAllocation(results=(result,))))
            made.refresh()

        taken = memory_of(look)
        assert len({group.pools for group in made.groups.all}) > 100
        return taken

    assert memory(128) < 1.5 * memory(8)


def living(*kinds: type) -> int:
    gc.collect()
    return sum(isinstance(one, kinds) for one in gc.get_objects())


def test_nothing_is_kept_of_slices_that_are_gone_nor_of_what_nodes_saw() -> None:
    rng, made, others = random.Random(6), spread_over(60, 16), living(KeptSlice, PoolView)
    made.set_class(class_of())
    for turn in range(60):
        made.set_slice(spread(rng, turn % 6, 60, 16, 6))
        made.set_node(0, "n0", {HOST: f"n{turn}"})
        Allocator(made, [claim(request())]).answers()
    assert living(KeptSlice, PoolView) <= others + 6 + 60
    for number in range(6):
        made.remove_slice(f"s{number}")
    Allocator(made, [claim(request())]).answers()
    assert living(KeptSlice, PoolView) <= others - 6


def test_an_allocation_of_several_devices_is_taken_over_at_once() -> None:
    def work(devices: int) -> int:
        made = spread_over(100, 64)
        made.refresh()
        results = tuple(DeviceResult(driver="x.io", pool="p", device=f"d1-{one}") for one in range(devices))
        made.allocated.assume("c", AllocationResult(devices=DeviceAllocation(results=results)))
        return calls(made.refresh)

    assert work(8) < 1.2 * work(1)


def test_claims_are_answered_by_what_slices_have_and_not_by_what_each_node_sees_of_them() -> None:
    def work(nodes: int, devices: int) -> int:
        made = spread_over(nodes, devices)
        made.set_class(class_of('device.attributes["x.io"].id == "none"'))
        made.refresh()
        allocator = Allocator(made, [claim(request())], steps=10_000_000)
        return lines(allocator.answers)

    def work_of_a_node(devices: int) -> float:
        return (work(160, devices) - work(80, devices)) / 80

    work(10, 16)  # the first one imports what compiles selectors
    assert work_of_a_node(128) < 1.2 * work_of_a_node(64)


def test_nodes_that_come_after_slices_of_many_selectors_are_looked_at_one_by_one() -> None:
    def work(slices: int) -> int:
        made = spread_over(200, 128, slices)
        made.refresh()

        def come() -> None:
            for row in range(200, 300):
                made.set_node(row, f"n{row}", {HOST: f"n{row % 200}"})
            made.refresh()

        return calls(come)

    assert work(12) < 2 * work(3)


def test_a_pool_that_few_nodes_reach_by_their_labels_costs_a_look_at_those() -> None:
    def work(nodes: int) -> int:
        made = DeviceTables()
        for row in range(nodes):
            made.set_node(row, f"n{row}", {HOST: f"n{row}"})
        where = {"key": HOST, "operator": "In", "values": ["n3"]}
        spec = {
            "driver": "x.io",
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            "nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [where]}]},
            "devices": [{"name": "d"}],
        }
        one = decode(ResourceSlice, "ResourceSlice", {"metadata": {"name": "s"}, "spec": spec})
        made.set_slice(one)
        made.refresh()
        made.set_slice(one)
        return calls(made.refresh)

    assert work(1000) == work(10)


def for_all(number: int) -> ResourceSlice:
    """A slice that is the only one of its pool, and that every node reaches by a label."""
    spec = {
        "driver": "x.io",
        "pool": {"name": f"p{number}", "generation": 1, "resourceSliceCount": 1},
        "nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [{"key": HOST, "operator": "Exists"}]}]},
        "devices": [{"name": "d"}],
    }
    return decode(ResourceSlice, "ResourceSlice", {"metadata": {"name": f"s{number}"}, "spec": spec})


@pytest.mark.parametrize("nodes_first", [True, False])
def test_nodes_that_see_many_pools_are_put_together_at_once(nodes_first: bool) -> None:
    def work(nodes: int, count: int) -> int:
        made, slices = DeviceTables(), [for_all(number) for number in range(count)]

        def set_nodes() -> None:
            for row in range(nodes):
                made.set_node(row, f"n{row}", {HOST: f"n{row}"})

        def set_slices() -> None:
            for one in slices:
                made.set_slice(one)

        def take_over() -> None:
            for step in (set_nodes, set_slices) if nodes_first else (set_slices, set_nodes):
                step()
            made.refresh()

        return calls(take_over)

    assert work(220, 200) < 4 * work(20, 200)
    assert work(220, 200) < 4 * work(220, 50)


def excluding(revision: int, devices: int, requirements: int) -> ResourceSlice:
    """A slice of devices each of which excludes nodes by many labels, one of which nodes have."""
    spec = {
        "driver": "x.io",
        "pool": {"name": "p", "generation": revision, "resourceSliceCount": 1},
        "perDeviceNodeSelection": True,
        "devices": [
            {
                "name": f"d{device}",
                "nodeSelector": {
                    "nodeSelectorTerms": [
                        {
                            "matchExpressions": [
                                {"key": key, "operator": "NotIn", "values": [f"n{device}"]}
                                for key in (HOST, *(f"k{number}" for number in range(requirements)))
                            ]
                        }
                    ]
                },
            }
            for device in range(devices)
        ],
    }
    return decode(ResourceSlice, "ResourceSlice", {"metadata": {"name": "s"}, "spec": spec})


def test_devices_that_exclude_some_nodes_cost_no_look_at_the_others() -> None:
    def work(nodes: int, requirements: int) -> int:
        made = DeviceTables()
        for row in range(nodes):
            made.set_node(row, f"n{row}", {HOST: f"n{row}"})
        made.set_slice(excluding(1, 30, requirements))
        made.refresh()
        assert {one.reached for row in range(30, nodes) for one in made.node(row)[1].pools} == {(1 << 30) - 1}
        assert [one.reached for one in made.node(3)[1].pools] == [(1 << 30) - 1 - (1 << 3)]
        made.set_slice(excluding(2, 30, requirements))
        return calls(made.refresh)

    assert work(1000, 5) <= work(100, 5) + 10
    assert work(100, 500) < work(100, 50) + 100 * 500
