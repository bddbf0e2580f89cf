"""Decodes plugin arguments from `pluginConfig` as strictly as kube-scheduler.

This module knows no plugin. Arguments are decoded as strictly as in kube-scheduler, nested objects included: an unknown
field is an error, and null means absent. An error becomes one line with plugin and field.

Source: kube-scheduler/config/v1/types.go (decodeNestedObjects), v0.36.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Final, TypeVar

import msgspec

from policysched.errors import UsageError
from policysched.model.decode import ObjectError, decode, without_nulls
from policysched.reading.durations import nanoseconds

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Duration = Annotated[str, msgspec.Meta(extra={"null": True})]
"""A duration in the format of Go, such as `1m30s`."""
StatedDuration = Annotated[str, msgspec.Meta(extra={"null": False})]
"""A duration that must not be null: kube-scheduler reads null as an empty string, which is an invalid duration."""
A = TypeVar("A", bound="PluginArguments")
S = TypeVar("S")
Fault = tuple[str, str]
"""An invalid field of plugin arguments, and why it is invalid."""
API_VERSION: Final = "kubescheduler.config.k8s.io/v1"
"""The apiVersion of configurations, and of plugin arguments in configurations."""
_STEP: Final = re.compile(r"\[(\d+)\]|([^.\[\]]+)")
_SHAPES: Final[dict[type[Any], Any]] = {}
"""Type information of the classes of plugin arguments, cached by class."""


class Given(msgspec.Struct, rename="camel", kw_only=True, frozen=True):
    """Base of all structs that are decoded from a KubeSchedulerConfiguration."""


class PluginArguments(Given, frozen=True):
    """Base of the structs with the arguments of a plugin."""

    checked_when_made: ClassVar[bool] = False
    """Whether invalid arguments of a plugin that is not enabled are ignored."""

    api_version: str = ""
    kind: str = ""

    def faults(self) -> Iterator[Fault]:
        """Yield each field whose value has the right type but is invalid, with the reason."""
        return iter(())


def converted(plugin: str, arguments: Any, shape: type[A]) -> A:
    """Convert a configuration's arguments of a plugin into the arguments class of the plugin.

    Args:
        plugin: the plugin's name.
        arguments: the value of `args`, None if absent; arguments that are already decoded are returned unchanged.
        shape: a subclass of PluginArguments.

    Raises:
        UsageError: a field is unknown, of the wrong type or invalid, or apiVersion or kind do not match.
        else.
    """
    if isinstance(arguments, shape):
        return arguments
    made, faults = read_arguments(plugin, arguments, shape)
    for fault in faults or (() if made is None else made.faults()):
        raise refusal(plugin, *fault)
    assert made is not None  # noqa: S101 - what is missing has a fault
    return made


def read_arguments(plugin: str, arguments: Any, shape: type[A]) -> tuple[A | None, list[Fault]]:
    """Decode a configuration's arguments of a plugin, and set defaults.

    Args:
        plugin: the plugin's name.
        arguments: the value of `args`, None if absent.
        shape: a subclass of PluginArguments.

    Returns:
        The arguments (None if they cannot be decoded), and the fields that are unknown or of the wrong type.
    """
    if arguments is not None and not isinstance(arguments, Mapping):
        return None, [("", "args must be an object")]
    made, faults = strictly(arguments or {}, shape)
    if made is None:
        return None, faults
    kind = f"{plugin}Args"
    for field, got, expected in (("apiVersion", made.api_version, API_VERSION), ("kind", made.kind, kind)):
        if got not in ("", expected):
            faults.append((field, f"expected {expected}, got {got}"))
    return None if faults else msgspec.structs.replace(made, api_version=API_VERSION, kind=kind), faults


def refusal(plugin: str, field: str, why: str) -> UsageError:
    """Return the error that a field of a plugin's arguments is invalid."""
    return UsageError(f"{plugin}: {field}: {why}" if field else f"{plugin}: {why}")


def strictly(raw: Any, shape: type[S], kept: str = "") -> tuple[S | None, list[Fault]]:
    """Decode a JSON value as kube-scheduler does: null means absent, and an unknown field is an error.

    Args:
        raw: the value.
        shape: the expected type.
        kept: name of a field whose value is copied unchanged, including nulls.

    Returns:
        The value (None if a field has the wrong type), and the fields that are unknown or of the wrong type.
    """
    if shape not in _SHAPES:  # inspecting a type takes longer than decoding a configuration
        _SHAPES[shape] = msgspec.inspect.type_info(shape)
    faults: list[Fault] = []
    plain = _copied(raw, _SHAPES[shape], "", kept, faults)
    placed: set[str] = set()
    while True:
        try:
            made = decode(shape, shape.__name__, plain)
        except ObjectError as error:
            faults.append((error.field, error.reason))
            if error.field in placed or not _put_aside(plain, error.field):
                return None, faults
            placed.add(error.field)
        else:
            return (None if placed else made), faults


def _put_aside(plain: Any, path: str) -> bool:
    """Remove the value of a wrong type at a path, so that decoding finds the next error; return whether it existed."""
    steps = [int(index) if index else name for index, name in _STEP.findall(path)]
    holder = plain
    try:
        *above, last = steps
        for step in above:
            holder = holder[step]
        if isinstance(holder, list):
            holder[last] = {} if holder[last] != {} else ""
        else:
            del holder[last]
    except (LookupError, TypeError, ValueError):
        return False
    return True


def _copied(value: Any, kind: Any, place: str, kept: str, faults: list[Fault]) -> Any:
    if isinstance(kind, msgspec.inspect.UnionType):
        kind = next(one for one in kind.types if not isinstance(one, msgspec.inspect.NoneType))
    if isinstance(value, Mapping):
        return _copied_object(value, kind, place, kept, faults)
    if isinstance(value, list | tuple):
        item = getattr(kind, "item_type", None)
        empty: Any = "" if isinstance(item, msgspec.inspect.StrType) else {}
        return [
            empty if one is None else _copied(one, item, f"{place}[{index}]", kept, faults)
            for index, one in enumerate(value)
        ]
    return without_nulls(value)


def _copied_object(value: Mapping[str, Any], kind: Any, place: str, kept: str, faults: list[Fault]) -> dict[str, Any]:
    types = {field.encode_name: field.type for field in getattr(kind, "fields", ())}
    made = {}
    for name, one in value.items():
        path = f"{place}.{name}".removeprefix(".")
        if name not in types and isinstance(kind, msgspec.inspect.StructType):
            faults.append((path, "unknown field"))
        of = types.get(name)
        if isinstance(of, msgspec.inspect.Metadata) and _is_no_duration(one, of):
            faults.append((path, f"{msgspec.json.encode(one).decode()} is not a duration; write it as 10s or 1m30s"))
        elif one is not None:
            made[name] = one if name == kept else _copied(one, of, path, kept, faults)
    return made


def _is_no_duration(value: Any, kind: msgspec.inspect.Metadata) -> bool:
    if value is None:
        return not (kind.extra or {})["null"]
    return isinstance(value, str) and nanoseconds(value) is None
