"""`ProcessMetrics`: all metrics of the process, in one registry."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version

from prometheus_client import CollectorRegistry, Gauge, ProcessCollector
from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.registry import Collector

from policysched.app.running.metrics.claim_metrics import ClaimMetrics
from policysched.app.running.metrics.group_metrics import GroupMetrics
from policysched.app.running.metrics.group_preemption_metrics import GroupVictims
from policysched.app.running.metrics.help_texts import WithProfiles
from policysched.app.running.metrics.plugin_times import PluginTimes
from policysched.app.running.metrics.policy_metrics import PolicyMetrics
from policysched.app.running.metrics.request_metrics import RequestMetrics
from policysched.app.running.metrics.scheduler_metrics import SchedulerMetrics
from policysched.app.running.metrics.shadow_victims import ShadowVictims
from policysched.app.running.metrics.state_metrics import StateMetrics
from policysched.app.running.metrics.timing_metrics import TimingMetrics
from policysched.framework import PREFIX, Clock
from policysched.model.release import DEFAULT, Release
from policysched.rules.policy_set.store import PolicyStore
from policysched.schedule.observer import Observer
from policysched.schedule.scheduler import Scheduler
from policysched.schedule.shadow_guards import ShadowGuards


class ProcessMetrics:
    """The metrics of one scheduler process: registry and observers.

    Args:
        clock: The scheduler's clock.
        registry: Registry of the metrics.
        release: The Kubernetes release that decisions follow.
    """

    def __init__(self, clock: Clock, registry: CollectorRegistry, release: Release = DEFAULT) -> None:
        self._registry, self._names_profiles = registry, release.help_names_profiles
        self.timing, self._attempts = TimingMetrics(clock, release), SchedulerMetrics(clock, release)
        self._policies = PolicyMetrics(self._attempts.evaluations, self.timing.policy_seconds)
        self.requests, self._claims = RequestMetrics(), ClaimMetrics(release)
        self._kept = frozenset[str]()
        """Names of the policies that have metric series."""
        self._shadows: ShadowGuards | None = None
        self._groups = (GroupMetrics(release), GroupVictims(release)) if release.generic_workload else ()
        for one in (self._attempts, self._claims, *self._groups, self.timing, self.requests):
            self._register(one)
        ProcessCollector(registry=registry)
        _show_build(registry, release)

    @property
    def observers(self) -> tuple[Observer, ...]:
        """Observers of the scheduler."""
        return self._attempts, self._claims, *self._groups, self._policies

    def show(self, scheduler: Scheduler, store: PolicyStore, ages: Callable[[], Mapping[str, float]]) -> None:
        """Register the metrics of a scheduler, its policies and the ages of their metrics."""
        self._policies.store, self._shadows = store, scheduler.shadows
        collectors = (
            self._policies,
            StateMetrics(scheduler),
            PluginTimes(scheduler.plugin_watches),
            ShadowVictims(scheduler.shadows),
            MetricAges(ages),
        )
        for one in collectors:
            self._register(one)

    def _register(self, one: Collector) -> None:
        self._registry.register(WithProfiles(one) if self._names_profiles else one)

    def keep_policies(self, names: frozenset[str]) -> None:
        """Drop the series of all policies except the named policies."""
        gone, self._kept = self._kept - names, names
        if not gone:
            return
        self.timing.keep_policies(names)
        self._attempts.keep_policies(names)
        self._policies.keep_policies(names)
        if self._shadows is not None:
            self._shadows.keep({PREFIX + name for name in names})


def _show_build(registry: CollectorRegistry, release: Release) -> None:
    text = "Always 1. The labels are the versions of policysched, of the kube-scheduler that it follows, and of Python."
    labels = {"version": version("policysched"), "kubernetes": release.version, "python": platform.python_version()}
    Gauge("policysched_build_info", text, tuple(labels), registry=registry).labels(**labels).set(1)


class MetricAges(Collector):
    """Age of the metric values that policies read.

    Args:
        ages: Returns the age of the last answer by policy and metric.
    """

    def __init__(self, ages: Callable[[], Mapping[str, float]]) -> None:
        self._ages = ages

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Return samples; thread-safe."""
        text = "Seconds since the last answer for a metric that a policy reads, else since the first query."
        found = GaugeMetricFamily("policysched_metric_age_seconds", text, labels=("policy", "metric"))
        for name, age in sorted(self._ages().items()):
            policy, _, metric = name.rpartition("/")
            found.add_metric((policy, metric), age)
        yield found
