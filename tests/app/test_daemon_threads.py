"""Threads with loops of their own: what hangs in a thread of such a loop keeps no process from ending."""

import subprocess
import sys

import pytest

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
