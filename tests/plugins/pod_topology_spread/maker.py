"""Random nodes, pods, constraints and workloads for PodTopologySpread."""

from __future__ import annotations

import random
from typing import Any

from msgspec.structs import replace

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
from tests.build import node, pod
from tests.plugins.pod_topology_spread import reference

ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
KEYS = (ZONE, ZONE, HOSTNAME, HOSTNAME, "rack", "rare", "absent", "")
"""`rare` is what few nodes have: often none, so that it comes and goes."""
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
        if chance.random() < 0.06:
            labels["rare"] = chance.choice("12")
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
        return LabelSelector(match_labels=labels, match_expressions=tuple(expressions))

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
            match_label_keys=chance.choice(((), (), ("tier",), ("tier", "absent"))),
        )

    def pending(self) -> Pod:
        chance = self.chance
        spec: dict[str, Any] = {}
        if chance.random() < 0.7:
            number = chance.choice((1, 1, 1, 1, 2, 2, 3, 3, 12))
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
            made: Workload = shape(metadata=metadata, spec=plain)
        else:
            made = shape(metadata=metadata, spec=SelectorSpec(selector=self.selector(valid=False)))
        return made

    def defaults(self) -> tuple[tuple[TopologySpreadConstraint, ...], bool]:
        if self.chance.random() < 0.5:
            return reference.SYSTEM, True
        made = (self.constraint() for _ in range(self.chance.choice((0, 1, 2))))
        return tuple(replace(one, label_selector=None) for one in made), False
