"""Metrics of a queue with pod groups: pods, entities, and pods that wait for their group."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from policysched.app.running.metrics.scheduler_metrics import SchedulerMetrics
from policysched.app.running.metrics.state_metrics import StateMetrics
from tests.app.test_scheduler_metrics import shown
from tests.build import pod
from tests.groups import GATED_38, group, member
from tests.schedule.test_group_queue import REJECTED, Queued


def test_pods_and_groups_are_counted_by_queue() -> None:
    made, metrics = Queued(), SchedulerMetrics(Queued().clock, GATED_38)
    made.queue.report_to(metrics.on_queued)
    made.add(member("i", "later"), group("g", 2), pod("p"), member("a"), member("b"))
    assert made.queue.pop() is not None
    made.end(made.pop("a", "b"), REJECTED)
    made.add(group("h", 3), member("c", "h"), group("k"), member("d", "k"), member("e", "k"))
    made.pop("d", "e")
    made.add(member("f", "k"), pod("q"))
    scheduler: Any = SimpleNamespace(cluster=made.cluster, queue=made.queue, binding_count=0)
    lines = shown(StateMetrics(scheduler), metrics)
    pods = {"active": 1, "backoff": 2, "gated": 1, "unschedulable": 0, "incomplete": 1, "pending": 1}
    for queue, count in pods.items():
        assert f'scheduler_pending_pods{{queue="{queue}"}} {count}.0' in lines
    for queue, entity, count in (
        ("active", "pod", 1),
        ("active", "podgroup", 0),
        ("backoff", "pod", 0),
        ("backoff", "podgroup", 1),
        ("gated", "podgroup", 1),
    ):
        assert f'scheduler_queued_entities{{entity="{entity}",queue="{queue}"}} {count}.0' in lines
    added = "UnscheduledPodAdd"
    assert f'scheduler_queue_incoming_pods_total{{event="{added}",queue="active"}} 6.0' in lines
    incoming = "scheduler_queue_incoming_entities_total"
    assert f'{incoming}{{entity="pod",event="{added}",queue="active"}} 2.0' in lines
    assert f'{incoming}{{entity="podgroup",event="{added}",queue="active"}} 2.0' in lines
    assert f'{incoming}{{entity="podgroup",event="ScheduleAttemptFailure",queue="backoff"}} 1.0' in lines
