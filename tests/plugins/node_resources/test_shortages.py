"""Resources that nobody has cost nothing by node, and any number of them may be short."""

from __future__ import annotations

import gc
import random
import tracemalloc
from collections.abc import Mapping

import numpy as np
import pytest

from policysched.framework import Cluster, Status, unresolvable, unschedulable
from policysched.model.objects import Pod
from policysched.model.quantity import MAX
from policysched.plugins.node_resources import shortages as resource_shortages
from policysched.plugins.node_resources.answer_cache import MOST_ONE_BY_ONE
from policysched.plugins.node_resources.fit import NodeResourcesFit
from policysched.plugins.node_resources.shortages import MOST_BITS
from tests.build import cluster, device_class, node, pod
from tests.plugins import reference
from tests.plugins.ask import filtered

NAMES = tuple(f"example.com/r{number:02}" for number in range(MOST_BITS + 8))
ALL = dict.fromkeys(NAMES, "2")
NODES, RESOURCES = 2000, 2000


def insufficient(*names: str) -> tuple[str, ...]:
    return tuple(f"Insufficient {name}" for name in names)


def asked(state: Cluster, requests: Mapping[str, str | int], plugin: NodeResourcesFit | None = None) -> Status | None:
    answer = filtered(plugin or NodeResourcesFit(), pod(requests=requests), state)
    assert isinstance(answer, dict)
    return answer.get("n1")


def test_many_resources_are_short_one_by_one() -> None:
    offered = dict.fromkeys(NAMES, "3")
    state = cluster(node(allocatable=offered))
    assert asked(state, ALL) is None
    state.set_pod(pod("first", on="n1", requests=dict.fromkeys(NAMES[5:7], "2")))
    assert asked(state, ALL) == unschedulable(*insufficient(*NAMES[5:7]))
    assert asked(state, ALL | {"cpu": "5", NAMES[6]: "4"}) == unresolvable(*insufficient("cpu", *NAMES[5:7]))
    state.set_node(node(allocatable=offered | {"pods": "1"}))
    assert asked(state, ALL) == unschedulable("Too many pods", *insufficient(*NAMES[5:7]))


def test_a_resource_that_a_node_begins_to_have_is_no_longer_short() -> None:
    state, plugin = cluster(node(), node("n2")), NodeResourcesFit()
    held = plugin.prepare_filter(pod(requests=ALL), state)
    state.set_pod(pod("first", on="n1", requests={NAMES[0]: "4"}))
    state.set_node(node("n2", allocatable=ALL))
    codes = plugin.filter(held, slice(0, 2)).tolist()
    assert plugin.reason(held, codes[0]) == unresolvable(*insufficient(*NAMES))
    assert codes[1] == 0
    state.set_node(node(allocatable=dict.fromkeys(NAMES, "5")))
    assert plugin.reason(held, plugin.filter(held, slice(0, 1))[0]) == unschedulable(*insufficient(NAMES[0]))
    state.remove_node("n2")
    state.set_node(node())
    assert plugin.reason(held, plugin.filter(held, slice(0, 1))[0]) == unresolvable(*insufficient(*NAMES))


@pytest.mark.parametrize("count", [3, len(NAMES)])
def test_resources_of_device_classes_are_short_only_where_nodes_have_some(count: int) -> None:
    state = cluster(node())
    state.take(device_class("gpus", NAMES[1]))
    requests = dict.fromkeys(NAMES[:count], "2")
    assert asked(state, requests) == unresolvable(*insufficient(*(one for one in requests if one != NAMES[1])))
    state.set_node(node(allocatable={NAMES[1]: "1"}))
    assert asked(state, requests) == unresolvable(*insufficient(*requests))
    state.set_node(node(allocatable=dict.fromkeys(NAMES, "2") | {NAMES[1]: "0"}))
    assert asked(state, requests) is None


@pytest.mark.parametrize("count", [2, len(NAMES)])
def test_what_was_requested_too_often_is_there_as_in_64_bits(count: int) -> None:
    """Two pods that were bound past the scheduler: what they request together is less than nothing."""
    plugin = NodeResourcesFit()
    state = cluster(node(), node("n2"), *(pod(f"p{number}", on="n1", requests={NAMES[0]: MAX}) for number in (1, 2)))
    requests = dict.fromkeys(NAMES[:count], 1)
    assert asked(state, requests, plugin) == unresolvable(*insufficient(*NAMES[1:count]))
    held = plugin.prepare_filter(pod(requests=requests), state)
    before = plugin.filter(held, slice(0, 2)).tolist()
    assert len(set(before)) == 2
    state.remove_pod("default.p1")
    after = plugin.filter(held, slice(0, 2)).tolist()
    assert after == [before[1]] * 2


def test_numbers_are_used_again_and_never_mistaken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource_shortages, "FEW_NUMBERS", 8)
    draw, plugin = random.Random(3), NodeResourcesFit()
    nodes = [node(f"n{number}", allocatable=dict.fromkeys(NAMES, "3")) for number in range(6)]
    state, incoming = cluster(*nodes), pod(requests=ALL)
    placed: dict[str, list[Pod]] = {one.metadata.name: [] for one in nodes}
    held, most = plugin.prepare_filter(incoming, state), 0
    for step in range(400):
        at = draw.choice(list(placed))
        if placed[at] and draw.random() < 0.5:
            state.remove_pod(placed[at].pop().metadata.uid)
        else:
            one = pod(f"p{step}", on=at, requests=dict.fromkeys(draw.sample(NAMES, 2), "1"))
            placed[at].append(one)
            state.set_pod(one)
        if step % (MOST_ONE_BY_ONE + 2) == 0:
            codes = plugin.filter(held, slice(0, 6)).tolist()
            most = max(most, *codes)
            for room in nodes:
                code = codes[state.nodes.row_of[room.metadata.name]]
                wanted = reference.shortages(incoming, room, placed[room.metadata.name])
                assert (list(plugin.reason(held, code).reasons) if code else []) == wanted
    assert 6 <= most <= 24


def hostile(name: str) -> dict[str, str]:
    return {"cpu": "1"} | {f"{name}.example.com/r{number}": "1" for number in range(RESOURCES)}


def test_what_nobody_has_costs_no_memory_by_node_and_is_given_back() -> None:
    state = cluster(*(node(f"n{number}") for number in range(NODES)))
    plugin = NodeResourcesFit()
    plugin.filter(plugin.prepare_filter(pod(requests=hostile("warm")), state), slice(0, NODES))
    names = [hostile(f"h{number}") for number in range(3)]
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number, requests in enumerate(names):
            state.set_pod(pod(f"placed{number}", on=f"n{number}", requests=requests))
            held = plugin.prepare_filter(pod(f"waiting{number}", requests=requests), state)
            assert np.count_nonzero(plugin.filter(held, slice(0, NODES))) == NODES
        during, most = tracemalloc.get_traced_memory()
        del held
        for number in range(3):
            state.remove_pod(f"default.placed{number}")
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    table = state.nodes.columns.capacity * 8
    # a row in one table for each name would be 96 MB
    assert during - before < 3 * RESOURCES * 800
    assert most - before < 3 * RESOURCES * 800 + 40 * table
    # names that were looked at lately are remembered, up to a number
    assert after - before < RESOURCES * 1000
