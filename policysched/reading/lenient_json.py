"""Read the usable parts of malformed or deeply nested JSON by finding its brackets and strings.

The decoder rejects such texts as a whole: objects nested deeper than it recurses, and lists or watch events with one
object that is not JSON.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import msgspec

DEEPEST: Final = 64
"""Largest nesting depth of JSON values; `shallow` replaces deeper values by null."""
_STRING: Final = rb'"(?:[^"\\]++|\\.)*+"'
_MEMBER: Final = re.compile(rb"\s*(" + _STRING + rb")\s*:\s*(.*)", re.DOTALL)
_TEXT: Final = msgspec.json.Decoder(str)
UNREADABLE: Final = (msgspec.MsgspecError, UnicodeError, RecursionError)
"""Exceptions raised by decoding a text that is not JSON, has values of wrong types or is nested too deeply."""

EACH: Final = "[]"
"""Part of a path for `replaced` that means every element of an array."""
MOST_HALVES: Final = 10_000
"""Largest number of replaced halves of surrogate pairs in a text; more is an error."""
_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_HALF: Final = re.compile(
    rb"(?:[^\\]++|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\(?!u[dD][89a-fA-F][0-9a-fA-F]{2}).)*+"
    rb"(\\u[dD][89a-fA-F][0-9a-fA-F]{2})",
    re.DOTALL,
)
"""Pattern of a text up to and including the first escape of half of a surrogate pair."""


class Identity(NamedTuple):
    """Namespace, name and resource version of an object; a missing or unreadable field is empty."""

    namespace: str = ""
    name: str = ""
    version: str = ""

    @property
    def key(self) -> str:
        """The key `namespace/name`; the name alone without a namespace."""
        return "/".join(filter(None, (self.namespace, self.name)))


def identity(raw: bytes) -> Identity:
    """Read namespace, name and version of an object whose other parts may be malformed."""
    metadata = members(members(raw).get("metadata", b""))
    return Identity(*(_text(metadata.get(name, b"")) for name in ("namespace", "name", "resourceVersion")))


def shallow(raw: bytes, deepest: int = DEEPEST) -> bytes:
    """Replace JSON values that are nested deeper than a limit by null."""
    from policysched.reading.json_structure import cut  # noqa: PLC0415 - NumPy takes 80 ms to import

    return cut(raw, deepest)


def without_halves(raw: bytes) -> bytes:
    """Replace escapes of half of a surrogate pair in JSON by U+FFFD, as Go does; the length stays the same.

    Raises:
        msgspec.DecodeError: the text has too many such escapes.
    """
    if _SURROGATE.search(raw) is None:
        return raw
    replaced, number = bytearray(raw), 0
    found = _HALF.match(raw)
    while found is not None:
        if number == MOST_HALVES:
            raise msgspec.DecodeError(f"more than {MOST_HALVES} halves of characters")
        number += 1
        replaced[found.start(1) : found.end()] = b"\\ufffd"
        found = _HALF.match(raw, found.end())
    return bytes(replaced)


def without_managed_fields(raw: bytes) -> bytes:
    """Replace the `managedFields` of an object by null: the field is not read and can be deeply nested."""
    return replaced(raw, [("metadata", "managedFields")], lambda _: b"null")


def replaced(raw: bytes, paths: Sequence[Sequence[str]], put: Callable[[bytes], bytes]) -> bytes:
    """Replace the JSON values at some paths by what the function `put` returns; paths without a value have no effect.

    Args:
        raw: An object or an array.
        paths: Paths of member names and EACH.
        put: Returns the new text of a value.
    """
    if not all(paths):
        return put(raw)
    further: dict[str, list[Sequence[str]]] = {}
    for first, *rest in paths:
        further.setdefault(first, []).append(rest)
    if EACH in further:
        if not raw.lstrip().startswith(b"["):
            return raw
        return b"[%b]" % b",".join([replaced(one, further[EACH], put) for one in elements(raw)])
    parts = members(raw)
    changed = {name: replaced(parts[name], rest, put) for name, rest in further.items() if name in parts}
    if not changed:
        return raw
    return b"{%b}" % b",".join([msgspec.json.encode(name) + b":" + text for name, text in (parts | changed).items()])


def is_deeper(raw: bytes, than: int) -> bool:
    """Return whether JSON has values that are nested deeper than a limit."""
    if raw.count(b"[") + raw.count(b"{") <= than:
        return False
    return shallow(raw, than) != raw


def members(raw: bytes) -> dict[str, bytes]:
    """Split a JSON object into the names and texts of its members; empty for any other value."""
    found = (_MEMBER.fullmatch(part) for part in _inside(raw, b"{"))
    return {_text(one[1]): one[2].rstrip() for one in found if one is not None}


def elements(raw: bytes) -> list[bytes]:
    """Split a JSON array into the texts of its elements; empty for any other value."""
    return [part.strip() for part in _inside(raw, b"[") if part.strip()]


def _inside(raw: bytes, opening: bytes) -> list[bytes]:
    """Split an outermost JSON array or object into its entries; empty unless the JSON begins with `opening`."""
    from policysched.reading.json_structure import split  # noqa: PLC0415 - as above

    return split(raw, opening)


def _text(raw: bytes) -> str:
    try:
        return _TEXT.decode(raw)
    except (msgspec.MsgspecError, UnicodeError):
        return ""
