"""What was kept up to date event by event equals what is loaded at once: columns and decisions.

POLICYSCHED_EVENTS sets the number of events, POLICYSCHED_SEED the seed.
"""

from __future__ import annotations

import os
import random
from typing import Any

import pytest
from msgspec.structs import replace

from policysched.app.profiles import default_profile
from policysched.framework import Cluster
from policysched.model.objects import (
    Affinity,
    ContainerPort,
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    OwnerReference,
    Pod,
    Requirement,
    RestartRule,
    Toleration,
)
from policysched.rules.policyset import PolicySet
from policysched.schedule.engine import Engine
from policysched.schedule.record import Record, make_record
from policysched.state import journal
from tests.build import pod
from tests.rules.build import filtering, policy_set, scoring
from tests.schedule.world import GPU, IMAGES, World

EVENTS = int(os.environ.get("POLICYSCHED_EVENTS") or 6000)
SEED = int(os.environ.get("POLICYSCHED_SEED") or 20260101)


def named(*names: str) -> Affinity:
    terms = [
        NodeSelectorTerm(match_fields=[Requirement(key="metadata.name", operator="In", values=(name,))])
        for name in names
    ]
    return Affinity(node_affinity=NodeAffinity(required=NodeSelector(node_selector_terms=terms)))


def wanted() -> list[Pod]:
    """Pods of several classes; each stands for its siblings."""
    image, other = list(IMAGES)[:2]
    annotated = pod("annotated")
    annotated = replace(annotated, metadata=replace(annotated.metadata, annotations={"disks": "x|y", "key": "disk"}))
    owned = pod("owned", requests={"cpu": 1})
    owner = OwnerReference(kind="ReplicaSet", name="rs", controller=True)
    owned = replace(owned, metadata=replace(owned.metadata, owner_references=[owner]))
    restarting = pod("features")
    rules = [RestartRule(action="RestartAllContainers")]
    containers = [replace(one, restart_policy_rules=rules) for one in restarting.spec.containers]
    nominated = pod("nominated", requests={"cpu": 2})
    return [
        pod("plain"),
        pod("small", requests={"cpu": "500m", "memory": "64Mi"}, labels={"team": "a"}),
        pod("big", requests={"cpu": 6}, labels={"team": "b"}),
        pod("gpu", requests={GPU: 1}, namespace="a"),
        pod("tolerant", tolerations=[Toleration(operator="Exists")]),
        pod("selecting", node_selector={"disk": "x"}),
        pod("named", affinity=named("n1", "n7", "absent")),
        pod("lost", affinity=named("absent")),
        pod("ports", ports=[ContainerPort(container_port=1, host_port=8080)]),
        pod("image", image=image.removesuffix(":latest"), namespace="b"),
        pod("other-image", image=other),
        pod("system", priority=2_000_000_000),
        pod("lonely", labels={"app": "lonely"}, namespace="a"),
        replace(nominated, status=replace(nominated.status, nominated_node_name="n3")),
        replace(restarting, spec=replace(restarting.spec, containers=containers)),
        annotated,
        owned,
    ]


def policies() -> list[PolicySet]:
    labels = {
        "filters": [
            *filtering('node.labels["zone"] != "z" or node.taints.has("spot")', "zone"),
            *filtering('if(node.ready, number(node.labels["cores"]) > 3, number(node.labels["disk"]) > 3)', "branch",
                       when='pod.labels["team"] == "a"'),
        ],
        "scores": scoring(['node.labels["disk"] == "x" → 80', 'number(node.labels["cores"]) > 5 → 40',
                           "else → 7", "missing → 33"]),
    }  # fmt: skip
    usage = {
        "priority": 5,
        "filters": [
            *filtering("node.free.cpu >= pod.requests.cpu / 2", "free"),
            *filtering("node.requested.pods / node.allocatable.pods < 80%", "share", message="nearly full"),
            *filtering("cluster.nodes > 3 or not node.cordoned", "few"),
        ],
        "scores": [
            *scoring("normalize(node.free.memory / 1Gi)", "all", when='pod.labels["team"] != "b"'),
            *scoring("node.requested.cpu / 10m", "most", normalize="Max", weight=3),
            *scoring(['node.annotations["rack"] == "r" → 90', 'has(node.annotations["rack"]) → 10'], "rack"),
        ],
    }
    surroundings = {
        "appliesTo": 'pod.namespace_labels["tier"] == "gold"',
        "weight": 3,
        "filters": filtering("node.cached_image_bytes >= pod.image_bytes / 4", "near"),
        "scores": [
            *scoring("scale(node.cached_image_bytes / 1Mi, 0, 2000)", "cached"),
            *scoring("clamp(cluster.pods, 0, 100)", "pods"),
        ],
    }
    computed = {
        "filters": [
            *filtering('node.labels["disk"] in split(pod.annotations["disks"], "|")', "allowed",
                       when='has(pod.annotations["disks"])'),
            *filtering('number(node.labels[pod.annotations["key"]]) >= 0', "keyed", when='has(pod.annotations["key"])'),
            *filtering('pod.owner_name != "rs" or node.name != "n2"', "owner"),
        ],
        "scores": scoring(["node.labels[pod.name] == node.name → 1", "else → 0"]),
    }  # fmt: skip
    shadow = {"mode": "Shadow", "filters": filtering('node.labels["zone"] == "x"')}
    return [
        policy_set(),
        policy_set(labels=labels, shadow=shadow),
        policy_set(usage=usage, computed=computed),
        policy_set(labels=labels, usage=usage, surroundings=surroundings, computed=computed, shadow=shadow),
    ]


