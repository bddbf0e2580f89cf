"""Help texts of metrics that mention scheduler profiles and composite pod groups, since Kubernetes 1.38.

Source: pkg/scheduler/metrics/metrics.go, v1.38.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from prometheus_client.metrics_core import Metric as MetricFamily
from prometheus_client.registry import Collector

TEXTS: Final[Mapping[str, str]] = {
    "scheduler_dra_bindingconditions_allocations": (
        "[ALPHA] Number of allocations using devices with BindingConditions, counted per driver per scheduling "
        "attempt, by scheduler profile."
    ),
    "scheduler_dra_bindingconditions_wait_duration_seconds": (
        "[ALPHA] Time in seconds spent waiting for BindingConditions to be satisfied during PreBind, by scheduler "
        "profile."
    ),
    "scheduler_framework_extension_point_duration_seconds": (
        "[STABLE] Latency for running all plugins of a specific extension point, by scheduler profile."
    ),
    "scheduler_plugin_evaluation": (
        "[BETA] Number of attempts to schedule pods by each plugin and the extension point (available only in "
        "PreFilter, Filter, PreScore, and Score), by scheduler profile."
    ),
    "scheduler_queue_incoming_entities": (
        "[ALPHA] Number of scheduling entities added to scheduling queues by event, queue type, and entity type. "
        "Entity types are 'pod' (for individual pods that are not members of any podgroup), 'podgroup', or "
        "'compositepodgroup'."
    ),
    "scheduler_queued_entities": (
        "[ALPHA] Number of queued scheduling entities ('pod', 'podgroup', or 'compositepodgroup'; 'pod' stands for "
        "individual pods that are not members of any podgroup) by the queue type. 'active' means number of "
        "entities in activeQ; 'backoff' means number of entities in backoffQ; 'unschedulable' means number of "
        "entities in unschedulableEntities that the scheduler attempted to schedule and failed; 'gated' is the "
        "number of unschedulable entities that the scheduler never attempted to schedule because they are gated."
    ),
    "scheduler_schedule_attempts": (
        "[STABLE] Number of attempts to schedule pods, by the result and scheduler profile. 'unschedulable' means "
        "a pod could not be scheduled, while 'error' means an internal scheduler problem."
    ),
    "scheduler_scheduling_attempt_duration_seconds": (
        "[STABLE] Scheduling attempt latency in seconds (scheduling algorithm + binding), by scheduler profile."
    ),
    "scheduler_unschedulable_pods": (
        "[BETA] The number of unschedulable pods broken down by plugin name and scheduler profile. A pod will "
        "increment the gauge for all plugins that caused it to not schedule and so this metric has meaning only "
        "when broken down by plugin."
    ),
}
"""Help texts by name of the metric, without the suffix `_total`."""


class WithProfiles(Collector):
    """A collector that replaces help texts of metrics with the texts that mention scheduler profiles.

    Args:
        collector: The collector of the metrics.
    """

    def __init__(self, collector: Collector) -> None:
        self._collector = collector

    def collect(self) -> Iterable[MetricFamily]:
        """Yield the metrics with their texts; thread-safe."""
        for family in self._collector.collect():
            family.documentation = TEXTS.get(family.name, family.documentation)
            yield family
