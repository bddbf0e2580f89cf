"""The thread that keeps the lease, next to a loop that works, hangs or has gone."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from policysched.app.clock import SystemClock
from policysched.app.configuration.election import (
    NO_ELECTION,
    election_timing,
    election_without_file,
    lease_of,
    read_flags,
)
from policysched.app.configuration.model import LeaderElection
from policysched.app.running.leadership import OVERDUE, ElectionThread, Leadership
from policysched.errors import ConnectionProblemError, LeadershipLostError, UsageError
from policysched.kube.connection import Connection
from policysched.kube.transport import Pacing
from policysched.sandbox import Sandbox

QUICK = LeaderElection(lease_duration="3s", renew_deadline="2s", retry_period="50ms", resource_name="ours")
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/ours"
STATUS = "leader_election_master_status"


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    made = Sandbox(lambda: datetime.now(UTC), Random(7))
    await made.start()
    yield made
    await made.stop()


class Part:
    """One process's part in the election, with what it did to the process."""

    def __init__(self, url: str, election: LeaderElection = QUICK, failures: int = 0) -> None:
        self.exits: list[int] = []
        self.ended = threading.Event()
        self.registry = CollectorRegistry()
        self._url, self._failures = url, failures
        around = ElectionThread(self._connect, SystemClock(), Pacing(Random(7).random), "policysched", self._end)
        self.leadership = Leadership(election, around, self.registry)

    async def _connect(self) -> Connection:
        self._failures -= 1
        if self._failures >= 0:
            raise ConnectionProblemError("the exec plugin failed")
        return Connection(self._url, SystemClock())

    def _end(self, code: int) -> None:
        self.exits.append(code)
        self.ended.set()

    @property
    def status(self) -> float | None:
        return self.registry.get_sample_value(STATUS, {"name": "ours"})


async def test_leader_knows_that_it_leads_and_gives_the_lease_up(sandbox: Sandbox) -> None:
    part = Part(sandbox.url)
    assert part.status == 0
    await part.leadership.acquire()
    assert part.status == 1
    assert part.leadership.lease == "kube-system/ours"
    assert part.leadership.problem() == ""
    await part.leadership.stop()
    assert part.status == 0
    other = Part(sandbox.url, LeaderElection(resource_name="ours"))
    await asyncio.wait_for(other.leadership.acquire(), 10)
    await other.leadership.stop()
    assert part.exits == other.exits == []


async def test_lost_lease_is_told_to_the_loop_before_others_may_act(sandbox: Sandbox) -> None:
    part = Part(sandbox.url)
    await part.leadership.acquire()
    lost = asyncio.ensure_future(part.leadership.lost())
    await sandbox.stop()
    with pytest.raises(LeadershipLostError, match=r"^leaderelection lost: lease kube-system/ours was not renewed"):
        await asyncio.wait_for(lost, 20)
    assert part.status == 0
    await part.leadership.stop()
    assert part.exits == []


async def test_process_ends_where_the_loop_hangs_and_the_lease_is_lost(
    sandbox: Sandbox, caplog: pytest.LogCaptureFixture
) -> None:
    part = Part(sandbox.url)
    await part.leadership.acquire()
    await sandbox.stop()
    assert await asyncio.get_running_loop().run_in_executor(None, lambda: True)
    assert part.ended.wait(20), "nothing of this loop runs meanwhile"
    assert part.exits == [1]
    assert [one.levelno for one in caplog.records if "leaderelection lost" in one.getMessage()] == [
        logging.ERROR,
        logging.CRITICAL,
    ]
    await part.leadership.stop()


async def test_stop_before_the_lease_is_held_leaves_it_alone(sandbox: Sandbox) -> None:
    holding, waiting, idle = Part(sandbox.url), Part(sandbox.url), Part(sandbox.url)
    await holding.leadership.acquire()
    acquiring = asyncio.ensure_future(waiting.leadership.acquire())
    await asyncio.sleep(0.1)
    await waiting.leadership.stop()
    await idle.leadership.stop()
    assert not acquiring.done()
    acquiring.cancel()
    assert not holding.leadership.problem()
    await holding.leadership.stop()


async def test_connection_that_cannot_be_opened_is_tried_again(
    sandbox: Sandbox, caplog: pytest.LogCaptureFixture
) -> None:
    part = Part(sandbox.url, failures=2)
    await asyncio.wait_for(part.leadership.acquire(), 20)
    await part.leadership.stop()
    assert [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING] == [
        "the leader election cannot connect to the API server; retrying: the exec plugin failed"
    ] * 2


async def test_end_does_not_wait_for_a_server_that_is_gone(sandbox: Sandbox, caplog: pytest.LogCaptureFixture) -> None:
    part = Part(sandbox.url, LeaderElection(resource_name="ours"))
    await part.leadership.acquire()
    await sandbox.stop()
    await part.leadership.stop()
    assert "lease kube-system/ours could not be released; a standby has to wait until it expires: " in caplog.text


async def test_problem_says_that_the_lease_should_have_been_renewed(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = Part(sandbox.url)
    assert part.leadership.problem() == ""
    await part.leadership.acquire()
    clock = SystemClock.monotonic
    monkeypatch.setattr(SystemClock, "monotonic", staticmethod(lambda: clock() + OVERDUE + 4))
    problem = part.leadership.problem()
    monkeypatch.undo()
    assert problem == "failed election to renew leadership on lease ours"
    await part.leadership.stop()


def test_flags_that_are_absent_say_nothing() -> None:
    assert read_flags({"leader_elect": None, "lease_duration": None}) == {}
    assert read_flags({"leader_elect": False, "lease_duration": "20s"}) == {
        "leader_elect": False,
        "lease_duration": "20s",
    }


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        ({"lease_duration": "15"}, '--leader-elect-lease-duration "15" is not a duration; write it as 15s or 1m30s'),
        ({"retry_period": "-2s"}, '--leader-elect-retry-period "-2s" is not greater than 0'),
        ({"resource_name": ""}, "--leader-elect-resource-name: name is empty"),
    ],
)
def test_flag_that_cannot_be_used_is_named(flags: dict[str, Any], problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_flags(flags)
    assert str(caught.value) == problem


def test_election_without_a_file_has_a_lease_of_its_own_and_kube_schedulers_durations() -> None:
    made = election_without_file({})
    assert made == LeaderElection(resource_name="policysched")
    assert made.leader_elect
    assert lease_of(made) == "kube-system/policysched"
    timing = election_timing(made)
    assert (timing.lease_duration, timing.renew_deadline, timing.retry_period) == (15, 10, 2)
    assert not election_without_file(NO_ELECTION).leader_elect


def test_election_that_does_not_take_place_is_not_checked() -> None:
    flags = {"renew_deadline": "1h"}
    assert election_without_file({**flags, **NO_ELECTION}).renew_deadline == "1h0m0s"
    with pytest.raises(UsageError, match=r"leaderElection\.leaseDuration: 15s is not greater than renewDeadline"):
        election_without_file(flags)
