"""LeastAllocated, BalancedAllocation and ImageLocality: worked examples, and the reference on random clusters."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from policysched.framework import SKIP, Cluster
from policysched.model.objects import Container, ImageSource, Node, Pod, ResourceRequirements, Volume
from policysched.plugins.node_resources.allocation import ResourceWeight
from policysched.plugins.node_resources.balanced_allocation import NodeResourcesBalancedAllocation
from policysched.plugins.node_resources.fit import NodeResourcesFit
from policysched.plugins.nodes.image_locality import ImageLocality
from tests.build import MIB, cluster, node, pod
from tests.plugins import reference
from tests.plugins.ask import raw_scores, scored

GPU = "example.com/gpu"
MIXES: tuple[dict[str, int], ...] = (
    {"cpu": 1, "memory": 1},
    {"cpu": 3, "memory": 1, GPU: 5},
    {GPU: 2, "ephemeral-storage": 1},
    {"memory": 1, "pods": 7},
    {"cpu": 1, "memory": 1, "ephemeral-storage": 1, GPU: 1},
)


def weights(mix: Mapping[str, int]) -> tuple[ResourceWeight, ...]:
    return tuple(ResourceWeight(name, weight) for name, weight in mix.items())


@pytest.mark.parametrize(
    ("used", "requests", "score"),
    [
        ({}, {}, 97),
        ({}, {"cpu": "1", "memory": "2Gi"}, 75),
        ({"cpu": "3"}, {"cpu": "2", "memory": "2Gi"}, 36),
        ({"cpu": "2", "memory": "4Gi"}, {"cpu": "2", "memory": "4Gi"}, 0),
    ],
)
def test_least_allocated_examples(used: dict[str, str], requests: dict[str, str], score: int) -> None:
    placed = [pod("placed", on="n1", requests=used)] if used else []
    assert scored(NodeResourcesFit(), pod(requests=requests), cluster(node(), *placed)) == {"n1": score}


@pytest.mark.parametrize(
    ("used", "requests", "score"),
    [
        ({}, {"cpu": "1", "memory": "2Gi"}, 75),
        ({}, {"cpu": "4"}, 50),
        ({"cpu": "2"}, {"memory": "4Gi"}, 87),
        ({"cpu": "4", "memory": "8Gi"}, {"cpu": "1"}, 75),
    ],
)
def test_balanced_allocation_examples(used: dict[str, str], requests: dict[str, str], score: int) -> None:
    placed = pod("placed", on="n1", requests=used)
    assert scored(NodeResourcesBalancedAllocation(), pod(requests=requests), cluster(node(), placed)) == {"n1": score}


def test_balanced_allocation_skips_pods_that_request_nothing_of_it() -> None:
    plugin = NodeResourcesBalancedAllocation(weights({"cpu": 1, GPU: 1}))
    assert scored(plugin, pod(requests={"memory": "1Gi"}), cluster(node())) is SKIP


def test_scores_of_a_node_without_any_of_the_resources() -> None:
    state = cluster(node(allocatable={"cpu": "0"}))
    incoming = pod(requests={"cpu": "1", GPU: "1"})
    mix = weights({"cpu": 1, GPU: 1})
    assert scored(NodeResourcesFit(mix), incoming, state) == {"n1": 0}
    assert scored(NodeResourcesBalancedAllocation(mix), incoming, state) == {"n1": 75}


def amount(draw: random.Random, most: int, unit: str = "") -> str:
    return f"{draw.randint(1, most)}{unit}"


def random_requests(draw: random.Random) -> dict[str, str]:
    drawn = {
        "cpu": amount(draw, 3000, "m"),
        "memory": amount(draw, 4 << 30),
        "ephemeral-storage": amount(draw, 9000),
        GPU: amount(draw, 3),
    }
    return {name: text for name, text in drawn.items() if draw.random() < 0.6}


def random_node(draw: random.Random, name: str) -> Node:
    extra = {"ephemeral-storage": amount(draw, 20000), GPU: amount(draw, 8)}
    kept = {key: text for key, text in extra.items() if draw.random() < 0.6}
    if draw.random() < 0.1:
        kept["memory"] = "0"
    return node(name, allocatable={"cpu": amount(draw, 9000, "m"), "memory": amount(draw, 9 << 30)} | kept)


def random_cluster(draw: random.Random, size: int) -> tuple[Cluster, list[Node], dict[str, list[Pod]]]:
    nodes = [random_node(draw, f"n{number}") for number in range(size)]
    placed: dict[str, list[Pod]] = {one.metadata.name: [] for one in nodes}
    for number in range(size * 2):
        one = pod(f"p{number}", on=draw.choice(nodes).metadata.name, requests=random_requests(draw))
        placed[one.spec.node_name].append(one)
    return cluster(*nodes, *(one for pods in placed.values() for one in pods)), nodes, placed


@pytest.mark.parametrize("mix", MIXES)
def test_scores_of_resources_equal_the_reference(mix: dict[str, int]) -> None:
    draw = random.Random(len(mix))
    state, nodes, placed = random_cluster(draw, 90)
    subset = np.array(sorted(draw.sample(range(90), 30)), np.intp)
    fit, balance = NodeResourcesFit(weights(mix)), NodeResourcesBalancedAllocation(weights(mix))
    for _ in range(12):
        incoming = pod(requests=random_requests(draw) | {"cpu": amount(draw, 2000, "m"), "memory": "64Mi"})
        least = [
            reference.least_allocated(reference.used(incoming, one, placed[one.metadata.name], mix)) for one in nodes
        ]
        assert raw_scores(fit, incoming, state).tolist() == least
        assert raw_scores(fit, incoming, state, subset).tolist() == [least[row] for row in subset]
        if balance.prepare_score(incoming, state) is not SKIP:
            even = [reference.balanced(incoming, one, placed[one.metadata.name], list(mix)) for one in nodes]
            assert raw_scores(balance, incoming, state).tolist() == even
            assert raw_scores(balance, incoming, state, subset).tolist() == [even[row] for row in subset]


def test_scores_of_resources_equal_the_reference_on_nodes_that_have_everything() -> None:
    draw = random.Random(3)
    full = {"ephemeral-storage": "20000", GPU: "8"}
    nodes = [node(f"n{number}", allocatable=full | {"cpu": amount(draw, 90)}) for number in range(40)]
    placed = [pod(f"p{number}", on=f"n{number % 40}", requests=random_requests(draw)) for number in range(80)]
    state = cluster(*nodes, *placed)
    incoming = pod(requests=random_requests(draw) | {"cpu": "1", GPU: "1"})
    for mix in MIXES:
        plugin = NodeResourcesBalancedAllocation(weights(mix))
        expected = [
            reference.balanced(incoming, one, [p for p in placed if p.spec.node_name == one.metadata.name], list(mix))
            for one in nodes
        ]
        assert raw_scores(plugin, incoming, state).tolist() == expected


def containers(*images: str) -> list[Container]:
    return [Container(image=image) for image in images]


@pytest.mark.parametrize(
    ("images", "scores"),
    [
        (["unknown"], [0, 0]),
        (["big"], [48, 0]),
        (["big:latest"], [48, 0]),
        (["big:v2"], [0, 0]),
        (["huge"], [100, 0]),
        (["both"], [7, 7]),
        (["big", "unknown"], [24, 0]),
        (["big", "big"], [49, 0]),
        (["registry:5000/x"], [0, 22]),
    ],
)
def test_image_locality_examples(images: Sequence[str], scores: list[int]) -> None:
    state = cluster(
        node("a", images={"big:latest": 1000 * MIB, "huge:latest": 9000 * MIB, "both:latest": 100 * MIB}),
        node("b", images={"both:latest": 300 * MIB, "registry:5000/x:latest": 480 * MIB}),
    )
    answer = scored(ImageLocality(), pod(containers=containers(*images)), state)
    assert answer == {"a": scores[0], "b": scores[1]}


def test_image_locality_counts_init_containers_and_volumes() -> None:
    volume = Volume(name="v", image=ImageSource(reference="data"))
    incoming = pod(init_containers=containers("tool"), containers=containers("app"), volumes=[volume])
    nodes = [node("a", images={"tool:latest": 600 * MIB, "data:latest": 700 * MIB}), node("b")]
    assert scored(ImageLocality(), incoming, cluster(*nodes)) == {"a": 31, "b": 0}
    assert scored(ImageLocality(volumes_count=True), incoming, cluster(*nodes)) == {"a": 21, "b": 0}


def test_image_locality_equals_the_reference() -> None:
    draw = random.Random(11)
    names = [f"i{number}:latest" for number in range(12)]
    nodes = [
        node(f"n{number}", images={name: draw.randint(1, 2000 * MIB) for name in draw.sample(names, draw.randrange(8))})
        for number in range(50)
    ]
    state = cluster(*nodes)
    for _ in range(25):
        incoming = pod(containers=containers(*draw.choices(names, k=draw.randint(1, 4))), image="ignored")
        expected = [reference.image_locality(incoming, one, nodes) for one in nodes]
        assert raw_scores(ImageLocality(), incoming, state).tolist() == expected


def test_image_locality_generation_moves_with_images_and_the_number_of_nodes() -> None:
    state = cluster(node("a", images={"x:latest": 1}))
    plugin = ImageLocality()
    generations = [plugin.stamp(state)]
    state.set_pod(pod(on="a"))
    assert plugin.stamp(state) == generations[0]
    state.set_node(node("b"))
    generations.append(plugin.stamp(state))
    state.set_node(node("b", images={"x:latest": 1}))
    generations.append(plugin.stamp(state))
    state.remove_node("b")
    generations.append(plugin.stamp(state))
    assert len(set(generations)) == 4


def test_least_allocated_counts_containers_without_requests() -> None:
    bare = pod(containers=[Container(), Container(resources=ResourceRequirements(requests={"cpu": "2"}))])
    assert scored(NodeResourcesFit(), bare, cluster(node())) == {"n1": (47 + 95) // 2}
