"""`WorkerThreads`: threads in which plugins may wait without anybody waiting for them.

A thread that hangs in a plugin must not keep the process from ending, so these are daemons, which the threads of
`concurrent.futures` are not.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Final

MOST: Final = 64
"""How many threads there may be; what comes beyond waits for one."""
Job = Callable[[], None]


class WorkerThreads:
    """Threads that are started as they are needed, and kept."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._jobs: queue.SimpleQueue[Job] = queue.SimpleQueue()
        self._count = self._busy = 0

    async def run(self, work: Callable[[], Any]) -> Any:
        """Call a function in a thread and wait for what it returns, or raises.

        Called from one loop. Whatever it raises comes out as it is, but what would end the thread's process, or be
        taken for the end of the task that waits: of that a RuntimeError is made.
        """
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()

        def job() -> None:
            try:
                done, value = True, work()
            except BaseException as error:
                done, value = False, plain(error)
            with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(partial(self._settle, answer, value, done=done))

        self._busy += 1
        if self._busy > self._count and self._count < self._most:
            self._count += 1
            threading.Thread(target=self._serve, name="plugin", daemon=True).start()
        self._jobs.put(job)
        return await answer

    def _settle(self, answer: asyncio.Future[Any], value: Any, *, done: bool) -> None:
        self._busy -= 1
        if answer.done():
            return
        if done:
            answer.set_result(value)
        else:
            answer.set_exception(value)

    def _serve(self) -> None:
        while True:
            self._jobs.get()()


def plain(error: BaseException) -> Exception:
    """Return an exception as one that is an error of the plugin and nothing more."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    made = RuntimeError(f"it raised {error!r}")
    made.__cause__ = error
    return made
