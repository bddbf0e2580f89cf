"""Runs a coroutine in an event loop to its end, or until SIGTERM or Ctrl-C."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from policysched.app.daemon_threads import DaemonThreads

T = TypeVar("T")


def wait_for(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a new event loop and return its result.

    The result is not the result of the main task: at the end of a loop, `signal.getsignal` formats an exception with
    the task and its result, which may be a whole cluster.
    """
    made: list[T] = []

    async def run() -> None:
        made.append(await work)

    asyncio.run(run())
    return made[0]


def serve(work: Callable[[asyncio.Event], Coroutine[Any, Any, None]]) -> None:
    """Run a coroutine to its end; pass it an event that SIGTERM and SIGINT set."""

    async def run() -> None:
        stop, loop = asyncio.Event(), asyncio.get_running_loop()
        loop.set_default_executor(DaemonThreads())
        for one in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(one, stop.set)
        await work(stop)

    wait_for(run())
