"""Cases about devices: a cluster whose drivers publish some, claims, and a pod that needs what it claims.

Knows nothing of how a case is answered. Nodes are roomy, so that devices decide; a case has up to three themes, as one
about everything at once is refused by the first thing that is wrong with it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any, TypeAlias

from tests.oracle import configs

from .claimed import Claims
from .published import CLASSES, EXTENDED, IMPLICIT, ZONE, ZONES, Devices, classes
from .taint_rules import Rules

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Thing: TypeAlias = dict[str, Any]
Case: TypeAlias = dict[str, Any]

THEMES = {
    "constraints": 4,
    "alternatives": 4,
    "counters": 4,
    "capacity": 4,
    "taints": 3,
    "pools": 5,
    "conditions": 2,
    "all": 3,
    "admin": 2,
    "errors": 3,
    "limits": 2,
    "extended": 4,
    "sharing": 3,
}
"""What a case may be about, and how often it is."""
SAME_NAME = {"gpu", "twin"}
"""Classes of one extended resource: of the one that loses it kube-scheduler may forget the name of its own, by the
order in which it hears of them."""
UNKNOWN = "example.com/unknown"
"""A resource that no class stands for, and no node has."""
LEAVING = "2026-01-01T00:00:00Z"
POD = "pending"
UID = "pod-pending"
ANNOTATION = {"resource.kubernetes.io/extended-resource-claim": "true"}


def singles(seed: int, indices: Iterable[int]) -> Iterator[Case]:
    """Generate cases with one pod; case 17 of a seed is the same whichever others are asked for."""
    for index in indices:
        yield single(Random(f"{seed}/devices/{index}"), f"{seed}-d{index}")


def single(rng: Random, name: str) -> Case:
    """Generate one case; `themes` tells what it is about and is no part of the question."""
    world = World(rng, drawn_themes(rng), calm=rng.random() < 0.4)
    world.fill()
    pod = world.pod(POD, UID)
    objects = world.shuffled()
    rules = Rules(name, objects).draw(is_about_taints="taints" in world.themes)
    return {
        "id": name,
        "themes": sorted(world.themes),
        "objects": [*rules, *objects],
        "pod": pod,
        "config": configuration(rng, world.themes, scored=not _repeats_devices(objects)),
    }


def _repeats_devices(objects: Iterable[Thing]) -> bool:
    """Say whether two devices have one ID: kube-scheduler's score keeps what a class says of the one it meets first."""
    specs = [one.get("spec", {}) for one in objects if one["kind"] == "ResourceSlice"]
    ids = [(one["driver"], one["pool"]["name"], device["name"]) for one in specs for device in one.get("devices", ())]
    return len(ids) > len(set(ids))


def drawn_themes(rng: Random) -> frozenset[str]:
    """Draw what a case is about."""
    return frozenset(rng.choices([*THEMES], [*THEMES.values()], k=rng.choice([0, 1, 1, 2, 2, 3])))


def configuration(rng: Random, themes: frozenset[str], *, scored: bool = True) -> Thing:
    """Make the usual configuration; extended resources may be scored, and the search may have no deadline.

    Args:
        rng: What is drawn from.
        themes: What the case is about.
        scored: Whether a strategy may score extended resources.
    """
    config = configs.base()
    profile = config["profiles"][0]
    if "extended" in themes and scored and rng.random() < 0.3:
        resources = [{"name": one, "weight": 1} for one in (*EXTENDED, f"{IMPLICIT}gpu-a", "cpu")]
        kind = rng.choice(["LeastAllocated", "MostAllocated"])
        configs.put_arguments(profile, "NodeResourcesFit", {"scoringStrategy": {"type": kind, "resources": resources}})
    elif "extended" in themes and rng.random() < 0.4:
        configs.put_arguments(profile, "NodeResourcesFit", {"ignoredResources": [UNKNOWN]})
    if rng.random() < 0.1:
        configs.put_arguments(profile, "DynamicResources", {"filterTimeout": "0s"})
    return config


