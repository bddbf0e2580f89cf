"""A file as metric source, for trying policies without a metrics server: for each metric a number for each node.

One shape for the metrics file and for `policysched.dry_run(metrics=…)`: by a metric's name or its query, numbers by
node. A file is read node by node of its YAML, so that names stay texts (`on`, `0815`) and everything wrong with it is
told with its line. It is watched by its content, so that it may be replaced, edited or be a link that moves; its
numbers hold as long as it can be read, and while it cannot, they age as those of a server that is down.
"""

from __future__ import annotations

import asyncio
import difflib
import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import yaml

from policysched import bounded_yaml
from policysched.errors import UsageError
from policysched.framework.client import Clock, MetricSink, Wanted, most_unknown
from policysched.metric_sources.problems import ActiveProblems, QueryOutcome
from policysched.model.policy import MetricAnswer, MetricKey, Sample

if TYPE_CHECKING:
    from policysched.metric_sources.counters import SourceCounters

POLL: Final = 1.0
"""How often the file is looked at. Units: seconds."""
NO_SOURCE: Final = "this scheduler has no source of metrics: start it with --prometheus-url or --metrics-file"
Table: TypeAlias = Mapping[str, Mapping[str, float]]
"""Numbers by metric and node."""
LARGEST: Final = 32 << 20
"""The largest file that is read. Units: bytes."""
_NOTHING: Final = frozenset(("", "~", "null", "Null", "NULL"))
_SHAPE: Final = "write NAME: {NODE: NUMBER, …}"


class FileSource:
    """A `MetricSource` over one file."""

    def __init__(
        self, path: Path, clock: Clock, counters: SourceCounters, *, interval: float, poll: float = POLL
    ) -> None:
        """Read the file a first time.

        Raises:
            UsageError: it cannot be read, or is not of the right shape.
        """
        self._path = path
        self._clock = clock
        self._counters = counters
        self._interval = interval
        self._poll = min(poll, interval)
        self._data: bytes | None = read_bytes(path)
        self._table: Table = decode_table(self._data, path)
        self._problem = ""
        self._wanted: Wanted = {}
        self._untold: dict[MetricKey, None] = {}
        """The metrics that are to be answered for, in order."""
        self._told_at = 0.0
        self._followed = asyncio.Event()
        self._settled = asyncio.Event()
        self._settled.set()
        self._troubles = ActiveProblems()

    def follow(self, wanted: Wanted) -> None:
        """Follow these metrics; those that are new, or have another name, are looked up at once."""
        before, self._wanted = self._wanted, dict(wanted)
        new = [key for key, names in wanted.items() if before.get(key) != names]
        self._untold = dict.fromkeys(key for key in (*self._untold, *new) if key in wanted)
        if new:
            self._settled.clear()
            self._followed.set()

    async def settled(self) -> None:
        """Wait until everything that is followed was looked up."""
        await self._settled.wait()

    async def run(self, sink: MetricSink, nodes: Collection[str]) -> None:
        """Look at the file again and again until cancelled."""
        while True:
            self._followed.clear()
            changed = await self._read()
            now = self._clock.monotonic()
            if changed or now - self._told_at >= self._interval:
                self._told_at = now
                self._untold = dict.fromkeys(self._wanted)
            if self._untold:
                await self._tell(sink, nodes)
            self._settled.set()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._poll):
                    await self._followed.wait()

    async def _read(self) -> bool:
        """Look at the file, in a thread of its own because files may be slow and large; tell whether there is news."""
        before = self._data, self._problem
        try:
            data = await asyncio.to_thread(read_bytes, self._path)
        except UsageError as error:
            self._data, self._problem = None, str(error)
        else:
            await self._take(data)
        self._troubles.tell("metrics file", self._problem)
        return (self._data, self._problem) != before

    async def _take(self, data: bytes) -> None:
        """Take what the file says now; where that is not of the right shape, the old numbers remain and age."""
        if data == self._data:
            return
        self._data = data
        try:
            self._table, self._problem = await asyncio.to_thread(decode_table, data, self._path), ""
        except UsageError as error:
            self._problem = str(error)

    async def _tell(self, sink: MetricSink, nodes: Collection[str]) -> None:
        """Answer for what is to be answered for; the loop has its turn between two metrics."""
        began = self._clock.monotonic()
        while self._untold:
            key = next(iter(self._untold))
            del self._untold[key]
            for answer in self._answers({key: self._wanted[key]}, nodes):
                sink(answer)
            if self._untold:
                await asyncio.sleep(0)
        outcome = QueryOutcome.MALFORMED if self._problem else QueryOutcome.ANSWERED
        self._counters.refreshed(outcome, self._clock.monotonic() - began)

    def _answers(self, wanted: Wanted, nodes: Collection[str]) -> Iterable[MetricAnswer]:
        if self._problem:
            return [MetricAnswer(key, None, self._problem) for key in wanted]
        return answers(self._table, wanted, self._clock.now().timestamp(), str(self._path), nodes)


class NoSource:
    """The `MetricSource` of a process that was given none: every metric is missing, and policies' status says why."""

    def __init__(self) -> None:
        self._wanted: Wanted = {}
        self._followed = asyncio.Event()

    def follow(self, wanted: Wanted) -> None:
        """Record what has no value."""
        self._wanted = dict(wanted)
        self._followed.set()

    async def settled(self) -> None:
        """Wait for nothing: nothing will come."""

    async def run(self, sink: MetricSink, _: Collection[str] = ()) -> None:
        """Say of each metric that it has no source."""
        while True:
            self._followed.clear()
            for key in self._wanted:
                sink(MetricAnswer(key, None, NO_SOURCE))
            await self._followed.wait()


