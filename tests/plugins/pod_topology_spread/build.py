"""Small clusters for PodTopologySpread: nodes a and b are in zone 1, x and y in zone 2.

How many pods of a kind are where is written as `crowd(a=2, y=3)`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from msgspec.structs import replace

from policysched.framework import Cluster
from policysched.model.objects import LabelSelector, Node, Pod, TopologySpreadConstraint
from policysched.plugins.pod_topology_spread.plugin import PodTopologySpread
from tests.build import node, pod

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
FOO, BAR = LabelSelector(match_labels={"foo": ""}), LabelSelector(match_labels={"bar": ""})
HARD, SOFT = "DoNotSchedule", "ScheduleAnyway"
UNEVEN = "node(s) didn't match pod topology spread constraints"
ZONES = {"a": "1", "b": "1", "x": "2", "y": "2"}


def around(names: str = "abxy", **labels: dict[str, str]) -> list[Node]:
    """Nodes with the labels zone, node and that of the host name; `labels` are in place of a node's own."""
    return [node(name, labels=labels.get(name, {"zone": ZONES[name], "node": name, HOST: name})) for name in names]


def crowd(labels: str = "foo", **counts: int) -> list[Pod]:
    """So many pods on each node, with these labels."""
    own = dict.fromkeys(labels.split(), "")
    return [
        pod(f"{labels}-{name}-{number}", on=name, labels=own)
        for name, count in counts.items()
        for number in range(count)
    ]


def hard(key: str = "zone", max_skew: int = 1, selector: LabelSelector | None = FOO, **more: Any) -> Any:
    return TopologySpreadConstraint(
        max_skew=max_skew, topology_key=key, when_unsatisfiable=HARD, label_selector=selector, **more
    )


def soft(key: str = HOST, max_skew: int = 1, selector: LabelSelector | None = FOO, **more: Any) -> Any:
    return replace(hard(key, max_skew, selector, **more), when_unsatisfiable=SOFT)


def incoming(*constraints: Any, labels: str = "foo", **spec: Any) -> Pod:
    return pod("p", labels=dict.fromkeys(labels.split(), ""), topology_spread_constraints=list(constraints), **spec)


def scores(of: Pod, made: Cluster, feasible: Iterable[str], plugin: PodTopologySpread | None = None) -> dict[str, int]:
    """Final scores where these nodes are feasible."""
    plugin = plugin or PodTopologySpread()
    state: Any = plugin.prepare_score(of, made)
    rows = slice(0, made.nodes.size)
    mask = np.zeros(made.nodes.size, np.bool_)
    mask[[made.nodes.row_of[name] for name in feasible]] = True
    finals = plugin.normalize(state, plugin.score(state, rows), mask)
    return {name: int(finals[made.nodes.row_of[name]]) for name in feasible}
