"""Where drivers have room for volumes: as if every topology were compared with every node, and looked up once."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from policysched.framework import Cluster
from policysched.model.quantity import MIN, value
from policysched.model.selection.selectors import SelectorError, compile_selector
from policysched.plugins.volumes import volume_topology
from policysched.plugins.volumes.volume_binding import VolumeBinding
from policysched.plugins.volumes.volume_rows import TOO_SMALL
from policysched.plugins.volumes.volume_topology import VolumeTopology
from tests.build import node
from tests.plugins.ask import filtered
from tests.plugins.stored import ZONE, claim, claiming, csi_capacity, csi_driver, storage_class, with_storage
from tests.plugins.volumes.binding_build import said

HOST = "kubernetes.io/hostname"
TOPOLOGIES: list[dict[str, Any]] = [
    *({"matchLabels": {HOST: f"n{index}"}} for index in range(8)),
    *({"matchLabels": {ZONE: zone}} for zone in "abx"),
    {"matchLabels": {ZONE: "a", HOST: "n3"}},
    {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["a", "b", "a"]}]},
    {"matchExpressions": [{"key": ZONE, "operator": "NotIn", "values": ["a"]}]},
    {"matchExpressions": [{"key": ZONE, "operator": "Exists"}], "matchLabels": {HOST: "n1"}},
    {"matchExpressions": [{"key": ZONE, "operator": "DoesNotExist"}]},
    {"matchExpressions": [{"key": ZONE, "operator": "Near"}]},
    {},
]


def compared(cluster: Cluster, name: str) -> list[int]:
    """The largest capacities of a class, worked out for one node after another."""
    found = []
    for one in cluster.nodes.nodes[: cluster.nodes.size]:
        best = MIN
        for told in cluster.storage.capacities.values():
            limit = told.capacity if told.maximum_volume_size is None else told.maximum_volume_size
            if one is None or told.storage_class_name != name or limit is None or told.node_topology is None:
                continue
            try:
                holds = compile_selector(told.node_topology).matches(one.metadata.labels)
            except SelectorError:
                continue
            best = max(best, value(limit)) if holds else best
        found.append(best)
    return found


@pytest.mark.parametrize("seed", range(8))
def test_room_is_the_largest_that_any_topology_of_a_node_has(seed: int) -> None:
    rng = random.Random(seed)
    cluster = with_storage(*(node(f"n{index}", labels={HOST: f"n{index}"}) for index in range(8)))
    asked = VolumeTopology(cluster)
    for _ in range(60):
        name, topology = f"n{rng.randrange(8)}", rng.choice(TOPOLOGIES)
        told = csi_capacity(f"k{rng.randrange(12)}", nodeTopology=topology, capacity=f"{rng.randrange(9)}Gi")
        match rng.randrange(4):
            case 0:
                cluster.set_node(
                    node(name, labels={HOST: name} | ({ZONE: rng.choice("ab")} if rng.random() < 0.8 else {}))
                )
            case 1:
                cluster.remove_stored(told)
            case _:
                cluster.set_stored(told)
        asked.refresh()
        here = cluster.nodes.present.data[: cluster.nodes.size]
        found = asked.capacities("wait")
        largest = np.where(found.enough_for(MIN), found.on_rows(found.amounts), MIN)
        assert np.array_equal(largest[here], np.array(compared(cluster, "wait"))[here])
        assert not asked.capacities("other").enough_for(MIN).any()


def test_topologies_are_looked_at_once_until_nodes_change(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = [node(f"n{index}", labels={HOST: f"n{index}"}) for index in range(50)]
    rooms = [csi_capacity(f"k{i}", nodeTopology={"matchLabels": {HOST: f"n{i}"}}, capacity="1Gi") for i in range(50)]
    cluster = with_storage(*nodes, storage_class(), csi_driver(), claim(), *rooms)
    plugin, compiled = VolumeBinding(), list[object]()

    def counted(selector: Any) -> Any:
        compiled.append(selector)
        return compile_selector(selector)

    monkeypatch.setattr(volume_topology, "compile_selector", counted)
    assert filtered(plugin, claiming("p", "c"), cluster) == {}
    assert len(compiled) == 50
    cluster.set_stored(csi_capacity("k7", nodeTopology={"matchLabels": {HOST: "n7"}}, capacity="1Mi"))
    assert filtered(plugin, claiming("p", "c"), cluster) == {"n7": said(TOO_SMALL)}
    assert len(compiled) == 50
    cluster.set_node(node("n7", labels={HOST: "n8"}))
    assert filtered(plugin, claiming("p", "c"), cluster) == {}


def test_a_claim_that_many_volumes_name_is_made_once() -> None:
    cluster = with_storage(node("a"), storage_class(), claim())
    plugin = VolumeBinding()
    state: Any = plugin.prepare_filter(claiming("p", *["c"] * 500), cluster)
    assert [one.metadata.name for one in state.provisioned(0)] == ["c"]
