"""Amounts of any size: the state and the plugins say what kube-scheduler's int64 say, and nothing ever raises.

Nodes and pods with extreme quantities come, change and go. The columns always hold the sums that the reference makes of
the objects, in the end those of a cluster that is loaded anew with what remains; and every plugin over amounts answers
each row as the reference does, whether the row was followed by itself or all rows were worked out together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st

from policysched.framework import SKIP, Cluster
from policysched.model.objects import Node, Pod
from policysched.model.requests import allocatable, incoming_amounts, incoming_nonzero
from policysched.plugins.curves import ShapePoint
from policysched.plugins.node_resources.allocation import (
    RequestedToCapacityRatio,
    ResourceWeight,
    most_allocated,
)
from policysched.plugins.node_resources.balanced_allocation import NodeResourcesBalancedAllocation
from policysched.plugins.node_resources.fit import NodeResourcesFit, by_name
from policysched.plugins.node_resources.shortages import MOST_BITS
from policysched.state.placed.pods import pod_id
from policysched.state.tables.amounts import CPU, FIRST_PLACES, MEMORY, WIDEST
from tests.build import node, pod
from tests.laws.examples import examples
from tests.plugins import reference

AMOUNTS: Final = (
    *("0", "1", "-1", "2", "100", "1n", "-1n", "999u", "1E", "8Ei", "4Ei", "1e30", "-1e30", "1e19", "64Pi", "1.5"),
    *(str(number + step) for number in (2**31, 2**53, 2**62, 2**63, -(2**63)) for step in (-1, 0, 1)),
    *("9223372036854775807m", "9223372036854775808m", "92233720368547758", "92233720368547759", "1e-9"),
)
OTHERS: Final = ("ephemeral-storage", "x.io/a", "x.io/b")
RESOURCES: Final = ("cpu", "memory", *OTHERS)
MIX: Final = {"cpu": 3, "memory": 1, "x.io/a": 5}
PAIR: Final = {"cpu": 1, "memory": 1}
CURVE: Final = ((0, 1), (40, 10), (90, 0))
NODES: Final = ("n0", "n1", "n2")

Requests = Mapping[str, str]
LISTS = st.dictionaries(st.sampled_from(RESOURCES), st.sampled_from(AMOUNTS), max_size=4)
MANY: Final = {f"many.io/{number}": "1" for number in range(MOST_BITS)}


@st.composite
def pods(draw: st.DrawFn, *, placed: bool = True) -> Pod:
    """One of five pods, of one or two containers; now and then it names more resources than a code has bits for."""
    name, where = draw(st.sampled_from("abcde")), draw(st.sampled_from(NODES)) if placed else ""
    made = pod(name, on=where, requests=draw(LISTS) | (MANY if draw(st.integers(0, 5)) == 0 else {}))
    if draw(st.booleans()):
        return made
    container = pod(requests=draw(LISTS)).spec.containers[0]
    return pod(name, on=where, containers=[*made.spec.containers, container])


@st.composite
def nodes(draw: st.DrawFn) -> Node:
    amounts = draw(LISTS) | ({"many.io/0": "1"} if draw(st.booleans()) else {})
    return node(draw(st.sampled_from(NODES)), allocatable=amounts)


STEPS = st.one_of(
    st.tuples(st.sampled_from(["place", "place", "assume"]), pods()),
    st.tuples(st.just("forget"), pods()),
    st.tuples(st.just("remove"), pods()),
    st.tuples(st.just("node"), nodes()),
    st.tuples(st.just("no node"), nodes()),
)


class Life:
    """A cluster, and beside it what it holds."""

    def __init__(self) -> None:
        self.cluster = Cluster()
        self.nodes: dict[str, Node] = {}
        self.placed: dict[str, tuple[str, Pod]] = {}

    def step(self, kind: str, one: Any) -> None:
        if kind in {"node", "no node"}:
            self._step_node(kind, one)
            return
        identity = pod_id(one)
        if kind == "place":
            self.cluster.set_pod(one)
            self.placed[identity] = one.spec.node_name, one
        elif kind == "assume" and identity not in self.placed and one.spec.node_name in self.nodes:
            self.cluster.assume(one, self.cluster.nodes.row_of[one.spec.node_name])
            self.placed[identity] = one.spec.node_name, one
        elif kind == "forget" and self.cluster.is_assumed(identity):
            self.cluster.forget(identity)
            del self.placed[identity]
        elif kind == "remove":
            self.cluster.remove_pod(identity)
            self.placed.pop(identity, None)

    def _step_node(self, kind: str, one: Node) -> None:
        if kind == "node":
            self.cluster.set_node(one)
            self.nodes[one.metadata.name] = one
        else:
            self.cluster.remove_node(one.metadata.name)
            self.nodes.pop(one.metadata.name, None)

    def on(self, name: str) -> list[Pod]:
        return [one for where, one in self.placed.values() if where == name]

    def anew(self) -> Cluster:
        made = Cluster()
        for one in self.nodes.values():
            made.set_node(one)
        for _, placed in self.placed.values():
            made.set_pod(placed)
        return made


def columns(cluster: Cluster) -> dict[str, Any]:
    """What the columns hold, by node."""
    nodes, names = cluster.nodes, (*RESOURCES, *MANY)
    return {
        name: (
            {one: int(nodes.allocatable(one)[row]) for one in names},
            {one: int(nodes.requested(one)[row]) for one in names},
            nodes.amounts.counted[[CPU, MEMORY], row].tolist(),
            int(nodes.pods_count.data[row]),
            int(nodes.pods_allowed.data[row]),
        )
        for name, row in nodes.row_of.items()
    }


def summed(life: Life, name: str) -> tuple[Any, ...]:
    """The same of one node, made of the objects."""
    room, placed = life.nodes.get(name), life.on(name)
    amounts = by_name(allocatable(room)) if room else {}
    names = (*RESOURCES, *MANY)
    return (
        {one: amounts.get(one, 0) for one in names},
        {one: reference.requested(placed, one) for one in names},
        [reference.nonzero(placed, one) for one in ("cpu", "memory")],
        len(placed),
        allocatable(room).pods if room else 0,
    )


def plugins() -> dict[str, Any]:
    def weighted(mix: Mapping[str, int]) -> list[ResourceWeight]:
        return [ResourceWeight(*one) for one in mix.items()]

    ratio = RequestedToCapacityRatio([ShapePoint(utilization=level, score=score) for level, score in CURVE])
    return {
        "fit": NodeResourcesFit(weighted(PAIR)),
        "least": NodeResourcesFit(weighted(MIX)),
        "most": NodeResourcesFit(weighted(MIX), strategy=most_allocated),
        "ratio": NodeResourcesFit(weighted(MIX), strategy=ratio),
        "two": NodeResourcesBalancedAllocation(weighted(PAIR)),
        "three": NodeResourcesBalancedAllocation(weighted(MIX)),
    }


EXPECTED: Final[Mapping[str, Any]] = {
    "fit": lambda one, room, placed: reference.least_allocated(reference.used(one, room, placed, PAIR)),
    "least": lambda one, room, placed: reference.least_allocated(reference.used(one, room, placed, MIX)),
    "most": lambda one, room, placed: reference.most_allocated(reference.used(one, room, placed, MIX)),
    "ratio": lambda one, room, placed: reference.requested_to_capacity_ratio(
        reference.used(one, room, placed, MIX), CURVE
    ),
    "two": lambda one, room, placed: reference.balanced(one, room, placed, tuple(PAIR)),
    "three": lambda one, room, placed: reference.balanced(one, room, placed, tuple(MIX)),
}


class Asked:
    """The plugins, prepared once for each of some pods, and asked again after every step."""

    def __init__(self, cluster: Cluster, waiting: Iterable[Pod]) -> None:
        self._cluster = cluster
        self._plugins = plugins()
        fit = self._plugins["fit"]
        self._filters = [(one, fit.prepare_filter(one, cluster)) for one in waiting]
        self._scores = [
            (one, name, state)
            for one in waiting
            for name, plugin in self._plugins.items()
            if (state := plugin.prepare_score(one, cluster)) is not SKIP
        ]

    def scores(self) -> dict[tuple[str, str, str], int]:
        """Each node's score by pod and plugin."""
        cluster = self._cluster
        found: dict[tuple[str, str, str], int] = {}
        for one, name, state in self._scores:
            scores = self._plugins[name].score(state, slice(0, cluster.nodes.size)).tolist()
            found |= {(one.key, name, at): scores[row] for at, row in cluster.nodes.row_of.items()}
        return found

    def reasons(self) -> dict[tuple[str, str], list[str]]:
        """What is short on each node, by pod."""
        cluster, found, fit = self._cluster, {}, self._plugins["fit"]
        for one, state in self._filters:
            codes = fit.filter(state, slice(0, cluster.nodes.size)).tolist()
            for at, row in cluster.nodes.row_of.items():
                found[one.key, at] = list(fit.reason(state, codes[row]).reasons) if codes[row] else []
        return found


