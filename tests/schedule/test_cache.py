"""The cache of pod classes: its memory is what the engine counts, and at most its limit."""

from __future__ import annotations

import gc
import random
import tracemalloc
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from policysched.app.configuration.profiles import default_profile
from policysched.framework import Aspect, Cluster, Codes, Rows, SizedState
from policysched.model.objects import LabelSelector, Pod, Requirement, TopologySpreadConstraint
from policysched.schedule.cycle import class_cache
from policysched.schedule.cycle.class_cache import LARGEST
from policysched.schedule.cycle.class_results import MEASURED_EVERY
from policysched.schedule.cycle.engine import Engine
from policysched.state.placed.pods import pod_id
from tests.build import MIB, cluster, node, pod
from tests.rules.build import policy_set, scoring
from tests.schedule.life_pods import wanted
from tests.schedule.life_policies import policies
from tests.schedule.neighbours import neighbourly
from tests.schedule.parts import FakeFilter
from tests.schedule.parts import engine as fake_engine
from tests.schedule.side import Side
from tests.schedule.world_objects import HOST, IMAGES, ZONE

ALLOWED = 2_000_000
"""Limit of the cache in tests. Units: bytes."""
NODES = 1100
LABELS = ("zone", "disk", ZONE)
CLASSES = 12
FACTOR = 1.5
OVERESTIMATE = 3
"""Largest factor between counted and used bytes, as arrays that classes share count for each of them."""
KINDS = {one.metadata.name: one for one in (*wanted(), *neighbourly(calm=True))}


@pytest.fixture(scope="module")
def around() -> Cluster:
    """A cluster large enough for arrays to dominate the memory."""
    nodes = (
        node(
            f"n{number}",
            labels={"zone": "xyz"[number % 3], "disk": "xy"[number % 2], ZONE: "12"[number % 2], HOST: f"n{number}"},
            allocatable={"cpu": 8, "x.io/gpu": 2},
            images=dict.fromkeys(IMAGES, 300 * MIB),
        )
        for number in range(NODES)
    )
    pods = (pod(f"p{number}", on=f"n{number}", labels={"team": "ab"[number % 2]}) for number in range(0, NODES, 7))
    made = cluster(*nodes, *pods)
    for key in LABELS:
        made.nodes.labels(key)  # creates a column for the label
    return made


def classes(like: Pod) -> Iterable[Pod]:
    """Yield copies of a pod, each in its own class."""
    for number in range(CLASSES):
        labels = like.metadata.labels | {"class": f"{number}"}
        yield replace(like, metadata=replace(like.metadata, name=f"c{number}", uid=f"c{number}", labels=labels))


def taken_by(work: Callable[[], Any]) -> int:
    """Return the memory that is in use after a call. Units: bytes."""
    gc.collect()
    tracemalloc.start()
    try:
        work()
        gc.collect()
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def decide_all(made: Engine, pods: Iterable[Pod]) -> None:
    """Decide pods, with placements in between, so that cached results are updated and measured again."""
    every = list(pods)
    for row in range(2):
        for one in every:
            made.decide(one)
        placed = pod(f"other{len(made.cluster.pods)}", labels={"team": "a"})
        made.cluster.assume(placed, row)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("with_policies", [False, True], ids=["default", "policies"])
def test_the_bytes_counted_are_those_taken(around: Cluster, kind: str, with_policies: bool) -> None:
    side = Side(around, ()).use(policies()[-1] if with_policies else ())
    side.engine.decide(KINDS[kind])
    side.engine.classes.forget()  # results that policies share are not part of the classes
    taken = taken_by(lambda: decide_all(side.engine, classes(KINDS[kind])))
    counted = side.engine.classes.nbytes
    assert taken / FACTOR < counted < taken * OVERESTIMATE, (taken, counted)


def constrained(number: int) -> Pod:
    """Return a pod of 100 spread constraints over labels of nodes, for pods of its own class."""
    own = {"class": f"{number}"}
    constraints = [
        TopologySpreadConstraint(
            max_skew=1 + place,
            topology_key=LABELS[place % 3],
            when_unsatisfiable="ScheduleAnyway" if place % 2 else "DoNotSchedule",
            label_selector=LabelSelector(match_labels=own | {"place": f"{place}"}),
        )
        for place in range(100)
    ]
    return pod(f"c{number}", labels=own, topology_spread_constraints=constraints)


def test_a_pod_of_many_constraints_counts_as_what_it_takes(around: Cluster) -> None:
    side = Side(around, ())
    taken = taken_by(lambda: decide_all(side.engine, map(constrained, range(4))))
    assert taken / FACTOR < side.engine.classes.nbytes < taken * FACTOR
    assert taken > 4 * 100 * 8 * NODES


def test_pod_counters_of_many_different_pods_count_as_memory() -> None:
    nodes = [node(f"n{number}", labels={ZONE: "12"[number % 2]}) for number in range(20)]
    pods = [pod(f"p{number}", on=f"n{number % 20}", labels={"own": f"{number}"}) for number in range(2000)]
    side = Side(cluster(*nodes, *pods), ())

    def others(*own: int) -> LabelSelector:
        return LabelSelector(match_expressions=(Requirement("own", "NotIn", tuple(map(str, own))),))

    def spread(number: int) -> Pod:
        constraints = [
            TopologySpreadConstraint(
                max_skew=100,
                topology_key=ZONE,
                when_unsatisfiable="DoNotSchedule",
                label_selector=LabelSelector(
                    match_expressions=(Requirement("own", "NotIn", (f"{number}", f"{place}")),)
                ),
            )
            for place in range(5)
        ]
        return pod(f"c{number}", topology_spread_constraints=constraints)

    side.engine.decide(spread(10))
    taken = taken_by(lambda: [side.engine.decide(spread(number)) for number in range(4)])
    assert side.engine.classes.nbytes > taken / FACTOR


