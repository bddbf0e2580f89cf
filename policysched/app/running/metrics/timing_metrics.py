"""`TimingMetrics`: what extension points, plugins, hints and changes took, under kube-scheduler's names and buckets.

The scheduler hands times over as they are measured; samples are made of the counts when somebody asks for the metrics.
Plugins are those of the profiles and the policies, so labels are bounded; what is known of a policy goes with it.

Source: pkg/scheduler/metrics/metrics.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np
from prometheus_client.metrics_core import Metric as MetricFamily
from prometheus_client.registry import Collector

from policysched.app.running.metrics.scheduler_metrics import is_kept
from policysched.app.running.metrics.series import Histogram, Labels, exponential, make_counters
from policysched.framework import Clock, Code
from policysched.framework.plugin import PREFIX
from policysched.schedule.cycle.results.plugin_results import PRE_FILTER_RESULT
from policysched.schedule.timing import CYCLE_POINTS, FILTER, POST_FILTER, PRE_BIND, RESERVE

TOGETHER: Final = 1024
"""How many decisions are counted together."""
FINE: Final = Code.SUCCESS
SUCCESS: Final = FINE.text
PREEMPTION: Final = "DefaultPreemption"
VOLUMES: Final = "VolumeBinding"
VOLUME_STAGES: Final = {FILTER: "predicate", RESERVE: "assume", PRE_BIND: "bind"}
"""What kube-scheduler calls the points at which volumes may fail."""


class TimingMetrics(Collector):
    """Takes times and counts them; the `Timing` of a running scheduler.

    Args:
        clock: The one that the scheduler reads.
    """

    def __init__(self, clock: Clock) -> None:
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
            "[ALPHA] Duration for running a plugin at a specific extension point.",
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
        self._decided: dict[str, list[float]] = {}
        """What the points of decisions took that are not counted yet, by profile."""
        self._turns = 0
        """Odd while they are being counted."""
        self._preemptions: Counter[Labels] = Counter()
        self._preemption_attempts = 0
        self._volume_errors: Counter[Labels] = Counter()

    def decided(self, profile: str, seconds: list[float]) -> None:
        """Take what the points of a decision took; many are counted together, which costs less."""
        waiting = self._decided.setdefault(profile, [])
        waiting += seconds
        if len(waiting) >= TOGETHER * len(CYCLE_POINTS):
            self._count(profile)

    def _count(self, profile: str) -> None:
        """Count the decisions that wait, in the scheduler's loop."""
        self._turns += 1
        _count_points(self._points, profile, self._decided.pop(profile))
        self._turns += 1

    def _points_now(self) -> Histogram:
        """Return what points took, those decisions too that are not counted yet; they stay as they are.

        Where the loop counts meanwhile it is done again: nobody waits for who reads metrics.
        """
        while True:
            turns = self._turns
            points = self._points.copy()
            for profile, waiting in dict(self._decided).items():
                _count_points(points, profile, tuple(waiting))
            if turns == self._turns and turns % 2 == 0:
                return points

    def point(self, point: str, status: Code, profile: str, seconds: float) -> None:
        """Count what all plugins of an extension point took."""
        self._points.observe((point, SUCCESS if status is FINE else status.text, profile), seconds)

    def plugin(self, plugin: str, point: str, status: Code, seconds: float) -> None:
        """Count what one plugin took at a point."""
        if plugin == PRE_FILTER_RESULT:
            return  # narrowing is no plugin's
        self._plugins.observe((plugin, point, SUCCESS if status is FINE else status.text), seconds)
        if plugin == PREEMPTION and point == POST_FILTER:
            self._preemption_attempts += 1
        elif plugin == VOLUMES and status is Code.ERROR and point in VOLUME_STAGES:
            self._volume_errors[VOLUME_STAGES[point],] += 1

    def hint(self, plugin: str, event: str, outcome: str, seconds: float) -> None:
        """Count what a queueing hint took."""
        self._hints.observe((plugin, event, outcome), seconds)

    def change(self, event: str, seconds: float) -> None:
        """Count what a change of the cluster took."""
        self._changes.observe((event,), seconds)

    def preempted(self, seconds: float, *, succeeded: bool) -> None:
        """Count how long making room for a pod took."""
        labels = ("success" if succeeded else "error",)
        self._preemption_seconds.observe(labels, seconds)
        self._preemptions[labels] += 1

    def policy_seconds(self) -> dict[str, float]:
        """Return what policies took in the decisions that are measured by plugin; it may be asked from any thread."""
        spent: dict[str, float] = {}
        for labels, seconds in self._plugins.sums(lambda labels: labels[0].startswith(PREFIX)).items():
            spent[labels[0]] = spent.get(labels[0], 0.0) + seconds
        return spent

    def keep_policies(self, names: frozenset[str]) -> None:
        """Forget what is known of policies but these."""
        for histogram in (self._plugins, self._hints):
            histogram.keep(lambda labels: is_kept(labels[0], names))

    def collect(self) -> Iterator[MetricFamily]:
        """Make samples; it may be asked from any thread."""
        for histogram in (self._points_now(), self._plugins, self._hints, self._changes, self._preemption_seconds):
            yield histogram.collect()
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
