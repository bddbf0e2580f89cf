"""Metrics written down: for each metric, by its name or its query, a number for each node.

One shape for the metrics file and for `policysched.dry_run(metrics=…)`. A file is read event by event of its YAML:
names stay texts (`on`, `0815`), everything wrong with it is told with its line, and only its numbers are kept.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import yaml

from policysched.bounded_yaml import shallow_events
from policysched.errors import UsageError

Table: TypeAlias = Mapping[str, Mapping[str, float]]
"""Numbers by metric and node."""
LARGEST: Final = 32 << 20
"""The largest file that is read. Units: bytes."""
MOST_NUMBERS: Final = 1_500_000
"""The numbers that a file may have: 256 metrics of 5,000 nodes are fewer."""
MOST_NAMES: Final = 100_000
"""The nodes and metrics that a file may name."""
MOST_ANCHORS: Final = 10_000
"""The anchors that a file may have."""
_SHOWN: Final = 80
"""How much of a name or a value is said. Units: characters."""
_NOTHING: Final = frozenset(("", "~", "null", "Null", "NULL"))
_SHAPE: Final = "write NAME: {NODE: NUMBER, …}"


def read_table(text: str, file: str) -> Table:
    """Read a metrics file.

    Raises:
        UsageError: it is not of that shape; the text names file, line and column.
    """
    try:
        return _Reader(shallow_events(text, yaml.CSafeLoader), file).read()
    except yaml.MarkedYAMLError as error:
        place = _place(file, error.problem_mark or error.context_mark)
        raise UsageError(f"{place}: not valid YAML: {error.problem or error.context}") from error
    except yaml.YAMLError as error:
        raise UsageError(f"{file}: not valid YAML: {' '.join(str(error).split())}") from error


def load_table(path: Path) -> Table:
    """Read a metrics file from the disk.

    Raises:
        UsageError: it cannot be read, or is not of the right shape.
    """
    return decode_table(read_bytes(path), path)


def read_bytes(path: Path, *, again: bool = False) -> bytes:
    """Read a file.

    Args:
        path: Where it is.
        again: It is read again and again, so that it has to be a regular file.

    Raises:
        UsageError: it cannot be read, is no such file, or is too large.
    """
    try:
        # without a wait for whoever may write to a pipe
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
    """Read the bytes of a metrics file.

    Raises:
        UsageError: they are not of the right shape.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not UTF-8 text") from error
    return read_table(text, str(path))


def as_table(given: object) -> Table:
    """Check what a caller gave.

    Raises:
        UsageError: it is not of the right shape.
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
    """What is kept of a scalar that has an anchor; `style` is that of the YAML, empty where it is not quoted."""

    value: str
    style: str | None


_SCALARS: Final = (yaml.ScalarEvent, _Scalar)


class _Reader:
    """Makes a table of the events of a file."""

    def __init__(self, events: Iterator[yaml.Event], file: str) -> None:
        self._events = events
        self._file = file
        self._left = MOST_NUMBERS
        self._names: dict[str, str] = {}
        """Names of metrics and nodes, so that metrics share them."""
        self._anchored: dict[str, _Scalar | dict[str, float] | None] = {}
        """What aliases stand for; None: what no alias may stand for here."""

    def read(self) -> Table:
        """Read the one document that there is, or none."""
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
        """Read the numbers of a metric; an alias shares those that it stands for."""
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
        """Give the names of a mapping, each with the event of its value; who is given it reads the value to its end."""
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
        """Read what a metric has for a node, None where that is nothing."""
        value = self._meant(event)
        if not isinstance(value, _SCALARS):
            raise UsageError(f"{self._at(event)}: expected one number for node {node:.{_SHOWN}}")
        self._left -= 1
        if self._left < 0:
            raise UsageError(f"{self._at(event)}: more than {MOST_NUMBERS:,} numbers")
        if _is_nothing(value):
            return None
        number = _number(value)
        if number is None:
            said = f"expected a plain number for node {node:.{_SHOWN}}"
            raise UsageError(f'{self._at(event)}: {said}, got "{value.value:.{_SHOWN}}"')
        return number

    def _meant(self, event: yaml.Event) -> yaml.Event | _Scalar | dict[str, float] | None:
        """Return what an alias stands for, and any other event itself; what has an anchor is remembered."""
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
    """Read a number that is not quoted: also 1e3, which YAML itself takes for a text."""
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
    """Return whether there is a number.

    Raises:
        UsageError: there is something else than one, or nothing.
    """
    if value is None:
        return False
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UsageError(f"{where}: expected a number, got {value!r:.80}")
    return True


def _place(file: str, mark: Any) -> str:
    return f"{file}:{mark.line + 1}:{mark.column + 1}" if mark is not None else file
