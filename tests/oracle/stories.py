"""Sequences of pods in a cluster that changes while they are scheduled.

Knows nothing of where the pods go: a change names a pod of the sequence and leaves its node out, and both
sides know where they have put it. The pods are copies of a few workloads, as they are in practice, so
that what one side keeps about a workload is used again after every change.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from . import peers, relation_config, relations, selectors, topology

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

Thing: TypeAlias = dict[str, Any]
Case: TypeAlias = dict[str, Any]
Change: TypeAlias = dict[str, Thing]


def story(rng: Random, name: str, *, length: int, most_nodes: int, busy: float, related: bool) -> Case:
    """Generate a case with a sequence.

    Args:
        rng: what draws.
        name: the case's id.
        length: how many pods are scheduled.
        most_nodes: the largest cluster to draw.
        busy: how often something happens between two pods.
        related: whether pods look at each other.
    """
    world = relations.draw_world(rng, related=related)
    names = [f"node-{number}" for number in range(rng.randint(2, most_nodes))]
    workloads = [world.pending(rng, f"workload-{number}", names) for number in range(rng.randint(2, 6))]
    objects = [*world.namespaces(rng), *world.nodes(rng, names), *_orderly(world).residents(rng, names, workloads)]
    owned = [one for workload in workloads for one in world.owned(rng, workload)]
    objects += {(one["kind"], one["metadata"]["namespace"], one["metadata"]["name"]): one for one in owned}.values()
    sequence = [_copy(rng.choice(workloads), number) for number in range(length)]
    changes = Changes(rng, world, [dict(one) for one in objects])
    return {
        "id": name,
        "themes": sorted(world.themes),
        "objects": objects,
        "sequence": sequence,
        "between": [changes.before(pod, busy) for pod in sequence],
        "config": relation_config.configuration(rng, world.themes),
    }


def _orderly(world: relations.World) -> relations.World:
    """Give a world in which no two pods that nobody scheduled claim one host port of a node.

    Where one of two such pods goes, kube-scheduler believes the port free.
    """
    return replace(world, themes=world.themes - {"ports"})


def _copy(workload: Thing, number: int) -> Thing:
    metadata = workload["metadata"]
    return {**workload, "metadata": {**metadata, "name": f"{metadata['name']}-{number}"}}


class Changes:
    """Draws what happens between pods, and remembers it so that the next change makes sense."""

    def __init__(self, rng: Random, world: relations.World, objects: list[Thing]) -> None:
        self._rng = rng
        self._world = world
        self._objects = objects
        self._away: list[Thing] = []
        self._added = 0

    def before(self, pod: Thing, busy: float) -> list[Change]:
        """Draw what happens before the pod is scheduled; from then on things can happen to the pod too."""
        found = [self._change() for _ in range(self._rng.choice([1, 1, 3])) if self._rng.random() < busy]
        self._objects.append(pod)
        return [change for change in found if change is not None]

    def _change(self) -> Change | None:
        themes = self._world.themes
        spaces, owners = (3 if "peers" in themes else 1), (4 if "defaults" in themes else 0.5)
        kinds = [self._pod, self._node, self._namespace, self._owner]
        return self._rng.choices(kinds, [12, 4, spaces, owners])[0]()

    def _pod(self) -> Change | None:
        found = self._any("Pod")
        if found is None:
            return self._new_pod()
        happen: Callable[[Thing], Change] = self._rng.choices(
            [self._confirm, self._relabel, self._terminate, self._finish, self._remove], [5, 2, 2, 1, 5]
        )[0]
        return happen(found)

    def _new_pod(self) -> Change | None:
        node = self._any("Node")
        if node is None:
            return None
        self._added += 1
        return self._set(
            self._world.resident(self._rng, f"added-{self._added}", node["metadata"]["name"], 0.3 * self._world.related)
        )

    def _confirm(self, pod: Thing) -> Change:
        return {"set": pod}

    def _relabel(self, pod: Thing) -> Change:
        """Change labels; those that label keys name stay, as their values are in the pod's selectors already."""
        kept = {key: value for key, value in pod["metadata"]["labels"].items() if key in peers.LABEL_KEYS}
        drawn = {key: value for key, value in selectors.labels(self._rng).items() if key not in peers.LABEL_KEYS}
        return self._with_metadata(pod, labels=drawn | kept)

    def _terminate(self, pod: Thing) -> Change:
        return self._with_metadata(pod, deletionTimestamp="2026-01-01T00:00:00Z", deletionGracePeriodSeconds=30)

    def _finish(self, pod: Thing) -> Change:
        self._objects.remove(pod)
        return {"set": {**pod, "status": {**pod["status"], "phase": "Succeeded"}}}

    def _node(self) -> Change | None:
        node = self._any("Node")
        if node is None or (self._away and self._rng.random() < 0.4):
            return self._set(self._away.pop()) if self._away else None
        # kube-scheduler counts the nodes with an image when a node's own entry changes, not when another node leaves
        leave = 0 if "images" in self._world.themes else 1
        happen: Callable[[Thing], Change] = self._rng.choices([self._move, self._taint, self._leave], [3, 2, leave])[0]
        return happen(node)

    def _move(self, node: Thing) -> Change:
        places = topology.topology(self._rng, 4)
        name = node["metadata"]["name"]
        return self._with_metadata(node, labels=places.labels(self._rng, name, self._rng.randint(0, 9)))

    def _taint(self, node: Thing) -> Change:
        taints = [] if node["spec"].get("taints") else [{"key": "spot", "effect": "NoSchedule"}]
        return self._set({**node, "spec": {**node["spec"], "taints": taints}})

    def _leave(self, node: Thing) -> Change:
        self._away.append(node)
        return self._remove(node)

    def _namespace(self) -> Change | None:
        found = self._any("Namespace")
        if found is None or self._rng.random() < 0.2:
            name = self._rng.choice(peers.NAMESPACES)
            return self._set({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {}}})
        if self._rng.random() < 0.3:
            return self._remove(found)
        return self._with_metadata(found, labels=selectors.of_namespace(self._rng))

    def _owner(self) -> Change | None:
        found = self._any(self._rng.choice(["Service", "ReplicaSet", "StatefulSet", "ReplicationController"]))
        if found is None:
            return None
        if found["kind"] == "Service" and self._rng.random() < 0.6:
            return self._set({**found, "spec": {"selector": selectors.labels(self._rng)}})
        return self._remove(found)

    def _any(self, kind: str) -> Thing | None:
        """Draw an object of a kind, by looking at a few of them only."""
        for found in self._rng.choices(self._objects, k=40) if self._objects else ():
            if found["kind"] == kind:
                return found
        return None

    def _with_metadata(self, thing: Thing, **fields: Any) -> Change:
        return self._set({**thing, "metadata": {**thing["metadata"], **fields}})

    def _set(self, thing: Thing) -> Change:
        known = (number for number, one in enumerate(self._objects) if identity(one) == identity(thing))
        number = next(known, None)
        if number is None:
            self._objects.append(thing)
        else:
            self._objects[number] = thing
        return {"set": thing}

    def _remove(self, thing: Thing) -> Change:
        self._objects.remove(thing)
        return {"remove": thing}


def identity(thing: Thing) -> tuple[str, str, str]:
    """Give what tells objects apart: kind, namespace and name."""
    metadata = thing["metadata"]
    return thing["kind"], metadata.get("namespace", ""), metadata["name"]
