"""Nominated nodes: a pod of the same or a lower priority must fit both with and without the nominated pods."""

from __future__ import annotations

import gc
import random
from typing import Any

import pytest
from msgspec.structs import replace

from policysched.app.configuration.profiles import default_profile
from policysched.framework import Cluster
from policysched.model.objects import Pod, PodStatus
from policysched.schedule.cycle.decision import Decision
from policysched.schedule.cycle.engine import Engine
from policysched.state.placed.pods import pod_id
from tests.build import cluster, node, pod
from tests.plugins.inter_pod_affinity.build import away, label, near, term
from tests.schedule.stand import running


def promised(to: str, name: str = "promised", **spec: Any) -> Pod:
    return replace(pod(name, **spec), status=PodStatus(nominated_node_name=to))


def decide(around: Cluster, wanted: Pod) -> Decision:
    return Engine(around, default_profile(), random.Random(0)).decide(wanted)


def test_nominated_pod_of_equal_priority_holds_its_node() -> None:
    around = cluster(node("a"), node("b"))
    around.nominations.update(promised("a", requests={"cpu": 4}))
    assert decide(around, pod(requests={"cpu": 1})).node == "b"
    assert decide(around, pod(requests={"cpu": 1}, priority=1)).feasible_count == 2


def test_node_without_room_beside_a_nominated_pod_says_what_is_short() -> None:
    around = cluster(node("a", allocatable={"cpu": 4}), node("b", allocatable={"cpu": 1}))
    around.nominations.update(promised("a", requests={"cpu": 4}))
    decision = decide(around, pod(requests={"cpu": 2}))
    assert decision.fit_error() == "0/2 nodes are available: 2 Insufficient cpu."
    assert decision.rejectors() == {"NodeResourcesFit"}


@pytest.mark.parametrize("cpu", [1, 4])
def test_what_nodes_with_nominated_pods_are_judged_by_does_not_hold_itself(cpu: int) -> None:
    around = cluster(node("a", allocatable={"cpu": 4}), node("b", allocatable={"cpu": 1}))
    around.nominations.update(promised("a", requests={"cpu": 2}))
    engine = Engine(around, default_profile(), random.Random(0))
    engine.decide(pod(requests={"cpu": cpu})).fit_error()
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        engine.decide(pod(requests={"cpu": cpu})).fit_error()
        gc.collect()
        assert not gc.garbage
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


def test_affinity_to_a_nominated_pod_alone_is_not_enough() -> None:
    around = cluster(node("a", labels={"zone": "z"}))
    around.nominations.update(promised("a", labels={"app": "db"}))
    wanted = pod(affinity=near(term(label("app", "db"), "zone")))
    assert decide(around, wanted).fit_error() == "0/1 nodes are available: 1 node(s) didn't match pod affinity rules."


def test_class_keeps_its_own_answers_beside_nominated_pods() -> None:
    around = cluster(node("a"), node("b"))
    engine = Engine(around, default_profile(), random.Random(0))
    wanted = pod(requests={"cpu": 1})
    assert engine.decide(wanted).feasible_count == 2
    around.nominations.update(promised("a", requests={"cpu": 4}))
    assert engine.decide(wanted).feasible_count == 1
    around.nominations.discard("default.promised")
    assert engine.decide(wanted).feasible_count == 2


def test_own_nominated_node_is_judged_with_the_pods_promised_to_it() -> None:
    around = cluster(node("a"), node("b"))
    around.nominations.update(promised("b", requests={"cpu": 4}))
    wanted = promised("b", "p", requests={"cpu": 1})
    assert decide(around, wanted).node == "a"
    around.nominations.discard("default.promised")
    assert decide(around, wanted).nominated


async def test_pods_of_other_schedulers_hold_the_node_they_are_nominated_to() -> None:
    async with running(node("n1")) as stand:
        theirs = promised("n1", requests={"cpu": 4}, scheduler_name="another")
        await stand.settled(theirs, pod("p", requests={"cpu": 1}))
        assert stand.bound == {}
        stand.scheduler.drop(theirs)
        await stand.settle()
        assert stand.bound == {"p": "n1"}


async def test_nomination_that_ends_wakes_no_pod_of_higher_priority() -> None:
    async with running(node("n1")) as stand:
        theirs = promised("n1", requests={"cpu": 3}, priority=5, scheduler_name="another")
        full = pod("full", on="n1", requests={"cpu": 4}, priority=100)
        await stand.settled(theirs, full, pod("low", requests={"cpu": 1}), pod("high", requests={"cpu": 1}, priority=9))
        assert (stand.attempts("low"), stand.attempts("high")) == (1, 1)
        await stand.settled(replace(theirs, status=PodStatus()))
        assert (stand.attempts("low"), stand.attempts("high")) == (2, 1)


def test_anti_affinity_of_nominated_pods_counts_where_a_pod_that_is_placed_keeps_the_class_away() -> None:
    """Without such a pod, the filter skips the class and gets no events of new pods, whatever was there before."""
    around = cluster(node("a", labels={"zone": "z"}), node("b", labels={"zone": "y"}))
    engine = Engine(around, default_profile(), random.Random(0))
    around.nominations.set(promised("a", labels={"app": "x"}, affinity=away(term(label("app", "x"), "zone"))), "a")
    wanted = pod("wanted", labels={"app": "x"})
    assert engine.decide(wanted).feasible_count == 2
    stranger = pod("stranger", on="b", namespace="other", affinity=away(term(label("app", "x"), "zone")))
    around.set_pod(stranger)
    assert engine.decide(wanted).feasible_count == 2
    close = pod("near", on="b", affinity=away(term(label("app", "x"), "zone")))
    around.set_pod(close)
    assert engine.decide(wanted).feasible_count == 0
    for one in (close, stranger):
        around.remove_pod(pod_id(one))
    assert engine.decide(wanted).feasible_count == 2
