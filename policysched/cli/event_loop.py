"""Run a coroutine in an event loop to its end, or until SIGTERM or Ctrl-C.

Commands import it where they begin to work: asyncio takes longer to import than `--help` needs otherwise.
"""

from __future__ import annotations

import asyncio
import gc
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")


def wait_for(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a loop of its own and give its result.

    The result is kept out of the main task: where a loop ends, `signal.getsignal` writes an exception's text with the
    task in it, and a task shows its result, which may be a whole cluster.
    """
    made: list[T] = []

    async def run() -> None:
        made.append(await work)

    asyncio.run(run())
    return made[0]


def serve(work: Callable[[asyncio.Event], Coroutine[Any, Any, None]]) -> None:
    """Run a coroutine to its end; the event it gets is set on SIGTERM or SIGINT."""

    async def run() -> None:
        stop, loop = asyncio.Event(), asyncio.get_running_loop()
        loop.set_default_executor(DaemonThreads())
        for one in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(one, stop.set)
        await work(stop)

    wait_for(run())


class DaemonThreads(ThreadPoolExecutor):
    """What the loop leaves to threads: reads of files and names of hosts, each in a daemon of its own.

    A file on a mount that is gone, a pipe or a resolver may hang for ever; the end of the process waits for threads of
    other executors.
    """

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Call a function in a thread."""
        made: Future[T] = Future()

        def work() -> None:
            if not made.set_running_or_notify_cancel():
                return
            try:
                made.set_result(fn(*args, **kwargs))
            except BaseException as error:  # whoever waits gets it
                made.set_exception(error)

        threading.Thread(target=work, name="waiting", daemon=True).start()
        return made


@contextmanager
def uncollected() -> Iterator[None]:
    """Look for no garbage meanwhile: a cluster of many objects has none, and each look goes through all of them."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()
