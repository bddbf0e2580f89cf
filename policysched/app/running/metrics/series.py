"""Counters and histograms as plain numbers; samples are made of them when somebody asks.

Source: k8s.io/component-base/metrics (buckets and their texts).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray
from prometheus_client.metrics_core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric as MetricFamily
from prometheus_client.utils import floatToGoString

Labels = tuple[str, ...]


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Return the upper bounds of buckets, each as many times the one before, as Go computes them."""
    bounds = accumulate(range(count - 1), lambda bound, _: bound * factor, initial=start)
    return tuple(bounds)


class Histogram:
    """A histogram with labels; to observe costs a search among its bounds."""

    def __init__(self, name: str, text: str, labels: Sequence[str], bounds: tuple[float, ...]) -> None:
        self._name, self._text, self._labels = name, text, labels
        self._bounds = bounds
        self._counts: dict[Labels, list[float]] = {} if labels else {(): self._empty()}

    def observe(self, labels: Labels, value: float) -> None:
        """Count a value."""
        counts = self._counts.get(labels)
        if counts is None:
            counts = self._counts[labels] = self._empty()
        counts[bisect_left(self._bounds, value)] += 1
        counts[-1] += value

    def observe_all(self, labels: Labels, values: NDArray[np.float64]) -> None:
        """Count many values at once; nothing where there are none."""
        if not values.size:
            return
        counts = self._counts.setdefault(labels, self._empty())
        found = np.bincount(np.searchsorted(self._bounds, values), minlength=len(self._bounds) + 1)
        for place in found.nonzero()[0].tolist():
            counts[place] += int(found[place])
        counts[-1] += float(values.sum())

    def collect(self) -> MetricFamily:
        """Make samples; it may be asked from any thread."""
        family = HistogramMetricFamily(self._name, self._text, labels=self._labels)
        names = [*map(_as_go, self._bounds), "+Inf"]
        for labels, counts in dict(self._counts).items():
            *buckets, total = tuple(counts)
            family.add_metric(labels, list(zip(names, accumulate(buckets), strict=True)), total)
        return family

    def copy(self) -> Histogram:
        """Return another one with the same counts; it may be asked from any thread."""
        made = Histogram(self._name, self._text, self._labels, self._bounds)
        made._counts = {labels: list(counts) for labels, counts in dict(self._counts).items()}
        return made

    def sums(self, wanted: Callable[[Labels], bool]) -> dict[Labels, float]:
        """Add up the values, by labels; it may be asked from any thread."""
        return {labels: counts[-1] for labels, counts in dict(self._counts).items() if wanted(labels)}

    def keep(self, wanted: Callable[[Labels], bool]) -> None:
        """Forget the series that are not wanted."""
        self._counts = {labels: counts for labels, counts in self._counts.items() if wanted(labels)}

    def _empty(self) -> list[float]:
        """Make counts for each bucket, those above all bounds, and the sum of the values."""
        return [0] * (len(self._bounds) + 1) + [0.0]


def _as_go(bound: float) -> str:
    """Write a bound as Go does, who has no `.0`: queries name buckets by their texts."""
    return str(int(bound)) if bound == int(bound) else str(floatToGoString(bound))  # type: ignore[no-untyped-call]


def make_counters(name: str, text: str, labels: Sequence[str], counts: Mapping[Labels, float]) -> MetricFamily:
    """Make the samples of a counter, one for each combination of its labels' values."""
    family = CounterMetricFamily(name, text, labels=labels)
    for values, count in dict(counts).items():
        family.add_metric(values, count)
    return family
