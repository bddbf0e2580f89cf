"""The steps of a single candidate.

Source of the table: k8s.io/client-go/tools/leaderelection/leaderelection_test.go (testTryAcquireOrRenew, release).
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from itertools import pairwise

import pytest

from policysched.framework import ApiError
from policysched.kube.election.elector import ElectionTiming, Elector
from policysched.kube.election.lease import MOST, LeaseRecord
from tests.kube.election.simulated import Fault, LeaseServer, RemoteLock, SkewedClock, candidate, simulate

NEVER = 10_000.0


def held(holder: str, duration: int = 10, transitions: int = 1) -> LeaseServer:
    return LeaseServer(LeaseRecord(holder, duration, "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z", transitions), 7)


async def acquired(elector: Elector, seconds: float) -> bool:
    """Return whether a candidate becomes leader within this time."""
    try:
        async with asyncio.timeout(seconds):
            await elector.acquire()
    except TimeoutError:
        return False
    return True


@pytest.mark.parametrize(
    ("server", "seconds", "leads", "transitions", "log"),
    [
        pytest.param(LeaseServer(), 1, True, 0, ["get", "create"], id="acquire from no object"),
        pytest.param(held("another", duration=0), 1, True, 2, ["get", "update"], id="acquire from an expired one"),
        pytest.param(held("", duration=0), 1, True, 2, ["get", "update"], id="acquire from an unled object"),
        pytest.param(held(""), 1, True, 2, ["get", "update"], id="acquire from a released one at once"),
        pytest.param(held("another"), 1, False, 1, ["get"], id="don't acquire from a led, acked object"),
        pytest.param(held("me"), 1, True, 1, ["get", "update"], id="renew an already acquired object"),
        pytest.param(held("another"), 15, True, 2, [], id="acquire once its duration has passed unchanged"),
        pytest.param(held("another", duration=300), 60, False, 1, [], id="the holder's own duration counts"),
        pytest.param(held("another", duration=-9), 1, True, 2, ["get", "update"], id="a duration below 0 is over"),
        pytest.param(held("", transitions=MOST), 1, True, MOST, [], id="transitions stay what a Lease can have"),
    ],
)
def test_candidate_takes_the_lease_when_it_may(
    server: LeaseServer, seconds: float, leads: bool, transitions: int, log: list[str]
) -> None:
    async def run() -> None:
        elector, _ = candidate(server, "me")
        assert await acquired(elector, seconds) is leads
        assert elector.leads is leads

    simulate(run())
    assert server.record is not None
    assert (server.record.holder == "me") is leads
    assert server.record.transitions == transitions
    assert server.log[: len(log)] == log


def test_first_holder_writes_what_kubectl_shows() -> None:
    server = LeaseServer()

    async def run() -> None:
        elector, _ = candidate(server, "me")
        await elector.acquire()

    simulate(run())
    at = "2026-01-02T00:00:00.010000Z"
    assert server.record == LeaseRecord("me", 15, at, at, 0)


def test_renewal_moves_the_renew_time_alone_and_takes_one_request() -> None:
    server = held("another", duration=0)

    async def run() -> None:
        elector, _ = candidate(server, "me")
        await elector.acquire()
        first = server.record
        assert first is not None
        server.log.clear()
        holding = asyncio.ensure_future(elector.hold())
        await asyncio.sleep(7)
        assert server.log == ["update"] * 4
        assert server.record is not None
        assert server.record.renew_time > first.renew_time
        assert replace(server.record, renew_time=first.renew_time) == first
        holding.cancel()

    simulate(run())


def test_attempts_are_a_retry_period_apart_and_up_to_that_and_six_fifths_more() -> None:
    times = []

    async def run() -> None:
        server = held("another", duration=300)
        elector, lock = candidate(server, "me", seed=3)

        def asked() -> tuple[Fault, float, float]:
            times.append(asyncio.get_running_loop().time())
            return Fault.NONE, 0.0, 0.0

        lock.faults = asked
        await acquired(elector, 200)

    simulate(run())
    pauses = [after - before for before, after in pairwise(times)]
    assert min(pauses) >= 2
    assert max(pauses) <= 2 + 1.2 * 2
    assert max(pauses) - min(pauses) > 1.5


def test_change_of_another_lease_holder_is_judged_by_local_time_alone() -> None:
    """The clock of the other holder is years off; only changes of its record count."""

    async def run() -> None:
        server = LeaseServer()
        other, _ = candidate(server, "other", clock=SkewedClock(offset=-1e8))
        await other.acquire()
        holding = asyncio.ensure_future(other.hold())
        elector, _ = candidate(server, "me")
        assert not await acquired(elector, 100)
        holding.cancel()
        stopped = asyncio.get_running_loop().time()
        assert await acquired(elector, 30)
        assert 10 <= asyncio.get_running_loop().time() - stopped <= 15 + 4.4

    simulate(run())


def lost(lock: RemoteLock) -> None:
    lock.faults = lambda: (Fault.LOST, 0.01, 0.0)


@pytest.mark.parametrize("fault", [Fault.LOST, Fault.REFUSED, Fault.SILENT])
def test_leader_gives_up_after_the_renew_deadline(fault: Fault) -> None:
    async def run() -> None:
        server = LeaseServer()
        elector, lock = candidate(server, "me")
        await elector.acquire()
        holding = asyncio.ensure_future(elector.hold())
        await asyncio.sleep(20.5)
        lock.faults = lambda: (fault, 0.01, 0.0)
        began = asyncio.get_running_loop().time()
        why = await holding
        assert 8 <= asyncio.get_running_loop().time() - began <= 12
        assert why.startswith("lease kube-system/lease was not renewed within 10 s: ")

    simulate(run())


def test_leader_outlives_faults_that_are_shorter() -> None:
    async def run() -> None:
        server = LeaseServer()
        elector, lock = candidate(server, "me")
        await elector.acquire()
        holding = asyncio.ensure_future(elector.hold())
        for _ in range(5):
            lost(lock)
            await asyncio.sleep(7)
            lock.faults = lambda: (Fault.NONE, 0.01, 0.01)
            await asyncio.sleep(7)
        assert not holding.done()
        holding.cancel()

    simulate(run())


def test_slow_answers_bring_the_deadline_no_nearer_to_the_leases_end() -> None:
    """Responses to renewals take 4.9 s: the deadline counts from when they were sent."""

    async def run() -> None:
        server = LeaseServer()
        elector, lock = candidate(server, "me")
        await elector.acquire()
        lock.faults = lambda: (Fault.NONE, 0.0, 4.9)
        holding = asyncio.ensure_future(elector.hold())
        await asyncio.sleep(30)
        versions, sent = server.version, asyncio.get_running_loop().time()
        while server.version == versions:
            sent = asyncio.get_running_loop().time()
            await asyncio.sleep(0.01)
        lost(lock)
        await holding
        assert asyncio.get_running_loop().time() - sent <= 12.1

    simulate(run())


def test_leader_stops_at_once_when_somebody_else_holds_the_lease() -> None:
    async def run() -> None:
        server = LeaseServer()
        elector, _ = candidate(server, "me")
        await elector.acquire()
        holding = asyncio.ensure_future(elector.hold())
        await asyncio.sleep(3)
        server.record, server.version = LeaseRecord("thief", 15, "t", "t", 1), server.version + 1
        began = asyncio.get_running_loop().time()
        assert await holding == "lease kube-system/lease is held by thief"
        assert asyncio.get_running_loop().time() - began < 2.1
        assert server.record.holder == "thief"

    simulate(run())


def delete_lease(server: LeaseServer) -> None:
    server.record = None


def test_deleted_lease_is_made_again_by_its_leader() -> None:
    async def run() -> None:
        server = LeaseServer()
        elector, _ = candidate(server, "me")
        await elector.acquire()
        holding = asyncio.ensure_future(elector.hold())
        await asyncio.sleep(3)
        delete_lease(server)
        await asyncio.sleep(3)
        assert server.record is not None
        assert not holding.done()
        holding.cancel()

    simulate(run())


def test_release_lets_another_candidate_in_at_its_next_look() -> None:
    async def run() -> None:
        server = held("gone", duration=0, transitions=4)
        elector, _ = candidate(server, "me")
        await elector.acquire()
        other, _ = candidate(server, "other")
        waiting = asyncio.ensure_future(other.acquire())
        await asyncio.sleep(1)
        await elector.release()
        assert not elector.leads
        assert server.record is not None
        assert (server.record.holder, server.record.duration_seconds, server.record.transitions) == ("", 1, 5)
        assert server.record.acquire_time == server.record.renew_time
        async with asyncio.timeout(4.5):
            await waiting
        assert server.record.transitions == 6

    simulate(run())


def test_release_leaves_a_lease_alone_that_is_not_held() -> None:
    async def run() -> None:
        server = LeaseServer()
        elector, _ = candidate(server, "me")
        await elector.release()
        assert server.log == []
        await elector.acquire()
        thief = LeaseRecord("thief", 15, "t", "t", 1)
        server.record = thief
        await elector.release()
        assert server.record == thief

    simulate(run())


def test_release_against_a_failing_server_says_so() -> None:
    async def run() -> None:
        elector, lock = candidate(LeaseServer(), "me")
        await elector.acquire()
        lost(lock)
        with pytest.raises(ApiError, match="connection refused"):
            await elector.release()

    simulate(run())


def test_write_whose_answer_was_lost_makes_the_leader_all_the_same() -> None:
    async def run() -> None:
        server = LeaseServer()
        elector, lock = candidate(server, "me")
        fates = iter([Fault.NONE, Fault.UNANSWERED])
        lock.faults = lambda: (next(fates, Fault.NONE), 0.01, 0.01)
        await elector.acquire()
        assert server.record is not None
        assert server.record.transitions == 0
        assert server.log == ["get", "create", "get", "update"]

    simulate(run())


def test_log_says_once_what_is_in_the_way_and_who_leads(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "policysched")

    async def run() -> None:
        server = held("another", duration=300)
        elector, lock = candidate(server, "me")
        waiting = asyncio.ensure_future(elector.acquire())
        await asyncio.sleep(20)
        lost(lock)
        await asyncio.sleep(20)
        lock.faults = lambda: (Fault.NONE, 0.0, 0.0)
        await asyncio.sleep(20)
        server.record = LeaseRecord()
        await waiting

    simulate(run())
    assert [record.getMessage() for record in caplog.records] == [
        "attempting to acquire leader lease kube-system/lease",
        "lease kube-system/lease is held by another; waiting for it",
        "lease kube-system/lease cannot be read or written, retrying: connection refused; "
        "this process schedules nothing until it holds the lease",
        "lease kube-system/lease can be read and written again",
        "successfully acquired lease kube-system/lease as me",
    ]


def test_lease_is_overdue_where_a_leader_should_have_ended_long_ago() -> None:
    async def run() -> None:
        elector, _ = candidate(LeaseServer(), "me")
        assert not elector.is_overdue(20)
        await elector.acquire()
        await asyncio.sleep(34.9)
        assert not elector.is_overdue(20)
        await asyncio.sleep(0.2)
        assert elector.is_overdue(20)

    simulate(run())


@pytest.mark.parametrize(
    ("timing", "fault"),
    [
        (ElectionTiming(), None),
        (ElectionTiming(10, 10, 2), "leaseDuration must be greater than renewDeadline"),
        (ElectionTiming(15, 10, 9), "renewDeadline must be greater than retryPeriod*JitterFactor"),
    ],
)
def test_timing_that_could_not_work_is_refused_in_client_gos_words(timing: ElectionTiming, fault: str | None) -> None:
    assert list(timing.faults()) == ([fault] if fault else [])


def test_candidate_waits_for_a_lease_that_was_deleted_as_for_one_that_is_there() -> None:
    server = held("another", duration=10)

    async def run() -> None:
        elector, _ = candidate(server, "me")
        assert not await acquired(elector, 3)
        server.record = None
        assert not await acquired(elector, 6)
        assert server.record is None
        assert await acquired(elector, 10)

    simulate(run())


def test_candidate_waits_for_a_holder_that_was_taken_out_but_not_for_one_that_gave_the_lease_back() -> None:
    for given_back in (False, True):
        server = held("another", duration=10)

        async def run(server: LeaseServer = server, given_back: bool = given_back) -> None:
            elector, _ = candidate(server, "me")
            assert not await acquired(elector, 3)
            assert server.record is not None
            if given_back:
                now = server.record.renew_time
                server.record = replace(server.record, holder="", duration_seconds=1, acquire_time=now)
            else:
                server.record = replace(server.record, holder="")
                assert not await acquired(elector, 6)
            assert await acquired(elector, 4)

        simulate(run())


def test_leader_whom_others_took_out_of_the_lease_takes_it_again() -> None:
    async def run() -> None:
        server = LeaseServer()
        elector, lock = candidate(server, "me")
        await elector.acquire()
        holding = asyncio.ensure_future(elector.hold())
        for record in (replace(server.record or LeaseRecord(), holder=""), LeaseRecord()):
            server.record, server.version = record, server.version + 1
            lost(lock)  # one write fails as well
            await asyncio.sleep(3)
            lock.faults = lambda: (Fault.NONE, 0.01, 0.01)
            await asyncio.sleep(4)
            assert not holding.done()
            assert server.record.holder == "me"
        holding.cancel()

    simulate(run())


def test_candidate_waits_where_a_lease_was_emptied() -> None:
    server = held("another", duration=10)

    async def run() -> None:
        elector, _ = candidate(server, "me")
        assert not await acquired(elector, 3)
        server.record = LeaseRecord()
        assert not await acquired(elector, 6)
        assert await acquired(elector, 4)

    simulate(run())


@pytest.mark.parametrize("duration", [1, 0])
def test_candidate_waits_for_a_holder_in_whose_place_others_wrote_another_one(duration: int) -> None:
    server = held("another", duration=10)

    async def run() -> None:
        elector, _ = candidate(server, "me")
        assert not await acquired(elector, 3)
        assert server.record is not None
        server.record = replace(server.record, holder="somebody", duration_seconds=duration)
        assert not await acquired(elector, 6)
        assert await acquired(elector, 6)

    simulate(run())


def test_candidate_goes_by_the_longest_duration_that_a_holder_was_seen_to_have() -> None:
    server = held("another", duration=10)

    async def run() -> None:
        elector, _ = candidate(server, "me")
        assert not await acquired(elector, 3)
        assert server.record is not None
        server.record = replace(server.record, duration_seconds=1)
        assert not await acquired(elector, 9)
        assert await acquired(elector, 10)

    simulate(run())


def test_leader_may_not_act_once_the_lease_has_run_out_by_its_clock() -> None:
    server = held("", duration=0)

    async def run() -> None:
        elector, _ = candidate(server, "me")
        assert not elector.may_act()
        await elector.acquire()
        assert elector.may_act()
        await asyncio.sleep(14.9)
        assert elector.may_act()
        await asyncio.sleep(0.2)
        assert elector.leads
        assert not elector.may_act()

    simulate(run())


@pytest.mark.parametrize("how", ["renewed", "corrected", "deleted"])
def test_duration_that_somebody_wrote_longer_is_over_with_the_next_write(how: str) -> None:
    server = held("another", duration=15)

    async def run() -> None:
        elector, _ = candidate(server, "me")
        assert not await acquired(elector, 3)
        assert server.record is not None
        server.record = replace(server.record, duration_seconds=2**31 - 1)
        assert not await acquired(elector, 40)
        if how == "deleted":
            server.record = None
        else:
            changed = replace(server.record, duration_seconds=15)
            server.record = replace(changed, renew_time="2026-01-01T00:01:00Z") if how == "renewed" else changed
        assert not await acquired(elector, 12)
        assert await acquired(elector, 10)

    simulate(run())


def test_renewal_whose_answer_was_lost_counts_from_when_it_was_sent() -> None:
    server = LeaseServer()

    async def run() -> None:
        clock = asyncio.get_running_loop().time
        leader, lock = candidate(server, "a")
        standby, _ = candidate(server, "b", seed=3)
        await leader.acquire()
        acquiring = asyncio.create_task(standby.acquire())
        await asyncio.sleep(2)
        fates = iter([(Fault.UNANSWERED, 0.01, 4.9), (Fault.NONE, 0.01, 4.0)])
        lock.faults = lambda: next(fates, (Fault.SILENT, 0, 0))
        renewing = asyncio.create_task(leader._try())  # the renewal waits for a response in the middle
        took_over = False
        while clock() < 40:
            await asyncio.sleep(0.1)
            took_over |= standby.may_act()
            assert not (leader.may_act() and standby.may_act())
        assert took_over
        for task in (acquiring, renewing):
            task.cancel()

    simulate(run())


def test_lease_of_less_than_a_second_is_written_to_last_one() -> None:
    server = LeaseServer()

    async def run() -> None:
        elector, lock = candidate(server, "me")
        timing = ElectionTiming(lease_duration=0.9, renew_deadline=0.5, retry_period=0.1)
        brief = Elector(lock, "me", timing, elector._clock, elector._pacing)
        await brief.acquire()
        assert brief.may_act()

    simulate(run())
    assert server.record is not None
    assert server.record.duration_seconds == 1
