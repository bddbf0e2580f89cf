"""A cluster updated event by event equals a cluster loaded at once, in columns and decisions.

POLICYSCHED_EVENTS sets the number of events, POLICYSCHED_LIFE the number in the one long sequence, POLICYSCHED_SEED the
seed.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from typing import Any

import pytest
from msgspec.structs import replace

from policysched.framework import Cluster
from policysched.model.objects import Pod
from policysched.state.tables import journal
from policysched.state.tables.amounts import CPU, MEMORY, WantedPorts
from tests.schedule.life_pods import spread, wanted
from tests.schedule.life_policies import policies
from tests.schedule.neighbours import neighbourly
from tests.schedule.side import Side
from tests.schedule.world import World
from tests.schedule.world_objects import GPU, IMAGES

LIFE = int(os.environ.get("POLICYSCHED_LIFE") or 100_000)
EVENTS = int(os.environ.get("POLICYSCHED_EVENTS") or 6000)
SEED = int(os.environ.get("POLICYSCHED_SEED") or 20260101)


def columns(cluster: Cluster) -> dict[str, Any]:
    """Return the contents of all columns, by node."""
    nodes = cluster.nodes
    addresses = ("0.0.0.0", "10.0.0.1", "10.0.0.2")  # noqa: S104 - compared, not bound
    ports = [
        cluster.ports.taken(WantedPorts([(one, "TCP", 8080)]), slice(0, nodes.size), nodes.size) for one in addresses
    ]
    found = {}
    for name, row in nodes.row_of.items():
        held: dict[str, Any] = {
            resource: int(nodes.requested(resource)[row]) for resource in ("cpu", "memory", "ephemeral-storage", GPU)
        }
        held |= {"pods": int(nodes.pods_count.data[row]), "ports": [bool(port[row]) for port in ports]}
        held |= {"nonzero": (int(nodes.amounts.counted[CPU, row]), int(nodes.amounts.counted[MEMORY, row]))}
        held |= {"on it": sorted(one.pod.key for one in cluster.pods.on_row(row))}
        if nodes.present.data[row]:
            held |= own_columns(cluster, row)
        found[name] = held
    return found


def own_columns(cluster: Cluster, row: int) -> dict[str, Any]:
    nodes = cluster.nodes
    images = {name: cluster.images.rows_with(name) for name in IMAGES}
    return {
        "labels": [int(nodes.labels(key)[row]) for key in ("zone", "disk", "w.io/a", "cores", "absent")],
        "annotations": [int(nodes.annotations(key)[row]) for key in ("rack", "absent")],
        "allocatable": [int(nodes.allocatable(name)[row]) for name in ("cpu", "memory", GPU, "absent")],
        "pods allowed": int(nodes.pods_allowed.data[row]),
        "flags": [bool(column.data[row]) for column in (nodes.unschedulable, nodes.ready)],
        "taints": nodes.taint_sets.value(int(nodes.taints.data[row])),
        "features": nodes.feature_sets.value(int(nodes.features.data[row])),
        "images": {name: (row in of[0], of[0].size, of[1]) for name, of in images.items() if of},
    }


CALM = ("ImageLocality", "DynamicResources")
"""Disabled plugins: their changes invalidate all classes, which would hide errors in incremental updates."""


class Trial:
    """A random cluster with an engine that decides throughout."""

    def __init__(self, world: World, off: Collection[str]) -> None:
        self._world, self._off = world, off
        around = neighbourly(calm=world.calm)
        self._pods, self._looking = [*wanted(), *around], [*spread(), *around]
        self._policies = policies()[-1]
        self._events = 0
        self._live = Side(world.cluster, off).use(self._policies)

    def run(self, events: int, pace: int = 1) -> None:
        """Apply random events, compare some decisions at intervals, and sometimes compare with a newly loaded cluster.

        A larger pace places and compares pods less often.
        """
        chance = self._world.random
        for _ in range(events):
            self._events = number = self._events + 1
            self._world.step()
            if number % 100 == 0:
                self._policies = chance.choice(policies())
                self._live.use(self._policies)
            if number % (5 * pace) == 0:
                self._place(chance.choice((*self._pods[:8], *self._looking)), number)
            if number % (3 * pace) == 0:
                self._compare(self._world.cluster, chance.sample(self._pods, 2))
            if number % (60 * pace) == 0:
                fresh = self._world.fresh()
                assert columns(self._world.cluster) == columns(fresh)
                self._compare(fresh, chance.sample(self._pods, 5))
        self._compare(self._world.fresh(), self._pods)

    def flood(self, count: int) -> int:
        """Place pods on unknown nodes, decide, and remove the pods; return the largest number of rows."""
        cluster = self._world.cluster
        for number in range(count):
            like = self._pods[number % len(self._pods)]
            metadata = replace(like.metadata, name=f"ghost{number}", uid=f"ghost{number}")
            cluster.set_pod(replace(like, metadata=metadata, spec=replace(like.spec, node_name=f"ghost{number}")))
        for one in self._pods[:5]:
            self._live.record(one)
        most = cluster.nodes.columns.capacity
        for number in range(count):
            cluster.remove_pod(f"ghost{number}")
        return most

    @property
    def capacity(self) -> int:
        """Number of rows that the cluster has allocated."""
        return self._world.cluster.nodes.columns.capacity

    def _compare(self, cluster: Cluster, pods: Iterable[Pod]) -> None:
        """Compare the decisions of the live engine with those of a new one."""
        assert self._world.cluster.nodes.count == cluster.nodes.count
        assert len(self._world.cluster.pods) == len(cluster.pods)
        new = Side(cluster, self._off).use(self._policies)
        for one in pods:
            assert self._live.record(one) == new.record(one), one.key

    def _place(self, like: Pod, number: int) -> None:
        """Place a pod of the same class on the node that the engine selects."""
        sibling = replace(like, metadata=replace(like.metadata, name=f"s{number}", uid=f"s{number}"))
        decision = self._live.engine.decide(sibling)
        if decision.node:
            self._world.assume(sibling, decision.node)


@pytest.mark.parametrize(("ring", "most_nodes"), [(journal.RING, 100), (64, 20), (16, 3)])
@pytest.mark.parametrize("off", [CALM, ()], ids=["calm", "default"])
def test_events_one_by_one_give_what_loading_at_once_gives(
    monkeypatch: pytest.MonkeyPatch, off: Collection[str], ring: int, most_nodes: int
) -> None:
    monkeypatch.setattr(journal, "RING", ring)
    Trial(World(SEED + ring, most_nodes, calm=off == CALM), off).run(EVENTS // 6)


def test_a_long_life_gives_what_loading_at_once_gives() -> None:
    Trial(World(SEED, 100), ()).run(LIFE, pace=20)


@pytest.mark.parametrize("off", [CALM, ()], ids=["calm", "default"])
def test_rows_of_nodes_that_never_were_are_given_back_unnoticed(off: Collection[str]) -> None:
    trial = Trial(World(SEED + 7, 20, calm=off == CALM), off)
    for _ in range(8):
        trial.run(60)
        assert trial.flood(500) >= 512
    trial.run(60)
    assert trial.capacity < 512
