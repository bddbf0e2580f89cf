"""`MetricLimits`: disabled metrics and allowed label values, according to kube-scheduler's flags.

Names are those in the scraped text: a counter's with `_total`. A label value that is not allowed becomes `unexpected`,
and equal series are added. Only the output changes, not the counting.

Source: k8s.io/component-base/metrics/options.go, metrics/api/v1/config.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import msgspec
import yaml
from prometheus_client.metrics_core import Metric as MetricFamily
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

from policysched.errors import UsageError
from policysched.reading import bounded_yaml

UNEXPECTED: Final = "unexpected"
"""Replacement of a label value that is not allowed."""
_NAME: Final = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*", re.ASCII)
_KEY: Final = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*),([a-zA-Z_][a-zA-Z0-9_]*)", re.ASCII)
Allowed = Mapping[str, Mapping[str, frozenset[str]]]
"""Allowed values by metric and label; the values of other labels are unrestricted."""
_NONE: Final[Mapping[str, Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class MetricLimits:
    """Limits of the metrics output from flags: disabled metrics and allowed label values."""

    disabled: frozenset[str] = frozenset()
    """Names of metrics that the output omits."""
    allowed: Allowed = field(default_factory=lambda: _NONE)


NO_METRIC_LIMITS: Final = MetricLimits()


def read_metric_limits(
    disabled: Iterable[str], allowed: Iterable[tuple[str, str]], manifest: Path | None
) -> MetricLimits:
    """Parse the flags about disabled metrics and allowed label values.

    Args:
        disabled: Names of metrics.
        allowed: Pairs of `metric,label` and `value,value`.
        manifest: A file with such pairs, as a map.

    Raises:
        UsageError: a value is invalid.
    """
    names, pairs = frozenset(disabled), dict(allowed)
    for name in names:
        if _NAME.fullmatch(name) is None:
            raise UsageError(f'--disabled-metrics: "{name}" is not the name of a metric')
    if manifest is not None:
        if pairs:
            raise UsageError("--allow-metric-labels and --allow-metric-labels-manifest cannot be used together")
        return MetricLimits(names, _by_metric(_read(manifest), f"--allow-metric-labels-manifest {manifest}"))
    return MetricLimits(names, _by_metric(pairs, "--allow-metric-labels"))


def _read(manifest: Path) -> dict[str, str]:
    """Read a YAML file that maps texts to texts.

    Raises:
        UsageError: the file has another content.
    """
    try:
        read = bounded_yaml.load(manifest.read_text("utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        problem = str(error).partition("\n")[0]
        raise UsageError(f"--allow-metric-labels-manifest {manifest} cannot be read: {problem}") from error
    try:
        return msgspec.convert(read, dict[str, str])
    except msgspec.ValidationError as error:
        raise UsageError(f"--allow-metric-labels-manifest {manifest} is not a map of strings: {error}") from error


def _by_metric(pairs: Mapping[str, str], source: str) -> Allowed:
    found: dict[str, dict[str, frozenset[str]]] = {}
    for key, values in pairs.items():
        match = _KEY.fullmatch(key)
        if match is None:
            raise UsageError(
                f'{source}: "{key}" is not a metric and a label; write it as "scheduler_pending_pods,queue"'
            )
        found.setdefault(match[1], {})[match[2]] = frozenset(values.split(","))
    return found


class LimitedMetrics(Collector):
    """A collector that applies the limits to the metrics of another registry.

    Args:
        metrics: All metrics.
        limits: The limits.
    """

    def __init__(self, metrics: Collector, limits: MetricLimits) -> None:
        self._metrics, self._limits = metrics, limits

    def collect(self) -> Iterator[MetricFamily]:
        """Return samples; thread-safe."""
        for family in self._metrics.collect():
            name = f"{family.name}_total" if family.type == "counter" else family.name
            if name in self._limits.disabled:
                continue
            allowed = self._limits.allowed.get(name, _NONE)
            yield _limited(family, allowed) if allowed else family


def _limited(family: MetricFamily, allowed: Mapping[str, frozenset[str]]) -> MetricFamily:
    """Return a copy of a metric family with restricted label values."""
    sums: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
    for one in family.samples:
        labels = tuple((label, _value(allowed.get(label), value)) for label, value in one.labels.items())
        sums[one.name, labels] = sums.get((one.name, labels), 0.0) + one.value
    made: Any = MetricFamily(family.name, family.documentation, family.type, family.unit)
    made.samples = [Sample(name, dict(labels), value) for (name, labels), value in sums.items()]
    return made  # type: ignore[no-any-return]


def _value(allowed: frozenset[str] | None, value: str) -> str:
    return value if allowed is None or value in allowed else UNEXPECTED
