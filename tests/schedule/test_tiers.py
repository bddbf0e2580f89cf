"""Tiers: scores of a higher tier decide before any sum of lower tiers, whatever else changes."""

from __future__ import annotations

import random
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from policysched.app.configuration.profiles import default_profile
from policysched.framework import Cluster
from policysched.rules.policy_set.policy_set import PolicySet
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.evaluation import Evaluation
from policysched.schedule.cycle.record import make_record
from tests.build import cluster, node, pod
from tests.rules.build import Spec, compiled, policy_set
from tests.schedule.out_of_tree import SOFT, Scripted, profile_with
from tests.schedule.parts import FakeFilter, FakeScore, engine, profile
from tests.schedule.stand import running
from tests.schedule.test_decision_work import work
from tests.schedule.test_with_extenders import FakeExtender, extended

NODES = ("a", "b", "c", "d")


class Tiered(FakeScore):
    """A score plugin in a tier."""

    def __init__(self, name: str, scores: dict[str, int], tier: int, **more: Any) -> None:
        super().__init__(name, scores, **more)
        self.tier = tier


def around() -> Cluster:
    return cluster(*map(node, NODES))


def likes(label: str, tier: int, **more: Any) -> Spec:
    return {"tier": tier, "scores": [{"name": "s", "value": f'number(node.labels["{label}"]) ?? 0', **more}]}


@pytest.mark.parametrize("normalizes", [False, True])
def test_a_higher_tier_decides_whatever_lower_ones_say(normalizes: bool) -> None:
    heavy = FakeScore("heavy", {"a": 100})
    least = Tiered("least", {"b": 99, "c": 100, "d": 100}, 1, normalizes=normalizes)
    decision = engine(around(), (), [(heavy, 100), (least, 1)]).decide(pod())
    assert make_record(decision)["best"] == ["c", "d"]


def test_ties_of_a_tier_go_down_tier_by_tier() -> None:
    scores = [
        (Tiered("top", {"a": 10, "b": 10, "c": 10}, 7), 1),
        (Tiered("middle", {"b": 5, "c": 5, "d": 100}, 3), 2),
        (FakeScore("low", {"a": 100, "c": 1, "d": 100}), 1),
    ]
    record = make_record(engine(around(), (), scores).decide(pod()))
    assert (record["selected"], record["best"]) == ("c", ["c"])
    assert record["total"] == {"a": 100, "b": 0, "c": 1, "d": 100}
    assert record["tiers"]["c"] == {"7": 10, "3": 10}
    assert list(record["tiers"]["d"]) == ["7", "3"]


def test_weights_add_up_within_a_tier() -> None:
    scores = [(Tiered("one", {"a": 50}, 2), 3), (Tiered("two", {"b": 100}, 2), 1), (Tiered("less", {"b": 9}, 1), 9)]
    record = make_record(engine(around(), (), scores).decide(pod()))
    assert (record["best"], record["tiers"]["a"], record["tiers"]["b"]) == (
        ["a"], {"2": 150, "1": 0}, {"2": 100, "1": 81},
    )  # fmt: skip


def test_a_tier_without_a_say_leaves_records_as_they_are() -> None:
    apart = policy_set(mine=likes("x", 4) | {"appliesTo": 'pod.labels["app"] == "web"'})
    made = Engine(around(), apart.join(profile()), random.Random(0))
    assert "tiers" not in make_record(made.decide(pod()))
    assert make_record(made.decide(pod(labels={"app": "web"})))["tiers"] == {name: {"4": 0} for name in NODES}


def test_nodes_that_are_not_feasible_have_no_say_in_any_tier() -> None:
    scores = [(Tiered("top", {"a": 100, "b": 40, "c": 40}, 1), 1), (FakeScore("low", {"c": 1}), 1)]
    assert engine(around(), [FakeFilter("F", {"a"})], scores).decide(pod()).node == "c"


def test_out_of_tree_plugins_filter_and_score_below_tiers() -> None:
    mine = profile_with(Scripted(filter={"d": SOFT}, score={"a": 90, "b": 10, "c": 0}))
    preferring = policy_set(mine=likes("v", 2)).join(mine)
    nodes = (node(name, labels={"v": value}) for name, value in zip(NODES, ("1", "5", "5", "9"), strict=True))
    decision = Engine(cluster(*nodes), preferring, random.Random(0)).decide(pod())
    assert make_record(decision)["best"] == ["b"]


