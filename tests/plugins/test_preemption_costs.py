"""What a preemption costs, counted in calls: nobody is asked about pods that cannot come back or cannot go."""

from __future__ import annotations

import random

import pytest

from policysched.app.configuration.profiles import default_profile
from policysched.plugins.default_preemption.plugin import DefaultPreemption
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.post_filter import FailedCycle
from tests.build import cluster, node, pod
from tests.plugins.preempting import OneByOne, outcome
from tests.work import calls


@pytest.mark.parametrize("kind", [FailedCycle, OneByOne])
def test_pods_beyond_what_a_node_may_have_cost_no_step_each(kind: type[FailedCycle]) -> None:
    def cost(count: int, room: int) -> int:
        low = [pod(f"low{number}", on="n1", requests={}) for number in range(count)]
        around = cluster(node("n1", allocatable={"cpu": 4, "pods": room}), *low)
        decision = Engine(around, default_profile(), random.Random(0)).decide(pod("wanted", priority=10))
        assert decision.row < 0
        victims = outcome(kind(decision, random.Random(0)))[2][0].victims
        assert len(victims) == count - room + 1
        return calls(lambda: outcome(kind(decision, random.Random(0))))

    assert cost(300, 20) < cost(300, 300) / 2


def test_attempt_with_nobody_of_lower_priority_does_not_look_at_each_node() -> None:
    def cost(nodes: int) -> int:
        names = [f"n{number}" for number in range(nodes)]
        placed = [pod(f"p{name}", on=name, requests={"cpu": 4}, priority=5) for name in names]
        around = cluster(*(node(name) for name in names), *placed)
        of = pod("wanted", requests={"cpu": 4}, priority=5)
        failed = FailedCycle(Engine(around, default_profile(), random.Random(0)).decide(of), random.Random(0))
        result = DefaultPreemption().post_filter(of, failed)
        assert result.status is not None
        assert f"{nodes} No preemption victims found for incoming pod" in result.status.message
        return calls(lambda: DefaultPreemption().post_filter(of, failed))

    assert cost(400) <= cost(100) + 10
