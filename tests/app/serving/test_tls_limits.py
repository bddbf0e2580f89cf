"""Versions, cipher suites and curves of TLS, by Go's names."""

from __future__ import annotations

import re
import ssl
import subprocess
from datetime import UTC, datetime, timedelta
from functools import cache

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from policysched.app.serving.options import ServingOptions
from policysched.app.serving.tls.certificates import server_context
from policysched.app.serving.tls.self_signed import self_signed
from policysched.app.serving.tls_limits import TlsLimits
from policysched.errors import UsageError
from tests.controlplane.build import binary

TLS_13 = {"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"}


def limited(limits: TlsLimits) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    limits.apply(context)
    return context


def test_every_suite_that_kube_scheduler_prefers_can_be_had() -> None:
    told = subprocess.run([binary("kube-scheduler"), "--help"], capture_output=True, text=True, check=True).stdout
    preferred = re.search(r"Preferred values: (.*)\.", told)
    assert preferred is not None
    for suite in set(preferred[1].split(", ")) - TLS_13:
        [name] = {one["name"] for one in limited(TlsLimits(suites=(suite,))).get_ciphers()} - TLS_13
        exchange, cipher = suite.removeprefix("TLS_").split("_WITH_")
        assert name.startswith(exchange.replace("_", "-"))
        assert ("AES128" in name, "AES256" in name) == ("AES_128" in cipher, "AES_256" in cipher)
        assert (name.endswith("-SHA"), "GCM" in name) == (cipher.endswith("_SHA"), "GCM" in cipher)


def test_suites_of_tls_13_limit_nothing() -> None:
    assert len(limited(TlsLimits(suites=tuple(TLS_13))).get_ciphers()) > 3


@pytest.mark.parametrize("suite", ["TLS_RSA_WITH_RC4_128_SHA", "nonsense", "TLS_RSA_WITH_AES_128_CBC_SHA:ALL"])
def test_suites_that_cannot_be_had_end_the_start(suite: str) -> None:
    with pytest.raises(UsageError, match=f'--tls-cipher-suites: "{suite}" is not a supported cipher suite'):
        ServingOptions(tls=TlsLimits(suites=(suite,))).check()


@pytest.mark.parametrize(
    ("lowest", "version"),
    [
        ("VersionTLS10", ssl.TLSVersion.TLSv1_2),
        ("VersionTLS12", ssl.TLSVersion.TLSv1_2),
        ("VersionTLS13", ssl.TLSVersion.TLSv1_3),
    ],
)
def test_the_lowest_version_is_at_least_12(lowest: str, version: ssl.TLSVersion) -> None:
    assert limited(TlsLimits(lowest)).minimum_version == version


CURVES = {23: "prime256v1", 24: "secp384r1", 25: "secp521r1", 29: "X25519"}


@cache
def rsa_pair() -> tuple[bytes, bytes]:
    """Make a certificate without a curve of its own, which clients of TLS 1.2 would have to know."""
    key = rsa.generate_private_key(65537, 2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a")])
    begin = datetime(2026, 1, 5, tzinfo=UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), 1, begin, begin + timedelta(days=9))
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return made.sign(key, SHA256()).public_bytes(Encoding.PEM), private


def speaks(server: ssl.SSLContext, curve: str, version: ssl.TLSVersion) -> bool:
    """Whether a client that has one curve, or without a name all, comes to terms with a server."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    client.minimum_version = client.maximum_version = version
    if curve:
        client.set_ecdh_curve(curve)
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [client.wrap_bio(back, there), server.wrap_bio(there, back, server_side=True)]
    done: set[int] = set()
    for _ in range(6):
        for place, side in enumerate(sides):
            try:
                side.do_handshake()
                done.add(place)
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLError:
                return False
    return len(done) == len(sides)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize(("curve", "allowed"), [(curve, allowed) for curve in CURVES for allowed in CURVES])
def test_a_single_curve_is_the_only_one_spoken(curve: int, allowed: int, version: ssl.TLSVersion) -> None:
    server = server_context(rsa_pair(), limits=TlsLimits(curves=(allowed,)))
    assert speaks(server, CURVES[curve], version) is (curve == allowed)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("allowed", CURVES)
def test_a_certificate_of_another_curve_is_shown_all_the_same(allowed: int, version: ssl.TLSVersion) -> None:
    server = server_context(self_signed("a", datetime.now(UTC)), limits=TlsLimits(curves=(allowed,)))
    assert speaks(server, "", version)


def test_of_several_curves_openssl_chooses_and_the_log_says_so(caplog: pytest.LogCaptureFixture) -> None:
    limits = TlsLimits(curves=(23, 29))
    ServingOptions(tls=limits).check()
    assert (
        "--tls-curve-preferences is ignored, as only one curve can be set and OpenSSL supports several: 23 (prime256v1)"
        in caplog.text
    )
    server = server_context(self_signed("a", datetime.now(UTC)), limits=limits)
    assert all(speaks(server, curve, ssl.TLSVersion.TLSv1_3) for curve in CURVES.values())


def test_a_curve_that_openssl_lacks_is_left_out_beside_one_that_it_has(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("policysched.app.serving.tls_limits._is_supported", lambda curve: curve in CURVES.values())
    ServingOptions(tls=TlsLimits(curves=(4588, 29))).check()
    assert "--tls-curve-preferences: OpenSSL supports only 29 (X25519)" in caplog.text
    server = server_context(self_signed("a", datetime.now(UTC)), limits=TlsLimits(curves=(4588, 29)))
    assert [curve for curve in CURVES.values() if speaks(server, curve, ssl.TLSVersion.TLSv1_3)] == ["X25519"]
    with pytest.raises(UsageError, match=r"OpenSSL .* supports none of 4588 \(X25519MLKEM768\)"):
        ServingOptions(tls=TlsLimits(curves=(4588,))).check()


@pytest.mark.parametrize(
    ("curves", "why"),
    [((99,), "99 is not a curve of Go"), ((0,), "0 is not a curve"), ((29, 29), "29 is listed twice")],
)
def test_curves_that_kube_scheduler_refuses_end_the_start(curves: tuple[int, ...], why: str) -> None:
    with pytest.raises(UsageError, match=f"--tls-curve-preferences: {why}"):
        ServingOptions(tls=TlsLimits(curves=curves)).check()
