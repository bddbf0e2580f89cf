"""Pods whose namespace is not known: filters that need its labels wait, everything else goes on."""

from __future__ import annotations

from typing import Any

import pytest

from policysched.framework import SKIP, Cluster, Code, Status
from policysched.model.objects import Metadata, Namespace
from tests.build import cluster, node, pod
from tests.plugins.ask import rejected
from tests.rules.build import Spec, filtering, plugin, scoring

GOLD: Spec = {"namespaceSelector": {"matchLabels": {"tier": "gold"}}}
OWN = 'pod.namespace_labels["tier"]'
PEER = 'node.pods.any(peer.namespace_labels["tier"] == "gold")'
X = filtering('node.labels["k"] == "x"')


def around(*known: str, **labels: str) -> Cluster:
    made = cluster(node("a"), node("b"))
    for name in known:
        made.set_namespace(Namespace(metadata=Metadata(name=name, labels=labels)))
    return made


@pytest.mark.parametrize(
    ("spec", "waits"),
    [
        (GOLD | {"filters": X}, True),
        (
            {"namespaceSelector": {"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}, "filters": X},
            True,
        ),
        ({"namespaceSelector": {}, "filters": X}, False),
        ({"filters": X}, False),
        ({"appliesTo": f'{OWN} == "gold"', "filters": X}, True),
        ({"appliesTo": f'({OWN} ?? "gold") != "gold"', "filters": X}, True),
        ({"filters": filtering('node.labels["k"] == "x"', when=f'{OWN} == "gold"')}, True),
        ({"filters": filtering(f'({OWN} ?? "free") == "free"')}, True),
        ({"filters": filtering(f'node.labels[{OWN}] == "x"')}, True),
        ({"filters": filtering(f'{OWN} == "x"', when='pod.labels["a"] == "b"')}, False),
        ({"appliesTo": 'pod.labels["a"] == "b"', "filters": filtering(f'{OWN} == "x"')}, False),
        (GOLD | {"filters": X, "podSelector": {"matchLabels": {"a": "b"}}}, False),
        (GOLD | {"filters": X, "schedulerNames": ["other"]}, False),
        (GOLD | {"filters": filtering('node.labels["k"] == "x"', when='pod.labels["a"] == "b"')}, False),
        (GOLD | {"scores": scoring(1)}, False),
        ({"scores": scoring([f'{OWN} == "gold" → 1', "else → 0"]), "filters": X}, False),
    ],
)
def test_filters_that_need_labels_of_an_unknown_namespace_keep_no_node(spec: Spec, waits: bool) -> None:
    state: Any = plugin(**spec).prepare_filter(pod(namespace="new"), around("default"))
    assert isinstance(state, Status) is waits
    if waits:
        assert (state.code, state.message) == (
            Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
            'policy p: namespace "new" is not known yet',
        )


def test_a_namespace_that_becomes_known_decides() -> None:
    made, world = plugin(**GOLD, filters=X), around()
    of = pod(namespace="new")
    assert made.reads_own_namespace
    assert isinstance(made.prepare_filter(of, world), Status)
    world.set_namespace(Namespace(metadata=Metadata(name="new")))
    assert made.prepare_filter(of, world) is SKIP
    world.set_namespace(Namespace(metadata=Metadata(name="new", labels={"tier": "gold"})))
    assert rejected(made, of, world) == {"a", "b"}


def test_pods_of_the_system_do_not_wait() -> None:
    of = pod(namespace="new", priority=2_000_000_000)
    assert plugin(**GOLD, filters=X).prepare_filter(of, around()) is SKIP
    assert isinstance(plugin(**GOLD, filters=X, includeSystemPods=True).prepare_filter(of, around()), Status)


def test_scores_go_on_without_the_namespace() -> None:
    made = plugin(**GOLD, filters=X, scores=scoring(1))
    assert made.prepare_score(pod(namespace="new"), around()) is SKIP


@pytest.mark.parametrize("text", [f"not {PEER}", f"count({PEER}) < 1", f"not {PEER} or cluster.nodes > 9"])
def test_filters_that_read_namespaces_of_placed_pods_wait_for_all_of_them(text: str) -> None:
    made, world = plugin(filters=filtering(text)), around("default", tier="tin")
    assert rejected(made, pod(), world) == set()
    generation = made.stamp(world)
    world.set_pod(pod("x", on="a", namespace="new"))
    world.set_pod(pod("y", on="a", namespace="new"))
    assert made.stamp(world) != generation
    state: Any = made.prepare_filter(pod(), world)
    assert isinstance(state, Status)
    assert state.message == 'policy p: namespace "new" is not known yet'
    generation = made.stamp(world)
    world.remove_pod("new.x")
    assert isinstance(made.prepare_filter(pod(), world), Status)
    world.remove_pod("new.y")
    assert made.stamp(world) != generation
    assert rejected(made, pod(), world) == set()


def test_a_namespace_that_goes_before_its_pods_is_unknown_until_they_went() -> None:
    made, world = plugin(filters=filtering(f"not {PEER}")), around("default", "old")
    world.set_pod(pod("x", on="a", namespace="old"))
    world.remove_namespace("old")
    assert world.unknown_namespaces == {"old"}
    assert isinstance(made.prepare_filter(pod(), world), Status)
    world.remove_pod("old.x")
    assert world.unknown_namespaces == set()
    assert rejected(made, pod(), world) == set()
