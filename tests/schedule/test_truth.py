"""What was kept up to date event by event equals what is loaded at once: columns and decisions.

POLICYSCHED_EVENTS sets the number of events, POLICYSCHED_LIFE those of the one long life, POLICYSCHED_SEED the seed.
"""

from __future__ import annotations

import functools
import os
import random
from collections.abc import Collection, Iterable
from typing import Any

import pytest
from msgspec.structs import replace

from policysched.app.profiles import default_profile
from policysched.framework import Cluster
from policysched.model.objects import (
    Affinity,
    ContainerPort,
    LabelSelector,
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    Pod,
    Requirement,
    RestartRule,
    Toleration,
    TopologySpreadConstraint,
)
from policysched.rules.compiled import CompiledPolicy
from policysched.rules.policyset import PolicySet
from policysched.schedule.engine import Engine
from policysched.schedule.record import Record, make_record
from policysched.state import journal
from policysched.state.amounts import CPU, MEMORY
from tests.build import pod
from tests.rules.build import compiled, filtering, scoring
from tests.schedule.neighbours import neighbourly
from tests.schedule.world import GPU, HOST, IMAGES, ZONE, World, owned

LIFE = int(os.environ.get("POLICYSCHED_LIFE") or 100_000)
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
        owned(pod("owned", requests={"cpu": 1}), "rs"),
        *spread(),
    ]


def spread() -> list[Pod]:
    """Pods with constraints of their own, some of which look at the same counts."""
    team = LabelSelector(match_labels={"team": "a"})
    expression = LabelSelector(match_expressions=[Requirement(key="team", operator="NotIn", values=("b",))])

    def over(key: str, max_skew: int, *, hard: bool = True, selector: LabelSelector = team, **more: Any) -> Any:
        return TopologySpreadConstraint(
            max_skew=max_skew,
            topology_key=key,
            when_unsatisfiable="DoNotSchedule" if hard else "ScheduleAnyway",
            label_selector=selector,
            **more,
        )

    def made(name: str, *constraints: Any, **more: Any) -> Pod:
        return pod(name, labels={"team": "a"}, topology_spread_constraints=list(constraints), **more)

    return [
        made("zones", over("zone", 2)),
        made("hosts", over(HOST, 1, node_taints_policy="Honor"), over(ZONE, 3, selector=expression)),
        made("domains", over("disk", 3, min_domains=3), node_selector={"zone": "x"}),
        made("softly", over("zone", 1, hard=False), node_selector={"disk": "y"}),
        made("both", over(ZONE, 2), over(HOST, 1, hard=False), over("disk", 2, hard=False, match_label_keys=["team"])),
        owned(pod("like-its-own", labels={"team": "b"}), "other"),
    ]


