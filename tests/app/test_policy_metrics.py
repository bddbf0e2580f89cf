"""Metrics of policies: what they decide, and in which state they are."""

from __future__ import annotations

import random
from typing import Any

import pytest

from policysched.app.configuration.profiles import default_profile
from policysched.app.running.metrics.policy_metrics import EXAMINE, PolicyMetrics
from policysched.app.running.metrics.scheduler_metrics import SchedulerMetrics
from policysched.app.running.metrics.timing_metrics import TimingMetrics
from policysched.model.policy import decode_policy
from policysched.rules.policy_set.store import PolicyStore
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.queue.queued_pod import QueuedPod
from policysched.state.cluster import Cluster
from tests.app.test_scheduler_metrics import shown
from tests.build import node, pod
from tests.schedule.queue_parts import StandingClock
from tests.schedule.stand import ME

NAMES = ("n1", "n2", "n3")


def policy(name: str, generation: int = 1, **spec: Any) -> dict[str, Any]:
    spec.setdefault("schedulerNames", [ME])
    return {"metadata": {"name": name, "uid": name, "generation": generation}, "spec": spec}


def only(name: str, *nodes: str) -> dict[str, Any]:
    """A policy that keeps some nodes."""
    wanted = ", ".join(f'"{one}"' for one in nodes)
    return policy(name, filters=[{"name": "f", "require": f"node.name in [{wanted}]"}])


def prefers(name: str, best: str, weight: int, tier: int = 0) -> dict[str, Any]:
    value = f'if(node.name == "{best}", 100, 0)'
    return policy(name, weight=weight, tier=tier, scores=[{"name": "s", "value": value}])


class Deciding:
    """An engine with policies, and what is counted of it."""

    def __init__(self, *policies: dict[str, Any]) -> None:
        self.store = PolicyStore()
        for one in policies:
            self.apply(one)
        self.attempts, self.timing = SchedulerMetrics(StandingClock()), TimingMetrics(StandingClock())
        self.metrics = PolicyMetrics(self.attempts.evaluations, self.timing.policy_seconds)
        self.metrics.store = self.store
        cluster = Cluster()
        for name in NAMES:
            cluster.set_node(node(name))
        profile = self.store.policy_set().join(default_profile(ME))
        self.engine = Engine(cluster, profile, random.Random(0), self.timing)

    def apply(self, of: dict[str, Any]) -> None:
        self.store.apply(decode_policy(of))

    def decide(self, times: int = 1, **of: Any) -> None:
        for number in range(times):
            made = pod(f"p{number}", **of)
            queued = QueuedPod(made, made.key, 1000.0)
            decision = self.engine.decide(made)
            for one in (self.attempts, self.metrics):
                one.on_decision(queued, decision)

    def said(self, name: str) -> dict[str, float]:
        """The values of a metric, by its labels without the profile."""
        lines = [line for line in shown(self.metrics) if line.startswith(f"{name}{{")]
        split = (line.removeprefix(name).rsplit(" ", 1) for line in lines)
        return {labels.replace(f',profile="{ME}"', ""): float(value) for labels, value in split}


def test_decisions_are_those_in_which_a_policy_has_a_say() -> None:
    score = prefers("score", "n1", 1)
    elsewhere = policy("elsewhere", schedulerNames=["other"], filters=[{"name": "f", "require": "false"}])
    stand = Deciding(only("filter", "n1", "n2"), score, elsewhere)
    stand.decide(3)
    assert stand.said("policysched_policy_decisions_total") == {'{policy="filter"}': 3, '{policy="score"}': 3}


@pytest.mark.parametrize(
    ("policies", "decisive"),
    [
        ((only("a", "n9"),), {"a"}),
        ((only("a", "n1"), only("b", "n2")), {"a", "b"}),  # without a n2 is left, without b n1
        ((only("a", "n9"), only("b", "n9")), set()),
    ],
)
def test_a_filter_decides_where_it_alone_keeps_the_last_node_out(policies: Any, decisive: set[str]) -> None:
    stand = Deciding(*policies)
    stand.decide()
    found = stand.said("policysched_policy_decisive_total")
    assert found == {f'{{by="filter",policy="{name}"}}': 1 for name in decisive}


def test_a_filter_does_not_decide_for_a_pod_that_fits_nowhere() -> None:
    stand = Deciding(only("a", "n1"))
    stand.decide(requests={"cpu": 100})
    assert stand.said("policysched_policy_decisive_total") == {}


def test_a_score_decides_where_another_node_has_more_of_the_others() -> None:
    stand = Deciding(prefers("strong", "n1", 5), prefers("against", "n2", 1))
    stand.decide(4 * EXAMINE)
    assert stand.said("policysched_policy_examined_choices_total") == {
        '{policy="strong"}': 2,
        '{policy="against"}': 2,
    }
    assert stand.said("policysched_policy_decisive_total") == {'{by="score",policy="strong"}': 2}


@pytest.mark.parametrize(
    ("policies", "decisive"),
    [
        ((prefers("high", "n1", 1, tier=1), prefers("low", "n2", 9)), {"high"}),
        ((prefers("high", "n1", 1, tier=1), prefers("low", "n1", 9)), set()),
        ((prefers("higher", "n1", 1, tier=2), prefers("high", "n1", 1, tier=1), prefers("low", "n2", 9)), set()),
        ((prefers("tie", "n9", 1, tier=1), prefers("low", "n2", 9), prefers("less", "n1", 1)), {"low"}),
        ((prefers("one", "n1", 3, tier=1), prefers("two", "n2", 1, tier=1)), {"one"}),
    ],
)
def test_a_score_of_a_tier_decides_where_it_alone_is_in_the_way_of_another_node(policies: Any, decisive: Any) -> None:
    stand = Deciding(*policies)
    stand.decide(2 * EXAMINE)
    found = stand.said("policysched_policy_decisive_total")
    assert set(found) == {f'{{by="score",policy="{name}"}}' for name in decisive}


def test_states_are_those_of_what_is_in_force_and_of_the_newest() -> None:
    shadow = only("shadow", "n1")
    shadow["spec"]["mode"] = "Shadow"
    stand = Deciding(
        only("good", "n1"),
        only("edited", "n1"),
        shadow,
        policy("broken", filters=[{"name": "f", "require": "nonsense("}]),
    )
    broken = only("edited", "n1")
    broken["metadata"]["generation"] = 2
    broken["spec"]["filters"][0]["require"] = "node.Name"
    stand.apply(broken)
    true = {labels for labels, value in stand.said("policysched_policy_state").items() if value}
    assert true == {
        '{policy="good",state="Active"}',
        '{policy="edited",state="Active"}',
        '{policy="edited",state="Rejected"}',
        '{policy="shadow",state="Shadow"}',
        '{policy="broken",state="Rejected"}',
    }
    assert stand.said("policysched_policy_generation")['{policy="edited"}'] == 2
    assert stand.said("policysched_policy_active_generation")['{policy="edited"}'] == 1
    assert stand.said("policysched_policy_errors")['{policy="edited"}'] == 1


def test_series_of_a_deleted_policy_go() -> None:
    stand = Deciding(only("gone", "n9"), only("kept", "n1"))
    stand.decide()
    stand.store.remove(decode_policy(only("gone", "n9")).key)
    for one in (stand.attempts, stand.timing, stand.metrics):
        one.keep_policies(frozenset(stand.store.listed()))
    lines = shown(stand.attempts, stand.timing, stand.metrics)
    assert [line for line in lines if "gone" in line] == []
    assert [line for line in lines if 'policy="kept"' in line] != []
