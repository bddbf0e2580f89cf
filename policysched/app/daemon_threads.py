"""Daemon threads as the asyncio loop's executor: a hung file read or DNS lookup cannot block the exit.

`Threads` are so many of them.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


class DaemonThreads(ThreadPoolExecutor):
    """What the loop leaves to threads: reads of files and names of hosts, each in a daemon of its own.

    A file on a mount that is gone, a pipe or a resolver may hang for ever; the end of the process waits for threads of
    other executors.
    """

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Call a function in a thread."""
        made: Future[T] = Future()

        def work(given: list[Future[T]]) -> None:
            told = given.pop()
            if not told.set_running_or_notify_cancel():
                return
            try:
                told.set_result(fn(*args, **kwargs))
            except BaseException as error:  # whoever waits gets it
                told.set_exception(error)
            finally:
                del told  # an error holds this frame: both would be left to a garbage collection, and those are rare

        threading.Thread(target=work, args=([made],), name="waiting", daemon=True).start()
        return made


async def unless(stop: asyncio.Event, work: Coroutine[Any, Any, T]) -> T | None:
    """Return what work gives; None where it is told to stop before: a file, or a plugin for credentials, may hang."""
    doing, stopped = asyncio.create_task(work), asyncio.create_task(stop.wait())
    await asyncio.wait((doing, stopped), return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if not doing.done():
        doing.cancel()
        await asyncio.gather(doing, return_exceptions=True)
    return None if doing.cancelled() else doing.result()


class Threads:
    """Calls functions in threads of the running loop, so many at once.

    What waits for a thread is held by who asked alone: who gives up leaves nothing behind. What has begun is counted
    until it ends, whoever still waits for it.

    Args:
        most: How many calls there may be at once.
    """

    def __init__(self, most: int) -> None:
        self._turns = asyncio.Semaphore(most)

    async def call(self, function: Callable[..., T], *given: Any) -> T:
        """Call a function in its turn."""
        await self._turns.acquire()
        try:
            made = asyncio.get_running_loop().run_in_executor(None, function, *given)
        except BaseException:
            self._turns.release()
            raise
        made.add_done_callback(self._ended)
        try:
            await asyncio.wait((made,))
            return made.result()
        finally:
            del made  # whose error holds this frame, see above

    def _ended(self, made: asyncio.Future[T]) -> None:
        self._turns.release()
        if not made.cancelled():
            made.exception()  # whoever waits gets it; nobody may


def run_in_loop(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine to its end, in a loop of its own whose threads are daemons."""

    async def run() -> None:
        asyncio.get_running_loop().set_default_executor(DaemonThreads())
        await work

    asyncio.run(run())
