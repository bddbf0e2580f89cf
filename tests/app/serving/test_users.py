"""Who is known by a certificate or through a front proxy, over TLS; and which certificate the port itself shows."""

from __future__ import annotations

import asyncio
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from cryptography import x509
from cryptography.x509.oid import NameOID

from policysched.app.serving.access import DelegatedAccess
from policysched.app.serving.answers import refusal
from policysched.app.serving.options import ServingOptions
from policysched.app.serving.refused import RefusedError
from policysched.app.serving.tls.certificates import ServingCertificate
from policysched.app.serving.tls.self_signed import self_signed
from policysched.app.serving.users import FrontProxy
from policysched.errors import UsageError
from tests.app.serving.ports import Port, open_port
from tests.app.serving.test_access import Reviews
from tests.controlplane.certificates import Authority
from tests.schedule.queue_parts import StandingClock

MASTERS = ("system:masters",)
ASKS_FOR_MASTER = {"X-Remote-User": "jane", "X-Remote-Group": "system:masters"}
Pair = tuple[Path, Path]


@pytest.fixture
def users(tmp_path: Path) -> Authority:
    (tmp_path / "users").mkdir()
    return Authority(tmp_path / "users")


@pytest.fixture
def proxies(tmp_path: Path) -> Authority:
    (tmp_path / "proxies").mkdir()
    return Authority(tmp_path / "proxies")


@pytest.fixture
def options(users: Authority, proxies: Authority) -> ServingOptions:
    return ServingOptions(client_ca=users.certificate, proxy_ca=proxies.certificate)


def client_tls(pair: Pair | None) -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if pair is not None:
        context.load_cert_chain(*pair)
    return context


