"""Objects of the simulated year: nodes, shapes of pods and policies, without repeated names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import Any

from msgspec.structs import replace

from policysched.model.objects import (
    Affinity,
    ClaimSource,
    ContainerPort,
    LabelSelector,
    LabelsSpec,
    Metadata,
    Node,
    NodeAffinitySpec,
    NodeSelector,
    NodeSelectorTerm,
    Pod,
    ReplicaSet,
    Requirement,
    SelectorSpec,
    Service,
    Taint,
    Toleration,
    TopologySpreadConstraint,
    Volume,
    Workload,
)
from tests.build import MIB, node, pod
from tests.plugins.inter_pod_affinity.build import away, near, term
from tests.schedule.neighbours import weighing
from tests.schedule.world_objects import FEATURES, HOST, ZONE, owned, written

METRIC = "load"
POOL, BUILD, RACK = "example.com/pool", "example.com/build", "example.com/rack"


def some_node(chance: Random, name: str, day: int, now: datetime) -> Node:
    """Return a node with properties of the day."""
    week = day // 7
    images = {f"registry.test/{name}/{number}:{day}": 100 * MIB for number in range(2)}
    images |= {f"registry.test/base/{number}:{week}": 300 * MIB for number in range(3)}
    taints = [Taint(key=f"pool-{day}", value=name, effect="PreferNoSchedule")] if chance.random() < 0.3 else []
    if chance.random() < 0.1:
        taints.append(Taint(key="reserved", value=f"{day}", effect="NoSchedule"))
    made = node(
        name,
        labels={
            HOST: name,
            ZONE: f"zone-{week}-{chance.randrange(3)}",
            POOL: f"pool-{day}-{chance.randrange(2)}",
            BUILD: f"{day}.{chance.randrange(100)}",
            RACK: f"rack-{name}" if chance.random() < 0.5 else "rack",
        },
        taints=taints,
        allocatable={"cpu": 16, "memory": "64Gi"},
        images=images,
        features=[*(one for one in FEATURES if chance.random() < 0.5), f"Feature{week}"],
    )
    annotations = {"seen": f"{name}/{day}", "disk": chance.choice(("ssd", "hdd"))}
    created = written(now.timestamp())
    return replace(made, metadata=replace(made.metadata, annotations=annotations, creation_timestamp=created))


@dataclass(frozen=True)
class Shape:
    """The pods of one workload, equal except for their names."""

    name: str
    like: Pod
    workloads: tuple[Workload, ...]
    with_volume: bool

    def pod(self, name: str) -> Pod:
        """Return a pod of the shape."""
        like = self.like
        metadata = replace(like.metadata, name=name, uid=f"{like.metadata.namespace}.{name}")
        if not self.with_volume:
            return replace(like, metadata=metadata)
        source = ClaimSource(claim_name=f"data-{name}")
        return replace(
            like,
            metadata=metadata,
            spec=replace(like.spec, volumes=[Volume(name="data", persistent_volume_claim=source)]),
        )


def some_shape(chance: Random, name: str, namespace: str, nodes: list[Node]) -> Shape:
    """Return a shape whose requirements existing nodes meet, or no node."""
    labels = {"app": name, "hash": f"{name}-{chance.randrange(1000)}", "team": chance.choice("ab")}
    made = pod(
        name,
        namespace=namespace,
        labels=labels,
        requests={"cpu": f"{chance.randint(1, 900)}m", "memory": f"{chance.randint(1, 900)}Mi"},
        image=f"registry.test/{name}:1",
        scheduler_name=chance.choice(("policysched", "policysched", "other")),
        **_asks(chance, name, nodes),
    )
    annotations = {"build": name, "key": chance.choice((POOL, BUILD, f"example.com/{name}"))}
    made = replace(made, metadata=replace(made.metadata, annotations=annotations))
    selector = {"app": name}
    metadata = Metadata(name=name, namespace=namespace)
    workloads: tuple[Workload, ...] = (
        ReplicaSet(metadata=metadata, spec=SelectorSpec(selector=LabelSelector(match_labels=selector))),
        Service(metadata=metadata, spec=LabelsSpec(selector=selector)),
    )
    return Shape(name, owned(made, name), workloads, with_volume=chance.random() < 0.1)


def _asks(chance: Random, name: str, nodes: list[Node]) -> dict[str, Any]:
    """Return random constraints of a pod spec."""
    one, other = (node.metadata for node in nodes)
    app = LabelSelector(match_labels={"app": name})
    constraint = TopologySpreadConstraint(
        max_skew=3, topology_key=ZONE, when_unsatisfiable="DoNotSchedule", label_selector=app
    )
    soft = replace(constraint, max_skew=1, topology_key=POOL, when_unsatisfiable="ScheduleAnyway")
    sorts: list[dict[str, Any]] = [
        {},
        {},
        {"node_selector": {POOL: one.labels[POOL]}},
        {"node_selector": {f"example.com/{name}": "x"}},
        {"affinity": _on_nodes(POOL, "In", one.labels[POOL], other.labels[POOL])},
        {"affinity": _on_nodes(BUILD, "NotIn", one.labels[BUILD], name)},
        {"affinity": _on_nodes(BUILD, "Gt", "3")},
        {"affinity": _named(one.name)},
        {"tolerations": [Toleration(key="reserved", operator="Equal", value=name)]},
        {"tolerations": [Toleration(operator="Exists")]},
        {"topology_spread_constraints": [constraint]},
        {"topology_spread_constraints": [replace(constraint, node_taints_policy="Honor"), soft]},
        {"affinity": away(term(app, HOST))},
        {"affinity": near(term(app, ZONE))},
        {"affinity": weighing({5: term(app, POOL)}, {7: term(app, RACK)})},
        {
            "ports": [
                ContainerPort(
                    container_port=1, host_port=chance.randint(1, 65535), host_ip=f"10.0.0.{chance.randint(1, 9)}"
                )
            ]
        },
        {"priority": chance.randint(0, 10**6)},
    ]
    return chance.choice(sorts)


def _on_nodes(key: str, operator: str, *values: str) -> Affinity:
    terms = [NodeSelectorTerm(match_expressions=(Requirement(key=key, operator=operator, values=values),))]
    return Affinity(node_affinity=NodeAffinitySpec(required=NodeSelector(node_selector_terms=terms)))


def _named(name: str) -> Affinity:
    fields = [Requirement(key="metadata.name", operator="In", values=(name,))]
    required = NodeSelector(node_selector_terms=[NodeSelectorTerm(match_fields=tuple(fields))])
    return Affinity(node_affinity=NodeAffinitySpec(required=required))


def edited(day: int) -> tuple[str, dict[str, Any]]:
    """Return the name of the policy that is edited on a day, and its new spec."""
    name, make = list(_SPECS.items())[day % len(_SPECS)]
    return name, make(day)


_SPECS: dict[str, Callable[[int], dict[str, Any]]] = {
    "labels": lambda day: {
        "filters": [
            {"name": "old", "require": f'node.labels["{BUILD}"] != "{day}.x"'},
            {"name": "same", "require": f'concat(node.name, pod.labels["app"]) != "{day}"'},
        ],
        "scores": [{"name": "s", "cases": [f'glob(node.labels["{POOL}"], "*{day}*") → 80', "else → 7"]}],
    },
    "keyed": lambda day: {
        "filters": [
            {"name": "k", "require": 'has(node.labels[pod.annotations["key"]]) or node.annotations["disk"] == "ssd"'},
        ],
        "scores": [{"name": "v", "value": f'number(node.annotations[pod.annotations["build"]]) ?? {day % 90}'}],
    },
    "around": lambda day: {
        "filters": [{"name": "zone", "require": f"(sum(node.requested.pods) by node.zone ?? 0) < {10**6 + day}"}],
        "scores": [
            {"name": "n", "value": "normalize(node.free.cpu / 1m + pod.priority)"},
            {"name": "m", "value": 'node.pods.count(peer.labels["app"] == pod.labels["app"])', "normalize": "Max"},
        ],
    },
    "loaded": lambda day: {
        "metrics": [{"name": METRIC, "query": METRIC, "nodeLabel": "node", "maxAge": "26h"}],
        "filters": [{"name": "load", "require": f"(metrics.{METRIC} ?? 0) < {1 + day}"}],
        "scores": [
            {"name": "age", "value": f"clamp(node.age / 1h, 0, {day % 100})"},
            {"name": "near", "cases": [f'node.zone == concat("zone-", pod.labels["app"], "{day}") → 1', "else → 0"]},
        ],
    },
}
