"""MostAllocated and RequestedToCapacityRatio: worked examples, the curve, and the reference on random clusters."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

from policysched.framework import Cluster
from policysched.plugins.curves import ShapePoint, score_at
from policysched.plugins.node_resources.allocation import (
    CPU_AND_MEMORY,
    RequestedToCapacityRatio,
    ResourceWeight,
    Strategy,
    most_allocated,
)
from policysched.plugins.node_resources.fit import NodeResourcesFit
from tests.build import cluster, node, pod
from tests.plugins import reference
from tests.plugins.ask import raw_scores, scored
from tests.plugins.node_resources.test_resource_scores import MIXES, amount, random_cluster, random_requests, weights

GPU, FPGA = "example.com/gpu", "example.com/fpga"
DOWN = ((0, 10), (100, 0))
UP = ((0, 0), (100, 10))
Curve = Sequence[tuple[int, int]]


def ratio(curve: Curve) -> RequestedToCapacityRatio:
    return RequestedToCapacityRatio([ShapePoint(utilization=level, score=score) for level, score in curve])


def fit(strategy: Strategy, *resources: tuple[str, int]) -> NodeResourcesFit:
    return NodeResourcesFit([ResourceWeight(*one) for one in resources] or CPU_AND_MEMORY, strategy=strategy)


def two_nodes() -> Cluster:
    """A node of 4 cores and 8Gi, and one of twice that with pods of 2 cores and 4Gi."""
    big = node("big", allocatable={"cpu": "8", "memory": "16Gi"})
    return cluster(node("small"), big, pod("placed", on="big", requests={"cpu": "2", "memory": "4Gi"}))


@pytest.mark.parametrize(
    ("requests", "scores"),
    [
        ({"cpu": "1", "memory": "2Gi"}, {"small": 25, "big": 37}),
        ({"cpu": "4", "memory": "4Gi"}, {"small": 75, "big": 62}),
        ({"cpu": "5", "memory": "8Gi"}, {"small": 100, "big": 81}),
        ({}, {"small": 2, "big": 26}),
    ],
    ids=["smaller", "a whole one", "more than there is", "nothing"],
)
def test_most_allocated_examples(requests: dict[str, str], scores: dict[str, int]) -> None:
    assert scored(fit(most_allocated), pod(requests=requests), two_nodes()) == scores


def test_most_allocated_counts_pods_without_requests_with_what_they_weigh_at_least() -> None:
    small = {"cpu": "250m", "memory": "1000Mi"}
    nodes = [node("empty", allocatable=small), node("busy", allocatable=small)]
    state = cluster(*nodes, pod("a", on="busy"), pod("b", on="busy"))
    assert scored(fit(most_allocated), pod(), state) == {"empty": (40 + 20) // 2, "busy": (100 + 60) // 2}


@pytest.mark.parametrize(
    ("resources", "score"),
    [([("cpu", 1), ("memory", 2)], (75 + 2 * 50) // 3), ([("cpu", 9), ("memory", 1)], (9 * 75 + 50) // 10)],
)
def test_most_allocated_weighs_resources(resources: list[tuple[str, int]], score: int) -> None:
    incoming = pod(requests={"cpu": "3", "memory": "4Gi"})
    assert scored(fit(most_allocated, *resources), incoming, cluster(node())) == {"n1": score}


@pytest.mark.parametrize(
    ("gpus", "scores"),
    [("0", {"none": 50, "four": 50, "ten": 50}), ("2", {"none": 50, "four": 50, "ten": 40})],
    ids=["not requested", "requested"],
)
def test_most_allocated_overlooks_extended_resources_that_are_not_there_or_not_wanted(
    gpus: str, scores: dict[str, int]
) -> None:
    state = cluster(
        node("none"), node("four", allocatable={GPU: "4"}), node("ten", allocatable={GPU: "10", "cpu": "4"})
    )
    incoming = pod(requests={"cpu": "2", "memory": "4Gi", GPU: gpus})
    assert scored(fit(most_allocated, ("cpu", 1), ("memory", 1), (GPU, 1)), incoming, state) == scores


@pytest.mark.parametrize(
    ("requests", "scores"),
    [
        ({}, {"small": 98, "big": 74}),
        ({"cpu": "3", "memory": "4Gi"}, {"small": 38, "big": 44}),
        ({"cpu": "5", "memory": "8Gi"}, {"small": 0, "big": 19}),
    ],
    ids=["nothing", "some", "more than there is"],
)
def test_ratio_examples_with_a_falling_curve(requests: dict[str, str], scores: dict[str, int]) -> None:
    assert scored(fit(ratio(DOWN)), pod(requests=requests), two_nodes()) == scores


@pytest.mark.parametrize(
    ("wanted", "scores"),
    [({}, {"a": 0, "b": 0}), ({GPU: "2"}, {"a": 2, "b": 10}), ({GPU: "4"}, {"a": 5, "b": 10})],
)
def test_ratio_packs_one_extended_resource(wanted: dict[str, str], scores: dict[str, int]) -> None:
    nodes = [node("a", allocatable={GPU: "8"}), node("b", allocatable={GPU: "4"})]
    state = cluster(*nodes, pod("placed", on="b", requests={GPU: "2"}))
    assert scored(fit(ratio(((0, 0), (100, 1))), (GPU, 1)), pod(requests=wanted), state) == scores


@pytest.mark.parametrize(
    ("wanted", "scores"),
    [
        ({}, {"a": 0, "b": 0}),
        ({GPU: "2", FPGA: "2"}, {"a": 4, "b": 3}),
        ({GPU: "4", FPGA: "2"}, {"a": 5, "b": 5}),
    ],
)
def test_ratio_packs_two_extended_resources_by_weight(wanted: dict[str, str], scores: dict[str, int]) -> None:
    state = cluster(node("a", allocatable={GPU: "8", FPGA: "4"}), node("b", allocatable={GPU: "4", FPGA: "8"}))
    plugin = fit(ratio(((0, 0), (100, 1))), (GPU, 3), (FPGA, 5))
    assert scored(plugin, pod(requests=wanted), state) == scores


@pytest.mark.parametrize(
    ("free", "score"),
    [({"cpu": "1"}, 50), ({"cpu": "4"}, 100), ({"cpu": "2", "memory": "6Gi"}, 63)],
    ids=["nothing of the other", "all of the other", "halves go up"],
)
def test_ratio_leaves_out_what_scores_nothing_and_rounds_halves_up(free: dict[str, str], score: int) -> None:
    # rising from a quarter: 1 core of 4 and 2Gi of 8Gi are worth nothing
    curve = ((25, 0), (50, 5), (100, 10))
    incoming = pod(requests={"memory": "4Gi"} | free) if score != 100 else pod(requests=free | {"memory": "2Gi"})
    assert scored(fit(ratio(curve)), incoming, cluster(node())) == {"n1": score}


@pytest.mark.parametrize(
    ("curve", "scores"),
    [
        (((10, 1), (90, 9)), {0: 10, 10: 10, 15: 15, 50: 50, 90: 90, 100: 90}),
        (((0, 2), (40, 10), (100, 0)), {0: 20, 20: 60, 40: 100, 70: 50, 100: 0}),
        (((0, 2), (40, 2), (100, 2)), {0: 20, 30: 20, 100: 20}),
        (((30, 7),), {0: 70, 30: 70, 100: 70}),
        # a third of the way down from 100 to 0 is 33.3 less: towards zero 33, so 67
        (((0, 10), (3, 0)), {1: 67, 2: 34, 3: 0, 4: 0}),
        (((0, 0), (3, 10)), {1: 33, 2: 66, 3: 100}),
    ],
)
def test_the_curve_is_straight_between_its_points_in_whole_numbers(curve: Curve, scores: dict[int, int]) -> None:
    points = [ShapePoint(utilization=level, score=score) for level, score in curve]
    assert {level: score_at(points, level) for level in scores} == scores


def test_a_node_without_any_of_the_resources_scores_nothing() -> None:
    state = cluster(node(allocatable={"cpu": "0"}))
    incoming = pod(requests={"cpu": "1", GPU: "1"})
    for strategy in (most_allocated, ratio(DOWN), ratio(UP)):
        assert scored(fit(strategy, ("cpu", 1), (GPU, 1)), incoming, state) == {"n1": 0}


CURVES: tuple[Curve, ...] = (UP, DOWN, ((20, 0), (60, 10), (80, 3)), ((50, 4),), ((0, 0), (7, 3), (8, 0), (99, 10)))


@pytest.mark.parametrize("mix", MIXES)
def test_strategies_equal_the_reference(mix: dict[str, int]) -> None:
    draw = random.Random(len(mix))
    state, nodes, placed = random_cluster(draw, 60)
    subset = np.array(sorted(draw.sample(range(60), 20)), np.intp)
    most = NodeResourcesFit(weights(mix), strategy=most_allocated)
    for _ in range(8):
        incoming = pod(requests=random_requests(draw) | {"cpu": amount(draw, 2000, "m")})
        looked = [reference.used(incoming, one, placed[one.metadata.name], mix) for one in nodes]
        expected = [reference.most_allocated(found) for found in looked]
        assert raw_scores(most, incoming, state).tolist() == expected
        assert raw_scores(most, incoming, state, subset).tolist() == [expected[row] for row in subset]
        for curve in CURVES:
            plugin = NodeResourcesFit(weights(mix), strategy=ratio(curve))
            expected = [reference.requested_to_capacity_ratio(found, curve) for found in looked]
            assert raw_scores(plugin, incoming, state).tolist() == expected
            assert raw_scores(plugin, incoming, state, subset).tolist() == [expected[row] for row in subset]
