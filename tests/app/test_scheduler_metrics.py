"""Metrics of the scheduler: histograms as Prometheus reads them, and what an observer costs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from prometheus_client import Histogram as LibraryHistogram
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from policysched.app.running.metrics.claim_metrics import ClaimMetrics
from policysched.app.running.metrics.policy_metrics import PolicyMetrics
from policysched.app.running.metrics.scheduler_metrics import SchedulerMetrics
from policysched.app.running.metrics.series import Histogram, exponential
from policysched.framework import DeviceWait, DeviceWaitOutcome
from policysched.framework.post_filter import PostFilterResult
from policysched.model.policy import decode_policy
from policysched.model.release import RELEASES
from policysched.schedule.observer import Attempt, AttemptResult
from policysched.schedule.queue.queued_pod import QueuedPod
from tests.schedule.queue_parts import StandingClock, pod


class One(Collector):
    def __init__(self, histogram: Histogram) -> None:
        self._histogram = histogram

    def collect(self):  # type: ignore[no-untyped-def]
        yield self._histogram.collect()


def shown(*collectors: Collector) -> list[str]:
    registry = CollectorRegistry()
    for one in collectors:
        registry.register(one)
    return [line for line in generate_latest(registry).decode().splitlines() if "_created" not in line]


@given(st.lists(st.floats(0, 20, allow_nan=False)))
def test_histogram_is_the_one_of_the_client_library(values: list[float]) -> None:
    bounds = exponential(0.01, 2, 8)
    registry = CollectorRegistry()
    library = LibraryHistogram("seconds", "how long", ["of"], buckets=bounds, registry=registry)
    ours = Histogram("seconds", "how long", ("of",), bounds)
    for value in values:
        library.labels("a").observe(value)
        ours.observe(("a",), value)
    expected = generate_latest(registry).decode().splitlines()
    assert shown(One(ours)) == [line for line in expected if "_created" not in line]


def test_buckets_are_those_of_go() -> None:
    assert exponential(0.001, 2, 15)[-1] == pytest.approx(16.384)
    assert exponential(1, 2, 5) == (1, 2, 4, 8, 16)


def queued(name: str, attempts: int, *rejectors: str, flushed: bool = False) -> QueuedPod:
    made = QueuedPod(pod(name), name, 1000.0, attempts, tried_at=1003.0, first_attempt_at=1001.0)
    made.rejectors, made.flushed = frozenset(rejectors), flushed
    return made


def test_attempts_are_counted_by_result_and_their_pods_by_how_many_they_took() -> None:
    metrics = SchedulerMetrics(StandingClock())
    metrics.on_attempt(Attempt(queued("a", 1), AttemptResult.SCHEDULED, 0.5, "n1"))
    metrics.on_attempt(Attempt(queued("b", 20, flushed=True), AttemptResult.SCHEDULED, 0.5, "n1"))
    metrics.on_attempt(Attempt(queued("c", 1), AttemptResult.UNSCHEDULABLE, 0.001))
    lines = shown(metrics)
    profile = queued("a", 1).profile
    assert f'scheduler_schedule_attempts_total{{profile="{profile}",result="scheduled"}} 2.0' in lines
    assert f'scheduler_schedule_attempts_total{{profile="{profile}",result="unschedulable"}} 1.0' in lines
    assert "scheduler_pod_scheduling_attempts_count 2.0" in lines
    assert "scheduler_pod_scheduling_attempts_sum 21.0" in lines
    assert 'scheduler_pod_scheduling_sli_duration_seconds_sum{attempts="15+"} 2.5' in lines
    assert "scheduler_pod_scheduled_after_flush_total 1.0" in lines


def test_claims_and_waits_for_devices_are_counted_by_driver() -> None:
    metrics = ClaimMetrics(RELEASES["1.36"])
    for created in (True, False, True):
        metrics.on_claim_request(created=created)
    metrics.on_device_wait(DeviceWait("p", ["a", "a", "b"], ["b"], DeviceWaitOutcome.TIMEOUT, 600.0))
    metrics.on_device_wait(DeviceWait("p", ["b"], ["b"], DeviceWaitOutcome.SUCCESS, 0.05))
    lines = shown(metrics)
    assert 'scheduler_resourceclaim_creates_total{status="success"} 2.0' in lines
    assert 'scheduler_resourceclaim_creates_total{status="failure"} 1.0' in lines
    allocations = "scheduler_dra_bindingconditions_allocations_total"
    assert [line for line in lines if line.startswith(allocations)] == [
        f'{allocations}{{driver="b",profile="p",status="timeout"}} 1.0',
        f'{allocations}{{driver="b",profile="p",status="success"}} 1.0',
    ]
    seconds = "scheduler_dra_bindingconditions_wait_duration_seconds"
    assert f'{seconds}_count{{driver="a",profile="p",status="timeout"}} 2.0' in lines
    assert f'{seconds}_bucket{{driver="b",le="0.1",profile="p",status="success"}} 1.0' in lines
    assert f'{seconds}_bucket{{driver="b",le="409.6",profile="p",status="timeout"}} 0.0' in lines
    assert f'{seconds}_bucket{{driver="b",le="819.2",profile="p",status="timeout"}} 1.0' in lines


def test_moves_and_the_policies_behind_them_are_counted() -> None:
    attempts = SchedulerMetrics(StandingClock())
    policies = PolicyMetrics(attempts.evaluations, dict)
    for name in ("pin", "gone"):
        policies.store.apply(decode_policy({"metadata": {"name": name}, "spec": {}}))
    for one in (attempts, policies):
        one.on_queued(queued("a", 1, "NodeAffinity", "SchedulingPolicy/pin"), "unschedulable", "ScheduleAttemptFailure")
        one.on_queued(queued("a", 1, "SchedulingPolicy/pin"), "active", "NodeAdd")
        one.on_queued(queued("b", 0), "gated", "ScheduleAttemptFailure")
        one.on_preemption(queued("a", 1), PostFilterResult(nominated_node="n1", victims=(pod("v"), pod("w"))))
    lines = shown(attempts, policies)
    assert 'scheduler_queue_incoming_pods_total{event="NodeAdd",queue="active"} 1.0' in lines
    failed = 'event="ScheduleAttemptFailure",queue="unschedulable"'
    assert f"scheduler_queue_incoming_pods_total{{{failed}}} 2.0" in lines
    counted = [line for line in lines if line.startswith("policysched_policy_rejections_total{")]
    assert counted == [f'policysched_policy_rejections_total{{policy="pin",profile="{queued("a", 1).profile}"}} 1.0']
    assert "scheduler_preemption_victims_sum 2.0" in lines
