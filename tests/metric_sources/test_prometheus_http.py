"""The settings of a Prometheus server: which can be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from policysched.errors import UsageError
from policysched.metric_sources.prometheus_http import PrometheusClient, ServerSettings


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("", "is not an http or https URL; write it as http://prometheus.monitoring:9090"),
        ("prometheus:9090", "is not an http or https URL"),
        ("localhost", "is not an http or https URL"),
        ("ftp://prometheus", "is not an http or https URL"),
        ("http://", "is not an http or https URL|is not a URL"),
        ("http://a:b:c", "is not a URL"),
        ("http://a:99999999", "is not a URL"),
        ("http://me:secret@prometheus", "contains a user name or password; use --prometheus-token-file"),
        ("http://prometheus/?a=b", "has a query or fragment"),
        ("http://prometheus/#graph", "has a query or fragment"),
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
        (b"", "contains no token: it is empty"),
        (b" \n", "contains no token: it is empty"),
        (b"two words", "contains no token: it has more than one word"),
        (b"two\nlines", "contains no token: it has more than one word"),
        (b"\xff\xfe", "contains no token: it is not plain text"),
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
    with pytest.raises(UsageError, match=f"^--prometheus-ca-file: {path} contains no certificate in PEM format$"):
        PrometheusClient(ServerSettings("https://prometheus", ca_file=path))
    with pytest.raises(UsageError, match=r"needs an https URL, but --prometheus-url begins with http$"):
        PrometheusClient(ServerSettings("http://prometheus", ca_file=path))
