"""Names, labels and texts of metrics that differ between releases of Kubernetes."""

from __future__ import annotations

import random

import pytest
from prometheus_client import CollectorRegistry

from policysched.app.configuration.profiles import default_profile
from policysched.app.running.metrics.claim_metrics import ClaimMetrics
from policysched.app.running.metrics.help_texts import TEXTS
from policysched.app.running.metrics.process_metrics import ProcessMetrics
from policysched.app.running.metrics.scheduler_metrics import SchedulerMetrics
from policysched.app.running.metrics.series import event_name
from policysched.app.running.metrics.state_metrics import StateMetrics
from policysched.app.running.metrics.timing_metrics import TimingMetrics
from policysched.model.release import RELEASES, Release
from policysched.rules.policy_set.store import PolicyStore
from policysched.schedule.scheduler import Scheduler
from policysched.state.cluster import Cluster
from tests.app.test_scheduler_metrics import shown
from tests.app.test_timing_metrics import Ticking
from tests.build import node, pod
from tests.schedule.parts import FakeClient
from tests.schedule.stand import ME


async def scraped(release: Release) -> list[str]:
    """Return the metrics of a scheduler that placed a pod, rejected another, and then saw its labels change."""
    clock = Ticking()
    timing, metrics, claims = TimingMetrics(clock, release), SchedulerMetrics(clock, release), ClaimMetrics(release)
    claims.on_claim_request(created=True)
    profiles = {ME: default_profile(ME, release=release)}
    cluster = Cluster(release=release)
    scheduler = Scheduler(profiles, FakeClient(), clock, random.Random(0), [metrics], timing, cluster)
    scheduler.take(node("n1"))
    scheduler.take(pod("small", requests={"cpu": 0.1}))
    scheduler.take(pod("huge", requests={"cpu": 10000}))
    while (queued := scheduler.queue.pop()) is not None:
        await scheduler.attempts.make(queued)
    scheduler.take(pod("huge", requests={"cpu": 5000}))
    timing.preempted("pod", 0.1, succeeded=True)
    lines = shown(timing, metrics, claims, StateMetrics(scheduler))
    await scheduler.attempts.finish(1)
    return lines


def begins(lines: list[str], *beginnings: str) -> list[bool]:
    return [any(line.startswith(one) for line in lines) for one in beginnings]


@pytest.mark.parametrize(
    ("minor", "added", "own"),
    [("1.36", "UnschedulablePod", "UnschedulablePod"), ("1.37", "UnscheduledPod", "TargetPod")],
)
async def test_events_of_pending_pods_have_the_names_of_the_release(minor: str, added: str, own: str) -> None:
    lines = await scraped(RELEASES[minor])
    assert f'scheduler_queue_incoming_pods_total{{event="{added}Add",queue="active"}} 2.0' in lines
    handled = "scheduler_event_handling_duration_seconds_count"
    assert f'{handled}{{event="{added}Add"}} 2.0' in lines
    assert f'{handled}{{event="{added}Update"}} 1.0' in lines
    hint = f'{{event="{own}UpdatePodScaleDown",hint="Queue",plugin="NodeResourcesFit"}}'
    assert f"scheduler_queueing_hint_execution_duration_seconds_count{hint} 1.0" in lines


def test_names_of_other_events_stay() -> None:
    assert event_name("NodeAdd", "UnscheduledPod", "TargetPod") == "NodeAdd"
    assert event_name("UnschedulableTimeout", "UnscheduledPod", "TargetPod") == "UnschedulableTimeout"
    assert event_name("UnschedulablePodUpdate", "UnscheduledPod", "TargetPod") == "TargetPodUpdate"


@pytest.mark.parametrize(("minor", "label"), [("1.36", ""), ("1.37", "type"), ("1.38", "entity")])
async def test_entities_are_counted_by_the_label_of_the_release(minor: str, label: str) -> None:
    lines = await scraped(RELEASES[minor])
    assert begins(lines, "scheduler_queued_entities", "scheduler_queue_incoming_entities_total") == [bool(label)] * 2
    assert begins(lines, 'scheduler_pending_pods{queue="incomplete"} 0.0') == [bool(label)]
    assert begins(lines, 'scheduler_pending_pods{queue="pending"} 0.0') == [bool(label)]
    if not label:
        return
    incoming = {"event": "UnscheduledPodAdd", "queue": "active", label: "pod"}
    labels = ",".join(f'{name}="{value}"' for name, value in sorted(incoming.items()))
    assert f"scheduler_queue_incoming_entities_total{{{labels}}} 2.0" in lines
    queued = ",".join(f'{name}="{value}"' for name, value in sorted({"queue": "backoff", label: "pod"}.items()))
    assert f"scheduler_queued_entities{{{queued}}} 1.0" in lines


async def test_durations_of_preemptions_and_created_claims_change_with_1_37() -> None:
    old, new = await scraped(RELEASES["1.36"]), await scraped(RELEASES["1.37"])
    gone = ("scheduler_preemption_goroutines_duration_seconds", "scheduler_resourceclaim_creates_total")
    kept = "scheduler_preemption_goroutines_execution_total"
    assert begins(old, *gone, kept) == [True, True, True]
    assert begins(new, *gone, kept) == [False, False, True]
    labels = 'admin_access="false",owner_api_group="",owner_api_kind="Pod",status="success"'
    assert f"dynamic_resource_allocation_resourceclaim_creates_total{{{labels}}} 1.0" in new


def test_levels_and_texts_are_those_of_the_release() -> None:
    for minor, level, waiting, victims in (
        ("1.36", "ALPHA", "unschedulablePods", "victims"),
        ("1.37", "BETA", "unschedulableEntities", "victims for preemption initiated by a single pod"),
    ):
        release, clock = RELEASES[minor], Ticking()
        state = StateMetrics(
            Scheduler(
                {ME: default_profile(ME)}, FakeClient(), clock, random.Random(0), cluster=Cluster(release=release)
            )
        )
        collectors = (TimingMetrics(clock, release), SchedulerMetrics(clock, release), state)
        texts = {family.name: family.documentation for one in collectors for family in one.collect()}
        assert texts["scheduler_plugin_execution_duration_seconds"].startswith(f"[{level}] Duration for running")
        assert texts["scheduler_scheduling_algorithm_duration_seconds"].startswith(f"[{level}] ")
        assert waiting in texts["scheduler_pending_pods"]
        assert waiting in texts["scheduler_pod_scheduled_after_flush"]
        assert texts["scheduler_preemption_victims"].endswith(victims)


@pytest.mark.parametrize("minor", RELEASES)
def test_help_mentions_profiles_where_a_release_does(minor: str) -> None:
    release, clock, registry = RELEASES[minor], Ticking(), CollectorRegistry()
    scheduler = Scheduler(
        {ME: default_profile(ME)}, FakeClient(), clock, random.Random(0), cluster=Cluster(release=release)
    )
    ProcessMetrics(clock, registry, release).show(scheduler, PolicyStore(), dict)
    texts = {family.name: family.documentation for family in registry.collect()}
    shown = {name for name, text in TEXTS.items() if texts.get(name) == text}
    assert shown == (set(TEXTS) if minor == "1.38" else set())
    mentioning = {name for name, text in texts.items() if "scheduler profile" in text or "compositepodgroup" in text}
    assert mentioning == shown
