"""`ClaimMetrics`: metrics about created resource claims and waits for devices, with kube-scheduler's names and texts.

Source: pkg/scheduler/metrics/metrics.go, pkg/scheduler/framework/plugins/dynamicresources, v1.36 and v1.37;
dynamic-resource-allocation/resourceclaim/metrics, v1.37.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from prometheus_client.metrics_core import Metric as MetricFamily
from prometheus_client.registry import Collector

from policysched.app.running.metrics.series import Histogram, Labels, exponential, make_counters
from policysched.framework import DeviceWait
from policysched.model.release import DEFAULT, Release
from policysched.schedule.observer import Observer


class ClaimMetrics(Observer, Collector):
    """Counts claim requests and waits of DynamicResources.

    Args:
        release: The release whose names and labels apply.
    """

    def __init__(self, release: Release = DEFAULT) -> None:
        self._counts_by_owner = release.counts_claims_by_owner
        self._device_seconds = Histogram(
            "scheduler_dra_bindingconditions_wait_duration_seconds",
            "[ALPHA] Time in seconds spent waiting for BindingConditions to be satisfied during PreBind.",
            ("profile", "driver", "status"),
            exponential(0.1, 2, 14),
        )
        self._device_waits: Counter[Labels] = Counter()
        self._claims: Counter[Labels] = Counter()

    def on_claim_request(self, *, created: bool) -> None:
        """Count a request to create a claim."""
        self._claims["success" if created else "failure",] += 1

    def on_device_wait(self, wait: DeviceWait) -> None:
        """Count the allocations of a pod and, for devices with binding conditions, the duration of the wait."""
        status = wait.outcome.value
        for driver in wait.drivers:
            self._device_seconds.observe((wait.profile, driver, status), wait.seconds)
        for driver in wait.conditional:
            self._device_waits[wait.profile, driver, status] += 1

    def collect(self) -> Iterator[MetricFamily]:
        """Return samples; thread-safe."""
        yield self._created_claims()
        yield make_counters(
            "scheduler_dra_bindingconditions_allocations",
            "[ALPHA] Number of allocations using devices with BindingConditions, counted per driver per scheduling "
            "attempt",
            ("profile", "driver", "status"),
            self._device_waits,
        )
        yield self._device_seconds.collect()

    def _created_claims(self) -> MetricFamily:
        if not self._counts_by_owner:
            text = "[ALPHA] Number of ResourceClaims creation requests within scheduler"
            return make_counters("scheduler_resourceclaim_creates", text, ("status",), self._claims)
        return make_counters(
            "dynamic_resource_allocation_resourceclaim_creates",
            "[ALPHA] Number of ResourceClaims creation requests, categorized by creation status, admin access, and "
            "owning API group and kind (either Pod or scheduling.k8s.io/PodGroup)",
            ("status", "admin_access", "owner_api_group", "owner_api_kind"),
            {(*labels, "false", "", "Pod"): count for labels, count in dict(self._claims).items()},
        )
