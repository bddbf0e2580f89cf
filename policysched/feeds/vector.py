"""From the body of a Prometheus answer to a value for each node.

An instant vector is joined by one label. Two series of one node leave it without a value, because either would be a
guess; values that are no finite number are missing too. The body is taken apart a slice at a time, so that a large
answer never holds up decisions.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Iterable
from typing import Final

import msgspec

from policysched.feeds.problems import Dropped, FeedCounters, FeedError, Outcome, one_line
from policysched.model.policy import MetricAnswer, MetricKey, Sample

SLICE: Final = 1000
"""How many series are read before the loop gets its turn: about a millisecond."""
OLD: Final = 60.0
"""How old the newest sample of an answer may be before the clocks are doubted. Units: seconds."""


class _Data(msgspec.Struct, rename="camel"):
    result_type: str = ""
    result: msgspec.Raw = msgspec.Raw(b"[]")


class Envelope(msgspec.Struct, rename="camel"):
    """The answer around its series."""

    status: str
    data: _Data | None = None
    error_type: str = ""
    error: str = ""
    warnings: list[str] = []


class _Series(msgspec.Struct):
    metric: dict[str, str] = {}
    value: tuple[float, str] | None = None
    """Absent where the series is a histogram."""


BROKEN: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding raises where a body is not what it should be."""
_ENVELOPE = msgspec.json.Decoder(Envelope)
_LIST = msgspec.json.Decoder(list[msgspec.Raw])
_SERIES = msgspec.json.Decoder(_Series)
_OTHER_TYPES: Final = {
    "scalar": "a scalar, which belongs to no node",
    "string": "a string",
    "matrix": "a range of samples for each series; leave the [range] out, or put a function such as rate() around it",
}


def open_envelope(body: bytes) -> Envelope | None:
    """Read what is around the series; None where the body is no answer of Prometheus."""
    try:
        return _ENVELOPE.decode(body)
    except BROKEN:
        return None


async def read_series(envelope: Envelope) -> list[_Series]:
    """Read the series of an answer, giving the loop its turn between slices.

    Raises:
        FeedError: it is no instant vector.
    """
    data = envelope.data
    if envelope.status != "success" or data is None:
        status = one_line(envelope.status)
        raise FeedError(Outcome.MALFORMED, f'the answer has status "{status}" and no result')
    if data.result_type != "vector":
        kind = _OTHER_TYPES.get(data.result_type, f'a "{one_line(data.result_type)}"')
        raise FeedError(Outcome.MALFORMED, f"the query has to give one number for each node, but gives {kind}")
    try:
        raw = _LIST.decode(data.result)
        return [series async for part in _slices(raw) for series in map(_SERIES.decode, part)]
    except BROKEN as error:
        text = f"the answer is no vector as Prometheus writes it: {one_line(error)}"
        raise FeedError(Outcome.MALFORMED, text) from error


async def _slices(raw: list[msgspec.Raw]) -> AsyncIterator[list[msgspec.Raw]]:
    for start in range(0, len(raw), SLICE):
        yield raw[start : start + SLICE]
        await asyncio.sleep(0)


class Join:
    """The series of one answer by the value of one label."""

    def __init__(self, key: MetricKey, now: float) -> None:
        self._key = key
        self._now = now
        self._samples: dict[str, Sample | None] = {}
        self._doubled: list[str] = []
        self._unlabelled: list[_Series] = []
        self._not_finite = 0
        self._newest = -math.inf

    async def take(self, series: list[_Series]) -> None:
        """Take all series, giving the loop its turn."""
        for start in range(0, len(series), SLICE):
            for one in series[start : start + SLICE]:
                self._take(one)
            await asyncio.sleep(0)

    def _take(self, series: _Series) -> None:
        node = series.metric.get(self._key.node_label)
        if not node:
            self._unlabelled.append(series)
        elif node in self._samples:
            self._doubled.append(node)
        else:
            self._samples[node] = self._sample(series)

    def _sample(self, series: _Series) -> Sample | None:
        """Give a series' value, None where it has none."""
        at, number = math.nan, math.nan
        if series.value is not None:
            at, number = series.value[0], _number(series.value[1])
        if not (math.isfinite(number) and math.isfinite(at)):
            self._not_finite += 1
            return None
        self._newest = max(self._newest, at)
        # A server whose clock is ahead must not make its values last longer.
        return Sample(number, min(at, self._now))

    def answer(self, counters: FeedCounters, warnings: Iterable[str] = ()) -> MetricAnswer:
        """Give the answer for all nodes, and count what gave none of them a value."""
        counters.dropped(Dropped.DUPLICATE, len(self._doubled) + len(set(self._doubled)))
        counters.dropped(Dropped.NO_LABEL, len(self._unlabelled))
        counters.dropped(Dropped.NOT_FINITE, self._not_finite)
        doubled = frozenset(self._doubled)
        samples = {node: sample for node, sample in self._samples.items() if sample is not None and node not in doubled}
        problems = (self._twice(doubled), self._without_label(), self._stale(), _warning(warnings))
        return MetricAnswer(self._key, samples, "; ".join(problem for problem in problems if problem))

    def _twice(self, doubled: frozenset[str]) -> str:
        if not doubled:
            return ""
        others = f" and {len(doubled) - 1} more" if len(doubled) > 1 else ""
        return f"two series for node {one_line(min(doubled))}{others}: sum, average or select in the query"

    def _without_label(self) -> str:
        if not self._unlabelled:
            return ""
        found = sorted({name for series in self._unlabelled[:SLICE] for name in series.metric} - {"__name__"})
        having = f"they have {one_line(', '.join(found))}" if found else "they have no labels at all"
        some = "some series have" if self._samples else "the series have"
        return f'{some} no label "{self._key.node_label}", {having}: set nodeLabel, or keep the label with by (…)'

    def _stale(self) -> str:
        if self._newest == -math.inf or self._now - self._newest <= OLD:
            return ""
        return "the values are more than a minute old by this machine's clock: compare its time with the server's"


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _warning(warnings: Iterable[str]) -> str:
    first = next(iter(warnings), "")
    return f"the server warns: {one_line(first)}" if first else ""
