"""Which proxy the environment names: cases whose answers are those of Go's httpproxy package."""

from __future__ import annotations

import pytest
from yarl import URL

from policysched.errors import ConnectionProblemError
from policysched.proxies import proxy_for

P, S = "http://p:1", "http://s:2"
BOTH = {"HTTP_PROXY": P, "HTTPS_PROXY": S}
CASES: list[tuple[str, dict[str, str], str | None]] = [
    ("http://x", {}, None),
    ("http://x", BOTH, P),
    ("https://x", BOTH, S),
    ("https://x", {"HTTP_PROXY": P}, None),
    ("https://x", {"https_proxy": S}, S),
    ("https://x", {"HTTPS_PROXY": S, "https_proxy": P}, S),
    ("https://x", {"HTTPS_PROXY": "s:2"}, S),
    ("https://x", {"HTTPS_PROXY": "s"}, "http://s"),
    ("https://x", {"HTTPS_PROXY": "https://u:w@s:2"}, "https://u:w@s:2"),
    ("http://x", {"HTTP_PROXY": P, "REQUEST_METHOD": "GET"}, None),
    ("https://x", BOTH | {"REQUEST_METHOD": "GET"}, S),
    ("http://localhost:8", BOTH, None),
    ("https://127.0.0.2", BOTH, None),
    ("https://[::1]:6443", BOTH, None),
    ("https://x.localhost", BOTH, S),
    *(
        (f"https://{host}", BOTH | {"NO_PROXY": exempt}, None if straight else S)
        for host, exempt, straight in (
            ("x.y.z", "*", True),
            ("x.y.z", "a, y.z ,b", True),
            ("y.z", "y.z", True),
            ("xy.z", "y.z", False),
            ("y.z", ".y.z", False),
            ("x.y.z", ".y.z", True),
            ("y.z", "*.y.z", False),
            ("x.y.z", "*.y.z", True),
            ("X.Y.Z", "y.Z", True),
            ("y.z", "y.z:443", True),
            ("y.z", "y.z:6443", False),
            ("y.z:6443", "y.z:6443", True),
            ("10.0.0.1", "10.0.0.1", True),
            ("10.0.0.1:6443", "10.0.0.1:443", False),
            ("10.0.0.1", "10.0.0.0/8", True),
            ("11.0.0.1", "10.0.0.0/8", False),
            ("10.0.0.1", "10.0.0.7/8", True),
            ("x.y.z", "10.0.0.0/8,", False),
            ("[fd00::1]", "fd00::/8", True),
            ("[fd00::1]:6443", "[fd00::1]:6443", True),
            ("[fd00::1]", "fd00::1", True),
            ("[fd00::1]", "[fd00::1]:443", True),
            ("10.0.0.1", "0.0.1", False),
            ("x.y.z", "y.z/8", False),
            ("x.y.z", ":443", False),
        )
    ),
]


@pytest.mark.parametrize(("url", "environment", "proxy"), CASES)
def test_proxy_is_the_one_that_go_would_use(url: str, environment: dict[str, str], proxy: str | None) -> None:
    assert proxy_for(URL(url), environment) == proxy


@pytest.mark.parametrize("proxy", ["socks5://s:2", "http://[::1", "http://"])
def test_proxy_that_cannot_be_used_is_refused_where_it_is_needed(proxy: str) -> None:
    environment = {"HTTPS_PROXY": proxy}
    with pytest.raises(ConnectionProblemError, match=r"HTTPS_PROXY is not (an|the) "):
        proxy_for(URL("https://x"), environment)
    assert proxy_for(URL("https://localhost"), environment) is None
