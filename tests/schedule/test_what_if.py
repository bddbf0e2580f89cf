"""What-ifs on one node equal the results in a changed cluster, and change nothing."""

from __future__ import annotations

import random
import tracemalloc
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from policysched.app.configuration.profiles import default_profile
from policysched.framework import Aspect, Cluster, Status
from policysched.framework.profile import Profile
from policysched.model.defaults import priority_classes
from policysched.model.objects import Pod
from policysched.model.objects.storage import READ_WRITE_ONCE_POD
from policysched.plugins.node_resources.fit import NodeResourcesFit
from policysched.plugins.nodes.node_filters import NodePorts, NodeUnschedulable
from policysched.plugins.volumes.claims import stated_claims, stored_claim
from policysched.plugins.volumes.node_volume_limits import NodeVolumeLimits
from policysched.plugins.volumes.volume_binding import VolumeBinding
from policysched.plugins.volumes.volume_restrictions import VolumeRestrictions
from policysched.plugins.volumes.volume_zone import VolumeZone
from policysched.rules.compile.policy import CompiledPolicy
from policysched.rules.policy_set.policy_set import PolicySet
from policysched.rules.shared_values.what_if import reads_pods
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.evaluation import Evaluation
from policysched.schedule.cycle.results.plugin_results import FilterResults
from policysched.schedule.cycle.what_if import Trial
from policysched.state.placed.pods import PlacedPod, pod_id
from tests.build import cluster, node, pod
from tests.oracle.storage import storage
from tests.plugins.inter_pod_affinity.build import away, term
from tests.rules.build import compiled, filtering
from tests.rules.results.test_reference import CONDITIONS, METRIC_FIELDS
from tests.schedule.life_pods import wanted
from tests.schedule.life_policies import policies as life_policies
from tests.schedule.neighbours import TEAM_A, neighbourly
from tests.schedule.parts import Fake, profile
from tests.schedule.test_volume_truth import Object, loaded
from tests.schedule.world import World
from tests.schedule.world_objects import HOST, some_pod
from tests.work import calls

NO_CLASSES = priority_classes([])
SEED = 20261122
EXTREMES = (
    'max(node.free.cpu) by node.labels["zone"] > 4',
    "min(node.requested.cpu) < 500m",
    "min(node.pods.count(peer.priority > 5)) == 0",
    "sum(node.requested.cpu * 0.3) > 1",
    "cluster.pods > 12 or node.requested.pods < 2",
    'avg(node.pods.count(peer.priority > 5)) by node.labels["zone"] < 1',
)


def small_profile() -> Profile:
    return profile([NodeUnschedulable(), NodeResourcesFit(), NodePorts()])


def policies() -> list[CompiledPolicy]:
    """Return one policy for each condition that reads pods, and the policies of the random tests."""
    made = [
        compiled(f"p{number}", filters=filtering(text), metrics=METRIC_FIELDS)
        for number, text in enumerate((*CONDITIONS, *EXTREMES))
    ]
    return [one for one in made if any(reads_pods(rule.require.root) for rule in one.filters)]


def engine_over(around: Cluster, plugins: Profile) -> Engine:
    return Engine(around, plugins, random.Random(0))


def really(world: World, on: str, gone: Sequence[Pod], come: Sequence[Pod]) -> Cluster:
    """Return a copy of the cluster after pods were removed and added."""
    made = world.fresh()
    for one in gone:
        made.remove_pod(one.metadata.uid)
    for one in come:
        made.set_pod(replace(one, spec=replace(one.spec, node_name=on)))
    return made


def verdict(evaluation: Evaluation, row: int) -> Status | None:
    """Return the filters' status of a row, also if PreFilter excluded it."""
    codes = [(one, one.codes[row]) for one in evaluation.filters[bool(evaluation.narrowing) :] if one.rejects_any]
    return next((one.reason(int(code)) for one, code in codes if code), None)


class Pages:
    """The cached results of a class, for comparison."""

    def __init__(self, evaluation: Evaluation, around: Cluster) -> None:
        tracks = [*evaluation.filters, *evaluation.scores]
        arrays: list[Any] = [getattr(one, "codes", getattr(one, "values", None)) for one in tracks]
        self.kept = [(array, array.copy()) for array in (evaluation.first, evaluation.of_class.sums[0], *arrays)]
        self.told = (
            around.journal.position,
            around.signatures.stamp,
            around.existing_terms.next_number,
            len(around.counters),
        )

    def equal(self, other: Pages) -> bool:
        same = all(a[0] is b[0] and (a[1] == b[1]).all() for a, b in zip(self.kept, other.kept, strict=True))
        return same and self.told == other.told


