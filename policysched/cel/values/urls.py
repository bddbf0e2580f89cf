"""Parses URLs as Go's net/url does.

Source: the Go library's net/url (ParseRequestURI, Parse, Query, EscapedPath, String).
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, replace
from typing import Final

from policysched.cel.values.address_faults import address_fault
from policysched.cel.values.quoting import quoted

_HEX: Final = frozenset("0123456789abcdefABCDEF")
_UNRESERVED: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~")
_IN_PATH: Final = _UNRESERVED | frozenset("$&+/:=@,;") - frozenset(",;") | frozenset(";,")
_VALID_IN_PATH: Final = _UNRESERVED | frozenset("!'()*[]$&+,/:;=@%")
_IN_FRAGMENT: Final = _UNRESERVED | frozenset("!$&()*+,/:;=?@")
_IN_HOST: Final = _UNRESERVED | frozenset("!$&'()*+,;=:[]<>\"")
_IN_USER: Final = _UNRESERVED | frozenset("$&+,;=")
_VALID_IN_FRAGMENT: Final = _IN_FRAGMENT | frozenset("'[]%")
_PORT: Final = re.compile(r"(?::[0-9]*)?")
_ONE_COLON: Final = frozenset({"http", "https"})
"""URL schemes whose hosts can contain only the port's colon, since Go 1.26."""
_USER: Final = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*")


class UrlError(ValueError):
    """Raised if a URL is invalid; has the message of Go."""


@dataclass(frozen=True, slots=True)
class Url:
    """The parts of a URL; path and fragment are decoded, with their original text if that differs."""

    scheme: str = ""
    opaque: str = ""
    user: str | None = None
    host: str = ""
    omits_host: bool = False
    """Whether the path directly follows the scheme, without a host."""
    path: str = ""
    raw_path: str = ""
    force_query: bool = False
    query: str = ""
    fragment: str = ""
    raw_fragment: str = ""

    def escaped_path(self) -> str:
        """Return the path of the URL, encoded."""
        if self.raw_path and _VALID_IN_PATH.issuperset(self.raw_path):
            return self.raw_path
        return "*" if self.path == "*" else _escaped(self.path, _IN_PATH)

    def hostname(self) -> str:
        """Return the host without its port and brackets."""
        host = _split_port(self.host)[0]
        return host[1:-1] if host.startswith("[") and host.endswith("]") else host

    def port(self) -> str:
        """Return the port without its colon."""
        return _split_port(self.host)[1]

    def queries(self) -> dict[str, list[str]]:
        """Return the query parameters: values by key; invalid parts are skipped."""
        found: dict[str, list[str]] = {}
        for part in self.query.split("&"):
            if not part or ";" in part:
                continue
            key, _, value = part.partition("=")
            try:
                found.setdefault(_unescaped(key.replace("+", " ")), []).append(_unescaped(value.replace("+", " ")))
            except UrlError:
                continue
        return found

    def text(self) -> str:
        """Return the URL as text."""
        said = f"{self.scheme}:" if self.scheme else ""
        if self.opaque:
            said += self.opaque
        else:
            if self.scheme or self.host or self.user is not None:
                if self.host or self.user is not None or (self.path and not self.omits_host):
                    said += "//"
                said += "" if self.user is None else f"{self.user}@"
                said += _escaped(self.host, _IN_HOST)
            path = self.escaped_path()
            said += "/" if path and not path.startswith("/") and self.host else ""
            said += "./" if not said and ":" in path.split("/", 1)[0] else ""
            said += path
        said += f"?{self.query}" if self.force_query or self.query else ""
        if not self.fragment:
            return said
        kept = self.raw_fragment and _VALID_IN_FRAGMENT.issuperset(self.raw_fragment)
        return said + "#" + (self.raw_fragment if kept else _escaped(self.fragment, _IN_FRAGMENT))


def parse_request_uri(text: str) -> Url:
    """Return the parsed form of an absolute URI or path.

    Raises:
        UrlError: the text is invalid.
    """
    return _named(text, text, is_request=True)


def parse_url(text: str) -> Url:
    """Return the parsed form of a URL with a fragment.

    Raises:
        UrlError: the text is invalid.
    """
    rest, _, fragment = text.partition("#")
    found = _named(rest, rest, is_request=False)
    if not fragment:
        return found
    try:
        decoded = _unescaped(fragment)
    except UrlError as error:
        raise UrlError(f"parse {quoted(text)}: {error}") from None
    return replace(found, fragment=decoded, raw_fragment=fragment)


def _named(text: str, whole: str, *, is_request: bool) -> Url:
    try:
        return _parsed(text, is_request=is_request)
    except UrlError as error:
        raise UrlError(f"parse {quoted(whole)}: {error}") from None


