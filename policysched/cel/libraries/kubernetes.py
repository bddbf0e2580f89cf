"""CEL functions of Kubernetes: quantities, versions, addresses, URLs and named formats.

Source: k8s.io/apiserver v0.36 pkg/cel/library; github.com/blang/semver v4; the Go library's net/netip;
k8s.io/apimachinery v0.36 pkg/util/validation; k8s.io/kube-openapi pkg/validation/strfmt.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from typing import Any, Final

from policysched.cel.libraries.formats import FORMATS
from policysched.cel.values.address_faults import address_fault
from policysched.cel.values.kubernetes import Address, CelQuantity, Format, Locator, Prefix, Semver
from policysched.cel.values.quoting import quoted
from policysched.cel.values.scalars import INT_MAX, INT_MIN, NONE, UINT_MAX, Error, Map, Optional
from policysched.cel.values.urls import UrlError, parse_request_uri, parse_url
from policysched.model import quantity as amounts

_ALPHANUMERIC: Final = re.compile(r"[0-9A-Za-z-]*")
_NUMERIC: Final = re.compile(r"[0-9]*")
_BITS: Final = re.compile(r"0|[1-9][0-9]{0,17}")


# Quantities


def _quantity(text: str) -> Any:
    if text != text.strip():
        return Error(_NO_QUANTITY)
    try:
        return CelQuantity(amounts.parse(text))
    except amounts.QuantityError as error:
        return Error(str(error))


_NO_QUANTITY: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


def _order(one: CelQuantity, other: CelQuantity) -> int:
    return one.amount.exceeds(other.amount) - other.amount.exceeds(one.amount)


def _as_integer(one: CelQuantity) -> Any:
    amount = one.amount
    if amount.wide or amount.exponent < 0:
        return Error("cannot convert value to integer")
    value = amount.number
    return value if isinstance(value, int) and INT_MIN <= value <= INT_MAX else Error("cannot convert value to integer")


def _approximate(one: CelQuantity) -> float:
    amount = one.amount
    if amount.mantissa == 0:
        return 0.0
    if amount.exponent == 0:
        return float(amount.mantissa)
    try:
        return float(amount.mantissa) * float(f"1e{amount.exponent}") if not amount.wide else float(amount.number)
    except OverflowError:
        return float("inf")


def _sum(sign: int) -> Callable[[CelQuantity, Any], CelQuantity]:
    def total(one: CelQuantity, other: Any) -> CelQuantity:
        amount = amounts.Quantity(other) if isinstance(other, int) else other.amount
        return CelQuantity(one.amount.minus(amount) if sign < 0 else one.amount.plus(amount), summed=True)

    return total


def _sign(one: CelQuantity) -> int:
    return (one.amount.mantissa > 0) - (one.amount.mantissa < 0)


# Versions


def semver_of(text: str) -> Semver | Error:
    """Parse a semantic version."""
    parts = text.split(".", 2)
    if len(parts) != 3:
        return Error("No Major.Minor.Patch elements found" if text else "Version string empty")
    rest, plus, build = parts[2].partition("+")
    patch, dash, pre = rest.partition("-")
    major, minor = _version_number("major", parts[0]), _version_number("minor", parts[1])
    numbers = (major, minor, _version_number("patch", patch))
    before = _pre_release(pre.split(".")) if dash else ()
    builds = _builds(build.split(".")) if plus else ()
    trouble = next((one for one in (*numbers, before, builds) if isinstance(one, Error)), None)
    return trouble or Semver(*numbers, before, builds)  # type: ignore[arg-type]


def _builds(parts: list[str]) -> tuple[str, ...] | Error:
    for one in parts:
        if not one:
            return Error("Build meta data is empty")
        if not _ALPHANUMERIC.fullmatch(one):
            return Error(f"Invalid character(s) found in build meta data {quoted(one)}")
    return tuple(parts)


def _version_number(name: str, digits: str) -> int | Error:
    if not _NUMERIC.fullmatch(digits):
        return Error(f"Invalid character(s) found in {name} number {quoted(digits)}")
    if len(digits) > 1 and digits[0] == "0":
        return Error(f"{name.capitalize()} number must not contain leading zeroes {quoted(digits)}")
    return _uint64(digits)


def _uint64(digits: str) -> int | Error:
    if not digits:
        return Error('strconv.ParseUint: parsing "": invalid syntax')
    if len(digits) > 20 or int(digits) > UINT_MAX:
        return Error(f"strconv.ParseUint: parsing {quoted(digits)}: value out of range")
    return int(digits)


def _pre_release(parts: list[str]) -> tuple[int | str, ...] | Error:
    found: list[int | str] = []
    for one in parts:
        if not one:
            return Error("Prerelease is empty")
        if _NUMERIC.fullmatch(one):
            if len(one) > 1 and one[0] == "0":
                return Error(f"Numeric PreRelease version must not contain leading zeroes {quoted(one)}")
            number = _uint64(one)
            if isinstance(number, Error):
                return number
            found.append(number)
        elif _ALPHANUMERIC.fullmatch(one):
            found.append(one)
        else:
            return Error(f"Invalid character(s) found in prerelease {quoted(one)}")
    return tuple(found)


def _semver(text: str, normalize: bool = False) -> Any:
    if not normalize:
        return semver_of(text)
    parts = [_without_zeros(part) for part in text.removeprefix("v").split(".", 2)]
    if len(parts) < 3:
        if "+" in parts[-1] or "-" in parts[-1]:
            return Error("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return semver_of(".".join(parts))


def _without_zeros(part: str) -> str:
    if len(part.encode(errors="surrogatepass")) <= 1:
        return part
    rest = part.lstrip("0")
    return rest if rest and rest[0] in "0123456789" else "0" + rest


def _int64(number: int) -> int:
    return amounts.wrap(number)


# Addresses


def _go_address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | str:
    """Return an IP address parsed from a text with an optional zone, or the parse error."""
    try:
        if text.isascii():
            return ipaddress.ip_address(text)
    except ValueError:
        pass
    return f"ParseAddr({quoted(text)}): {address_fault(text)}"


def _address(text: str) -> Any:
    found = _go_address(text)
    if isinstance(found, str):
        return Error(f"IP Address {quoted(text)} parse error during conversion from string: {found}")
    if "%" in text:
        return Error(f"IP address {quoted(text)} with zone value is not allowed")
    if _is_mapped(found):
        return Error(f"IPv4-mapped IPv6 address {quoted(text)} is not allowed")
    return Address(found)


def _is_canonical(text: str) -> Any:
    found = _address(text)
    return found if isinstance(found, Error) else str(found.address) == text


def _is_global_unicast(one: Address) -> bool:
    at = one.address
    if str(at) == "255.255.255.255":
        return False
    return not (at.is_unspecified or at.is_loopback or at.is_multicast or at.is_link_local)


def _is_link_local_multicast(one: Address) -> bool:
    at = one.address
    if isinstance(at, ipaddress.IPv4Address):
        return at in ipaddress.IPv4Network("224.0.0.0/24")
    return at.packed[0] == 0xFF and at.packed[1] & 0x0F == 2


def _prefix(text: str) -> Any:
    found = _parsed_prefix(text)
    return (
        Error(f"network address parse error during conversion from string: {found}")
        if isinstance(found, str)
        else found
    )


def _parsed_prefix(text: str) -> Prefix | str:
    begin = f"network address parse error during conversion from string: netip.ParsePrefix({quoted(text)}): "
    address, slash, digits = text.rpartition("/")
    found = _go_address(address) if slash else "no '/'"
    if isinstance(found, str):
        return begin + found
    if "%" in address:
        return f"{begin}IPv6 zones cannot be present in a prefix"
    if not _BITS.fullmatch(digits):
        return f"{begin}bad bits after slash: {quoted(digits)}"
    if int(digits) > found.max_prefixlen:
        return f"{begin}prefix length out of range"
    if _is_mapped(found):
        return f"IPv4-mapped IPv6 address {quoted(text)} is not allowed"
    return Prefix(found, int(digits))


def _is_mapped(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    return isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None


def _network(one: Prefix) -> Any:
    return ipaddress.ip_network((one.address, one.bits), strict=False)


def _contains_address(one: Prefix, other: Any) -> Any:
    if isinstance(other, str):
        other = _address(other)
        if isinstance(other, Error):
            return Error("no such overload")
    return other.address.version == one.address.version and other.address in _network(one)


def _contains_prefix(one: Prefix, other: Any) -> Any:
    if isinstance(other, str):
        other = _prefix(other)
        if isinstance(other, Error):
            return other
    if one.address.version != other.address.version:
        return False
    return bool(_network(one).overlaps(_network(other))) and one.bits <= other.bits


def _masked(one: Prefix) -> Prefix:
    return Prefix(_network(one).network_address, one.bits)


# URLs


def _locator(text: str) -> Any:
    try:
        parse_request_uri(text)
        return Locator(parse_url(text))
    except UrlError as error:
        return Error(f"URL parse error during conversion from string: {error}")


def _is_locator(text: str) -> bool:
    try:
        parse_request_uri(text)
    except UrlError:
        return False
    return True


def _query(one: Locator) -> Map:
    return Map(dict(one.url.queries()))


# Formats


def _validate(one: Format, text: str) -> Optional:
    faults = one.faults(text)
    return Optional(present=True, value=faults) if faults else NONE


def _named(name: str) -> Optional:
    found = FORMATS.get(name)
    return Optional(present=True, value=found) if found else NONE


def _succeeds(read: Callable[..., Any]) -> Callable[..., bool]:
    return lambda *arguments: not isinstance(read(*arguments), Error)


OVERLOADS: Final[dict[str, Callable[..., Any]]] = {
    "string_to_quantity": _quantity,
    "is_quantity_string": _succeeds(_quantity),
    "quantity_sign": _sign,
    "quantity_is_greater_than": lambda one, other: _order(one, other) > 0,
    "quantity_is_less_than": lambda one, other: _order(one, other) < 0,
    "quantity_compare_to": _order,
    "quantity_get_float": _approximate,
    "quantity_get_int": _as_integer,
    "quantity_is_integer": _succeeds(_as_integer),
    "quantity_add": _sum(1),
    "quantity_add_int": _sum(1),
    "quantity_sub": _sum(-1),
    "quantity_sub_int": _sum(-1),
    "string_to_semver": _semver,
    "string_bool_to_semver": _semver,
    "is_semver_string": _succeeds(_semver),
    "is_semver_string_bool": _succeeds(_semver),
    "semver_is_greater_than": lambda one, other: one.order(other) > 0,
    "semver_is_less_than": lambda one, other: one.order(other) < 0,
    "semver_compare_to": Semver.order,
    "semver_major": lambda one: _int64(one.major),
    "semver_minor": lambda one: _int64(one.minor),
    "semver_patch": lambda one: _int64(one.patch),
    "string_to_ip": _address,
    "is_ip": _succeeds(_address),
    "ip_is_canonical": _is_canonical,
    "ip_to_string": lambda one: str(one.address),
    "ip_family": lambda one: one.address.version,
    "ip_is_unspecified": lambda one: one.address.is_unspecified,
    "ip_is_loopback": lambda one: one.address.is_loopback,
    "ip_is_link_local_multicast": _is_link_local_multicast,
    "ip_is_link_local_unicast": lambda one: one.address.is_link_local,
    "ip_is_global_unicast": _is_global_unicast,
    "string_to_cidr": _prefix,
    "is_cidr": _succeeds(_prefix),
    "cidr_to_string": lambda one: f"{one.address}/{one.bits}",
    "cidr_ip": lambda one: Address(one.address),
    "cidr_prefix_length": lambda one: one.bits,
    "cidr_masked": _masked,
    "cidr_contains_ip_ip": _contains_address,
    "cidr_contains_ip_string": _contains_address,
    "cidr_contains_cidr": _contains_prefix,
    "cidr_contains_cidr_string": _contains_prefix,
    "string_to_url": _locator,
    "is_url_string": _is_locator,
    "url_get_scheme": lambda one: one.url.scheme,
    "url_get_host": lambda one: one.url.host,
    "url_get_hostname": lambda one: one.url.hostname(),
    "url_get_port": lambda one: one.url.port(),
    "url_get_escaped_path": lambda one: one.url.escaped_path(),
    "url_get_query": _query,
    "format-named": _named,
    "format-validate": _validate,
    **{f"format.{name}": (lambda found=found: found) for name, found in FORMATS.items()},
}
