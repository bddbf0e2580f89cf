"""The webhook's certificates: renewed in time by replicas side by side, and trusted at every moment."""

from __future__ import annotations

import asyncio
import base64
import json
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from policysched.app.webhook import keeper
from policysched.app.webhook.authority import MOST_TRUSTED, SETTLED, Material, renewed
from policysched.app.webhook.keeper import CONFIGURATIONS, EVERY, CertificateKeeper, CertificatePlace
from policysched.app.webhook.serving import KeptCertificate
from policysched.errors import ConnectionProblemError
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
        self.unreadable = ""
        self.before_write: Any = None
        self.put(CONFIGURATION, {"kind": "ValidatingWebhookConfiguration", "metadata": {"name": "policysched"},
                                 "webhooks": [{"name": "w", "clientConfig": {"service": {"name": "s"}}}]})  # fmt: skip

    def put(self, path: str, obj: Any) -> None:
        self.version += 1
        self.objects[path] = obj | {"metadata": obj["metadata"] | {"resourceVersion": str(self.version)}}

    async def request(self, method: str, path: str, body: bytes | None = None) -> bytes:
        if (method == "GET" and path == self.unreadable) or (method != "GET" and path == self.forbidden):
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


async def without_bundle(api: Api) -> None:
    found = api.objects[CONFIGURATION]
    webhooks = [{"name": "w", "clientConfig": {"service": {"name": "s"}}}]
    api.put(CONFIGURATION, found | {"webhooks": webhooks})


