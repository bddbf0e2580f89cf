"""`DeviceColumns`: one row per device, with columns of integer codes for the device's fields and attributes.

A device's traits are its driver, capacities, counters, taints and flags: all that a search reads besides attributes.
Traits and attribute values are interned, so that devices that differ in a serial number only use little memory, and
columns of codes show which devices are equal in certain attributes.

Shapes: one element a row; a slice's devices have consecutive rows, which are reused after its deletion.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Generic, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from policysched.cel import Device as SelectorDevice
from policysched.cel import Variables
from policysched.devices.inventory.amounts import Number, check_capacity, number_of
from policysched.model.objects import DeviceAttribute, DeviceCapacity, DeviceTaint, SliceDevice
from policysched.model.selection.node_selectors import REPELLING_EFFECTS

V = TypeVar("V")
Codes = NDArray[np.int32]
AttributeValue = tuple[str, object]
"""The type and value of a device attribute; values of different types are never equal."""
LISTS: Final = "lists"
"""The type of a device attribute that has a list of values, or no value, instead of one value."""
_MOST_AHEAD: Final = 64
"""Number of attributes whose columns are created before the first use."""
_MOST_REMEMBERED: Final = 20_000
"""Maximum number of entries in the log of freed rows; beyond it, the older half is dropped."""
NO_SIGNATURE: Final = 0
ABSENT: Final = 0
"""The code, in an attribute's column, of devices without the attribute."""
_ENCODER: Final = msgspec.json.Encoder(order="deterministic")


@dataclass(frozen=True, slots=True, eq=False)
class DeviceTraits:
    """The fields of a device that a search reads, except its attributes and nodes.

    Attributes:
        counters: The counters that the device takes: set, counter and amount.
        counter_sets: The counter sets that the device names, even if it takes nothing of them.
        trouble: The error that every selector gets for the device, None if it has none.
    """

    driver: str
    capacity: Mapping[str, DeviceCapacity]
    counters: tuple[tuple[str, str, Number], ...]
    counter_sets: tuple[str, ...]
    taints: tuple[DeviceTaint, ...]
    shareable: bool
    binds_to_node: bool
    binding_conditions: tuple[str, ...]
    binding_failure_conditions: tuple[str, ...]
    trouble: str | None


@dataclass(slots=True, eq=False)
class _Entry(Generic[V]):
    key: Hashable
    value: V
    uses: int = 0


class _Interner(Generic[V]):
    """Assigns integer codes from 1 on to values in use; a code is never used again for another value."""

    def __init__(self) -> None:
        self.codes: dict[Hashable, int] = {}
        self._entries: dict[int, _Entry[V]] = {}
        self._next = 1

    def use(self, key: Hashable, value: V) -> int:
        code = self.codes.get(key)
        if code is None:
            code = self.codes[key] = self._next
            self._entries[code] = _Entry(key, value)
            self._next += 1
        self._entries[code].uses += 1
        return code

    def drop(self, code: int) -> None:
        entry = self._entries[code]
        entry.uses -= 1
        if not entry.uses:
            del self._entries[code], self.codes[entry.key]

    def value(self, code: int) -> V:
        return self._entries[code].value


class _Codes:
    """Assigns integer codes from 1 on to values, so that equal codes mean equal values; no code is used again."""

    def __init__(self) -> None:
        self._known: dict[Hashable, int] = {}
        self._next = 1

    def of(self, value: Hashable, devices: int) -> int:
        """Return the code of a value; if far more values than devices have codes, all values get new codes."""
        found = self._known.get(value)
        if found is None:
            if len(self._known) > 4 * devices + 4096:
                self._known.clear()
            found = self._known[value] = self._next
            self._next += 1
        return found


@dataclass(slots=True)
class FreedRows:
    """Log of the device rows that were freed, from which caches learn about removed devices."""

    spans: list[tuple[int, int]] = field(default_factory=list)
    forgotten: int = 0
    """Number of entries that were dropped from the start of the log."""

    def add(self, start: int, stop: int) -> None:
        """Log that the device rows from `start` to `stop` were freed."""
        self.spans.append((start, stop))
        if len(self.spans) > _MOST_REMEMBERED:
            dropped = _MOST_REMEMBERED // 2
            del self.spans[:dropped]
            self.forgotten += dropped

    @property
    def end(self) -> int:
        """Position behind the last log entry, counting dropped entries."""
        return self.forgotten + len(self.spans)

    def since(self, place: int) -> Sequence[tuple[int, int]] | None:
        """Return the log entries from a position on; None if some of these entries were dropped."""
        return None if place < self.forgotten else self.spans[place - self.forgotten :]