def test_no_more_is_kept_than_allowed_however_many_classes_come(
    around: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(class_cache, "CACHE_BYTES", 4 * ALLOWED)
    side = Side(around, ())
    columns = around.nodes.columns.count
    pods = [constrained(number) for number in range(12)]
    assert taken_by(partial(decide_all, side.engine, pods)) < FACTOR * 4 * ALLOWED
    assert side.engine.classes.nbytes <= 4 * ALLOWED
    del side
    gc.collect()
    assert around.nodes.columns.count <= columns


def test_a_class_too_large_is_decided_and_leaves_nothing_behind(
    around: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(class_cache, "CACHE_BYTES", ALLOWED)
    side = Side(around, ())
    ordinary = pod("ordinary")
    side.engine.decide(ordinary)
    kept, columns = side.engine.classes.nbytes, around.nodes.columns.count
    large = side.engine.classes.results(constrained(0))
    assert large.nbytes > ALLOWED / LARGEST
    assert side.engine.decide(constrained(0)).feasible_count == around.nodes.count
    del large
    gc.collect()
    assert (side.engine.classes.nbytes, around.nodes.columns.count) == (kept, columns)
    assert side.engine.classes.results(ordinary) is side.engine.classes.results(ordinary)


def test_scores_that_are_normalised_count_as_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_cache, "CACHE_BYTES", ALLOWED)
    values = ("pod.priority", "pod.requests.memory / 1Ki", "node.requested.pods")
    rules = [
        rule
        for place, value in enumerate(values)
        for rule in scoring(f"node.free.cpu / 1m + {value}", f"s{place}", normalize="Max")
    ]
    nodes = cluster(*(node(f"n{number}", allocatable={"cpu": number}) for number in range(2000)))
    made = Engine(nodes, policy_set(p={"scores": rules}).join(default_profile()), random.Random(0))
    made.decide(pod())
    requests = [pod(requests={"cpu": f"{number + 1}m"}) for number in range(100)]
    assert taken_by(lambda: [made.decide(one) for one in requests]) < FACTOR * ALLOWED


def test_pods_on_nodes_that_never_were_neither_raise_the_bound_nor_stay_in_what_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(class_cache, "CACHE_BYTES", ALLOWED)
    monkeypatch.setattr(class_cache, "CACHE_NODES", 64)
    around = cluster(*(node(f"n{number}", labels={"a": "b"}) for number in range(50)))
    made = Engine(around, default_profile(), random.Random(0))
    pods = [pod(f"p{number}", node_selector={"a": f"v{number}"}) for number in range(100)]
    decide_all(made, pods)
    ordinary = made.classes.nbytes
    for number in range(2_000):
        around.set_pod(pod(f"g{number}", on=f"gone-{number}"))
    decide_all(made, pods)
    assert ordinary < made.classes.nbytes <= ALLOWED
    for number in range(2_000):
        around.remove_pod(pod_id(pod(f"g{number}")))
    around.set_node(node("n0", labels={"a": "c"}))
    decide_all(made, pods[:1])
    assert made.classes.nbytes < ordinary
    decide_all(made, pods)
    assert made.classes.nbytes < 1.1 * ordinary


@pytest.mark.parametrize(
    ("nodes", "before", "after"),
    [
        (0, 1 << 15, 1 << 15),
        (5_000, 1 << 15, 1 << 15),
        (50_000, 1 << 15, 1 << 16),
        (20_000, 1 << 16, 1 << 16),
        (16_384, 1 << 16, 1 << 15),
        (40_000, 1 << 16, 1 << 16),
        (10**6, 1 << 15, 1 << 17),
        (10**6, 1 << 17, 1 << 17),
    ],
)
def test_memory_follows_nodes_in_powers_of_two_and_back_late(nodes: int, before: int, after: int) -> None:
    assert class_cache.nodes_allowed_for(nodes, before) == after


class Growing(FakeFilter):
    """A filter whose prepared state grows at each call."""

    def prepare_filter(self, pod: Pod, cluster: Cluster) -> Any:  # noqa: ARG002 - the protocol's signature
        return State(cluster)

    def filter(self, state: Any, rows: Rows) -> Codes:
        state.size += 1000
        return super().filter(state.cluster, rows)


class State(SizedState):
    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.size = cluster, 0

    def memory(self, rows: int) -> int:  # noqa: ARG002 - as above
        return self.size


def test_what_a_class_grows_by_after_it_was_kept_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_cache, "CACHE_BYTES", ALLOWED)
    around = cluster(node("a"), node("b"))
    made = fake_engine(around, [Growing("G", set(), Aspect.LABELS)])
    made.decide(pod("p"))
    before = made.classes.nbytes
    for number in range(2 * MEASURED_EVERY):
        around.set_node(node("a", labels={"x": str(number)}))
        made.decide(pod("p"))
    assert made.classes.nbytes - before > MEASURED_EVERY * 1000
    kept = []
    for number in range(600):
        around.set_node(node("a", labels={"x": str(number)}))
        made.decide(pod("p"))
        kept.append(made.classes.nbytes)
    assert max(kept) <= ALLOWED / LARGEST
    assert 0 in kept
