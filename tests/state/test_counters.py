"""What pods weigh together on their rows, kept up to date as they come and go."""

from __future__ import annotations

import functools
import gc
import math
import random
from collections.abc import Iterable

import numpy as np
import pytest

from policysched.framework import Cluster
from policysched.model.objects import Pod
from policysched.state.placed.pod_kinds import Alike
from policysched.state.placed.pods import FIRST_SLOTS, PlacedPod
from policysched.state.tables.columns import FIRST_CAPACITY
from tests.build import cluster, node, pod
from tests.state.signatures_build import REPELLING, WEB, signature


def is_web(placed: PlacedPod) -> float:
    return float(placed.pod.metadata.labels == WEB)


def cpu_share(placed: PlacedPod) -> float:
    return dict(placed.pod_resources.amounts).get("cpu", 0) * 0.001


def counts(made: Cluster, names: Iterable[str] = ("n1", "n2")) -> list[float]:
    counter = made.counters.of("web", is_web)
    return [float(counter.counts[made.nodes.row_of[name]]) for name in names]


def test_a_counter_counts_the_pods_that_are_there() -> None:
    made = cluster(node("n1"), node("n2"), pod("a", on="n1", labels=WEB), pod("b", on="n2"))
    assert counts(made) == [1, 0]


def test_a_counter_follows_placements_removals_updates_and_assumptions() -> None:
    made = cluster(node("n1"), node("n2"))
    counter = made.counters.of("web", is_web)
    made.set_pod(pod("a", on="n1", labels=WEB))
    made.set_pod(pod("b", on="n1"))
    assert (counts(made), counter.stamp) == ([1, 0], 1)
    made.set_pod(pod("b", on="n1", labels=WEB))
    made.assume(pod("c", labels=WEB), made.nodes.row_of["n2"])
    assert (counts(made), counter.stamp) == ([2, 1], 3)
    made.forget("default.c")
    made.remove_pod("default.a")
    assert (counts(made), counter.stamp) == ([1, 0], 5)


def test_equal_keys_share_a_counter_and_a_signature_is_weighed_once() -> None:
    asked: list[str] = []

    def weigh(placed: PlacedPod) -> float:
        asked.append(placed.pod.metadata.name)
        return 2.0

    made = cluster(node("n1"), pod("a", on="n1", labels=WEB))
    counter = made.counters.of("k", weigh)
    assert made.counters.of("k", weigh) is counter
    for name in "bcd":
        made.set_pod(pod(name, on="n1", labels=WEB))
    made.set_pod(pod("e", on="n1"))
    assert asked == ["a", "e"]
    assert counter.counts[0] == 10


def test_signatures_of_one_weight_are_weighed_once_as_a_counter_begins() -> None:
    asked: list[str] = []

    def weigh(placed: PlacedPod) -> float:
        asked.append(placed.pod.metadata.labels.get("app", ""))
        return float(placed.pod.metadata.labels.get("app") == "web")

    labels = [{"app": app, "tier": str(number)} for app in ("web", "db") for number in range(5)]
    made = cluster(node("n1"), *(pod(f"p{place}", on="n1", labels=own) for place, own in enumerate(labels)))
    counter = made.counters.of(
        "k",
        weigh,
        alike=Alike(
            lambda placed: placed.pod.metadata.labels.get("app"), lambda placed: [weigh(one) for one in placed]
        ),
    )
    assert (sorted(asked), counter.counts[0], sorted(counter.weights.values())) == (["db", "web"], 5, [1.0] * 5)
    made.set_pod(pod("later", on="n1", labels={"app": "web", "tier": "9"}))
    made.remove_pod("default.p0")
    assert (counter.counts[0], len(asked)) == (5, 3)


def test_a_counter_that_nobody_holds_is_dropped() -> None:
    made = cluster(node("n1"), pod("a", on="n1", labels=WEB))
    counter = made.counters.of("web", is_web)
    assert len(made.counters) == 1
    del counter
    gc.collect()
    assert len(made.counters) == 0
    made.set_pod(pod("b", on="n1", labels=WEB))
    assert counts(made, ["n1"]) == [2]


