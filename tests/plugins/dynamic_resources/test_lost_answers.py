"""Writes of claims whose answers are lost or are no verdict: devices count as taken until it is known, and for sure."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from policysched.framework import ApiError
from policysched.framework.client import PATIENCE
from policysched.model.objects import ResourceClaim
from policysched.plugins.dynamic_resources.claim_writes import FINALIZER, SLOWEST_POLL
from tests.build import pod
from tests.plugins.dynamic_resources.binding import Binding
from tests.plugins.dynamic_resources.objects import allocated, changed, claim, claiming, two_nodes, user

LOST = ApiError(0, "", "connection lost")
DOWN = ApiError(0, "", "connection refused")


async def test_a_write_that_was_done_and_never_answered_keeps_its_devices() -> None:
    one = Binding(two_nodes(claim()), claiming("c"), "n1", watched=False)
    held: list[list[str]] = []
    get = one.server.get

    async def lost(of: ResourceClaim) -> ResourceClaim:
        one.server._store(of)
        one.server.errors["get"] = [ApiError(0, "", "connection refused")] * 3
        raise ApiError(0, "", "connection lost")

    async def later(of: ResourceClaim) -> ResourceClaim:
        held.append(one.taken())
        return await get(of)

    one.server.allocate, one.server.get = lost, later  # type: ignore[method-assign]
    one.reserve()
    assert await one.pre_bind() == ""
    assert held == [["n1/d1"]] * 4
    assert one.around.resource_claims.in_flight == 0
    assert one.held().status.reserved_for == (user(one.assumed.pod),)
    assert one.taken() == ["n1/d1"]


async def test_a_write_that_was_not_done_frees_its_devices_once_that_is_known() -> None:
    one = Binding(two_nodes(claim()), claiming("c"), "n1", watched=False)
    one.server.stored["default/c"] = claim()
    one.server.errors |= {"allocate": [ApiError(503, "", "no")], "get": [ApiError(0, "", "connection refused")]}
    one.reserve()
    assert await one.pre_bind() == "add allocation and reservation to claim default/c: no"
    assert one.taken() == []
    assert one.server.stored["default/c"].metadata.finalizers == ()


def losing(one: Binding, *errors: ApiError, answer: ApiError = LOST, done: bool = True) -> list[list[str]]:
    """Lose the answer to an allocation, then give these errors to who asks; list what counts as taken meanwhile."""
    held: list[list[str]] = []
    get = one.server.get

    async def lost(of: ResourceClaim) -> ResourceClaim:
        if done:
            one.server._store(of)
        one.server.errors["get"] = [*errors]
        raise answer

    async def asked(of: ResourceClaim) -> ResourceClaim:
        held.append(one.taken())
        return await get(of)

    one.server.allocate, one.server.get = lost, asked  # type: ignore[method-assign]
    return held


@pytest.mark.parametrize(
    "error",
    [
        ApiError(401, "Unauthorized", "who are you"),
        ApiError(403, "Forbidden", "the roles are not known yet"),
        ApiError(429, "TooManyRequests", "busy"),
        ApiError(503, "", "down"),
        ApiError(404, "", "a page of a gateway"),
    ],
    ids=lambda error: str(error.status),
)
async def test_who_refuses_to_tell_has_not_told(error: ApiError) -> None:
    one = Binding(two_nodes(claim()), claiming("c"), "n1", watched=False)
    held = losing(one, DOWN, *[error] * 5)
    one.reserve()
    assert await one.pre_bind() == ""
    assert held == [["n1/d1"]] * 7
    assert one.taken() == ["n1/d1"]


async def test_a_server_that_is_away_for_long_is_waited_for() -> None:
    one = Binding(two_nodes(claim()), claiming("c"), "n1", watched=False)
    held = losing(one, *[DOWN] * 200)
    one.reserve()
    assert await one.pre_bind() == ""
    assert one.clock.seconds > 600
    assert held == [["n1/d1"]] * 201


async def test_a_server_that_refuses_to_tell_for_long_is_not() -> None:
    one = Binding(two_nodes(claim()), claiming("c"), "n1", watched=False)
    held = losing(one, *[DOWN] * 50, *[ApiError(403, "Forbidden", "no")] * 200)
    one.reserve()
    assert await one.pre_bind() == "add allocation and reservation to claim default/c: connection lost"
    assert len(held) == 50 + PATIENCE // SLOWEST_POLL
    assert one.taken() == []


@pytest.mark.parametrize("watched", [True, False])
async def test_a_write_that_was_sent_twice_is_no_conflict_with_others(
    watched: bool, caplog: pytest.LogCaptureFixture
) -> None:
    one = Binding(two_nodes(claim()), claiming("c"), "n1", watched=watched)
    held = losing(one, answer=ApiError(409, "Conflict", "the object has been modified"))
    one.reserve()
    assert await one.pre_bind() == ""
    assert not caplog.records
    assert held == ([] if watched else [["n1/d1"]])  # the watch tells it where it is faster
    assert one.taken() == ["n1/d1"]


async def test_what_others_allocated_meanwhile_counts_before_the_watch_tells_of_it() -> None:
    one = Binding(two_nodes(claim()), claiming("c"), "n1", watched=False)
    one.server.stored["default/c"] = claim()
    one.reserve()
    others = allocated(claim(), "n2", "d1", users=[pod("other")])
    one.server.meanwhile = lambda of: changed(
        replace(of, metadata=replace(of.metadata, resource_version="900")), allocation=others.status.allocation
    )
    assert "got allocated elsewhere" in await one.pre_bind()
    assert one.around.resource_claims.in_flight == 0
    assert one.taken() == ["n2/d1"]


@pytest.mark.parametrize("answer", [LOST, ApiError(504, "", "gateway timeout")], ids=["lost", "gateway"])
async def test_a_write_that_is_still_under_way_comes_too_late(answer: ApiError) -> None:
    one = Binding(two_nodes(claim()), claiming("c"), "n1", watched=False)
    sent: list[ResourceClaim] = []
    allocate = one.server.allocate

    async def slow(of: ResourceClaim) -> ResourceClaim:
        sent.append(of)
        raise answer

    one.server.allocate = slow  # type: ignore[method-assign]
    one.reserve()
    assert answer.message in await one.pre_bind()
    assert one.taken() == []
    with pytest.raises(ApiError, match="the object has been modified"):
        await allocate(sent[0])
    one.server.allocate = allocate  # type: ignore[method-assign]
    again = Binding(one.around, claiming("c"), "n1", watched=False)
    again.server.stored, again.server.version = one.server.stored, one.server.version
    assert again.reserve() is None
    assert await again.pre_bind() == ""
    assert again.server.stored["default/c"].metadata.finalizers == (FINALIZER,)


async def test_who_writes_while_it_is_asked_has_it_asked_again() -> None:
    one = Binding(two_nodes(claim()), claiming("c"), "n1", watched=False)
    held = losing(one, done=False)
    one.reserve()
    protect, writes = one.server.set_finalizers, list[str]()

    async def contended(of: ResourceClaim) -> ResourceClaim:
        writes.append("finalizers")
        if len(writes) == 2:  # the late write is carried out first
            one.server._store(changed(of, allocation=allocated(claim(), "n1", "d1").status.allocation,
                                      reserved_for=(user(one.assumed.pod),)))  # fmt: skip
        return await protect(of)

    one.server.set_finalizers = contended  # type: ignore[method-assign]
    assert await one.pre_bind() == ""
    assert held == [["n1/d1"]] * 2
    assert one.taken() == ["n1/d1"]
