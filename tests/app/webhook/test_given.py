"""The webhook's own certificate: what is logged of its dates and names."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from policysched.app.serving.options import ServingOptions
from policysched.app.webhook.given import GivenCertificate, certificate_problems
from policysched.errors import UsageError
from tests.app.webhook.test_keeper import BEGIN, Clock, self_signed

KEY = ec.generate_private_key(ec.SECP256R1())
NAME = "policysched-webhook.kube-system.svc"
DAY = timedelta(days=1)


def made(names: tuple[str, ...] = (NAME,), begin: datetime = BEGIN, days: float = 100) -> tuple[bytes, bytes]:
    extensions = [x509.SubjectAlternativeName([x509.DNSName(one) for one in names])] if names else []
    return self_signed(KEY, begin, begin + days * DAY, *extensions)


def problems(pem: bytes, now: datetime = BEGIN) -> list[str]:
    return list(certificate_problems(pem, NAME, now))


UNNAMED = f'does not contain the name "{NAME}"; API servers cannot call the webhook through its Service'


@pytest.mark.parametrize(
    ("names", "is_found"),
    [
        ((NAME,), True),
        (("a", NAME.upper()), True),
        (("*.kube-system.svc",), True),
        ((), False),
        (("policysched-webhook", "*.svc", "policysched-webhook.other.svc"), False),
    ],
)
def test_name_of_the_service_is_looked_for(names: tuple[str, ...], is_found: bool) -> None:
    assert problems(made(names)[0]) == ([] if is_found else [UNNAMED])


@pytest.mark.parametrize(
    ("days", "after", "problem"),
    [
        (100, 0, []),
        (100, 89, []),
        (100, 91, ["expires at 2026-04-11 00:00:00Z"]),
        (3650, 3619, []),
        (3650, 3621, ["expires at 2035-12-30 00:00:00Z"]),
        (1, 0.5, []),
        (1, 0.95, ["expires at 2026-01-02 00:00:00Z"]),
        (100, 101, ["expired at 2026-04-11 00:00:00Z; API servers reject it"]),
        (100, -1, ["is not valid before 2026-01-01 00:00:00Z; API servers reject it"]),
    ],
)
def test_dates_are_looked_at(days: float, after: float, problem: list[str]) -> None:
    assert problems(made(days=days)[0], BEGIN + after * DAY) == problem


def test_problems_of_files_are_logged_once_and_again_with_other_files(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    files = ServingOptions(certificate=tmp_path / "tls.crt", key=tmp_path / "tls.key")
    clock = Clock()

    def write(pair: tuple[bytes, bytes]) -> None:
        for path, text in zip((tmp_path / "tls.crt", tmp_path / "tls.key"), pair, strict=True):
            path.write_bytes(text)

    def logged() -> list[str]:
        found = [one.getMessage() for one in caplog.records]
        caplog.clear()
        return found

    write(made(names=()))
    given = GivenCertificate(files, NAME, clock)
    given.refresh()
    assert logged() == [f'certificate "{tmp_path}/tls.crt" {UNNAMED}']
    clock.at += 95 * DAY
    given.refresh()
    given.refresh()
    assert logged() == [f'certificate "{tmp_path}/tls.crt" expires at 2026-04-11 00:00:00Z']
    before = given.context
    write(made(begin=clock.at))
    given.refresh()
    assert logged() == ["reloaded the certificates of the secure port"]
    assert given.context is not before


def test_key_of_another_certificate_ends_the_start_in_words(tmp_path: Path) -> None:
    other = ec.generate_private_key(ec.SECP256R1())
    (tmp_path / "tls.crt").write_bytes(made()[0])
    (tmp_path / "tls.key").write_bytes(self_signed(other, BEGIN, BEGIN + DAY)[1])
    files = ServingOptions(certificate=tmp_path / "tls.crt", key=tmp_path / "tls.key")
    with pytest.raises(UsageError, match=r"the secure port: the private key does not match the certificate$"):
        GivenCertificate(files, NAME, Clock())


def test_certificate_that_only_the_tls_library_reads_has_no_problem() -> None:
    assert problems(b"no certificate") == []
