"""Cases about pods that look at each other: affinity between pods, spreading, and default spreading.

Knows nothing of how a case is answered. Nodes are roomy and pods are small, so that the plugins before
these two leave nodes to decide about; up to one other theme is mixed in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from . import nodes, owners, peers, pods, relation_config, selectors, spreading, topology
from .features import terms

if TYPE_CHECKING:
    from random import Random

Case: TypeAlias = dict[str, Any]
Thing: TypeAlias = dict[str, Any]

THEMES = ["peers", "spread", "defaults"]
SHARES = [5, 6, 3]
MIXED = ["resources", "affinity", "taints", "cordon", "images", "ports"]
"""Themes of other cases that are mixed in."""
ROOM = {"cpu": "64", "memory": "256Gi", "pods": "600"}
MOST_RESIDENTS = 600


def relation(rng: Random, name: str) -> Case:
    """Generate one case; `themes` tells what it is about and is no part of the question."""
    world = draw_world(rng)
    names = [f"node-{number}" for number in range(topology.node_count(rng))]
    objects = [*world.namespaces(rng), *world.nodes(rng, names)]
    pod = world.pending(rng, "pending", names)
    objects += world.owned(rng, pod)
    objects += world.residents(rng, names, [pod])
    if any(_matches_unlabelled(term.get("namespaceSelector")) for _, term in terms(pod)):
        objects += _missing_namespaces([*objects, pod])  # dry-run takes them for existing ones
    return {
        "id": name,
        "themes": sorted(world.themes),
        "objects": objects,
        "pod": pod,
        "config": relation_config.configuration(rng, world.themes),
    }


def _matches_unlabelled(selector: Thing | None) -> bool:
    """Whether a selector matches namespaces without labels, though not all namespaces."""
    expressions = (selector or {}).get("matchExpressions", ())
    absent = all(one["operator"] in {"DoesNotExist", "NotIn"} for one in expressions)
    return bool(expressions) and absent and "matchLabels" not in (selector or {})


def _missing_namespaces(objects: list[Thing]) -> list[Thing]:
    known = {one["metadata"]["name"] for one in objects if one["kind"] == "Namespace"}
    named = {one["metadata"]["namespace"] for one in objects if one["kind"] == "Pod"}
    return [_thing("Namespace", {"name": name}) for name in sorted(named - known)]


def draw_world(rng: Random, *, related: bool = True) -> World:
    """Draw what a case is about; its pods look at each other or do not."""
    themes = set(rng.choices(THEMES, SHARES, k=rng.choice([1, 1, 1, 2]))) if related else {rng.choice(MIXED)}
    if rng.random() < 0.4:
        themes.add(rng.choice(MIXED))
    crowded = rng.choices([0.0, 0.3, 1.0, 2.0, 4.0, 8.0], [1, 2, 5, 6, 4, 1])[0]
    return World(frozenset(themes), crowded, kinship=rng.choice([0.0, 0.3, 0.7]), namespaced=rng.random() < 0.4)


@dataclass(frozen=True, slots=True)
class World:
    """What the objects of one case have in common.

    `crowded` is how many pods a node has on average, `kinship` how many of them are of the same workloads as
    the pods to schedule.
    """

    themes: frozenset[str]
    crowded: float
    kinship: float
    namespaced: bool

    @property
    def related(self) -> bool:
        """Whether pods look at each other."""
        return bool(self.themes & set(THEMES))

    def namespaces(self, rng: Random) -> list[Thing]:
        """Make the namespaces that are there; the API server labels each with its name."""
        return [
            _thing("Namespace", {"name": name, "labels": {"kubernetes.io/metadata.name": name, **found}})
            for name in peers.NAMESPACES[:-1]
            if rng.random() < 0.9
            for found in [selectors.of_namespace(rng)]
        ]

    def nodes(self, rng: Random, names: list[str]) -> list[Thing]:
        """Make nodes in their places, in an order of their own."""
        places = topology.topology(rng, len(names))
        found = [self.node(rng, name, places.labels(rng, name, number)) for number, name in enumerate(names)]
        rng.shuffle(found)
        return found

    def node(self, rng: Random, name: str, labels: dict[str, str]) -> Thing:
        """Make one node."""
        made = nodes.node(rng, name, self.themes)
        drawn = made["metadata"]["labels"]
        kept = {label: value for label, value in drawn.items() if not label.startswith(("kubernetes", "topology"))}
        made["metadata"]["labels"] = kept | labels
        if "resources" not in self.themes:
            made["status"].pop("capacity", None)
            made["status"]["allocatable"] = dict(ROOM)
        return made

    def residents(self, rng: Random, names: list[str], wanted: list[Thing]) -> list[Thing]:
        """Place pods; a few nodes get most of them.

        Args:
            rng: what draws.
            names: the nodes.
            wanted: the pods to schedule, or one of each workload.
        """
        count = min(MOST_RESIDENTS, round(len(names) * self.crowded * rng.uniform(0.5, 1.5)))
        favoured = rng.sample(names, max(1, len(names) // 3))
        homes = [rng.choice(favoured if rng.random() < 0.6 else names) for _ in range(count)]
        ruled = rng.choice([0.0, 0.1, 0.3]) if "peers" in self.themes else 0.02 * self.related
        kin = [rng.choice(wanted) if rng.random() < self.kinship else None for _ in homes]
        return [
            self.resident(rng, f"placed-{number}", home, ruled, like)
            for number, (home, like) in enumerate(zip(homes, kin, strict=True))
        ]

    def resident(self, rng: Random, name: str, home: str, ruled: float, like: Thing | None = None) -> Thing:
        """Make a placed pod that has rules of its own now and then; `like` another one in namespace and labels."""
        if self.themes & {"resources", "ports"}:
            made = pods.placed(rng, name, home, self.themes)
        else:
            made = _small(rng, name)
            made["spec"]["nodeName"] = home
            made["status"]["phase"] = "Running" if rng.random() < 0.95 else rng.choice(["Succeeded", "Pending"])
        if like is None:
            self._name(rng, made)
        else:
            made["metadata"] |= {key: like["metadata"][key] for key in ("namespace", "labels")}
        if rng.random() < 0.06:
            made["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30}
        if rng.random() < ruled:
            made["spec"]["affinity"] = peers.standing(rng, made["metadata"]["labels"])
        return made

    def pending(self, rng: Random, name: str, names: list[str]) -> Thing:
        """Make the pod to schedule."""
        mixed = self.themes & set(MIXED)
        made = pods.pending(rng, name, names, self.themes) if mixed else _small(rng, name)
        self._name(rng, made)
        spec, own = made["spec"], made["metadata"]["labels"]
        if "peers" in self.themes:
            spec["affinity"] = {**spec.get("affinity", {}), **peers.wanted(rng, own)}
        if "spread" in self.themes and ("defaults" not in self.themes or rng.random() < 0.5):
            spec["topologySpreadConstraints"] = spreading.constraints(rng, own)
            if rng.random() < 0.3:
                spec.setdefault("nodeSelector", {})[topology.POOL] = "a"
        if self.themes & {"spread", "taints"} == {"spread", "taints"} and rng.random() < 0.5:
            spec.pop("tolerations", None)
        return made

    def owned(self, rng: Random, pod: Thing) -> list[Thing]:
        """Give the pod Services and a controller, and return them."""
        if not self.related or ("defaults" not in self.themes and rng.random() > 0.05):
            return []
        found = owners.services(rng, pod["metadata"]["namespace"], pod["metadata"]["labels"])
        return found + (owners.controller(rng, pod) if not found or rng.random() < 0.6 else [])

    def _name(self, rng: Random, made: Thing) -> None:
        if self.namespaced:
            made["metadata"]["namespace"] = rng.choices(peers.NAMESPACES, [6, 3, 2, 1])[0]
        made["metadata"]["labels"] = selectors.labels(rng)


def _small(rng: Random, name: str) -> Thing:
    container: Thing = {"name": "app", "image": "app:1"}
    if rng.random() < 0.5:
        container["resources"] = {"requests": {"cpu": rng.choice(["10m", "100m"])}}
    made = _thing("Pod", {"name": name, "namespace": "default"})
    return {**made, "spec": {"containers": [container]}, "status": {}}


def _thing(kind: str, metadata: Thing) -> Thing:
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata}
