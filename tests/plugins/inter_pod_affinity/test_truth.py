"""InterPodAffinity on columns equals the plain one: on random states, and on a state that random events change.

POLICYSCHED_SEED repeats a run, POLICYSCHED_EVENTS sets the number of events.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from random import Random
from typing import Any

import numpy as np
import pytest

from policysched.framework import SKIP, Cluster, Code, Status
from policysched.model.objects import Pod
from policysched.plugins.inter_pod_affinity import matching_terms
from policysched.plugins.inter_pod_affinity.plugin import InterPodAffinity
from policysched.schedule.cycle.decision import Decision
from policysched.schedule.cycle.engine import Engine
from policysched.state.tables import journal
from tests.plugins.inter_pod_affinity.reference import Scene, normalized, raw_scores, verdicts
from tests.plugins.inter_pod_affinity.world import World
from tests.schedule.parts import profile

SEED = int(os.environ.get("POLICYSCHED_SEED") or 20260101)
EVENTS = int(os.environ.get("POLICYSCHED_EVENTS") or 6000)
CASES = max(200, EVENTS // 12)
VARIANTS: list[dict[str, Any]] = [
    {},
    {"hard_weight": 0},
    {"hard_weight": 7, "ignore_preferred": True},
    {"merges_namespaces": True},
]


def engine(cluster: Cluster, arguments: Mapping[str, Any]) -> Engine:
    plugin = InterPodAffinity(**arguments)
    return Engine(cluster, profile([plugin], [(plugin, 1)]), Random(0))


def ours(decision: Decision) -> tuple[Any, Any]:
    """What the engine found: rejections by node or the one of the pod, and the scores of the nodes that are left."""
    evaluation, nodes = decision.evaluation, decision.cluster.nodes
    if evaluation.rejection is not None:
        return Status(evaluation.rejection.code, evaluation.rejection.reasons), None
    rejected = {}
    for name, row in nodes.row_of.items():
        if nodes.present.data[row] and evaluation.first[row]:
            status = evaluation.status(row)
            rejected[name] = Status(status.code, status.reasons)
    return rejected, _scores(decision)


def _scores(decision: Decision) -> Any:
    evaluation, nodes = decision.evaluation, decision.cluster.nodes
    evaluation.of_class.score()
    if evaluation.score_failure is not None:
        return Status(Code.ERROR, evaluation.score_failure.reasons)
    kept = [track for track in evaluation.scores if not track.left_out]
    if not kept:
        return None
    feasible = evaluation.feasible()
    final = kept[0].final(feasible)
    return {nodes.names[row]: int(final[row]) for row in np.flatnonzero(feasible).tolist()}


def theirs(incoming: Pod, scene: Scene, arguments: Mapping[str, Any]) -> tuple[Any, Any]:
    rejected = verdicts(incoming, scene, merges_namespaces=arguments.get("merges_namespaces", False))
    if isinstance(rejected, Status):
        return rejected, None
    rejected = rejected or {}
    scores = raw_scores(incoming, scene, **arguments)
    if isinstance(scores, Mapping):
        scores = normalized({name: value for name, value in scores.items() if name not in rejected})
    return rejected, scores


@pytest.mark.parametrize("arguments", VARIANTS, ids=str)
def test_random_states_are_judged_as_pod_by_pod(arguments: dict[str, Any]) -> None:
    for case in range(CASES):
        world = World(Random(f"{SEED}/{case}"))
        world.fill()
        incoming = world.pod("p")
        assert ours(engine(world.cluster, arguments).decide(incoming)) == theirs(incoming, world.scene, arguments), case


@pytest.mark.parametrize(("ring", "settled"), [(journal.RING, False), (journal.RING, True), (4, True)])
@pytest.mark.parametrize("arguments", VARIANTS, ids=str)
def test_a_state_that_lives_through_events_is_judged_as_pod_by_pod(
    monkeypatch: pytest.MonkeyPatch, arguments: dict[str, Any], ring: int, settled: bool
) -> None:
    monkeypatch.setattr(journal, "RING", ring)
    for life in range(max(1, EVENTS // 500)):
        world = World(Random(f"{SEED}/{life}/{ring}"), settled=settled)
        live = engine(world.cluster, arguments)
        pods = [world.pod(f"p{number}", invalid=0.005) for number in range(6)]
        for event in range(100):
            world.step()
            incoming = world.random.choice(pods)
            assert ours(live.decide(incoming)) == theirs(incoming, world.scene, arguments), (life, event)
            if event % 20 == 0:
                assert ours(engine(world.fresh(), arguments).decide(incoming)) == ours(live.decide(incoming))


@pytest.mark.parametrize("arguments", VARIANTS, ids=str)
def test_decisions_are_the_same_where_each_existing_term_has_a_counter(
    monkeypatch: pytest.MonkeyPatch, arguments: dict[str, Any]
) -> None:
    monkeypatch.setattr(matching_terms, "TERMS_PER_BLOCK", 1)
    for life in range(max(8, EVENTS // 50)):
        world = World(Random(f"{SEED}/many/{life}"), most_nodes=6, most_pods=20)
        world.fill()
        live = engine(world.cluster, arguments)
        pods = [world.pod(f"p{number}") for number in range(6)]
        for step in range(30):
            incoming = world.random.choice([*pods, world.pod(f"x{step}")])
            world.step()
            assert ours(live.decide(incoming)) == theirs(incoming, world.scene, arguments), (life, step)


def test_random_pods_meet_every_outcome() -> None:
    """The cases above would prove nothing about an outcome that never occurs in them."""
    seen: set[str] = set()
    for case in range(CASES):
        world = World(Random(f"{SEED}/{case}"))
        world.fill()
        incoming = world.pod("p")
        rejected, scores = theirs(incoming, world.scene, {})
        statuses = [rejected] if isinstance(rejected, Status) else rejected.values()
        seen.update(status.message.split(":")[0] for status in statuses)
        seen.add("judged" if rejected else "skipped")
        seen.add("unscored" if scores is None else "scored unevenly" if len(set(scores.values())) > 2 else "scored")
    assert seen == {
        "node(s) didn't match pod affinity rules",
        "node(s) didn't match pod anti-affinity rules",
        "node(s) didn't satisfy existing pods anti-affinity rules",
        "parsing pod",
        "skipped",
        "judged",
        "unscored",
        "scored",
        "scored unevenly",
    }


def test_a_class_that_nobody_means_is_skipped_until_somebody_states_something() -> None:
    world = World(Random(SEED))
    plugin = InterPodAffinity()
    plain = world.pod("p")
    while plain.spec.affinity is not None:
        plain = world.pod("p")
    assert plugin.prepare_filter(plain, world.cluster) is SKIP
    assert plugin.prepare_score(plain, world.cluster) is SKIP
