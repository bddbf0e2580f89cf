"""Plugin arguments: how an entry of `pluginConfig` is decoded into the arguments of its plugin.

Knows no plugin. Arguments are read as strictly as kube-scheduler reads them, nested objects included: a field that
nobody knows is a mistake, a null is as good as absent. A mistake is the user's and ends in one line that names the
plugin and the field.

Source: kube-scheduler/config/v1/types.go (decodeNestedObjects), v0.36.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, TypeVar

import msgspec

from policysched.errors import UsageError
from policysched.model.decode import ObjectError, decode, without_nulls

Arguments = Mapping[str, Any]
Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
A = TypeVar("A", bound="PluginArguments")
Fault = tuple[str, str]
"""A field that is not valid, and why."""
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
    """The base of a plugin's arguments, which may say what they are: fields with their types and defaults."""

    api_version: str = ""
    kind: str = ""

    def faults(self) -> Iterator[Fault]:
        """Name fields that are of the right type and not valid, and why."""
        return iter(())


def converted(plugin: str, arguments: Arguments, shape: type[A], *, of_type_alone: bool = False) -> A:
    """Turn what a configuration states into a plugin's shape.

    Args:
        plugin: the plugin's name.
        arguments: what stands in `args`.
        shape: a subclass of PluginArguments.
        of_type_alone: whether its faults are overlooked.

    Raises:
        UsageError: a field is unknown, of the wrong type or not valid, or the arguments say that they are something
        else.
    """
    plain, unknown = without_null_fields(arguments, shape)
    if unknown:
        raise refusal(plugin, unknown, "there is no such field")
    for field, expected in (("apiVersion", API_VERSION), ("kind", f"{plugin}Args")):
        if plain.get(field) not in (None, "", expected):
            raise refusal(plugin, field, f"expected {expected}, got {plain[field]}")
    try:
        made = decode(shape, f"{plugin}Args", plain)
    except ObjectError as error:
        raise refusal(plugin, error.field, error.reason) from error
    for field, why in () if of_type_alone else made.faults():
        raise refusal(plugin, field, why)
    return made


def refusal(plugin: str, field: str, why: str) -> UsageError:
    """Make the error for arguments that cannot be used."""
    return UsageError(f"{plugin}: {field}: {why}" if field else f"{plugin}: {why}")


def without_null_fields(raw: Any, shape: type[Any], kept: str = "") -> tuple[Any, str]:
    """Copy a JSON value as kube-scheduler reads its nulls: as absent in an object, as empty in a list.

    Args:
        raw: the value.
        shape: what it is meant to be.
        kept: the name of a field whose value stays as it is, nulls and all.

    Returns:
        The copy, and a field that the shape does not have, in nested objects too; the empty text where there is none.
    """
    if shape not in _SHAPES:  # finding out the fields of a shape takes longer than reading a configuration
        _SHAPES[shape] = msgspec.inspect.type_info(shape)
    unknown: list[str] = []
    return _copied(raw, _SHAPES[shape], "", kept, unknown), next(iter(unknown), "")


def _copied(value: Any, kind: Any, place: str, kept: str, unknown: list[str]) -> Any:
    if isinstance(kind, msgspec.inspect.UnionType):
        kind = next(one for one in kind.types if not isinstance(one, msgspec.inspect.NoneType))
    if isinstance(value, Mapping):
        types = {field.encode_name: field.type for field in getattr(kind, "fields", ())}
        paths = {name: f"{place}.{name}".removeprefix(".") for name in value}
        if isinstance(kind, msgspec.inspect.StructType):
            unknown += [path for name, path in paths.items() if name not in types]
        return {
            name: one if name == kept else _copied(one, types.get(name), paths[name], kept, unknown)
            for name, one in value.items()
            if one is not None
        }
    if isinstance(value, list | tuple):
        item = getattr(kind, "item_type", None)
        empty: Any = "" if isinstance(item, msgspec.inspect.StrType) else {}
        return [
            empty if one is None else _copied(one, item, f"{place}[{index}]", kept, unknown)
            for index, one in enumerate(value)
        ]
    return without_nulls(value)


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