@pytest.mark.parametrize("seed", range(3))
def test_a_trial_equals_what_really_happens(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    told = Trials(World(SEED + seed, 6), [small_profile()]).run(100, monkeypatch)
    assert told[True] > 10, told


def test_a_trial_of_policies_equals_what_really_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    told = Trials(World(SEED, 6), [PolicySet.of([one]).join(profile()) for one in policies()]).run(30, monkeypatch)
    assert told[True] > 30, told


VOLUME_FILTERS = (NodeResourcesFit, VolumeRestrictions, NodeVolumeLimits, VolumeBinding, VolumeZone)


def test_a_trial_of_a_pod_with_volumes_equals_what_really_happens() -> None:
    told: Counter[bool] = Counter()
    for number in range(120):
        chance = random.Random(f"{SEED}/{number}")
        objects = storage(chance, "trial")["objects"]
        around = loaded(objects)
        placed = [one for one in around.storage.pods.values() if around.nodes.present.data[one.row]]
        if placed:
            like = chance.choice(placed)
            _ask_a_sibling(like, objects, around, told, chance)
    assert told[True] > 5, told


def _ask_a_sibling(
    like: PlacedPod, objects: Sequence[Object], around: Cluster, told: Counter[bool], chance: random.Random
) -> None:
    """Ask about a pod with the volumes of a placed pod, on the node of that pod."""
    metadata = replace(like.pod.metadata, name="sibling", uid="sibling")
    waiting = replace(like.pod, metadata=metadata, spec=replace(like.pod.spec, node_name=""))
    if has_overused_claim(waiting, around):
        return
    plugins = profile([one() for one in VOLUME_FILTERS])
    evaluation = engine_over(around, plugins).decide(waiting).evaluation
    if evaluation.rejection is not None:
        return
    there = [placed.pod for placed in around.pods.on_row(like.row)]
    gone = chance.sample(there, chance.randint(1, len(there)))
    trial = evaluation.trial(like.row)
    assert trial.verdict() == verdict(evaluation, like.row)
    change([(plugins, trial)], gone, ())
    change([(plugins, trial)], (), gone[1:2])
    after = loaded(objects)
    for one in [*gone[:1], *gone[2:]]:
        after.remove_pod(pod_id(one))
    expected = engine_over(after, plugins).decide(waiting).evaluation
    assert trial.verdict() == verdict(expected, after.nodes.row_of[around.nodes.names[like.row]])
    told[trial.verdict() != verdict(evaluation, like.row)] += 1


def has_overused_claim(pod: Pod, around: Cluster) -> bool:
    """Return whether several pods use a ReadWriteOncePod claim of the pod; what-ifs assume a single user."""
    claims = [stored_claim(around.storage, pod, name) for name in stated_claims(pod)]
    return any(
        READ_WRITE_ONCE_POD in claim.spec.access_modes and len([*around.storage.users(claim.key)]) > 1
        for claim in claims
        if claim is not None
    )


def refuse(*_: object) -> None:
    raise AssertionError("asked again")


def change(trials: Sequence[tuple[Profile, Trial]], gone: Sequence[Pod], come: Sequence[Pod]) -> None:
    for _, trial in trials:
        for one in gone:
            trial.remove(one)
        for one in come:
            trial.add(one)


class Trials:
    """A random cluster, engines that decide throughout, and counts of the verdicts."""

    def __init__(self, world: World, profiles: Sequence[Profile]) -> None:
        self._world = world
        self._engines = [engine_over(world.cluster, one) for one in profiles]
        self._told: Counter[bool] = Counter()
        for _ in range(300):
            world.step()

    def run(self, rounds: int, monkeypatch: pytest.MonkeyPatch) -> Counter[bool]:
        """Ask in several rounds; return how often the verdict changed, and how often it did not."""
        for number in range(rounds):
            for _ in range(5):
                self._world.step()
            if not self._world.nodes:
                continue
            chance, nodes = self._world.random, self._world.cluster.nodes
            on = chance.choice(sorted(self._world.nodes))
            row = nodes.row_of[on]
            wants = int(nodes.allocatable("cpu")[row] - nodes.requested("cpu")[row]) + chance.choice((0, 100, 900))
            hungry = pod("hungry", requests={"cpu": f"{max(wants, 0)}m"}, labels={"team": chance.choice("ab")})
            waiting = chance.choice([hungry, chance.choice([*wanted(), *neighbourly(calm=False)])])
            for engine in 2 * self._engines:  # what one engine begins to follow, others see as a change
                engine.classes.results(waiting)
            with monkeypatch.context() as patched:
                patched.setattr(FilterResults, "update", refuse)
                self._ask(waiting, on, f"new{number}")
        return self._told

    def _ask(self, waiting: Pod, on: str, name: str) -> None:
        """Change a node's pods step by step, and compare each verdict with that in a changed cluster."""
        chance, around = self._world.random, self._world.cluster
        row = around.nodes.row_of[on]
        there = [placed.pod for placed in around.pods.on_row(row)]
        gone = chance.sample(there, chance.randint(0, len(there)))
        come = [some_pod(chance, f"{name}{number}", "", calm=False) for number in range(chance.randint(0, 2))]
        asked = [(one.profile, Evaluation.of(waiting, one.classes.results(waiting))) for one in self._engines]
        asked = [(plugins, evaluation) for plugins, evaluation in asked if evaluation.rejection is None]
        before = [Pages(evaluation, around) for _, evaluation in asked]
        trials = [(plugins, evaluation.trial(row)) for plugins, evaluation in asked]
        first = [trial.verdict() for _, trial in trials]
        assert first == [verdict(evaluation, row) for _, evaluation in asked]
        change(trials, gone, come)
        self._compare(waiting, on, trials, (gone, come))
        self._told.update(trial.verdict() != said for said, (_, trial) in zip(first, trials, strict=True))
        change(trials, come[:1], gone[:1])
        self._compare(waiting, on, trials, (gone[1:], come[1:]))
        for pages, (_, evaluation) in zip(before, asked, strict=True):
            evaluation.of_class.refresh()
            assert pages.equal(Pages(evaluation, around))

    def _compare(
        self,
        waiting: Pod,
        on: str,
        trials: Sequence[tuple[Profile, Trial]],
        pods: tuple[Sequence[Pod], Sequence[Pod]],
    ) -> None:
        after = really(self._world, on, *pods)
        for plugins, trial in trials:
            expected = engine_over(after, plugins).find(waiting)
            if expected.rejection is None:
                assert trial.verdict() == verdict(expected, after.nodes.row_of[on]), plugins


def test_a_pod_that_is_not_there_cannot_be_taken_away() -> None:
    around = cluster(node("a"), node("b"), pod("there", on="a"), pod("elsewhere", on="b"))
    trial = engine_over(around, small_profile()).find(pod("p")).trial(around.nodes.row_of["a"])
    trial.remove(pod("there"))
    for absent in ("there", "elsewhere", "unknown"):
        with pytest.raises(ValueError, match=f"default/{absent} is not on the node"):
            trial.remove(pod(absent))


def test_a_pod_that_is_placed_cannot_be_added() -> None:
    around = cluster(node("a"), pod("there", on="a"))
    trial = engine_over(around, small_profile()).find(pod("p")).trial(0)
    trial.add(pod("new"))
    for present in ("there", "new"):
        with pytest.raises(ValueError, match=f"default/{present} is on a node already"):
            trial.add(pod(present))


def test_filters_that_read_no_pods_keep_their_answer() -> None:
    around = cluster(node("a", unschedulable=True), pod("there", on="a", requests={"cpu": 4}))
    waiting = pod("p", requests={"cpu": 1})
    trial = engine_over(around, small_profile()).find(waiting).trial(0)
    verdict = trial.verdict()
    assert verdict is not None
    assert verdict.plugin == "NodeUnschedulable"


def test_a_filter_that_reads_pods_has_to_answer_for_changed_rows() -> None:
    reading = Fake("reading", reads=Aspect.PODS)
    with pytest.raises(TypeError, match="reading reads the pods of nodes and is no WhatIfFilter"):
        profile([reading])  # type: ignore[list-item]


def test_a_trial_of_all_default_plugins_and_policies_equals_what_really_happens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    default = default_profile()
    profiles = [default, *(PolicySet.of(some).join(default) for some in life_policies())]
    told = Trials(World(SEED, 6), profiles).run(25, monkeypatch)
    assert told[True] > 10, told


AROUND = """
    node.pods.count(peer.labels["team"] == pod.labels["team"]) < 200
    sum(node.requested.cpu) by node.labels["zone"] < 9000
    max(node.free.cpu) >= pod.requests.cpu
    node.free.cpu >= pod.requests.cpu
"""


@pytest.mark.parametrize("size", [20, 100])
def test_a_trial_costs_what_its_pods_cost_however_many_nodes_and_classes_there_are(size: int) -> None:
    few, many = (asked_with(size, nodes, classes) for nodes, classes in ((30, 1), (600, 20)))
    assert many[0] <= 1.1 * few[0]
    assert many[1] <= few[1] + (1 << 16)
    twice = asked_with(2 * size, 30, 1)
    assert twice[0] <= 2.2 * few[0]


def asked_with(victims: int, nodes: int, classes: int) -> tuple[int, int]:
    """Return the function calls and the peak memory of removing pods from a node one by one."""
    around = Cluster()
    for number in range(nodes):
        around.set_node(node(f"n{number}", labels={"zone": f"z{number % 3}"}, allocatable={"cpu": 1000, "pods": 1000}))
        around.set_pod(pod(f"other{number}", on=f"n{number}", labels={"team": "a"}, requests={"cpu": 1}))
    there = [
        pod(f"p{number}", on="n0", labels={"team": "a"}, requests={"cpu": "1", "memory": "1Mi"})
        for number in range(victims)
    ]
    for one in there:
        around.set_pod(one)
    made = PolicySet.of(
        compiled(f"p{number}", filters=filtering(text)) for number, text in enumerate(AROUND.strip().split("\n"))
    )
    engine = engine_over(around, made.join(default_profile()))
    for number in range(classes):
        evaluation = engine.find(pod("w", labels={"team": "a", "n": str(number)}, affinity=away(term(TEAM_A, HOST))))
    trial = evaluation.trial(around.nodes.row_of["n0"])

    def remove_all() -> None:
        for one in there:
            trial.remove(one)
            trial.verdict()

    tracemalloc.start()
    try:
        called = calls(remove_all, "call")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    return called, peak
