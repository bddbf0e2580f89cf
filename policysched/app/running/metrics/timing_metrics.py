"""`TimingMetrics`: durations of extension points, plugins, hints and changes, with kube-scheduler's names and buckets.

The scheduler passes durations as they are measured; samples are created when metrics are scraped. Labels are bounded,
because plugins belong to profiles or are policies; the series of a deleted policy are dropped.

Source: pkg/scheduler/metrics/metrics.go, v1.36 and v1.37.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

import numpy as np
from prometheus_client.metrics_core import Metric as MetricFamily
from prometheus_client.registry import Collector

from policysched.app.running.metrics.group_preemption_metrics import GroupPreemptionTimes
from policysched.app.running.metrics.scheduler_metrics import is_kept
from policysched.app.running.metrics.series import Histogram, Labels, event_name, exponential, make_counters
from policysched.framework import Clock, Code
from policysched.framework.plugin import PREFIX
from policysched.model.release import DEFAULT, Release
from policysched.schedule.cycle.results.plugin_results import PRE_FILTER_RESULT
from policysched.schedule.timing import (
    CYCLE_POINTS,
    FILTER,
    POD,
    POD_GROUP_POST_FILTER,
    POST_FILTER,
    PRE_BIND,
    RESERVE,
)

TOGETHER: Final = 1024
"""Number of decisions whose durations are added to the histograms in one batch."""
FINE: Final = Code.SUCCESS
SUCCESS: Final = FINE.text
PREEMPTION: Final = "DefaultPreemption"
VOLUMES: Final = "VolumeBinding"
VOLUME_STAGES: Final = {FILTER: "predicate", RESERVE: "assume", PRE_BIND: "bind"}
"""kube-scheduler's names of the extension points at which volumes can fail."""


