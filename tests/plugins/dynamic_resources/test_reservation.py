"""DynamicResources from Reserve to Bind: what is in flight, what is written, and what is taken back."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

import pytest
from msgspec.structs import replace

from policysched.devices import DeviceTables
from policysched.framework import (
    ApiError,
    Cluster,
    Code,
    DeviceWaitOutcome,
    Resource,
    Status,
)
from policysched.model.objects import DeviceCondition, Pod, PodResourceClaim, ResourceClaim
from policysched.plugins.dynamic_resources.claim_writes import ATTEMPTS, FINALIZER
from policysched.plugins.dynamic_resources.reservation import TOLD_AT_ONCE, share_ids
from tests.build import node, pod
from tests.plugins.dynamic_resources.binding import Binding
from tests.plugins.dynamic_resources.objects import (
    DRIVER,
    allocated,
    changed,
    claim,
    claiming,
    device,
    devices_of,
    exactly,
    gpu_class,
    resource_slice,
    told,
    two_nodes,
    user,
    world,
)
from tests.work import calls

GPU = "example.com/gpu"


async def test_a_claim_is_in_flight_and_then_written_and_assumed() -> None:
    one = Binding(two_nodes(claim("c", exactly(count=2))), claiming("c"), "n1", watched=False)
    assert one.reserve() is None
    assert one.around.resource_claims.in_flight == 1
    assert one.taken() == ["n1/d1", "n1/d2"]
    assert one.held().status.allocation is None
    assert await one.pre_bind() == ""
    assert one.server.wrote == ["finalizers", "allocate"]
    written = one.server.stored["default/c"]
    assert written.metadata.finalizers == (FINALIZER,)
    assert written.status.reserved_for == (user(one.assumed.pod),)
    assert written.status.allocation is not None
    assert written.status.allocation.allocation_timestamp == "2026-01-01T00:00:00Z"
    assert one.held() == written
    assert one.around.resource_claims.in_flight == 0
    assert one.taken() == ["n1/d1", "n1/d2"]
    assert [change.resource for change in one.changes] == [Resource.RESOURCE_CLAIM]


async def test_devices_are_awaited_without_keeping_others_from_writing() -> None:
    waiting = Binding(waiting_world(), claiming("c"), "n1")
    other = Binding(two_nodes(claim("c", exactly())), claiming("c"), "n1")
    other.plugin = waiting.plugin
    assert waiting.reserve() is None
    assert other.reserve() is None
    waits = asyncio.create_task(waiting.pre_bind())
    while not waiting.clock.seconds:
        await asyncio.sleep(0)
    assert await other.pre_bind() == ""
    assert not waits.done()
    waits.cancel()


async def test_pods_without_claims_have_nothing_to_bind() -> None:
    one = Binding(two_nodes(), pod(), "n1")
    assert one.reserve() is None
    assert not one.plugin.pre_bind_pre_flight(one.assumed).works
    await one.give_up()
    assert one.server.wrote == []


async def test_a_claim_that_is_allocated_is_only_reserved() -> None:
    other = pod("other")
    one = Binding(two_nodes(allocated(claim(), "n1", "d1", users=[other])), claiming("c"), "n1")
    assert one.reserve() is None
    assert one.around.resource_claims.in_flight == 0
    assert await one.pre_bind() == ""
    assert one.server.wrote == ["reserve"]
    assert one.held().status.reserved_for == (user(other), user(one.assumed.pod))


@pytest.mark.parametrize("watched", [True, False])
async def test_a_reservation_alone_is_told_once(watched: bool) -> None:
    around = two_nodes(allocated(claim(), "n1", "d1"))
    one = Binding(around, claiming("c"), "n1", watched=watched)
    assert one.reserve() is None
    assert await one.pre_bind() == ""
    assert len(one.changes) == (0 if watched else 1)  # the watch tells it where it is faster


@pytest.mark.parametrize("watched", [True, False])
async def test_an_allocation_is_told_once_it_is_not_in_flight(watched: bool) -> None:
    one = Binding(two_nodes(claim()), claiming("c"), "n1", watched=watched)
    in_flight: list[int] = []
    told_of = one.around.resource_claims
    one.handle = dataclasses.replace(one.handle, changed=lambda _: in_flight.append(told_of.in_flight))
    assert one.reserve() is None
    assert await one.pre_bind() == ""
    assert in_flight == [0]


async def test_a_claim_that_is_reserved_already_is_left_alone() -> None:
    of = claiming("c")
    one = Binding(two_nodes(allocated(claim(), "n1", "d1", users=[of])), of, "n1")
    assert one.reserve() is None
    assert await one.pre_bind() == ""
    assert one.server.wrote == []


async def test_reserve_fails_where_the_devices_are_gone() -> None:
    one = Binding(two_nodes(claim("c", exactly(count=2))), claiming("c"), "n2")
    status = one.reserve()
    assert status is not None
    assert status.message == "claim allocation not found for node"
    assert one.around.resource_claims.in_flight == 0


async def test_reserve_fails_where_the_node_is_gone() -> None:
    around = two_nodes(claim("c"))
    one = Binding(around, claiming("c"), "n1")
    around.remove_node("n1")
    assert one.reserve() == Status(Code.ERROR, ("claim allocation not found for node",))
    assert not around.resource_claims.in_flight


async def test_a_fault_of_the_allocator_is_no_status_of_the_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Binding(two_nodes(claim("c")), claiming("c"), "n1")
    monkeypatch.setattr(DeviceTables, "node", lambda self, row: {}[row])  # noqa: ARG005 - a fault
    with pytest.raises(KeyError):
        one.reserve()


async def test_what_is_in_flight_is_given_back_and_told() -> None:
    one = Binding(two_nodes(claim()), claiming("c"), "n1")
    one.reserve()
    await one.give_up()
    assert one.taken() == []
    assert one.around.resource_claims.in_flight == 0
    assert one.server.wrote == []
    [change] = one.changes
    assert (change.old.status.allocation, change.new.status.allocation) != (None, None)
    assert change.new.status.allocation is None


async def test_a_reservation_is_taken_back_and_the_allocation_stays() -> None:
    one = Binding(two_nodes(claim()), claiming("c"), "n1")
    one.reserve()
    assert await one.pre_bind() == ""
    await one.give_up()
    assert one.server.wrote[-1] == "reserve"
    assert one.held().status.reserved_for == ()
    assert one.taken() == ["n1/d1"]


async def test_a_refused_write_ends_the_binding_and_frees_the_devices() -> None:
    one = Binding(two_nodes(claim()), claiming("c"), "n1")
    one.server.errors["allocate"] = [ApiError(422, "Invalid", "no")]
    one.reserve()
    assert await one.pre_bind() == "add allocation and reservation to claim default/c: no"
    assert one.taken() == []
    one.changes.clear()
    await one.give_up()
    assert [change.new.status.allocation for change in one.changes] == [None]


@pytest.mark.parametrize(("conflicts", "problem"), [(1, ""), (ATTEMPTS - 1, ""), (ATTEMPTS, "the object moved on")])
async def test_a_conflict_is_tried_again_with_the_newest_claim(conflicts: int, problem: str) -> None:
    one = Binding(two_nodes(claim()), claiming("c"), "n1")
    one.server.stored["default/c"] = claim()
    one.server.errors["finalizers"] = [ApiError(409, "Conflict", "the object moved on") for _ in range(conflicts)]
    one.reserve()
    said = await one.pre_bind()
    assert said == (f"add finalizer to claim default/c: {problem}" if problem else "")
    assert one.server.wrote.count("get") == min(conflicts, ATTEMPTS - 1)


async def test_what_others_did_to_the_claim_meanwhile_is_told() -> None:
    def going(of: ResourceClaim) -> ResourceClaim:
        return replace(
            of, metadata=replace(of.metadata, resource_version="200", deletion_timestamp="2026-01-01T00:00:00Z")
        )

    def elsewhere(of: ResourceClaim) -> ResourceClaim:
        return allocated(replace(of, metadata=replace(of.metadata, resource_version="200")), "n2", "d1")

    for meanwhile, said in ((going, "deleted"), (elsewhere, "allocated elsewhere")):
        one = Binding(two_nodes(claim()), claiming("c"), "n1")
        one.server.meanwhile = meanwhile
        one.reserve()
        assert await one.pre_bind() == f"claim default/c got {said} in the meantime"
    one = Binding(two_nodes(allocated(claim(), "n1", "d1")), claiming("c"), "n1")
    one.reserve()
    one.server.stored["default/c"] = claim("c", version="200")
    assert await one.pre_bind() == "claim default/c got deallocated elsewhere in the meantime"


def waiting_world(**fields: Any) -> Cluster:
    conditions = {"binding_conditions": ("Ready",), "binding_failure_conditions": ("Broken",)}
    return world(node("n1"), resource_slice("n1", device("d1", **(conditions | fields))), claim())


async def test_binding_waits_for_the_conditions_of_devices() -> None:
    one = Binding(waiting_world(), claiming("c"), "n1")
    looks: list[float] = []

    def look() -> None:
        looks.append(one.clock.seconds)
        if one.clock.seconds > 1:
            one.around.take(changed(told(one.held(), DeviceCondition(type="Ready", status="True")), version="999"))

    one.clock.on_pause = look
    one.reserve()
    assert await one.pre_bind() == ""
    assert len(looks) > 1
    [event] = one.client.events
    assert (event.reason, event.action, event.note) == (
        "BindingConditionsPending", "Scheduling", "waiting for binding conditions for device on node n1",
    )  # fmt: skip
    [wait] = one.waits
    assert (wait.drivers, wait.conditional, wait.seconds) == ([DRIVER], [DRIVER], one.clock.seconds)
    assert wait.outcome is DeviceWaitOutcome.SUCCESS


async def test_a_device_that_fails_or_is_late_ends_the_binding() -> None:
    one = Binding(waiting_world(), claiming("c"), "n1")
    broken = DeviceCondition(type="Broken", status="True", reason="Why", message="no power")
    one.clock.on_pause = lambda: one.around.take(changed(told(one.held(), broken), version="999"))
    one.reserve()
    assert await one.pre_bind() == 'device binding failed: claim=c, reason=Why, message="no power"'
    late = Binding(waiting_world(), claiming("c"), "n1", timeout=10)
    late.reserve()
    assert (await late.pre_bind()).startswith("device binding timeout")
    gone = Binding(waiting_world(), claiming("c"), "n1")
    gone.clock.on_pause = lambda: gone.around.drop(gone.held())
    gone.reserve()
    assert await gone.pre_bind() == 'could not find ResourceClaim "default/c"'
    outcomes = [wait.outcome.value for of in (one, late, gone) for wait in of.waits]
    assert outcomes == ["failure", "timeout", "error"]
    assert late.waits[0].seconds == late.clock.seconds >= 10


async def test_a_wait_for_devices_that_is_cancelled_is_told() -> None:
    one = Binding(waiting_world(), claiming("c"), "n1")
    one.reserve()
    task = asyncio.create_task(one.pre_bind())
    one.clock.on_pause = task.cancel
    await asyncio.wait((task,))
    assert task.cancelled()
    assert [wait.outcome for wait in one.waits] == [DeviceWaitOutcome.ERROR]


def extended(**requests: str) -> Pod:
    return pod(requests=requests or {GPU: "2"})


async def test_the_special_claim_is_made_written_and_told() -> None:
    around = two_nodes()
    around.take(gpu_class(extended_resource_name=GPU))
    one = Binding(around, extended(), "n1")
    assert one.reserve() is None
    assert await one.pre_bind() == ""
    assert one.server.wrote == ["create", "finalizers", "allocate", "tell"]
    made = one.held("p-extended-resources-x")
    assert devices_of(made.status.allocation) == ["n1/d1", "n1/d2"]
    assert [one.name for one in made.spec.devices.requests] == ["container-0-request-0"]
    assert one.server.told is not None
    assert one.requested == [True]
    assert one.server.told.resource_claim_name == "p-extended-resources-x"
    assert [one.request_name for one in one.server.told.request_mappings] == ["container-0-request-0"]
    assert one.around.resource_claims.in_flight == 0
    await one.give_up()
    assert one.server.wrote[-2:] == ["finalizers", "delete"]
    assert not one.around.devices.allocated.results_of("made")


async def test_a_node_with_a_device_plugin_needs_no_special_claim() -> None:
    around = world(node("n1", allocatable={GPU: "2"}), gpu_class(extended_resource_name=GPU))
    one = Binding(around, extended(), "n1")
    assert one.reserve() is None
    assert await one.pre_bind() == ""
    assert one.server.wrote == []


async def test_a_special_claim_that_cannot_be_made_fails_the_binding() -> None:
    around = two_nodes()
    around.take(gpu_class(extended_resource_name=GPU))
    one = Binding(around, extended(), "n1")
    one.server.errors["create"] = [ApiError(403, "Forbidden", "no")]
    one.reserve()
    assert await one.pre_bind() == "create claim for extended resources default/: no"
    assert one.requested == [False]
    await one.give_up()
    assert one.server.wrote == []
    one = Binding(around, extended(), "n1")
    one.server.errors["tell"] = [ApiError(500, "InternalError", "no")]
    one.reserve()
    assert await one.pre_bind() == "update pod default/p ExtendedResourceClaimStatus: no"
    await one.give_up()
    assert one.server.wrote[-1] == "delete"
    assert one.around.resource_claims.get("default/p-extended-resources-x") is None


async def test_a_special_claim_counts_until_the_watch_has_brought_it() -> None:
    around = two_nodes()
    around.take(gpu_class(extended_resource_name=GPU))
    one = Binding(around, extended(), "n1", watched=False)
    in_flight: list[int] = []

    def look() -> None:
        in_flight.append(one.around.resource_claims.in_flight)
        if one.clock.seconds > 1:
            for stored in one.server.stored.values():
                one.around.take(stored)

    one.clock.on_pause = look
    one.reserve()
    assert await one.pre_bind() == ""
    assert set(in_flight) == {1}
    assert one.around.resource_claims.in_flight == 0


async def test_share_ids_are_uuids_of_their_own() -> None:
    first, second = share_ids([claim("a")]), share_ids([claim("a", version="2")])
    made = {first(), first(), second()}
    assert len(made) == 3
    assert all(len(one) == 36 for one in made)
    assert share_ids([claim("a")])() in made


def test_a_share_id_costs_no_look_at_the_claims() -> None:
    work = []
    for count in (10, 1000):
        next_id = share_ids([claim(f"c{number}") for number in range(count)])
        work.append(calls(next_id))
    assert work[0] == work[1]


@pytest.mark.parametrize("watched", [True, False])
async def test_a_claim_that_a_pod_names_twice_takes_the_devices_of_one(watched: bool) -> None:
    around = world(node("n1"), resource_slice("n1", "d1", "d2"), claim("a"), claim("b"))
    entries = [PodResourceClaim(name=name, resource_claim_name="a") for name in ("x", "y")]
    twice = Binding(around, pod("twice", resource_claims=entries), "n1", watched=watched)
    other = Binding(around, claiming("b", name="other"), "n1", watched=watched)
    other.plugin, other.server.stored = twice.plugin, twice.server.stored
    assert twice.reserve() is None
    assert other.reserve() is None
    assert [*await asyncio.gather(other.pre_bind(), twice.pre_bind())] == ["", ""]
    stored = [twice.server.stored[f"default/{name}"] for name in "ab"]
    assert [devices_of(one.status.allocation) for one in stored] == [["n1/d1"], ["n1/d2"]]
    assert [[user.name for user in one.status.reserved_for] for one in stored] == [["twice"], ["other"]]


async def test_a_claim_that_is_made_anew_meanwhile_does_not_get_what_the_one_before_was_to_get() -> None:
    around = world(node("n1"), resource_slice("n1", "d1"), claim("a"))
    binding = Binding(around, claiming("a"), "n1")
    assert binding.reserve() is None
    made_anew = claim("a")
    made_anew = replace(made_anew, metadata=replace(made_anew.metadata, uid="new", resource_version="60"))

    def gone(_: ResourceClaim) -> ResourceClaim:
        around.drop(claim("a"))
        around.take(made_anew)
        return made_anew

    binding.server.meanwhile = gone
    assert await binding.pre_bind() == "claim default/a was deleted and recreated in the meantime"
    assert binding.server.stored["default/a"].status.allocation is None
    assert not around.devices.allocated.results_of("new")
    assert not around.resource_claims.in_flight


async def test_who_gives_up_a_claim_that_was_made_anew_takes_nothing_of_the_new_one() -> None:
    around = world(node("n1"), resource_slice("n1", "d1", "d2"), claim("a"), claim("b"), claim("c"))
    first = Binding(around, claiming("a", "b", name="first"), "n1", watched=False)
    assert first.reserve() is None
    around.drop(claim("b"))
    around.take(replace(claim("b"), metadata=replace(claim("b").metadata, uid="new", resource_version="60")))
    known = around.resource_claims.get("default/b")
    assert known is not None
    allocation = around.resource_claims.pending_allocation("a")
    around.resource_claims.assume(replace(known, status=replace(known.status, allocation=allocation)))
    await first.give_up()
    known = around.resource_claims.get("default/b")
    assert known is not None
    assert known.status.allocation == allocation


async def test_the_loop_has_its_turn_while_it_is_told_of_claims_that_are_given_back() -> None:
    names = [f"c{number}" for number in range(3 * TOLD_AT_ONCE)]
    one = Binding(
        world(node("n1"), resource_slice("n1", *(f"d{name}" for name in names)), *map(claim, names)),
        claiming(*names),
        "n1",
    )
    assert one.reserve() is None
    told: list[int] = []
    one.clock.on_pause = lambda: told.append(len(one.changes))
    await one.give_up()
    assert told == [TOLD_AT_ONCE, 2 * TOLD_AT_ONCE, 3 * TOLD_AT_ONCE]