def test_counts_of_rows_without_a_node_wait_for_it() -> None:
    made = cluster(pod("a", on="n1", labels=WEB))
    counter = made.counters.of("web", is_web)
    made.set_node(node("n1"))
    made.remove_node("n1")
    assert counter.counts[made.nodes.row_of["n1"]] == 1


def test_a_freed_row_counts_nothing() -> None:
    made = cluster(node("n1"), pod("a", on="n1", labels=WEB))
    counter = made.counters.of("web", is_web)
    made.remove_pod("default.a")
    made.remove_node("n1")
    made.set_node(node("n2"))
    assert (made.nodes.row_of["n2"], counter.counts[0]) == (0, 0)


def test_rows_pods_and_capacity_grow() -> None:
    made = cluster()
    counter = made.counters.of("web", is_web)
    for number in range(2 * max(FIRST_CAPACITY, FIRST_SLOTS) + 1):
        made.set_node(node(f"n{number}"))
        made.set_pod(pod(f"p{number}", on=f"n{number}", labels=WEB))
    assert counter.counts.sum() == len(made.pods) == 2 * max(FIRST_CAPACITY, FIRST_SLOTS) + 1
    used = made.pods.rows >= 0
    assert sorted(made.pods.rows[used].tolist()) == list(range(len(made.pods)))


def test_fractions_do_not_depend_on_the_order_of_events() -> None:
    made, rng = cluster(node("n1")), random.Random(1)
    counter = made.counters.of("share", cpu_share, fractions=True)
    names = [f"p{number}" for number in range(40)]
    placed: dict[str, Pod] = {}
    for _ in range(400):
        name = rng.choice(names)
        if name in placed:
            made.remove_pod(f"default.{placed.pop(name).metadata.name}")
        else:
            placed[name] = pod(name, on="n1", requests={"cpu": f"{rng.randint(1, 999)}m"})
            made.set_pod(placed[name])
    fresh = cluster(node("n1"), *placed.values()).counters.of("share", cpu_share, fractions=True)
    exact = math.fsum(cpu_share(one) for one in made.pods.by_id.values())
    assert counter.counts[0] == fresh.counts[0] == exact


def test_a_random_life_gives_the_counts_of_a_fresh_load() -> None:
    rng, made = random.Random(7), cluster(*(node(f"n{number}") for number in range(5)))
    counter = made.counters.of("web", is_web)
    placed: dict[str, Pod] = {}
    for step in range(2000):
        name = f"p{rng.randrange(60)}"
        if name in placed and rng.random() < 0.4:
            del placed[name]
            made.remove_pod(f"default.{name}")
            continue
        on = placed[name].spec.node_name if name in placed else f"n{rng.randrange(5)}"
        labels = WEB if rng.random() < 0.5 else {"app": str(step % 7)}
        placed[name] = pod(name, on=on, labels=labels)
        made.set_pod(placed[name])
    fresh = cluster(*(node(f"n{number}") for number in range(5)), *placed.values())
    assert counts(made, made.nodes.row_of) == counts(fresh, made.nodes.row_of)
    assert len(made.signatures.present) <= 60
    assert counter.weights.keys() == {
        one.signature for one in made.pods.by_id.values() if one.pod.metadata.labels == WEB
    }


# Whom a counter may count


def asking(weighed: list[str], placed: PlacedPod) -> float:
    weighed.append(placed.pod.metadata.name)
    return is_web(placed)


