"""Parsers of flag values, compatible with Go's pflag.

A reader raises ValueError with the second half of a message: `--v "x" is not a whole number`.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

from policysched.reading.durations import nanoseconds

ANY_ADDRESS: Final = "0.0.0.0"  # noqa: S104 - as kube-scheduler
_TRUE: Final = frozenset(["1", "t", "T", "TRUE", "true", "True"])
_FALSE: Final = frozenset(["0", "f", "F", "FALSE", "false", "False"])
_QUANTITY: Final = re.compile(r"\+?(\d++(\.\d*+)?+|\.\d++)([EPTGMk]|[EPTGMK]i|[eE][+-]?\d+)?")
_PATTERN: Final = re.compile(r"([^=,]+)=(\d+)")
_PAIR: Final = re.compile(r"([^,:]+),([^,:]+)(?::(.+))?")


@dataclass(frozen=True, slots=True)
class Form:
    """Syntax of a flag value."""

    metavar: str
    read: Callable[[str], Any]
    """Function that converts a text to a value; for a list flag, to a part of the list."""
    is_list: bool = False
    """Whether the flag is repeatable and has a tuple of values."""
    bare: str = ""
    """The value of the flag if it is given without a value."""
    choices: tuple[str, ...] = ()
    """Values for shell completion."""


def read_switch(text: str) -> bool:
    """Read a boolean as Go does."""
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise ValueError("is not true or false")


def whole(lowest: int, highest: int) -> Callable[[str], int]:
    """Return a parser of whole numbers within bounds."""

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise ValueError("is not a whole number") from None
        if not lowest <= number <= highest:
            raise ValueError(f"is not between {lowest} and {highest}")
        return number

    return read


def read_number(text: str) -> float:
    """Read a finite number."""
    try:
        number = float(text)
    except ValueError:
        raise ValueError("is not a number") from None
    if not abs(number) < 2.0**128:
        raise ValueError("is not a 32-bit number")
    return number


def read_duration(text: str) -> str:
    """Validate a duration; return the text unchanged."""
    if nanoseconds(text) is None:
        raise ValueError("is not a duration; write it as 15s or 1m30s")
    return text


def read_address(text: str) -> str:
    """Read an IP address; an empty text is 0.0.0.0."""
    if not text:
        return ANY_ADDRESS
    try:
        return str(ip_address(text))
    except ValueError:
        raise ValueError("is not an IP address") from None


def read_list(text: str) -> tuple[str, ...]:
    """Read a comma-separated list; items with commas are quoted."""
    try:
        return tuple(next(csv.reader([text], strict=True), ()))
    except csv.Error as error:
        raise ValueError(f"is not a comma-separated list: {error}") from None


def read_map(text: str) -> tuple[tuple[str, str], ...]:
    """Read one `KEY=VALUE` pair, or a list of quoted pairs."""
    parts = (text.strip("\"'"),) if text.count("=") == 1 else read_list(text)
    pairs = [part.partition("=") for part in parts]
    if not all(equals for _, equals, _ in pairs):
        raise ValueError("is not a list of KEY=VALUE")
    return tuple((key, value) for key, _, value in pairs)


def read_levels(text: str) -> tuple[tuple[str, int], ...]:
    """Parse the value of `--vmodule`, `pattern=N,…`."""
    found = [_PATTERN.fullmatch(part) for part in text.split(",") if part]
    if not all(found):
        raise ValueError("is not a list of PATTERN=LEVEL")
    return tuple((one[1], int(one[2])) for one in found if one is not None)


def read_certificates(text: str) -> tuple[tuple[Path, Path, tuple[str, ...]], ...]:
    """Parse the value of `--tls-sni-cert-key`, `CERTIFICATE,KEY[:NAME,…]`."""
    found = _PAIR.fullmatch(text)
    if found is None:
        raise ValueError("is not CERTIFICATE,KEY[:NAME,...]")
    names = tuple(name.strip() for name in (found[3] or "").split(",") if name.strip())
    return ((Path(found[1]), Path(found[2]), names),)


def one_of(*allowed: str) -> Callable[[str], str]:
    """Return a parser that accepts only the given words."""

    def read(text: str) -> str:
        if text not in allowed:
            raise ValueError(f"is not one of {', '.join(filter(None, allowed))}")
        return text

    return read


def choice(metavar: str, *allowed: str, bare: str = "") -> Form:
    """Return the syntax of a flag value that is one of the given words."""
    return Form(metavar, one_of(*allowed), bare=bare, choices=allowed)


def _read_quantity(text: str) -> str:
    if _QUANTITY.fullmatch(text) is None:
        raise ValueError("is not a size; write it as 512, 1K or 2Ki")
    return text


def _read_numbers(text: str) -> tuple[int, ...]:
    return tuple(map(whole(-(2**31), 2**31 - 1), read_list(text)))


INT32: Final = 2**31 - 1
SWITCH: Final = Form("BOOL", read_switch, bare="true", choices=("true", "false"))
TEXT: Final = Form("TEXT", str)
NAME: Final = Form("NAME", str)
FILE: Final = Form("FILE", Path)
FOLDER: Final = Form("DIR", Path)
DURATION: Final = Form("DURATION", read_duration)
NUMBER: Final = Form("NUMBER", read_number)
COUNT: Final = Form("NUMBER", whole(0, INT32))
PORT: Final = Form("PORT", whole(0, 65535))
ADDRESS: Final = Form("IP", read_address)
SIZE: Final = Form("SIZE", _read_quantity)
LIST: Final = Form("NAME,...", read_list, is_list=True)
NUMBERS: Final = Form("NUMBER,...", _read_numbers, is_list=True)
MAP: Final = Form("KEY=VALUE,...", read_map, is_list=True)
LEVELS: Final = Form("PATTERN=LEVEL,...", read_levels, is_list=True)
CERTIFICATES: Final = Form("CERTIFICATE,KEY[:NAME,...]", read_certificates, is_list=True)
