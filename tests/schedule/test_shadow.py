"""Policies in mode Shadow are evaluated and reported, but affect neither placement nor retries."""

from __future__ import annotations

import dataclasses

import pytest
from msgspec.structs import replace

from policysched.rules.compile.policy import CompiledPolicy
from tests.build import node, pod
from tests.rules.build import filtering, policy_set, scoring
from tests.schedule.life_pods import wanted
from tests.schedule.life_policies import policies
from tests.schedule.side import Side
from tests.schedule.stand import running
from tests.schedule.world import World


def shadow(policy: CompiledPolicy) -> CompiledPolicy:
    return dataclasses.replace(policy, spec=replace(policy.spec, mode="Shadow"))


@pytest.mark.parametrize("seed", range(2))
def test_shadows_say_what_they_would_do_and_change_nothing(seed: int) -> None:
    world = World(seed, 15)
    every = policies()[-1]
    none, enforced = Side(world.cluster, ()), Side(world.cluster, ()).use(every)
    shadows = Side(world.cluster, ()).use([shadow(one) for one in every])
    told = 0
    for number in range(80):
        world.step()
        if number % 10:
            continue
        for one in wanted():
            plain, beside, decided = none.record(one), shadows.record(one), enforced.record(one)
            rules, would = beside.pop("rules", {}), decided.get("rules", {})
            assert beside == plain
            assert {name: said.get("filters") for name, said in rules.items()} == {
                name: said.get("filters") for name, said in would.items()
            }
            assert all(said["mode"] == "Shadow" for said in rules.values())
            assert all(set(said.get("scores", ())) <= {rule.name for policy in every for rule in policy.scores}
                       for said in rules.values())  # fmt: skip
            told += len(rules)
    assert told > 50


def test_a_shadow_tells_the_scores_it_would_give() -> None:
    world = World(0, 5)
    for number in range(3):
        world.cluster.set_node(node(f"m{number}", labels={"k": str(number * 30)}))
    spec = {"mode": "Shadow", "scores": scoring('number(node.labels["k"])', weight=2), "weight": 7}
    side = Side(world.cluster, ()).use([one.policy for one in policy_set(p=spec).active])
    record = side.record(pod())
    assert record["rules"]["p"] == {
        "activeGeneration": 1,
        "mode": "Shadow",
        "scores": {"s": {"m0": 0, "m1": 30, "m2": 60}},
    }
    assert not any("SchedulingPolicy" in name for scores in record["scores"].values() for name in scores)


async def test_a_shadow_neither_turns_a_pod_away_nor_wakes_one() -> None:
    async with running(node("n1")) as stand:
        shadows = policy_set(p={"mode": "Shadow", "filters": filtering("node.cordoned"), "scores": scoring(1)})
        stand.scheduler.use_policies(shadows, frozenset())
        await stand.settled(pod("small"), pod("big", requests={"cpu": 9}))
        assert stand.bound == {"small": "n1"}
        assert [note for note in stand.notes if "policy" in note] == []
        assert stand.scheduler.use_policies(policy_set(), frozenset({"SchedulingPolicy/p"})) == 0
        assert stand.attempts("big") == 1
