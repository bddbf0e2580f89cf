"""Device selectors: compiled once, evaluated for each device.

The values of a device (`Variables`) are created once for all selectors.

Source: k8s.io/dynamic-resource-allocation v0.36 cel/compile.go; k8s.io/api/resource/v1.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from policysched.budget import Budget, BudgetExceededError
from policysched.cel import types
from policysched.cel.calls import Closure, Slots
from policysched.cel.checker import check
from policysched.cel.declarations import VARIABLE
from policysched.cel.evaluation import ProgramError, compile_closures
from policysched.cel.issues import Issue, Issues
from policysched.cel.libraries.kubernetes import semver_of
from policysched.cel.reading import Attribute, attributes_read
from policysched.cel.syntax.parser import parse
from policysched.cel.validation import validate
from policysched.cel.values.kinds import GO_NAMES, KINDS, LISTS, MAPS
from policysched.cel.values.kubernetes import Address, CelQuantity, Format, Locator, Prefix, Semver
from policysched.cel.values.scalars import DefaultMap, Duration, Error, InternalError, Map, Optional, Timestamp, Uint
from policysched.cel.work import LIMIT
from policysched.model import quantity as amounts

_FRAMES: Final = 20_000
"""Python's recursion limit while the most deeply nested expression is evaluated. Units: frames."""
_DEEP: Final = 50
"""Nesting depth up to which an expression is evaluated with Python's normal recursion limit."""
_MOST_CHARACTERS: Final = 100_000
COST_LIMIT: Final = "operation cancelled: actual cost limit exceeded"
TOO_LARGE: Final = "program instantiation failed: its types, patterns and constants take too much to compile"
_CHECKING: Final = LIMIT // 4
"""Cost limit for comparing types in the checker; a selector beyond it is invalid."""


class InvalidDeviceSelectorError(ValueError):
    """Raised if a device selector is invalid; has the message of Kubernetes."""

    def __init__(self, message: str, issues: tuple[Issue, ...] = ()) -> None:
        super().__init__(message)
        self.issues = issues
        """The errors with positions, in the order of the text; empty if an error concerns the whole text."""


@dataclass(frozen=True, slots=True)
class Device:
    """The data of a device that device selectors can read.

    Attributes:
        attributes: By name, with or without a domain: `bool`, `int`, `string` or `version` with the value, or `bools`,
            `ints`, `strings` or `versions` with the values.
        capacity: Quantities by name.
    """

    driver: str
    attributes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    capacity: Mapping[str, str] = field(default_factory=dict)
    allow_multiple_allocations: bool = False


class Variables:
    """A device as CEL variables."""

    __slots__ = ("_device", "trouble")

    def __init__(self, device: Device) -> None:
        self.trouble: str | None = None
        """The error that every selector gets if an attribute of the device is invalid; else None."""
        attributes, capacity = DefaultMap(), DefaultMap()
        for name in sorted(device.attributes):
            value = _attribute(device.attributes[name])
            if isinstance(value, Error):
                self.trouble = self.trouble or f"attribute {name}: {value.message}"
            _put(attributes, name, device.driver, value)
        for name, amount in device.capacity.items():
            _put(capacity, name, device.driver, CelQuantity(amounts.parse(amount)))
        self._device = Map(
            {
                "driver": device.driver,
                "allowMultipleAllocations": device.allow_multiple_allocations,
                "attributes": attributes,
                "capacity": capacity,
            }
        )

    @property
    def value(self) -> Map:
        """The CEL value of the variable `device`."""
        return self._device


@dataclass(frozen=True, slots=True)
class CompiledSelector:
    """A device selector, ready for evaluation.

    Attributes:
        reads: The attributes that the selector can read, by domain and identifier; None for any attribute.
        work: The cost limit of one evaluation, and the cost of the last one.
    """

    text: str
    reads: frozenset[Attribute] | None
    work: Budget
    _closure: Closure
    _slots: int
    _is_deep: bool

    def matches(self, device: Variables) -> bool | str:
        """Return whether the selector matches a device, or the evaluation error with Kubernetes' text."""
        self.work.refill()
        if device.trouble is not None:
            return device.trouble
        try:
            slots = [device.value, *([None] * (self._slots - 1))]
            value = self._evaluated_deeply(slots) if self._is_deep else self._closure(slots)
        except (BudgetExceededError, RecursionError):  # values can be nested deeper than the expression
            return COST_LIMIT
        except InternalError as error:
            return str(error)
        if value is True or value is False:
            return bool(value)
        return value.message if isinstance(value, Error) else _not_bool(value)

    def _evaluated_deeply(self, slots: Slots) -> Any:
        with _deep_recursion():
            return self._closure(slots)


