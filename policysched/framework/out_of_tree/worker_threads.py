"""Worker threads of an out-of-tree plugin: if a plugin hangs, other plugins and the exit of the process do not wait.

The threads of `concurrent.futures` are no daemons, so a hanging plugin would block the end of the process. The threads
end when their `WorkerThreads` is no longer referenced, for example after a reload of the configuration.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import queue
import threading
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeAlias

log = logging.getLogger(__name__)
MOST: Final = 64
"""Maximum number of worker threads of a plugin; further calls wait for a free thread."""
Job = Callable[[], None]
_Jobs: TypeAlias = "queue.SimpleQueue[Job | None]"
"""Queue of the calls that wait for a worker thread; a thread that takes None ends."""


class WorkerThreads:
    """The worker threads of one plugin, which are started when calls need them."""

    def __init__(self, plugin: str = "", most: int = MOST) -> None:
        self._plugin, self._most = plugin, most
        self._jobs: _Jobs = queue.SimpleQueue()
        self._count = self._busy = 0
        self._is_told = False
        weakref.finalize(self, self._jobs.put, None).atexit = False

    async def run(self, work: Callable[[], Any]) -> Any:
        """Call a function in a worker thread; return its result or raise its exception.

        Exceptions that would end the process, or be mistaken for a cancellation of the waiting task, are raised as
        RuntimeError. Use it from one event loop.
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

        self._take_thread()
        self._jobs.put(job)
        return await answer

    def _take_thread(self) -> None:
        """Record that a call needs a thread; start a thread if all are busy and fewer than MOST exist."""
        self._busy += 1
        if self._busy <= self._count:
            return
        if self._count < self._most:
            self._count += 1
            threading.Thread(target=_serve, args=(self._jobs,), name=f"plugin {self._plugin}", daemon=True).start()
        elif not self._is_told:
            self._is_told = True
            log.warning('all %d threads of plugin "%s" are busy; pods wait for a free thread', self._most, self._plugin)

    def _settle(self, answer: asyncio.Future[Any], value: Any, *, done: bool) -> None:
        self._busy -= 1
        self._is_told = self._is_told and self._busy > 0
        if answer.done():
            return
        if done:
            answer.set_result(value)
        else:
            answer.set_exception(value)


def _serve(jobs: _Jobs) -> None:
    """Run queued calls in a worker thread until the queue yields None; put None back for the next thread."""
    while (job := jobs.get()) is not None:
        job()
        del job  # while it waits for the next one it holds nothing
    jobs.put(None)


def plain(error: BaseException) -> Exception:
    """Return an exception of a plugin; KeyboardInterrupt, SystemExit and StopIteration become a RuntimeError."""
    try:
        text = repr(error)
    except Exception:  # it cannot even be told
        return RuntimeError(f"the plugin raised {type(error).__name__}")
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    made = RuntimeError(f"the plugin raised {text}")
    made.__cause__ = error
    return made
