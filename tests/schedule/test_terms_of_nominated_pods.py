"""Anti-affinity terms of many nominated pods: the cost of a decision, and that each term counts."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

import pytest
from msgspec.structs import replace

from policysched.app.configuration.profiles import default_profile
from policysched.framework import Cluster
from policysched.model.objects import (
    Affinity,
    ContainerPort,
    Metadata,
    Namespace,
    Node,
    Pod,
    PodAffinityTerm,
    PodStatus,
    Volume,
)
from policysched.model.objects.pods import GCEDisk
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.evaluation import Evaluation
from policysched.schedule.cycle.results.rejections import FEASIBLE
from policysched.schedule.cycle.what_if import Trial
from policysched.state.nominated import columns
from policysched.state.placed.pods import pod_id
from policysched.state.tables import sparse
from tests.build import node, pod
from tests.plugins.inter_pod_affinity.build import away, both, label, near, team, term
from tests.schedule.test_many_nominated_pods import HOST, ZONE, nodes, promised
from tests.work import calls

ALL = label("app")
Stating = Callable[[int, int], PodAffinityTerm]


def by_keys(identity: int, number: int) -> PodAffinityTerm:
    """Return a term for all pods with a topology key that no node has."""
    return term(ALL, f"key-{identity}-{number}")


def by_selectors(identity: int, number: int) -> PodAffinityTerm:
    """Return a term that matches no existing pod, but is in no index by labels."""
    return term(both(label("app", f"{identity}-{number}", operator="NotIn"), label("rare")), HOST)


def by_selectors_about_all(identity: int, number: int) -> PodAffinityTerm:
    return term(label("app", f"{identity}-{number}", operator="NotIn"), HOST)


def by_labels(identity: int, number: int) -> PodAffinityTerm:
    """Return a term that matches no existing pod, which the index by labels shows."""
    return term(label("app", f"{identity}-{number}"), HOST)


SHAPES = [by_keys, by_selectors, by_selectors_about_all, by_labels]


def stating(identity: int, terms: int, shape: Stating, on: str = "", **metadata: str) -> Pod:
    one = promised(
        on or f"n{identity}",
        f"kept-{identity}",
        requests={"cpu": "1m"},
        labels={"app": "kept", **metadata},
        affinity=away(*(shape(identity, number) for number in range(terms))),
    )
    return replace(one, metadata=replace(one.metadata, annotations=dict(metadata)))


def asked(number: int = 0, **spec: Any) -> Pod:
    return pod(f"asked-{number}", requests={"cpu": "1m"}, labels={"app": "asked"}, **spec)


def beside(kept: int, terms: int, shape: Stating) -> Engine:
    """Return an engine with cached results, nominated pods, and a placed pod with anti-affinity to all pods."""
    around = nodes(20, 64, 5000)
    around.set_pod(pod("bait", on="n19", labels={"app": "bait"}, affinity=away(term(ALL, HOST))))
    engine = Engine(around, default_profile(), random.Random(0))
    engine.decide(asked())
    for identity in range(kept):
        around.nominations.update(stating(identity, terms, shape))
    for number in range(3):
        around.assume(asked(number), engine.decide(asked(number)).row)
    return engine


@pytest.mark.parametrize("shape", SHAPES)
def test_a_decision_does_not_look_at_the_terms_of_nominated_pods(shape: Stating) -> None:
    found = []
    for terms in (20, 300):
        engine = beside(5, terms, shape)
        found.append(calls(lambda engine=engine: engine.decide(asked(9))))
    assert found[1] < found[0] + 20


@pytest.mark.parametrize("shape", SHAPES)
def test_a_decision_about_a_pod_with_a_disk_does_not_look_at_the_terms_of_nominated_pods(shape: Stating) -> None:
    disk = Volume(name="v", gce_persistent_disk=GCEDisk(pd_name="d"))
    found = []
    for terms in (20, 300):
        engine = beside(5, terms, shape)
        engine.decide(asked(8, volumes=[disk]))
        found.append(calls(lambda engine=engine: engine.decide(asked(9, volumes=[disk]))))
    assert found[1] < found[0] + 20


@pytest.mark.parametrize("shape", SHAPES)
def test_labels_of_a_nominated_pod_cost_what_it_states_and_not_what_all_state(shape: Stating) -> None:
    found = []
    for terms in (20, 300):
        engine = beside(5, terms, shape)
        engine.cluster.nominations.update(stating(0, terms, shape, at="1"))
        found.append(calls(lambda engine=engine: engine.decide(asked(9))))
    assert found[1] < found[0] + 20


@pytest.mark.parametrize("shape", SHAPES)
def test_one_more_nominated_pod_costs_what_it_states_and_not_what_all_state(shape: Stating) -> None:
    found = []
    for terms in (20, 300):
        engine = beside(5, terms, shape)
        engine.cluster.nominations.update(stating(6, 20, shape))
        found.append(calls(lambda engine=engine: engine.decide(asked(9))))
    assert found[1] < found[0] + 20


def test_a_version_that_differs_in_nothing_that_counts_moves_nothing() -> None:
    engine = beside(5, 300, by_selectors)
    nominations_of = engine.cluster.nominations
    plain = calls(lambda: engine.decide(asked(9)))
    before = nominations_of.stamp
    one = stating(0, 300, by_selectors)
    changed = replace(one, metadata=replace(one.metadata, annotations={"a": "b"}, resource_version="7"))
    nominations_of.update(changed)
    assert nominations_of.stamp == before
    assert calls(lambda: engine.decide(asked(9))) <= plain
    nomination = nominations_of.get(pod_id(one))
    assert nomination is not None
    assert nomination.pod is changed
    assert engine.find(asked(9)).nominated_pods[engine.cluster.nodes.row_of["n0"]] == [changed]


def test_a_first_pod_that_wants_a_host_port_reads_the_ports_of_nominated_pods_once() -> None:
    found = []
    for size in (10, 500):
        engine = beside(0, 0, by_keys)
        for identity in range(10):
            ports = [ContainerPort(host_port=1000 + 600 * identity + number) for number in range(size)]
            kept = pod(f"kept-{identity}", requests={"cpu": "1m"}, ports=ports)
            engine.cluster.nominations.set(kept, f"n{identity}")
        wanted = [pod(f"w{number}", ports=[ContainerPort(host_port=80 + number)]) for number in range(3)]
        for one in wanted[:2]:
            engine.decide(one)
        found.append([calls(lambda engine=engine, one=one: engine.decide(one)) for one in (wanted[0], wanted[2])])
    assert found[1][0] < found[0][0] + 20
    assert found[1][1] < found[0][1] + 100


class Drawn:
    """Random nominated and placed pods, nodes and namespaces, and an engine that decides with them."""

    def __init__(self, seed: int) -> None:
        self.rng, self.cluster = random.Random(seed), Cluster()
        self.engine = Engine(self.cluster, default_profile(), random.Random(0))
        self.steps = count()
        self.places_plain = seed % 3 == 0
        """Whether placed pods have no affinity, so that they invalidate no class."""
        self.nodes: dict[str, Node] = {}
        self.namespaces: dict[str, Namespace] = {}
        self.kept: dict[str, Pod] = {}
        self.placed: dict[str, Pod] = {}
        for name in "ab":
            self.label_namespace(name)
        for number in range(6):
            self.set_node(number)
        self.place("bait", term(label("app", "none"), HOST))
        self.classes = [self.pod(f"asked-{number}") for number in range(8)]

    def set_node(self, number: int) -> None:
        labels = {HOST: f"n{number}", ZONE: f"z{number % 2}"}
        labels |= {key: "v" for key in ("key-0", "key-1") if self.rng.random() < 0.15}
        one = self.nodes[f"n{number}"] = node(f"n{number}", labels=labels, allocatable={"cpu": 50})
        self.cluster.set_node(one)

    def label_namespace(self, name: str) -> None:
        labels = {"team": self.rng.choice(("one", "two"))}
        one = self.namespaces[name] = Namespace(metadata=Metadata(name=name, labels=labels))
        self.cluster.take(one)

    def place(self, name: str, *terms: PodAffinityTerm) -> None:
        one = self.placed[name] = self.pod(name, f"n{self.rng.randrange(6)}", away(*terms) if terms else None)
        self.cluster.set_pod(one)

    def term(self) -> PodAffinityTerm:
        rng = self.rng
        selector = label("app", rng.choice("xyz"), operator=rng.choice(("", "", "NotIn")))
        of = rng.choice((None, None, team("one")))
        named = rng.choice(((), ("a",), ("b",)))
        return term(selector, rng.choice((HOST, ZONE, "key-0", "key-1", "none")), *named, of=of)

    def pod(self, name: str, on: str = "", affinity: Affinity | None = None) -> Pod:
        rng = self.rng
        disk = Volume(name="v", gce_persistent_disk=GCEDisk(pd_name=rng.choice("de")))
        address = rng.choice(("", "1.1.1.1", "1.1.1.2"))
        ports = [ContainerPort(host_port=rng.choice((80, 81)), host_ip=address, protocol=rng.choice(("TCP", "UDP")))]
        return pod(
            name,
            ports=ports * rng.choice((0, 0, 1)),
            namespace=rng.choice("ab"),
            on=on,
            requests={"cpu": rng.choice(("100m", "1"))},
            priority=rng.choice((0, 0, 5)),
            labels={"app": rng.choice("xyz")},
            affinity=affinity or away(*(self.term() for _ in range(rng.randrange(4)))),
            volumes=[disk] if rng.random() < 0.2 else [],
        )

    def nominate(self, name: str) -> None:
        one = self.pod(name, "", near(term(label("app", "x"), HOST)) if self.rng.random() < 0.1 else None)
        self.take(replace(one, status=PodStatus(nominated_node_name=f"n{self.rng.randrange(7)}")))

    def take(self, one: Pod) -> None:
        self.kept.pop(pod_id(one), None)
        self.kept[pod_id(one)] = one
        self.cluster.nominations.update(one)

    def edit(self, one: Pod) -> None:
        metadata, spec, status = one.metadata, one.spec, one.status
        draw = self.rng.random()
        if draw < 0.4:
            metadata = replace(metadata, annotations={"a": f"{draw}"})
        elif draw < 0.7:
            metadata = replace(metadata, labels={"app": self.rng.choice("xyz")})
        elif draw < 0.85:
            spec = self.pod("another").spec
        else:
            status = PodStatus(nominated_node_name=f"n{self.rng.randrange(7)}")
        self.take(replace(one, metadata=metadata, spec=spec, status=status))

    def change(self) -> None:
        rng, draw, step = self.rng, self.rng.random(), next(self.steps)
        if draw < 0.32 or not self.kept:
            self.nominate(f"kept-{step}")
        elif draw < 0.6:
            self.edit(rng.choice([*self.kept.values()]))
        elif draw < 0.7:
            identity = rng.choice([*self.kept])
            del self.kept[identity]
            self.cluster.nominations.discard(identity)
        elif draw < 0.71:
            for identity in [*self.kept]:
                self.cluster.nominations.discard(identity)
            self.kept.clear()
        elif draw < 0.78:
            self.place(f"placed-{step}", *([term(label("app", "none"), HOST)] if self.places_plain else ()))
        elif draw < 0.94:
            self.set_node(rng.randrange(6))
        else:
            self.label_namespace(rng.choice("ab"))

    def anew(self) -> Cluster:
        """Return a new cluster with the same objects, without nominations."""
        made = Cluster()
        for one in (*self.namespaces.values(), *self.nodes.values()):
            made.take(one)
        for placed in self.placed.values():
            made.set_pod(placed)
        return made

    def expected(self, wanted: Pod) -> Mapping[str, object] | None:
        """Return each node's status with the pods nominated to it placed on it; None if PreFilter rejects the pod."""
        fresh = self.anew()
        found = Engine(fresh, default_profile(), random.Random(0)).find(wanted)
        if found.rejection is not None:
            return None
        yielded = [
            one
            for one in self.kept.values()
            if pod_id(one) != pod_id(wanted) and (one.spec.priority or 0) >= (wanted.spec.priority or 0)
        ]
        beside = {
            name: [one for one in yielded if one.status.nominated_node_name == name] for name in fresh.nodes.row_of
        }
        filters, rows = found.plugin_filters(), fresh.nodes.row_of
        return {name: Trial(fresh, filters, rows[name], there).verdict() for name, there in beside.items()}

    def found_anew(self, wanted: Pod) -> Mapping[str, object]:
        """Return the statuses of an engine without cached results."""
        fresh = self.anew()
        for one in self.kept.values():
            fresh.nominations.update(one)
        return statuses(Engine(fresh, default_profile(), random.Random(0)).find(wanted))

    def asked(self) -> Pod:
        """Return a random pod to decide."""
        return self.rng.choice([*self.classes, self.pod("new"), *self.kept.values()])


def statuses(found: Evaluation) -> Mapping[str, object]:
    rows = found.cluster.nodes.row_of
    return {name: None if found.first[row] == FEASIBLE else found.status(row) for name, row in rows.items()}


@pytest.mark.parametrize("seed", range(12))
def test_decisions_are_those_of_an_engine_that_knows_nothing_yet(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse, "SPARE", 2)
    for name, value in (("FIRST_PLACES", 2), ("MOST_COUNTERS", 2)):
        monkeypatch.setattr(columns, name, value)
    drawn = Drawn(seed)
    for _ in range(120):
        drawn.change()
        if drawn.rng.random() < 0.4:
            continue
        wanted = drawn.asked()
        expected = drawn.expected(wanted)
        if expected is not None:
            live = statuses(drawn.engine.find(wanted))
            assert live == expected
            assert live == drawn.found_anew(wanted)