def asks_ordinarily(one: Pod, name: str) -> bool:
    """Whether no percentage of what a pod asks of the scored resources can wrap around in 64 bits."""
    nonzero = name not in {"two", "three"}
    resources = PAIR if name in {"fit", "two"} else MIX
    amounts = incoming_nonzero(one, resources) if nonzero else incoming_amounts(one, resources, reference.IN_USE)
    return all(0 <= amount <= WIDEST for amount in amounts)


def check_answers(life: Life, waiting: list[Pod], asked: Asked) -> None:
    scores, reasons, anew = asked.scores(), asked.reasons(), Asked(life.cluster, waiting)
    assert anew.scores() == scores
    assert anew.reasons() == reasons
    by_key = {one.key: one for one in waiting}
    for (key, name, at), score in scores.items():
        if at in life.nodes:
            expected = EXPECTED[name](by_key[key], life.nodes[at], life.on(at))
            if not 0 <= expected <= 100 and asks_ordinarily(by_key[key], name):
                expected = 0  # it does not pay for what others put on a node
            assert score == expected, (name, at)
    for (key, at), short in reasons.items():
        if at in life.nodes:
            assert short == reference.shortages(by_key[key], life.nodes[at], life.on(at))


@examples(60)
@given(
    st.lists(STEPS, min_size=1, max_size=10),
    st.lists(pods(placed=False), min_size=1, max_size=3, unique_by=lambda one: one.key),
)
def test_columns_and_plugins_follow_any_amounts(steps: list[tuple[str, Any]], waiting: list[Pod]) -> None:
    life = Life()
    for name in NODES:
        life.step("node", node(name))
    asked = Asked(life.cluster, waiting)
    asked.scores()
    asked.reasons()
    for kind, one in steps:
        life.step(kind, one)
        assert columns(life.cluster) == {at: summed(life, at) for at in life.cluster.nodes.row_of}
        check_answers(life, waiting, asked)
    here = columns(life.cluster)
    assert {at: here[at] for at in here if at in life.nodes or life.on(at)} == columns(life.anew())


@examples(30)
@given(st.lists(STEPS, max_size=12))
def test_nothing_is_left_of_what_went(steps: list[tuple[str, Any]]) -> None:
    life = Life()
    for kind, one in steps:
        life.step(kind, one)
    for identity in tuple(life.placed):
        life.cluster.remove_pod(identity)
    for name in NODES:
        life.cluster.remove_node(name)
    amounts = life.cluster.nodes.amounts
    for table in (amounts.allocatable, amounts.requested, amounts.counted):
        assert not table.any()
        assert len(table) == FIRST_PLACES
    assert not amounts.owing
    assert not life.cluster.nodes.row_of
