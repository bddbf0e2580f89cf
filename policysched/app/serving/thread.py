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
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from prometheus_client import CollectorRegistry

from policysched.app.clock import SystemClock
from policysched.app.daemon_threads import run_in_loop
from policysched.app.serving.dry_run.interface import Decide
from policysched.app.serving.health import HEALTHZ, LIVEZ, Health, Heartbeat
from policysched.app.serving.options import ANYWHERE, ReviewOptions, ServingOptions
from policysched.errors import UsageError
from policysched.kube.connection import Connection
from policysched.kube.transport import Transport
from policysched.model.objects import Pod

if TYPE_CHECKING:
    from policysched.app.serving.access import DelegatedAccess
    from policysched.app.serving.endpoints import Endpoints
    from policysched.app.serving.tls.certificates import ServingCertificate

log = logging.getLogger(__name__)
BACKLOG: Final = 512
"""Length of the queue of connections to accept."""
END_WITHIN: Final = 5.0
"""Longest wait for the end of the thread. Units: seconds."""
AGAIN: Final = 1.0
"""Pause after a failure of the port. Units: seconds."""
PODS_FIRST: Final = 4.0
"""Longest time for which the port leaves the processor to the start and to pending pods; connections wait meanwhile,
less than the interval of probes. Units: seconds."""
LOOK: Final = 0.02
"""Interval between checks whether the process is busy. Units: seconds."""
REVIEW_TIMEOUT: Final = 10.0
"""Limit of a review by the API server. Units: seconds."""


@dataclass(frozen=True, slots=True)
class Served:
    """State and functions of the process that its HTTP port serves."""

    health: Health
    registry: CollectorRegistry
    documents: Mapping[str, Callable[[], Any]]
    """JSON documents by path; called in the loop of the process."""
    decide: Decide
    """Decides about a pod; called in the loop of the process."""
    pods: Callable[[], Iterable[Pod]]
    """Returns the unfinished pods; called in the port's thread."""
    set_verbosity: Callable[[int], None]
    """Changes the verbosity of logs; called in the port's thread."""
    is_busy: Callable[[], bool]
    """Returns whether the process is starting, or pods or events wait; called in the port's thread."""


@contextlib.asynccontextmanager
async def secure_port(
    options: ServingOptions, served: Served, connect: Callable[[], Awaitable[Connection]]
) -> AsyncIterator[None]:
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
        if options.needs_lookup:
            await _look_up(options.reviews, connect)
        is_given = options.certificate is not None or options.certificate_folder is not None
        certificate = _certificate(options) if is_given else None
        loop = asyncio.get_running_loop()
        beating = asyncio.create_task(heart.run())
        try:
            async with in_thread(
                "secure-port", lambda: _serve(options, listener, certificate, (served, loop), connect)
            ):
                host, port = listener.getsockname()[:2]
                log.info("serving on secure port https://%s:%d", f"[{host}]" if ":" in host else host, port)
                yield
        finally:
            beating.cancel()


def _certificate(options: ServingOptions) -> ServingCertificate:
    from policysched.app.serving.tls.certificates import ServingCertificate  # noqa: PLC0415 - see above

    return ServingCertificate(options, SystemClock().now())


async def leisure(is_busy: Callable[[], bool], at_most: float) -> None:
    """Wait until the process is idle, for at most some seconds, because its threads share one interpreter."""
    clock = asyncio.get_running_loop().time
    end = clock() + at_most
    while clock() < end and is_busy():
        await asyncio.sleep(LOOK)


async def _opened(connect: Callable[[], Awaitable[Connection]], kubeconfig: Path | None, flag: str) -> Connection:
    """Open the connection to the API server that a flag defines, or the port's own."""
    if kubeconfig is None:
        return await connect()
    return await Connection.open(SystemClock(), kubeconfig=str(kubeconfig), named_by=flag)


async def _look_up(reviews: ReviewOptions, connect: Callable[[], Awaitable[Connection]]) -> None:
    """Check that the authorities of clients can be read.

    Raises:
        UsageError: they cannot be read.
    """
    from policysched.app.serving.tls.client_authorities import FAILURES, read_client_authorities  # noqa: PLC0415

    connection = await _opened(connect, reviews.authentication_kubeconfig, "--authentication-kubeconfig")
    try:
        await read_client_authorities(Transport(connection, REVIEW_TIMEOUT))
    except FAILURES as error:
        text = "--authentication-tolerate-lookup-failure=false: cannot read the authorities of client certificates"
        raise UsageError(f"{text}: {error}") from error
    finally:
        await connection.close()


