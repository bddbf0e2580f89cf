"""Small random clusters for PodTopologySpread, made at once or changed event by event, beside the plain objects."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from policysched.model.objects import Node, Pod, TopologySpreadConstraint, Workload
from policysched.state.cluster import Cluster
from tests.plugins.pod_topology_spread.maker import Maker
from tests.plugins.pod_topology_spread.reference import Around


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