def compile_selector(text: str, *, cel_0_29: bool = False, is_new: bool = False) -> CompiledSelector:
    """Compile the CEL expression of a device selector.

    Args:
        text: The selector.
        cel_0_29: Whether the rules are those of cel-go 0.29, instead of 0.26: attributes can be lists.
        is_new: Whether the API server has not stored the selector yet.

    Raises:
        InvalidDeviceSelectorError: the selector is invalid.
    """
    try:
        with _deep_recursion():
            return _compiled(text, cel_0_29, is_new)
    except BudgetExceededError:
        raise InvalidDeviceSelectorError(TOO_LARGE) from None


def _compiled(text: str, cel_0_29: bool, is_new: bool) -> CompiledSelector:
    issues = Issues(text)
    if len(text) > _MOST_CHARACTERS:
        size = f"size: {len(text)}, limit {_MOST_CHARACTERS}"
        issues.report(-1, f"expression code point size exceeds limit: {size}")
        _refuse(issues)
    node = parse(text, issues)
    _refuse(issues)
    checked = check(node, issues, Budget(_CHECKING), cel_0_29=cel_0_29, is_new=is_new)
    _refuse(issues)
    work = Budget(LIMIT)
    validate(node, checked, issues, work)
    _refuse(issues)
    if checked.types[node] not in {types.BOOL, types.DYN if cel_0_29 and not is_new else types.ANY}:
        raise InvalidDeviceSelectorError(
            f"must evaluate to bool or the unknown type, not {checked.types[node].shown(work)}"
        )
    try:
        closure, slots = compile_closures(node, checked, VARIABLE, work)
    except ProgramError as error:
        raise InvalidDeviceSelectorError(f"program instantiation failed: {error}") from None
    return CompiledSelector(text, attributes_read(node), work, closure, slots, node.depth > _DEEP)


def _refuse(issues: Issues) -> None:
    if issues.found:
        raise InvalidDeviceSelectorError(f"compilation failed: {issues.shown()}", tuple(issues.ordered()))


@contextmanager
def _deep_recursion() -> Iterator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _FRAMES))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def _attribute(given: Mapping[str, Any]) -> Any:
    for kind in ("int", "bool", "string"):
        if given.get(kind) is not None:
            return given[kind]
    for kind in ("ints", "bools", "strings"):
        if given.get(kind) is not None:
            return [*given[kind]]
    if given.get("versions") is not None:
        return _versions(given["versions"])
    if given.get("version") is None:
        return Error("unsupported attribute value")
    version = semver_of(given["version"])
    return Error(f"parse semantic version: {version.message}") if isinstance(version, Error) else version


def _versions(given: Sequence[str]) -> Any:
    versions = [semver_of(one) for one in given]
    wrong = next((one for one in versions if isinstance(one, Error)), None)
    return versions if wrong is None else Error(f"parse semantic version: {wrong.message}")


def _put(into: Map, name: str, driver: str, value: Any) -> None:
    domain, slash, identifier = name.partition("/")
    if not slash:
        domain, identifier = driver, name
    into.entries.setdefault(domain, Map(of_strings=True)).entries[identifier] = value


_CONVERSIONS: Final[dict[type, str]] = {
    str: "unsupported native conversion from string to 'bool'",
    int: "unsupported type conversion from 'int' to bool",
    Uint: "unsupported type conversion from 'uint' to bool",
    float: "type conversion error from Double to 'bool'",
    bytes: "type conversion error from Bytes to 'bool'",
    type(None): "type conversion error from 'null_type' to 'bool'",
    Duration: "type conversion error from 'Duration' to 'bool'",
    Timestamp: "type conversion error from 'Timestamp' to 'bool'",
    Semver: "type conversion error from 'Semver' to 'bool'",
    CelQuantity: "type conversion error from 'Quantity' to 'bool'",
    Locator: "type conversion error from 'URL' to 'bool'",
    Address: "type conversion error from 'IP' to 'bool'",
    Prefix: "type conversion error from 'CIDR' to 'bool'",
    Format: "type conversion error from 'Format' to 'bool'",
    types.CelType: "type conversion not supported for 'type'",
    **dict.fromkeys(LISTS, "type conversion error from list to 'bool'"),
    **dict.fromkeys(MAPS, "type conversion error from map to 'bool'"),
}


def _not_bool(value: Any) -> str:
    reason = _CONVERSIONS.get(type(value), f"type conversion error from {GO_NAMES[type(value)]} to 'bool'")
    if isinstance(value, Optional):
        if value.present and type(value.value) is bool:
            return value.value  # type: ignore[return-value]
        reason = _CONVERSIONS[type(value.value)] if value.present else "optional.none() dereference"
    return f"CEL result of type {KINDS[type(value)].name} could not be converted to bool: {reason}"
