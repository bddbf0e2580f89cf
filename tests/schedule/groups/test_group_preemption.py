"""Pod groups that preempt other pods: victims, texts, writes, and a cluster that a simulation leaves as it was."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

import pytest
from msgspec import structs

from policysched.app.configuration.profiles import default_profile
from policysched.framework import Client, Cluster, Code, Event, Handle
from policysched.framework.cycle_state import CycleState
from policysched.framework.pod_groups import PodGroupPostFilterResult
from policysched.framework.profile import Profile
from policysched.model.objects import (
    Affinity,
    AllDisruptionMode,
    DisruptionMode,
    Node,
    Pod,
    PodGroup,
    PodSchedulingGroup,
    PodStatus,
)
from policysched.model.release import Release
from policysched.plugins.default_preemption import for_groups
from policysched.plugins.default_preemption.for_groups import Victim, VictimRanks
from policysched.plugins.default_preemption.plugin import DefaultPreemption
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.groups.cycle import Steps
from policysched.schedule.groups.simulation import RejectedPodGroup
from policysched.schedule.queue.queued_pod import QueuedPod
from policysched.state.placed.pods import pod_id
from tests.build import node, pod
from tests.groups import GATED, GATED_38, group, member
from tests.plugins.inter_pod_affinity.build import away, label, near, term
from tests.plugins.preempting import budget, going, low, world
from tests.rules.build import policy_set
from tests.schedule.groups.parts import RELEASES, conditions, is_clean, members, messages, submit
from tests.schedule.parts import FakeClient
from tests.schedule.queue_parts import StandingClock
from tests.schedule.stand import ME, Stand, running
from tests.schedule.test_with_extenders import FakeExtender

WHOLE = DisruptionMode(all=AllDisruptionMode())
gated = partial(world, release=GATED_38)
PREEMPTION = "pod group preemption: "
HIGH: Any = {"priority": 10}


def placed(name: str, on: str, priority: int = 0, **more: Any) -> Pod:
    return low(name, on, priority, cpu=more.pop("cpu", 4), **more)


def strong(count: int, **fields: Any) -> list[Pod]:
    """Members of high priority that need a node each."""
    return members(count, requests={"cpu": 4}, **(HIGH | fields))


def deleted(stand: Stand) -> list[str]:
    return sorted(one.removeprefix("default/") for one in stand.client.deleted)


@pytest.mark.parametrize("release", RELEASES)
async def test_group_evicts_pods_and_takes_their_places(release: Release) -> None:
    async with running(node("n1"), node("n2"), release=release) as stand:
        victims = [placed("a", "n1"), placed("b", "n2")]
        for one in victims:
            stand.scheduler.set_pod(one)
        await submit(stand, group(least=2, **HIGH), *strong(2))
        assert deleted(stand) == ["a", "b"]
        assert sorted(key for key, _ in stand.client.nominated) == ["default/p0", "default/p1"]
        assert sorted(name for _, name in stand.client.nominated) == ["n1", "n2"]
        assert conditions(stand)[0][2].endswith(f"{PREEMPTION}found a placement for podgroup, preempting 2 victims")
        told = messages(stand)["a"]
        assert told == f"{ME}: preempting to accommodate a higher priority podgroup"
        events = [one for one in stand.client.events if isinstance(one, Event) and one.reason == "Preempted"]
        assert {one.note for one in events} == {"Preempted by podgroup uid-g on node cluster"}
        assert {type(one.related) for one in events} == {PodGroup}
        assert is_clean(stand.scheduler.cluster)
        for one in victims:
            stand.scheduler.drop(one)
        await stand.pass_time(2)
        assert sorted(stand.bound) == ["p0", "p1"]
        assert conditions(stand)[-1] == ("True", "Scheduled", "")


async def test_group_evicts_no_more_than_it_needs_and_spares_what_a_budget_protects() -> None:
    async with running(node("n1"), node("n2"), node("n3"), release=GATED_38) as stand:
        protected = placed("a", "n1", labels={"app": "x"})
        for one in (protected, placed("b", "n2"), placed("c", "n3", 5)):
            stand.scheduler.set_pod(one)
        stand.scheduler.take(budget("x", label("app", "x")))
        await submit(stand, group(least=1, **HIGH), *strong(1))
        assert deleted(stand) == ["b"]


async def test_group_that_is_evicted_as_a_whole_is_one_victim() -> None:
    async with running(node("n1"), node("n2"), node("n3"), release=GATED_38) as stand:
        stand.scheduler.take(group("old", 1, disruption_mode=WHOLE))
        for name in ("n1", "n2", "n3"):
            stand.scheduler.set_pod(member(f"o-{name}", "old", on=name, requests={"cpu": 4}))
        await submit(stand, group(least=1, **HIGH), *strong(1))
        assert deleted(stand) == ["o-n1", "o-n2", "o-n3"]
        assert "preempting 3 victims" in conditions(stand)[0][2]


async def pause(_: float) -> None:
    """Wait for nothing."""


class Blocking(FakeClient):
    """A client whose deletions wait."""

    def __init__(self) -> None:
        super().__init__()
        self.go = asyncio.Event()

    async def delete_pod(self, pod: Pod) -> None:
        await self.go.wait()
        await super().delete_pod(pod)


async def test_group_waits_for_the_evictions_of_its_preemption() -> None:
    around = gated(node("n1"), placed("a", "n1"))
    plugin, first = plugin_of(around), strong(1)[0]
    around.take(group(least=1, **HIGH))
    assert plugin.pre_enqueue(first, around) is None
    result = preempt(around, group(least=1, **HIGH), [first], plugin)
    assert result.act is not None
    client, activated = Blocking(), list[str]()
    clock = StandingClock()
    handle = Handle(cast("Client", client), clock, pause, {}, activated.extend)
    evicting = asyncio.ensure_future(result.act(handle))
    await asyncio.sleep(0)
    status = plugin.pre_enqueue(first, around)
    assert status is not None
    assert status.message == "waiting for the preemption for this pod group to be finished"
    assert plugin.pre_enqueue(pod("other"), around) is None
    around.remove_pod("default.a")
    client.go.set()
    assert await evicting
    assert plugin.pre_enqueue(first, around) is None
    assert activated == ["default.p0"]


@pytest.mark.parametrize(("release", "code"), [(GATED, Code.UNSCHEDULABLE), (GATED_38, Code.SUCCESS)])
def test_group_that_never_preempts_may_wait_for_its_victims(release: Release, code: Code) -> None:
    around = gated(node("n1"), going(placed("a", "n1")), release=release)
    waiting = [structs.replace(one, status=PodStatus(nominated_node_name="n1")) for one in strong(2)[:1]]
    result = preempt(around, group(least=1, **HIGH), waiting)
    assert result.status.message == f"{PREEMPTION}ongoing preemption on nominated nodes"
    assert result.nominated == {waiting[0].metadata.uid: "n1"}
    never = [structs.replace(one, spec=structs.replace(one.spec, preemption_policy="Never")) for one in waiting]
    assert preempt(around, group(least=1, **HIGH), never).status.code is code


@pytest.mark.parametrize(("release", "victim"), [(GATED, "dear"), (GATED_38, "cheap")])
def test_members_go_where_victims_cost_least(release: Release, victim: str) -> None:
    """The larger node has the higher score."""
    big = node("big", allocatable={"cpu": 8})
    around = gated(node("small"), big, placed("cheap", "small"), placed("dear", "big", 5, cpu=8), release=release)
    result = preempt(around, group(least=1, **HIGH), strong(1))
    assert [one.metadata.name for one in result.victims] == [victim]


def test_victims_that_must_go_anyway_cost_nothing() -> None:
    """Nodes of a group that is evicted as a whole are preferred after its first node is taken."""
    olds = [member(f"o-{name}", "old", on=name, requests={"cpu": 4}, priority=1) for name in ("n1", "n2")]
    around = gated(*(node(name) for name in ("n1", "n2", "n3")), *olds, placed("a", "n3", 2), release=GATED_38)
    around.take(group("old", 1, disruption_mode=WHOLE))
    result = preempt(around, group(least=2, **HIGH), strong(2))
    assert sorted(one.metadata.name for one in result.victims) == ["o-n1", "o-n2"]


@pytest.mark.parametrize(("release", "cleared"), [(GATED, []), (GATED_38, ["default/small"])])
async def test_pods_of_lower_priority_lose_their_nomination(release: Release, cleared: list[str]) -> None:
    around = gated(node("n1"), placed("a", "n1"), release=release)
    small = structs.replace(pod("small", priority=1), status=PodStatus(nominated_node_name="n1"))
    around.nominations.set(small, "n1")
    result = preempt(around, group(least=1, **HIGH), strong(1))
    assert result.act is not None
    client, clock = FakeClient(), StandingClock()
    assert await result.act(Handle(cast("Client", client), clock, pause, {}, lambda _: None))
    assert [key for key, node_name in client.nominated if not node_name] == cleared


def test_policies_protect_pods_from_groups() -> None:
    policies = policy_set(p={"preemption": {"require": 'not has(victim.labels["keep"])'}})
    kept = placed("a", "n1", labels={"keep": "yes"})
    around = gated(node("n1"), node("n2"), kept, placed("b", "n2", 5))
    profile = policies.join(default_profile(ME, release=around.release))
    result = preempt(around, group(least=1, **HIGH), strong(1), profile=profile)
    assert [one.metadata.name for one in result.victims] == ["b"]
    refused = preempt(around, group(least=2, **HIGH), strong(2), profile=profile)
    assert not refused.victims
    assert 'p/preemption: not has(victim.labels["keep"]) (default/a: ' in refused.status.message


def extended(release: Release, *extenders: FakeExtender) -> Profile:
    return replace(default_profile(ME, release=release), extenders=extenders)


@pytest.mark.parametrize("release", RELEASES)
async def test_groups_preempt_where_extenders_accept_their_members(release: Release) -> None:
    """The extender is asked once about each member without victims; no other node is feasible for the last member."""
    one = FakeExtender(passes=frozenset({"n2", "n3"}), prioritizes=False)
    nodes = [node(f"n{number}") for number in range(4)]
    async with running(*nodes, of=extended(release, one), release=release) as stand:
        for number in range(4):
            stand.scheduler.set_pod(placed(f"o{number}", f"n{number}"))
        await submit(stand, group(least=2, **HIGH), *strong(2))
        assert deleted(stand) == ["o2", "o3"]
        assert sorted(name for _, name in stand.client.nominated) == ["n2", "n3"]
        assert is_clean(stand.scheduler.cluster)
    asked = [names for _, names in one.asked]
    assert asked[0] == ("n0", "n1", "n2", "n3")
    assert [len(names) for names in asked] == [4, 3]


async def test_extenders_that_fail_end_the_preemption_of_a_group() -> None:
    one = FakeExtender(error="no answer")
    async with running(node("n1"), of=extended(GATED_38, one), release=GATED_38) as stand:
        stand.scheduler.set_pod(placed("a", "n1"))
        await submit(stand, group(least=1, **HIGH), *strong(1))
        assert deleted(stand) == []
        assert conditions(stand)[-1][1] == "SchedulerError"
        assert "no answer" in conditions(stand)[-1][2]


async def test_preemption_ends_if_a_member_is_deleted_while_extenders_answer() -> None:
    pods, stand_of = strong(2), dict[str, Stand]()

    async def delete() -> None:
        stand_of["it"].scheduler.drop(pods[1])

    one = FakeExtender(hold=delete)
    async with running(node("n1"), node("n2"), of=extended(GATED_38, one), release=GATED_38) as stand:
        stand_of["it"] = stand
        for number in (1, 2):
            stand.scheduler.set_pod(placed(f"o{number}", f"n{number}"))
        await submit(stand, group(least=2, **HIGH), *pods)
        assert deleted(stand) == []
        assert conditions(stand)[0][2].endswith("members or nodes changed while extenders were called")
        assert is_clean(stand.scheduler.cluster)


async def test_cluster_is_whole_while_extenders_answer_about_a_simulation() -> None:
    seen, stand_of = list[tuple[int, bool]](), dict[str, Stand]()

    async def look() -> None:
        cluster = stand_of["it"].scheduler.cluster
        seen.append((len(cluster.pods.by_id), is_clean(cluster)))

    async with running(
        node("n1"), node("n2"), of=extended(GATED_38, FakeExtender(hold=look)), release=GATED_38
    ) as stand:
        stand_of["it"] = stand
        for number in (1, 2):
            stand.scheduler.set_pod(placed(f"o{number}", f"n{number}"))
        await submit(stand, group(least=2, **HIGH), *strong(2))
        assert deleted(stand) == ["o1", "o2"]
    assert set(seen) == {(2, True)}
    assert len(seen) >= 3


@pytest.mark.parametrize("seed", range(90))
def test_group_fits_without_its_victims_and_without_no_fewer(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a cluster of its own, with and without rules about pods; a simulation leaves no trace."""
    if seed >= 60:
        monkeypatch.setattr(for_groups, "MOST_EVALUATIONS", 0)
    chance = random.Random(f"group/{seed}")
    release = chance.choice(RELEASES)
    rules: list[Affinity | None] = [None]
    if seed % 3 == 0:
        rules += [away(term(label("app", "x"), "zone")), near(term(label("app", "y"), "zone"))]
    objects: list[Node | Pod] = [
        node(name, allocatable={"cpu": 4, "pods": 9}, labels={"host": name, "zone": chance.choice("yz")})
        for name in (f"n{number}" for number in range(4))
    ]
    for number in range(16):
        labels, rule = {"app": chance.choice("xyz")}, chance.choice(rules)
        one = placed(
            f"o{number}", f"n{number % 4}", chance.randint(0, 3), cpu=1, minute=number, labels=labels, affinity=rule
        )
        of = chance.choice((None, "u", "v"))
        objects.append(one if of is None else of_group(one, of))
    groups = [group(name, 1, disruption_mode=WHOLE if chance.random() < 0.7 else None) for name in "uv"]
    pods = members(chance.randint(1, 4), requests={"cpu": chance.randint(1, 4)}, affinity=chance.choice(rules), **HIGH)
    least = chance.randint(1, len(pods))
    around = gated(*objects, groups=groups, release=release)
    before = state_of(around)
    result = preempt(around, group(least=least, **HIGH), pods)
    assert state_of(around) == before
    if result.status.code is not Code.SUCCESS:
        assert not result.victims
        return
    gone = {one.metadata.name for one in result.victims}
    assert fits_without(gone, objects, groups, pods, result.nominated, release)
    if seed % 3:
        for name in gone:
            fewer = gone - together(name, objects, groups)
            assert not fits_without(fewer, objects, groups, pods, result.nominated, release)


