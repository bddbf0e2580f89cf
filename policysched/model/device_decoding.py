"""Decodes resource slices, device classes, claims and claim templates, and checks their quantities.

Opaque driver parameters are JSON that API servers store and return unchanged, and so does this module. If the
parameters prevent decoding of the rest, they are removed first and put back afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec

from policysched.model.decode import check_quantities, decode, first_attempt, is_json, key_of, plain
from policysched.model.device_amounts import distinct_amounts, placed_amounts
from policysched.model.objects import (
    Amount,
    DeviceClass,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from policysched.model.objects.devices import NO_PARAMETERS
from policysched.model.quantity import QuantityError, parse
from policysched.reading.lenient_json import EACH, replaced, shallow, without_halves, without_managed_fields

T = TypeVar("T")
OfDevices = TypeVar("OfDevices", ResourceSlice, DeviceClass, ResourceClaim, ResourceClaimTemplate)
_IN_CONFIG: Final = ("config", EACH, "opaque", "parameters")
_PARAMETERS: Final[dict[type, tuple[tuple[str, ...], ...]]] = {
    DeviceClass: (("spec", *_IN_CONFIG),),
    ResourceClaimTemplate: (("spec", "spec", "devices", *_IN_CONFIG),),
    ResourceClaim: (("spec", "devices", *_IN_CONFIG), ("status", "allocation", "devices", *_IN_CONFIG)),
}
"""For each kind, the field paths of the driver parameters (`opaque`), which only the driver interprets."""


def decode_devices(shape: type[OfDevices], raw: bytes | Mapping[str, Any]) -> OfDevices:
    """Decode a resource slice, a device class, a resource claim or a claim template, and check its quantities.

    Raises:
        ObjectError: the object is malformed.
    """
    kind = shape.__name__
    made = _read_devices(shape, raw)
    try:
        _parse_all(distinct_amounts(made))
    except QuantityError:
        placed = {"".join(map(str, place)): amount for place, amount in placed_amounts(made) if amount is not None}
        check_quantities(kind, key_of(made.metadata), iter([("", placed)]))  # raises the error with the field
    return made


def _parse_all(amounts: Iterable[Amount | None]) -> None:
    for amount in amounts:
        if amount is not None:
            parse(amount)


def _read_devices(shape: type[OfDevices], raw: bytes | Mapping[str, Any]) -> OfDevices:
    text = raw if isinstance(raw, bytes) else msgspec.json.encode(raw, enc_hook=dict)
    made = first_attempt(shape, shape.__name__, text)
    if made is None:
        return _with_parameters_apart(shape, text)
    return _with_parameters(made, msgspec.Raw.copy) if b'"parameters"' in text else made


def without_parameters(obj: T) -> T:
    """Return an object without its driver parameters (`opaque`), which scheduling does not read."""
    return _with_parameters(obj, lambda _: NO_PARAMETERS)


def _with_parameters_apart(shape: type[OfDevices], text: bytes) -> OfDevices:
    """Decode an object, but keep its driver parameters (`opaque`), which may be any JSON, as text."""
    kind, apart = shape.__name__, list[bytes]()

    def take_out(parameters: bytes) -> bytes:
        try:
            is_kept = is_json(without_halves(shallow(parameters)))
        except msgspec.DecodeError:
            is_kept = False
        if not is_kept:
            return parameters
        apart.append(parameters)
        return str(len(apart) - 1).encode()

    def put_back(number: msgspec.Raw) -> msgspec.Raw:
        return msgspec.Raw(apart[int(bytes(number))])

    text = without_managed_fields(text)
    if paths := _PARAMETERS.get(shape):
        text = replaced(text, paths, take_out)
    made = first_attempt(shape, kind, text)
    if made is None:
        readable = plain(kind, text)
        made = decode(shape, kind, msgspec.json.encode(readable))
    return _with_parameters(made, put_back)


def _with_parameters(made: T, change: Callable[[msgspec.Raw], msgspec.Raw]) -> T:
    for path in _PARAMETERS.get(type(made), ()):
        made = _changed(made, path, change)
    return made


def _changed(value: Any, path: Sequence[str], change: Callable[[Any], Any]) -> Any:
    """Return a copy of a struct in which `change` replaces the part at an attribute path, if the part exists."""
    if not path:
        return change(value)
    if path[0] == EACH:
        return tuple([_changed(one, path[1:], change) for one in value])
    before = getattr(value, path[0])
    if before is None or before == ():
        return value
    after = _changed(before, path[1:], change)
    return value if after is before else msgspec.structs.replace(value, **{path[0]: after})
