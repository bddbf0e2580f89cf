"""`secure_port`: the thread of the HTTPS port, from its socket to a clean end.

The socket is bound and given certificates are read before the thread starts, so that problems are errors of the start.
Slow imports and setup run in the thread, so no pod waits for them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, Final

from policysched.app.daemon_threads import run_in_loop
from policysched.app.serving.health import HEALTHZ, LIVEZ, Heartbeat
from policysched.app.serving.options import ANYWHERE, ServingOptions
from policysched.app.serving.served import Connect, Served
from policysched.errors import UsageError

log = logging.getLogger(__name__)
BACKLOG: Final = 512
"""Largest number of connections that wait to be accepted."""
END_WITHIN: Final = 5.0
"""Longest wait for the end of the port's thread. Units: seconds."""
AGAIN: Final = 1.0
"""Pause after a failure of the port before it is served again. Units: seconds."""
PODS_FIRST: Final = 4.0
"""Longest time for which connections wait so that the start and pending pods get the processor. Units: seconds."""
POLL: Final = 0.02
"""Interval between checks whether the process is busy. Units: seconds."""


@contextlib.asynccontextmanager
async def secure_port(options: ServingOptions, served: Served, connect: Connect) -> AsyncIterator[None]:
    """Serve the port in its own thread inside this context; do nothing if the port is off.

    Args:
        options: Settings of the port.
        served: What the process provides.
        connect: Opens the port's own connection to the API server, so reviews do not wait for the scheduler.

    Raises:
        UsageError: port or certificate cannot be used, or required authorities cannot be read.
    """
    options.check()
    listener = listen(options)
    if listener is None:
        yield
        return
    heart = Heartbeat()
    served.health.add("event-loop", heart.check, HEALTHZ, LIVEZ)
    with listener:
        await _check_inputs(options, connect)
        loop = asyncio.get_running_loop()
        beating = asyncio.create_task(heart.run())
        try:
            async with in_thread("secure-port", lambda: _serve(options, listener, (served, loop), connect)):
                host, port = listener.getsockname()[:2]
                log.info("serving on secure port https://%s:%d", f"[{host}]" if ":" in host else host, port)
                yield
        finally:
            beating.cancel()


async def _check_inputs(options: ServingOptions, connect: Connect) -> None:
    """Read the given certificate and the required CAs of clients once, so that errors end the start.

    Raises:
        UsageError: the certificate or the authorities cannot be read.
    """
    is_given = options.certificate is not None or options.certificate_folder is not None
    if not (is_given or options.needs_lookup):
        return
    from policysched.app.serving.port import look_up, make_certificate  # noqa: PLC0415 - as above

    if options.needs_lookup:
        await look_up(options.reviews, connect)
    if is_given:
        make_certificate(options)


async def _serve(
    options: ServingOptions,
    listener: socket.socket,
    served: tuple[Served, asyncio.AbstractEventLoop],
    connect: Connect,
) -> None:
    """Serve the HTTPS port until cancelled; main coroutine of the port's thread."""
    await wait_until_idle(served[0].is_busy, PODS_FIRST)
    from policysched.app.serving.port import serve  # noqa: PLC0415 - the imports of the port take 150 ms

    await serve(options, listener, served, connect)


async def wait_until_idle(is_busy: Callable[[], bool], at_most: float) -> None:
    """Wait until the process is idle, because its threads share one interpreter, but at most some seconds."""
    clock = asyncio.get_running_loop().time
    end = clock() + at_most
    while clock() < end and is_busy():
        await asyncio.sleep(POLL)


def listen(options: ServingOptions) -> socket.socket | None:
    """Bind the port; return None if the port is disabled, or if the default port is taken.

    Raises:
        UsageError: the port cannot be bound.
    """
    if not options.port:
        return None
    address = options.bind_address or ANYWHERE
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if options.shares_port:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind((address, options.port))
        listener.listen(BACKLOG)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        where = f"{address}:{options.port}"
        if not options.is_optional:
            raise UsageError(f"--secure-port: cannot listen on {where}: {error.strerror}") from error
        log.warning("cannot listen on %s, so metrics and health checks are not served: %s", where, error.strerror)
        return None
    return listener


async def _repeat_until_cancelled(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Repeat a coroutine after failures until cancelled, because a process with unanswered probes would be killed."""
    logged = ""
    while True:
        try:
            await work()
        except Exception as error:  # the port must stay available whatever fails
            if repr(error) != logged:
                log.exception("serving the secure port failed; retrying every %.0f s", AGAIN)
            logged = repr(error)
        await asyncio.sleep(AGAIN)


@contextlib.asynccontextmanager
async def in_thread(name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    """Run a coroutine in its own thread and event loop; cancel the coroutine when the context ends."""
    started: asyncio.Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[None]]]
    own = asyncio.get_running_loop()
    started = own.create_future()

    async def run() -> None:
        task = asyncio.create_task(_repeat_until_cancelled(work))
        own.call_soon_threadsafe(started.set_result, (asyncio.get_running_loop(), task))
        await asyncio.wait((task,))

    thread = threading.Thread(target=lambda: run_in_loop(run()), name=name, daemon=True)
    thread.start()
    loop, task = await started
    try:
        yield
    finally:
        with contextlib.suppress(RuntimeError):  # the loop has already ended
            loop.call_soon_threadsafe(task.cancel)
        await asyncio.to_thread(thread.join, END_WITHIN)