def test_a_counter_weighs_only_signatures_with_what_it_counts_among() -> None:
    made = cluster(
        pod("a", on="n1", labels=WEB),
        pod("b", on="n1", namespace="x", labels=WEB),
        pod("c", on="n1", labels={"app": "db"}),
    )
    weighed: list[str] = []
    counter = made.counters.of("k", functools.partial(asking, weighed), among=[("default", "app", "web")])
    assert sorted(weighed) == ["a", "c"]
    weighed.clear()
    for number, namespace in enumerate(("default", "x")):
        made.set_pod(pod(f"d{number}", on="n2", namespace=namespace, labels=WEB, priority=number + 1))
    made.set_pod(pod("e", on="n2", labels={"app": "other"}))
    assert weighed == ["d0"]
    assert [int(counter.counts[made.nodes.row_of[name]]) for name in ("n1", "n2")] == [1, 1]


def test_a_counter_that_counts_among_nothing_counts_nothing() -> None:
    made = cluster(pod("a", on="n1", labels=WEB))
    counter = made.counters.of("k", is_web, among=())
    made.set_pod(pod("b", on="n1", labels=WEB, priority=1))
    assert not counter.counts.any()


def test_a_counter_among_those_that_state_something_follows_them() -> None:
    made = cluster(pod("a", on="n1", affinity=REPELLING))
    (statement,) = made.existing_terms.of_signature(signature(made, "a"))
    counter = made.counters.of("k", lambda _: 1.0, among=(statement,))
    made.set_pod(pod("b", on="n2", affinity=REPELLING, priority=1))
    made.set_pod(pod("c", on="n2", priority=2))
    rows = [made.nodes.row_of[name] for name in ("n1", "n2")]
    assert counter.counts[rows].tolist() == [1, 1]
    made.remove_pod("default.a")
    assert counter.counts[rows].tolist() == [0, 1]


@pytest.mark.parametrize("signatures", [1, 8, 24])
def test_a_counter_of_few_signatures_and_one_of_many_are_filled_alike(signatures: int) -> None:
    made = cluster(
        *(
            pod(f"p{number}", on=f"n{number % 7}", priority=number % signatures, labels=WEB)
            for number in range(5 * signatures)
        ),
        pod("other", on="n0"),
    )
    made.remove_pod("default.p0")
    counted = made.counters.of("k", lambda placed: (placed.pod.metadata.labels == WEB) * (placed.signature + 1)).counts
    expected = np.zeros_like(counted)
    for one in made.pods.by_id.values():
        expected[one.row] += one.signature + 1 if one.pod.metadata.labels == WEB else 0
    assert counted.tolist() == expected.tolist()


def test_nothing_is_left_of_a_counter_that_nobody_holds_where_it_was_to_be_found() -> None:
    made = cluster(pod("a", on="n1", labels=WEB))
    counter = made.counters.of("k", is_web, among=[("default", "app", "web"), (None, None, None)])
    del counter
    gc.collect()
    weighed: list[str] = []
    made.counters.of("k", functools.partial(asking, weighed), among=[("x", None, None)])
    made.set_pod(pod("b", on="n1", labels=WEB, priority=1))
    assert weighed == []


@pytest.mark.parametrize("before", [False, True], ids=["filled", "followed"])
def test_weights_of_any_size_are_summed_and_taken_off(before: bool) -> None:
    def weigh(placed: PlacedPod) -> float:
        return float(dict(placed.pod_resources.amounts).get("memory", 0))

    made = cluster(node("n1"), node("n2"))
    held = made.counters.of("bytes", weigh) if before else None
    amounts = {"a": 2**63 - 1, "b": -(10**17), "c": 7, "d": 2**50, "e": 2**62, "f": 2**62}
    for name, amount in amounts.items():
        made.set_pod(pod(name, on="n2" if name == "d" else "n1", requests={"memory": amount}))
    counter = held or made.counters.of("bytes", weigh)
    rows = [made.nodes.row_of[name] for name in ("n1", "n2")]
    assert counter.counts[rows].tolist() == [math.fsum([2.0**63, -1e17, 7.0, 2.0**62, 2.0**62]), 2.0**50]
    for name in "abef":
        made.remove_pod(f"default.{name}")
    assert counter.counts[rows].tolist() == [7, 2.0**50]
    for name in "cd":
        made.remove_pod(f"default.{name}")
    assert not counter.counts.any()
