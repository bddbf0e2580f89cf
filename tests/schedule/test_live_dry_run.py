"""Dry runs in a live cluster: correct results and no side effects."""

from __future__ import annotations

import asyncio
import gc
import random
from typing import Any

import pytest
from msgspec.structs import replace

from policysched.errors import UsageError
from policysched.model.objects import Pod
from policysched.rules.policy_set.policy_set import PolicySet
from policysched.schedule.cycle.decision import drawn
from policysched.schedule.cycle.record import make_record
from tests.build import node, pod
from tests.schedule.life_pods import wanted
from tests.schedule.life_policies import policies
from tests.schedule.neighbours import neighbourly
from tests.schedule.side import Side
from tests.schedule.stand import BIG, ME, Stand, running
from tests.schedule.world import World

SEED = 20261123
NO_POLICIES = PolicySet()


def rng() -> random.Random:
    return random.Random(1)


async def asked(stand: Stand, of: Pod, using: PolicySet = NO_POLICIES) -> dict[str, Any]:
    of = replace(of, spec=replace(of.spec, scheduler_name=ME))
    return await stand.scheduler.dry_run(of, using, rng())


@pytest.mark.parametrize("seed", range(SEED, SEED + 3))
def test_record_of_an_engine_beside_equals_that_of_a_fresh_engine(seed: int) -> None:
    world = World(seed, 12)
    for _ in range(150):
        world.step()
    live = Side(world.cluster, ()).use(policies()[-1])
    for of in [*wanted(), *neighbourly(calm=False)]:
        beside = live.engine.beside(rng())
        beside.decide(of)
        for _ in range(world.random.choice((0, 1, 3))):
            world.step()
        fresh = Side(world.fresh(), ()).use(policies()[-1])
        found, expected = beside.decide(of), fresh.engine.decide(of)
        assert sorted_lists(make_record(drawn(found, rng()))) == sorted_lists(make_record(drawn(expected, rng())))


def sorted_lists(record: dict[str, Any]) -> dict[str, Any]:
    """Return the record with sorted reasons, as their order is undefined."""
    for status in record.get("rejected", {}).values():
        status["reasons"] = sorted(status["reasons"])
    return record


async def test_two_hundred_dry_runs_change_no_decision_and_nothing_that_is_kept() -> None:
    names = [f"n{number}" for number in range(8)]
    pods = [pod(f"p{number}", requests={"cpu": f"{100 + 50 * (number % 3)}m"}) for number in range(40)]
    bound, kept = [], []
    for disturbed in (False, True):
        async with running(*map(node, names)) as stand:
            for number, of in enumerate(pods):
                if disturbed:
                    requests: dict[str, str | int] = {"cpu": 3}
                    if number % 2:
                        requests = {"cpu": f"{number}m", f"example.com/r{number}": 1}
                    asking = [asked(stand, pod(f"d{number}-{one}", requests=requests, labels={f"k{one}": "v"}))
                              for one in range(5)]  # fmt: skip
                    records = await asyncio.gather(*asking)
                    assert len({one["pod"] for one in records}) == 5
                await stand.settled(of)
            bound.append(stand.bound)
            kept.append(state_of(stand))
    assert bound[0] == bound[1]
    assert len(bound[0]) == 40
    assert kept[0] == kept[1]


def state_of(stand: Stand) -> dict[str, Any]:
    """Return the state of a scheduler after a garbage collection."""
    gc.collect()
    scheduler = stand.scheduler
    cluster = scheduler.cluster
    cluster.strings.tidy()
    return {
        "journal": cluster.journal.position,
        "pods": sorted(one.pod.key for one in cluster.pods.by_id.values()),
        "nominations": len(cluster.nominations),
        "queue": scheduler.queue.counts(),
        "kept": scheduler.kept_bytes,
        "requested": cluster.nodes.requested("cpu")[: cluster.nodes.size].tolist(),
        "strings": cluster.strings.living,
        "rng": scheduler.attempts.rng.getstate(),
        "events": len(stand.client.events),
    }


async def test_preemption_is_told_and_nothing_is_done() -> None:
    async with running(node()) as stand:
        stand.scheduler.set_pod(pod("low", on="n1", requests={"cpu": 3}, priority=1))
        record = await asked(stand, replace(BIG, spec=replace(BIG.spec, priority=5)))
        await stand.settle()
        assert (record["result"], record["nominated"]) == ("Unschedulable", {"node": "n1", "victims": ["default/low"]})
        assert (len(stand.scheduler.cluster.nominations), stand.client.events) == (0, [])
        assert "default.low" in stand.scheduler.cluster.pods.by_id


async def test_pod_that_waits_under_the_same_name_does_not_stand_in_its_own_way() -> None:
    async with running(node()) as stand:
        waiting = replace(BIG, spec=replace(BIG.spec, priority=5))
        stand.scheduler.cluster.nominations.set(waiting, "n1")
        mine = replace(waiting, metadata=replace(waiting.metadata, uid=""))
        assert (await asked(stand, mine))["result"] == "Scheduled"
        other = replace(mine, metadata=replace(mine.metadata, name="other"))
        assert (await asked(stand, other))["result"] == "Unschedulable"
        assert len(stand.scheduler.cluster.nominations) == 1


async def test_pod_that_is_on_a_node_is_refused_by_its_name() -> None:
    async with running(node()) as stand:
        stand.scheduler.set_pod(pod("there", on="n1"))
        with pytest.raises(UsageError, match='pod "default/there" is already on node "n1"'):
            await asked(stand, replace(pod("there"), metadata=replace(pod("there").metadata, uid="")))
