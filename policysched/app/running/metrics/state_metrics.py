"""`StateMetrics`: numbers of pods, nodes and running operations, with kube-scheduler's names and texts.

Source: pkg/scheduler/metrics/metrics.go, v1.36 and v1.37.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric as MetricFamily
from prometheus_client.registry import Collector

from policysched.app.running.metrics.series import event_name
from policysched.schedule.scheduler import Scheduler

QUEUED_ENTITIES: Final = (
    "Number of queued scheduling entities ('pod' or 'podgroup'; 'pod' stands for individual pods that are not members "
    "of any podgroup) by the queue type. 'active' means number of entities in activeQ; 'backoff' means number of "
    "entities in backoffQ; 'unschedulable' means number of entities in unschedulableEntities that the scheduler "
    "attempted to schedule and failed; 'gated' is the number of unschedulable entities that the scheduler never "
    "attempted to schedule because they are gated."
)


class StateMetrics(Collector):
    """Reads the queue and the cluster when metrics are scraped.

    Args:
        scheduler: The scheduler with queue and cluster.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        release = scheduler.cluster.release
        self._entity_label = release.entity_label
        self._event = partial(event_name, pending_pod=release.pending_pod_event, own_update=release.own_update_event)

    def collect(self) -> Iterator[MetricFamily]:
        """Return samples; thread-safe."""
        cluster = self._scheduler.cluster
        size = GaugeMetricFamily(
            "scheduler_cache_size",
            "[ALPHA] Number of nodes, pods, and assumed (bound) pods in the scheduler cache.",
            labels=("type",),
        )
        size.add_metric(("nodes",), cluster.nodes.count)
        size.add_metric(("pods",), len(cluster.pods))
        size.add_metric(("assumed_pods",), sum(one.assumed for one in tuple(cluster.pods.by_id.values())))
        yield from (*self._queues(), size, *self._work())

    def _queues(self) -> Iterator[MetricFamily]:
        """Yield the numbers of pods and entities by queue."""
        queue = self._scheduler.queue
        held = queue.held_counts() if self._entity_label else {}
        waiting = "unschedulableEntities" if self._entity_label else "unschedulablePods"
        groups = (
            "; 'incomplete' means number of pods in incompletePodGroupPods; 'pending' means number of pods in "
            "pendingPodGroupPods"
        )
        pending = GaugeMetricFamily(
            "scheduler_pending_pods",
            "[STABLE] Number of pending pods, by the queue type. 'active' means number of pods in activeQ; 'backoff' "
            f"means number of pods in backoffQ; 'unschedulable' means number of pods in {waiting} that the "
            "scheduler attempted to schedule and failed; 'gated' is the number of unschedulable pods that the "
            f"scheduler never attempted to schedule because they are gated{groups if self._entity_label else ''}.",
            labels=("queue",),
        )
        for name, count in {**queue.counts()._asdict(), **held}.items():
            pending.add_metric((name,), count)
        yield pending
        if self._entity_label:
            entities = GaugeMetricFamily(
                "scheduler_queued_entities", f"[ALPHA] {QUEUED_ENTITIES}", labels=("queue", self._entity_label)
            )
            for entity, counts in queue.entity_counts().items():
                for name, count in counts._asdict().items():
                    entities.add_metric((name, entity), count)
            yield entities

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
            in_flight.add_metric((self._event(event),), count)
        at_work = GaugeMetricFamily(
            "scheduler_goroutines",
            "[BETA] Number of running goroutines split by the work they do such as binding.",
            labels=("operation",),
        )
        at_work.add_metric(("binding",), self._scheduler.binding_count)
        yield from (unschedulable, in_flight, at_work)
