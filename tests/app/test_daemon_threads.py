"""Threads with loops of their own: what hangs in a thread of such a loop keeps no process from ending.

Of what is left to threads nothing waits there that nobody waits for.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import subprocess
import sys
import threading
import weakref

import pytest

from policysched.app.daemon_threads import DaemonThreads, Threads

HANGING = """
import asyncio, random, threading

begun = threading.Event()

async def hang():
    await asyncio.get_running_loop().run_in_executor(None, lambda: (begun.set(), threading.Event().wait()))
"""
PORT = """
from policysched.app.serving.thread import in_thread

async def main():
    async with in_thread("port", hang):
        assert await asyncio.to_thread(begun.wait, 60)

asyncio.run(main())
"""
ELECTION = """
from prometheus_client import CollectorRegistry
from policysched.app.clock import SystemClock
from policysched.app.configuration.model import LeaderElection
from policysched.app.running.leadership import ElectionThread, Leadership
from policysched.kube.transport import Pacing

async def main():
    around = ElectionThread(hang, SystemClock(), Pacing(random.random), "policysched")
    leadership = Leadership(LeaderElection(), around, CollectorRegistry())
    acquiring = asyncio.create_task(leadership.acquire())
    assert await asyncio.to_thread(begun.wait, 60)
    acquiring.cancel()
    await leadership.stop()

asyncio.run(main())
"""


@pytest.mark.parametrize("thread", [PORT, ELECTION], ids=["secure port", "leader election"])
def test_end_waits_for_no_thread_of_a_threads_loop(thread: str) -> None:
    subprocess.run([sys.executable, "-c", HANGING + thread], check=True, timeout=120)


class Given:
    """What a thread works on."""


async def test_calls_of_those_who_gave_up_leave_nothing_behind_but_the_one_that_began() -> None:
    threads, begun, release = Threads(1), threading.Event(), threading.Event()
    worked: list[int] = []

    def work(_: Given) -> None:
        worked.append(1)
        begun.set()
        assert release.wait(60)

    async def give_up(given: Given) -> weakref.ref[Given]:
        asking = asyncio.create_task(threads.call(work, given))
        await asyncio.to_thread(begun.wait, 60)
        await asyncio.sleep(0)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        return weakref.ref(given)

    kept = [await give_up(Given()) for _ in range(20)]
    gc.collect()
    assert sum(one() is not None for one in kept) <= 2, "the one that began, and at most the one just cancelled"
    assert len(worked) == 1
    waiting = asyncio.create_task(threads.call(work, Given()))
    release.set()
    await waiting
    assert len(worked) == 2


async def test_what_a_call_raises_is_told_to_who_waits() -> None:
    threads = Threads(1)
    for _ in range(3):
        with pytest.raises(ValueError, match="invalid literal"):
            await threads.call(int, "x")
    assert await threads.call(int, "7") == 7


async def test_what_a_failed_call_worked_on_is_no_work_for_the_garbage_collector() -> None:
    asyncio.get_running_loop().set_default_executor(DaemonThreads())
    threads, kept = Threads(1), []

    def work() -> None:
        given = Given()
        kept.append(weakref.ref(given))
        raise ValueError(str(given))

    async def fail() -> None:
        with contextlib.suppress(ValueError):
            await threads.call(work)

    gc.collect()
    gc.disable()
    try:
        for _ in range(5):
            await asyncio.create_task(fail())
        async with asyncio.timeout(60):
            while any(one() is not None for one in kept):
                await asyncio.sleep(0.01)
    finally:
        gc.enable()
    assert len(kept) == 5
