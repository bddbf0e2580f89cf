"""Decoding of protobuf bodies, which some kubectl commands send, into the same dictionaries as JSON.

Field numbers come from the field table. There is no encoder, because every client accepts JSON answers. Default values,
which the protobuf writer cannot omit, are removed.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from policysched.apimachinery import Json
from policysched.apimachinery import decode as decode_json
from policysched.apimachinery.errors import StatusError
from policysched.apimachinery.resources import GO_TYPE, STRUCT, rows, struct, struct_name

MAGIC = b"k8s\x00"


def decode(body: bytes) -> Json:
    """Decode a Kubernetes object from protobuf."""
    try:
        return _envelope(body.removeprefix(MAGIC))
    except (IndexError, KeyError, ValueError) as error:
        raise StatusError(400, f"error decoding the protobuf body: {error}") from error


def _envelope(body: bytes) -> Json:
    unknown = _message(body)
    meta = _message(unknown[1][-1])
    version, kind = meta[1][-1].decode(), meta[2][-1].decode()
    name = struct_name(version.rpartition("/")[0], kind)
    if version == "meta.k8s.io/v1" or kind == "DeleteOptions":
        name = f"meta.{kind}"
    if struct(name) is None:
        raise StatusError(415, f"the sandbox does not read {kind} of {version} as protobuf; send JSON")
    return {"apiVersion": version, "kind": kind} | _struct(unknown[2][-1], name)


def _message(data: bytes) -> dict[int, list[Any]]:
    """Split a protobuf message into the values of each field, by field number."""
    found: dict[int, list[Any]] = {}
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        value: Any
        value, at = _varint(data, at)
        if tag & 7 == 2:
            size, value = value, data[at : at + value]
            if at + size > len(data):
                raise ValueError("a field is longer than the message")
            at += size
        elif tag & 7:
            raise ValueError(f"wire type {tag & 7} is not used by these objects")
        found.setdefault(tag >> 3, []).append(value)
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def _struct(data: bytes, name: str) -> Json:
    message = _message(data)
    found: Json = {}
    for row in rows(name):
        if row.number not in message:
            continue
        value = _field(message[row.number], row.schema)
        if not row.name:
            found |= value
        elif row.pointer or value not in _EMPTY:
            found[row.name] = value
    return found


_EMPTY: tuple[Any, ...] = ("", 0, False, None, {}, [])


def _field(values: list[Any], schema: Json) -> Any:
    if "items" in schema:
        return [_value(value, schema["items"]) for value in values]
    if "additionalProperties" in schema:
        pairs = map(_message, values)
        item = schema["additionalProperties"]
        return {pair.get(1, [b""])[-1].decode(): _value(pair[2][-1], item) if 2 in pair else "" for pair in pairs}
    return _value(values[-1], schema)


def _value(value: Any, schema: Json) -> Any:
    if STRUCT in schema:
        return _struct(value, schema[STRUCT])
    return _SCALARS.get(schema[GO_TYPE], lambda text: text.decode())(value)


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
    "int32": _signed,
    "[]uint8": lambda data: base64.b64encode(data).decode(),
    "quantity": _quantity,
    "time": _time,
    "microtime": _time,
    "intorstring": _int_or_string,
    "any": _raw,
}
