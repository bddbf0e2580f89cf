"""The certificate of the secure port: made, kept, given, rotated, broken."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509

from policysched.app.serving.options import ServingOptions
from policysched.app.serving.tls.certificates import ServingCertificate
from policysched.app.serving.tls.self_signed import self_signed
from policysched.errors import UsageError

NOW = datetime(2026, 1, 5, tzinfo=UTC)


def write_pair(folder: Path, host: str) -> ServingOptions:
    certificate, key = folder / "tls.crt", folder / "tls.key"
    made = self_signed(host, NOW)
    certificate.write_bytes(made[0])
    key.write_bytes(made[1])
    return ServingOptions(certificate=certificate, key=key)


def test_own_certificate_names_the_host_and_its_loopback_addresses() -> None:
    certificate = x509.load_pem_x509_certificate(self_signed("node-7", NOW)[0])
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["node-7", "localhost"]
    assert [str(one) for one in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1", "::1"]
    assert (certificate.not_valid_before_utc < NOW) and (certificate.not_valid_after_utc.year == 2027)


def test_own_certificate_is_kept_in_a_folder_that_only_its_owner_reads(tmp_path: Path) -> None:
    options = ServingOptions(certificate_folder=tmp_path / "certs")
    ServingCertificate(options, NOW)
    files = {path.name: path.read_bytes() for path in (tmp_path / "certs").iterdir()}
    assert set(files) == {"policysched.crt", "policysched.key"}
    assert (tmp_path / "certs" / "policysched.key").stat().st_mode & 0o777 == 0o600
    ServingCertificate(options, NOW)
    assert {path.name: path.read_bytes() for path in (tmp_path / "certs").iterdir()} == files


def test_old_tls_versions_are_not_spoken(tmp_path: Path) -> None:
    context = ServingCertificate(write_pair(tmp_path, "a"), NOW).context
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert context.verify_mode is ssl.CERT_NONE
    assert context.num_tickets == 0 and context.options & ssl.OP_NO_TICKET


def test_rotated_certificate_is_used_and_a_broken_one_is_not(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    options = write_pair(tmp_path, "a")
    certificate = ServingCertificate(options, NOW)
    first = certificate.context
    certificate.refresh()
    assert certificate.context is first
    assert options.key is not None
    options.key.write_bytes(self_signed("b", NOW)[1])
    for _ in range(3):
        certificate.refresh()
    assert certificate.context is first
    assert [one for one in caplog.messages if one.startswith("cannot use the changed certificate")] == [
        caplog.messages[0]
    ]
    write_pair(tmp_path, "b")
    certificate.refresh()
    assert certificate.context is not first


def test_clients_are_known_by_their_certificates_where_an_authority_is_given(tmp_path: Path) -> None:
    pair = write_pair(tmp_path, "a")
    options = ServingOptions(certificate=pair.certificate, key=pair.key, client_ca=pair.certificate)
    context = ServingCertificate(options, NOW).context
    assert context.verify_mode is ssl.CERT_OPTIONAL
    assert len(context.get_ca_certs()) == 1


@pytest.mark.parametrize("broken", ["tls.crt", "tls.key"])
def test_files_that_cannot_be_used_end_the_start(tmp_path: Path, broken: str) -> None:
    options = write_pair(tmp_path, "a")
    (tmp_path / broken).write_text("nonsense")
    with pytest.raises(UsageError, match="cannot use the certificate of the secure port"):
        ServingCertificate(options, NOW)
    (tmp_path / broken).unlink()
    with pytest.raises(UsageError, match=rf'cannot read "{tmp_path}/{broken}": No such file or directory$'):
        ServingCertificate(options, NOW)


def test_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="--cert-dir"):
        ServingCertificate(ServingOptions(certificate_folder=tmp_path / "file"), NOW)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (ServingOptions(bind_address="here"), '--bind-address: "here" is not an IP address'),
        (ServingOptions(certificate=Path("a")), "must be used together"),
        (ServingOptions(key=Path("a")), "must be used together"),
        (ServingOptions(always_allowed=("healthz",)), '"healthz" is not a path'),
        (ServingOptions(always_allowed=("/*/x",)), "is not a path"),
    ],
)
def test_flags_that_do_not_go_together_are_refused(options: ServingOptions, said: str) -> None:
    with pytest.raises(UsageError, match=said.replace("*", r"\*")):
        options.check()
