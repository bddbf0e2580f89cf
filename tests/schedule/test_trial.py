"""What-if on one node: equal to what really happens, and nothing is changed by asking."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from policysched.framework import ABOUT_PODS, Cluster, FilterOfChangedRow, Status
from policysched.framework.profile import Profile
from policysched.model.objects import Pod
from policysched.plugins.node_resources.fit import NodeResourcesFit
from policysched.plugins.nodes.node_ports import NodePorts
from policysched.plugins.nodes.node_unschedulable import NodeUnschedulable
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.evaluation import Evaluation
from policysched.schedule.cycle.tracks import FilterTrack
from tests.build import cluster, node, pod
from tests.schedule.life_pods import wanted
from tests.schedule.neighbours import neighbourly
from tests.schedule.parts import profile
from tests.schedule.world import World
from tests.schedule.world_objects import some_pod

SEED = 20261122
ROUNDS = 60


def small_profile() -> Profile:
    return profile([NodeUnschedulable(), NodeResourcesFit(), NodePorts()])


def engine_over(around: Cluster, plugins: Profile) -> Engine:
    return Engine(around, plugins, random.Random(0))


def really(world: World, on: str, gone: Sequence[Pod], come: Sequence[Pod]) -> Cluster:
    """The same world after the pods went and came."""
    made = world.fresh()
    for one in gone:
        made.remove_pod(one.metadata.uid)
    for one in come:
        made.set_pod(replace(one, spec=replace(one.spec, node_name=on)))
    return made


def verdict(evaluation: Evaluation, row: int) -> Status | None:
    return None if evaluation.first[row] == 0 else evaluation.status(row)


class Pages:
    """All that is kept of a class, to be compared."""

    def __init__(self, evaluation: Evaluation, around: Cluster) -> None:
        tracks = [*evaluation.filters, *evaluation.scores]
        arrays = [getattr(one, "codes", getattr(one, "values", None)) for one in tracks]
        self.kept = [(array, array.copy()) for array in (evaluation.first, evaluation.ranked, *arrays)]
        self.told = (
            around.journal.position,
            around.signatures.generation,
            around.existing_terms.version,
            len(around.counters),
        )

    def equal(self, other: Pages) -> bool:
        same = all(a[0] is b[0] and (a[1] == b[1]).all() for a, b in zip(self.kept, other.kept, strict=True))
        return same and self.told == other.told


@pytest.mark.parametrize("seed", range(3))
def test_a_trial_equals_what_really_happens(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(SEED + seed, 6)
    chance, plugins = world.random, small_profile()
    live = engine_over(world.cluster, plugins)
    for _ in range(300):
        world.step()
    for number in range(ROUNDS):
        for _ in range(5):
            world.step()
        waiting = chance.choice([*wanted(), *neighbourly(calm=False)])
        evaluation = live.evaluate(waiting)
        if not world.nodes or evaluation.rejection is not None:
            continue
        with monkeypatch.context() as patched:
            patched.setattr(FilterTrack, "update", refuse)
            _ask(world, live, waiting, f"new{number}")


def refuse(*_: object) -> None:
    raise AssertionError("asked again")


def _ask(world: World, live: Engine, waiting: Pod, name: str) -> None:
    """Ask about one node, step by step, and compare every verdict with the world in which it really happened."""
    chance, around = world.random, world.cluster
    evaluation = live.evaluate(waiting)
    on = chance.choice(sorted(world.nodes))
    row = around.nodes.row_of[on]
    before = Pages(evaluation, around)
    trial = evaluation.trial(row)
    assert trial.verdict() == verdict(evaluation, row)
    there = [placed.pod for placed in around.pods.on_row(row)]
    gone = chance.sample(there, min(len(there), chance.randint(0, 4)))
    come = [some_pod(chance, f"{name}{number}", "", calm=False) for number in range(chance.randint(0, 2))]
    for one in gone:
        trial.remove(one)
    for one in come:
        trial.add(one)
    _compare(world, live.profile, waiting, (on, trial.verdict()), gone, come)
    if gone:
        trial.add(gone[0])
        _compare(world, live.profile, waiting, (on, trial.verdict()), gone[1:], come)
        trial.remove(gone[0])
    if come:
        trial.remove(come[0])
        _compare(world, live.profile, waiting, (on, trial.verdict()), gone, come[1:])
    again = live.evaluate(waiting)
    assert again is evaluation
    assert before.equal(Pages(again, around))


def _compare(
    world: World,
    plugins: Profile,
    waiting: Pod,
    said: tuple[str, Status | None],
    gone: Sequence[Pod],
    come: Sequence[Pod],
) -> None:
    on, status = said
    after = really(world, on, gone, come)
    expected = engine_over(after, plugins).evaluate(waiting)
    assert status == verdict(expected, after.nodes.row_of[on])


def test_a_pod_that_is_not_there_cannot_be_taken_away() -> None:
    around = cluster(node("a"), node("b"), pod("there", on="a"), pod("elsewhere", on="b"))
    trial = engine_over(around, small_profile()).evaluate(pod("p")).trial(around.nodes.row_of["a"])
    trial.remove(pod("there"))
    for absent in ("there", "elsewhere", "unknown"):
        with pytest.raises(ValueError, match=f"default/{absent} is not on the node"):
            trial.remove(pod(absent))


def test_a_pod_that_is_placed_cannot_be_added() -> None:
    around = cluster(node("a"), pod("there", on="a"))
    trial = engine_over(around, small_profile()).evaluate(pod("p")).trial(0)
    trial.add(pod("new"))
    for present in ("there", "new"):
        with pytest.raises(ValueError, match=f"default/{present} is on a node already"):
            trial.add(pod(present))


def test_filters_that_read_no_pods_keep_their_answer() -> None:
    around = cluster(node("a", unschedulable=True), pod("there", on="a", requests={"cpu": 4}))
    waiting = pod("p", requests={"cpu": 1})
    trial = engine_over(around, small_profile()).evaluate(waiting).trial(0)
    assert (trial.verdict() or Status).plugin == "NodeUnschedulable"


def test_every_filter_that_reads_pods_answers_for_changed_rows() -> None:
    for plugin in small_profile().filters:
        assert not plugin.filter_reads & ABOUT_PODS or isinstance(plugin, FilterOfChangedRow), plugin.name
