"""Many nominated pods: the cost of decisions that respect them, and that all of them count."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from policysched.app.configuration.profiles import default_profile
from policysched.framework import Cluster
from policysched.model.objects import Affinity, ContainerPort, Pod, PodStatus, TopologySpreadConstraint
from policysched.model.pod_requirements import pod_priority
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.evaluation import Evaluation
from policysched.schedule.cycle.results.rejections import FEASIBLE
from policysched.schedule.cycle.what_if import Trial
from policysched.state.nominated import columns
from policysched.state.placed.pods import pod_id
from tests.build import cluster, node, pod
from tests.plugins.inter_pod_affinity.build import away, label, near, term
from tests.work import calls

HOST, ZONE = "kubernetes.io/hostname", "zone"


def nodes(count: int, cpu: int = 4, pods: int = 110) -> Cluster:
    return cluster(
        *(
            node(f"n{index}", labels={HOST: f"n{index}", ZONE: f"z{index % 3}"}, allocatable={"cpu": cpu, "pods": pods})
            for index in range(count)
        )
    )


def promised(to: str, name: str, **spec: Any) -> Pod:
    return replace(pod(name, **spec), status=PodStatus(nominated_node_name=to))


def _calls(count: int, on: int, affinity: Affinity | None, own: Affinity | None) -> int:
    """Return the function calls of a decision after earlier decisions, each with a placed pod."""
    around = nodes(on, 64, 5000)
    for index in range(count):
        one = promised(
            f"n{index % on}", f"kept-{index}", requests={"cpu": "1m"}, affinity=affinity, labels={"app": "x"}
        )
        around.nominations.update(one)
    engine = Engine(around, default_profile(), random.Random(0))
    for index in range(4):
        placed = pod(f"p-{index}", requests={"cpu": "1m"}, labels={"app": "y"}, affinity=own)
        around.assume(placed, engine.decide(placed).row)
    return calls(lambda: engine.decide(pod("last", requests={"cpu": "1m"}, labels={"app": "y"}, affinity=own)))


@pytest.mark.parametrize("own", [None, away(term(label("app", "z"), HOST))])
@pytest.mark.parametrize("affinity", [None, away(term(label("app", "other"), HOST))])
def test_a_decision_beside_nominated_pods_does_not_look_at_each(
    affinity: Affinity | None, own: Affinity | None
) -> None:
    few, many = (_calls(count, 20, affinity, own) for count in (40, 1000))
    assert many < few + 40


def test_nominated_pods_of_many_kinds_are_weighed_once() -> None:
    around = nodes(10, 64, 5000)
    found = []
    for count in (20, 400):
        for index in range(count):
            around.nominations.update(promised(f"n{index % 10}", f"kept-{index}", labels={"app": f"a{index}"}))
        engine = Engine(around, default_profile(), random.Random(0))
        wanted = pod("w", affinity=away(term(label("app", "a1"), HOST)))
        engine.decide(wanted)
        found.append(calls(lambda engine=engine, wanted=wanted: engine.decide(wanted)))
    assert found[1] < found[0] + 20


def test_a_nominated_pod_keeps_others_away_before_and_after_one_like_it_is_placed() -> None:
    around = nodes(3)
    keeping = away(term(label("app", "w"), HOST))
    around.set_pod(pod("first", on="n0", labels={"app": "a"}, affinity=keeping))
    around.nominations.update(promised("n1", "kept", labels={"app": "b"}, affinity=keeping))
    engine, wanted = Engine(around, default_profile(), random.Random(0)), pod("w", labels={"app": "w"})
    for _ in range(2):
        decision = engine.decide(wanted)
        assert (decision.node, decision.feasible_count) == ("n2", 1)
        around.set_pod(pod("alike", on="n0", labels={"app": "b"}, affinity=keeping))
    around.remove_pod("default.alike")
    assert engine.decide(wanted).feasible_count == 1
    around.nominations.discard("default.kept")
    assert engine.decide(wanted).feasible_count == 2


def test_nominated_pods_of_many_kinds_are_weighed_once_for_each_of_many_counters() -> None:
    keys = [f"key-{number}" for number in range(columns.MOST_COUNTERS // 8 + 1)]
    labels = {HOST: "n0"} | dict.fromkeys(keys, "v")
    found = []
    for kinds in (20, 400):
        around = cluster(node("n0", labels=labels, allocatable={"cpu": 64, "pods": 5000}))
        for index in range(kinds):
            around.nominations.update(promised("n0", f"kept-{index}", labels={"app": f"a{index}"}))
        engine = Engine(around, default_profile(), random.Random(0))
        wanted = pod("w", affinity=away(*(term(label(f"{key}-{number}"), key) for key in keys for number in range(8))))
        engine.decide(wanted)
        found.append(calls(lambda engine=engine, wanted=wanted: engine.decide(wanted)))
    assert found[1] < found[0] + 20


class Drawn:
    """Random nominated and placed pods, and an engine that decides with them."""

    def __init__(self, seed: int) -> None:
        self.rng, self.cluster = random.Random(seed), nodes(8, 3, 5)
        self.engine = Engine(self.cluster, default_profile(), random.Random(0))
        self.kept: dict[str, Pod] = {}
        self.placed: list[Pod] = []

    def pod(self, name: str, **spec: Any) -> Pod:
        rng = self.rng
        drawn = term(label("app", rng.choice("abc")), rng.choice((HOST, ZONE, "none")))
        affinity = rng.choice((None, None, away(drawn), near(drawn)))
        ports = [ContainerPort(host_port=rng.choice((80, 81)))] if rng.random() < 0.2 else []
        spread = TopologySpreadConstraint(
            max_skew=1,
            topology_key=ZONE,
            when_unsatisfiable="DoNotSchedule",
            label_selector=label("app", rng.choice("abc")),
        )
        return pod(
            name,
            priority=rng.choice((0, 0, 5)),
            requests={"cpu": rng.choice(("100m", "1"))},
            labels={"app": rng.choice("abc")},
            affinity=affinity,
            ports=ports,
            topology_spread_constraints=[spread] if rng.random() < 0.2 else [],
            **spec,
        )

    def change(self, step: int) -> None:
        """Make a random change of nominations, placed pods or nodes."""
        rng, draw, on = self.rng, self.rng.random(), f"n{self.rng.randrange(9)}"
        if draw < 0.5:
            one = replace(self.pod(f"kept-{step}"), status=PodStatus(nominated_node_name=on))
            self.kept[pod_id(one)] = one
            self.cluster.nominations.update(one)
        elif draw < 0.65 and self.kept:
            identity = rng.choice(sorted(self.kept))
            del self.kept[identity]
            self.cluster.nominations.discard(identity)
        elif draw < 0.85:
            self.placed.append(self.pod(f"placed-{step}", on=f"n{rng.randrange(8)}"))
            self.cluster.set_pod(self.placed[-1])
        elif draw < 0.95 and self.placed:
            self.cluster.remove_pod(pod_id(self.placed.pop(rng.randrange(len(self.placed)))))
        else:
            self.cluster.remove_node("n7")
            self.cluster.set_node(node("n7", labels={HOST: "n7"}, allocatable={"cpu": 3, "pods": 5}))

    def yielded(self, asked: Pod, on: str) -> Sequence[Pod]:
        return [
            one
            for identity, one in self.kept.items()
            if one.status.nominated_node_name == on
            and identity != pod_id(asked)
            and pod_priority(one) >= pod_priority(asked)
        ]


@pytest.mark.parametrize("seed", range(12))
def test_decisions_are_those_of_each_node_with_its_pods_for_itself(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "MOST_COUNTERS", 2)
    drawn = Drawn(seed)
    classes = [drawn.pod(f"asked-{number}") for number in range(8)]
    for step in range(200):
        drawn.change(step)
        asked = drawn.rng.choice([*classes, *drawn.kept.values()])
        live = drawn.engine.find(asked)
        if live.rejection is not None:
            continue
        plain = Evaluation.of(asked, drawn.engine.classes.results(asked))
        for name, row in drawn.cluster.nodes.row_of.items():
            trial = Trial(drawn.cluster, plain.plugin_filters(), row, drawn.yielded(asked, name))
            expected = trial.verdict()
            assert (live.first[row] == FEASIBLE) == (expected is None)
            if expected is not None:
                assert live.status(row) == expected