@pytest.mark.parametrize("seed", range(40))
def test_victims_of_many_members_are_those_of_few(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if victims on other nodes repel members."""
    chance = random.Random(f"many/{seed}")
    objects: list[Node | Pod] = [
        node(name, allocatable={"cpu": 4}, labels={"host": name, "zone": chance.choice("yz")})
        for name in (f"n{number}" for number in range(4))
    ]
    for number in range(16):
        labels, rule = {"app": chance.choice("gwwww")}, None
        if seed % 2 and not chance.randrange(6):
            rule = away(term(label("app", "g"), "zone"))
        more: Any = {"cpu": 1, "minute": number, "labels": labels, "affinity": rule}
        objects.append(placed(f"o{number}", f"n{number % 4}", number % 3, **more))
    apart = away(term(label("app", chance.choice("gv")), chance.choice(("host", "zone"))))
    of_many: Any = {"affinity": apart, "labels": {"app": "g"}, **HIGH}
    pods = members(chance.randint(1, 4), requests={"cpu": chance.randint(1, 4)}, **of_many)

    def result() -> tuple[Any, set[str]]:
        found = preempt(gated(*objects), group(least=1, **HIGH), pods)
        return found.nominated, {one.metadata.name for one in found.victims}

    of_few = result()
    assert of_few[1]
    monkeypatch.setattr(for_groups, "MOST_EVALUATIONS", 0)
    assert result() == of_few


def test_restoring_victims_evaluates_few_members(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of members whose filters read other nodes: those on the victim's node, and all of them once."""
    monkeypatch.setattr(for_groups, "MOST_EVALUATIONS", 0)
    names, found = [f"n{number}" for number in range(20)], [0]
    find = Engine.find

    def counted(*arguments: Any, **named: Any) -> Any:
        found[0] += 1
        return find(*arguments, **named)

    monkeypatch.setattr(Engine, "find", counted)
    olds = [placed(f"{name}-{number}", name, cpu=1) for name in names for number in range(4)]
    around = gated(*(node(name, labels={"host": name}) for name in names), *olds)
    apart = away(term(label("app", "g"), "host"))
    pods = members(20, requests={"cpu": 2}, affinity=apart, labels={"app": "g"}, **HIGH)
    assert len(preempt(around, group(least=20, **HIGH), pods).victims) == 40
    assert found[0] <= 80 + 5 * 20


def fits_without(
    gone: Collection[str],
    objects: Sequence[Node | Pod],
    groups: Sequence[PodGroup],
    pods: Sequence[Pod],
    nodes: Mapping[str, str],
    release: Release,
) -> bool:
    """Whether the members fit on their nodes one after another."""
    after = gated(*(one for one in objects if one.metadata.name not in gone), groups=groups, release=release)
    engine = Engine(after, default_profile(ME, release=release), random.Random(0))
    for one in pods:
        name = nodes.get(pod_id(one))
        if name is None:
            continue
        row, found = after.nodes.row_of[name], engine.find(one)
        if found.rejection is not None or not found.feasible()[row]:
            return False
        after.assume(one, row)
    return True


def together(name: str, objects: Sequence[Node | Pod], groups: Sequence[PodGroup]) -> set[str]:
    """The pods that are evicted with a pod."""
    of = {one.metadata.name: one.spec.scheduling_group for one in objects if isinstance(one, Pod)}
    stated = of[name]
    whole = {one.metadata.name for one in groups if one.is_disrupted_as_whole}
    if stated is None or stated.pod_group_name not in whole:
        return {name}
    return {other for other, named in of.items() if named == stated}


def state_of(around: Cluster) -> Any:
    nodes = around.nodes
    requested = {name: int(nodes.requested("cpu")[row]) for name, row in nodes.row_of.items()}
    there = {identity: (one.pod, one.row, one.assumed) for identity, one in around.pods.by_id.items()}
    of_groups = {
        one.key: (dict(one.assigned), dict(one.assumed)) for one in around.pod_groups or () if one.scheduled_count
    }
    return requested, there, of_groups


def of_group(one: Pod, name: str) -> Pod:
    return structs.replace(
        one, spec=structs.replace(one.spec, scheduling_group=PodSchedulingGroup(pod_group_name=name))
    )


def plugin_of(around: Cluster, profile: Profile | None = None) -> DefaultPreemption:
    profile = profile or default_profile(ME, release=around.release)
    return next(one for one in profile.pod_group_post_filters if isinstance(one, DefaultPreemption))


def preempt(
    around: Cluster,
    of: PodGroup,
    pods: Sequence[Pod],
    plugin: DefaultPreemption | None = None,
    profile: Profile | None = None,
) -> PodGroupPostFilterResult:
    """Call DefaultPreemption for a group that does not fit."""
    profile = profile or default_profile(ME, release=around.release)
    steps = Steps(
        cluster=around,
        profile=profile,
        rng=random.Random(0),
        decide=lambda *_: pytest.fail("decided outside of the simulation"),
        note=lambda *_: None,
        reserve=lambda _: None,
        unreserve=lambda _: (),
        now=lambda: 0.0,
        measure=lambda _point, _profile, run, *arguments: run(*arguments),
        names_group=around.release.messages_name_pod_group,
        searched=lambda *_: None,
    )
    queued = [QueuedPod(one, pod_id(one), 0.0) for one in pods]
    groups = around.pod_groups
    assert groups is not None
    groups.put(of)
    for one in pods:
        groups.await_pod(one)
    state = groups.get(of.key)
    assert state is not None
    rejected = RejectedPodGroup(
        of, lambda: state.scheduled_count, queued, Engine(around, profile, random.Random(0)), steps, CycleState()
    )
    return (plugin or plugin_of(around, profile)).pod_group_post_filter(rejected)


def test_ranks_after_placements_have_the_order_of_computed_ranks() -> None:
    chance = random.Random(7)
    for _ in range(60):
        olds = [
            member(f"o{number}", chance.choice("uvw"), on=f"n{chance.randrange(5)}", priority=chance.randrange(3))
            for number in range(9)
        ]
        around = gated(*(node(f"n{number}") for number in range(5)), *olds)
        by_group = [[around.pods.by_id[pod_id(one)] for one in olds if of(one) == name] for name in "uvw"]
        victims = [Victim(tuple(pods), chance.randrange(3), is_group=True, violations=0) for pods in by_group if pods]
        victims += [Victim((one,), 0, is_group=False, violations=0) for one in by_group[0]]
        ranks, placed = VictimRanks(around, victims), list[str]()
        for number in range(12):
            name = chance.choice(placed) if placed and chance.random() < 0.4 else ""
            if name:
                ranks.remove(name)
                placed.remove(name)
            else:
                placed.append(f"m{number}")
                ranks.place(placed[-1], chance.randrange(5))
            before, exact = ranks.ranks()[:5], ranks._computed()[:5]
            assert (before[:, None] < before).tolist() == (exact[:, None] < exact).tolist()
            assert ((before == 0) == (exact == 0)).all()


def of(one: Pod) -> str:
    stated = one.spec.scheduling_group
    return "" if stated is None else stated.pod_group_name