class Asked:
    """What became of a request: its status, and whom the API server was asked about."""

    def __init__(self) -> None:
        self.reviews = Reviews()
        self._access: DelegatedAccess | None = None

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request."""
        assert self._access is not None
        try:
            await self._access.check(request)
        except RefusedError as error:
            return refusal(error)
        return web.Response(text="ok")

    async def of(self, port: Port, options: ServingOptions, pair: Pair | None, headers: Any = None) -> Any:
        """Ask, and give the status with the user that was reviewed."""
        if self._access is None:
            known = port.certificate
            self._access = DelegatedAccess(options, self.reviews, StandingClock(), None, lambda: known.users)
        self.reviews.asked.clear()
        url = f"https://127.0.0.1:{port.port}/metrics"
        async with (
            aiohttp.ClientSession() as session,
            session.get(url, headers=headers, ssl=client_tls(pair)) as answered,
        ):
            reviewed = [spec for _, spec in self.reviews.asked]
            return answered.status, reviewed[0] if reviewed else None


async def test_proxies_say_for_whom_they_ask_and_are_nobody_themselves(
    options: ServingOptions, users: Authority, proxies: Authority
) -> None:
    asked = Asked()
    proxy, posing = proxies.client("front-proxy", ()), proxies.client("posing", MASTERS)
    async with open_port(asked.answer, options) as port:
        assert await asked.of(port, options, proxy, ASKS_FOR_MASTER) == (200, None)
        headers = [("x-remote-user", "jane"), ("X-Remote-Group", "ops"), ("X-Remote-Group", "web")]
        headers += [("X-Remote-Extra-Scopes%2Fof", "a"), ("X-Remote-Extra-Scopes%2Fof", "b"), ("X-Remote-Uid", "7")]
        status, spec = await asked.of(port, options, proxy, headers)
        assert (status, spec["user"], spec["groups"]) == (403, "jane", ["ops", "web", "system:authenticated"])
        assert (spec["extra"], spec["uid"]) == ({"scopes/of": ["a", "b"]}, ""), "no flag names the header of UIDs"
        for one in (proxy, posing):
            assert (await asked.of(port, options, one))[0] == 401, "their authority signs no users"
        assert (await asked.of(port, options, posing, {"Authorization": "Bearer good"}))[0] == 200


async def test_headers_of_who_is_no_proxy_count_for_nothing(
    options: ServingOptions, users: Authority, proxies: Authority
) -> None:
    asked = Asked()
    async with open_port(asked.answer, options) as port:
        for pair, name in ((users.client("joe", ()), "joe"), (None, "system:anonymous")):
            status, spec = await asked.of(port, options, pair, ASKS_FOR_MASTER)
            assert (status, spec["user"]) == (403, name)
        assert (await asked.of(port, options, users.client("root", MASTERS)))[0] == 200
        with pytest.raises(aiohttp.ClientError):
            await asked.of(port, options, Authority(users.folder).client("of-another", MASTERS), ASKS_FOR_MASTER)


async def test_proxies_may_be_limited_by_name_and_headers_be_others(users: Authority, proxies: Authority) -> None:
    proxy = FrontProxy(allowed_names=("front-proxy",), username_headers=("x-user",), uid_headers=("x-remote-uid",))
    options = ServingOptions(client_ca=users.certificate, proxy_ca=proxies.certificate, proxy=proxy)
    asked = Asked()
    headers = {"X-User": "jane", "X-Remote-Uid": "7", "X-Remote-User": "other", "X-Remote-Group": "system:anything"}
    async with open_port(asked.answer, options) as port:
        status, spec = await asked.of(port, options, proxies.client("front-proxy", ()), headers)
        assert (status, spec["user"], spec["uid"]) == (403, "jane", "7")
        assert (await asked.of(port, options, proxies.client("another", ()), headers))[0] == 401


def test_the_first_published_authorities_are_no_change_of_certificates(
    users: Authority, proxies: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "policysched")
    certificate = ServingCertificate(ServingOptions(), datetime.now(UTC))
    first = users.certificate.read_text()
    for authorities, logged in ((first, 0), (first, 0), (proxies.certificate.read_text(), 1)):
        certificate.trust_clients(authorities, FrontProxy())
        certificate.refresh()
        assert caplog.messages == ["reloaded the certificates of the secure port"] * logged


async def test_published_proxies_count_where_no_flag_says_otherwise(users: Authority, proxies: Authority) -> None:
    options, asked = ServingOptions(), Asked()
    published = FrontProxy(proxies.certificate.read_text())
    async with open_port(asked.answer, options) as port:
        port.certificate.trust_clients(users.certificate.read_text(), published)
        port.certificate.refresh()
        assert (await asked.of(port, options, proxies.client("front-proxy", ()), ASKS_FOR_MASTER))[0] == 200
        assert (await asked.of(port, options, users.client("root", MASTERS)))[0] == 200
        port.certificate.trust_clients(users.certificate.read_text(), FrontProxy())
        port.certificate.refresh()
        with pytest.raises(aiohttp.ClientError):
            await asked.of(port, options, proxies.client("front-proxy", ()), ASKS_FOR_MASTER)
    flagged = ServingOptions(proxy_ca=users.certificate)
    certificate = ServingCertificate(flagged, datetime.now(UTC))
    certificate.trust_clients("", published)
    certificate.refresh()
    assert certificate.users.proxy.authorities == users.certificate.read_text()


def written(folder: Path, host: str) -> Pair:
    """Write a self-signed certificate of a name."""
    made = self_signed(host, datetime.now(UTC) - timedelta(hours=1))
    pair = folder / f"{host}.crt", folder / f"{host}.key"
    for path, content in zip(pair, made, strict=True):
        path.write_bytes(content)
    return pair


async def shown(port: Port, name: str) -> str:
    """Ask for a server of a name, and give the common name of the certificate that it shows."""
    _, writer = await asyncio.open_connection("127.0.0.1", port.port, ssl=client_tls(None), server_hostname=name)
    der = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    await writer.wait_closed()
    [common] = x509.load_der_x509_certificate(der).subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(common.value).partition("@")[0]


async def test_certificate_is_that_of_the_name_that_is_asked_for(tmp_path: Path) -> None:
    own, first, second = (written(tmp_path, host) for host in ("own", "first.example", "second.example"))
    named = ((*first, ()), (*second, ("*.example", "SECOND")), (*first, ("exact.example",)))
    options = ServingOptions(certificate=own[0], key=own[1], named=named)
    async with open_port(options=options) as port:
        wanted = {
            "first.example": "first.example",
            "exact.example": "first.example",
            "any.example": "second.example",
            "second": "second.example",
            "deeper.any.example": "own",
            "elsewhere": "own",
            "127.0.0.1": "own",
        }
        assert {name: await shown(port, name) for name in wanted} == wanted
        for old, new in zip(second, written(tmp_path, "third.example"), strict=True):
            new.replace(old)
        port.certificate.refresh()
        assert await shown(port, "any.example") == "third.example"
        assert await shown(port, "elsewhere") == "own"


async def test_clients_are_known_whatever_name_of_the_server_they_ask_for(tmp_path: Path, users: Authority) -> None:
    options = ServingOptions(named=((*written(tmp_path, "localhost"), ()),), client_ca=users.certificate)
    asked = Asked()
    async with open_port(asked.answer, options) as port:
        await asked.of(port, options, None)
        url = f"https://localhost:{port.port}/metrics"
        tls = client_tls(users.client("root", MASTERS))
        async with aiohttp.ClientSession() as session, session.get(url, ssl=tls) as answered:
            assert answered.status == 200


@pytest.mark.parametrize(
    ("proxy", "said"),
    [
        (FrontProxy(username_headers=(" ",)), "--requestheader-username-headers: a value is empty"),
        (FrontProxy(allowed_names=("",)), "--requestheader-allowed-names: a value is empty"),
        (FrontProxy(uid_headers=("x-uid",)), "must contain X-Remote-Uid"),
    ],
)
def test_headers_that_cannot_be_are_refused(proxy: FrontProxy, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        ServingOptions(proxy=proxy).check()


def test_named_certificates_that_cannot_be_used_end_the_start(tmp_path: Path) -> None:
    broken = tmp_path / "broken.crt"
    broken.write_text("nonsense")
    with pytest.raises(UsageError, match="cannot use the certificate of the secure port"):
        ServingCertificate(ServingOptions(named=((broken, broken, ()),)), datetime.now(UTC))
