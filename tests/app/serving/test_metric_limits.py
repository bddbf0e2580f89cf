"""Which metrics are shown, and with which values of labels."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from policysched.app.serving.metrics.metric_limits import (
    NO_METRIC_LIMITS,
    UNEXPECTED,
    LimitedMetrics,
    MetricLimits,
    read_metric_limits,
)
from policysched.errors import UsageError


def shown(limits: MetricLimits) -> list[str]:
    """Give the samples that remain of some metrics."""
    registry = CollectorRegistry()
    tried = Counter("tried", "Tries.", ["result", "profile"], registry=registry)
    for result, count in (("scheduled", 5), ("error", 2), ("unschedulable", 3)):
        tried.labels(result, "a").inc(count)
    Gauge("waiting", "Pods.", ["queue"], registry=registry).labels("active").set(7)
    took = Histogram("took_seconds", "Time.", ["plugin"], buckets=(1.0,), registry=registry)
    for plugin, seconds in (("Fit", 0.5), ("x", 0.5), ("y", 2.0)):
        took.labels(plugin).observe(seconds)
    text = generate_latest(LimitedMetrics(registry, limits)).decode()
    return [line for line in text.splitlines() if not line.startswith("#") and "_created" not in line]


def test_without_limits_everything_is_shown() -> None:
    assert len(shown(NO_METRIC_LIMITS)) == 3 + 1 + 3 * 4


def test_disabled_metrics_are_not_shown_by_the_names_that_are_scraped() -> None:
    names = read_metric_limits(["tried_total", "took_seconds", "unknown"], (), None)
    assert shown(names) == ['waiting{queue="active"} 7.0']
    assert len(shown(read_metric_limits(["tried"], (), None))) == len(shown(NO_METRIC_LIMITS)), "a counter has _total"


def test_values_that_are_not_allowed_are_unexpected_and_added_up() -> None:
    limits = read_metric_limits((), [("tried_total,result", "scheduled"), ("took_seconds,plugin", "Fit")], None)
    lines = shown(limits)
    assert [line for line in lines if line.startswith("tried")] == [
        'tried_total{profile="a",result="scheduled"} 5.0',
        f'tried_total{{profile="a",result="{UNEXPECTED}"}} 5.0',
    ]
    assert [line for line in lines if UNEXPECTED in line and "took" in line] == [
        f'took_seconds_bucket{{le="1.0",plugin="{UNEXPECTED}"}} 1.0',
        f'took_seconds_bucket{{le="+Inf",plugin="{UNEXPECTED}"}} 2.0',
        f'took_seconds_count{{plugin="{UNEXPECTED}"}} 2.0',
        f'took_seconds_sum{{plugin="{UNEXPECTED}"}} 2.5',
    ]
    assert 'waiting{queue="active"} 7.0' in lines


def test_manifest_says_the_same_as_the_flag(tmp_path: Path) -> None:
    manifest = tmp_path / "labels.yaml"
    manifest.write_text('"tried_total,result": "scheduled,error"\n"waiting,queue": ""\n')
    pairs = [("tried_total,result", "scheduled,error"), ("waiting,queue", "")]
    assert read_metric_limits((), (), manifest) == read_metric_limits((), pairs, None)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[", "cannot be read"),
        ("- a", "is not a map of strings"),
        ("allowListMapping:\n  m,l: v\n", "is not a map of strings"),
        ("m,l: 1", "is not a map of strings"),
        ("m: v", '"m" is not a metric and a label'),
        (None, "cannot be read"),
    ],
)
def test_manifests_that_cannot_be_used_are_refused(tmp_path: Path, content: str | None, said: str) -> None:
    manifest = tmp_path / "labels.yaml"
    if content is not None:
        manifest.write_text(content)
    with pytest.raises(UsageError, match=said):
        read_metric_limits((), (), manifest)


def test_flags_that_say_nothing_of_use_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match='--disabled-metrics: "a b" is not the name of a metric'):
        read_metric_limits(["a b"], (), None)
    with pytest.raises(UsageError, match='--allow-metric-labels: "m,1" is not a metric and a label'):
        read_metric_limits((), [("m,1", "x")], None)
    with pytest.raises(UsageError, match="cannot be used together"):
        read_metric_limits((), [("m,l", "x")], tmp_path / "any")
