"""Metric values in a YAML file or a dict: for each metric, by name or query, a number for each node.

The metrics file and `policysched.dry_run(metrics=…)` have the same format. A file is parsed by YAML events: names stay
text (`on`, `0815`), errors have a line number, and only numbers are kept in memory.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import yaml

from policysched.budget import Budget, BudgetExceededError
from policysched.errors import UsageError
from policysched.reading.bounded_yaml import shallow_events
from policysched.reading.files import as_text

Table: TypeAlias = Mapping[str, Mapping[str, float]]
"""Metric values: numbers by metric (name or query) and node."""
LARGEST: Final = 32 << 20
"""Largest metrics file; more is an error. Units: bytes."""
MOST_NUMBERS: Final = 1_500_000
"""Largest number of values in a file; more is an error. 256 metrics of 5,000 nodes need fewer."""
MOST_NAMES: Final = 100_000
"""Largest number of node and metric names in a file; more is an error."""
MOST_ANCHORS: Final = 10_000
"""Largest number of anchors in a file; more is an error."""
_SHOWN: Final = 80
"""Longest name or value in a message. Units: characters."""
_NOTHING: Final = frozenset(("", "~", "null", "Null", "NULL"))
_SHAPE: Final = "write NAME: {NODE: NUMBER, …}"


def read_table(text: str, file: str) -> Table:
    """Parse the text of a metrics file.

    Raises:
        UsageError: the text has another format; the message contains file, line and column.
    """
    try:
        return _Reader(shallow_events(text, yaml.CSafeLoader), file, Budget(MOST_NUMBERS)).read()
    except yaml.MarkedYAMLError as error:
        place = _place(file, error.problem_mark or error.context_mark)
        raise UsageError(f"{place}: not valid YAML: {error.problem or error.context}") from error
    except yaml.YAMLError as error:
        raise UsageError(f"{file}: not valid YAML: {' '.join(str(error).split())}") from error


def load_table(path: Path) -> Table:
    """Read and parse a metrics file.

    Raises:
        UsageError: the file cannot be read, or has another format.
    """
    return decode_table(read_bytes(path), path)


def read_bytes(path: Path, *, again: bool = False) -> bytes:
    """Read a file of limited size.

    Args:
        path: Path of the file.
        again: Whether the file will be read repeatedly, and so must be a regular file.

    Raises:
        UsageError: the file cannot be read, is not a regular file, or is too large.
    """
    try:
        # do not wait for a writer of a pipe
        with open(os.open(path, os.O_RDONLY | (os.O_NONBLOCK if again else 0)), "rb") as file:  # noqa: PTH123
            if again and not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UsageError(f"{path} cannot be followed: it is not a regular file")
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {(error.strerror or str(error)).lower()}") from error
    if len(data) > LARGEST:
        raise UsageError(f"{path} is larger than {LARGEST >> 20} MiB")
    return data


def decode_table(data: bytes, path: Path) -> Table:
    """Decode and parse the bytes of a metrics file.

    Raises:
        UsageError: the bytes have another format.
    """
    return read_table(as_text(data, str(path)), str(path))


def as_table(given: object) -> Table:
    """Check and convert a table given as Python objects.

    Raises:
        UsageError: the object has another format.
    """
    return {
        metric: {
            node: float(number)
            for node, number in _items(nodes, f"metrics[{metric!r}]")
            if _is_number(number, f"metrics[{metric!r}][{node!r}]")
        }
        for metric, nodes in _items(given, "metrics")
    }


class _Scalar(NamedTuple):
    """Value and quoting style of a YAML scalar with an anchor; the style is empty without quotes."""

    value: str
    style: str | None


_SCALARS: Final = (yaml.ScalarEvent, _Scalar)


class _Reader:
    """Builds a table from the YAML events of a file."""

    def __init__(self, events: Iterator[yaml.Event], file: str, numbers: Budget) -> None:
        self._events = events
        self._file = file
        self._numbers = numbers
        self._names: dict[str, str] = {}
        """Names of metrics and nodes, interned so that metrics share them."""
        self._anchored: dict[str, _Scalar | dict[str, float] | None] = {}
        """Values by YAML anchor; None for a value to which an alias must not refer."""

    def read(self) -> Table:
        """Return the table in the file's only YAML document; an empty file gives an empty table."""
        event = self._next()
        while isinstance(event, yaml.StreamStartEvent | yaml.DocumentStartEvent):
            event = self._next()
        if isinstance(event, yaml.StreamEndEvent):
            return {}
        self._meant(event)
        table = {name: self._metric(name, value) for name, value in self._entries(event, "the file")}
        self._next()
        after = self._next()
        if not isinstance(after, yaml.StreamEndEvent):
            raise UsageError(f"{self._at(after)}: not valid YAML: but found another document")
        return table

    def _metric(self, name: str, event: yaml.Event) -> dict[str, float]:
        """Read the numbers of a metric; an alias shares the numbers of its anchor."""
        value = self._meant(event)
        if isinstance(value, dict):
            return value
        if isinstance(value, _SCALARS) and _is_nothing(value):
            return {}
        numbers: dict[str, float] = {}
        for node, given in self._entries(event, f'"{name}"'):
            number = self._number(node, given)
            if number is not None:
                numbers[node] = number
        if anchor := getattr(event, "anchor", None):
            self._anchored[anchor] = numbers
        return numbers

    def _entries(self, event: yaml.Event, what: str) -> Iterator[tuple[str, yaml.Event]]:
        """Yield each key of a YAML mapping with the first event of its value; the caller must consume the value."""
        if not isinstance(event, yaml.MappingStartEvent):
            raise UsageError(f"{self._at(event)}: {what} is not a mapping; {_SHAPE}")
        seen: set[str] = set()
        while not isinstance(key := self._next(), yaml.MappingEndEvent):
            name = self._meant(key)
            if not isinstance(name, _SCALARS):
                raise UsageError(f"{self._at(key)}: expected a name; {_SHAPE}")
            if len(self._names) > MOST_NAMES:
                raise UsageError(f"{self._at(key)}: more than {MOST_NAMES:,} names")
            if name.value in seen:
                raise UsageError(f'{self._at(key)}: "{name.value:.{_SHOWN}}" is defined twice')
            seen.add(name.value)
            yield self._names.setdefault(name.value, name.value), self._next()

    def _number(self, node: str, event: yaml.Event) -> float | None:
        """Read the number of a node; None for null."""
        value = self._meant(event)
        if not isinstance(value, _SCALARS):
            raise UsageError(f"{self._at(event)}: expected one number for node {node:.{_SHOWN}}")
        try:
            self._numbers.spend()
        except BudgetExceededError:
            raise UsageError(f"{self._at(event)}: more than {self._numbers.limit:,} numbers") from None
        if _is_nothing(value):
            return None
        number = _number(value)
        if number is None:
            said = f"expected a plain number for node {node:.{_SHOWN}}"
            raise UsageError(f'{self._at(event)}: {said}, got "{value.value:.{_SHOWN}}"')
        return number

    def _meant(self, event: yaml.Event) -> yaml.Event | _Scalar | dict[str, float] | None:
        """Return the value that a YAML alias repeats, or any other event unchanged; record the values of anchors."""
        anchor: str | None = getattr(event, "anchor", None)
        if isinstance(event, yaml.AliasEvent):
            if anchor not in self._anchored:
                raise UsageError(f"{self._at(event)}: not valid YAML: found undefined alias")
            return self._anchored[anchor]
        if anchor is not None:
            scalar = _Scalar(event.value, event.style) if isinstance(event, yaml.ScalarEvent) else None
            self._anchored[anchor] = scalar
            if len(self._anchored) > MOST_ANCHORS:
                raise UsageError(f"{self._at(event)}: more than {MOST_ANCHORS:,} anchors")
        return event

    def _next(self) -> yaml.Event:
        return next(self._events)

    def _at(self, event: yaml.Event) -> str:
        return _place(self._file, event.start_mark)


def _is_nothing(event: yaml.ScalarEvent | _Scalar) -> bool:
    return not event.style and event.value in _NOTHING


def _number(event: yaml.ScalarEvent | _Scalar) -> float | None:
    """Parse an unquoted number, also `1e3`, which YAML treats as text."""
    text = event.value.lower().replace(".nan", "nan").replace(".inf", "inf")
    try:
        return float(text) if not event.style else None
    except ValueError:
        return None


def _items(given: object, where: str) -> Iterator[tuple[str, Any]]:
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise UsageError(f"{where}: expected a dict with string keys, got {given!r:.80}")
    yield from given.items()


def _is_number(value: object, where: str) -> bool:
    """Return True if a value is a number and False if it is None; raise an error for any other value.

    Raises:
        UsageError: the value is neither a number nor None.
    """
    if value is None:
        return False
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UsageError(f"{where}: expected a number, got {value!r:.80}")
    return True


def _place(file: str, mark: Any) -> str:
    return f"{file}:{mark.line + 1}:{mark.column + 1}" if mark is not None else file
