"""Counters and histograms as plain numbers, converted to samples when metrics are scraped.

Source: k8s.io/component-base/metrics (buckets and their texts).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Final

import numpy as np
from numpy.typing import NDArray
from prometheus_client.metrics_core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric as MetricFamily
from prometheus_client.utils import floatToGoString

from policysched.framework import Resource

Labels = tuple[str, ...]
PENDING: Final = Resource.PENDING_POD.value


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Return upper bounds of exponential buckets, as Go computes them."""
    bounds = accumulate(range(count - 1), lambda bound, _: bound * factor, initial=start)
    return tuple(bounds)


def event_name(event: str, pending_pod: str, own_update: str) -> str:
    """Return the value of the label `event` for a change, as the metrics of a release name the change.

    Args:
        event: The name of the change in the queue.
        pending_pod: The name of a pending pod.
        own_update: The name of a pending pod in the names of its updates.
    """
    if not event.startswith(PENDING):
        return event
    action = event.removeprefix(PENDING)
    return f"{own_update if action.startswith('Update') else pending_pod}{action}"


class Histogram:
    """A histogram with labels; an observation takes one binary search."""

    def __init__(self, name: str, text: str, labels: Sequence[str], bounds: tuple[float, ...]) -> None:
        self._name, self._text, self._labels = name, text, labels
        self._bounds = bounds
        self._counts: dict[Labels, list[float]] = {} if labels else {(): self._empty()}

    def observe(self, labels: Labels, value: float) -> None:
        """Add a value to the series with the given labels."""
        counts = self._counts.get(labels)
        if counts is None:
            counts = self._counts[labels] = self._empty()
        counts[bisect_left(self._bounds, value)] += 1
        counts[-1] += value

    def observe_all(self, labels: Labels, values: NDArray[np.float64]) -> None:
        """Add many values at once to the series with the given labels."""
        if not values.size:
            return
        counts = self._counts.setdefault(labels, self._empty())
        found = np.bincount(np.searchsorted(self._bounds, values), minlength=len(self._bounds) + 1)
        for place in found.nonzero()[0].tolist():
            counts[place] += int(found[place])
        counts[-1] += float(values.sum())

    def collect(self) -> MetricFamily:
        """Return samples; thread-safe."""
        family = HistogramMetricFamily(self._name, self._text, labels=self._labels)
        names = [*map(_as_go, self._bounds), "+Inf"]
        for labels, counts in dict(self._counts).items():
            *buckets, total = tuple(counts)
            family.add_metric(labels, list(zip(names, accumulate(buckets), strict=True)), total)
        return family

    def renamed(self, place: int, name_of: Callable[[str], str]) -> Histogram:
        """Return a copy of the histogram with other values of one label; thread-safe."""
        made = self.copy()
        made._counts = {
            (*labels[:place], name_of(labels[place]), *labels[place + 1 :]): counts
            for labels, counts in made._counts.items()
        }
        return made

    def copy(self) -> Histogram:
        """Return a copy of the histogram; thread-safe."""
        made = Histogram(self._name, self._text, self._labels, self._bounds)
        made._counts = {labels: list(counts) for labels, counts in dict(self._counts).items()}
        return made

    def sums(self, wanted: Callable[[Labels], bool]) -> dict[Labels, float]:
        """Return the sum of the values of each series whose labels a function accepts; thread-safe."""
        return {labels: counts[-1] for labels, counts in dict(self._counts).items() if wanted(labels)}

    def keep(self, wanted: Callable[[Labels], bool]) -> None:
        """Drop the series whose labels a function does not accept."""
        self._counts = {labels: counts for labels, counts in self._counts.items() if wanted(labels)}

    def _empty(self) -> list[float]:
        """Return a list of zeros: a count per bucket, a count above all bounds, and the sum of values."""
        return [0] * (len(self._bounds) + 1) + [0.0]


def _as_go(bound: float) -> str:
    """Format a bucket's bound as Go does, without `.0`, because queries contain bounds as text."""
    return str(int(bound)) if bound == int(bound) else str(floatToGoString(bound))  # type: ignore[no-untyped-call]


def make_counters(name: str, text: str, labels: Sequence[str], counts: Mapping[Labels, float]) -> MetricFamily:
    """Return the samples of a counter, one per combination of label values."""
    family = CounterMetricFamily(name, text, labels=labels)
    for values, count in dict(counts).items():
        family.add_metric(values, count)
    return family