@pytest.mark.parametrize("trouble", ["deleted", "emptied", "unreadable"])
async def test_what_is_served_is_trusted_while_the_secret_cannot_be_used(
    trouble: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    api, clock = Api(), Clock()
    keepers = [CertificateKeeper(api, PLACE, clock) for _ in range(2)]
    served, _ = [await one.look() for one in keepers]
    await without_bundle(api)
    if trouble == "deleted":
        del api.objects[SECRET]
    elif trouble == "emptied":
        api.objects[SECRET]["data"] = {}
    api.forbidden = SECRET if trouble == "emptied" else SECRET.rpartition("/")[0]
    api.unreadable = SECRET if trouble == "unreadable" else ""
    for one in keepers:
        with pytest.raises(ApiError):
            await one.look()
        assert is_trusted(served, api.bundle, clock.at)
    version = api.version
    monkeypatch.setattr(keeper, "EVERY", 0.001)
    running = asyncio.create_task(keepers[0].run(lambda _: None))
    await asyncio.sleep(0.1)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert api.version == version, "nothing is written again and again"
    assert caplog.text.count("cannot check or renew the webhook's certificates; retrying: ") == 1
    advice = "run `kubectl -n kube-system create secret generic policysched-webhook`"
    assert (advice in caplog.text) is (trouble == "deleted")

    api.forbidden = api.unreadable = ""
    api.put(SECRET, {"kind": "Secret", "metadata": {"name": PLACE.secret}})
    assert is_trusted(await keepers[0].look(), api.bundle, clock.at)


async def test_what_is_served_is_announced_beside_what_others_serve() -> None:
    api, clock = Api(), Clock()
    keepers, served = [], []
    for _ in range(2):
        keepers.append(CertificateKeeper(api, PLACE, clock))
        served.append(await keepers[-1].look())
        del api.objects[SECRET]
    await without_bundle(api)
    api.forbidden = SECRET.rpartition("/")[0]
    for one in (*keepers, *keepers):
        with pytest.raises(ApiError):
            await one.look()
    assert all(is_trusted(one, api.bundle, clock.at) for one in served)
    assert len(api.bundle) == 2


async def test_refused_write_is_an_error_that_names_it() -> None:
    api = Api()
    api.forbidden = CONFIGURATION
    with pytest.raises(ApiError, match="not for you"):
        await CertificateKeeper(api, PLACE, Clock()).look()


def self_signed(key: Any, begin: datetime, end: datetime, *extensions: x509.ExtensionType) -> tuple[bytes, bytes]:
    """Make a certificate that nobody here makes, and its key."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "other")])
    builder = x509.CertificateBuilder(name, name, key.public_key(), 7, begin, end)
    for one in extensions:
        builder = builder.add_extension(one, critical=False)
    made = builder.sign(key, None if isinstance(key, Ed25519PrivateKey) else hashes.SHA256())
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return made.public_bytes(Encoding.PEM), secret


CA = x509.BasicConstraints(ca=True, path_length=None)
NAMES = x509.SubjectAlternativeName([x509.DNSName(one) for one in PLACE.names])
P256 = ec.generate_private_key(ec.SECP256R1())
HOUR, YEAR = timedelta(hours=1), timedelta(days=365)
AFTER_ALL = datetime(9999, 12, 31, 23, tzinfo=UTC)
WEAK = rsa.generate_private_key(65537, 1024)  # noqa: S505 - TLS refuses it
FOREIGN = {
    "an RSA key": self_signed(WEAK, BEGIN - HOUR, BEGIN + YEAR, CA, NAMES),
    "another curve": self_signed(ec.generate_private_key(ec.SECP384R1()), BEGIN - HOUR, BEGIN + YEAR, CA, NAMES),
    "Ed25519": self_signed(Ed25519PrivateKey.generate(), BEGIN - HOUR, BEGIN + YEAR, CA, NAMES),
    "no names": self_signed(P256, BEGIN - HOUR, BEGIN + YEAR, CA),
    "no authority": self_signed(P256, BEGIN - HOUR, BEGIN + YEAR, NAMES),
    "the end of time": self_signed(P256, AFTER_ALL, AFTER_ALL + HOUR / 2, CA, NAMES),
    "rubbish": (b"-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n", b"rubbish"),
}


def made_here(**changes: Callable[[bytes], bytes]) -> dict[str, bytes]:
    """What is kept, with changes."""
    of = renewed(None, PLACE.names, BEGIN, trusted=False)
    values = {"ca.crt": b"".join(of.bundle), "ca.key": of.authority_key, "tls.crt": of.certificate, "tls.key": of.key}
    return {name: changes.get(name.replace(".", "_"), bytes)(value) for name, value in values.items()}


RUBBISH = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
ODD = {
    "rubbish behind the certificate": made_here(tls_crt=lambda value: value + RUBBISH),
    "the certificate twice": made_here(tls_crt=lambda value: value * 2),
    "rubbish before the key": made_here(tls_key=lambda value: RUBBISH + value),
    "a second key": made_here(tls_key=lambda value: value + FOREIGN["another curve"][1]),
    "rubbish behind the authority": made_here(ca_crt=lambda value: value + RUBBISH),
}


@pytest.mark.parametrize("what", ODD)
async def test_what_is_behind_what_was_made_here_is_not_kept(what: str) -> None:
    api, clock = Api(), Clock()
    data = {name: base64.b64encode(value).decode() for name, value in ODD[what].items()}
    api.put(SECRET, {"kind": "Secret", "metadata": {"name": PLACE.secret}, "data": data})
    made = await CertificateKeeper(api, PLACE, clock).look()
    assert is_trusted(made, api.bundle, clock.at)
    KeptCertificate(made)
    assert base64.b64decode(api.objects[SECRET]["data"]["tls.crt"]).count(b"BEGIN") == 1


@pytest.mark.parametrize("secret", [7, "x", [1], {"data": "x"}, {"data": 5}, {"data": {"ca.crt": 1}}])
@pytest.mark.parametrize("webhooks", ["abc", [7], None])
async def test_objects_of_another_shape_are_told(secret: Any, webhooks: Any) -> None:
    api = Api()
    api.objects[CONFIGURATION] |= {"webhooks": webhooks}
    api.objects[SECRET] = secret
    try:
        KeptCertificate(await CertificateKeeper(api, PLACE, Clock()).look())
    except ConnectionProblemError as error:
        assert "is malformed" in str(error) or "is not an object" in str(error)


@pytest.mark.parametrize("what", FOREIGN)
async def test_what_somebody_else_put_into_the_secret_is_replaced(what: str) -> None:
    certificate, key = FOREIGN[what]
    api, clock = Api(), Clock()
    values = {"ca.crt": certificate, "ca.key": key, "tls.crt": certificate, "tls.key": key}
    data = {name: base64.b64encode(value).decode() for name, value in values.items()}
    api.put(SECRET, {"kind": "Secret", "metadata": {"name": PLACE.secret}, "data": data})
    made = await CertificateKeeper(api, PLACE, clock).look()
    assert is_trusted(made, api.bundle, clock.at)
    KeptCertificate(made)


async def test_certificates_of_a_clock_that_was_ahead_are_replaced_at_once() -> None:
    api, clock = Api(), Clock()
    keeper = CertificateKeeper(api, PLACE, clock)
    clock.at = BEGIN + 3 * YEAR
    await keeper.look()
    clock.at = BEGIN
    await keeper.look()
    clock.at += timedelta(seconds=EVERY)
    assert is_trusted(await keeper.look(), api.bundle, clock.at)
    clock.at += SETTLED
    await keeper.look()
    assert len(api.bundle) == 1


async def test_replicas_whose_clocks_are_years_apart_keep_few_authorities() -> None:
    api, clock, ahead = Api(), Clock(), Clock()
    ahead.at = BEGIN + 3 * YEAR
    for _ in range(20):
        for one in (clock, ahead):
            await CertificateKeeper(api, PLACE, one).look()
            one.at += timedelta(seconds=EVERY)
    assert len(api.bundle) <= MOST_TRUSTED


async def test_answer_that_is_no_object_is_a_problem_of_the_connection() -> None:
    class Proxy:
        async def request(self, *_: object) -> bytes:
            return b"<html>"

    with pytest.raises(ConnectionProblemError, match="is not an object"):
        await CertificateKeeper(Proxy(), PLACE, Clock()).look()


@pytest.mark.parametrize("webhooks", ["x", 1, [None], [{"clientConfig": "x"}]])
async def test_configuration_of_another_shape_does_not_end_the_webhook(
    webhooks: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(keeper, "EVERY", 0.001)
    api, used = Api(), asyncio.Event()
    good = api.objects[CONFIGURATION]
    api.objects[CONFIGURATION] = good | {"webhooks": webhooks}
    running = asyncio.create_task(CertificateKeeper(api, PLACE, Clock()).run(lambda _: used.set()))
    try:
        await asyncio.sleep(0.1)
        assert not running.done()
        assert caplog.text.count("cannot check or renew the webhook's certificates") == 1
        api.objects[CONFIGURATION] = good
        await asyncio.wait_for(used.wait(), 5)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
