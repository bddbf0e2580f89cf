"""`GroupMetrics`: metrics about attempts of pod groups, with kube-scheduler's names, labels and texts.

Source: pkg/scheduler/metrics/metrics.go, pkg/scheduler/metrics/profile_metrics.go, v1.37 and v1.38.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from prometheus_client.metrics_core import Metric as MetricFamily
from prometheus_client.registry import Collector

from policysched.app.running.metrics.series import Histogram, Labels, exponential, make_counters
from policysched.model.release import Release
from policysched.schedule.observer import GroupAttempt, Observer

ENTITY: Final = "podgroup"
_KINDS: Final = "entity type ('podgroup' or 'compositepodgroup')"


class GroupMetrics(Observer, Collector):
    """Counts attempts to schedule pod groups, with durations.

    Args:
        release: The release whose labels and texts apply.
    """

    def __init__(self, release: Release) -> None:
        self._has_entity = named = release.entity_label == "entity"
        of_attempts = exponential(0.001, 2, 15)
        self._attempts: Counter[Labels] = Counter()
        self._seconds = Histogram(
            "scheduler_podgroup_scheduling_attempt_duration_seconds",
            "[ALPHA] Pod group scheduling attempt latency in seconds"
            + (f", by result, scheduler profile and {_KINDS}." if named else ""),
            ("result", "profile", "entity") if named else ("result", "profile"),
            of_attempts,
        )
        self._algorithm_seconds = Histogram(
            "scheduler_podgroup_scheduling_algorithm_duration_seconds",
            "[ALPHA] Pod group scheduling algorithm latency in seconds"
            + (f", by scheduler profile and {_KINDS}." if named else ""),
            ("profile", "entity") if named else (),
            of_attempts,
        )

    def on_group_attempt(self, attempt: GroupAttempt) -> None:
        """Count an attempt with its durations."""
        result = "waiting_on_preemption" if attempt.waits else attempt.result.value
        labels: Labels = (result, attempt.queued.profile)
        algorithm: Labels = ()
        if self._has_entity:
            labels, algorithm = (*labels, ENTITY), (attempt.queued.profile, ENTITY)
        self._attempts[labels] += 1
        self._seconds.observe(labels, attempt.seconds)
        self._algorithm_seconds.observe(algorithm, attempt.algorithm_seconds)

    def collect(self) -> Iterator[MetricFamily]:
        """Return samples; thread-safe."""
        by = f"by the result, scheduler profile and {_KINDS}" if self._has_entity else "by the result"
        yield make_counters(
            "scheduler_podgroup_schedule_attempts",
            f"[ALPHA] Number of attempts to schedule pod group, {by}. 'unschedulable' means a pod group could not be "
            "scheduled, while 'error' means an internal scheduler problem.",
            ("result", "profile", "entity") if self._has_entity else ("result", "profile"),
            self._attempts,
        )
        yield self._seconds.collect()
        yield self._algorithm_seconds.collect()
