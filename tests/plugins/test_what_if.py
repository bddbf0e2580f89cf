"""What a plugin that looks at other pods says of a row with other pods equals what it says after they went and came."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from policysched.framework import SKIP, ChangedRow, ChangedRows, Cluster, Status
from policysched.model.objects import Affinity, ContainerPort, LabelSelector, Node, Pod, TopologySpreadConstraint
from policysched.model.selection.pod_affinity import pod_terms
from policysched.plugins.inter_pod_affinity.plugin import InterPodAffinity
from policysched.plugins.nodes.node_filters import NodePorts
from policysched.plugins.pod_topology_spread.plugin import PodTopologySpread
from tests.build import cluster, node, pod
from tests.plugins.inter_pod_affinity.build import away, near, term

PLUGINS = (InterPodAffinity(), PodTopologySpread(), NodePorts())
KEYS = ("zone", "host", "disk")
WORLDS = 200


def selecting(chance: Random) -> LabelSelector:
    return LabelSelector(match_labels={"app": chance.choice("ab")})


def some_affinity(chance: Random) -> Affinity | None:
    terms = [term(selecting(chance), chance.choice(KEYS)) for _ in range(chance.choice((1, 1, 2)))]
    return chance.choice((None, None, away(*terms), near(*terms)))


def some_constraint(chance: Random) -> TopologySpreadConstraint:
    return TopologySpreadConstraint(
        topology_key=chance.choice(KEYS),
        when_unsatisfiable="DoNotSchedule",
        max_skew=chance.choice((1, 1, 2)),
        min_domains=chance.choice((None, None, 3)),
        label_selector=selecting(chance),
        node_taints_policy=chance.choice((None, "Honor")),
    )


def some_pod(chance: Random, name: str, on: str = "") -> Pod:
    addresses = chance.choices(("", "10.0.0.1", "10.0.0.2"), k=chance.choice((0, 1, 2)))
    ports = [ContainerPort(container_port=1, host_port=chance.choice((80, 81)), host_ip=one) for one in addresses]
    made = pod(name, on=on, labels={"app": chance.choice("ab")}, affinity=some_affinity(chance), ports=ports)
    constraints = [some_constraint(chance) for _ in range(chance.choice((1, 2)))]
    return replace(made, spec=replace(made.spec, topology_spread_constraints=constraints))


def some_nodes(chance: Random) -> list[Node]:
    zones = {f"n{index}": chance.choice(("x", "y", "")) for index in range(4)}
    return [
        node(name, labels={"host": name, **({"zone": zone} if zone else {}), **({"disk": "d"} if name > "n1" else {})})
        for name, zone in zones.items()
    ]


def said(plugin: Any, state: Any, around: Cluster, row: int) -> Status | None:
    if isinstance(state, Status) or state is SKIP:
        return None
    code = int(plugin.filter(state, slice(0, around.nodes.size))[row])
    return plugin.reason(state, code) if code else None


def is_skipped(plugin: Any, state: Any, around: Cluster, waiting: Pod) -> bool:
    """Return whether kube-scheduler's PreFilter skips: then the filter is not asked about pods that come."""
    terms = pod_terms(waiting)
    if plugin.name != "InterPodAffinity" or terms.affinity or terms.anti_affinity:
        return False
    return not plugin.filter(state, slice(0, around.nodes.size)).any()


def after(nodes: Sequence[Node], placed: Sequence[Pod], gone: Sequence[Pod], come: Sequence[Pod], on: str) -> Cluster:
    arrived = [replace(one, spec=replace(one.spec, node_name=on)) for one in come]
    return cluster(*nodes, *(one for one in placed if one not in gone), *arrived)


@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda one: one.name)
def test_what_is_said_of_changed_rows_is_what_is_said_after_the_change(plugin: Any) -> None:
    chance, told = Random(20261122), Counter[bool]()
    for number in range(WORLDS):
        nodes = some_nodes(chance)
        placed = [some_pod(chance, f"p{index}", f"n{chance.randrange(4)}") for index in range(chance.randint(2, 7))]
        placed.append(pod("stating", on="n0", labels={"app": "c"}, affinity=away(term(selecting(chance), "absent"))))
        around, waiting = cluster(*nodes, *placed), some_pod(chance, f"waiting{number}")
        state = plugin.prepare_filter(waiting, around)
        if state is SKIP and isinstance(plugin, NodePorts):
            continue
        for on in ("n0", "n1", "n2", "n3"):
            row = around.nodes.row_of[on]
            before = said(plugin, state, around, row)
            there = [one for one in placed if one.spec.node_name == on]
            gone = chance.sample(there, chance.randint(0, len(there)))
            come = [some_pod(chance, f"new{index}") for index in range(chance.randint(0, 2))]
            changed = ChangedRow(around, row)
            assert plugin.filter_changed(state, changed) == before
            for take, put in ((gone, come), (come[:1], gone[:1])):
                for one in take:
                    changed.remove(one)
                for one in put:
                    changed.add(one)
            really = after(nodes, placed, gone[1:], come[1:], on)
            expected = said(plugin, plugin.prepare_filter(waiting, really), really, really.nodes.row_of[on])
            if is_skipped(plugin, state, around, waiting):
                expected = None
            assert plugin.filter_changed(state, changed) == expected, (number, on)
            told[before != expected] += 1
            assert said(plugin, state, around, row) == before
    assert told[True] > 15, told


def said_of_one(plugin: Any, state: Any, one: ChangedRow, gone: Sequence[Pod], come: Sequence[Pod]) -> Status | None:
    on = one.cluster.nodes.names[one.row]
    for left in gone:
        if left.spec.node_name == on:
            one.remove(left)
    for new in come:
        one.add(new)
    status: Status | None = plugin.filter_changed(state, one)
    return status


@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda one: one.name)
def test_what_is_said_of_many_changed_rows_is_what_is_said_of_each(plugin: Any) -> None:
    chance, told = Random(20261123), Counter[int]()
    for number in range(WORLDS):
        placed = [some_pod(chance, f"p{index}", f"n{chance.randrange(4)}") for index in range(chance.randint(2, 9))]
        around = cluster(*some_nodes(chance), *placed)
        state = plugin.prepare_filter(some_pod(chance, f"waiting{number}"), around)
        assert not isinstance(state, Status)
        if state is SKIP:
            continue
        said(plugin, state, around, 0)
        rows = np.sort(np.array(chance.sample(range(4), chance.randint(1, 4)), np.intp))
        there = [one for one in around.pods.by_slot if one is not None and one.row in rows]
        slots = np.array([one.slot for one in there], np.intp)
        changed = ChangedRows(around, rows, slots, np.searchsorted(rows, [one.row for one in there]))
        coming = {int(row): [some_pod(chance, f"new{row}")] for row in rows if chance.random() < 0.5}
        beside = changed.with_nominated(coming)
        gone: set[int] = set()
        for _ in range(4):
            for moved in chance.sample(range(slots.size), chance.randint(0, slots.size)):
                (changed.restore if moved in gone else changed.remove)(np.array([moved]))
                gone ^= {moved}
            for many, come in ((changed, {}), (beside, coming)):
                codes = plugin.filter_changed_rows(state, many)
                without = [there[index].pod for index in sorted(gone)]
                assert [plugin.reason(state, code) if code else None for code in codes.tolist()] == [
                    said_of_one(plugin, state, ChangedRow(around, row), without, come.get(row, ()))
                    for row in rows.tolist()
                ]
                told.update(codes.tolist())
    assert min(told[code] for code in ((0, 1) if isinstance(plugin, NodePorts) else (0, 1, 2))) > 50, told
