"""Metrics about preemption for pod groups, with kube-scheduler's names, labels and texts.

Source: pkg/scheduler/metrics/metrics.go, pkg/scheduler/framework/preemption/executor.go (observeVictims), v1.37 and
v1.38.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from prometheus_client.metrics_core import Metric as MetricFamily
from prometheus_client.registry import Collector

from policysched.app.running.metrics.series import Histogram, Labels, exponential, make_counters
from policysched.framework import Code, PostFilterResult
from policysched.framework.pod_groups import PodGroupPostFilterResult
from policysched.model.objects import PodGroup
from policysched.model.release import Release
from policysched.schedule.observer import Observer
from policysched.schedule.queue.queued_pod import QueuedPod
from policysched.schedule.timing import POD, POD_GROUP


class GroupPreemptionTimes:
    """Counts attempts of pod groups to preempt, and durations of preemption for pods and pod groups.

    Args:
        release: The release whose labels and texts apply.
    """

    def __init__(self, release: Release) -> None:
        self._names_preemptor = release.entity_label == "entity"
        self._attempts: Counter[Labels] = Counter()
        of_preemptions = exponential(0.001, 2, 16)
        self._search_seconds = Histogram(
            "scheduler_preemption_evaluation_duration_seconds",
            "[ALPHA] Duration in seconds for identifying the target preemption victims.",
            ("preemptor", "result"),
            of_preemptions,
        )
        self._preemption_seconds = Histogram(
            "scheduler_preemption_execution_duration_seconds",
            "[ALPHA] Duration in seconds for preempting the target preemption victims. With async preemption enabled, "
            "preemption execution does not block the scheduling of other pods.",
            ("preemptor", "result"),
            of_preemptions,
        )

    def tried(self, status: Code) -> None:
        """Count an attempt of a pod group to preempt, by status."""
        self._attempts[(POD_GROUP, status.text) if self._names_preemptor else (status.text,)] += 1

    def searched(self, preemptor: str, status: Code, seconds: float) -> None:
        """Record the duration of a search for victims."""
        self._search_seconds.observe((preemptor, status.text), seconds)

    def preempted(self, preemptor: str, result: str, seconds: float) -> None:
        """Record the duration of a preemption."""
        self._preemption_seconds.observe((preemptor, result), seconds)

    def collect(self) -> Iterator[MetricFamily]:
        """Return samples; thread-safe."""
        by = "either pod groups or composite pod groups" if self._names_preemptor else "including pod groups"
        yield make_counters(
            "scheduler_workload_preemption_attempts",
            f"[ALPHA] Total preemption attempts initiated by workload ({by}) in the cluster till now.",
            ("preemptor", "result") if self._names_preemptor else ("result",),
            self._attempts,
        )
        yield self._search_seconds.collect()
        yield self._preemption_seconds.collect()


class GroupVictims(Observer, Collector):
    """Counts victims of preemption for pod groups, and violations of disruption budgets by preemption.

    Args:
        release: The release whose labels and texts apply.
    """

    def __init__(self, release: Release) -> None:
        self._names_preemptor = named = release.entity_label == "entity"
        self._violations: Counter[Labels] = Counter()
        self._victims = Histogram(
            "scheduler_workload_preemption_victims",
            "[ALPHA] Number of pod preemption victims caused by workload preemption"
            + (" (either pod groups or composite pod groups)." if named else "."),
            ("preemptor",) if named else (),
            exponential(1, 2, 11),
        )
        self._disruptions = Histogram(
            "scheduler_preemption_workload_disruptions",
            BY_VICTIM if named else OF_GROUPS,
            ("preemptor", "victim") if named else ("preemptor",),
            exponential(1, 2, 11),
        )

    def on_preemption(self, queued: QueuedPod, result: PostFilterResult) -> None:  # noqa: ARG002 - an observer's
        """Count the violations of disruption budgets by the preemption of a pod."""
        self._violate(POD, result.violations)

    def on_group_preemption(self, group: PodGroup, result: PodGroupPostFilterResult) -> None:  # noqa: ARG002 - as above
        """Count the victims of a preemption for a pod group."""
        self._victims.observe((POD_GROUP,) if self._names_preemptor else (), len(result.victims))
        disruption = result.disruption
        if disruption is None:
            return
        if self._names_preemptor:
            for victim, count in ((POD_GROUP, disruption.groups), (POD, disruption.pods)):
                if count:
                    self._disruptions.observe((POD_GROUP, victim), count)
        elif disruption.groups:
            self._disruptions.observe((POD_GROUP,), disruption.groups)
        self._violate(POD_GROUP, disruption.violations)

    def _violate(self, preemptor: str, violations: int) -> None:
        if violations:
            self._violations[preemptor,] += violations

    def collect(self) -> Iterator[MetricFamily]:
        """Return samples; thread-safe."""
        yield self._victims.collect()
        yield self._disruptions.collect()
        yield make_counters(
            "scheduler_preemption_pdb_violations",
            "[ALPHA] Total number of pod disruption budget violations caused by preemption.",
            ("preemptor",),
            self._violations,
        )


OF_GROUPS: Final = (
    "[ALPHA] Number of workload preemption units being preempted. A single preemption unit can be all pods in a pod "
    "group (in case of DisruptionMode=all), or a single pod (in case of DisruptionMode=single)."
)
BY_VICTIM: Final = (
    "[ALPHA] Number of preemption units evicted by a single workload preemption (either pod groups or composite pod "
    "groups), by victim type. A unit is either all pods of a pod group or composite pod group hierarchy with "
    "DisruptionMode=all (victim is the type of its topmost group with DisruptionMode=all), or a single pod evicted on "
    "its own (victim=pod), which covers pods outside of any group and pods of groups with DisruptionMode=single."
)
