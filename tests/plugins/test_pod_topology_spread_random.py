"""PodTopologySpread against its plain version: on random clusters, and on one cluster that random events change.

POLICYSCHED_SEED sets the seed, POLICYSCHED_SPREADS the number of clusters.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from policysched.framework import SKIP, Code, Status
from policysched.model.objects import (
    LabelSelector,
    LabelsSpec,
    Metadata,
    Node,
    OwnerReference,
    Pod,
    ReplicaSet,
    ReplicationController,
    Requirement,
    SelectorSpec,
    Service,
    StatefulSet,
    Taint,
    Toleration,
    TopologySpreadConstraint,
    Workload,
)
from policysched.plugins import pod_topology_spread_sums
from policysched.plugins.pod_topology_spread import PodTopologySpread
from policysched.plugins.pod_topology_spread_constraints import Defaults
from policysched.schedule.record import make_record
from policysched.state import domains, journal
from policysched.state.cluster import Cluster
from tests.build import node, pod
from tests.plugins import spread_reference as reference
from tests.plugins.spread_reference import Around
from tests.schedule.parts import engine

SEED = int(os.environ.get("POLICYSCHED_SEED") or 20260101)
CLUSTERS = int(os.environ.get("POLICYSCHED_SPREADS") or 4000)
ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
KEYS = (ZONE, ZONE, HOSTNAME, HOSTNAME, "rack", "absent", "")
NAMESPACES = ("default", "default", "other")
TAINTS = (
    Taint(key="spot", effect="NoSchedule"),
    Taint(key="old", value="x", effect="PreferNoSchedule"),
    Taint(key="new", effect="NoExecute"),
)


class Maker:
    """Random objects over few names and labels, so that they meet."""

    def __init__(self, chance: random.Random, most_nodes: int = 9) -> None:
        self.chance = chance
        self.most_nodes = most_nodes
        self.serial = 0

    def node(self, name: str = "") -> Node:
        chance = self.chance
        name = name or f"n{chance.randrange(self.most_nodes)}"
        labels: dict[str, str] = {}
        if chance.random() < 0.85:
            labels[HOSTNAME] = name if chance.random() < 0.9 else "n0"
        if chance.random() < 0.85:
            labels[ZONE] = chance.choice(("a", "b", "c", ""))
        if chance.random() < 0.5:
            labels["rack"] = chance.choice("12")
        if chance.random() < 0.02:
            labels[""] = "odd"
        return node(name, labels=labels, taints=[one for one in TAINTS if chance.random() < 0.15])

    def labels(self) -> dict[str, str]:
        chance = self.chance
        found = {"app": chance.choice("xy")} if chance.random() < 0.9 else {}
        return found | ({"tier": chance.choice("12")} if chance.random() < 0.5 else {})

    def selector(self, *, valid: bool = True) -> LabelSelector | None:
        chance = self.chance
        if chance.random() < 0.08:
            return None
        expressions = [self.requirement() for _ in range(chance.choice((0, 0, 0, 1, 2)))]
        if not valid and chance.random() < 0.02:
            expressions.append(Requirement(key="app", operator=chance.choice(("Gt", "Like", "In"))))
        labels = {"app": chance.choice("xy")} if chance.random() < 0.8 else {}
        return LabelSelector(match_labels=labels, match_expressions=expressions)

    def requirement(self) -> Requirement:
        operator = self.chance.choice(("In", "NotIn", "Exists", "DoesNotExist"))
        values = tuple(self.chance.sample("123", 2)) if operator in ("In", "NotIn") else ()
        return Requirement(key=self.chance.choice(("tier", "app")), operator=operator, values=values)

    def constraint(self, *, valid: bool = True, action: str = "") -> TopologySpreadConstraint:
        chance = self.chance
        return TopologySpreadConstraint(
            max_skew=chance.choice((1, 1, 2, 5)),
            topology_key=chance.choice(KEYS),
            when_unsatisfiable=action or chance.choice(("DoNotSchedule", "ScheduleAnyway")),
            label_selector=self.selector(valid=valid),
            min_domains=chance.choice((None, None, 1, 2, 4)),
            node_affinity_policy=chance.choice((None, "Honor", "Ignore")),
            node_taints_policy=chance.choice((None, "Honor", "Ignore")),
            match_label_keys=chance.choice(([], [], ["tier"], ["tier", "absent"])),
        )

    def pending(self) -> Pod:
        chance = self.chance
        spec: dict[str, Any] = {}
        if chance.random() < 0.7:
            number = chance.choice((1, 1, 2, 3))
            spec["topology_spread_constraints"] = [self.constraint(valid=False) for _ in range(number)]
        if chance.random() < 0.25:
            spec["node_selector"] = {ZONE: chance.choice("ab")}
        if chance.random() < 0.4:
            spec["tolerations"] = [Toleration(key=chance.choice(("spot", "new")), operator="Exists")]
        return self.owned(self.bare(**spec))

    def bare(self, **fields: Any) -> Pod:
        self.serial += 1
        return pod(f"p{self.serial}", namespace=self.chance.choice(NAMESPACES), labels=self.labels(), **fields)

    def owned(self, one: Pod) -> Pod:
        chance = self.chance
        if chance.random() < 0.4:
            return one
        kind, version = chance.choice(
            (("ReplicaSet", "apps/v1"), ("StatefulSet", "apps/v1"), ("ReplicationController", "v1"),
             ("ReplicaSet", "extensions/v1beta1"), ("Job", "batch/v1"))
        )  # fmt: skip
        owner = OwnerReference(
            api_version=version, kind=kind, name=chance.choice("cd"), controller=chance.random() < 0.9
        )
        return replace(one, metadata=replace(one.metadata, owner_references=[owner]))

    def placed(self, on: str) -> Pod:
        made = self.bare(on=on)
        if self.chance.random() < 0.12:
            return replace(made, metadata=replace(made.metadata, deletion_timestamp="2026-01-01T00:00:00Z"))
        return made

    def workload(self) -> Workload:
        chance = self.chance
        metadata = Metadata(name=chance.choice("cde"), namespace=chance.choice(NAMESPACES))
        plain = LabelsSpec(selector=chance.choice((None, {}, {"app": "x"}, {"app": "y"}, {"tier": "1"})))
        shape: Any = chance.choice((Service, ReplicationController, ReplicaSet, StatefulSet))
        if shape in (Service, ReplicationController):
            return shape(metadata=metadata, spec=plain)
        return shape(metadata=metadata, spec=SelectorSpec(selector=self.selector(valid=False)))

    def defaults(self) -> tuple[tuple[TopologySpreadConstraint, ...], bool]:
        if self.chance.random() < 0.5:
            return reference.SYSTEM, True
        made = (self.constraint() for _ in range(self.chance.choice((0, 1, 2))))
        return tuple(replace(one, label_selector=None) for one in made), False


def keyed(workloads: Iterable[Workload]) -> dict[Any, Workload]:
    return {(type(one), one.metadata.namespace, one.metadata.name): one for one in workloads}


def live(around: Around) -> Cluster:
    made = Cluster()
    for one in around.nodes:
        made.set_node(one)
    for placed, _ in around.placed:
        made.set_pod(placed)
    for workload in around.workloads:
        made.workloads.put(workload)
    return made


def names_of(around: Around, chance: random.Random) -> set[str]:
    return {one.metadata.name for one in around.nodes if chance.random() < 0.8}


def expected(of: Pod, around: Around, feasible: set[str]) -> tuple[Any, Any]:
    """What the plain version says: rejections and scores, each perhaps None for skipped or "error"."""

    def asked(ask: Any, *more: Any) -> Any:
        try:
            return ask(of, around, *more)
        except reference.InvalidError:
            return "error"

    return asked(reference.rejections), asked(reference.scores, feasible)


def answered(plugin: PodTopologySpread, of: Pod, made: Cluster, feasible: set[str]) -> tuple[Any, Any]:
    """What the plugin says."""
    rows, present = slice(0, made.nodes.size), made.nodes.present.data
    names = {name: row for name, row in made.nodes.row_of.items() if present[row]}
    state: Any = plugin.prepare_filter(of, made)
    rejected = plain(state)
    if rejected is ...:
        codes = plugin.filter(state, rows)
        rejected = {name: plugin.reason(state, codes[row]).message for name, row in names.items() if codes[row]}
    state = plugin.prepare_score(of, made)
    scores = plain(state)
    if scores is ...:
        mask = np.array([name in feasible for name in made.nodes.names], np.bool_) & present[rows]
        finals = plugin.normalize(state, plugin.score(state, rows), mask)
        scores = {name: int(finals[row]) for name, row in names.items() if name in feasible}
    return rejected, scores


def plain(state: Any) -> Any:
    if state is SKIP:
        return None
    if isinstance(state, Status):
        assert state.code is Code.ERROR
        return "error"
    return ...


@pytest.mark.parametrize("part", range(4))
def test_answers_equal_those_of_the_plain_version(part: int) -> None:
    for number in range(part, CLUSTERS, 4):
        chance = random.Random(f"{SEED}/{number}")
        maker = Maker(chance)
        defaults, system = maker.defaults()
        nodes = [maker.node(f"n{index}") for index in range(chance.randrange(1, 9))]
        homes = [chance.choice(nodes).metadata.name for _ in range(chance.randrange(25))]
        workloads = list(keyed(maker.workload() for _ in range(6)).values())
        around = Around(nodes, [(maker.placed(home), home) for home in homes], workloads, defaults, system)
        plugin, made = PodTopologySpread(Defaults(defaults, system)), live(around)
        for _ in range(4):
            of, feasible = maker.pending(), names_of(around, chance)
            assert answered(plugin, of, made, feasible) == expected(of, around, feasible), (number, of)


class Life:
    """A cluster that events change, and the plain objects that it should equal."""

    def __init__(self, seed: int, most_nodes: int) -> None:
        self.chance = random.Random(seed)
        self.maker = Maker(self.chance, most_nodes)
        self.cluster = Cluster()
        self.nodes: dict[str, Node] = {}
        self.placed: dict[str, Pod] = {}
        self.workloads: dict[Any, Workload] = {}
        self.calls = 0

    def step(self) -> None:
        events = (self.set_node, self.remove_node, self.place, self.leave, self.update, self.workload)
        # for long stretches nodes and workloads stay as they are, and only pods come and go
        calm = self.calls // 100 % 2
        self.calls += 1
        self.chance.choices(events, (0, 0, 20, 14, 4, 0) if calm else (6, 2, 20, 14, 4, 3))[0]()

    def set_node(self) -> None:
        made = self.maker.node()
        self.nodes[made.metadata.name] = made
        self.cluster.set_node(made)

    def remove_node(self) -> None:
        if self.nodes:
            name = self.chance.choice(sorted(self.nodes))
            del self.nodes[name]
            self.cluster.remove_node(name)

    def place(self) -> None:
        self.keep(self.maker.placed(f"n{self.chance.randrange(self.maker.most_nodes)}"))

    def leave(self) -> None:
        if self.placed:
            self.cluster.remove_pod(self.placed.pop(self.chance.choice(sorted(self.placed))).metadata.uid)

    def update(self) -> None:
        if self.placed:
            old = self.placed[self.chance.choice(sorted(self.placed))]
            other = self.maker.placed(old.spec.node_name).metadata
            same = {part: getattr(old.metadata, part) for part in ("name", "uid", "namespace")}
            self.keep(replace(old, metadata=replace(other, **same)))

    def workload(self) -> None:
        one = self.maker.workload()
        if self.chance.random() < 0.3:
            for key in keyed([one]):
                self.workloads.pop(key, None)
            self.cluster.workloads.drop(one)
        else:
            self.workloads |= keyed([one])
            self.cluster.workloads.put(one)

    def keep(self, placed: Pod) -> None:
        self.placed[placed.metadata.uid] = placed
        self.cluster.set_pod(placed)

    def around(self, defaults: tuple[TopologySpreadConstraint, ...], system: bool) -> Around:
        held = [(one, one.spec.node_name) for one in self.placed.values()]
        return Around(list(self.nodes.values()), held, list(self.workloads.values()), defaults, system)


@pytest.mark.parametrize(
    ("ring", "spare", "few", "most_nodes"),
    [(journal.RING, domains.SPARE, 8, 12), (8, -50, 0, 4), (32, -50, 1, 40), (1024, -50, 0, 9)],
)
@pytest.mark.parametrize("system", [True, False])
def test_a_life_of_events_leaves_the_answers_right(
    monkeypatch: pytest.MonkeyPatch, ring: int, spare: int, few: int, most_nodes: int, system: bool
) -> None:
    monkeypatch.setattr(pod_topology_spread_sums, "FEW", few)
    monkeypatch.setattr(journal, "RING", ring)
    monkeypatch.setattr(domains, "SPARE", spare)
    life = Life(SEED + ring + system, most_nodes)
    listed = tuple(life.maker.constraint() for _ in range(3))
    constraints = reference.SYSTEM if system else tuple(replace(one, label_selector=None) for one in listed)
    plugin = PodTopologySpread(Defaults(constraints, system))
    asked = engine(life.cluster, [plugin], [(plugin, 1)])
    pods = [life.maker.pending() for _ in range(15)]
    for _ in range(max(60, CLUSTERS // 5)):
        for _ in range(life.chance.randrange(1, 5)):
            life.step()
        if not life.nodes:
            continue
        for of in life.chance.sample(pods, 3):
            decision = asked.decide(of)
            record = make_record(decision)
            around = life.around(constraints, system)
            rejected, scores = expected(
                of, around, {row for row in life.nodes if row not in record.get("rejected", {})}
            )
            if rejected == "error" or (scores == "error" and len(life.nodes) - len(rejected or {}) > 1):
                assert record["result"] == "Error"
                continue
            told = {name: status["reasons"][0] for name, status in record.get("rejected", {}).items()}
            assert told == (rejected or {})
            if scores not in (None, "error"):
                found = record.get("scores", {})
                assert {name: by["PodTopologySpread"] for name, by in found.items()} == scores
