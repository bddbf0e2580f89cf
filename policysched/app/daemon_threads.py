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
    """An executor for file reads and host name lookups that runs each call in a new daemon thread.

    A file on a lost mount, a pipe or a resolver can hang forever, and other executors delay the exit until their
    threads end.
    """

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Call a function in a new thread."""
        made: Future[T] = Future()

        def work(given: list[Future[T]]) -> None:
            told = given.pop()
            if not told.set_running_or_notify_cancel():
                return
            try:
                told.set_result(fn(*args, **kwargs))
            except BaseException as error:  # the waiting caller receives the exception
                told.set_exception(error)
            finally:
                del told  # the exception refers to this frame; the cycle would wait for a rare garbage collection

        threading.Thread(target=work, args=([made],), name="waiting", daemon=True).start()
        return made


async def unless(stop: asyncio.Event, work: Coroutine[Any, Any, T]) -> T | None:
    """Return the result of a coroutine; if `stop` is set first, cancel the coroutine and return None.

    Reading a file and calling a credential plugin can hang.
    """
    doing, stopped = asyncio.create_task(work), asyncio.create_task(stop.wait())
    await asyncio.wait((doing, stopped), return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if not doing.done():
        doing.cancel()
        await asyncio.gather(doing, return_exceptions=True)
    return None if doing.cancelled() else doing.result()


class Threads:
    """Calls functions in threads for the running event loop, with a limit on concurrent calls.

    A cancelled caller leaves nothing behind in the queue. A call that has begun counts until it ends, even if no caller
    waits for it.

    Args:
        most: Largest number of concurrent calls; more wait.
    """

    def __init__(self, most: int) -> None:
        self._turns = asyncio.Semaphore(most)

    async def call(self, function: Callable[..., T], *given: Any) -> T:
        """Call a function in a thread, when the limit on concurrent calls permits, and return the result."""
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
            del made  # the exception refers to this frame, see above

    def _ended(self, made: asyncio.Future[T]) -> None:
        self._turns.release()
        if not made.cancelled():
            made.exception()  # marks the exception as retrieved; the caller may have been cancelled


def run_in_loop(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine in a new event loop whose threads are daemons."""

    async def run() -> None:
        asyncio.get_running_loop().set_default_executor(DaemonThreads())
        await work

    asyncio.run(run())
