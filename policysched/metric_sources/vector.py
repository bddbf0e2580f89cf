"""Conversion of an instant vector from Prometheus into one value per node.

Series are joined to nodes by one label. A node with two series gets no value, because choosing one would be a guess.
Values that are not finite numbers are missing. The body is decoded in chunks, so a large answer does not delay
decisions.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import AsyncIterator, Collection, Iterable, Iterator
from itertools import islice
from typing import Final

import msgspec

from policysched.framework.client import most_unknown
from policysched.metric_sources.counters import SourceCounters
from policysched.metric_sources.problems import NONE_FINITE, DropReason, QueryError, QueryOutcome, one_line
from policysched.model.policy import MetricAnswer, MetricKey, Sample
from policysched.reading.lenient_json import UNREADABLE

SLICE: Final = 1 << 17
"""Part of an answer that is decoded before yielding to the event loop, in about two milliseconds. Units: bytes."""
LARGEST_SERIES: Final = 1 << 18
"""Longest series; more is an error, because one series is decoded without yielding. Units: bytes."""
MOST_WARNINGS: Final = 1 << 16
"""Largest size of an answer's warnings; larger warnings are not decoded. Units: bytes."""
MOST_LABELLED: Final = 1000
"""Largest number of series without the node label whose labels a message lists."""
MOST_LABELS: Final = 100
"""Largest number of labels that a message lists for each series without the node label."""
LONGEST_NUMBER: Final = 400
"""Longest text of a number; a longer text is treated as not finite. Units: characters."""
OLD: Final = 60.0
"""Age of the newest sample above which a message reports that the clocks differ. Units: seconds."""


class _Data(msgspec.Struct, rename="camel"):
    result_type: str = ""
    result: msgspec.Raw = msgspec.Raw(b"[]")


class Envelope(msgspec.Struct, rename="camel"):
    """The answer of Prometheus to a query, with its series as undecoded JSON."""

    status: str
    data: _Data | None = None
    error_type: str = ""
    error: str = ""
    warnings: msgspec.Raw = msgspec.Raw(b"[]")


class Series(msgspec.Struct):
    """A Prometheus series, reduced to the newest sample."""

    metric: dict[str, str] = {}
    value: tuple[float, str] | None = None
    """Value of the newest sample; None for a histogram."""


_ENVELOPE = msgspec.json.Decoder(Envelope)
_SERIES = msgspec.json.Decoder(list[Series])
_TEXTS = msgspec.json.Decoder(list[str])
_BORDER: Final = re.compile(rb"\}\s*+,\s*+\{(?=\s*+\"(?:metric|value|histogram)\"\s*+:)")
"""Text between two series in the JSON of an answer, at which the answer is split."""
_OTHER_TYPES: Final = {
    "scalar": "a scalar, which belongs to no node",
    "string": "a string",
    "matrix": "a range of samples for each series; remove the [range], or apply a function such as rate()",
}


def open_envelope(body: bytes) -> Envelope | None:
    """Decode an answer except its series; None if it does not come from Prometheus."""
    try:
        return _ENVELOPE.decode(body)
    except UNREADABLE:
        return None


async def read_series(envelope: Envelope) -> AsyncIterator[list[Series]]:
    """Decode the series of an answer in chunks, yielding to the event loop after each.

    Raises:
        QueryError: the answer is not an instant vector.
    """
    data = envelope.data
    if envelope.status != "success" or data is None:
        status = one_line(envelope.status)
        raise QueryError(QueryOutcome.MALFORMED, f'the answer has status "{status}" and no result')
    if data.result_type != "vector":
        kind = _OTHER_TYPES.get(data.result_type, f'a "{one_line(data.result_type)}"')
        raise QueryError(QueryOutcome.MALFORMED, f"the query must return one number per node, but returns {kind}")
    try:
        for part in _slices(bytes(data.result)):
            yield _SERIES.decode(part)
            await asyncio.sleep(0)
    except UNREADABLE as error:
        text = f"the answer is not a valid vector of Prometheus: {one_line(error)}"
        raise QueryError(QueryOutcome.MALFORMED, text) from error


def _slices(result: bytes) -> Iterator[bytes]:
    """Split the JSON of a list of series into shorter lists, between two series and without decoding them.

    Raises:
        QueryError: a series is too long.
    """
    begin, most = 0, SLICE + LARGEST_SERIES
    while len(result) - begin > SLICE:
        border = _BORDER.search(result, begin + SLICE, begin + most)
        if border is None:
            break
        yield b"%b%b}]" % (b"[" if begin else b"", result[begin : border.start()])
        begin = border.end() - 1
    if len(result) - begin > most:
        text = f"a series of the answer has more than {LARGEST_SERIES >> 10} KiB; aggregate by the node's label"
        raise QueryError(QueryOutcome.TOO_LARGE, text)
    yield b"%b%b" % (b"[" if begin else b"", result[begin:])


