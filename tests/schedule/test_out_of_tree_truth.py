"""Out-of-tree copies of default plugins make the same decisions, with or without declared reads."""

from __future__ import annotations

import random
from dataclasses import replace as replace_field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policysched.framework import Aspect, Cluster, FilterPlugin, Status, unresolvable, unschedulable
from policysched.framework.out_of_tree.adapter import OutOfTreePlugin
from policysched.framework.out_of_tree.handle import PluginHandle
from policysched.framework.out_of_tree.methods import PreFilterResult
from policysched.framework.profile import Profile
from policysched.model.objects import ContainerPort, Pod, Toleration
from policysched.model.pod_requirements import any_conflict, host_ports
from policysched.plugins.nodes.node_affinity import NodeAffinityArguments, node_affinity
from policysched.plugins.nodes.node_filters import NodeName, NodePorts, NodeUnschedulable
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.record import make_record
from tests.build import node, pod
from tests.schedule.parts import FakeScore, profile

NODES = ("a", "b", "c", "d")
TAINT = "node.kubernetes.io/unschedulable"


class SameNodeName:
    def pre_filter(self, *_: Any) -> PreFilterResult | None:
        return None

    def filter(self, _state: Any, of: Pod, on: Any) -> Status | None:
        return (
            None if of.spec.node_name in ("", on.name) else unresolvable("node(s) didn't match the requested node name")
        )


class SameNodeUnschedulable:
    def filter(self, _state: Any, of: Pod, on: Any) -> Status | None:
        if not on.unschedulable or any(one.key == TAINT for one in of.spec.tolerations):
            return None
        return unresolvable("node(s) were unschedulable")


class SameNodeSelector:
    def filter(self, _state: Any, of: Pod, on: Any) -> Status | None:
        fits = of.spec.node_selector.items() <= on.labels.items()
        return None if fits else unresolvable("node(s) didn't match Pod's node affinity/selector")


class SameNodePorts:
    """A copy of NodePorts that keeps used ports in the cycle state, so that what-ifs must update it."""

    def pre_filter(self, state: Any, _of: Pod, nodes: Any) -> Status | None:
        state.write("ports", {one.name: [port for placed in one.pods for port in host_ports(placed)] for one in nodes})
        return None

    def add_pod(self, state: Any, _of: Pod, other: Pod, on: Any) -> None:
        used = state.read("ports")
        used[on.name] = [*used[on.name], *host_ports(other)]

    def remove_pod(self, state: Any, _of: Pod, other: Pod, on: Any) -> None:
        used = state.read("ports")
        left = list(used[on.name])
        for port in host_ports(other):
            left.remove(port)
        used[on.name] = left

    def filter(self, state: Any, of: Pod, on: Any) -> Status | None:
        assert sorted(on.used_ports) == sorted(set(state.read("ports")[on.name]))
        taken = any_conflict(host_ports(of), state.read("ports")[on.name])
        return unschedulable("node(s) didn't have free ports for the requested pod ports") if taken else None


PAIRS: list[tuple[Any, type, Aspect]] = [
    (NodeUnschedulable(), SameNodeUnschedulable, Aspect.TAINTS),
    (NodeName(), SameNodeName, Aspect.NONE),
    (node_affinity(NodeAffinityArguments()), SameNodeSelector, Aspect.LABELS),
    (NodePorts(), SameNodePorts, Aspect.PORTS),
]


def profiles(replaced: int, declares: bool, scores: bool) -> tuple[Profile, Profile]:
    """Return a profile of default plugins, and one in which out-of-tree copies replace some of them."""
    handle = PluginHandle()
    own: list[FilterPlugin[Any]] = []
    other: list[Any] = []
    for bit, (plugin, same, reads) in enumerate(PAIRS):
        own.append(plugin)
        if replaced >> bit & 1:
            made = same()
            if declares:
                made.reads = reads
            other.append(OutOfTreePlugin(plugin.name, made, handle))
        else:
            other.append(plugin)
    columns = profile(own, [(FakeScore("S", {name: 10 * place for place, name in enumerate(NODES)}), 3)])
    given_scores: Any = columns.scores
    if scores:
        scored = OutOfTreePlugin("S", SameScore(), handle)
        given_scores = ((scored, 3),)
    return columns, replace_field(columns, filters=tuple(other), scores=given_scores, handle=handle)


class SameScore:
    def score(self, _state: Any, _of: Pod, on: Any) -> int:
        return 10 * NODES.index(on.name)


names = st.sampled_from(NODES)
ports = st.lists(st.sampled_from([80, 81]), max_size=2, unique=True).map(
    lambda numbers: [ContainerPort(host_port=number) for number in numbers]
)
selectors = st.dictionaries(st.sampled_from(["x", "y"]), st.sampled_from(["1", "2"]), max_size=1)
changes = st.one_of(
    st.builds(node, names, labels=selectors, unschedulable=st.booleans()),
    st.builds(lambda name, on, taken: pod(name, on=on, ports=taken), st.sampled_from("pqrs"), names, ports),
    names,
    st.sampled_from(["default.p", "default.q", "default.r"]),
)
waiting = st.builds(
    lambda name, on, taken, wanted, tolerates: pod(
        name,
        on=on,
        ports=taken,
        node_selector=wanted,
        tolerations=[Toleration(key=TAINT, operator="Exists")] if tolerates else [],
    ),
    st.sampled_from(["v", "w"]),
    st.sampled_from(["", "", "", *NODES]),
    ports,
    selectors,
    st.booleans(),
)


def apply(around: Cluster, change: Any) -> None:
    if isinstance(change, Pod):
        around.set_pod(change)
    elif not isinstance(change, str):
        around.set_node(change)
    elif change in NODES:
        around.remove_node(change)
    else:
        around.remove_pod(change)


@pytest.mark.parametrize("declares", [False, True])
@settings(max_examples=60, deadline=None)
@given(
    replaced=st.integers(1, 15),
    scores=st.booleans(),
    steps=st.lists(st.tuples(st.lists(changes, min_size=1, max_size=4), waiting), min_size=2, max_size=6),
)
def test_plugins_that_say_the_same_decide_the_same(
    declares: bool, replaced: int, scores: bool, steps: list[tuple[list[Any], Pod]]
) -> None:
    around = Cluster()
    engines = [Engine(around, one, random.Random(1)) for one in profiles(replaced, declares, scores)]
    for happened, of in steps:
        for change in happened:
            apply(around, change)
        first, second = (engine.decide(of) for engine in engines)
        assert make_record(first) == make_record(second)
        assert (first.rejectors(), first.node) == (second.rejectors(), second.node)
        if not around.nodes.count:
            continue
        for name in NODES:
            row = around.nodes.row_of.get(name, -1)
            if row < 0 or not around.nodes.present.data[row]:
                continue
            trials = [decision.evaluation.trial(row) for decision in (first, second)]
            placed = [one.pod for one in around.pods.on_row(row)]
            for act, one in [*(("remove", one) for one in placed), *(("add", one) for one in placed[:1])]:
                for trial in trials:
                    getattr(trial, act)(one)
                assert trials[0].verdict() == trials[1].verdict()
