"""Counters of placed pods say what a count over the pods says, and cost what the pods are that they count."""

from __future__ import annotations

import gc
import random

import numpy as np
import pytest

from policysched.framework import Cluster
from policysched.language.ir.graph import POD_AGGREGATES, Typed
from policysched.model.objects import OwnerReference, Pod
from policysched.rules.compile.graphs import parts, walk
from policysched.rules.shared_values.aggregates import evaluation_context
from policysched.rules.shared_values.pod_aggregates import _count, counter
from policysched.state.placed.counter import PodCounter
from tests.build import cluster, node, pod
from tests.rules.build import compiled, scoring
from tests.work import lines

NODES = tuple(node(f"n{number}") for number in range(4))
COUNTS = (
    'node.pods.count(peer.labels["a"] == pod.labels["a"])',
    'node.pods.count(pod.labels["a"] == peer.labels["b"] and peer.priority > 1)',
    'node.pods.count(peer.namespace == pod.namespace and peer.labels["a"] != pod.labels["a"])',
    'node.pods.count(peer.labels["a"] == "v1")',
    'node.pods.count(peer.labels["a"] == (pod.labels["b"] ?? "v2"))',
    'node.pods.count(not (peer.labels["a"] == pod.labels["a"]))',
    'node.pods.count(peer.labels["a"] == pod.labels["a"] or peer.labels["b"] == pod.labels["b"])',
    'node.pods.count(peer.labels["a"] != pod.labels["a"])',
    'node.pods.count(peer.labels["a"] == peer.labels["b"])',
    "node.pods.count(peer.owner_name == pod.owner_name)",
    'node.pods.count(peer.labels["a"] in ["v1", "v2"] and peer.labels["b"] != pod.labels["b"])',
    'node.pods.count(starts_with(peer.labels["a"], pod.labels["b"]))',
    'node.pods.count(peer.namespace_labels["team"] == pod.labels["a"])',
    'node.pods.sum(peer.requests.cpu / 1m, peer.labels["a"] == pod.labels["a"])',
    'node.pods.sum(peer.priority * 0.1, peer.labels["a"] != pod.labels["a"])',
    "node.pods.sum(if(peer.requests.cpu > pod.requests.cpu, 0.3, peer.priority))",
)


def aggregate_of(text: str) -> Typed:
    root = compiled(scores=scoring(text)).scores[0].value.root
    return next(one for one in walk([root], parts) if one.op in POD_AGGREGATES)


def drawn(rng: random.Random, name: str, *, on: str = "", values: int = 3) -> Pod:
    labels = {key: f"v{rng.randrange(values)}" for key in "ab" if rng.random() < 0.8}
    made = pod(
        name,
        on=on,
        namespace=rng.choice(("x", "y")),
        labels=labels,
        requests={"cpu": f"{rng.randrange(4)}00m"},
        priority=rng.randrange(4),
    )
    if rng.random() < 0.5:
        owner = OwnerReference(kind="ReplicaSet", name=f"o{rng.randrange(2)}", uid="o", controller=True)
        made.metadata.owner_references.append(owner)
    return made


@pytest.mark.parametrize("values", [3, 60], ids=["few kinds", "many kinds"])
@pytest.mark.parametrize("text", COUNTS)
def test_a_counter_says_what_a_count_over_the_pods_says(text: str, values: int) -> None:
    rng = random.Random(f"{text}/{values}")
    graph, around = aggregate_of(text), cluster(*NODES)
    context = evaluation_context(around)
    there: list[Pod] = []
    held: list[tuple[PodCounter, Pod]] = []
    for step in range(150):
        if there and rng.random() < 0.3:
            gone = there.pop(rng.randrange(len(there)))
            around.drop(gone)
        else:
            there.append(drawn(rng, f"p{step}", on=rng.choice(NODES).metadata.name, values=values))
            around.set_pod(there[-1])
        if step % 25 == 0:
            held = held[-1:]  # what nobody holds is dropped, and indexes with it
            for name in ("q", "r"):
                of = drawn(rng, f"{name}{step}", values=values)
                kept = counter(context, graph, context.inputs(of))
                assert kept is not None
                held.append((kept, of))
        for kept, of in held:
            expected = _count(graph, context.inputs(of), context, np.arange(len(NODES)))
            assert kept.counts[: len(NODES)].tolist() == pytest.approx(expected.tolist(), rel=1e-12), text


