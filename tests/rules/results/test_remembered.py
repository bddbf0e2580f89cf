"""What policies say of a row is found again by what their rules read of it, and is what they would say anew."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from policysched.app.configuration.profiles import default_profile
from policysched.rules.results import remembered
from policysched.rules.results.matrix import FilterMatrix, ScoreMatrix
from policysched.rules.results.remembered import RememberedAnswers, numbers_read
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.record import make_record
from policysched.state.cluster import Cluster
from tests.build import cluster, node, pod
from tests.rules.build import Spec, compiled, filtering, policy_set, scoring

MIB = 2**20
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


@pytest.mark.parametrize("room", [MIB, 2_000], ids=["much room", "room for a few rows"])
@pytest.mark.parametrize("rest", [1024, 3])
def test_decisions_are_those_of_an_engine_that_remembers_nothing(
    room: int, rest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remembered, "MOST_BYTES", room)
    monkeypatch.setattr(remembered, "REST", rest)
    monkeypatch.setattr(remembered, "CREDIT", 8)
    live = around()
    for engine, number in decided(live, 3):
        for app in range(3) if number % 4 == 0 else ():
            one = pod("next", labels={"app": f"a{app}"}, priority=number % 5)
            new = Engine(live, policy_set(**specs()).join(default_profile()), random.Random(0))
            assert make_record(engine.decide(one))["total"] == make_record(new.decide(one))["total"]


def noting(work_out: Callable[..., Any], worked_out: list[int]) -> Callable[..., Any]:
    def noted(*given: Any) -> Any:
        worked_out.append(1)
        return work_out(*given)

    return noted


def test_rows_that_agree_are_evaluated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    worked_out: list[int] = []
    for matrix in (FilterMatrix, ScoreMatrix):
        monkeypatch.setattr(matrix, "_work_out", noting(matrix._work_out, worked_out))
    live = around()
    engine = Engine(live, policy_set(**specs()).join(default_profile()), random.Random(0))
    same = [pod(f"p{index}", labels={"app": f"a{index % 2}"}) for index in range(42)]
    for index, one in enumerate(same):
        decision = engine.decide(one)
        live.assume(one, live.nodes.row_of[f"n{index % 20 * 2}"], decision.evaluation.pod_resources)
        if index == 35:
            worked_out.clear()
    assert not worked_out


@pytest.mark.parametrize(
    "text",
    [
        'node.labels["a"] == pod.labels["a"]',
        "node.age > 1h and pod.priority > 1",
        "sum(node.free.cpu) > pod.requests.cpu",
        "pod.age > 1h and node.free.cpu > 1",
        "node.cached_image_bytes > 1Mi",
        "cluster.nodes > 3 and pod.priority > 1",
        'clock("22:00", "06:00") and pod.priority > 1',
        "pod.image_bytes > node.free.memory",
    ],
)
def test_what_reads_more_than_numbers_of_the_row_is_evaluated_each_time(text: str) -> None:
    [rule] = compiled(filters=filtering(text)).filters
    assert numbers_read(rule.require.root) is None


def test_what_is_remembered_is_bounded() -> None:
    [rule] = compiled(filters=filtering("node.free.memory > pod.requests.memory")).filters
    found = RememberedAnswers.of([rule.require.root], 1, 0, FilterMatrix._dtype)
    assert found is not None
    assert found._answers.shape[1] * (remembered.BYTES_PER_ENTRY + 16) <= remembered.MOST_BYTES


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
