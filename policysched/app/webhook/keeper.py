"""`CertificateKeeper`: the webhook's certificates in a Secret, and their authorities in the webhook configuration.

Replicas work concurrently: every write requires the resourceVersion that was read, and after a conflict the replica
reads again. The configuration is read before the Secret, so an older bundle never replaces a newer one.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, Protocol

import msgspec

from policysched.app.webhook.authority import MOST_TRUSTED, Material, renewed
from policysched.errors import ConnectionProblemError
from policysched.framework import ApiError, Clock

log = logging.getLogger(__name__)
CONFIGURATIONS: Final = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
EVERY: Final = 60.0
"""Interval between checks for due renewals. Units: seconds."""
ATTEMPTS: Final = 5
"""Number of immediate attempts after conflicts with other replicas."""
_CERTIFICATE: Final = re.compile(rb"-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----\n?")
Object = dict[str, Any]


class ApiRequests(Protocol):
    """Interface of an object that sends requests to the API server."""

    async def request(self, method: str, path: str, body: bytes | None = None) -> bytes:
        """Send a request and return the body of its answer."""


@dataclass(frozen=True, slots=True)
class CertificatePlace:
    """Names of the Secret, the Service and the webhook configuration of a webhook."""

    namespace: str
    secret: str
    service: str
    configuration: str
    """Name of the ValidatingWebhookConfiguration."""

    @property
    def names(self) -> tuple[str, ...]:
        """Host names of the Service."""
        name = f"{self.service}.{self.namespace}"
        return (self.service, name, self.host, f"{name}.svc.cluster.local")

    @property
    def host(self) -> str:
        """Host name with which API servers call the Service."""
        return f"{self.service}.{self.namespace}.svc"


class CertificateKeeper:
    """Renews the webhook's certificates in a Secret before they expire.

    Args:
        requests: Sends requests to the API server.
        place: Names of the objects.
        clock: Clock for lifetimes.
    """

    def __init__(self, requests: ApiRequests, place: CertificatePlace, clock: Clock) -> None:
        self._requests, self._place, self._clock = requests, place, clock
        self._logged = ""
        self._served: Material | None = None

    async def run(self, use: Callable[[Material], None]) -> None:
        """Check periodically; pass the certificates to serve to `use`."""
        while True:
            try:
                use(await self.look())
                self._logged = ""
            except (ApiError, ConnectionProblemError) as error:  # reviews are answered nevertheless
                self._log_once(error)
            await asyncio.sleep(EVERY)

    def _log_once(self, error: Exception) -> None:
        """Log an error of the renewal, unless the last error had the same message."""
        if str(error) != self._logged:
            log.warning("cannot check or renew the webhook's certificates; retrying: %s", error)
        self._logged = str(error)

    async def look(self) -> Material:
        """Renew certificates that are due, and return the certificates to serve.

        Raises:
            ApiError: the Secret or the configuration cannot be read or written.
            ConnectionProblemError: the API server is unreachable, or its answers are invalid.
        """
        for attempt in range(ATTEMPTS):
            try:
                return await self._look()
            except ApiError as error:
                if error.status != HTTPStatus.CONFLICT or attempt == ATTEMPTS - 1:
                    raise
            except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
                text = "the Secret or ValidatingWebhookConfiguration of the webhook is malformed"
                raise ConnectionProblemError(f"{text}: {error!r}") from error
        raise AssertionError

    async def _look(self) -> Material:
        configuration = await self._get(f"{CONFIGURATIONS}/{self._place.configuration}")
        try:
            made = await self._renewed(configuration)
        except ApiError as error:
            if error.status != HTTPStatus.CONFLICT:
                await self._announce_served(configuration)
            raise
        if configuration is not None and not _has_bundle(configuration, made.bundle):
            await self._announce(configuration, made.bundle)
        self._served = made
        return made

    async def _renewed(self, configuration: Object | None) -> Material:
        """Read the Secret, and write it if a renewal is due."""
        secret = await self._get(self._secret_path)
        before = None if secret is None else _material(secret)
        trusted = configuration is not None and before is not None and _trusts(configuration, before.bundle[:1])
        made = renewed(before, self._place.names, self._clock.now(), trusted=trusted)
        if made is not before:
            try:
                await self._write(secret, made)
            except ApiError as error:
                raise self._explained(error, is_missing=secret is None) from error
            log.info('renewed the certificates of the webhook in Secret "%s"', self._place.secret)
        return made

    async def _announce_served(self, configuration: Object | None) -> None:
        """Add the authority of this process's certificate to the authorities that API servers trust."""
        if self._served is None or configuration is None or _trusts(configuration, self._served.bundle):
            return
        own = self._served.bundle
        others = dict.fromkeys(one for bundle in _bundles(configuration) for one in bundle if one not in own)
        await self._announce(configuration, (*own, *others)[:MOST_TRUSTED])

    def _explained(self, error: ApiError, *, is_missing: bool) -> ApiError:
        """Return the error of a write to the Secret, with advice if the Secret does not exist."""
        if not is_missing:
            return error
        namespace, name = self._place.namespace, self._place.secret
        command = f"kubectl -n {namespace} create secret generic {name}"
        text = f'Secret "{namespace}/{name}" does not exist and cannot be created; run `{command}`: {error.message}'
        return ApiError(error.status, error.reason, text, error.retry_after)

    async def _announce(self, configuration: Object, trusted: tuple[bytes, ...]) -> None:
        bundle = base64.b64encode(b"".join(trusted)).decode()
        webhooks = [
            {**one, "clientConfig": {**one.get("clientConfig", {}), "caBundle": bundle}}
            for one in configuration.get("webhooks") or ()
        ]
        path = f"{CONFIGURATIONS}/{self._place.configuration}"
        await self._requests.request("PUT", path, msgspec.json.encode({**configuration, "webhooks": webhooks}))
        log.info(
            'wrote the webhook\'s certificate authorities to ValidatingWebhookConfiguration "%s"',
            self._place.configuration,
        )

    async def _write(self, secret: Object | None, made: Material) -> None:
        data = {name: base64.b64encode(value).decode() for name, value in _data(made).items()}
        if secret is None:
            metadata = {"name": self._place.secret, "namespace": self._place.namespace}
            new = {
                "apiVersion": "v1",
                "kind": "Secret",
                "type": "kubernetes.io/tls",
                "metadata": metadata,
                "data": data,
            }
            await self._requests.request("POST", self._secret_path.rpartition("/")[0], msgspec.json.encode(new))
        else:
            kept = {**secret, "data": {**(secret.get("data") or {}), **data}}
            await self._requests.request("PUT", self._secret_path, msgspec.json.encode(kept))

    async def _get(self, path: str) -> Object | None:
        try:
            found: Object = msgspec.json.decode(await self._requests.request("GET", path), type=dict[str, Any])
        except ApiError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None
            raise
        except msgspec.MsgspecError as error:
            raise ConnectionProblemError(f"the API server's answer for {path} is not an object: {error}") from error
        return found

    @property
    def _secret_path(self) -> str:
        return f"/api/v1/namespaces/{self._place.namespace}/secrets/{self._place.secret}"


