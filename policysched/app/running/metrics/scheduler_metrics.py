"""`SchedulerMetrics`: results of scheduling, with kube-scheduler's names, labels, buckets and texts.

An observer counts with plain numbers; samples are created only when metrics are scraped, so the cost per decision is
negligible. No series is about a single pod. docs/reference/metrics.md lists kube-scheduler's metrics that do not exist
here.

Source: pkg/scheduler/metrics/metrics.go, pkg/scheduler/schedule_one.go, v1.36 and v1.37.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Final

from prometheus_client.metrics_core import Metric as MetricFamily
from prometheus_client.registry import Collector

from policysched.app.running.metrics.series import Histogram, Labels, event_name, exponential, make_counters
from policysched.framework import Clock, PostFilterResult, Status, WaitingPod
from policysched.framework.plugin import PREFIX
from policysched.model.release import DEFAULT, Release
from policysched.schedule.cycle.decision import Decision
from policysched.schedule.observer import Attempt, AttemptResult, Observer
from policysched.schedule.queue.queued_pod import QueuedPod, Stage
from policysched.schedule.queue.queued_pod_group import QueuedPodGroup
from policysched.schedule.timing import FILTER, PRE_FILTER, PRE_SCORE, SCORE

MANY_ATTEMPTS: Final = 15
"""Number of attempts above which all pods share one value of the label `attempts`."""
MOST_CLASSES: Final = 1024
"""Largest number of plugin sets with separate call counts; beyond it the counts are added up by plugin."""
FILTERING: Final = (PRE_FILTER, FILTER)
SCORING: Final = (PRE_SCORE, SCORE)
ALONE: Final = "Score alone"
"""Label value for evaluations of plugins that score and do not filter."""
PluginNames = tuple[str, ...]


@dataclass(slots=True)
class _CallCounts:
    """Decisions with one set of plugins: number of all (filters run), and number with several nodes (scores run)."""

    profile: str
    names: tuple[PluginNames, PluginNames]
    decisions: int = 0
    choices: int = 0


class SchedulerMetrics(Observer, Collector):
    """Counts the results of scheduling.

    Args:
        clock: The scheduler's clock.
        release: The release whose names, labels and texts apply.
    """

    def __init__(self, clock: Clock, release: Release = DEFAULT) -> None:
        self._monotonic = clock.monotonic
        self._event = partial(event_name, pending_pod=release.pending_pod_event, own_update=release.own_update_event)
        self._entity_label = release.entity_label
        of_attempts = exponential(0.001, 2, 15)
        self._attempts: Counter[Labels] = Counter()
        self._attempt_seconds = Histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "[STABLE] Scheduling attempt latency in seconds (scheduling algorithm + binding)",
            ("result", "profile"),
            of_attempts,
        )
        self._algorithm_seconds = Histogram(
            "scheduler_scheduling_algorithm_duration_seconds",
            f"[{'BETA' if release.latencies_are_beta else 'ALPHA'}] Scheduling algorithm latency in seconds",
            (),
            of_attempts,
        )
        self._pod_attempts = Histogram(
            "scheduler_pod_scheduling_attempts",
            "[STABLE] Number of attempts to successfully schedule a pod.",
            (),
            exponential(1, 2, 5),
        )
        self._pod_seconds = Histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "[BETA] E2e latency for a pod being scheduled, from the time the pod enters the scheduling queue and might "
            "involve multiple scheduling attempts.",
            ("attempts",),
            exponential(0.01, 2, 20),
        )
        self._victims = Histogram(
            "scheduler_preemption_victims",
            "[STABLE] Number of selected preemption victims"
            + (" for preemption initiated by a single pod" if release.entity_label else ""),
            (),
            exponential(1, 2, 7),
        )
        self._permit_seconds = Histogram(
            "scheduler_permit_wait_duration_seconds",
            "[BETA] Duration of waiting on permit.",
            ("result",),
            of_attempts,
        )
        self._incoming: Counter[Labels] = Counter()
        self._incoming_members: Counter[Labels] = Counter()
        """Number of pods with a pod group that entered a queue, by queue and event."""
        self._incoming_groups: Counter[Labels] = Counter()
        self._after_flush = 0
        self._calls: tuple[Counter[Labels], dict[int, _CallCounts]] = Counter(), {}
        """Call counts added up by plugin; and later call counts, by identity of the tuple of plugin names.

        Replaced together, because another thread reads both.
        """

    def on_decision(self, queued: QueuedPod, decision: Decision) -> None:
        """Record the duration of a decision, and count the plugins that ran."""
        if not decision.failed:
            self._algorithm_seconds.observe((), self._monotonic() - queued.tried_at)
        names = decision.evaluation.plugin_names()
        by_names = self._calls[1]
        calls = by_names.get(id(names))
        if calls is None:
            if len(by_names) >= MOST_CLASSES:
                by_names = {}
                self._calls = self.evaluations(), by_names
            calls = by_names[id(names)] = _CallCounts(queued.profile, names)
        calls.decisions += 1
        calls.choices += decision.feasible_count > 1

    def evaluations(self) -> Counter[Labels]:
        """Return the number of decisions in which a plugin ran, by plugin, extension point and profile.

        For a plugin that scores and does not filter, the extension point `ALONE` has the number, too.
        """
        before, by_names = self._calls
        counts = Counter(before)
        for calls in tuple(by_names.values()):
            filters, scores = calls.names
            for points, names, count in ((FILTERING, filters, calls.decisions), (SCORING, scores, calls.choices)):
                for name, point in product(names, points) if count else ():
                    counts[name, point, calls.profile] += count
            for name in set(scores).difference(filters) if calls.choices else ():
                counts[name, ALONE, calls.profile] += calls.choices
        return counts

    def keep_policies(self, names: frozenset[str]) -> None:
        """Drop the series of all policies except the named policies."""
        kept = {labels: count for labels, count in self.evaluations().items() if is_kept(labels[0], names)}
        self._calls = Counter(kept), {}

    def on_preemption(self, queued: QueuedPod, result: PostFilterResult) -> None:  # noqa: ARG002 - an observer's
        """Count preemptions and victims."""
        self._victims.observe((), len(result.victims))

    def on_attempt(self, attempt: Attempt) -> None:
        """Count an attempt to schedule a pod; if it succeeds, record the time since the pod's first attempt."""
        queued, result = attempt.queued, attempt.result
        labels = (result.value, queued.profile)
        self._attempts[labels] += 1
        self._attempt_seconds.observe(labels, attempt.seconds)
        if result is not AttemptResult.SCHEDULED:
            return
        count = queued.attempts
        self._pod_attempts.observe((), count)
        if queued.first_attempt_at is not None:
            label = str(count) if count < MANY_ATTEMPTS else f"{MANY_ATTEMPTS}+"
            self._pod_seconds.observe((label,), queued.tried_at + attempt.seconds - queued.first_attempt_at)
        self._after_flush += queued.flushed

    def on_queued(self, queued: QueuedPod, queue: str, event: str) -> None:
        """Count a pod or pod group that enters a queue; gated pods are counted as unschedulable."""
        queue = "unschedulable" if queue == "gated" else queue
        if isinstance(queued, QueuedPodGroup):
            self._incoming_groups[queue, event] += 1
            return
        self._incoming[queue, event] += 1
        if queued.stage is Stage.IN_GROUP:
            self._incoming_members[queue, event] += 1

    def on_permit_wait(self, waiting: WaitingPod, status: Status | None, seconds: float) -> None:  # noqa: ARG002 - as above
        """Record the duration of a pod's wait at Permit."""
        self._permit_seconds.observe(("Success" if status is None else status.code.text,), seconds)

    def collect(self) -> Iterator[MetricFamily]:
        """Return samples; thread-safe."""
        yield make_counters(
            "scheduler_schedule_attempts",
            "[STABLE] Number of attempts to schedule pods, by the result. 'unschedulable' means a pod could not be "
            "scheduled, while 'error' means an internal scheduler problem.",
            ("result", "profile"),
            self._attempts,
        )
        yield make_counters(
            "scheduler_queue_incoming_pods",
            "[STABLE] Number of pods added to scheduling queues by event and queue type.",
            ("queue", "event"),
            {(queue, self._event(event)): count for (queue, event), count in dict(self._incoming).items()},
        )
        yield from self._incoming_entities()
        waiting = "unschedulableEntities" if self._entity_label else "unschedulablePods"
        yield make_counters(
            "scheduler_pod_scheduled_after_flush",
            f"[ALPHA] Number of pods that were successfully scheduled after being flushed from {waiting} due to "
            "timeout. This metric helps detect potential queueing hint misconfigurations or event handling issues.",
            (),
            {(): self._after_flush},
        )
        yield make_counters(
            "scheduler_plugin_evaluation",
            "[BETA] Number of attempts to schedule pods by each plugin and the extension point (available only in "
            "PreFilter, Filter, PreScore, and Score).",
            ("plugin", "extension_point", "profile"),
            {labels: count for labels, count in self.evaluations().items() if labels[1] != ALONE},
        )
        for histogram in (
            self._attempt_seconds,
            self._algorithm_seconds,
            self._pod_attempts,
            self._pod_seconds,
            self._victims,
            self._permit_seconds,
        ):
            yield histogram.collect()

    def _incoming_entities(self) -> Iterator[MetricFamily]:
        if self._entity_label:
            yield make_counters(
                "scheduler_queue_incoming_entities",
                "[ALPHA] Number of scheduling entities added to scheduling queues by event, queue type, and entity "
                "type. Entity types are either 'pod' (for individual pods that are not members of any podgroup) or "
                "'podgroup'.",
                ("queue", "event", self._entity_label),
                {(queue, self._event(event), kind): count for kind, queue, event, count in self._entities()},
            )

    def _entities(self) -> Iterator[tuple[str, str, str, int]]:
        """Yield how many pods without a group, and how many groups, entered a queue, by queue and event."""
        for (queue, event), count in dict(self._incoming).items():
            of_groups = self._incoming_members[queue, event]
            if count > of_groups:
                yield "pod", queue, event, count - of_groups
        for (queue, event), count in dict(self._incoming_groups).items():
            yield "podgroup", queue, event, count


def is_kept(plugin: str, names: frozenset[str]) -> bool:
    """Return whether a name is the name of a plugin, or of a policy among the given names."""
    return not plugin.startswith(PREFIX) or plugin.removeprefix(PREFIX) in names
