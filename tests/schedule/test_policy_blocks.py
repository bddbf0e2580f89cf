"""Policies of a profile are evaluated as one block: nodes are ranked by the weighted sum of the scores of all."""

from __future__ import annotations

import random
from typing import Any

import pytest

from policysched.app.configuration.profiles import default_profile
from policysched.framework import Cluster
from policysched.rules.policy_set.policy_set import PolicySet
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.record import make_record
from tests.build import cluster, node, pod
from tests.rules.build import Spec, compiled

NODES = 12
STEPS = 40


def spec(number: int) -> Spec:
    """Return a policy with its own weight, whose rules read labels of the node and of its zone."""
    value = f'number(node.labels["v{number}"]) ?? {number}'
    in_zone = f'sum(number(node.labels["v{number}"]) ?? 0) by node.zone'
    return {
        "weight": 2 * number + 2,
        "filters": [{"name": "f", "require": f'node.labels["bad"] != "{number}" and {in_zone} < 300'}],
        "scores": [{"name": "own", "value": value}, {"name": "zone", "value": f"{in_zone} / 5", "weight": 3}],
    }


def changed_node(index: int, chance: random.Random) -> Any:
    labels = {f"v{number}": str(chance.randrange(90)) for number in range(4) if chance.random() < 0.7}
    labels |= {"bad": str(chance.randrange(12)), "topology.kubernetes.io/zone": chance.choice("ab")}
    return node(f"n{index}", labels=labels)


def policies(count: int) -> PolicySet:
    return PolicySet.of(compiled(f"p{number}", **spec(number)) for number in range(count))


def assert_sums_are_those_of_scores(engine: Engine, around: Cluster) -> None:
    """Assert that the ranking differs from the sums of all scores by a constant on feasible nodes."""
    evaluation = engine.find(pod())
    feasible = evaluation.feasible()
    if feasible.any():
        sums = sum(one.final(feasible) for one in evaluation.score_parts())
        assert len(set((evaluation.ranking() - sums)[feasible].tolist())) == 1
    fresh = Engine(around, engine.profile, random.Random(0))
    records = [make_record(one.decide(pod())) for one in (engine, fresh)]
    for record in records:
        record.pop("selected", None)
    assert records[0] == records[1]


@pytest.mark.parametrize("count", [1, 2, 4])
def test_nodes_are_ranked_by_the_weighted_scores_of_all_policies_whatever_changes(count: int) -> None:
    chance = random.Random(count)
    around = cluster(*(changed_node(index, chance) for index in range(NODES)))
    engine = Engine(around, policies(count).join(default_profile()), random.Random(0))
    for _ in range(STEPS):
        around.set_node(changed_node(chance.randrange(NODES), chance))
        assert_sums_are_those_of_scores(engine, around)


def test_an_edited_weight_counts_at_once() -> None:
    chance, around = random.Random(7), cluster(*(node(f"n{index}") for index in range(NODES)))
    made = [compiled(f"p{number}", **spec(number)) for number in range(3)]
    active = PolicySet.of(made)
    engine = Engine(around, active.join(default_profile()), random.Random(0))
    for weight in (9, 0, 4):
        around.set_node(changed_node(chance.randrange(NODES), chance))
        assert_sums_are_those_of_scores(engine, around)
        made[1] = compiled("p1", generation=weight + 2, **spec(1) | {"weight": weight})
        active = PolicySet.of(made, active)
        engine.use(active.join(default_profile()))
        assert_sums_are_those_of_scores(engine, around)
