"""Nothing is left of deleted pods, however they were deleted, and no pod is stuck.

`make test` sends a few thousand events, and simulates a minute of a small cluster. `POLICYSCHED_EVENTS=200000` sends
that many events; `POLICYSCHED_SECONDS=86400` simulates a day of a cluster of 5,000 nodes with a million events of pods.
"""

from __future__ import annotations

import gc
import logging
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from policysched.framework import AssumedPod, WaitingPod
from policysched.schedule.binding import Failure
from policysched.schedule.queue.in_flight import Flight, Occurrence
from policysched.schedule.queue.queued_pod import QueuedPod
from policysched.state.nominated.columns import Nomination
from tests.schedule.day import Day
from tests.schedule.soak import Soak

EVENTS = int(os.environ.get("POLICYSCHED_EVENTS", "4000"))
SECONDS = int(os.environ.get("POLICYSCHED_SECONDS", "60"))
LONG = SECONDS >= 3600
"""Whether the cluster is large; only then is the time of decisions checked."""
LATEST = 0.1
"""Largest processor time of a decision. Units: seconds."""
ROUNDS = 4
GROWTH = 16.0
"""Largest growth of the process in the second half, without cached pod classes, whose memory is limited. Units: MiB."""
PAGE = os.sysconf("SC_PAGE_SIZE")
HELD = (QueuedPod, Flight, Occurrence, Nomination, AssumedPod, WaitingPod, Failure)
"""Classes of objects that exist for one pod, and must be freed with it."""


def alive() -> Counter[str]:
    """Return how many objects of these classes exist in the process."""
    gc.collect()
    return Counter(type(one).__name__ for one in gc.get_objects() if isinstance(one, HELD))


def resident_mib() -> float:
    """Return the resident memory of the process. Units: MiB."""
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * PAGE / 2**20


@pytest.fixture(autouse=True)
def nothing_logged() -> Iterator[None]:
    """Disable logging, as captured records would keep objects alive."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


async def test_soak_leaves_no_pod_stuck_and_nothing_behind() -> None:
    before = alive()
    soak = Soak(1)
    memory = []
    for _ in range(ROUNDS):
        await soak.run(EVENTS // ROUNDS)
        attempts, kept = soak.scheduler.queue.in_flight
        assert attempts or not kept
        memory.append(resident_mib() - soak.scheduler.kept_bytes / 2**20)
    await soak.free_the_way()
    assert soak.stuck() == []
    soak.remove_everything()
    await soak.calm()
    assert soak.left() == {}
    assert alive() == before
    await soak.end()
    print(f"{EVENTS} events: {dict(soak.done)}; {dict(soak.server.counts)}; MiB: {memory}")  # noqa: T201 - with -rP
    assert memory[-1] - memory[1] < GROWTH


async def test_a_day_of_heartbeats_and_pods_leaves_nothing_behind() -> None:
    before = alive()
    day = Day(5000 if LONG else 60)
    memory = []
    for _ in range(ROUNDS):
        await day.pass_seconds(SECONDS // ROUNDS)
        memory.append(resident_mib() - day.scheduler.kept_bytes / 2**20)
    day.remove_everything()
    await day.calm()
    assert day.left() == {}
    assert alive() == before
    await day.end()
    print(f"{SECONDS} s: {day.numbers} pods; slowest decision {day.slowest:.3f} s; MiB: {memory}")  # noqa: T201 - with -rP
    assert memory[-1] - memory[1] < GROWTH
    assert not LONG or day.slowest < LATEST
