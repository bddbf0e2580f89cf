"""Decoding of untrusted JSON with limits on its size, and case-insensitive field names as in Go.

All pods wait while an answer is decoded, and JSON is not decoded in parts. So values are decoded directly as the
expected type, which stops at the first mismatch, and limits are checked during decoding (`counted`), not after it.
Invalid input raises an UnusableAnswerError with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Sized
from typing import Any, Final, TypeVar

import msgspec

from policysched.budget import Budget, BudgetExceededError
from policysched.errors import PolicyschedError
from policysched.reading.lenient_json import UNREADABLE, without_halves

INT64: Final = range(-(2**63), 2**63)
MOST_FIELDS: Final = 256
"""Largest number of fields of one object; an object with more fields is an error."""
FIELDS_EACH: Final = 4
"""Largest average number of fields per object in a list that is decoded ignoring case; more fields are an error."""
FEW: Final = 200 << 10
"""Largest estimated number of entries in JSON that is decoded without a check of the real number.

Half of the number applies where items become structs, which are slower.
"""
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


class UnusableAnswerError(PolicyschedError):
    """Error: a response is not JSON, has a value of a wrong type, or has too many entries."""


class Key(str):
    """Type of a JSON object's keys in types for `counted`, which limits the number of decoded keys."""

    __slots__ = ()


class _Item(msgspec.Struct):
    """A list item whose fields are not decoded, to count the items of a list."""


def counting(struct: type[msgspec.Struct], items: Budget) -> type[msgspec.Struct]:
    """Return a subclass of a struct; each object decoded into the subclass spends one unit of a budget."""
    count = {"__post_init__": lambda _: items.spend()}
    return msgspec.defstruct("Counted", [], bases=(struct,), namespace=count)


def counted(body: bytes | msgspec.Raw, kind: Any, keys: Budget) -> Any:
    """Decode JSON, and stop as soon as its keys or items exceed a limit.

    Args:
        body: JSON text.
        kind: Expected type, with `Key` and types from `counting` in it.
        keys: Limit on keys.

    Raises:
        BudgetExceededError: a limit is exceeded.
    """

    def take(kind: type[Key], given: str) -> Key:
        keys.spend()
        return kind(given)

    return msgspec.json.decode(body, type=kind, dec_hook=take)


def weight(body: bytes) -> int:
    """Return an upper bound for the number of fields and items in JSON, without decoding the JSON."""
    return body.count(b",") + body.count(b"{")


def are_few(body: bytes | msgspec.Raw, most: int = FEW) -> bool:
    """Return whether JSON has so few entries that it can be decoded without a limit on their number."""
    return len(memoryview(body)) <= most or weight(bytes(body)) <= most


def decoded(decoder: msgspec.json.Decoder[T], text: bytes | msgspec.Raw, what: str) -> T:
    """Decode JSON of an expected type; error messages name the value as `what`.

    Raises:
        UnusableAnswerError: the text has another type, or is not JSON.
    """
    try:
        return decoder.decode(text)
    except UNREADABLE as error:
        raise _unreadable(error, text, what) from error


def bounded_by(entries: Budget, kind: Any, text: bytes | msgspec.Raw, what: str) -> Any:
    """Decode JSON of an expected type, with a limit on the number of its keys or items.

    Raises:
        UnusableAnswerError: a limit is exceeded, or the text has another type or is not JSON.
    """
    try:
        return counted(text, kind, entries)
    except BudgetExceededError:
        raise UnusableAnswerError(f"{what}: more than {entries.limit} entries") from None
    except UNREADABLE as error:
        raise _unreadable(error, text, what) from error


def _unreadable(error: Exception, text: bytes | msgspec.Raw, what: str) -> UnusableAnswerError:
    """Return the error for JSON that cannot be decoded: not JSON, or a value of an unexpected type."""
    found = _MISMATCH.match(str(error))
    try:
        _ANYTHING.decode(text)
    except UNREADABLE as worse:
        error, found = worse, None
    if found is None:
        return UnusableAnswerError(f"the answer is not JSON: {error}")
    got = "a number" if found[2] in ("int", "float") else _KINDS[found[2]]
    return UnusableAnswerError(f"{what}: expected {_KINDS[found[1]]}, got {got}")


def text_of(raw: msgspec.Raw | None, what: str) -> str:
    """Decode a JSON string; an absent string is empty."""
    return decoded(_STRING, present(raw, b'""'), what)


def int_of(raw: msgspec.Raw | None, what: str) -> int:
    """Decode a 64-bit integer from JSON; an absent integer is 0."""
    number = decoded(_INTEGER, present(raw, b"0"), what)
    if number not in INT64:
        raise UnusableAnswerError(f"{what}: expected a 64-bit integer, got a number")
    return number


def field(given: Mapping[str, T], name: str) -> T | None:
    """Return the last field of an object with a name, ignoring case; None if absent."""
    lowered = name.lower()
    return next((given[key] for key in reversed([*given]) if key.lower() == lowered), None)


def first_value(body: bytes) -> bytes:
    """Return the first JSON value of a text without the text after it; invalid Unicode is replaced by U+FFFD."""
    try:
        body.decode()
    except UnicodeDecodeError:
        body = body.decode("utf-8", "replace").encode()
    try:
        body = without_halves(body)
    except msgspec.DecodeError as error:
        raise UnusableAnswerError(f"the answer has {error}") from error
    try:
        _ANYTHING.decode(body)
    except UNREADABLE as error:
        found = _TRAILING.fullmatch(str(error))
        body = body if found is None else body[: int(found[1]) - 1]
    return body


def present(raw: msgspec.Raw | None, absent: bytes) -> bytes | msgspec.Raw:
    """Return a field's value, or a default if the value is absent or null."""
    return absent if raw is None or raw == NULL else raw


def members(body: bytes | msgspec.Raw, what: str, most: int = MOST_FIELDS) -> Mapping[str, msgspec.Raw]:
    """Split a JSON object into its fields without decoding their values; null has no fields.

    Raises:
        UnusableAnswerError: the text is not an object, or has too many fields.
    """
    if are_few(body):
        few = decoded(_MEMBERS, body, what)
        return bounded(few or {}, what, most)
    found: Mapping[str, msgspec.Raw] = bounded_by(Budget(most), dict[Key, msgspec.Raw], body, what)
    return found


def objects(body: bytes | msgspec.Raw, what: str, most: int) -> Sequence[Mapping[str, msgspec.Raw]]:
    """Split each object of a JSON list into its fields without decoding their values; null is an empty list.

    Raises:
        UnusableAnswerError: the text is not a list of objects, or the list or an object is too large.
    """
    if are_few(body):
        return [one or {} for one in bounded(decoded(_OBJECTS, body, what) or (), what, most)]
    items = Budget(most)
    bounded_by(items, list[counting(_Item, items)], body, what)  # type: ignore[misc]  # made at run time
    kind = list[dict[Key, msgspec.Raw]]
    found: list[Mapping[str, msgspec.Raw]] = bounded_by(Budget(FIELDS_EACH * most), kind, body, f"fields of {what}")
    return found


def bounded(found: SizedT, what: str, most: int) -> SizedT:
    """Return a decoded list or object unchanged; raise an error if it has more than `most` entries.

    Raises:
        UnusableAnswerError: the value has too many entries.
    """
    if len(found) > most:
        raise UnusableAnswerError(f"{what}: {len(found)} entries, more than the limit of {most}")
    return found
