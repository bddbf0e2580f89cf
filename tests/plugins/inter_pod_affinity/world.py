"""Small random clusters for InterPodAffinity, changed event by event, beside the plain objects.

Keys, values and namespaces come from short lists, so that random terms meet random pods often; a few terms cannot be
parsed, and some nodes lack labels or share a host name.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from msgspec.structs import replace

from policysched.framework import Cluster
from policysched.model.objects import (
    Affinity,
    LabelSelector,
    Metadata,
    Namespace,
    Node,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    Requirement,
    WeightedPodAffinityTerm,
)
from tests.build import node, pod
from tests.plugins.inter_pod_affinity.build import weighted
from tests.plugins.inter_pod_affinity.reference import Scene

NAMESPACES = ("default", "a", "b", "gone")
HOSTS = ("h0", "h1", "h2", "h3", "h4", "h5")
INVALID = (
    Requirement(key="app", operator="Like", values=("web",)),
    Requirement(key="app", operator="In"),
    Requirement(key="app", operator="Exists", values=("web",)),
    Requirement(key="not a key", operator="Exists"),
    Requirement(key="app", operator="NotIn", values=("not a value!",)),
)


class World:
    """A cluster that random events change."""

    def __init__(self, random: Random, most_nodes: int = 6, most_pods: int = 14, *, settled: bool = False) -> None:
        self.random = random
        self._settled = settled
        """Whether no term reads the labels of namespaces: what is prepared once then lives on."""
        self.cluster = Cluster()
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self.namespaces: dict[str, dict[str, str]] = {}
        self._most_nodes, self._most_pods = most_nodes, most_pods
        self._serial = 0
        for name in NAMESPACES[:-1]:
            self._set_namespace(name)

    @property
    def scene(self) -> Scene:
        return Scene(self.nodes, list(self.pods.values()), self.namespaces)

    def fill(self) -> None:
        """Make it a world of some nodes and pods at once."""
        for _ in range(self.random.randint(0, self._most_nodes)):
            self._set_node()
        for _ in range(self.random.randint(0, self._most_pods)):
            self._place()

    def step(self) -> None:
        """Let one event happen."""
        events: list[tuple[Callable[[], None], int]] = [
            (self._set_node, 3),
            (self._remove_node, 1),
            (self._place, 10),
            (self._remove, 4 if len(self.pods) < self._most_pods else 20),
            (self._relabel, 3),
            (self._terminate, 1),
            (self._change_namespace, 2),
        ]
        choices, weights = zip(*events, strict=True)
        self.random.choices(choices, weights)[0]()

    def fresh(self) -> Cluster:
        """The same cluster, told of its last state alone."""
        made = Cluster()
        for one in self.nodes.values():
            made.set_node(one)
        for name, labels in self.namespaces.items():
            made.set_namespace(Namespace(metadata=Metadata(name=name, labels=labels)))
        for placed in self.pods.values():
            made.set_pod(placed)
        return made

    def pod(self, name: str, on: str = "", *, invalid: float = 0.02) -> Pod:
        """A pod with random labels, most of the time with random terms."""
        chance = self.random
        labels = {key: chance.choice(("web", "db", "x")) for key in ("app", "tier") if chance.random() < 0.7}
        affinity = self._affinity(invalid) if chance.random() < 0.75 else None
        return pod(name, namespace=chance.choice(NAMESPACES), on=on, labels=labels, affinity=affinity)

    # Nodes and namespaces

    def _set_node(self) -> None:
        chance = self.random
        name = f"n{chance.randrange(self._most_nodes)}"
        labels = {"zone": chance.choice("xyz")} if chance.random() < 0.8 else {}
        labels |= {"rack": chance.choice("rs")} if chance.random() < 0.5 else {}
        labels |= {"rare": "r"} if chance.random() < 0.1 else {}
        labels |= {"host": name if chance.random() < 0.9 else chance.choice(HOSTS)} if chance.random() < 0.9 else {}
        self.nodes[name] = node(name, labels=labels)
        self.cluster.set_node(self.nodes[name])

    def _remove_node(self) -> None:
        if self.nodes:
            name = self.random.choice(sorted(self.nodes))
            del self.nodes[name]
            self.cluster.remove_node(name)

    def _change_namespace(self) -> None:
        name = self.random.choice(NAMESPACES[:-1])
        if name in self.namespaces and self.random.random() < 0.3:
            del self.namespaces[name]
            self.cluster.remove_namespace(name)
        else:
            self._set_namespace(name)

    def _set_namespace(self, name: str) -> None:
        labels = {"team": self.random.choice("pq")} if self.random.random() < 0.7 else {}
        self.namespaces[name] = labels
        self.cluster.set_namespace(Namespace(metadata=Metadata(name=name, labels=labels)))

    # Pods

    def place(self, incoming: Pod, on: str) -> None:
        """Place a pod."""
        self.pods[incoming.metadata.uid] = placed = replace(incoming, spec=replace(incoming.spec, node_name=on))
        self.cluster.set_pod(placed)

    def _place(self) -> None:
        self._serial += 1
        self.place(self.pod(f"e{self._serial}"), f"n{self.random.randrange(self._most_nodes)}")

    def _remove(self) -> None:
        if self.pods:
            uid = self.random.choice(sorted(self.pods))
            del self.pods[uid]
            self.cluster.remove_pod(uid)

    def _relabel(self) -> None:
        self._update(labels={"app": self.random.choice(("web", "db", "x"))})

    def _terminate(self) -> None:
        self._update(deletion_timestamp="2026-01-01T00:00:00Z")

    def _update(self, **metadata: object) -> None:
        if self.pods:
            uid = self.random.choice(sorted(self.pods))
            old = self.pods[uid]
            self.pods[uid] = newer = replace(old, metadata=replace(old.metadata, **metadata))
            self.cluster.set_pod(newer)

    # Terms

    def _affinity(self, invalid: float) -> Affinity:
        chance = self.random
        near, away = PodAffinity(), PodAffinity()
        if chance.random() < 0.4:
            near = replace(near, required=self._terms(invalid))
        if chance.random() < 0.4:
            away = replace(away, required=self._terms(invalid))
        if chance.random() < 0.4:
            near = replace(near, preferred=self._weighted(invalid))
        if chance.random() < 0.4:
            away = replace(away, preferred=self._weighted(invalid))
        return Affinity(pod_affinity=near, pod_anti_affinity=away)

    def _terms(self, invalid: float) -> list[PodAffinityTerm]:
        return [self._term(invalid) for _ in range(self.random.choice((1, 1, 1, 1, 2, 2, 3, 14)))]

    def _weighted(self, invalid: float) -> list[WeightedPodAffinityTerm]:
        weights = (1, 1, 3, 50, 100, 0, -2)
        return [weighted(self.random.choice(weights), one) for one in self._terms(invalid)]

    def _term(self, invalid: float) -> PodAffinityTerm:
        chance = self.random
        selects = not self._settled and chance.random() < 0.3
        namespaces = chance.sample(NAMESPACES, chance.randint(1, 2)) if chance.random() < 0.3 else []
        return PodAffinityTerm(
            label_selector=self._selector("app", "tier", invalid=invalid),
            namespaces=tuple(namespaces),
            namespace_selector=self._selector("team", "team", invalid=invalid) if selects else None,
            topology_key=chance.choice(("zone", "zone", "host", "host", "rack", "rare", "", "absent")),
        )

    def _selector(self, *keys: str, invalid: float) -> LabelSelector | None:
        chance = self.random
        if chance.random() < 0.1:
            return None
        if chance.random() < 0.1:
            return LabelSelector()
        if chance.random() < invalid:
            return LabelSelector(match_expressions=(chance.choice(INVALID),))
        values = ("p", "q") if "team" in keys else ("web", "db", "x")
        if chance.random() < 0.4:
            return LabelSelector(match_labels={chance.choice(keys): chance.choice(values)})
        operator = chance.choice(("In", "NotIn", "Exists", "DoesNotExist"))
        chosen = tuple(chance.sample(values, chance.randint(1, 2))) if operator.endswith("In") else ()
        return LabelSelector(
            match_expressions=(Requirement(key=chance.choice(keys), operator=operator, values=chosen),)
        )
