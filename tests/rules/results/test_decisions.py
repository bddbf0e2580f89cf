"""Policies decide with an engine that has decided before as with a new one."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from policysched.app.configuration.profiles import default_profile
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.record import make_record
from policysched.state.cluster import Cluster
from tests.build import cluster, node, pod
from tests.rules.build import Spec, filtering, policy_set, scoring

ZONE = "topology.kubernetes.io/zone"


def specs() -> dict[str, Spec]:
    """Policies about room, usage, pods of the app, what a pod states, and what is kept by row anyway."""
    own = 'node.pods.count(peer.labels["app"] == pod.labels["app"])'
    room = "node.free.memory - pod.requests.memory"
    return {
        "room": {"filters": filtering(f"{room} >= 600Mi"), "scores": scoring(f"scale({room}, 0Mi, 2Gi)")},
        "zone": {"scores": scoring('if(node.zone == "a", 60, 5)')},
        "apps": {
            "filters": [*filtering(f"{own} < 2"), *filtering('node.zone != "c"', "g")],
            "scores": scoring(f"100 - 20 * {own}"),
        },
        "usage": {
            "filters": filtering("not node.cordoned or pod.priority > 3"),
            "scores": scoring("100 * node.requested.cpu / node.allocatable.cpu"),
        },
    }


def around(nodes: int = 40) -> Cluster:
    """Nodes in three zones."""
    return cluster(*(node(f"n{index}", labels={ZONE: "abc"[index % 3]}) for index in range(nodes)))


def decided(live: Cluster, seed: int, decisions: int = 60) -> Iterator[tuple[Engine, int]]:
    """Place and remove pods of three apps, cordon nodes now and then; give the engine after each change."""
    rng = random.Random(seed)
    engine = Engine(live, policy_set(**specs()).join(default_profile()), random.Random(seed))
    for number in range(decisions):
        one = pod(f"p{number}", labels={"app": f"a{number % 3}"}, priority=number % 5)
        decision = engine.decide(one)
        if decision.row >= 0:
            live.assume(one, decision.row, decision.evaluation.pod_resources)
        if number % 7 == 0:
            live.set_node(node(f"n{rng.randrange(40)}", unschedulable=rng.random() < 0.5))
        yield engine, number


def test_decisions_are_those_of_a_new_engine() -> None:
    live = around()
    for engine, number in decided(live, 3):
        for app in range(3) if number % 4 == 0 else ():
            one = pod("next", labels={"app": f"a{app}"}, priority=number % 5)
            new = Engine(live, policy_set(**specs()).join(default_profile()), random.Random(0))
            assert make_record(engine.decide(one))["total"] == make_record(new.decide(one))["total"]


@pytest.mark.parametrize("rules", [{"filters": filtering("pod.priority < 100")}, {"scores": scoring("pod.priority")}])
def test_rules_that_read_nothing_of_nodes_are_asked_about_a_node_that_comes(rules: Spec) -> None:
    around = cluster(node("n1"), node("n2"))
    profile = policy_set(p=rules).join(default_profile(off=("ImageLocality",)))
    engine = Engine(around, profile, random.Random(0))
    wanted = pod("wanted", priority=5)
    assert engine.decide(wanted).feasible_count == 2
    around.set_node(node("n3"))
    assert engine.decide(wanted).feasible_count == 3
    around.remove_node("n1")
    assert engine.decide(wanted).feasible_count == 2
