"""Pods with very many entries of one kind: the cost grows with the entries, not with nodes, and is temporary.

The cost is counted as function calls and peak memory, which are the same on every machine.
"""

from __future__ import annotations

import gc
import random
import tracemalloc
from collections import Counter
from collections.abc import Callable
from unittest.mock import Mock

import pytest
from msgspec.structs import replace

from bench.hostile_shapes import REQUIRED, SHAPES, hostile
from bench.workloads import HOST, ZONE, node, pod
from policysched.app.configuration.profiles import default_profile
from policysched.framework import Action, Change, Resource
from policysched.model import requests
from policysched.model.decode import decode_node
from policysched.model.objects import Metadata, Namespace, Pod
from policysched.model.objects.pods import ContainerStatus, ResourceRequirements
from policysched.model.selection.pod_affinity import pod_terms
from policysched.plugins.inter_pod_affinity.plugin import InterPodAffinity
from policysched.schedule.cycle.engine import Engine
from policysched.state.cluster import Cluster
from tests.holdings import holdings
from tests.work import calls

MANY = 300
FEW_NODES, MANY_NODES = 40, 500
PER_ROW = 1 << 9
"""Largest additional memory of a decision for each row, whatever the pod. Units: bytes."""
PER_STATED, PER_NODE = 30, 10
"""Largest number of additional function calls for each entry of a pod, and for each node."""


def engine(nodes: int) -> Engine:
    cluster = Cluster()
    for index in range(nodes):
        cluster.set_node(decode_node(node(index, 3)))
    made = Engine(cluster, default_profile(), random.Random(0))
    for identity in range(1, 4):
        cluster.assume(ordinary(identity), made.decide(ordinary(identity)).row)
    return made


def ordinary(identity: int) -> Pod:
    return pod(identity, "default", {"app": "plain"})


def stating(shape: str, count: int) -> Pod:
    return hostile(SHAPES[shape].spec(count))


def place(cluster: Cluster, one: Pod) -> None:
    cluster.set_pod(replace(one, spec=replace(one.spec, node_name="node-0")))


def decided(made: Engine) -> int:
    """Return the function calls of an ordinary pod's decision, without those of occasional cache maintenance."""
    return min(calls(lambda: made.decide(ordinary(11))) for _ in range(4))


def taken(action: Callable[..., object]) -> tuple[int, int]:
    """Return the peak memory of an action, and the memory in use after it. Units: bytes."""
    gc.collect()
    tracemalloc.start()
    try:
        action()
        most = tracemalloc.get_traced_memory()[1]
        gc.collect()
        return most, tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def held(made: Engine) -> Counter[str]:
    """Return the contents of a cluster while no class is cached."""
    made.classes.forget()
    made.cluster.attachments.refresh()
    gc.collect()
    return holdings([made.cluster])


@pytest.mark.parametrize("shape", SHAPES)
def test_work_grows_no_faster_than_what_a_pod_states(shape: str) -> None:
    made = engine(FEW_NODES)
    made.decide(stating(shape, 3))
    work = []
    for count in (MANY, 4 * MANY):
        made.classes.forget()  # one class could have the counts of the other
        one = stating(shape, count)
        work.append(calls(lambda one=one: made.decide(one)))
    assert work[1] < 4.4 * work[0]


@pytest.mark.parametrize("shape", SHAPES)
def test_what_a_pod_states_takes_nothing_for_each_node(shape: str) -> None:
    few, many, one = engine(FEW_NODES), engine(MANY_NODES), stating(shape, MANY)
    most = [taken(lambda made=made: made.decide(one))[0] for made in (few, many)]
    assert most[1] - most[0] < PER_ROW * many.cluster.nodes.columns.capacity
    for made in (few, many):
        made.classes.forget()
    called = [calls(lambda made=made: made.decide(one)) for made in (few, many)]
    assert called[1] - called[0] < PER_STATED * MANY + PER_NODE * MANY_NODES


@pytest.mark.parametrize("shape", SHAPES)
def test_a_placed_pod_costs_the_decisions_of_others_nothing(shape: str) -> None:
    made = engine(FEW_NODES)
    made.decide(ordinary(10))
    alone = decided(made)
    place(made.cluster, stating(shape, MANY))
    made.decide(ordinary(10))
    assert decided(made) < alone + MANY // 10


@pytest.mark.parametrize("shape", SHAPES)
def test_what_a_pod_stated_is_given_back_when_it_is_gone(shape: str) -> None:
    made, one = engine(FEW_NODES), stating(shape, MANY)
    for small in (ordinary(10), stating("labels", 1)):
        made.decide(small)
        place(made.cluster, small)
        made.cluster.remove_pod(small.metadata.uid)
    for key in (HOST, ZONE):
        made.cluster.nodes.labels(key)  # creates a column for the label
    before = held(made)
    made.decide(one)
    place(made.cluster, one)
    made.decide(ordinary(10))
    made.decide(one)
    made.cluster.remove_pod("p-0")
    made.decide(ordinary(11))
    assert held(made) == before


