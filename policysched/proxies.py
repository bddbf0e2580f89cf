"""Choice of the proxy for a request from HTTP_PROXY, HTTPS_PROXY and NO_PROXY, which are read as Go reads them.

The HTTP library has a reading of its own, which takes passwords from ~/.netrc besides and knows no networks in
NO_PROXY. A leaf: it imports nothing of ours but errors.

Source: golang.org/x/net/http/httpproxy (Config.ProxyFunc), net/http (ProxyFromEnvironment).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final

from yarl import URL

from policysched.errors import ConnectionProblemError

Address = IPv4Address | IPv6Address
USABLE: Final = frozenset(("http", "https"))


def proxy_for(url: URL, environment: Mapping[str, str]) -> str | None:
    """Return the proxy for requests to a URL, None for a direct connection.

    Raises:
        ConnectionProblemError: there is one that cannot be used.
    """
    name = "HTTPS_PROXY" if url.scheme == "https" else "HTTP_PROXY"
    text = _either(environment, name)
    if not text or (name == "HTTP_PROXY" and environment.get("REQUEST_METHOD")) or _is_exempt(url, environment):
        return None
    try:
        proxy = URL(text if "://" in text else f"http://{text}")
    except ValueError as error:
        raise ConnectionProblemError(f"{name} is not the URL of a proxy") from error
    if proxy.scheme not in USABLE or not proxy.host:
        raise ConnectionProblemError(f"{name} is not an http or https URL of a proxy")
    return str(proxy)


def _either(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name) or environment.get(name.lower()) or ""


def _is_exempt(url: URL, environment: Mapping[str, str]) -> bool:
    """Return whether requests to a URL use no proxy: requests to this machine and to hosts that NO_PROXY lists."""
    host, port = (url.host or "").lower(), str(url.port or "")
    address = _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    return any(_covers(one, host, port, address) for one in _exceptions(environment))


def _exceptions(environment: Mapping[str, str]) -> Iterator[str]:
    stripped = (one.strip().lower() for one in _either(environment, "NO_PROXY").split(","))
    return (one for one in stripped if one)


def _covers(exception: str, host: str, port: str, address: Address | None) -> bool:
    """Return whether an entry of NO_PROXY (`*`, a network, an address or a domain) matches a host."""
    if exception == "*":
        return True
    if "/" in exception:
        return address is not None and _in_network(address, exception)
    name, only = _split_port(exception)
    if only not in ("", port):
        return False
    named = _address(name)
    if named is not None or address is not None:
        return named == address
    if name.startswith("*."):
        return host.endswith(name[1:])
    return bool(name) and (host.endswith(name) if name.startswith(".") else host == name or host.endswith(f".{name}"))


def _in_network(address: Address, text: str) -> bool:
    try:
        return address in ip_network(text, strict=False)
    except ValueError:
        return False


def _split_port(text: str) -> tuple[str, str]:
    if text.startswith("["):
        name, _, rest = text[1:].partition("]")
        return name, rest.removeprefix(":")
    name, _, port = text.partition(":")
    return (text, "") if ":" in port else (name, port)


def _address(host: str) -> Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None