def _data(material: Material) -> dict[str, bytes]:
    return {
        "ca.crt": b"".join(material.bundle),
        "ca.key": material.authority_key,
        "tls.crt": material.certificate,
        "tls.key": material.key,
    }


def _material(secret: Object) -> Material | None:
    """Decode a Secret; return None if the Secret does not contain certificates of this webhook."""
    data = secret.get("data") or {}
    try:
        found = {
            name: base64.b64decode(data[name], validate=True) for name in ("ca.crt", "ca.key", "tls.crt", "tls.key")
        }
    except (KeyError, TypeError, ValueError):
        return None
    serving = b"".join(_certificates(found["tls.crt"]))
    return Material(_certificates(found["ca.crt"]), found["ca.key"], serving, found["tls.key"])


def _certificates(bundle: bytes) -> tuple[bytes, ...]:
    return tuple(one.rstrip(b"\n") + b"\n" for one in _CERTIFICATE.findall(bundle))


def _bundles(configuration: Object) -> list[tuple[bytes, ...]]:
    found = []
    for one in configuration.get("webhooks") or ():
        try:
            found.append(_certificates(base64.b64decode((one.get("clientConfig") or {}).get("caBundle") or "")))
        except (TypeError, ValueError):
            found.append(())
    return found


def _trusts(configuration: Object, authorities: tuple[bytes, ...]) -> bool:
    """Return whether every webhook of a configuration trusts these authorities."""
    return all(set(authorities) <= set(bundle) for bundle in _bundles(configuration))


def _has_bundle(configuration: Object, bundle: tuple[bytes, ...]) -> bool:
    return all(one == bundle for one in _bundles(configuration))