@pytest.mark.parametrize("shape", SHAPES)
def test_a_class_counts_as_the_memory_that_it_takes(shape: str) -> None:
    made, one = engine(MANY_NODES), stating(shape, MANY)
    made.decide(one)  # fills the caches besides the class
    made.classes.forget()
    _, stays = taken(lambda: made.decide(one))
    assert made.classes.nbytes > stays / 1.5


@pytest.mark.parametrize("kind", ["podAffinity", "podAntiAffinity"])
def test_terms_that_mean_the_same_pods_are_compiled_and_asked_once(kind: str) -> None:
    def work(selectors: int) -> tuple[int, int]:
        stated = [{"key": "app", "operator": "In", "values": ["plain", f"x{number}"]} for number in range(selectors)]
        terms = [
            {"topologyKey": f"k{number}", "labelSelector": {"matchExpressions": [stated[number % selectors]]}}
            for number in range(MANY)
        ]
        made, one = engine(3), hostile({"affinity": {kind: {REQUIRED: terms}}})
        placing = calls(lambda: place(made.cluster, one))
        return placing, calls(lambda: made.cluster.existing_terms.about(ordinary(10), {}))

    (placing_same, asking_same), (placing_different, asking_different) = work(1), work(MANY)
    assert placing_same < placing_different / 3
    assert asking_same < asking_different / 3


def test_selectors_of_namespaces_are_asked_of_namespaces_with_their_labels() -> None:
    terms = [
        {"topologyKey": HOST, "labelSelector": {}, "namespaceSelector": {"matchLabels": {f"l{number}": "v"}}}
        for number in range(MANY)
    ]
    one = hostile({"affinity": {"podAntiAffinity": {REQUIRED: terms}}})
    called = []
    for count in (2, 200):
        made = engine(3)
        for number in range(count):
            metadata = Metadata(name=f"n{number}", labels={f"o{label}": "v" for label in range(50)} | {"l0": "v"})
            made.cluster.set_namespace(Namespace(metadata=metadata))
        called.append(calls(lambda made=made: made.decide(one)))
    assert called[1] < 1.5 * called[0]


@pytest.mark.parametrize("shape", ["restartable init containers", "containers with images"])
def test_each_sum_of_many_containers_is_computed_once_a_decision(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made, one = engine(3), stating(shape, MANY)
    read = Mock(side_effect=requests._container_amounts)
    monkeypatch.setattr(requests, "_container_amounts", read)
    decision = made.decide(one)
    made.cluster.pod_resources.forget()
    made.cluster.pod_resources(one)
    sums = [tuple(call.args[1].items()) for call in read.call_args_list]
    assert len(sums) == len(set(sums))
    del decision
    made.classes.forget()
    made.cluster.pod_resources.forget()
    known = requests._large_pods.sums_of(one)
    assert known
    monkeypatch.undo()
    del one, read
    assert not known


def test_a_resize_of_many_containers_computes_each_sum_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made, one = engine(3), stating("containers with images", MANY)
    placed = replace(one, spec=replace(one.spec, node_name="node-0"))

    def resized(millis: int) -> Pod:
        statuses = [
            ContainerStatus(name=each.name, resources=ResourceRequirements(requests={"cpu": f"{millis}m"}))
            for each in placed.spec.containers
        ]
        return replace(placed, status=replace(placed.status, container_statuses=statuses))

    made.cluster.set_pod(resized(1))
    for millis in (2, 3):
        after, sums = resized(millis), requests._container_amounts
        read = Mock(side_effect=sums)
        with monkeypatch.context() as patched:
            patched.setattr(requests, "_container_amounts", read)
            made.cluster.set_pod(after)
        found = [(id(call.args[0]), tuple(call.args[1].items()), call.args[2]) for call in read.call_args_list]
        assert len(found) == len(set(found))


def test_hints_look_up_what_was_compiled() -> None:
    made, other = engine(3), replace(ordinary(1), spec=replace(ordinary(1).spec, node_name="node-0"))
    change = Change(Resource.ASSIGNED_POD, Action.ADD, None, other)
    helps = next(hint.helps for hint in InterPodAffinity().events() if hint.resource is Resource.ASSIGNED_POD)
    assert helps is not None

    def work(count: int) -> int:
        one = stating("anti-affinity, zone", count)
        pod_terms(one)
        return calls(lambda: helps(one, change, made.cluster))

    assert work(4 * MANY) == work(MANY)
