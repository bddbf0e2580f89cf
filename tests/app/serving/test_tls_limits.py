"""Versions and cipher suites of TLS, by Go's names."""

from __future__ import annotations

import re
import ssl
import subprocess

import pytest

from policysched.app.serving.options import ServingOptions
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
    with pytest.raises(UsageError, match=f'--tls-cipher-suites: "{suite}" is no suite that can be had here'):
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
