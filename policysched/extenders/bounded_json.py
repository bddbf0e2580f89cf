"""JSON of others read in bounded time: as what it has to be, with names of fields in any case, as Go reads them.

All pods wait while an answer is read, and nothing reads JSON in parts: so values are decoded as what they have to be,
which ends at the first that is not, and what is too much is noticed while it is decoded (`counted`), not when it is
there. What is wrong is an ExtenderError that says so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Sized
from typing import Any, ClassVar, Final, TypeVar

import msgspec

from policysched.framework.extender import ExtenderError
from policysched.model.lenient_json import UNREADABLE, without_halves

INT64: Final = range(-(2**63), 2**63)
MOST_FIELDS: Final = 256
"""How many fields an object may have."""
FIELDS_EACH: Final = 4
"""How many fields all objects of a list may have together, for each that it may have at most, where names of fields are
in an unusual case: of those that were asked about, each may have four times as many."""
FEW: Final = 200 << 10
"""What has no more commas and opening braces (`weight`), and so no more fields and items, is decoded in 40 ms at most
without counting. Where items become structs, which take longer, half as many are few."""
T = TypeVar("T")
SizedT = TypeVar("SizedT", bound=Sized)
NULL = msgspec.Raw(b"null")
_MEMBERS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw] | None)
_OBJECTS: Final = msgspec.json.Decoder(list[dict[str, msgspec.Raw] | None] | None)
_ANYTHING: Final = msgspec.json.Decoder(msgspec.Raw)
_STRING: Final = msgspec.json.Decoder(str)
_INTEGER: Final = msgspec.json.Decoder(int)
_MISMATCH: Final = re.compile(r"Expected `(\w++)[^`\n]*+`, got `(\w++)`")
_TRAILING: Final = re.compile(r"JSON is malformed: trailing characters \(byte (\d++)\)")
_KINDS: Final = {
    "null": "null",
    "bool": "a boolean",
    "object": "an object",
    "array": "a list",
    "str": "a string",
    "int": "a 64-bit integer",
}


class TooManyError(Exception):
    """Something has more entries than it may have; no ValueError, which msgspec would make one of its own."""


class Key(str):
    """A key of an object that is counted as it is decoded."""

    __slots__ = ()


class Counted(msgspec.Struct):
    """An item of a list that is counted as it is decoded: one list at a time, because one thread reads answers."""

    left: ClassVar[int] = 0
    """How many more there may be."""

    def __post_init__(self) -> None:
        """Count one more.

        Raises:
            TooManyError: there are too many.
        """
        Counted.left -= 1
        if Counted.left < 0:
            raise TooManyError


def counted(body: bytes | msgspec.Raw, kind: Any, keys: int, items: int = 0) -> Any:
    """Decode, and count what is counted on the way.

    Args:
        body: What is decoded.
        kind: What it is to be, with `Key` and `Counted` in it.
        keys: How many keys it may have.
        items: How many items of a list it may have.

    Raises:
        TooManyError: there are more.
    """

    def take(kind: type[Key], given: str) -> Key:
        nonlocal keys
        keys -= 1
        if keys < 0:
            raise TooManyError
        return kind(given)

    Counted.left = items
    return msgspec.json.decode(body, type=kind, dec_hook=take)


def weight(body: bytes) -> int:
    """Return a bound on how many fields and items there are, in a hundredth of the time that they would take."""
    return body.count(b",") + body.count(b"{")


def are_few(body: bytes | msgspec.Raw, most: int = FEW) -> bool:
    """Return whether decoding a text without counting cannot take long."""
    return len(memoryview(body)) <= most or weight(bytes(body)) <= most


def decoded(decoder: msgspec.json.Decoder[T], text: bytes | msgspec.Raw, what: str) -> T:
    """Decode what has to be of one type.

    Raises:
        ExtenderError: it is of another one, or no JSON.
    """
    try:
        return decoder.decode(text)
    except UNREADABLE as error:
        raise _unreadable(error, text, what) from error


def bounded_by(most: int, kind: Any, text: bytes | msgspec.Raw, what: str, *, items: int = 0) -> Any:
    """Decode the same where it may be too much.

    Raises:
        ExtenderError: it is, or of another type, or no JSON.
    """
    try:
        return counted(text, kind, most, items)
    except TooManyError:
        raise ExtenderError(f"{what}: more than {most or items} entries") from None
    except UNREADABLE as error:
        raise _unreadable(error, text, what) from error


def _unreadable(error: Exception, text: bytes | msgspec.Raw, what: str) -> ExtenderError:
    """Say what is wrong with what cannot be decoded: that it is no JSON, or else of which type it is."""
    found = _MISMATCH.match(str(error))
    try:
        _ANYTHING.decode(text)
    except UNREADABLE as worse:
        error, found = worse, None
    if found is None:
        return ExtenderError(f"the answer is not JSON: {error}")
    got = "a number" if found[2] in ("int", "float") else _KINDS[found[2]]
    return ExtenderError(f"{what}: expected {_KINDS[found[1]]}, got {got}")


def text_of(raw: msgspec.Raw | None, what: str) -> str:
    """Read a text; absent is empty."""
    return decoded(_STRING, present(raw, b'""'), what)


def int_of(raw: msgspec.Raw | None, what: str) -> int:
    """Read a whole number; absent is 0."""
    number = decoded(_INTEGER, present(raw, b"0"), what)
    if number not in INT64:
        raise ExtenderError(f"{what}: expected a 64-bit integer, got a number")
    return number


def field(given: Mapping[str, T], name: str) -> T | None:
    """Return a field, its name in any case, of several the last one; None where it is missing."""
    lowered = name.lower()
    return next((given[key] for key in reversed([*given]) if key.lower() == lowered), None)


def first_value(body: bytes) -> bytes:
    """Return the first value of a text without what follows it, and what is no Unicode in it as U+FFFD."""
    try:
        body.decode()
    except UnicodeDecodeError:
        body = body.decode("utf-8", "replace").encode()
    try:
        body = without_halves(body)
    except msgspec.DecodeError as error:
        raise ExtenderError(f"the answer has {error}") from error
    try:
        _ANYTHING.decode(body)
    except UNREADABLE as error:
        found = _TRAILING.fullmatch(str(error))
        body = body if found is None else body[: int(found[1]) - 1]
    return body


def present(raw: msgspec.Raw | None, absent: bytes) -> bytes | msgspec.Raw:
    """Return a value that may be absent or null: then it is as another one says."""
    return absent if raw is None or raw == NULL else raw


def members(body: bytes | msgspec.Raw, what: str, most: int = MOST_FIELDS) -> Mapping[str, msgspec.Raw]:
    """Read the fields of an object without what is in them: whole nodes are large; null has none.

    Raises:
        ExtenderError: it is no object, or has too many.
    """
    if are_few(body):
        few = decoded(_MEMBERS, body, what)
        return bounded(few or {}, what, most)
    found: Mapping[str, msgspec.Raw] = bounded_by(most, dict[Key, msgspec.Raw], body, what)
    return found


def objects(body: bytes | msgspec.Raw, what: str, most: int) -> Sequence[Mapping[str, msgspec.Raw]]:
    """Read the fields of the objects of a list without what is in them; null is empty, as a list and in one.

    Raises:
        ExtenderError: it is no list of objects, or has too many, or these have.
    """
    if are_few(body):
        return [one or {} for one in bounded(decoded(_OBJECTS, body, what) or (), what, most)]
    bounded_by(0, list[Counted], body, what, items=most)
    kind = list[dict[Key, msgspec.Raw]]
    found: list[Mapping[str, msgspec.Raw]] = bounded_by(FIELDS_EACH * most, kind, body, f"fields of {what}")
    return found


def bounded(found: SizedT, what: str, most: int) -> SizedT:
    """Return what was found.

    Raises:
        ExtenderError: it is too much.
    """
    if len(found) > most:
        raise ExtenderError(f"{what}: {len(found)} entries, more than the limit of {most}")
    return found
