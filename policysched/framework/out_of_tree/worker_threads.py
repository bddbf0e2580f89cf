"""A daemon thread pool per out-of-tree plugin: one that hangs blocks neither others nor the exit.

A thread that hangs in a plugin must not keep the process from ending, so these are daemons, which the threads of
`concurrent.futures` are not. Each plugin has its own ones, so that one that hangs keeps no other waiting; they end once
nobody holds their `WorkerThreads` any more, as when a reload of the configuration has made the plugin anew.
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
"""How many threads there may be; what comes beyond waits for one."""
Job = Callable[[], None]
_Jobs: TypeAlias = "queue.SimpleQueue[Job | None]"
"""None stands for their end."""


class WorkerThreads:
    """The threads of a plugin, which are started as they are needed, and kept."""

    def __init__(self, plugin: str = "", most: int = MOST) -> None:
        self._plugin, self._most = plugin, most
        self._jobs: _Jobs = queue.SimpleQueue()
        self._count = self._busy = 0
        self._is_told = False
        weakref.finalize(self, self._jobs.put, None).atexit = False

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

        self._take_thread()
        self._jobs.put(job)
        return await answer

    def _take_thread(self) -> None:
        """Count one job more, and start a thread for it if there may be another one."""
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
    """Do jobs until they end, and tell the next thread so."""
    while (job := jobs.get()) is not None:
        job()
        del job  # while it waits for the next one it holds nothing
    jobs.put(None)


def plain(error: BaseException) -> Exception:
    """Return an exception as one that is an error of the plugin and nothing more."""
    try:
        text = repr(error)
    except Exception:  # it cannot even be told
        return RuntimeError(f"the plugin raised {type(error).__name__}")
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    made = RuntimeError(f"the plugin raised {text}")
    made.__cause__ = error
    return made