async def _serve(
    options: ServingOptions,
    listener: socket.socket,
    certificate: ServingCertificate | None,
    shown: tuple[Served, asyncio.AbstractEventLoop],
    connect: Callable[[], Awaitable[Connection]],
) -> None:
    """Serve until cancelled; main coroutine of the thread."""
    await leisure(shown[0].is_busy, PODS_FIRST)
    from policysched.app.serving.access import DelegatedAccess  # noqa: PLC0415 - see above
    from policysched.app.serving.server import SecureServer  # noqa: PLC0415
    from policysched.app.serving.tls.client_authorities import follow_client_authorities  # noqa: PLC0415

    async with contextlib.AsyncExitStack() as stack:
        tokens, rights = await _reviewers(options.reviews, connect, stack)
        certificate = certificate or _certificate(options)
        access = DelegatedAccess(options, tokens, SystemClock(), rights, lambda: certificate.users)
        endpoints = _endpoints(options, *shown, access)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(SecureServer(listener, certificate, endpoints.answer).run())
            if options.reviews.follows_authorities:
                tasks.create_task(follow_client_authorities(tokens, certificate))


async def _reviewers(
    reviews: ReviewOptions, connect: Callable[[], Awaitable[Connection]], stack: contextlib.AsyncExitStack
) -> tuple[Transport, Transport]:
    """Open the connections for TokenReviews and SubjectAccessReviews; the stack closes them."""

    async def transport_of(kubeconfig: Path | None, flag: str) -> Transport:
        opened = await _opened(connect, kubeconfig, flag)
        stack.push_async_callback(opened.close)
        return Transport(opened, REVIEW_TIMEOUT)

    tokens = await transport_of(reviews.authentication_kubeconfig, "--authentication-kubeconfig")
    if reviews.authentication_kubeconfig == reviews.authorization_kubeconfig:
        return tokens, tokens
    return tokens, await transport_of(reviews.authorization_kubeconfig, "--authorization-kubeconfig")


def _endpoints(
    options: ServingOptions, served: Served, loop: asyncio.AbstractEventLoop, access: DelegatedAccess
) -> Endpoints:
    from policysched.app.serving.dry_run.endpoint import DryRunEndpoint  # noqa: PLC0415 - see above
    from policysched.app.serving.endpoints import Endpoints  # noqa: PLC0415
    from policysched.app.serving.metrics.metric_limits import LimitedMetrics  # noqa: PLC0415
    from policysched.app.serving.metrics.pod_resources import PodResourceSeries  # noqa: PLC0415
    from policysched.app.serving.verbosity import VerbosityEndpoint  # noqa: PLC0415

    return Endpoints(
        access,
        served.health,
        LimitedMetrics(served.registry, options.metrics),
        served.documents,
        loop,
        {
            "/metrics/resources": ("", PodResourceSeries(served.pods).answer),
            "/dry-run": ("POST", DryRunEndpoint(served.decide, loop).answer),
            "/debug/flags/v": ("PUT", VerbosityEndpoint(served.set_verbosity).answer),
        },
    )


def listen(options: ServingOptions) -> socket.socket | None:
    """Bind the port; return None if it is off, or if the default port is taken.

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


async def _again_and_again(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Repeat a coroutine after failures until cancelled, because a process with unanswered probes would be killed."""
    said = ""
    while True:
        try:
            await work()
        except Exception as error:  # the port must stay available whatever fails
            if repr(error) != said:
                log.exception("serving the secure port failed; retrying every %.0f s", AGAIN)
            said = repr(error)
        await asyncio.sleep(AGAIN)


@contextlib.asynccontextmanager
async def in_thread(name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    """Run a coroutine in its own thread and event loop; it is cancelled at the end."""
    started: asyncio.Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[None]]]
    own = asyncio.get_running_loop()
    started = own.create_future()

    async def run() -> None:
        task = asyncio.create_task(_again_and_again(work))
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
