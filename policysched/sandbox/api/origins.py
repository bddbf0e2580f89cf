"""Who may ask: programs of this machine, no web page of another site.

The sandbox has no authentication and listens on loopback, which keeps other machines out but no browser: a page may
send requests to any address, and may point a name of its own at 127.0.0.1. Browsers say in `Origin` and
`Sec-Fetch-Site` which page asks and in `Host` by which name, and pages can change none of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from policysched.sandbox.objects.errors import StatusError

NAMES: Final = ("127.0.0.1", "localhost", "[::1]")
_HTTP: Final = 80
_OWN_SITES: Final = frozenset({"same-origin", "none"})


def check_origin(headers: Mapping[str, str], port: int) -> None:
    """Refuse a request that a foreign page sent, or that names another host than this machine.

    Args:
        headers: The request's.
        port: Where the sandbox listens.

    Raises:
        ApiError: 403.
    """
    hosts = {f"{name}:{port}" for name in NAMES} | (set(NAMES) if port == _HTTP else set())
    if headers.get("Host", "").lower() not in hosts:
        raise _refused("Host", headers.get("Host", ""), port)
    origin = headers.get("Origin")
    if origin is not None and origin.lower() not in {f"http://{host}" for host in hosts}:
        raise _refused("Origin", origin, port)
    site = headers.get("Sec-Fetch-Site", "none")
    if site.lower() not in _OWN_SITES:
        raise _refused("Sec-Fetch-Site", site, port)


def _refused(header: str, value: str, port: int) -> StatusError:
    return StatusError(403, f"{header} {value[:200]!a} is refused: the sandbox answers programs at 127.0.0.1:{port}")
