"""`StateMetrics`: numbers of pods, nodes and running operations, with kube-scheduler's names and texts.

Source: pkg/scheduler/metrics/metrics.go.
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric as MetricFamily
from prometheus_client.registry import Collector

from policysched.schedule.scheduler import Scheduler


class StateMetrics(Collector):
    """Reads the queue and the cluster when metrics are scraped.

    Args:
        scheduler: The scheduler with queue and cluster.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def collect(self) -> Iterator[MetricFamily]:
        """Return samples; thread-safe."""
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
