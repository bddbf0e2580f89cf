"""Read what is readable of malformed or deeply nested JSON by its brackets and strings alone, all of them at once.

For texts that the decoder refuses as a whole although most of them could be used: objects nested deeper than it
recurses, and lists or events with one object that is no JSON. Ordinary texts never come here. Of JSON with values of
wrong types the decoder says what is in it, a hundred times as fast.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import msgspec

DEEPEST: Final = 64
"""How deep values may lie before they are cut; what scheduling reads lies at most 14 deep."""
_STRING: Final = rb'"(?:[^"\\]++|\\.)*+"'
_MEMBER: Final = re.compile(rb"\s*(" + _STRING + rb")\s*:\s*(.*)", re.DOTALL)
_TEXT: Final = msgspec.json.Decoder(str)
_MEMBERS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ELEMENTS: Final = msgspec.json.Decoder(list[msgspec.Raw])
UNREADABLE: Final = (msgspec.MsgspecError, UnicodeError, RecursionError)
"""What decoding a text of others may raise, be it no JSON, of another shape or nested thousands deep."""

LONG: Final = 16 << 10
"""From how many bytes on an object is freed of its `managedFields` before it is read whole."""
EACH: Final = "[]"
"""In a path, every element of an array."""
MOST_HALVES: Final = 10_000
"""How many halves of characters are replaced in a text."""
_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_HALF: Final = re.compile(
    rb"(?:[^\\]++|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\(?!u[dD][89a-fA-F][0-9a-fA-F]{2}).)*+"
    rb"(\\u[dD][89a-fA-F][0-9a-fA-F]{2})",
    re.DOTALL,
)
"""What is no half of a pair of surrogates, and the escape of the next one that is: without the other one."""


class Identity(NamedTuple):
    """What an object says it is; empty where it does not say so readably."""

    namespace: str = ""
    name: str = ""
    version: str = ""

    @property
    def key(self) -> str:
        """`namespace/name`, or the name alone."""
        return "/".join(filter(None, (self.namespace, self.name)))


class _Object(msgspec.Struct):
    metadata: msgspec.Raw = msgspec.Raw(b"")


_OBJECT: Final = msgspec.json.Decoder(_Object)


def identity(raw: bytes) -> Identity:
    """Read what an object is called and its version, whatever else is wrong with it."""
    metadata = members(_metadata(raw))
    return Identity(*(_text(metadata.get(name, b"")) for name in ("namespace", "name", "resourceVersion")))


def _metadata(raw: bytes) -> bytes:
    try:
        return bytes(_OBJECT.decode(raw).metadata)
    except UNREADABLE:
        return members(raw).get("metadata", b"")


def shallow(raw: bytes, deepest: int = DEEPEST) -> bytes:
    """Put null in place of what lies deeper."""
    from policysched.model.json_structure import cut  # noqa: PLC0415 - commands that read no objects need no arrays

    return cut(raw, deepest)


def without_halves(raw: bytes) -> bytes:
    """Put U+FFFD in place of escapes of half of a pair of surrogates, as Go reads them: that is as long.

    Raises:
        msgspec.DecodeError: there are too many.
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
    """Leave out of a long object what nobody reads and what may be most of it, and nested thousands deep."""
    if len(raw) < LONG or b'"managedFields"' not in raw:
        return raw
    return replaced(raw, [("metadata", "managedFields")], lambda _: b"null")


def replaced(raw: bytes, paths: Sequence[Sequence[str]], put: Callable[[bytes], bytes]) -> bytes:
    """Put another text in place of each value at some paths; what is not there is left alone.

    Args:
        raw: an object, or an array.
        paths: names of members, and EACH.
        put: makes the other text.
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
    """Return whether something lies deeper in a text."""
    if raw.count(b"[") + raw.count(b"{") <= than:
        return False
    return shallow(raw, than) != raw


def members(raw: bytes) -> dict[str, bytes]:
    """Split an object into its members' names and texts; empty for anything else."""
    try:
        return {name: bytes(text) for name, text in _MEMBERS.decode(raw).items()}
    except msgspec.ValidationError:
        return {}
    except UNREADABLE:
        pass
    found = (_MEMBER.fullmatch(part) for part in _inside(raw, b"{"))
    return {_text(one[1]): one[2].rstrip() for one in found if one is not None}


def elements(raw: bytes) -> list[bytes]:
    """Split an array into its elements' texts; empty for anything else."""
    try:
        return [bytes(text) for text in _ELEMENTS.decode(raw)]
    except msgspec.ValidationError:
        return []
    except UNREADABLE:
        pass
    return [part.strip() for part in _inside(raw, b"[") if part.strip()]


def _inside(raw: bytes, opening: bytes) -> list[bytes]:
    """Split what is between the outermost brackets at its commas; nothing where the brackets do not match."""
    from policysched.model.json_structure import split  # noqa: PLC0415 - as above

    return split(raw, opening)


def _text(raw: bytes) -> str:
    try:
        return _TEXT.decode(raw)
    except (msgspec.MsgspecError, UnicodeError):
        return ""