def columns(cluster: Cluster) -> dict[str, Any]:
    """Everything that is counted, by node."""
    nodes = cluster.nodes
    ports = [cluster.ports.conflicts((address, "TCP", 8080)) for address in ("0.0.0.0", "10.0.0.1", "10.0.0.2")]  # noqa: S104
    found = {}
    for name, row in nodes.row_of.items():
        held = {
            resource: int(nodes.requested(resource)[row]) for resource in ("cpu", "memory", "ephemeral-storage", GPU)
        }
        held |= {"pods": int(nodes.pods_count.data[row]), "ports": [bool(port.data[row]) for port in ports]}
        held |= {"nonzero": (int(nodes.nonzero_cpu.data[row]), int(nodes.nonzero_memory.data[row]))}
        held |= {"on it": sorted(one.pod.key for one in cluster.pods.on_row(row))}
        if nodes.present.data[row]:
            held |= own_columns(cluster, row)
        found[name] = held
    return found


def own_columns(cluster: Cluster, row: int) -> dict[str, Any]:
    nodes = cluster.nodes
    images = {name: cluster.images.column(name) for name in IMAGES}
    return {
        "labels": [int(nodes.labels(key)[row]) for key in ("zone", "disk", "w.io/a", "cores", "absent")],
        "annotations": [int(nodes.annotations(key)[row]) for key in ("rack", "absent")],
        "allocatable": [int(nodes.allocatable(name)[row]) for name in ("cpu", "memory", GPU, "absent")],
        "pods allowed": int(nodes.pods_allowed.data[row]),
        "flags": [bool(column.data[row]) for column in (nodes.unschedulable, nodes.ready)],
        "taints": nodes.taint_sets.value(int(nodes.taints.data[row])),
        "features": nodes.feature_sets.value(int(nodes.features.data[row])),
        "images": {name: (int(of[0].data[row]), of[1]) for name, of in images.items() if of},
    }


def record(engine: Engine, policy_set: PolicySet, of: Pod) -> Record:
    """A decision without what was drawn."""
    decision = engine.decide(of)
    made = make_record(decision, policy_set.plugins)
    assert made.pop("selected", None) in {*made.get("best", ()), None}
    return made | {"rejectors": decision.rejectors() if decision.row < 0 else None}


def compare(world: World, engine: Engine, policy_set: PolicySet, pods: list[Pod]) -> None:
    cluster = world.fresh()
    assert columns(world.cluster) == columns(cluster)
    assert (world.cluster.nodes.count, len(world.cluster.pods)) == (cluster.nodes.count, len(cluster.pods))
    fresh = Engine(cluster, engine.profile, random.Random(0))
    for one in pods:
        assert record(engine, policy_set, one) == record(fresh, policy_set, one), one.key


def run(world: World, events: int, every: int) -> None:
    """Let events happen, decide now and then, and compare."""
    choices, pods = policies(), wanted()
    in_force = choices[-1]
    engine = Engine(world.cluster, in_force.join(default_profile()), random.Random(1))
    for number in range(1, events + 1):
        world.step()
        if world.random.random() < 0.3:
            place(world, engine, world.random.choice(pods[:8]), number)
        if number % (7 * every) == 0:
            in_force = world.random.choice(choices)
            engine.use(in_force.join(default_profile()))
        if number % every == 0:
            compare(world, engine, in_force, world.random.sample(pods, 6))
    compare(world, engine, in_force, pods)


def place(world: World, engine: Engine, like: Pod, number: int) -> None:
    """Place a sibling where the engine says."""
    sibling = replace(like, metadata=replace(like.metadata, name=f"s{number}", uid=f"s{number}"))
    decision = engine.decide(sibling)
    if decision.node:
        world.assume(sibling, decision.node)


@pytest.mark.parametrize(("ring", "most_nodes"), [(journal.RING, 150), (64, 20), (16, 3)])
def test_events_one_by_one_give_what_loading_at_once_gives(
    monkeypatch: pytest.MonkeyPatch, ring: int, most_nodes: int
) -> None:
    monkeypatch.setattr(journal, "RING", ring)
    run(World(SEED + ring, most_nodes), EVENTS // 3, 40)