@dataclass
class World:
    """The objects of one case, as they are drawn."""

    rng: Random
    themes: frozenset[str]
    calm: bool = False
    """Whether most pods find what they need, for as long as others give back what they had."""
    nodes: list[Thing] = field(default_factory=list)
    objects: list[Thing] = field(default_factory=list)

    def chance(self, share: float) -> bool:
        """Draw whether something is so."""
        return self.rng.random() < share

    def fill(self) -> None:
        """Draw nodes, devices, classes and the claims of others."""
        names = [f"node-{number}" for number in range(self.rng.choice([1, 2, 3, 3, 4, 6]))]
        self.nodes = [self._node(name) for name in names]
        self.devices = Devices(self.rng, self.themes, names, calm=self.calm)
        self.devices.fill()
        self.claims = Claims(self.rng, self.themes, self.devices, calm=self.calm)
        self.objects = [*classes(self.rng, self.themes, calm=self.calm), *self.devices.slices]
        for number in range(self.rng.choice([0, 1, 2, 4])):
            self.objects.append(self.claims.allocated(f"other-{number}"))

    def shuffled(self) -> list[Thing]:
        """Give all objects in an order that means nothing."""
        found = [*self.nodes, *self.objects]
        self.rng.shuffle(found)
        return found

    def _node(self, name: str) -> Thing:
        room: Thing = {"cpu": "64", "memory": "256Gi", "pods": "600"}
        if "extended" in self.themes:
            for resource in (*EXTENDED, f"{IMPLICIT}gpu-a"):
                if self.chance(0.4):
                    room[resource] = self.rng.choice(["0", "0", "1", "4"])
        labels = {"kubernetes.io/hostname": name} | ({ZONE: self.rng.choice(ZONES)} if self.chance(0.9) else {})
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "spec": {},
            "status": {"capacity": room, "allocatable": room},
        }

    def pod(self, name: str, uid: str) -> Thing:
        """Draw a pod and its claims, which are put among the objects."""
        pod: Thing = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "uid": uid},
            "spec": {"containers": [_container("app")]},
            "status": {},
        }
        if "extended" in self.themes:
            self._ask_for_resources(pod)
        few = [0, 0, 1] if "extended" in self.themes else [1, 1, 2] if self.calm else [1, 1, 1, 2, 3]
        for number in range(self.rng.choice(few)):
            self._refer(pod, number)
        return pod

    def _refer(self, pod: Thing, number: int) -> None:
        """Have the pod use a claim: by name, or one that was made for it."""
        name, reference = f"{pod['metadata']['name']}-c{number}", f"c{number}"
        entry: Thing = {"name": reference}
        pod["spec"].setdefault("resourceClaims", []).append(entry)
        trap = self.chance(0.0 if self.calm else 0.12)
        owner = "template" if self.chance(0.5) else ""
        if owner:
            entry["resourceClaimTemplateName"] = "template"
            statuses = pod["status"].setdefault("resourceClaimStatuses", [])
            if trap and self.chance(0.6):
                if self.chance(0.5):
                    statuses.append({"name": reference})
                return
            statuses.append({"name": reference, "resourceClaimName": name})
        elif trap and self.chance(0.2):
            return
        else:
            entry["resourceClaimName"] = name
        metadata = self._metadata(pod, owned=bool(owner) != (trap and self.chance(0.3)))
        if trap and self.chance(0.3):
            return
        known = not self.calm and self.chance(0.5 if "sharing" in self.themes else 0.08)
        self.objects.append((self.claims.allocated if known else self.claims.claim)(name, **metadata))

    def _metadata(self, pod: Thing, *, owned: bool) -> Thing:
        found: Thing = {}
        if owned:
            of = pod["metadata"]
            owner = {"apiVersion": "v1", "kind": "Pod", "name": of["name"], "uid": of["uid"], "controller": True}
            found["ownerReferences"] = [owner]
        if not self.calm and self.chance(0.02):
            found |= {"deletionTimestamp": LEAVING, "finalizers": ["resource.kubernetes.io/delete-protection"]}
        return found

    def _ask_for_resources(self, pod: Thing) -> None:
        """Have containers of all kinds request extended resources."""
        spec = pod["spec"]
        spec["containers"] = [self._asking(f"app-{number}") for number in range(self.rng.choice([1, 1, 2]))]
        if self.chance(0.5):
            spec["initContainers"] = [self._asking(f"init-{n}") for n in range(self.rng.choice([1, 2, 3]))]
            for container in spec["initContainers"]:
                if self.chance(0.3):
                    container["restartPolicy"] = "Always"
        if self.chance(0.06):
            self.objects.append(self._stored(pod))

    def _asking(self, name: str) -> Thing:
        container = _container(name)
        asked = container["resources"]["requests"]
        names = [*EXTENDED, *(f"{IMPLICIT}{one}" for one in CLASSES if one not in SAME_NAME), UNKNOWN]
        weights = [8, 4, *(1 for one in CLASSES if one not in SAME_NAME), 4]
        for resource in self.rng.choices(names, weights, k=self.rng.choice([0, 1, 1, 2])):
            asked[resource] = self.rng.choice(["1", "1", "2", "3", "0"])
        if self.chance(0.3):
            asked["memory"] = "1Mi"
        return container

    def _stored(self, pod: Thing) -> Thing:
        """Make the claim of an earlier cycle, which stands for the pod's extended resources."""
        name = f"{pod['metadata']['name']}-extended-resources-x"
        metadata = self._metadata(pod, owned=True) | {"annotations": ANNOTATION}
        return self.claims.claim(name, **metadata) if self.chance(0.5) else self.claims.allocated(name, **metadata)


def _container(name: str) -> Thing:
    return {"name": name, "image": "app:1", "resources": {"requests": {"cpu": "10m"}}}