class DeviceColumns:
    """The devices of all resource slices as columns, with one row for each device.

    Args:
        reads_lists: Whether selectors can read attributes that are lists.

    Attributes:
        size: Number of rows, rounded up to a power of two for each slice.
        freed: The log of freed rows.
        added: Number of slices that were ever added.
        used: Whether a device is allocated as a whole.
        consumed: Whether shares of a device consume anything.
    """

    def __init__(self, *, reads_lists: bool = False) -> None:
        self._reads_lists = reads_lists
        self.size = 0
        self.freed = FreedRows()
        self.added = 0
        self._traits: _Interner[DeviceTraits] = _Interner()
        self._values: _Interner[DeviceAttribute] = _Interner()
        self._contents = _Codes()
        self._attributes: list[dict[str, int]] = []
        self._traits_of: Codes = np.zeros(64, np.int32)
        self.used: NDArray[np.bool_] = np.zeros(64, np.bool_)
        self.consumed: NDArray[np.bool_] = np.zeros(64, np.bool_)
        self._signatures = _Codes()
        self._by_name: dict[str, Codes] = {}
        self._everything: Codes | None = None
        self._devices_with: Counter[str] = Counter()
        """Number of devices that have each attribute; an attribute that no device has gets no column."""
        self._free: dict[int, list[int]] = {}

    def add(self, driver: str, devices: Sequence[SliceDevice]) -> int:
        """Add the devices of a slice, each in a row.

        Returns:
            The row of the first device.

        Raises:
            QuantityError: An amount is malformed; nothing is added.
        """
        made = [self._traits_for(driver, one) for one in devices]
        start = self._place(len(made))
        self.added += 1
        for row, (one, (key, traits)) in enumerate(zip(devices, made, strict=True), start):
            codes = {name: self._values.use(typed(value), value) for name, value in one.attributes.items()}
            self._attributes[row] = codes
            self._traits_of[row] = self._traits.use(key, traits)
            self._write(row, codes)
            if self._everything is not None:
                self._everything[row] = self._content(codes)
        return start

    def remove(self, start: int, count: int) -> None:
        """Remove the devices of a slice: `count` rows from `start` on."""
        for row in range(start, start + count):
            for code in self._attributes[row].values():
                self._values.drop(code)
            self._uncount(self._attributes[row])
            self._traits.drop(int(self._traits_of[row]))
            self._attributes[row] = {}
        self.used[start : start + count] = self.consumed[start : start + count] = False
        for column in self._by_name.values():
            column[start : start + count] = ABSENT
        self.freed.add(start, start + count)
        self._free.setdefault(_room_for(count), []).append(start)

    def traits(self, code: int) -> DeviceTraits:
        """Return the device fields (`DeviceTraits`) for which a code stands."""
        return self._traits.value(code)

    def traits_at(self, row: int) -> DeviceTraits:
        """Return the fields (`DeviceTraits`) of the device in a row."""
        return self._traits.value(int(self._traits_of[row]))

    def attributes(self, row: int, names: Iterable[str] | None) -> dict[str, DeviceAttribute]:
        """Return the named attributes of the device in a row; all attributes if `names` is None."""
        codes = self._attributes[row]
        return {name: self._values.value(codes[name]) for name in (codes if names is None else names) if name in codes}

    def codes_of(self, rows: Codes, names: Sequence[str] | None) -> list[Codes]:
        """Return the codes by which devices are distinguished: of `DeviceTraits`, and of named attributes (None: all).

        Args:
            rows: The rows.
            names: The attributes, None for all.

        Shapes: rows (R,) -> several arrays (R,); the first is of the traits.
        """
        if names is None:
            return [self._traits_of[rows], self._all_attributes()[rows]]
        nothing = np.zeros(len(rows), np.int32)
        columns = (self._column(name)[rows] if name in self._devices_with else nothing for name in names)
        return [self._traits_of[rows], *columns]

    def signature(self, value: Hashable) -> int:
        """Return an integer that is equal for equal values."""
        return NO_SIGNATURE if value is None else self._signatures.of(value, self.size)

    def _uncount(self, names: Iterable[str]) -> None:
        for name in names:
            self._devices_with[name] -= 1
            if not self._devices_with[name]:
                del self._devices_with[name]
                self._by_name.pop(name, None)

    def _write(self, row: int, codes: Mapping[str, int]) -> None:
        self._devices_with.update(codes.keys())
        for name, code in codes.items():
            column = self._by_name.get(name)
            if column is not None:
                column[row] = code
            elif len(self._by_name) < _MOST_AHEAD:
                self._column(name)  # reads `_attributes`, which already has this row

    def _traits_for(self, driver: str, device: SliceDevice) -> tuple[Hashable, DeviceTraits]:
        common = msgspec.structs.replace(
            device, name=driver, attributes={}, node_name=None, node_selector=None, all_nodes=None
        )
        trouble = _trouble(device, self._reads_lists)
        key = _ENCODER.encode(common), trouble
        known = self._traits.codes.get(key)
        return key, _traits(driver, device, trouble) if known is None else self._traits.value(known)

    def _place(self, count: int) -> int:
        room = _room_for(count)
        free = self._free.get(room)
        if free:
            return free.pop()
        start, self.size = self.size, self.size + room
        self._attributes += [{}] * room
        if self.size > len(self._traits_of):
            self._traits_of = _grown(self._traits_of, self.size)
            more = np.zeros(len(self._traits_of) - len(self.used), np.bool_)
            self.used, self.consumed = np.concatenate((self.used, more)), np.concatenate((self.consumed, more))
            self._by_name = {name: _grown(column, self.size) for name, column in self._by_name.items()}
            if self._everything is not None:
                self._everything = _grown(self._everything, self.size)
        return start

    def _column(self, name: str) -> Codes:
        found = self._by_name.get(name)
        if found is None:
            found = self._by_name[name] = np.zeros(len(self._traits_of), np.int32)
            found[: self.size] = [one.get(name, ABSENT) for one in self._attributes]
        return found

    def _all_attributes(self) -> Codes:
        if self._everything is None:
            self._everything = np.zeros(len(self._traits_of), np.int32)
            self._everything[: self.size] = [self._content(one) for one in self._attributes]
        return self._everything

    def _content(self, codes: Mapping[str, int]) -> int:
        return self._contents.of(tuple(sorted(codes.items())), self.size)