def _parsed(text: str, *, is_request: bool) -> Url:
    if any(character < " " or character == "\x7f" for character in text):
        raise UrlError("net/url: invalid control character in URL")
    if not text and is_request:
        raise UrlError("empty url")
    if text == "*":
        return Url(path="*")
    scheme, rest = _scheme(text)
    force = rest.endswith("?") and rest.count("?") == 1
    rest, _, query = (rest[:-1], "", "") if force else rest.partition("?")
    if not rest.startswith("/"):
        if scheme:
            return Url(scheme, opaque=rest, force_query=force, query=query)
        _check_relative(rest, is_request=is_request)
    user, host = None, ""
    if rest.startswith("//") and (scheme or not (is_request or rest.startswith("///"))):
        authority, slash, path = rest[2:].partition("/")
        rest = slash + path
        user, host = _authority(scheme, authority)
    path = _unescaped(rest)
    omits_host = bool(scheme) and user is None and not host and not text[len(scheme) + 1 :].startswith("//")
    raw = "" if rest == _escaped(path, _IN_PATH) else rest
    return Url(scheme, "", user, host, omits_host, path, raw, force, query)


def _check_relative(text: str, *, is_request: bool) -> None:
    if is_request:
        raise UrlError("invalid URI for request")
    if ":" in text.split("/", 1)[0]:
        raise UrlError("first path segment in URL cannot contain colon")


def _scheme(text: str) -> tuple[str, str]:
    for place, character in enumerate(text):
        if character.isascii() and character.isalpha():
            continue
        if character in "0123456789+-.":
            if place == 0:
                return "", text
        elif character == ":":
            if place == 0:
                raise UrlError("missing protocol scheme")
            return text[:place].lower(), text[place + 1 :]
        else:
            return "", text
    return "", text


def _authority(scheme: str, text: str) -> tuple[str | None, str]:
    user, at, host = text.rpartition("@")
    host = _host(scheme, host)
    if not at:
        return None, host
    if not _USER.fullmatch(user):
        raise UrlError("net/url: invalid userinfo")
    name, colon, password = user.partition(":")
    said = _escaped(_unescaped(name), _IN_USER)
    return said + (f":{_escaped(_unescaped(password), _IN_USER)}" if colon else ""), host


def _host(scheme: str, text: str) -> str:
    bracket = text.rfind("[")
    if bracket > 0:
        raise UrlError("invalid IP-literal")
    if bracket == 0:
        return _literal(text)
    colon = text.find(":") if scheme in _ONE_COLON else text.rfind(":")
    if colon >= 0:
        _check_port(text[colon:])
    return _unescaped(text, in_host=True)


def _literal(text: str) -> str:
    end = text.rfind("]")
    if end < 0:
        raise UrlError("missing ']' in host")
    _check_port(text[end + 1 :])
    name, percent, zone = text[1:end].partition("%25")
    address = _unescaped(name, in_host=True) + (_unescaped(percent + zone, in_zone=True) if percent else "")
    fault = "" if _is_address(address) else address_fault(address)
    if fault:
        raise UrlError(f"invalid host: ParseAddr({quoted(address)}): {fault}")
    if ":" not in address:
        raise UrlError("invalid IP-literal")
    return f"[{address}]{text[end + 1 :]}"


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _check_port(text: str) -> None:
    if not _PORT.fullmatch(text):
        raise UrlError(f"invalid port {quoted(text)} after host")


def _split_port(host: str) -> tuple[str, str]:
    colon = host.rfind(":")
    if colon >= 0 and _PORT.fullmatch(host[colon:]):
        return host[:colon], host[colon + 1 :]
    return host, ""


def _unescaped(text: str, *, in_host: bool = False, in_zone: bool = False) -> str:
    data, at = bytearray(), 0
    while at < len(text):
        character = text[at]
        if character == "%":
            code = text[at + 1 : at + 3]
            if len(code) < 2 or not _HEX.issuperset(code):
                raise UrlError(f"invalid URL escape {quoted(_bytes(text[at : at + 3]))}")
            value = int(code, 16)
            if in_host and value < 0x80 and code != "25":
                raise UrlError(f"invalid URL escape {quoted(text[at : at + 3])}")
            if in_zone and code != "25" and value != ord(" ") and chr(value) not in _IN_HOST:
                raise UrlError(f"invalid URL escape {quoted(text[at : at + 3])}")
            data.append(value)
            at += 3
            continue
        if (in_host or in_zone) and character.isascii() and character not in _IN_HOST:
            raise UrlError(f"invalid character {quoted(character)} in host name")
        data += character.encode(errors="surrogatepass")
        at += 1
    return data.decode(errors="surrogateescape")


def _bytes(text: str) -> str:
    return text.encode(errors="surrogateescape")[:3].decode(errors="surrogateescape")


def _escaped(text: str, allowed: frozenset[str]) -> str:
    return "".join(
        character
        if character in allowed
        else "".join(f"%{byte:02X}" for byte in character.encode(errors="surrogateescape"))
        for character in text
    )
