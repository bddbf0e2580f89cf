"""PrioritySort and SchedulingGates."""

from __future__ import annotations

import pytest

from policysched.framework import Action, Change, Cluster, Resource, unresolvable
from policysched.model.objects import SchedulingGate
from policysched.plugins.queue_plugins import PrioritySort, SchedulingGates
from tests.build import node, pod
from tests.plugins.ask import hinted, node_change, pod_change


def test_priority_sort_puts_higher_priority_first_and_then_who_waits_longer() -> None:
    entries = [("late", 5, 2.0), ("early", 5, 1.0), ("none", None, 0.0), ("low", -1, 0.0), ("high", 9, 3.0)]
    keys = {name: PrioritySort().key(pod(priority=priority), at) for name, priority, at in entries}
    assert sorted(keys, key=keys.__getitem__) == ["high", "early", "late", "none", "low"]


def test_scheduling_gates_names_all_gates() -> None:
    gated = pod(scheduling_gates=[SchedulingGate(name="a"), SchedulingGate(name="b.c/d")])
    assert SchedulingGates().pre_enqueue(gated, Cluster()) == unresolvable("waiting for scheduling gates: [a b.c/d]")
    assert SchedulingGates().pre_enqueue(pod(), Cluster()) is None


@pytest.mark.parametrize(
    ("change", "helps"),
    [
        (pod_change(pod(), pod(), Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED, Resource.PENDING_POD), True),
        (pod_change(pod("q"), pod("q"), Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED, Resource.PENDING_POD), False),
        (pod_change(pod(), pod(), Action.UPDATE_POD_LABEL, Resource.PENDING_POD), False),
        (node_change(None, node()), False),
    ],
)
def test_scheduling_gates_waits_for_the_pods_own_gates_to_go(change: Change, helps: bool) -> None:
    assert hinted(SchedulingGates(), pod(), change) is helps
