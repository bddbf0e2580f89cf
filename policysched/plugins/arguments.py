"""What the arguments of plugins have in common: how an entry of `pluginConfig` becomes a shape of its plugin.

Knows no plugin. Arguments are read as strictly as kube-scheduler reads them, nested objects included: a field that
nobody knows is a mistake, a null is as good as absent. A mistake is the user's and ends in one line that names the
plugin and the field.

Source: kube-scheduler/config/v1/types.go (decodeNestedObjects), v0.36.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, TypeVar

import msgspec

from policysched.errors import UsageError
from policysched.model.decode import ObjectError, decode, without_nulls

Arguments = Mapping[str, Any]
Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
T = TypeVar("T")
API_VERSION: Final = "kubescheduler.config.k8s.io/v1"
"""The version of configurations, and of arguments in them."""
SECOND: Final = 1_000_000_000
_UNITS: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": SECOND,
    "m": 60 * SECOND,
    "h": 3600 * SECOND,
}
_PART: Final = re.compile(r"(?<![0-9.])([0-9]++(?:\.[0-9]*+)?+|\.[0-9]++)(ns|us|µs|μs|ms|s|m|h)")
_DURATION: Final = re.compile(rf"[-+]?(?:0|(?:{_PART.pattern})+)")
_LONGEST: Final = 2**63 - 1
_SHAPES: Final[dict[type[Any], Any]] = {}
"""What was found out about shapes of arguments."""


class Given(msgspec.Struct, rename="camel", kw_only=True, frozen=True):
    """The base of what a configuration gives."""


class PluginArguments(Given, frozen=True):
    """The base of a plugin's arguments, which may say what they are."""

    api_version: str = ""
    kind: str = ""


def converted(plugin: str, arguments: Arguments, shape: type[T]) -> T:
    """Turn what a configuration states into a plugin's shape.

    Args:
        plugin: the plugin's name.
        arguments: what stands in `args`.
        shape: a subclass of PluginArguments.

    Raises:
        UsageError: a field is unknown or of the wrong type, or the arguments say that they are something else.
    """
    unknown = unknown_field(arguments, shape)
    if unknown:
        raise refusal(plugin, unknown, "there is no such field")
    plain = plainly(arguments, shape)
    _check_identity(plugin, plain)
    try:
        return decode(shape, f"{plugin}Args", plain)
    except ObjectError as error:
        raise refusal(plugin, error.field, error.reason) from error


def refusal(plugin: str, field: str, why: str) -> UsageError:
    """Make the error for arguments that cannot be used."""
    return UsageError(f"{plugin}: {field}: {why}" if field else f"{plugin}: {why}")


def unknown_field(raw: Any, shape: type[Any]) -> str:
    """Find a field that a shape does not have, in nested objects too; the empty text where there is none."""
    return next(iter(_unknown(raw, _described(shape), "")), "")


def _described(shape: type[Any]) -> Any:
    """Give the fields of a shape; finding them out takes longer than reading a configuration."""
    if shape not in _SHAPES:
        _SHAPES[shape] = msgspec.inspect.type_info(shape)
    return _SHAPES[shape]


def plainly(raw: Any, shape: type[Any], kept: str = "") -> Any:
    """Copy a JSON value as kube-scheduler reads its nulls: as absent in an object, as empty in a list.

    Values of the field that is `kept` stay as they are, nulls and all.
    """
    return _plain(raw, _described(shape), kept)


def _plain(value: Any, kind: Any, kept: str) -> Any:
    if isinstance(kind, msgspec.inspect.UnionType):
        kind = next(one for one in kind.types if not isinstance(one, msgspec.inspect.NoneType))
    if isinstance(value, Mapping):
        types = {field.encode_name: field.type for field in getattr(kind, "fields", ())}
        given = ((key, one) for key, one in value.items() if one is not None)
        return {key: one if key == kept else _plain(one, types.get(key), kept) for key, one in given}
    if isinstance(value, list | tuple):
        item = getattr(kind, "item_type", None)
        empty: Any = "" if isinstance(item, msgspec.inspect.StrType) else {}
        return [empty if one is None else _plain(one, item, kept) for one in value]
    return without_nulls(value)


def _check_identity(plugin: str, plain: Mapping[str, Any]) -> None:
    for field, expected in (("apiVersion", API_VERSION), ("kind", f"{plugin}Args")):
        if plain.get(field) not in (None, "", expected):
            raise refusal(plugin, field, f"expected {expected}, got {plain[field]}")


def _unknown(value: Any, kind: Any, place: str) -> list[str]:
    if isinstance(kind, msgspec.inspect.UnionType):
        return [found for one in kind.types for found in _unknown(value, one, place)]
    if isinstance(value, list | tuple):
        item = getattr(kind, "item_type", None)
        return [found for index, one in enumerate(value) for found in _unknown(one, item, f"{place}[{index}]")]
    if not (isinstance(value, Mapping) and isinstance(kind, msgspec.inspect.StructType)):
        return []
    types = {field.encode_name: field.type for field in kind.fields}
    paths = {name: f"{place}.{name}".removeprefix(".") for name in value}
    strange = [path for name, path in paths.items() if name not in types]
    return strange + [
        found for name, one in value.items() if name in types for found in _unknown(one, types[name], paths[name])
    ]


def nanoseconds(text: str) -> int | None:
    """Read a duration as Go writes them, as `1h15m30.5s`; None where it is none."""
    if not _DURATION.fullmatch(text):
        return None
    total = sum(_scaled(number, _UNITS[unit]) for number, unit in _PART.findall(text))
    if total > _LONGEST:
        return None
    return -total if text.startswith("-") else total


def _scaled(number: str, unit: int) -> int:
    whole, _, fraction = number.partition(".")
    return int(whole or 0) * unit + (int(fraction or 0) * unit // 10 ** len(fraction) if fraction else 0)
