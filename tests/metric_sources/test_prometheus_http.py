"""The settings of a Prometheus server: which can be used, and TLS with an authority of one's own."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from policysched.errors import UsageError
from policysched.metric_sources.problems import QueryError, QueryOutcome
from policysched.metric_sources.prometheus_http import PrometheusClient, ServerSettings
from tests.controlplane.certificates import Authority
from tests.metric_sources.fake_prometheus import fake_prometheus


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("", "is no http or https URL: give the server's address, as http://prometheus.monitoring:9090"),
        ("prometheus:9090", "is no http or https URL"),
        ("localhost", "is no http or https URL"),
        ("ftp://prometheus", "is no http or https URL"),
        ("http://", "is no http or https URL|is no URL"),
        ("http://a:b:c", "is no URL"),
        ("http://a:99999999", "is no URL"),
        ("http://me:secret@prometheus", "has a name or password in it: use --prometheus-token-file"),
        ("http://prometheus/?a=b", "has a part behind"),
        ("http://prometheus/#graph", "has a part behind"),
    ],
)
def test_a_url_that_is_none_is_a_usage_error(url: str, error: str) -> None:
    with pytest.raises(UsageError, match=error) as raised:
        PrometheusClient(ServerSettings(url))
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (None, "cannot be read: no such file or directory"),
        (b"", "holds no token: it is empty"),
        (b" \n", "holds no token: it is empty"),
        (b"two words", "holds no token: it has more than one word"),
        (b"two\nlines", "holds no token: it has more than one word"),
        (b"\xff\xfe", "holds no token: it is not plain text"),
    ],
)
def test_a_token_file_without_a_token_is_a_usage_error(tmp_path: Path, data: bytes | None, error: str) -> None:
    path = tmp_path / "token"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(UsageError, match=f"^--prometheus-token-file: {path} {error}$"):
        PrometheusClient(ServerSettings("http://prometheus", path))


def test_an_authority_that_is_none_is_a_usage_error(tmp_path: Path) -> None:
    path = tmp_path / "ca.pem"
    with pytest.raises(UsageError, match=f"^--prometheus-ca-file: {path} cannot be read: no such file or directory$"):
        PrometheusClient(ServerSettings("https://prometheus", ca_file=path))
    path.write_text("no certificate")
    with pytest.raises(UsageError, match=f"^--prometheus-ca-file: {path} holds no certificate in PEM form$"):
        PrometheusClient(ServerSettings("https://prometheus", ca_file=path))
    with pytest.raises(UsageError, match=r"is for https, but --prometheus-url begins with http$"):
        PrometheusClient(ServerSettings("http://prometheus", ca_file=path))


async def test_an_authority_of_ones_own_is_trusted_and_no_other_server(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(tmp_path / "server.crt", tmp_path / "server.key")
    async with fake_prometheus(tls) as fake:
        trusting = PrometheusClient(ServerSettings(fake.url, ca_file=authority.certificate))
        assert (await trusting.ask("load")).status == "success"
        await trusting.close()
        strict = PrometheusClient(ServerSettings(fake.url))
        with pytest.raises(QueryError, match="has a certificate that is not trusted: ") as raised:
            await strict.ask("load")
        await strict.close()
    assert raised.value.outcome is QueryOutcome.TLS
