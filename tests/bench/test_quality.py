"""Placements are judged by replaying them."""

from __future__ import annotations

import random

import pytest

from bench.cluster.observation import Observation
from bench.cluster.quality import judge
from bench.cluster.workloads import WORKLOADS, Workload

NAMES = {one.name: one for one in WORKLOADS}


def bound(workload: Workload, *, mixed: int = 1) -> Observation:
    """All pods bound in their order, or by so many mixed with each other."""
    names, rng = workload.measured_names(), random.Random(3)
    seen = Observation(frozenset(names))
    for start in range(0, len(names), mixed):
        for place, name in enumerate(rng.sample(names[start : start + mixed], len(names[start : start + mixed]))):
            seen.bound[name] = seen.sent[name] = float(start + place)
    return seen


def by_turns(workload: Workload, every: int = 1) -> dict[tuple[str, str], str]:
    nodes = workload.node_names
    return {name: nodes[turn * every % len(nodes)] for turn, name in enumerate(workload.measured_names())}


@pytest.mark.parametrize("mixed", [1, 30])
def test_spreading_over_zones_is_right_in_whatever_order_bindings_arrive(mixed: int) -> None:
    one = NAMES["topology-spreading"].sized(12, 60)
    found = judge(one, bound(one, mixed=mixed), by_turns(one))
    assert found["wrong"] == 0
    assert found["quality"] > 0.9


def test_all_in_one_zone_is_wrong() -> None:
    one = NAMES["topology-spreading"].sized(12, 60)
    assert judge(one, bound(one), by_turns(one, every=3))["wrong"] == 55


def test_two_on_a_node_are_wrong_where_they_repel_each_other() -> None:
    one = NAMES["pod-anti-affinity"].sized(20, 30)
    taken = one.before[0].count
    found = judge(one, bound(one), by_turns(one))
    assert found["wrong"] == 30 - (20 - taken)


def test_a_fuller_node_is_worth_less() -> None:
    one = NAMES["basic"].sized(10, 20)
    even, uneven = judge(one, bound(one), by_turns(one)), judge(one, bound(one), by_turns(one, every=10))
    assert even["quality"] == pytest.approx(1, abs=0.001)
    assert uneven["quality"] < even["quality"]
    assert (even["wrong"], uneven["wrong"]) == (0, 0)


def test_nothing_bound_is_not_judged() -> None:
    one = NAMES["basic"].sized(2, 2)
    assert judge(one, Observation(frozenset()), {}) == {}