def _room_for(count: int) -> int:
    """Return the number of rows to reserve for a slice: a power of two, so that freed rows suit other slices."""
    return 1 << (count - 1).bit_length() if count else 0


def _grown(column: Codes, size: int) -> Codes:
    grown = np.zeros(max(size, 2 * len(column)), np.int32)
    grown[: len(column)] = column
    return grown


def _trouble(device: SliceDevice, reads_lists: bool) -> str | None:
    """Return the selectors' error for a device with a malformed version or a value of unknown type, or None."""
    suspects = tuple(
        sorted(
            (name, one.version, one.versions if reads_lists else None)
            for name, one in device.attributes.items()
            if one.string is None and one.number is None and one.flag is None
            if not reads_lists or (one.strings is None and one.ints is None and one.bools is None)
        )
    )
    return _trouble_of(suspects) if suspects else None


@lru_cache(maxsize=4096)
def _trouble_of(suspects: tuple[tuple[str, str | None, tuple[str, ...] | None], ...]) -> str | None:
    attributes = {name: {"version": version, "versions": versions} for name, version, versions in suspects}
    return Variables(SelectorDevice("", attributes)).trouble


def _traits(driver: str, device: SliceDevice, trouble: str | None) -> DeviceTraits:
    for capacity in device.capacity.values():
        check_capacity(capacity)
    return DeviceTraits(
        driver=driver,
        capacity=device.capacity,
        counters=tuple(
            (one.counter_set, name, number_of(counter.value))
            for one in device.consumes_counters
            for name, counter in one.counters.items()
        ),
        counter_sets=tuple(one.counter_set for one in device.consumes_counters),
        taints=tuple(one for one in device.taints if one.effect in REPELLING_EFFECTS),
        shareable=bool(device.allow_multiple_allocations),
        binds_to_node=bool(device.binds_to_node),
        binding_conditions=device.binding_conditions,
        binding_failure_conditions=device.binding_failure_conditions,
        trouble=trouble,
    )


def typed(attribute: DeviceAttribute) -> AttributeValue:
    """Return the type and value of an attribute."""
    if attribute.string is not None:
        return ("string", attribute.string)
    if attribute.number is not None:
        return ("int", attribute.number)
    if attribute.flag is not None:
        return ("bool", attribute.flag)
    if attribute.version is not None:
        return ("version", attribute.version)
    return (LISTS, attribute.lists)