def read_table(text: str, file: str) -> Table:
    """Read a metrics file.

    Raises:
        UsageError: it is not of that shape; the text names file, line and column.
    """
    try:
        root = bounded_yaml.compose(text)
    except yaml.MarkedYAMLError as error:
        place = _place(file, error.problem_mark or error.context_mark)
        raise UsageError(f"{place}: not valid YAML: {error.problem or error.context}") from error
    except yaml.YAMLError as error:
        raise UsageError(f"{file}: not valid YAML: {' '.join(str(error).split())}") from error
    if root is None:
        return {}
    table: dict[str, Mapping[str, float]] = {}
    known: dict[int, Mapping[str, float]] = {}
    for metric, nodes in _entries(root, "the file", file):
        if id(nodes) not in known:  # an alias stands for the same node, and shares its numbers
            known[id(nodes)] = dict(_numbers(nodes, metric, file))
        table[metric] = known[id(nodes)]
    return table


def load_table(path: Path) -> Table:
    """Read a metrics file from the disk.

    Raises:
        UsageError: it cannot be read, or is not of the right shape.
    """
    return decode_table(read_bytes(path), path)


def read_bytes(path: Path) -> bytes:
    """Read a file.

    Raises:
        UsageError: it cannot be read, or is too large.
    """
    try:
        with path.open("rb") as file:
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
        raise UsageError(f"{path}: not a text file in UTF-8") from error
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


def answers(
    table: Table, wanted: Wanted, at: float, file: str, nodes: Collection[str] | None = None
) -> Iterator[MetricAnswer]:
    """Answer for each metric that is followed.

    Args:
        table: The numbers.
        wanted: The metrics, with the names that policies give them.
        at: The time of the numbers: they hold now.
        file: Where they come from, for the problem of a metric that is not in them.
        nodes: The names of the cluster's nodes; of others only some numbers are given. None: all are.
    """
    for key, names in wanted.items():
        # By `policy/name`, then by name, then by query.
        ordered = (*sorted(names, key=lambda name: (-name.count("/"), name)), key.query)
        found = next((table[name] for name in ordered if name in table), None)
        if found is None:
            shown = min(names, key=lambda name: (name.count("/"), name), default=key.query)
            yield MetricAnswer(key, {}, f'{file} has no values for "{shown}"{_instead(shown, table)}')
        else:
            given = found if nodes is None else _known(found, nodes)
            yield MetricAnswer(key, {node: Sample(found[node], at) for node in given if math.isfinite(found[node])})


def _known(numbers: Mapping[str, float], nodes: Collection[str]) -> Iterator[str]:
    """Return the names of nodes that have a number, and of others no more than an answer may have."""
    others = (name for name in numbers if name not in nodes)
    return chain((name for name in nodes if name in numbers), islice(others, most_unknown(nodes)))


def _instead(name: str, table: Table) -> str:
    """Say which metric of the table may be meant, if one looks alike."""
    close = difflib.get_close_matches(name.rpartition("/")[2], table, 1)
    return f'; "{close[0]}" has values: did you mean "{name}"?' if close else ""


def _entries(node: yaml.Node, what: str, file: str) -> Iterator[tuple[str, yaml.Node]]:
    if not isinstance(node, yaml.MappingNode):
        raise UsageError(f"{_place(file, node.start_mark)}: {what} is no mapping: {_SHAPE}")
    seen = set()
    for key, value in node.value:
        place = _place(file, key.start_mark)
        if not isinstance(key, yaml.ScalarNode):
            raise UsageError(f"{place}: expected a name: {_SHAPE}")
        if key.value in seen:
            raise UsageError(f'{place}: "{key.value}" is there twice')
        seen.add(key.value)
        yield key.value, value


def _numbers(nodes: yaml.Node, metric: str, file: str) -> Iterator[tuple[str, float]]:
    if isinstance(nodes, yaml.ScalarNode) and _is_nothing(nodes):
        return
    for name, value in _entries(nodes, f'"{metric}"', file):
        if not isinstance(value, yaml.ScalarNode):
            raise UsageError(f"{_place(file, value.start_mark)}: expected one number for node {name}")
        if _is_nothing(value):
            continue
        number = _number(value)
        if number is None:
            place = _place(file, value.start_mark)
            raise UsageError(f'{place}: expected a plain number for node {name}, got "{value.value}"')
        yield name, number


def _is_nothing(node: yaml.ScalarNode) -> bool:
    return not node.style and node.value in _NOTHING


def _number(node: yaml.ScalarNode) -> float | None:
    """Read a number that is not quoted: also 1e3, which YAML itself takes for a text."""
    text = node.value.lower().replace(".nan", "nan").replace(".inf", "inf")
    try:
        return float(text) if not node.style else None
    except ValueError:
        return None


def _items(given: object, where: str) -> Iterator[tuple[str, Any]]:
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise UsageError(f"{where}: expected a dict with texts for keys, got {given!r:.80}")
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


def _place(file: str, mark: yaml.Mark | None) -> str:
    return f"{file}:{mark.line + 1}:{mark.column + 1}" if mark is not None else file