class Join:
    """Assigns the series of one answer to nodes by the value of one label.

    Args:
        key: The metric.
        now: Current time. Units: seconds since 1970.
        nodes: Names of the cluster's nodes; of other names only a limited number is kept. None: all are kept.
    """

    def __init__(self, key: MetricKey, now: float, nodes: Collection[str] | None = None) -> None:
        self._key = key
        self._now = now
        self._nodes = nodes
        self._room = math.inf if nodes is None else most_unknown(nodes)
        self._samples: dict[str, Sample] = {}
        self._valueless: set[str] = set()
        """Names of nodes without a value although they have series: duplicate series, or a value that is not finite."""
        self._doubled: set[str] = set()
        self._dropped = dict.fromkeys(DropReason, 0)
        self._labels: set[str] = set()
        """Labels found on some of the series that lack the node label, for a message."""
        self._newest = -math.inf

    def take(self, part: Iterable[Series]) -> None:
        """Assign the next series of the answer to nodes."""
        for series in part:
            node = series.metric.get(self._key.node_label)
            if not node:
                if self._dropped[DropReason.NO_LABEL] < MOST_LABELLED:
                    self._labels.update(islice(series.metric, MOST_LABELS))
                self._dropped[DropReason.NO_LABEL] += 1
            elif node in self._samples or node in self._valueless:
                self._dropped[DropReason.DUPLICATE] += 1 + (node not in self._doubled)
                self._doubled.add(node)
                self._samples.pop(node, None)
                self._valueless.add(node)
            elif self._nodes is None or node in self._nodes:
                self._take_one(node, series)
            elif self._room:
                self._room -= 1
                self._take_one(node, series)
            else:
                self._dropped[DropReason.NO_NODE] += 1

    def _take_one(self, node: str, series: Series) -> None:
        at, number = math.nan, math.nan
        if series.value is not None:
            at, number = series.value[0], _number(series.value[1])
        if not (math.isfinite(number) and math.isfinite(at)):
            self._dropped[DropReason.NOT_FINITE] += 1
            self._valueless.add(node)
            return
        self._newest = max(self._newest, at)
        # A server whose clock is ahead must not extend the life of its values.
        self._samples[node] = Sample(number, min(at, self._now))

    def answer(self, counters: SourceCounters, warning: str = "") -> MetricAnswer:
        """Return the values of all nodes with messages about problems and server warnings; count dropped series."""
        for reason, count in self._dropped.items():
            counters.dropped(reason, count)
        problems = (self._twice(), self._without_label(), self._not_finite(), self._stale(), warning)
        return MetricAnswer(self._key, self._samples, "; ".join(problem for problem in problems if problem))

    def _twice(self) -> str:
        if not self._doubled:
            return ""
        others = f" and {len(self._doubled) - 1} more" if len(self._doubled) > 1 else ""
        return f"two series for node {one_line(min(self._doubled))}{others}; aggregate or select in the query"

    def _without_label(self) -> str:
        if not self._dropped[DropReason.NO_LABEL]:
            return ""
        found = sorted(self._labels - {"__name__"})
        having = f"they have {one_line(', '.join(found[:MOST_LABELS]))}" if found else "they have no labels at all"
        some = "some series have" if self._samples or self._valueless else "the series have"
        return f'{some} no label "{self._key.node_label}", {having}; set nodeLabel, or keep the label with by (…)'

    def _not_finite(self) -> str:
        return NONE_FINITE if self._dropped[DropReason.NOT_FINITE] and not self._samples else ""

    def _stale(self) -> str:
        if self._newest == -math.inf or self._now - self._newest <= OLD:
            return ""
        return "the values are more than a minute old by this machine's clock; compare the clocks of both machines"


def _number(text: str) -> float:
    try:
        return float(text) if len(text) <= LONGEST_NUMBER else math.nan
    except ValueError:
        return math.nan


def first_warning(envelope: Envelope) -> str:
    """Return the first warning in an answer of Prometheus as a message; empty without warnings."""
    raw = bytes(envelope.warnings)
    if len(raw) > MOST_WARNINGS:
        return f"the server returned more than {MOST_WARNINGS >> 10} KiB of warnings"
    try:
        first = next(iter(_TEXTS.decode(raw)), "")
    except UNREADABLE:
        return "the server returned warnings that cannot be read"
    return f"the server warns: {one_line(first)}" if first else ""
