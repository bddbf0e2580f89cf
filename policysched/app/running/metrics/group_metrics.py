"""`GroupMetrics`: metrics about attempts and placements of pod groups, with kube-scheduler's names, labels and texts.

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
from policysched.schedule.observer import GroupAttempt, Observer, PlacementSearch

ENTITY: Final = "podgroup"
_KINDS: Final = "entity type ('podgroup' or 'compositepodgroup')"


_FEASIBLE: Final = "'feasible' means the pod group fit into the placement, while 'infeasible' means it did not."
_PROFILE: Final = ", scheduler profile, and entity type."
_NESTED: Final = (
    "For pod groups nested in a composite pod group, placements are generated and counted once per evaluated parent "
    "placement."
)
_CHILDREN: Final = (
    "For composite pod groups, nested evaluations of child groups are also counted separately under their own entity "
    "type."
)
_SUBTREE: Final = (
    "For composite pod groups, this covers scheduling the whole subtree on the placement, including nested placement "
    "evaluations of child groups, which are also recorded separately under their own entity type."
)


class GroupMetrics(Observer, Collector):
    """Counts attempts to schedule pod groups and evaluations of placements, with durations.

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

        self._has_placements = release.topology_aware
        self._generated: Counter[Labels] = Counter()
        self._evaluated: Counter[Labels] = Counter()
        self._evaluation_seconds = Histogram(
            "scheduler_placement_evaluation_duration_seconds",
            "[ALPHA] Latency in seconds of evaluating a single candidate placement when scheduling pod groups, by "
            + (f"result{_PROFILE} {_SUBTREE} " if named else "result. ")
            + _FEASIBLE,
            self._labels("result", "profile"),
            of_attempts,
        )

    def _labels(self, *names: str) -> tuple[str, ...]:
        """Return label names; append the label `entity` if the release's metrics have it."""
        return (*names, "entity") if self._has_entity else names

    def on_placement_search(self, search: PlacementSearch) -> None:
        """Count generated and evaluated placements with the durations of evaluations."""
        entity = (ENTITY,) if self._has_entity else ()
        self._generated[search.profile, *entity] += search.generated
        for fits, seconds in search.evaluated:
            labels = ("feasible" if fits else "infeasible", search.profile, *entity)
            self._evaluated[labels] += 1
            self._evaluation_seconds.observe(labels, seconds)

    def on_group_attempt(self, attempt: GroupAttempt) -> None:
        """Count an attempt to schedule a pod group, and record its durations."""
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
        if self._has_placements:
            yield from self._placements()

    def _placements(self) -> Iterator[MetricFamily]:
        named = self._has_entity
        yield make_counters(
            "scheduler_generated_placements",
            "[ALPHA] Number of candidate placements generated when scheduling pod groups"
            + (f", by scheduler profile and entity type. {_NESTED}" if named else "."),
            self._labels("profile"),
            self._generated,
        )
        yield make_counters(
            "scheduler_placement_evaluations",
            "[ALPHA] Number of candidate placements evaluated when scheduling pod groups, by result"
            + (f"{_PROFILE} {_FEASIBLE} {_CHILDREN}" if named else f". {_FEASIBLE}"),
            self._labels("result", "profile"),
            self._evaluated,
        )
        yield self._evaluation_seconds.collect()
