"""Devices and reservations that are given back: until it is known what became of that the pod is not tried again."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from policysched.framework import ApiError
from policysched.framework.client import PATIENCE
from policysched.model.objects import ClaimMetadata, ResourceClaim
from policysched.plugins.dynamic_resources.claim_writes import LONGEST_ASKED, SLOWEST_POLL, deallocate
from tests.build import pod
from tests.plugins.dynamic_resources.binding import Binding
from tests.plugins.dynamic_resources.objects import allocated, changed, claim, claiming, names_of, two_nodes, user

LOST = ApiError(0, "", "connection lost")
BUSY = ApiError(503, "", "no")
NO = ApiError(403, "Forbidden", "no")
CONFLICT = ApiError(409, "Conflict", "the object has been modified")
P = pod("p")


def holding() -> tuple[Binding, ResourceClaim]:
    """A claim that a pod has and did not get to use; the watch tells nothing more of it."""
    held = allocated(claim(), "n1", "d1", users=[P])
    one = Binding(two_nodes(held), claiming("c", name="p"), "n1", watched=False)
    one.server.stored["default/c"] = held
    return one, held


def version(of: ResourceClaim, number: str) -> ClaimMetadata:
    return replace(of.metadata, resource_version=number)


async def give_back(one: Binding, held: ResourceClaim) -> str:
    try:
        await deallocate(held, one.around.resource_claims, one.handle)
    except ApiError as error:
        return error.message
    return ""


@pytest.mark.parametrize("errors", [[], [LOST], [BUSY, LOST, BUSY], [LOST, NO, NO, LOST]])
async def test_devices_are_given_back_whatever_answers_are_lost(errors: list[ApiError]) -> None:
    one, held = holding()
    one.server.errors["deallocate"] = [*errors]
    assert await give_back(one, held) == ""
    assert one.taken() == []
    assert one.held().status.allocation is None  # before the watch tells of it
    assert [change.old.status.allocation is not None for change in one.changes] == [True]


async def test_a_refusal_is_one() -> None:
    one, held = holding()
    one.server.errors["deallocate"] = [NO]
    assert await give_back(one, held) == "no"
    assert one.taken() == ["n1/d1"]


async def test_a_server_that_refuses_for_long_to_take_back_what_it_may_have_taken_back_is_not_asked_again() -> None:
    one, held = holding()
    one.server.errors["deallocate"] = [LOST, *[NO] * 200]
    assert await give_back(one, held) == "no"
    assert PATIENCE <= one.clock.seconds < PATIENCE + 2 * SLOWEST_POLL


async def test_a_conflict_is_looked_into_before_anything_counts_on_the_claim() -> None:
    one, held = holding()

    async def done(of: ResourceClaim) -> ResourceClaim:
        one.server._store(changed(of, allocation=None, reserved_for=()))
        raise CONFLICT

    one.server.deallocate = done  # type: ignore[method-assign]
    assert await give_back(one, held) == CONFLICT.message
    assert one.taken() == []
    assert one.held().status.allocation is None


async def test_a_reservation_that_was_taken_back_counts_no_more_before_the_watch_tells_of_it() -> None:
    one, _ = holding()
    assert one.reserve() is None
    await one.give_up()
    assert one.held().status.reserved_for == ()
    assert one.taken() == ["n1/d1"]


@pytest.mark.parametrize("errors", [[LOST], [BUSY, LOST, NO], [CONFLICT], [LOST, CONFLICT, LOST]])
async def test_a_reservation_is_taken_back_whatever_answers_are_lost(errors: list[ApiError]) -> None:
    one, held = holding()
    one.server.stored["default/c"] = changed(held, reserved_for=(user(P), user(pod("other"))))
    one.around.take(replace(one.server.stored["default/c"], metadata=version(held, "50")))
    assert one.reserve() is None
    one.server.errors["reserve"] = [*errors]
    await one.give_up()
    assert [who.name for who in one.server.stored["default/c"].status.reserved_for] == ["other"]
    assert [who.name for who in one.held().status.reserved_for] == ["other"]


async def test_a_late_write_of_a_reservation_that_was_taken_back_would_be_a_conflict() -> None:
    one, _ = holding()
    assert one.reserve() is None
    sent: list[ResourceClaim] = []
    reserve = one.server.reserve

    async def first_lost(of: ResourceClaim) -> ResourceClaim:
        sent.append(of)
        if len(sent) == 1:
            raise LOST
        return await reserve(of)

    one.server.reserve = first_lost  # type: ignore[method-assign]
    await one.give_up()
    assert len({of.metadata.resource_version for of in sent}) == 1
    assert len(sent) == 2


@pytest.mark.parametrize(
    "error", [BUSY, ApiError(429, "TooManyRequests", "busy"), LOST], ids=lambda one: str(one.status)
)
async def test_a_conflict_with_a_write_of_its_own_is_looked_into_until_the_server_tells(error: ApiError) -> None:
    one, _ = holding()
    assert one.reserve() is None
    reserve, sent = one.server.reserve, list[ResourceClaim]()

    async def done_and_lost(of: ResourceClaim) -> ResourceClaim:
        sent.append(of)
        if len(sent) > 1:
            raise CONFLICT
        await reserve(of)
        one.server.errors["get"] = [error] * 3
        raise LOST

    one.server.reserve = done_and_lost  # type: ignore[method-assign]
    await one.give_up()
    assert one.held().status.reserved_for == ()


async def test_what_is_never_answered_does_not_keep_the_pod_for_ever() -> None:
    one, held = holding()
    one.server.errors["deallocate"] = [BUSY] * 10_000
    assert await give_back(one, held) == "no"
    assert LONGEST_ASKED <= one.clock.seconds < LONGEST_ASKED + 2 * SLOWEST_POLL


async def test_a_reservation_that_others_took_back_is_written_no_more() -> None:
    one, held = holding()
    assert one.reserve() is None
    one.server.stored["default/c"] = changed(held, reserved_for=())
    one.server.errors["reserve"] = [CONFLICT]
    await one.give_up()
    assert one.server.wrote == ["get"]
    assert one.held().status.reserved_for == ()


async def test_what_others_allocated_while_a_claim_is_in_flight_is_taken_too() -> None:
    one = Binding(two_nodes(claim("a"), claim("b")), claiming("a", "b"), "n1")
    one.reserve()
    assert (one.taken("a"), one.taken("b")) == (["n1/d1"], ["n1/d2"])
    theirs = allocated(claim("b", version="50"), "n2", "d1", users=[pod("other")])
    one.around.take(theirs)
    assert one.taken("b") == ["n1/d2", "n2/d1"]
    other = Binding(one.around, claiming("q", name="q"), "n2")
    one.around.take(claim("q"))
    status = other.reserve()
    assert status is not None and status.message == "claim allocation not found for node"
    await one.give_up()
    assert (one.taken("a"), one.taken("b")) == ([], ["n2/d1"])


async def test_what_was_written_and_is_still_in_flight_is_taken_once() -> None:
    one = Binding(two_nodes(claim()), claiming("c"), "n1")
    one.reserve()
    (result,) = one.around.devices.allocated.results_of("uid-c")
    shared = replace(result, share_id="s")
    known = one.around.resource_claims.pending_allocation("uid-c")
    assert known is not None
    both = replace(known, devices=replace(known.devices, results=(result, shared)))
    one.around.take(changed(claim(version="50"), allocation=both, reserved_for=(user(P),)))
    assert names_of(one.around.devices.allocated.results_of("uid-c")) == ["n1/d1", "n1/d1"]
    assert one.around.resource_claims.end("uid-c")
    assert names_of(one.around.devices.allocated.results_of("uid-c")) == ["n1/d1", "n1/d1"]
    one.around.drop(claim())
    assert one.around.devices.allocated.results_of("uid-c") == ()
