"""Protobuf bodies, which some kubectl commands send: decoded to the same dictionaries as JSON.

It knows the wire format and reads field numbers from the field table. It decodes only, since every client also
takes JSON answers; values that the writer put there because it cannot leave them out are dropped.
"""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from policysched.sandbox.objects.errors import ApiError
from policysched.sandbox.objects.fieldtypes import Field, Type, fields, inlined, names, type_name
from policysched.sandbox.storage.store import decode as decode_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Json = dict[str, Any]
MAGIC = b"k8s\x00"


def decode(body: bytes) -> Json:
    """Decode an object with its envelope."""
    try:
        return _envelope(body.removeprefix(MAGIC))
    except (IndexError, KeyError, ValueError) as error:
        raise ApiError(400, f"error decoding the protobuf body: {error}") from error


def _envelope(body: bytes) -> Json:
    unknown = _message(body)
    meta = _message(unknown[1][-1])
    version, kind = meta[1][-1].decode(), meta[2][-1].decode()
    struct = type_name(version.rpartition("/")[0], kind)
    if version == "meta.k8s.io/v1" or kind == "DeleteOptions":
        struct = f"meta.{kind}"
    if struct not in names():
        raise ApiError(415, f"the sandbox does not read {kind} of {version} as protobuf; send JSON")
    return {"apiVersion": version, "kind": kind} | _struct(unknown[2][-1], struct)


def _message(data: bytes) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {}
    for number, value in _fields(data):
        found.setdefault(number, []).append(value)
    return found


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        match tag & 7:
            case 0:
                value, at = _varint(data, at)
                yield tag >> 3, value
            case 2:
                size, at = _varint(data, at)
                if at + size > len(data):
                    raise ValueError("a field is longer than the message")
                yield tag >> 3, data[at : at + size]
                at += size
            case kind:
                raise ValueError(f"wire type {kind} is not used by these objects")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def _struct(data: bytes, struct: str) -> Json:
    message = _message(data)
    found: Json = {}
    for number, inner in inlined(struct).items():
        if number in message:
            found |= _struct(message[number][-1], inner.name)
    for name, field in fields(struct).items():
        if field.number in message:
            value = _field(message[field.number], field)
            if field.pointer or value not in _EMPTY:
                found[name] = value
    return found


_EMPTY: tuple[Any, ...] = ("", 0, False, None, {}, [])


def _field(values: list[Any], field: Field) -> Any:
    kind = field.type
    match kind.shape:
        case "list" if kind.item:
            return [_value(value, kind.item) for value in values]
        case "map" if kind.item:
            return dict(_pair(value, kind.item) for value in values)
    return _value(values[-1], kind)


def _pair(data: bytes, item: Type) -> tuple[str, Any]:
    entry = _message(data)
    key = entry.get(1, [b""])[-1].decode()
    return key, _value(entry[2][-1], item) if 2 in entry else ""


def _value(value: Any, kind: Type) -> Any:
    if kind.shape == "struct":
        return _struct(value, kind.name)
    return _SCALARS.get(kind.shape, lambda text: text.decode())(value)


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def _quantity(data: bytes) -> str:
    text: str = _message(data).get(1, [b"0"])[-1].decode()
    return text


def _time(data: bytes) -> str | None:
    message = _message(data)
    seconds = _signed(message.get(1, [0])[-1])
    if not message:
        return None
    moment = datetime.fromtimestamp(seconds, UTC)
    nanos = message.get(2, [0])[-1]
    if nanos:
        return moment.replace(microsecond=nanos // 1000).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _int_or_string(data: bytes) -> int | str:
    message = _message(data)
    if message.get(1, [0])[-1]:
        text: str = message.get(3, [b""])[-1].decode()
        return text
    return _signed(message.get(2, [0])[-1])


def _raw(data: bytes) -> Any:
    raw = _message(data).get(1, [b""])[-1]
    return decode_json(raw) if raw else None


_SCALARS: dict[str, Callable[[Any], Any]] = {
    "bool": bool,
    "int": _signed,
    "bytes": lambda data: base64.b64encode(data).decode(),
    "quantity": _quantity,
    "time": _time,
    "microtime": _time,
    "intorstring": _int_or_string,
    "any": _raw,
}
