"""PodTopologySpread against its plain version: on random clusters, and on one cluster that random events change.

POLICYSCHED_SEED sets the seed, POLICYSCHED_SPREADS the number of clusters.
"""

from __future__ import annotations

import os
import random
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from policysched.framework import SKIP, Code, Status
from policysched.model.objects import Pod
from policysched.plugins.pod_topology_spread.constraints import Defaults
from policysched.plugins.pod_topology_spread.plugin import PodTopologySpread
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.record import make_record
from policysched.state.cluster import Cluster
from policysched.state.tables import journal, sparse
from tests.plugins.pod_topology_spread import reference
from tests.plugins.pod_topology_spread.maker import Maker
from tests.plugins.pod_topology_spread.reference import Around
from tests.plugins.pod_topology_spread.world import Life, keyed, live
from tests.schedule.parts import engine

SEED = int(os.environ.get("POLICYSCHED_SEED") or 20260101)
CLUSTERS = int(os.environ.get("POLICYSCHED_SPREADS") or 4000)


def names_of(around: Around, chance: random.Random) -> set[str]:
    return {one.metadata.name for one in around.nodes if chance.random() < 0.8}


def expected(of: Pod, around: Around, feasible: set[str]) -> tuple[Any, Any]:
    """What the plain version says: rejections and scores, each perhaps None for skipped or "error"."""

    def asked(ask: Any, *more: Any) -> Any:
        try:
            return ask(of, around, *more)
        except reference.InvalidError:
            return "error"

    return asked(reference.rejections), asked(reference.scores, feasible)


def answered(plugin: PodTopologySpread, of: Pod, made: Cluster, feasible: set[str]) -> tuple[Any, Any]:
    """What the plugin says."""
    rows, present = slice(0, made.nodes.size), made.nodes.present.data
    names = {name: row for name, row in made.nodes.row_of.items() if present[row]}
    state: Any = plugin.prepare_filter(of, made)
    rejected = plain(state)
    if rejected is ...:
        codes = plugin.filter(state, rows)
        rejected = {name: plugin.reason(state, codes[row]).message for name, row in names.items() if codes[row]}
    state = plugin.prepare_score(of, made)
    scores = plain(state)
    if scores is ...:
        mask = np.array([name in feasible for name in made.nodes.names], np.bool_) & present[rows]
        finals = plugin.normalize(state, plugin.score(state, rows), mask)
        scores = {name: int(finals[row]) for name, row in names.items() if name in feasible}
    return rejected, scores


def plain(state: Any) -> Any:
    if state is SKIP:
        return None
    if isinstance(state, Status):
        assert state.code is Code.ERROR
        return "error"
    return ...


@pytest.mark.parametrize("part", range(4))
def test_answers_equal_those_of_the_plain_version(part: int) -> None:
    for number in range(part, CLUSTERS, 4):
        chance = random.Random(f"{SEED}/{number}")
        maker = Maker(chance)
        defaults, system = maker.defaults()
        nodes = [maker.node(f"n{index}") for index in range(chance.randrange(1, 9))]
        homes = [chance.choice(nodes).metadata.name for _ in range(chance.randrange(25))]
        workloads = list(keyed(maker.workload() for _ in range(6)).values())
        around = Around(nodes, [(maker.placed(home), home) for home in homes], workloads, defaults, system)
        plugin, made = PodTopologySpread(Defaults(defaults, system)), live(around)
        for _ in range(4):
            of, feasible = maker.pending(), names_of(around, chance)
            assert answered(plugin, of, made, feasible) == expected(of, around, feasible), (number, of)


def compare(asked: Engine, of: Pod, names: set[str], around: Around) -> None:
    """Hold a decision against what the plain version says of the same objects."""
    record = make_record(asked.decide(of))
    found = record.get("rejected", {})
    rejected, scores = expected(of, around, names - found.keys())
    if rejected == "error" or (scores == "error" and len(names) - len(rejected or {}) > 1):
        assert record["result"] == "Error"
        return
    told = {name: status["reasons"][0] for name, status in found.items()}
    assert told == (rejected or {})
    if scores not in (None, "error"):
        assert {name: by["PodTopologySpread"] for name, by in record.get("scores", {}).items()} == scores


@pytest.mark.parametrize(
    ("ring", "spare", "most_nodes"),
    [(journal.RING, sparse.SPARE, 12), (8, -50, 4), (32, -50, 40), (1024, -50, 9)],
)
@pytest.mark.parametrize("system", [True, False])
def test_a_life_of_events_leaves_the_answers_right(
    monkeypatch: pytest.MonkeyPatch, ring: int, spare: int, most_nodes: int, system: bool
) -> None:
    monkeypatch.setattr(journal, "RING", ring)
    monkeypatch.setattr(sparse, "SPARE", spare)
    life = Life(SEED + ring + system, most_nodes)
    listed = tuple(life.maker.constraint() for _ in range(3))
    constraints = reference.SYSTEM if system else tuple(replace(one, label_selector=None) for one in listed)
    plugin = PodTopologySpread(Defaults(constraints, system))
    asked = engine(life.cluster, [plugin], [(plugin, 1)])
    pods = [life.maker.pending() for _ in range(15)]
    for _ in range(max(60, CLUSTERS // 5)):
        for _ in range(life.chance.randrange(1, 5)):
            life.step()
        if not life.nodes:
            continue
        for of in life.chance.sample(pods, 3):
            compare(asked, of, set(life.nodes), life.around(constraints, system))
