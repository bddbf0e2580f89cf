"""A change finds every waiting pod that it may help, and a pod that could be placed now is one of those."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from policysched.framework import Action, Change, Resource, Status
from policysched.model.objects import Pod
from policysched.plugins.inter_pod_affinity.plugin import InterPodAffinity
from policysched.plugins.pod_topology_spread.constraints import Defaults
from policysched.plugins.pod_topology_spread.plugin import PodTopologySpread
from tests.build import pod
from tests.plugins.ask import filtered, finds, hinted, pod_change
from tests.plugins.inter_pod_affinity.build import away, label, near, term
from tests.plugins.inter_pod_affinity.world import World
from tests.plugins.pod_topology_spread.build import FOO, hard, incoming
from tests.plugins.pod_topology_spread.maker import Maker

CASES = 300
MINE = {"app": "mine"}


def random_change(chance: Random, make: Callable[[str, str], Pod]) -> Change:
    """A placed pod comes, goes or becomes another one."""
    old, new = make("other", "n1"), make("other", "n1")
    same = {part: getattr(old.metadata, part) for part in ("name", "uid", "namespace")}
    new = replace(new, metadata=replace(new.metadata, **same))
    return chance.choice(
        (
            pod_change(None, new, Action.ADD),
            pod_change(old, None),
            pod_change(old, new, Action.UPDATE_POD_LABEL | Action.UPDATE_POD_TOLERATION),
        )
    )


@pytest.mark.parametrize("seed", range(2))
def test_affinity_s_index_finds_whom_its_hints_help(seed: int) -> None:
    chance, helped = Random(seed), 0
    for _ in range(CASES):
        world = World(chance)
        world.fill()
        change = random_change(chance, world.pod)
        helped += hinted(InterPodAffinity(), world.pod("p"), change, world.cluster)
    assert helped > CASES // 20


@pytest.mark.parametrize("seed", range(2))
def test_spreading_s_index_finds_whom_its_hints_help(seed: int) -> None:
    chance = Random(seed)
    maker, helped = Maker(chance), 0
    plugin = PodTopologySpread(Defaults((maker.constraint(action="DoNotSchedule"),)))
    for _ in range(CASES):
        change = random_change(chance, lambda _, on: maker.placed(on))
        helped += hinted(plugin, maker.pending(), change)
    assert helped > CASES // 20


def closed(world: World, one: Pod) -> set[str]:
    """The nodes of a world that a pod is kept out of."""
    answer = filtered(InterPodAffinity(), one, world.cluster)
    return set(world.nodes) if isinstance(answer, Status) else set(answer) if isinstance(answer, dict) else set()


def changed(world: World, number: int) -> Change:
    """A pod goes, or another one comes."""
    if world.pods and world.random.random() < 0.5:
        uid = world.random.choice(sorted(world.pods))
        world.cluster.remove_pod(uid)
        return pod_change(world.pods.pop(uid), None)
    placed = world.pod(f"new-{number}", f"n{world.random.randrange(6)}")
    world.place(placed, placed.spec.node_name)
    return pod_change(None, placed, Action.ADD)


@pytest.mark.parametrize("seed", range(2))
def test_a_change_that_opens_a_node_helps(seed: int) -> None:
    chance, opened = Random(seed), 0
    for _ in range(CASES // 3):
        world = World(chance, settled=True)
        world.fill()
        waiting = [world.pod("p", invalid=0) for _ in range(4)]
        before = [closed(world, one) for one in waiting]
        for number in range(6):
            change = changed(world, number)
            after = [closed(world, one) for one in waiting]
            for one, were, are in zip(waiting, before, after, strict=True):
                opened += bool(were - are)
                assert were <= are or hinted(InterPodAffinity(), one, change, world.cluster)
            before = after
    assert opened > 8


def index_of(plugin: Any) -> Any:
    return next(hint.index for hint in plugin.events() if hint.resource is Resource.ASSIGNED_POD)


@pytest.mark.parametrize(
    ("plugin", "waiting", "found"),
    [
        (InterPodAffinity(), pod("p", affinity=near(term(label("app", "mine"), "zone"))), True),
        (InterPodAffinity(), pod("p", affinity=near(term(label("app", "other"), "zone"))), False),
        (InterPodAffinity(), pod("p", affinity=away(term(label("app", "other"), "zone"))), False),
        (InterPodAffinity(), pod("p", affinity=away(term(label("app", "mine"), "zone"))), True),
        (InterPodAffinity(), pod("p", namespace="x", affinity=away(term(label("app", "mine"), "zone"))), False),
        (PodTopologySpread(), incoming(hard("zone", 1, FOO)), False),
        (PodTopologySpread(), incoming(hard("zone", 1, label("app", "mine"))), True),
    ],
)
def test_a_change_of_an_ordinary_pod_finds_only_pods_whose_selectors_may_mean_it(
    plugin: Any, waiting: Pod, found: bool
) -> None:
    ordinary = pod("other", on="n1", labels=MINE)
    for change in (pod_change(None, ordinary, Action.ADD), pod_change(ordinary, None)):
        assert finds(index_of(plugin), waiting, change) is found


@pytest.mark.parametrize(
    ("selector", "found"),
    [(label("app", "mine"), True), (label("app", "other"), False), (label("app"), True)],
)
def test_a_pod_that_is_gone_finds_those_whom_it_kept_away(selector: Any, found: bool) -> None:
    waiting = pod("p", labels=MINE)
    gone = pod_change(pod("other", on="n1", affinity=away(term(selector, "zone"))), None)
    assert finds(index_of(InterPodAffinity()), waiting, gone) is found
