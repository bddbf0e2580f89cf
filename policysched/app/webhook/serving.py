"""`run_webhook`: the port of the webhook, with a certificate from files or a certificate that is kept in a Secret."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Coroutine
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from aiohttp import web

from policysched.app.clock import SystemClock
from policysched.app.daemon_threads import Threads
from policysched.app.serving.answers import JSON, refusal, text_answer
from policysched.app.serving.options import ANYWHERE, ServingOptions
from policysched.app.serving.refused import RefusedError
from policysched.app.serving.request_bodies import Bodies
from policysched.app.serving.server import SecureServer
from policysched.app.serving.thread import listen
from policysched.app.serving.tls.certificates import server_context
from policysched.app.webhook.authority import Material
from policysched.app.webhook.given import GivenCertificate
from policysched.app.webhook.keeper import CertificateKeeper, CertificatePlace
from policysched.app.webhook.review import answer
from policysched.errors import UsageError
from policysched.kube.connection import Connection
from policysched.kube.transport import Transport
from policysched.language import load_grammar

log = logging.getLogger(__name__)
PORT: Final = 9443
PATH: Final = "/validate"
LARGEST: Final = 8 << 20
"""Largest AdmissionReview, which contains the old and the new object; more is an error. Units: bytes."""
AT_ONCE: Final = 2
"""Largest number of concurrent checks; further checks wait. A check counts to its end even without its client."""
MOST: Final = 16
"""Largest number of reviews that are read or wait; further reviews are rejected."""
HEALTH: Final = frozenset(("/healthz", "/livez", "/readyz"))


@dataclass(frozen=True, slots=True)
class WebhookOptions:
    """Address and certificate of the webhook."""

    place: CertificatePlace
    port: int = PORT
    bind_address: str = ANYWHERE
    certificate: Path | None = None
    """The certificate from files; None: a certificate is created and stored in a Secret."""
    key: Path | None = None
    kubeconfig: Path | None = None
    context: str | None = None


class KeptCertificate:
    """The TLS settings for the certificates in the webhook's Secret."""

    def __init__(self, material: Material) -> None:
        self._material = material
        self.context = _context(material)

    def use(self, material: Material) -> None:
        """Serve new connections with the given certificates from now on."""
        if (material.certificate, material.key) != (self._material.certificate, self._material.key):
            self.context = _context(material)
        self._material = material

    def refresh(self) -> None:
        """Do nothing, because the CertificateKeeper passes changed certificates to `use`."""


def _context(material: Material) -> ssl.SSLContext:
    return server_context((material.certificate, material.key))


class Webhook:
    """Answers AdmissionReviews and health checks on the webhook's port."""

    def __init__(self) -> None:
        self._bodies = Bodies("reviews", MOST, LARGEST)
        self._checkers = Threads(AT_ONCE)

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request to the webhook's port."""
        try:
            return await self._routed(request)
        except RefusedError as error:
            return refusal(error)
        except Exception:
            log.exception("a review failed; with failurePolicy Ignore the API server accepts the policy")
            return refusal(RefusedError(HTTPStatus.INTERNAL_SERVER_ERROR, "Internal error occurred"))

    async def _routed(self, request: web.BaseRequest) -> web.Response:
        if request.path in HEALTH:
            return text_answer("ok")
        if request.path != PATH:
            raise RefusedError(HTTPStatus.NOT_FOUND, f'unknown path "{request.path:.100}"; send reviews to {PATH}')
        if request.method != "POST":
            raise RefusedError(HTTPStatus.METHOD_NOT_ALLOWED, f"{PATH} allows only POST", {"Allow": "POST"})
        async with self._bodies.read(request) as raw:
            try:
                said = await self._checkers.call(answer, raw)
            except UsageError as error:
                raise RefusedError(HTTPStatus.BAD_REQUEST, str(error)) from error
        return text_answer(said.decode(), media=JSON)


async def run_webhook(options: WebhookOptions, stop: asyncio.Event) -> None:
    """Serve the webhook until `stop` is set.

    Raises:
        ConnectionProblemError: the kubeconfig is invalid, or the Secret cannot be read or written.
        UsageError: the port or a given certificate cannot be used.
    """
    serving = ServingOptions(options.port, options.bind_address, certificate=options.certificate, key=options.key)
    serving.check()
    load_grammar()
    listener = listen(serving)
    if listener is None:
        raise UsageError("--secure-port: a webhook needs a port")
    with listener:
        port = listener.getsockname()[1]
        if options.certificate is not None:
            given = GivenCertificate(serving, options.place.host, SystemClock())
            log.info('the webhook listens on port %d with certificate "%s"', port, options.certificate)
            await _until(stop, SecureServer(listener, given, Webhook().answer).run())
            return
        connection = await Connection.open(
            SystemClock(), kubeconfig=str(options.kubeconfig) if options.kubeconfig else None, context=options.context
        )
        try:
            keeper = CertificateKeeper(Transport(connection), options.place, SystemClock())
            kept = KeptCertificate(await keeper.look())
            server = SecureServer(listener, kept, Webhook().answer)
            log.info('the webhook listens on port %d with the certificate in Secret "%s"', port, options.place.secret)
            await _until(stop, server.run(), keeper.run(kept.use))
        finally:
            await connection.close()


async def _until(stop: asyncio.Event, *work: Coroutine[Any, Any, None]) -> None:
    """Run coroutines until `stop` is set, or until one fails."""
    tasks = [asyncio.create_task(one) for one in (*work, _awaited(stop))]
    done, rest = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for one in rest:
        one.cancel()
    await asyncio.gather(*rest, return_exceptions=True)
    for one in done:
        one.result()


async def _awaited(stop: asyncio.Event) -> None:
    await stop.wait()