class TimingMetrics(Collector):
    """The `Timing` of a running scheduler: records durations in histograms.

    Args:
        clock: The scheduler's clock.
        release: The release whose names, labels and texts apply.
    """

    def __init__(self, clock: Clock, release: Release = DEFAULT) -> None:
        self._own_event = partial(
            event_name, pending_pod=release.pending_pod_event, own_update=release.own_update_event
        )
        self._event = partial(event_name, pending_pod=release.pending_pod_event, own_update=release.pending_pod_event)
        self._hides_preemption_seconds = release.hides_preemption_durations
        self.now: Callable[[], float] = clock.monotonic
        of_plugins = exponential(0.00001, 1.5, 20)
        of_points = exponential(0.0001, 2, 12)
        self._points = Histogram(
            "scheduler_framework_extension_point_duration_seconds",
            "[STABLE] Latency for running all plugins of a specific extension point.",
            ("extension_point", "status", "profile"),
            of_points,
        )
        self._plugins = Histogram(
            "scheduler_plugin_execution_duration_seconds",
            f"[{'BETA' if release.latencies_are_beta else 'ALPHA'}] Duration for running a plugin at a specific "
            "extension point.",
            ("plugin", "extension_point", "status"),
            of_plugins,
        )
        self._hints = Histogram(
            "scheduler_queueing_hint_execution_duration_seconds",
            "[ALPHA] Duration for running a queueing hint function of a plugin.",
            ("plugin", "event", "hint"),
            of_plugins,
        )
        self._changes = Histogram(
            "scheduler_event_handling_duration_seconds",
            "[ALPHA] Event handling latency in seconds.",
            ("event",),
            of_points,
        )
        self._preemption_seconds = Histogram(
            "scheduler_preemption_goroutines_duration_seconds",
            "[ALPHA] Duration in seconds for running goroutines for the preemption.",
            ("result",),
            exponential(0.01, 2, 20),
        )
        self._groups = GroupPreemptionTimes(release) if release.generic_workload else None
        self._decided: dict[str, list[float]] = {}
        """Durations of decisions that are not yet in the histograms, by profile. Units: seconds."""
        self._turns = 0
        """Number that is odd while durations are added to the histograms, so that a reader detects a change."""
        self._preemptions: Counter[Labels] = Counter()
        self._preemption_attempts = 0
        self._volume_errors: Counter[Labels] = Counter()

    def decided(self, profile: str, seconds: list[float]) -> None:
        """Record the durations of a decision's extension points, which are added to the histograms in batches."""
        waiting = self._decided.setdefault(profile, [])
        waiting += seconds
        if len(waiting) >= TOGETHER * len(CYCLE_POINTS):
            self._count(profile)

    def _count(self, profile: str) -> None:
        """Add the recorded durations of a profile to the histograms; called in the scheduler's loop."""
        self._turns += 1
        _count_points(self._points, profile, self._decided.pop(profile))
        self._turns += 1

    def _points_now(self) -> Histogram:
        """Return the durations of extension points, including decisions that are not counted yet.

        If the scheduler's loop counts at the same time, this is repeated; the scheduler never waits for readers of
        metrics.
        """
        while True:
            turns = self._turns
            points = self._points.copy()
            for profile, waiting in dict(self._decided).items():
                _count_points(points, profile, tuple(waiting))
            if turns == self._turns and turns % 2 == 0:
                return points

    def point(self, point: str, status: Code, profile: str, seconds: float) -> None:
        """Record the duration of all plugins at an extension point."""
        self._points.observe((point, SUCCESS if status is FINE else status.text, profile), seconds)

    def plugin(self, plugin: str, point: str, status: Code, seconds: float) -> None:
        """Record the duration of one plugin at an extension point."""
        if plugin == PRE_FILTER_RESULT:
            return  # narrowing belongs to no plugin
        self._plugins.observe((plugin, point, SUCCESS if status is FINE else status.text), seconds)
        if plugin == PREEMPTION and point == POST_FILTER:
            self._preemption_attempts += 1
            self.searched(POD, status, seconds)
        elif plugin == PREEMPTION and point == POD_GROUP_POST_FILTER and self._groups is not None:
            self._groups.tried(status)
        elif plugin == VOLUMES and status is Code.ERROR and point in VOLUME_STAGES:
            self._volume_errors[VOLUME_STAGES[point],] += 1

    def hint(self, plugin: str, event: str, outcome: str, seconds: float) -> None:
        """Record the duration of a queueing hint."""
        self._hints.observe((plugin, event, outcome), seconds)

    def change(self, event: str, seconds: float) -> None:
        """Record the duration of a change of the cluster."""
        self._changes.observe((event,), seconds)

    def searched(self, preemptor: str, status: Code, seconds: float) -> None:
        """Record the duration of a search for victims."""
        if self._groups is not None:
            self._groups.searched(preemptor, status, seconds)

    def preempted(self, preemptor: str, seconds: float, *, succeeded: bool) -> None:
        """Record the duration of a preemption."""
        result = "success" if succeeded else "error"
        self._preemption_seconds.observe((result,), seconds)
        self._preemptions[result,] += 1
        if self._groups is not None:
            self._groups.preempted(preemptor, result, seconds)

    def policy_seconds(self) -> dict[str, float]:
        """Return the seconds that each policy used in the decisions whose plugins are timed; thread-safe."""
        spent: dict[str, float] = {}
        for labels, seconds in self._plugins.sums(lambda labels: labels[0].startswith(PREFIX)).items():
            spent[labels[0]] = spent.get(labels[0], 0.0) + seconds
        return spent

    def keep_policies(self, names: frozenset[str]) -> None:
        """Drop the series of all policies except the named policies."""
        for histogram in (self._plugins, self._hints):
            histogram.keep(lambda labels: is_kept(labels[0], names))

    def collect(self) -> Iterator[MetricFamily]:
        """Return samples; thread-safe."""
        hints, changes = self._hints.renamed(1, self._own_event), self._changes.renamed(0, self._event)
        for histogram in (self._points_now(), self._plugins, hints, changes):
            yield histogram.collect()
        if not self._hides_preemption_seconds:
            yield self._preemption_seconds.collect()
        yield make_counters(
            "scheduler_preemption_goroutines_execution",
            "[ALPHA] Number of preemption goroutines executed.",
            ("result",),
            self._preemptions,
        )
        yield make_counters(
            "scheduler_preemption_attempts",
            "[STABLE] Total preemption attempts in the cluster till now",
            (),
            {(): self._preemption_attempts},
        )
        if self._groups is not None:
            yield from self._groups.collect()
        yield make_counters(
            "scheduler_volume_scheduling_stage_error",
            "[ALPHA] Volume scheduling stage error count",
            ("operation",),
            self._volume_errors,
        )


def _count_points(points: Histogram, profile: str, seconds: Sequence[float]) -> None:
    rows = np.array(seconds).reshape(-1, len(CYCLE_POINTS))
    for point, column in zip(CYCLE_POINTS, rows.T, strict=True):
        points.observe_all((point, SUCCESS, profile), column[column > 0])