@functools.cache
def policies() -> tuple[tuple[CompiledPolicy, ...], ...]:
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
            *filtering("cluster.nodes > 2 or not node.cordoned", "few"),
        ],
        "scores": [
            *scoring("normalize(node.free.memory / 1Gi)", "all", when='pod.labels["team"] != "b"'),
            *scoring("node.requested.cpu / 10m", "most", normalize="Max", weight=3),
            *scoring("clamp(cluster.nodes + cluster.pods / 10, 0, 100)", "counts"),
            *scoring(['node.annotations["rack"] == "r" → 90', 'has(node.annotations["rack"]) → 10'], "rack"),
        ],
    }
    calm = {
        "filters": [
            *filtering("node.free.cpu >= pod.requests.cpu / 2", "free"),
            *filtering("not node.cordoned and node.allocatable.pods < 200", "open"),
            *filtering('pod.annotations["disks"] != "x|y" or node.cached_image_bytes > 300Mi', "near"),
        ],
        "scores": [
            *scoring("scale(node.requested.cpu / node.allocatable.cpu, 0%, 100%)", "used"),
            *scoring("only(node.ready, node.cached_image_bytes / 1Mi)", "cached", normalize="Max"),
        ],
    }
    surroundings = {
        "appliesTo": 'pod.namespace_labels["tier"] == "gold"',
        "weight": 3,
        "filters": filtering("node.cached_image_bytes >= 100Mi or node.ready", "near"),
        "scores": scoring("scale(node.cached_image_bytes / 1Mi, 0, 2000)", "cached"),
    }
    images = {
        "filters": filtering("node.cached_image_bytes >= pod.image_bytes / 4", "near"),
        "scores": scoring("clamp(pod.image_bytes / 20Mi, 0, 100)", "size"),
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
    peers = {
        "filters": [
            *filtering('node.pods.count(peer.labels["team"] == pod.labels["team"]) < 6', "crowd"),
            *filtering('not node.pods.any(peer.labels["license"] == "matlab" and peer.namespace == "a")', "licence"),
            *filtering("node.pods.count(peer.requests.cpu > node.free.cpu) < 3", "beside"),
        ],
        "scores": [
            *scoring("node.pods.sum(peer.requests.cpu) / 100m", "used", weight=2),
            *scoring("node.pods.sum(peer.requests.cpu, peer.priority < pod.priority) / 50m", "lower", normalize="Max"),
        ],
    }
    around = {
        "let": [
            {"name": "in_zone", "value": 'sum(node.pods.count(peer.labels["team"] == "a")) by node.labels["zone"]'}
        ],
        "filters": [
            *filtering('sum(node.pods.count(peer.labels["license"] == "matlab")) < 30', "seats"),
            *filtering('(avg(if(node.ready, 1, 0)) by node.labels["w.io/a"] > 20%) ?? true', "quorum"),
        ],
        "scores": [
            *scoring(["in_zone <= min(in_zone) → 100", "else → 50", "missing → 9"], "spread"),
            *scoring("scale(node.requested.cpu, 0, max(node.requested.cpu) + 1)", "fuller"),
            *scoring('100 * count(node.labels["disk"] == pod.labels["team"]) / cluster.nodes', "alike"),
        ],
    }
    timed = {
        "metrics": [{"name": "load", "query": "load", "maxAge": "1min"}, {"name": "heat", "query": "heat"}],
        "filters": [
            *filtering("(metrics.load < 90%) ?? true", "load"),
            *filtering("node.age >= 30s or pod.age > 1h", "warm", when='not clock("22:00", "06:00", "Europe/Berlin")'),
        ],
        "scores": [
            *scoring(["metrics.heat < avg(metrics.heat) → 80", "else → 20", "missing → 50"], "cool"),
            *scoring("scale(node.age, 0s, 1h)", "old"),
            *scoring("hour() * 4", "late"),
        ],
    }
    shadow = {"mode": "Shadow", "filters": filtering('node.labels["zone"] == "x"')}
    made = {
        name: compiled(name, **spec)
        for name, spec in (
            ("labels", labels),
            ("usage", usage),
            ("calm", calm),
            ("surroundings", surroundings),
            ("images", images),
            ("computed", computed),
            ("peers", peers),
            ("around", around),
            ("timed", timed),
            ("shadow", shadow),
        )
    }
    sets = (
        "",
        "labels shadow",
        "calm labels",
        "calm computed",
        "calm surroundings",
        "surroundings",
        "calm images",
        "usage computed",
        "peers",
        "around labels",
        "calm timed",
        "peers around timed",
        " ".join(made),
    )
    return tuple(tuple(made[name] for name in names.split()) for names in sets)


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
        held |= {"nonzero": (int(nodes.amounts.counted[CPU, row]), int(nodes.amounts.counted[MEMORY, row]))}
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


CALM = ("ImageLocality", "DynamicResources")
"""Without the plugins that start all classes anew when anything of theirs changes, so that little is ever forgotten."""


class Side:
    """An engine of its own with policies of its own, over one cluster."""

    def __init__(self, cluster: Cluster, off: Collection[str]) -> None:
        self._profile = default_profile("default-scheduler", off=off)
        self.engine = Engine(cluster, self._profile, random.Random(0))
        self.policies = PolicySet()

    def use(self, policies: Iterable[CompiledPolicy]) -> Side:
        self.policies = PolicySet.of(policies)
        self.engine.use(self.policies.join(self._profile))
        return self

    def record(self, of: Pod) -> Record:
        """A decision without what was drawn."""
        decision = self.engine.decide(of)
        made = make_record(decision, self.policies.plugins)
        assert made.pop("selected", None) in {*made.get("best", ()), None}
        return made | {"rejectors": decision.rejectors() if decision.row < 0 else None}


class Trial:
    """A world with an engine that lives through all of it."""

    def __init__(self, world: World, off: Collection[str]) -> None:
        self._world, self._off = world, off
        around = neighbourly(calm=world.calm)
        self._pods, self._looking = [*wanted(), *around], [*spread(), *around]
        self._policies = policies()[-1]
        self._live = Side(world.cluster, off).use(self._policies)

    def run(self, events: int, pace: int = 1) -> None:
        """Let events happen and look at some pods after many of them; load everything anew now and then.

        A slower pace, which is a larger number, looks less often.
        """
        chance = self._world.random
        for number in range(1, events + 1):
            self._world.step()
            if number % 100 == 0:
                self._policies = chance.choice(policies())
                self._live.use(self._policies)
            if number % 5 == 0:
                self._place(chance.choice((*self._pods[:8], *self._looking)), number)
            if number % (3 * pace) == 0:
                self._compare(self._world.cluster, chance.sample(self._pods, 2))
            if number % (60 * pace) == 0:
                fresh = self._world.fresh()
                assert columns(self._world.cluster) == columns(fresh)
                self._compare(fresh, chance.sample(self._pods, 5))
        self._compare(self._world.fresh(), self._pods)

    def _compare(self, cluster: Cluster, pods: Iterable[Pod]) -> None:
        """Compare the live engine with one that has just begun."""
        assert self._world.cluster.nodes.count == cluster.nodes.count
        assert len(self._world.cluster.pods) == len(cluster.pods)
        new = Side(cluster, self._off).use(self._policies)
        for one in pods:
            assert self._live.record(one) == new.record(one), one.key

    def _place(self, like: Pod, number: int) -> None:
        """Place a sibling where the engine says."""
        sibling = replace(like, metadata=replace(like.metadata, name=f"s{number}", uid=f"s{number}"))
        decision = self._live.engine.decide(sibling)
        if decision.node:
            self._world.assume(sibling, decision.node)


@pytest.mark.parametrize(("ring", "most_nodes"), [(journal.RING, 100), (64, 20), (16, 3)])
@pytest.mark.parametrize("off", [CALM, ()], ids=["calm", "default"])
def test_events_one_by_one_give_what_loading_at_once_gives(
    monkeypatch: pytest.MonkeyPatch, off: Collection[str], ring: int, most_nodes: int
) -> None:
    monkeypatch.setattr(journal, "RING", ring)
    Trial(World(SEED + ring, most_nodes, calm=off == CALM), off).run(EVENTS // 6)


def test_a_long_life_gives_what_loading_at_once_gives() -> None:
    Trial(World(SEED, 100), ()).run(LIFE, pace=20)
