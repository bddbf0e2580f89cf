"""The address of the secure port: loopback where the API server is, unless a flag names another."""

from __future__ import annotations

import pytest

from policysched.app.serving.options import ServingOptions
from policysched.app.serving.thread import listen
from tests.app.serving.ports import free_port

ALL = "0.0.0.0"  # noqa: S104 - as kube-scheduler


@pytest.mark.parametrize(
    ("server", "address"),
    [
        ("https://127.0.0.1:6443", "127.0.0.1"),
        ("https://127.8.0.1", "127.0.0.1"),
        ("http://localhost:8080/prefix", "127.0.0.1"),
        ("https://[::1]:6443", "::1"),
        ("https://10.0.0.1:6443", ALL),
        ("https://[fd00::1]:6443", ALL),
        ("https://localhost.example.com", ALL),
        ("https://kubernetes.default.svc", ALL),
    ],
)
def test_default_address_follows_the_api_server(server: str, address: str) -> None:
    assert ServingOptions().near(server).bind_address == address


@pytest.mark.parametrize("address", [ALL, "::", "192.0.2.1"])
def test_address_of_the_flag_wins(address: str) -> None:
    assert ServingOptions(bind_address=address).near("https://127.0.0.1:6443").bind_address == address


def test_port_is_bound_to_the_address() -> None:
    listener = listen(ServingOptions(port=free_port()).near("https://127.0.0.1:6443"))
    assert listener is not None
    with listener:
        assert listener.getsockname()[0] == "127.0.0.1"
