"""The webhook's certificates: renewed in time by replicas side by side, and trusted at every moment."""

from __future__ import annotations

import base64
import json
import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.exceptions import InvalidSignature

from policysched.app.webhook.authority import SETTLED, Material, renewed
from policysched.app.webhook.keeper import CONFIGURATIONS, CertificateKeeper, CertificatePlace
from policysched.framework import ApiError

PLACE = CertificatePlace("kube-system", "policysched-webhook", "policysched-webhook", "policysched")
SECRET = "/api/v1/namespaces/kube-system/secrets/policysched-webhook"  # noqa: S105 - a path
CONFIGURATION = f"{CONFIGURATIONS}/policysched"
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


class Clock:
    def __init__(self) -> None:
        self.at = BEGIN

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return self.at.timestamp()


class Api:
    """An API server with two objects; before a write something else may happen."""

    def __init__(self) -> None:
        self.objects: dict[str, Any] = {}
        self.version = 0
        self.forbidden = ""
        self.before_write: Any = None
        self.put(CONFIGURATION, {"kind": "ValidatingWebhookConfiguration", "metadata": {"name": "policysched"},
                                 "webhooks": [{"name": "w", "clientConfig": {"service": {"name": "s"}}}]})  # fmt: skip

    def put(self, path: str, obj: Any) -> None:
        self.version += 1
        self.objects[path] = obj | {"metadata": obj["metadata"] | {"resourceVersion": str(self.version)}}

    async def request(self, method: str, path: str, body: bytes | None = None) -> bytes:
        if method != "GET" and path == self.forbidden:
            raise ApiError(403, "Forbidden", "not for you")
        if method != "GET" and self.before_write is not None:
            happening, self.before_write = self.before_write, None
            await happening()
        known = self.objects.get(SECRET if method == "POST" else path)
        if method == "GET":
            if known is None:
                raise ApiError(404, "NotFound", "not found")
            return json.dumps(known).encode()
        given = json.loads(body or b"")
        if method == "POST":
            if known is not None:
                raise ApiError(409, "AlreadyExists", "it is there")
            self.put(SECRET, given)
        elif known is None or given["metadata"]["resourceVersion"] != known["metadata"]["resourceVersion"]:
            raise ApiError(409, "Conflict", "it was changed")
        else:
            self.put(path, given)
        return b"{}"

    @property
    def bundle(self) -> list[x509.Certificate]:
        text = base64.b64decode(self.objects[CONFIGURATION]["webhooks"][0]["clientConfig"]["caBundle"])
        return x509.load_pem_x509_certificates(text)


def is_trusted(material: Material, bundle: list[x509.Certificate], now: datetime) -> bool:
    serving = x509.load_pem_x509_certificate(material.certificate)
    if not serving.not_valid_before_utc <= now < serving.not_valid_after_utc:
        return False
    for authority in bundle:
        try:
            serving.verify_directly_issued_by(authority)
        except (ValueError, InvalidSignature):
            continue
        return authority.not_valid_before_utc <= now < authority.not_valid_after_utc
    return False


async def test_certificates_are_kept_and_announced() -> None:
    api, clock = Api(), Clock()
    made = await CertificateKeeper(api, PLACE, clock).look()
    assert is_trusted(made, api.bundle, clock.at)
    serving = x509.load_pem_x509_certificate(made.certificate)
    names = serving.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert "policysched-webhook.kube-system.svc" in names.get_values_for_type(x509.DNSName)
    assert api.objects[CONFIGURATION]["webhooks"][0]["clientConfig"]["service"] == {"name": "s"}
    assert api.objects[SECRET]["type"] == "kubernetes.io/tls"
    version = api.version
    assert await CertificateKeeper(api, PLACE, clock).look() == made
    assert api.version == version


async def test_replicas_that_begin_together_serve_the_same() -> None:
    api, clock = Api(), Clock()
    first, second = (CertificateKeeper(api, PLACE, clock) for _ in range(2))
    api.before_write = first.look
    assert await second.look() == await first.look()
    assert is_trusted(await second.look(), api.bundle, clock.at)


async def test_replicas_are_trusted_at_every_moment_of_three_years() -> None:
    rng, api, clock = random.Random(1), Api(), Clock()
    replicas = [CertificateKeeper(api, PLACE, clock) for _ in range(2)]
    serving = [await one.look() for one in replicas]
    authorities, certificates, busy = set(), set(), clock.at
    while clock.at < BEGIN + timedelta(days=3 * 365):
        clock.at += timedelta(minutes=1) if clock.at < busy else timedelta(days=1)
        before = api.version
        for number, one in rng.sample(list(enumerate(replicas)), 2):
            if rng.random() < 0.2 and clock.at < busy:
                continue  # it is late
            if rng.random() < 0.3:
                api.before_write = replicas[1 - number].look
            serving[number] = await one.look()
            api.before_write = None
            assert all(is_trusted(each, api.bundle, clock.at) for each in serving), clock.at
        if api.version != before:
            busy = clock.at + 2 * SETTLED
        authorities.add(api.bundle[0].serial_number)
        certificates.add(serving[0].certificate)
    assert len(authorities) >= 3
    assert len(certificates) >= 16
    assert len(api.bundle) == 1


def test_new_authority_is_not_used_before_it_is_trusted() -> None:
    names = PLACE.names
    first = renewed(None, names, BEGIN, trusted=False)
    late = BEGIN + timedelta(days=600)
    kept = renewed(first, names, late, trusted=True)
    assert (len(kept.bundle), kept.certificate) == (2, first.certificate)
    fresh = renewed(None, names, late - timedelta(days=1), trusted=False)
    both = Material((kept.bundle[0], fresh.bundle[0]), kept.authority_key, fresh.certificate, fresh.key)
    soon, later = late + timedelta(minutes=1), late + SETTLED
    assert renewed(both, names, soon, trusted=True) is both
    assert renewed(both, names, later, trusted=False) is both
    signed = renewed(both, names, later, trusted=True)
    assert (signed.bundle, signed.certificate != both.certificate) == (both.bundle, True)
    assert renewed(signed, names, later + SETTLED - timedelta(seconds=1), trusted=True) is signed
    assert renewed(signed, names, later + SETTLED, trusted=True).bundle == both.bundle[:1]


async def test_secret_that_cannot_be_read_is_made_anew() -> None:
    api, clock = Api(), Clock()
    keeper = CertificateKeeper(api, PLACE, clock)
    await keeper.look()
    for data in ({}, {"ca.crt": "?"}, dict.fromkeys(("ca.crt", "ca.key", "tls.crt", "tls.key"), ""), None):
        api.objects[SECRET]["data"] = data
        assert is_trusted(await keeper.look(), api.bundle, clock.at)


async def test_refused_write_is_an_error_that_names_it() -> None:
    api = Api()
    api.forbidden = CONFIGURATION
    with pytest.raises(ApiError, match="not for you"):
        await CertificateKeeper(api, PLACE, Clock()).look()