async def test_extenders_score_in_tier_0() -> None:
    of = profile(scores=[(Tiered("top", {"n1": 50, "n2": 50}, 1), 1)])
    one = FakeExtender(scores={"n1": 2**40, "n2": 2**41, "n3": 2**62})
    async with running(*(node(name) for name in ("n1", "n2", "n3")), of=extended(one, of=of)) as stand:
        await stand.settled(pod("a"))
        assert stand.bound == {"a": "n2"}


def test_lower_tiers_are_not_looked_at_where_one_node_is_left() -> None:
    made = engine(around(), (), [(Tiered("top", {"b": 1}, 1), 1), (FakeScore("low", {"a": 1}, normalizes=True), 1)])
    with patch.object(Evaluation, "ranking", autospec=True, side_effect=Evaluation.ranking) as asked:
        assert made.decide(pod()).node == "b"
    assert [call.args[1] for call in asked.call_args_list] == [1]


def test_an_edited_tier_decides_at_once_and_keeps_what_is_known() -> None:
    nodes = [node("a", labels={"x": "100"}), node("b", labels={"y": "1"})]
    made = [compiled("one", **likes("x", 0)), compiled("two", **likes("y", 0))]
    active = PolicySet.of(made)
    one = Engine(cluster(*nodes), active.join(default_profile()), random.Random(0))
    found = [one.decide(pod()).node]
    for generation, tier in enumerate((1, 0, 2), 2):
        made[1] = compiled("two", generation=generation, **likes("y", tier))
        active = PolicySet.of(made, active)
        one.use(active.join(default_profile()))
        found.append(one.decide(pod()).node)
    assert found == ["a", "b", "a", "b"]


@pytest.mark.parametrize("normalize", [{}, {"normalize": "Max"}])
def test_sums_of_tiers_follow_every_change(normalize: Spec) -> None:
    chance = random.Random(5)
    policies = policy_set(
        high=likes("x", 2), same=likes("y", 2) | {"weight": 3}, low=likes("y", 1, **normalize), none=likes("x", 0)
    )
    nodes = cluster()
    joined = policies.join(default_profile())
    kept = Engine(nodes, joined, random.Random(0))
    for _ in range(60):
        labels = {name: str(chance.randrange(3)) for name in "xy"}
        nodes.set_node(node(f"n{chance.randrange(8)}", labels=labels, unschedulable=chance.random() < 0.2))
        records = [make_record(one.decide(pod())) for one in (kept, Engine(nodes, joined, random.Random(0)))]
        for record in records:
            record.pop("selected", None)
        assert records[0] == records[1]


def test_tiers_add_a_few_calls_to_a_decision() -> None:
    def policies(*tiers: int) -> dict[str, Spec]:
        return {f"p{number}": likes(f"v{number}", tier) for number, tier in enumerate(tiers)}

    flat, one, three = (work(policies(*tiers)) for tiers in ((0,) * 6, (4,) * 6, (0, 1, 1, 2, 2, 3)))
    assert one <= flat + 12
    assert three <= 1.3 * flat


def test_sums_of_a_tier_are_as_narrow_as_those_of_tier_0() -> None:
    made = Engine(around(), policy_set(high=likes("x", 9)).join(default_profile()), random.Random(0))
    evaluation = made.find(pod())
    assert evaluation.ranking(9).dtype == evaluation.ranking().dtype == np.int32


def test_sums_of_tiers_follow_edits_of_weights_and_tiers() -> None:
    chance = random.Random(3)
    nodes = [node(f"n{number}", labels={name: str(chance.randrange(3)) for name in "wxyz"}) for number in range(6)]
    edited = dict.fromkeys("wxyz", (0, 1))
    made = {name: compiled(name, **likes(name, 0)) for name in edited}
    active = PolicySet.of(made.values())
    kept = Engine(cluster(*nodes), active.join(default_profile()), random.Random(0))
    for generation in range(2, 60):
        name = chance.choice("wxyz")
        tier, weight = edited[name]
        edited[name] = (tier, chance.randrange(4)) if chance.random() < 0.7 else (chance.randrange(3), weight)
        tier, weight = edited[name]
        made[name] = compiled(name, generation=generation, **likes(name, tier), weight=weight)
        active = PolicySet.of(made.values(), active)
        kept.use(active.join(default_profile()))
        fresh = Engine(cluster(*nodes), PolicySet.of(made.values()).join(default_profile()), random.Random(0))
        records = [make_record(one.decide(pod())) for one in (kept, fresh)]
        for record in records:
            record.pop("selected", None)
        assert records[0] == records[1], edited
