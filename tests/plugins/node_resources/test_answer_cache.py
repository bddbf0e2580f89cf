"""Answers that are kept for all classes that ask for the same: they follow every change, row by row or all at once."""

from __future__ import annotations

import gc
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from policysched.framework import Cluster, Rows
from policysched.plugins.node_resources.allocation import (
    ResourceWeight,
    ScoredAmounts,
    SharedScores,
    least_allocated,
    least_allocated_on_row,
    most_allocated,
    prepare_allocation,
)
from policysched.plugins.node_resources.answer_cache import MOST_ONE_BY_ONE, CachedAnswers
from policysched.plugins.node_resources.balanced_allocation import NodeResourcesBalancedAllocation
from policysched.plugins.node_resources.fit import NodeResourcesFit
from policysched.state.tables import journal
from policysched.state.tables.amounts import WIDEST
from policysched.state.tables.columns import FIRST_CAPACITY
from tests.build import cluster, device_class, node, pod

GPU, TPU = "nvidia.com/gpu", "example.com/tpu"
PAIR = (ResourceWeight("cpu"), ResourceWeight("memory"))
MIXED = (ResourceWeight("cpu", 3), ResourceWeight("memory", 1), ResourceWeight(GPU, 5))
PLUGINS: dict[str, Callable[[], Any]] = {
    "fits": NodeResourcesFit,
    "least of two": lambda: NodeResourcesFit(PAIR),
    "least of three": lambda: NodeResourcesFit(MIXED),
    "most of three": lambda: NodeResourcesFit(MIXED, strategy=most_allocated),
    "balance of two": lambda: NodeResourcesBalancedAllocation(PAIR),
    "balance of three": lambda: NodeResourcesBalancedAllocation(MIXED),
}


def capacity(draw: random.Random) -> dict[str, str]:
    """What a node has: now and then nothing of a resource, or more than 64 bits hold a hundred times."""
    memory = draw.choice([str(draw.randrange(1, 1 << 36)), "0", str(2 * WIDEST + draw.randrange(9)), "64Gi"])
    return {"cpu": f"{draw.choice([0, draw.randrange(1, 64_000)])}m", "memory": memory, GPU: str(draw.randrange(3))}


class Life:
    """Nodes that come and change, and pods that come and go."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.cluster = cluster(*(node(f"n{number}", allocatable=capacity(self.draw)) for number in range(20)))
        self.cluster.take(device_class("tpus", TPU))
        self._count = 20
        self._pods: list[str] = []

    def step(self) -> None:
        kind = self.draw.random()
        if kind < 0.1:
            self._count += 1
            self.cluster.set_node(node(f"n{self._count}", allocatable=capacity(self.draw)))
        elif kind < 0.2:
            self.cluster.set_node(node(f"n{self.draw.randrange(20)}", allocatable=capacity(self.draw)))
        elif kind < 0.4 and self._pods:
            self.cluster.remove_pod(self._pods.pop(self.draw.randrange(len(self._pods))))
        else:
            self._place(f"p{self.draw.randrange(10**9)}")

    def _place(self, name: str) -> None:
        cpu, memory = self.draw.randrange(1, 9000), self.draw.randrange(1, 1 << 34)
        made = pod(name, on=f"n{self.draw.randrange(20)}", requests={"cpu": f"{cpu}m", "memory": str(memory), GPU: "1"})
        self.cluster.set_pod(made)
        self._pods.append(made.metadata.uid)


def state_of(kind: str, plugin: Any, made: Cluster) -> Any:
    incoming = pod(requests={"cpu": "700m", "memory": "3Gi", GPU: "1", TPU: "1"})
    prepare = plugin.prepare_filter if kind == "fits" else plugin.prepare_score
    return prepare(incoming, made)


def answers(kind: str, plugin: Any, state: Any, made: Cluster) -> list[int]:
    ask = plugin.filter if kind == "fits" else plugin.score
    found: list[int] = ask(state, slice(0, made.nodes.size)).tolist()
    return found


@pytest.mark.parametrize("ring", [journal.RING, 4])
@pytest.mark.parametrize("pace", [1, MOST_ONE_BY_ONE + 2])
@pytest.mark.parametrize("kind", PLUGINS)
def test_kept_answers_are_those_of_all_rows_asked_anew(
    monkeypatch: pytest.MonkeyPatch, kind: str, pace: int, ring: int
) -> None:
    monkeypatch.setattr(journal, "RING", ring)
    life = Life(pace + ring)
    plugin = PLUGINS[kind]()
    state = state_of(kind, plugin, life.cluster)
    for number in range(600):
        life.step()
        if number % pace == 0:
            fresh = PLUGINS[kind]()
            expected = answers(kind, fresh, state_of(kind, fresh, life.cluster), life.cluster)
            assert answers(kind, plugin, state, life.cluster) == expected
    assert len(set(expected)) > 1
    assert life.cluster.nodes.columns.capacity > FIRST_CAPACITY


def asked(made: Cluster) -> tuple[CachedAnswers, list[int]]:
    """Scores together with the numbers of rows that are worked out as arrays."""
    sizes: list[int] = []

    def of_rows(one: ScoredAmounts, rows: Rows) -> Any:
        scores = least_allocated(one, rows)
        sizes.append(scores.size)
        return scores

    wanted = prepare_allocation(pod(), made, PAIR, nonzero=True)
    return SharedScores(of_rows, least_allocated_on_row).of(wanted, made), sizes


def test_a_placement_is_followed_without_arrays_and_many_of_them_together() -> None:
    made = cluster(*(node(f"n{number}") for number in range(9)))
    kept, sizes = asked(made)
    kept.of(slice(0, 9))
    assert sizes == [9]
    made.set_pod(pod("p", on="n3", requests={"cpu": "1"}))
    kept.of(np.array([3]))
    kept.of(np.array([1, 3]))
    assert sizes == [9]
    for number in range(MOST_ONE_BY_ONE + 1):
        made.set_pod(pod(f"q{number}", on="n4", requests={"cpu": "1"}))
    kept.of(np.array([3]))
    assert sizes == [9, MOST_ONE_BY_ONE + 1]


@pytest.mark.parametrize("plugin", [NodeResourcesFit(), NodeResourcesBalancedAllocation()])
def test_pods_that_ask_for_the_same_share_scores_as_long_as_one_waits(plugin: Any) -> None:
    made = cluster(node())
    small, alike, large = (
        pod(name, requests={"cpu": cpu}, labels={"app": name}) for name, cpu in (("a", "1"), ("b", "1000m"), ("c", "2"))
    )
    held = plugin.prepare_score(small, made)
    assert plugin.prepare_score(alike, made) is held
    assert plugin.prepare_score(large, made) is not held
    assert plugin.prepare_score(alike, cluster(node())) is not held
    plugin.score(held, slice(0, 1))
    assert held._answers.size
    del held
    gc.collect()
    assert plugin.prepare_score(small, made)._answers.size == 0


def test_pods_share_where_they_fit_unless_device_classes_say_otherwise() -> None:
    made, plugin = cluster(node()), NodeResourcesFit()
    first = plugin.prepare_filter(pod("a", requests={TPU: "1"}), made)
    assert plugin.prepare_filter(pod("b", requests={TPU: "1"}), made) is first
    made.take(device_class("tpus", TPU))
    other = plugin.prepare_filter(pod("b", requests={TPU: "1"}), made)
    assert other is not first
    assert plugin.filter(first, slice(0, 1)).tolist() != plugin.filter(other, slice(0, 1)).tolist() == [0]
