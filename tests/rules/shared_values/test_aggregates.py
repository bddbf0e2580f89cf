"""Aggregates that are kept up to date are what they would be if they were counted anew, and reach whom they should."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from policysched.framework import Aspect, Cluster, Rows
from policysched.language.evaluation.columns import aggregate_over, run_program
from policysched.language.ir.graph import Program, Typed
from policysched.model.objects import Pod
from policysched.rules.inputs import PodInputs, aspects_read
from policysched.rules.shared_values import aggregates
from policysched.rules.shared_values.aggregates import evaluation_context, hold
from policysched.rules.shared_values.context import EvaluationContext, RuleFrame, number
from policysched.rules.shared_values.derived import AffectedRows, dependencies_of
from policysched.rules.shared_values.pod_aggregates import pod_aggregate_at
from policysched.state.tables import journal
from tests.build import cluster, node, pod
from tests.rules.build import compiled, scoring
from tests.schedule.world import World

KEYS = (
    "node.zone",
    'node.labels["zone"]',
    'node.labels["disk"]',
    "node.name",
    'node.labels["absent"]',
    'node.labels[pod.labels["device"]]',
    'node.labels[if(clock("22:00", "06:00"), "zone", "disk")]',
    'node.annotations["rack"]',
)
BY_KEY = (
    "count(node.ready)",
    "sum(node.pods.count(true))",
    'sum(node.pods.count(peer.labels["team"] == "a"))',
    'sum(node.pods.count(peer.labels["team"] == pod.labels["team"]))',
    "sum(node.pods.count(peer.requests.cpu >= node.free.cpu))",
    "avg(node.requested.cpu / 100m)",
    "avg(if(node.ready, 1, 0))",
    "sum(node.requested.cpu / node.allocatable.cpu)",
    "max(node.free.cpu / 100m)",
    "min(node.age / 1s)",
)
OVER_ALL = (
    'avg(number(node.labels["cores"]))',
    'count(node.pods.any(peer.labels["license"] == "matlab"))',
    # Whole on some days and not on others; small enough to stay exact, and too large.
    "sum(if(node.pods.count(true) > 3, 0.5, node.requested.pods))",
    "sum(node.pods.count(peer.priority >= 10) * 300000000000001 - 100 * node.requested.pods)",
    "avg(only(node.pods.any(true), node.requested.cpu / 1m))",
    "sum(metrics.load) + avg(round(metrics.heat))",
    # What a row adds is not for itself to say.
    "count(node.free.cpu >= avg(node.free.cpu))",
    "sum(if(node.requested.pods > cluster.pods / 4, 1, 0)) * cluster.nodes",
    "count(node.pods.sum(peer.image_bytes) > 900Mi) + count(node.cached_image_bytes >= pod.image_bytes / 2)",
    'sum(if(clock("22:00", "06:00"), node.requested.pods, 1))',
    "count(node.pods.any(peer.requests.cpu > avg(node.requested.cpu)))",
    'count(node.pods.any(peer.namespace_labels["tier"] == pod.namespace_labels["tier"]))',
    # What is made of aggregates alone.
    "if(teams <= min(teams), 100, 0) + max(teams) - (teams ?? -1)",
    "(teams - idle) ?? 7",
    "teams - min(idle) + count(node.ready or true)",
    "max(teams ?? 5) + min(idle * 1000) ",
    "if((idle > 30%) ?? true, 1, 0)",
    "clamp(100 - teams, 0, 100) + cluster.nodes",
    "sum(teams) + avg(idle) + max(teams + node.requested.pods)",
)
TEXTS = (*OVER_ALL, *(f"{text} by {key}" for text in BY_KEY for key in KEYS))
LETS = {
    "teams": 'sum(node.pods.count(peer.labels["team"] == "a")) by node.labels["zone"]',
    "idle": 'avg(if(node.pods.any(true), 0, 1)) by node.labels["disk"]',
}
METRICS = [{"name": name, "query": name, "maxAge": "1min"} for name in ("load", "heat")]


def program(text: str) -> Program:
    """A number, with all names that the texts of this file use."""
    lets = [{"name": name, "value": value} for name, value in LETS.items()]
    return compiled(scores=scoring(text), let=lets, metrics=METRICS).scores[0].value


def aggregate_anew(context: EvaluationContext, node: Typed, pod: PodInputs, rows: Rows) -> Any:
    """Give an aggregate without keeping it."""
    present = np.flatnonzero(context.cluster.nodes.present.data)
    found = aggregate_over(node, RuleFrame(context, pod, present))
    if not node.args:
        return found
    spread = np.full(context.cluster.nodes.columns.capacity, np.nan)
    spread[present] = found
    return spread[rows]


class Kept:
    """The values of a program for a pod, written again only where they have to be."""

    def __init__(self, context: EvaluationContext, made: Program, of: Pod) -> None:
        self.context, self.program = context, made
        self._pod = context.inputs(of)
        roots = [made.root]
        self._reads = int(aspects_read(made.inputs) | Aspect.PRESENCE)
        self._affected = AffectedRows(dependencies_of(context, roots, self._pod))
        self._held = hold(context, roots, self._pod)
        self._position = -1
        self._values = np.zeros(0)

    def written(self) -> Rows:
        """Write what has to be, and tell where that was."""
        columns, changed = self.context.cluster.nodes.columns, None
        if self._values.size == columns.capacity:
            changed, _ = self.context.changed(self._position, self._reads)
        else:
            self._values = np.zeros(columns.capacity)
        rows = self._affected.extend(changed if changed is not None else slice(0, columns.capacity))
        self._position = self.context.cluster.journal.position
        self._values[rows] = number(self.program, self.context.frame(self._pod, rows))
        return rows

    def values(self) -> list[float]:
        """The values of all nodes."""
        self.written()
        found: list[float] = self._values[self.context.cluster.nodes.present.data].tolist()
        return found

    def anew(self) -> list[float]:
        """The same without anything that was known."""
        fresh, present = (
            EvaluationContext(self.context.cluster, aggregate_anew, pod_aggregate_at),
            self.context.cluster.nodes.present.data,
        )
        rows = np.flatnonzero(present)
        found = number(self.program, RuleFrame(fresh, self._pod, rows))
        values: list[float] = np.broadcast_to(found, rows.shape).tolist()
        return values


PODS = (pod("a", labels={"team": "a", "device": "disk"}, image="i1"), pod("b", labels={"team": "b"}, namespace="a"))


@pytest.mark.parametrize(
    ("seed", "most_nodes", "ring", "few"),
    [(0, 12, journal.RING, 64), (1, 4, journal.RING, 64), (2, 12, 16, 2), (3, 90, journal.RING, 64)],
)
def test_what_is_kept_is_what_is_counted_anew(
    seed: int, most_nodes: int, ring: int, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "RING", ring)
    monkeypatch.setattr(aggregates, "FEW", few)
    world, chance, programs = World(seed, most_nodes), random.Random(seed), [program(text) for text in TEXTS]
    context, kept, generation = evaluation_context(world.cluster), list[Kept](), -1
    for _ in range(200):
        for _ in range(chance.choice((1, 1, 2, 30))):
            world.step()
        if world.cluster.namespaces_stamp != generation or chance.random() < 0.05:
            # Policies come and go, and some of what they read with them; namespaces start all anew.
            stay = world.cluster.namespaces_stamp == generation
            kept = [one for one in kept if stay and chance.random() < 0.5]
            kept += [Kept(context, one, of) for one in chance.sample(programs, 12) for of in PODS]
            generation = world.cluster.namespaces_stamp
        for one in kept:
            np.testing.assert_array_equal(one.values(), one.anew(), err_msg=one.program.text)


def zones() -> Cluster:
    """Two nodes in the one zone, one in the other, and one in none."""
    where = {"a": "z1", "b": "z1", "c": "z2", "d": ""}
    return cluster(*(node(name, labels={"z": zone} if zone else {}) for name, zone in where.items()))


def kept(text: str, around: Cluster, of: Pod = PODS[0]) -> Kept:
    return Kept(evaluation_context(around), program(text), of)


PODS_BY_ZONE = 'sum(node.pods.count(true)) by node.labels["z"] ?? -1'


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda around: around.set_pod(pod("p", on="b")), [1, 1, 0, -1]),
        (lambda around: around.set_pod(pod("p", on="d")), [0, 0, 0, -1]),
        (lambda around: around.set_pod(pod("p", on="unknown")), [0, 0, 0, -1]),
        (lambda around: [around.set_pod(pod(f"p{number}", on=f"u{number}")) for number in range(70)], [0, 0, 0, -1]),
        (lambda around: around.set_node(node("d", labels={"z": "z2"})), [0, 0, 0, 0]),
        (lambda around: around.set_node(node("e", labels={"z": "z2"})), [0, 0, 0, -1, 0]),
        (lambda around: around.remove_node("a"), [0, 0, -1]),
    ],
)
def test_domains_follow_the_cluster(change: Callable[[Cluster], object], expected: list[float]) -> None:
    one = kept(PODS_BY_ZONE, around := zones())
    assert one.values() == [0, 0, 0, -1]
    change(around)
    assert one.values() == expected == one.anew()


def test_nodes_come_with_the_pods_that_wait_for_them() -> None:
    one = kept(PODS_BY_ZONE, around := zones())
    one.values()
    around.set_pod(pod("p", on="late"))
    assert one.values() == [0, 0, 0, -1]
    around.set_node(node("late", labels={"z": "z2"}))
    assert one.values() == [0, 0, 1, -1, 1]


def test_sums_beyond_what_is_exact_do_not_tell_what_was() -> None:
    one = kept(f"sum(node.pods.count(true) * {2**52 + 1})", around := zones())
    for name in "abc":
        around.set_pod(pod(name, on=name))
        one.values()
    around.remove_pod("default.c")
    assert one.values() == one.anew() == [2.0**53 + 2] * 4


def test_a_key_that_the_pod_leaves_open_gives_no_domain() -> None:
    text = 'sum(node.pods.count(true)) by node.labels[pod.labels["key"]] ?? -1'
    one = kept(text, around := zones(), pod())
    assert one.values() == [-1] * 4
    around.set_pod(pod("p", on="a"))
    assert one.values() == [-1] * 4


def test_a_placement_looks_at_its_own_row_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    around = zones()
    held = [kept(f'{text} by node.labels["z"]', around) for text in BY_KEY[:7]]
    for one in held:
        one.values()
    monkeypatch.delattr(aggregates.Aggregate, "_compute")
    around.set_pod(pod("p", on="a", labels={"team": "a"}, requests={"cpu": 1}))
    for one in held:
        assert one.values()[:3] == one.anew()[:3]


def test_only_who_sees_another_value_is_reached() -> None:
    one = kept(f"if({PODS_BY_ZONE.removesuffix(' ?? -1')} >= 2, 1, 0) ?? 5", around := zones())
    one.values()
    for name, expected in (("p", [0]), ("q", [0, 0, 1]), ("r", [0])):
        around.set_pod(pod(name, on="a"))
        assert sorted(np.asarray(one.written()).tolist()) == expected
    around.set_node(node("b", labels={"z": "z2"}))
    assert set(np.asarray(one.written()).tolist()) == {1}


def test_an_empty_cluster_has_no_largest_domain() -> None:
    around = zones()
    one = kept("max(teams ?? 5) ?? 0", around)
    for name in "abcd":
        around.remove_node(name)
    assert one.values() == []
    assert float(run_program(one.program, one.context.frame(one.context.inputs(PODS[0]), np.zeros(0, np.int32)))) == 0  # type: ignore[arg-type]
