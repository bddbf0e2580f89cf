"""Serve the port: certificate, access, endpoints and reviews. Runs in the port's thread."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from pathlib import Path
from typing import Final

from policysched.app.clock import SystemClock
from policysched.app.serving.access import DelegatedAccess
from policysched.app.serving.dry_run.endpoint import DryRunEndpoint
from policysched.app.serving.endpoints import Endpoints
from policysched.app.serving.metrics.metric_limits import LimitedMetrics
from policysched.app.serving.metrics.pod_resources import PodResourceSeries
from policysched.app.serving.options import ReviewOptions, ServingOptions
from policysched.app.serving.served import Connect, Served
from policysched.app.serving.server import SecureServer
from policysched.app.serving.tls.certificates import ServingCertificate
from policysched.app.serving.tls.client_authorities import FAILURES, follow_client_authorities, read_client_authorities
from policysched.app.serving.verbosity import VerbosityEndpoint
from policysched.errors import UsageError
from policysched.kube.connection import Connection
from policysched.kube.transport import Transport

REVIEW_TIMEOUT: Final = 10.0
"""Longest duration of a review by the API server. Units: seconds."""


def make_certificate(options: ServingOptions) -> ServingCertificate:
    """Return the TLS settings with the certificate that the options name, or with a self-signed certificate.

    Raises:
        UsageError: the certificate cannot be read.
    """
    return ServingCertificate(options, SystemClock().now())


async def serve(
    options: ServingOptions,
    listener: socket.socket,
    shown: tuple[Served, asyncio.AbstractEventLoop],
    connect: Connect,
) -> None:
    """Serve the HTTPS port until cancelled.

    Args:
        options: Settings of the port.
        listener: The bound socket.
        shown: What the process provides, and the loop of the process.
        connect: Opens a connection to the API server.
    """
    async with contextlib.AsyncExitStack() as stack:
        tokens, rights = await _reviewers(options.reviews, connect, stack)
        certificate = make_certificate(options)
        access = DelegatedAccess(options, tokens, SystemClock(), rights, lambda: certificate.users)
        endpoints = _endpoints(options, *shown, access)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(SecureServer(listener, certificate, endpoints.answer).run())
            if options.reviews.follows_authorities:
                tasks.create_task(follow_client_authorities(tokens, certificate))


async def _opened(connect: Connect, kubeconfig: Path | None, flag: str) -> Connection:
    """Open a connection to the API server with a flag's kubeconfig; without the flag, as the scheduler does."""
    if kubeconfig is None:
        return await connect()
    return await Connection.open(SystemClock(), kubeconfig=str(kubeconfig), named_by=flag)


async def look_up(reviews: ReviewOptions, connect: Connect) -> None:
    """Check that the cluster's CAs for client certificates can be read.

    Raises:
        UsageError: they cannot be read.
    """
    connection = await _opened(connect, reviews.authentication_kubeconfig, "--authentication-kubeconfig")
    try:
        await read_client_authorities(Transport(connection, REVIEW_TIMEOUT))
    except FAILURES as error:
        text = "--authentication-tolerate-lookup-failure=false: cannot read the authorities of client certificates"
        raise UsageError(f"{text}: {error}") from error
    finally:
        await connection.close()


async def _reviewers(
    reviews: ReviewOptions, connect: Connect, stack: contextlib.AsyncExitStack
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
    return Endpoints(
        access,
        served.health,
        LimitedMetrics(served.registry, options.metrics),
        served.documents,
        loop,
        {
            "/metrics/resources": ("", PodResourceSeries(served.pods).answer),
            "/dry-run": ("POST", DryRunEndpoint(served.decide, served.release, loop).answer),
            "/debug/flags/v": ("PUT", VerbosityEndpoint(served.set_verbosity).answer),
        },
    )
