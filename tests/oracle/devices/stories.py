"""Sequences of pods with claims, in clusters where claims come and go between them.

Knows nothing of where pods go or which devices they get: a pod of the sequence that is set again has its claims
written, as PreBind does, and one that is removed before gives back what was reserved for it. Both sides know what
that was.
"""

from __future__ import annotations

from copy import deepcopy
from random import Random
from typing import TYPE_CHECKING, Any, TypeAlias

from .cases import World, configuration, drawn_themes
from .taint_rules import Rules

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Thing: TypeAlias = dict[str, Any]
Case: TypeAlias = dict[str, Any]
Change: TypeAlias = dict[str, Thing]

LENGTH = 30
"""How many pods are scheduled."""


def stories(seed: int, indices: Iterable[int]) -> Iterator[Case]:
    """Generate sequences; each has a random source of its own."""
    for index in indices:
        yield Story(Random(f"{seed}/device-story/{index}"), f"{seed}-e{index}").case()


class Story:
    """Draws one sequence, and remembers what there is so that each change makes sense."""

    def __init__(self, rng: Random, name: str) -> None:
        self._rng, self._name = rng, name
        self._world = World(rng, drawn_themes(rng) - {"limits", "errors"}, calm=rng.random() < 0.85)
        self._world.fill()
        self._kept = len(self._world.objects)
        self._unwritten: list[Thing] = []
        self._written: list[Thing] = []
        self._claims: dict[str, list[Thing]] = {}
        """The claims that were made for each pod."""
        self._shared: list[Thing] = []

    def case(self) -> Case:
        """Draw the whole sequence."""
        objects = self._world.shuffled()
        rules, is_about_taints = Rules(self._name, objects), "taints" in self._world.themes
        sequence, between = [], []
        workloads = [self._workload(number) for number in range(self._rng.randint(1, 4))]
        for number in range(LENGTH):
            pod, claims = self._copy(*self._rng.choice(workloads), number)
            changes = [*self._changes(), *rules.change(is_about_taints=is_about_taints)]
            between.append([*changes, *({"set": claim} for claim in claims)])
            self._unwritten.append(pod)
            self._claims[pod["metadata"]["name"]] = claims
            sequence.append(pod)
        return {
            "id": self._name,
            "themes": sorted(self._world.themes),
            "objects": [*rules.draw(is_about_taints=is_about_taints), *objects],
            "sequence": sequence,
            "between": between,
            "config": self._configuration(),
        }

    def _configuration(self) -> Thing:
        """Score no extended resources: kube-scheduler never clears what it keeps of these scores."""
        return configuration(self._rng, self._world.themes - {"extended"})

    def _workload(self, number: int) -> tuple[Thing, list[Thing]]:
        """Draw a pod and its claims, which are made anew for each copy."""
        before = len(self._world.objects)
        pod = self._world.pod(f"w{number}", f"pod-w{number}")
        claims = [one for one in self._world.objects[before:] if one["kind"] == "ResourceClaim"]
        del self._world.objects[before:]
        return pod, [one for one in claims if "status" not in one]

    def _copy(self, pod: Thing, claims: list[Thing], number: int) -> tuple[Thing, list[Thing]]:
        """Name a workload's pod and claims; now and then it shares a claim of an earlier pod."""
        old, new = pod["metadata"]["name"], f"{pod['metadata']['name']}-{number}"
        made = _renamed([pod, *claims], old, new)
        pod, claims = made[0], made[1:]
        named = [one for one in pod["spec"].get("resourceClaims", ()) if "resourceClaimName" in one]
        if named and self._shared and self._rng.random() < 0.4:
            own = named[0]["resourceClaimName"]
            named[0]["resourceClaimName"] = self._shared[-1]["metadata"]["name"]
            claims = [one for one in claims if one["metadata"]["name"] != own]
        names = {one["resourceClaimName"] for one in named}
        self._shared += [one for one in claims if one["metadata"]["name"] in names]
        return pod, claims

    def _changes(self) -> list[Change]:
        """Draw what happens before the next pod."""
        found = [change for pod in [*self._unwritten] if self._rng.random() < 0.5 for change in self._write(pod)]
        if self._rng.random() < 0.5:
            found += self._leave()
        if self._rng.random() < 0.12:
            found += self._republish()
        return found

    def _write(self, pod: Thing) -> list[Change]:
        self._unwritten.remove(pod)
        self._written.append(pod)
        return [{"set": pod}]

    def _leave(self) -> list[Change]:
        """Have a pod go, and what was made for it; a shared claim is only given back."""
        pods = self._written or self._unwritten
        if not pods:
            return []
        pod = pods.pop(self._rng.randrange(len(pods)))
        found: list[Change] = [{"remove": pod}]
        for claim in self._claims[pod["metadata"]["name"]]:
            gone = claim not in self._shared
            found.append({"remove": claim} if gone else {"set": claim})
        return [*found, {"remove": _special(pod)}]

    def _republish(self) -> list[Change]:
        """Have a driver publish a slice anew, with one device less or another attribute, or take it back."""
        slices = [one for one in self._world.objects[: self._kept] if one["kind"] == "ResourceSlice"]
        if not slices:
            return []
        old = self._rng.choice(slices)
        new = deepcopy(old)
        devices = new["spec"].get("devices", [])
        if self._rng.random() < 0.3:
            return [{"remove": old}]
        pool = new["spec"]["pool"]
        pool["generation"] += self._rng.choice([0, 1])
        pool["resourceSliceCount"] = self._count(new, old)
        if len(devices) > 1 and self._rng.random() < 0.5:
            devices.pop(self._rng.randrange(len(devices)))
        for device in devices[:1]:
            device["attributes"] = {"model": {"string": self._rng.choice("AB")}}
        place = next(number for number, one in enumerate(self._world.objects) if one is old)
        self._world.objects[place] = new
        return [{"set": new}]

    def _count(self, new: Thing, old: Thing) -> int:
        """Say how many slices a generation has: all of them say the same, else kube-scheduler goes by any of them."""
        of, pool = new["spec"], new["spec"]["pool"]
        for other in self._world.objects[: self._kept]:
            if other["kind"] != "ResourceSlice" or other is old or other["spec"]["driver"] != of["driver"]:
                continue
            known = other["spec"]["pool"]
            if (known["name"], known["generation"]) == (pool["name"], pool["generation"]):
                return int(known["resourceSliceCount"])
        return int(pool["resourceSliceCount"])


def _special(pod: Thing) -> Thing:
    """Name the claim for a pod's extended resources; removing one that is not there does nothing."""
    metadata = {"name": f"{pod['metadata']['name']}-extended-resources-0", "namespace": "default"}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": metadata,
        "spec": {"devices": {"requests": []}},
    }


def _renamed(value: Any, old: str, new: str) -> Any:
    """Copy objects with another name of the pod in all that is made of it."""
    if isinstance(value, dict):
        return {key: _renamed(part, old, new) for key, part in value.items()}
    if isinstance(value, list):
        return [_renamed(part, old, new) for part in value]
    if isinstance(value, str) and f"{value.removeprefix('pod-').removeprefix('claim-')}-".startswith(f"{old}-"):
        return value.replace(old, new, 1)
    return value