def crowded(count: int) -> Cluster:
    """Pods that all have another value of a label."""
    pods = (pod(f"p{number}", on=f"n{number % 4}", labels={"a": f"v{number}"}) for number in range(count))
    return cluster(*NODES, *pods)


@pytest.mark.parametrize("text", COUNTS[:3])
def test_a_pod_class_costs_the_pods_that_have_its_value(text: str) -> None:
    def work(count: int) -> int:
        around, graph = crowded(count), aggregate_of(text)
        context = evaluation_context(around)
        before = context.inputs(pod("q", namespace="x", labels={"a": "v1"}))
        first = counter(context, graph, before)
        assert first is not None
        of = context.inputs(pod("r", namespace="x", labels={"a": "v2"}))
        made: list[PodCounter | None] = []
        counter_work = lines(lambda: made.append(counter(context, graph, of)))
        assert made
        return counter_work

    work(10)
    assert work(800) == work(200)


def test_a_pod_of_a_new_kind_is_weighed_by_the_counters_of_its_value_alone() -> None:
    def work(classes: int) -> int:
        around, graph = crowded(20), aggregate_of(COUNTS[0])
        context = evaluation_context(around)
        inputs = [context.inputs(pod("q", labels={"a": f"v{number}"})) for number in range(classes)]
        held = [counter(context, graph, of) for of in inputs]
        assert len(around.counters) == len(held) == classes
        return lines(lambda: around.set_pod(pod("new", on="n0", labels={"a": "other"})))

    assert work(200) == work(50)


def test_operations_on_many_kinds_of_pods_are_done_for_all_kinds_together() -> None:
    def work(more: str) -> int:
        around, graph = crowded(500), aggregate_of(f'node.pods.count(peer.labels["a"] != pod.labels["a"]{more})')
        context = evaluation_context(around)
        of = context.inputs(pod("q", labels={"a": "v1"}, priority=3))
        return lines(lambda: counter(context, graph, of))

    more = (f" and peer.priority + {number} > pod.priority - {number}" for number in range(6))
    assert work("".join(more)) < work(" and peer.priority > pod.priority") + 6 * 4 * 200


def test_kinds_of_pods_are_read_once_for_all_counters_until_they_change() -> None:
    around = crowded(500)
    context = evaluation_context(around)
    graphs = [aggregate_of(f'node.pods.count(peer.labels["a"] != "v{number}")') for number in range(6)]
    of = context.inputs(pod("q", labels={"a": "v1"}))
    held: list[PodCounter | None] = []
    first, *others = (lines(lambda graph=graph: held.append(counter(context, graph, of))) for graph in graphs[:4])
    assert all(other < 0.5 * first for other in others)
    around.set_pod(pod("new", on="n0", labels={"a": "v4", "b": "v1"}))
    around.drop(pod("p5", on="n1", labels={"a": "v5"}))
    held.extend(counter(context, graph, of) for graph in graphs[4:])
    for graph, kept in zip(graphs, held, strict=True):
        assert kept is not None
        assert kept.counts[: len(NODES)].tolist() == _count(graph, of, context, np.arange(len(NODES))).tolist()


def test_kept_kinds_are_few_where_there_are_many_signatures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("policysched.state.placed.counters.MOST_KINDS", 250)
    around = crowded(100)
    context = evaluation_context(around)
    of = context.inputs(pod("q", labels={"a": "v1"}))
    for number in range(5):
        graph = aggregate_of(f'node.pods.count(peer.labels["a"] != peer.labels["b{number}"] or peer.priority < 1)')
        kept = counter(context, graph, of)
        assert kept is not None
        assert kept.counts[: len(NODES)].tolist() == [25] * 4
        assert len(around.counters._kinds) <= 2


def test_an_index_goes_with_the_last_counter_that_is_filed_in_it() -> None:
    around, graph = crowded(10), aggregate_of(COUNTS[0])
    context = evaluation_context(around)
    of = context.inputs(pod("q", labels={"a": "v1"}))
    held = counter(context, graph, of)
    assert held is not None
    assert len(around.counters._indexes) == 1
    del held
    gc.collect()
    assert len(around.counters._indexes) == 0
    assert not around.counters._by_facet
