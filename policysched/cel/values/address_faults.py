"""Error messages for invalid IP addresses, with the texts of Go's netip.

Source: the Go library's net/netip (ParseAddr).
"""

from __future__ import annotations

import ipaddress
import re
from typing import Final

from policysched.cel.values.quoting import quoted

_HEX: Final = re.compile(r"[0-9a-fA-F]*")
_ALL: Final = 16
"""Length of an IPv6 address. Units: bytes."""


def address_fault(text: str) -> str:
    """Return the error message for an invalid IP address."""
    first = next((character for character in text if character in ".:%"), "")
    if first == ".":
        return _v4_fault(text)
    if first == ":":
        return _v6_fault(text)
    return "missing IPv6 address" if first else "unable to parse IP"


def _at(what: str, rest: str) -> str:
    return f"{what} (at {quoted(rest)})"


def _v4_fault(text: str) -> str:
    value, length, fields = 0, 0, 0
    for place, character in enumerate(text):
        if character in "0123456789":
            if length == 1 and value == 0:
                return "IPv4 field has octet with leading zero"
            value, length = value * 10 + int(character), length + 1
            if value > 255:
                return "IPv4 field has value >255"
        elif character != ".":
            return _at("unexpected character", text[place:])
        elif place in {0, len(text) - 1} or text[place - 1] == ".":
            return _at("IPv4 field must have at least one digit", text[place:])
        elif fields == 3:
            return "IPv4 address too long"
        else:
            value, length, fields = 0, 0, fields + 1
    return "IPv4 address too short"


def _v6_fault(text: str) -> str:
    rest, percent, zone = text.partition("%")
    if percent and not zone:
        return "zone must be a non-empty string"
    ellipsis = rest.startswith("::")
    rest, read = rest[2 * ellipsis :], 0
    while rest and read < _ALL:
        digits = _HEX.match(rest)[0]  # type: ignore[index]
        fault = _group_fault(digits, rest)
        if fault:
            return fault
        behind = rest[len(digits) :]
        if behind.startswith("."):
            return _embedded_fault(rest, read, ellipsis=ellipsis)
        read += 2
        fault = _colon_fault(behind, ellipsis=ellipsis)
        if fault:
            return fault
        ellipsis = ellipsis or behind.startswith("::")
        rest = behind[2 if behind.startswith("::") else 1 :]
        if read == _ALL and behind:
            return _at("trailing garbage after address", rest)
    return _length_fault(read, ellipsis=ellipsis)


def _group_fault(digits: str, rest: str) -> str:
    if not digits:
        return _at("each colon-separated field must have at least one digit", rest)
    return _at("each group must have 4 or less digits", rest) if len(digits) > 4 else ""


def _colon_fault(behind: str, *, ellipsis: bool) -> str:
    if behind and behind[0] != ":":
        return _at("unexpected character, want colon", behind)
    if behind == ":":
        return _at("colon must be followed by more characters", behind)
    return _at("multiple :: in address", behind[1:]) if behind.startswith("::") and ellipsis else ""


def _length_fault(read: int, *, ellipsis: bool) -> str:
    if read < _ALL:
        return "" if ellipsis else "address string too short"
    return "the :: must expand to at least one field of zeros" if ellipsis else ""


def _embedded_fault(rest: str, read: int, *, ellipsis: bool) -> str:
    if not ellipsis and read != _ALL - 4:
        return _at("embedded IPv4 address must replace the final 2 fields of the address", rest)
    if read + 4 > _ALL:
        return _at("too many hex fields to fit an embedded IPv4 at the end of the address", rest)
    try:
        ipaddress.IPv4Address(rest)
    except ValueError:
        return _v4_fault(rest)
    return ""
