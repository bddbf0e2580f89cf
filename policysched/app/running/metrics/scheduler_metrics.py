"""`SchedulerMetrics`: what becomes of pods, under kube-scheduler's names, labels, buckets and texts.

An observer counts with plain numbers as it hears of pods, and samples are made of them only when somebody asks for the
metrics; so what it costs does not show beside a decision. The rest is read off the queue and the cluster when asked.
No series is about one pod. docs/metrics.md says which of kube-scheduler's metrics are not here, and why.

Source: pkg/scheduler/metrics/metrics.go, pkg/scheduler/schedule_one.go.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, product
from typing import Final

import numpy as np
from numpy.typing import NDArray
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric as MetricFamily
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from policysched.framework import Clock, DeviceWait, PostFilterResult, Status, WaitingPod
from policysched.framework.plugin import PREFIX
from policysched.schedule.cycle.decision import Decision
from policysched.schedule.observer import Attempt, AttemptResult, Observer
from policysched.schedule.queue.queued_pod import QueuedPod
from policysched.schedule.scheduler import Scheduler
from policysched.schedule.timing import FILTER, PRE_FILTER, PRE_SCORE, SCORE

MANY_ATTEMPTS: Final = 15
"""Pods that took so many attempts share a label."""
MOST_CLASSES: Final = 1024
"""For how many pod classes is counted apart which plugins had a say, before that is added up."""
FILTERING: Final = (PRE_FILTER, FILTER)
SCORING: Final = (PRE_SCORE, SCORE)
ALONE: Final = "Score alone"
"""Among evaluations, those of plugins that score and do not filter."""
Labels = tuple[str, ...]
PluginNames = tuple[str, ...]


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


@dataclass(slots=True)
class _Asked:
    """How often the same plugins had a say: in decisions, and in choices among several nodes."""

    profile: str
    names: tuple[PluginNames, PluginNames]
    decisions: int = 0
    choices: int = 0


class SchedulerMetrics(Observer, Collector):
    """Counts what becomes of pods.

    Args:
        clock: The one that the scheduler reads.
    """

    def __init__(self, clock: Clock) -> None:
        self._monotonic = clock.monotonic
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
            "[ALPHA] Scheduling algorithm latency in seconds",
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
            "scheduler_preemption_victims", "[STABLE] Number of selected preemption victims", (), exponential(1, 2, 7)
        )
        self._permit_seconds = Histogram(
            "scheduler_permit_wait_duration_seconds",
            "[BETA] Duration of waiting on permit.",
            ("result",),
            of_attempts,
        )
        self._device_seconds = Histogram(
            "scheduler_dra_bindingconditions_wait_duration_seconds",
            "[ALPHA] Time in seconds spent waiting for BindingConditions to be satisfied during PreBind.",
            ("profile", "driver", "status"),
            exponential(0.1, 2, 14),
        )
        self._device_waits: Counter[Labels] = Counter()
        self._claims: Counter[Labels] = Counter()
        self._incoming: Counter[Labels] = Counter()
        self._after_flush = 0
        self._asked: tuple[Counter[Labels], dict[int, _Asked]] = Counter(), {}
        """What was counted before, and since then by the identity of the names, which are kept with it.

        They move together: another thread reads both.
        """

    def on_decision(self, queued: QueuedPod, decision: Decision) -> None:
        """Count how long a decision took, and which plugins had a say in it."""
        if not decision.failed:
            self._algorithm_seconds.observe((), self._monotonic() - queued.tried_at)
        names = decision.evaluation.plugin_names()
        by_names = self._asked[1]
        asked = by_names.get(id(names))
        if asked is None:
            if len(by_names) >= MOST_CLASSES:
                by_names = {}
                self._asked = self.evaluations(), by_names
            asked = by_names[id(names)] = _Asked(queued.profile, names)
        asked.decisions += 1
        asked.choices += decision.feasible_count > 1

    def evaluations(self) -> Counter[Labels]:
        """Count the decisions in which a plugin had a say, by plugin, extension point (or `ALONE`) and profile."""
        before, by_names = self._asked
        counts = Counter(before)
        for asked in tuple(by_names.values()):
            filters, scores = asked.names
            for points, names, count in ((FILTERING, filters, asked.decisions), (SCORING, scores, asked.choices)):
                for name, point in product(names, points) if count else ():
                    counts[name, point, asked.profile] += count
            for name in set(scores).difference(filters) if asked.choices else ():
                counts[name, ALONE, asked.profile] += asked.choices
        return counts

    def keep_policies(self, names: frozenset[str]) -> None:
        """Forget what is known of policies but these."""
        kept = {labels: count for labels, count in self.evaluations().items() if is_kept(labels[0], names)}
        self._asked = Counter(kept), {}

    def on_preemption(self, queued: QueuedPod, result: PostFilterResult) -> None:  # noqa: ARG002 - an observer's
        """Count the pods that make room."""
        self._victims.observe((), len(result.victims))

    def on_attempt(self, attempt: Attempt) -> None:
        """Count an attempt, and what a pod took in all where it was the last."""
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

    def on_queued(self, queued: QueuedPod, queue: str, event: str) -> None:  # noqa: ARG002 - an observer's
        """Count a pod that enters a queue."""
        self._incoming[queue, event] += 1

    def on_permit_wait(self, waiting: WaitingPod, status: Status | None, seconds: float) -> None:  # noqa: ARG002 - as above
        """Count how long a pod waited at Permit."""
        self._permit_seconds.observe(("Success" if status is None else status.code.text,), seconds)

    def on_claim_request(self, *, created: bool) -> None:
        """Count a claim that was asked for."""
        self._claims["success" if created else "failure",] += 1

    def on_device_wait(self, wait: DeviceWait) -> None:
        """Count a wait for each device of the pod: its time for all, an allocation for those with conditions."""
        status = wait.outcome.value
        for driver in wait.drivers:
            self._device_seconds.observe((wait.profile, driver, status), wait.seconds)
        for driver in wait.conditional:
            self._device_waits[wait.profile, driver, status] += 1

    def collect(self) -> Iterator[MetricFamily]:
        """Make samples; it may be asked from any thread."""
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
            self._incoming,
        )
        yield make_counters(
            "scheduler_pod_scheduled_after_flush",
            "[ALPHA] Number of pods that were successfully scheduled after being flushed from unschedulablePods due to "
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
        yield make_counters(
            "scheduler_resourceclaim_creates",
            "[ALPHA] Number of ResourceClaims creation requests within scheduler",
            ("status",),
            self._claims,
        )
        yield make_counters(
            "scheduler_dra_bindingconditions_allocations",
            "[ALPHA] Number of allocations using devices with BindingConditions, counted per driver per scheduling "
            "attempt",
            ("profile", "driver", "status"),
            self._device_waits,
        )
        for histogram in (
            self._attempt_seconds,
            self._algorithm_seconds,
            self._pod_attempts,
            self._pod_seconds,
            self._victims,
            self._permit_seconds,
            self._device_seconds,
        ):
            yield histogram.collect()


class StateMetrics(Collector):
    """How many pods and nodes there are, and what is under way, read when somebody asks.

    Args:
        scheduler: Whose queue and cluster.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def collect(self) -> Iterator[MetricFamily]:
        """Make samples; it may be asked from any thread."""
        pending = GaugeMetricFamily(
            "scheduler_pending_pods",
            "[STABLE] Number of pending pods, by the queue type. 'active' means number of pods in activeQ; 'backoff' "
            "means number of pods in backoffQ; 'unschedulable' means number of pods in unschedulablePods that the "
            "scheduler attempted to schedule and failed; 'gated' is the number of unschedulable pods that the "
            "scheduler never attempted to schedule because they are gated.",
            labels=("queue",),
        )
        for queue, count in self._scheduler.queue.counts()._asdict().items():
            pending.add_metric((queue,), count)
        cluster = self._scheduler.cluster
        size = GaugeMetricFamily(
            "scheduler_cache_size",
            "[ALPHA] Number of nodes, pods, and assumed (bound) pods in the scheduler cache.",
            labels=("type",),
        )
        size.add_metric(("nodes",), cluster.nodes.count)
        size.add_metric(("pods",), len(cluster.pods))
        size.add_metric(("assumed_pods",), sum(one.assumed for one in tuple(cluster.pods.by_id.values())))
        yield from (pending, size, *self._work())

    def _work(self) -> Iterator[MetricFamily]:
        queue = self._scheduler.queue
        unschedulable = GaugeMetricFamily(
            "scheduler_unschedulable_pods",
            "[BETA] The number of unschedulable pods broken down by plugin name. A pod will increment the gauge for "
            "all plugins that caused it to not schedule and so this metric have meaning only when broken down "
            "by plugin.",
            labels=("plugin", "profile"),
        )
        for labels, count in sorted(queue.rejections().items()):
            unschedulable.add_metric(labels, count)
        in_flight = GaugeMetricFamily(
            "scheduler_inflight_events",
            "[ALPHA] Number of events currently tracked in the scheduling queue.",
            labels=("event",),
        )
        for event, count in sorted(queue.events_in_flight().items()):
            in_flight.add_metric((event,), count)
        at_work = GaugeMetricFamily(
            "scheduler_goroutines",
            "[BETA] Number of running goroutines split by the work they do such as binding.",
            labels=("operation",),
        )
        at_work.add_metric(("binding",), self._scheduler.binding_count)
        yield from (unschedulable, in_flight, at_work)


def is_kept(plugin: str, names: frozenset[str]) -> bool:
    """Return whether a plugin is one of the profiles', or a policy of these names."""
    return not plugin.startswith(PREFIX) or plugin.removeprefix(PREFIX) in names


def _as_go(bound: float) -> str:
    """Write a bound as Go does, who has no `.0`: queries name buckets by their texts."""
    return str(int(bound)) if bound == int(bound) else str(floatToGoString(bound))  # type: ignore[no-untyped-call]


def make_counters(name: str, text: str, labels: Sequence[str], counts: Mapping[Labels, float]) -> MetricFamily:
    """Make the samples of a counter, one for each combination of its labels' values."""
    family = CounterMetricFamily(name, text, labels=labels)
    for values, count in dict(counts).items():
        family.add_metric(values, count)
    return family
