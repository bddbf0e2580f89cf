"""Where PodTopologySpread would like a pod to go: the cases of kube-scheduler's own tables, and some beyond them."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from policysched.model.objects import (
    Affinity,
    LabelSelector,
    NodeAffinitySpec,
    NodeSelector,
    NodeSelectorTerm,
    Requirement,
    Taint,
)
from policysched.plugins.pod_topology_spread.plugin import PodTopologySpread
from policysched.plugins.pod_topology_spread.score import natural_log
from tests.build import cluster, node, pod
from tests.plugins.pod_topology_spread.build import BAR, HOST, around, crowd, hard, incoming, scores, soft


@pytest.mark.parametrize(
    ("constraints", "pods", "expected"),
    [
        ([soft()], crowd(), {"a": 100, "b": 100}),
        ([soft()], crowd(a=2, b=1), {"a": 100}),
        ([soft()], crowd(a=1, b=1), {"a": 100, "b": 100}),
        ([soft()], crowd(a=2, b=1, y=3), {"a": 20, "b": 60, "x": 100, "y": 0}),
        ([soft(selector=None)], crowd(a=2, b=1, y=3), {"a": 100, "b": 100, "x": 100, "y": 100}),
        ([soft(selector=LabelSelector())], crowd(a=2, b=1, y=3), {"a": 100, "b": 100, "x": 100, "y": 100}),
        ([soft(HOST, 2)], crowd(a=2, b=1, y=3), {"a": 33, "b": 66, "x": 100, "y": 16}),
        ([soft(HOST, 3)], crowd(a=4, b=3, x=2, y=1), {"a": 44, "b": 66, "x": 77, "y": 100}),
        ([soft()], crowd(a=4, b=2, x=1, y=3), {"a": 33, "b": 83, "x": 100}),
        ([soft("zone")], crowd(a=4, b=2, x=1, y=3), {"a": 75, "b": 75, "x": 100}),
        ([soft("zone"), soft()], crowd(a=2, b=1, x=2, y=4), {"a": 100, "x": 63}),
        (
            [soft("zone"), soft("zone", 1, BAR)],
            [*crowd("foo bar", a=1, b=1, y=1), *crowd(a=1, y=2)],
            {"a": 85, "x": 100},
        ),
        (
            [soft("zone"), soft(HOST, 1, BAR)],
            [*crowd(a=1, y=1), *crowd("foo bar", b=1), *crowd("bar", y=1)],
            {"a": 60, "b": 20, "x": 100, "y": 60},
        ),
        (
            [soft("zone"), soft(HOST, 1, BAR)],
            [*crowd("bar", b=1), *crowd(x=1), *crowd("foo bar", y=1)],
            {"a": 100, "b": 60, "x": 40, "y": 0},
        ),
        (
            [soft("zone"), soft(HOST, 1, BAR)],
            [*crowd(a=1, y=1), *crowd("foo bar", b=1), *crowd("bar", y=1)],
            {"a": 50, "b": 25, "x": 100},
        ),
        ([soft("node", 2, min_domains=10)], crowd(a=2, b=2, x=1), {"a": 75, "b": 75, "x": 100}),
        ([soft("node", 1, LabelSelector(), match_label_keys=["foo"])], crowd(a=1, b=2), {"a": 33, "b": 0, "x": 100}),
        ([soft("zone"), hard("zone")], crowd(a=1), {"a": 0, "x": 100}),
    ],
)
def test_feasible_nodes_are_scored_by_how_few_pods_there_are(
    constraints: Any, pods: Any, expected: Mapping[str, int]
) -> None:
    of = incoming(*constraints, labels="foo bar")
    assert scores(of, cluster(*around(), *pods), expected) == expected


def test_pods_of_other_namespaces_and_terminating_pods_do_not_count() -> None:
    others = [pod("other", namespace="other", on="a", labels={"foo": ""}), *crowd(a=1, b=2)]
    assert scores(incoming(soft()), cluster(*around("ab"), *others), "ab") == {"a": 100, "b": 33}
    leaving, staying = crowd(a=1, b=1)
    leaving = replace(leaving, metadata=replace(leaving.metadata, deletion_timestamp="2026-01-01T00:00:00Z"))
    assert scores(incoming(soft()), cluster(*around("ab"), leaving, staying), "ab") == {"a": 100, "b": 0}


SELECTED = NodeSelector(
    node_selector_terms=[NodeSelectorTerm(match_expressions=(Requirement(key="foo", operator="In", values=("",)),))]
)
BY_SELECTOR = {"node_selector": {"foo": ""}}
BY_AFFINITY = {"affinity": Affinity(node_affinity=NodeAffinitySpec(required=SELECTED))}
COUNTED, PASSED_OVER = {"a": 66, "b": 100, "x": 100}, {"a": 0, "b": 33, "x": 100}


@pytest.mark.parametrize(
    ("spec", "policies", "expected"),
    [
        (BY_SELECTOR, {}, PASSED_OVER),
        (BY_SELECTOR, {"node_affinity_policy": "Ignore"}, COUNTED),
        (BY_AFFINITY, {}, PASSED_OVER),
        (BY_AFFINITY, {"node_affinity_policy": "Ignore"}, COUNTED),
        ({}, {"node_taints_policy": "Honor"}, PASSED_OVER),
        ({}, {}, COUNTED),
    ],
)
def test_inclusion_policies_say_whose_pods_count(
    spec: dict[str, Any], policies: dict[str, Any], expected: Mapping[str, int]
) -> None:
    """Node x is tainted and lacks the label foo; where it does not count, its pod does not either."""
    labels = {name: {"node": name} | ({} if name == "x" else {"foo": ""}) for name in "abx"}
    spot = Taint(key="spot", effect="NoSchedule")
    nodes = [node(name, labels=own, taints=[spot] * (name == "x")) for name, own in labels.items()]
    made = cluster(*nodes, *crowd(a=2, b=1, x=1))
    assert scores(incoming(soft("node", **policies), **spec), made, "abx") == expected


@pytest.mark.parametrize(
    ("constraints", "pods"),
    [
        (
            [soft("zone", 1, LabelSelector(), match_label_keys=["foo"]),
             soft(HOST, 1, LabelSelector(), match_label_keys=["bar"])],
            [*crowd(a=1, x=1), *crowd("foo bar", b=1), *crowd("bar", x=1)],
        ),
        (
            [soft("zone"), soft(HOST, 1, BAR, match_label_keys=["baz"])],
            [*crowd(a=1, x=1), *crowd("foo bar baz", b=1), *crowd("bar", x=1), *crowd("bar baz", x=1)],
        ),
    ],
)  # fmt: skip
def test_label_keys_narrow_each_constraint_on_its_own(constraints: Any, pods: Any) -> None:
    found = scores(incoming(*constraints, labels="foo bar baz"), cluster(*around(), *pods), "abxy")
    assert found == {"a": 60, "b": 20, "x": 60, "y": 100}


def test_nodes_that_lack_a_label_of_the_pods_own_constraints_score_0() -> None:
    made = cluster(*around(b={"node": "b"}), *crowd(a=4, b=2, x=1, y=3))
    assert scores(incoming(soft()), made, "abx") == {"a": 16, "b": 0, "x": 100}
    assert scores(incoming(soft(), soft("zone")), made, "b") == {"b": 0}
    assert scores(incoming(soft("zone")), made, "b") == {"b": 0}


def test_inclusion_policies_do_not_matter_to_the_score_over_host_names() -> None:
    of = incoming(soft(), node_selector={"absent": ""})
    assert scores(of, cluster(*around(), *crowd(a=1)), "ab") == {"a": 0, "b": 100}
    over_nodes = incoming(soft("node"), node_selector={"absent": ""})
    assert scores(over_nodes, cluster(*around(), *crowd(a=1)), "ab") == {"a": 100, "b": 100}


@pytest.mark.parametrize(("skew", "found"), [(0, {"a": -9, "x": 0}), (-3, {"a": -50, "x": 100})])
def test_a_skew_below_1_that_no_api_server_lets_through_may_lead_out_of_range(skew: int, found: dict[str, int]) -> None:
    of, made, plugin = incoming(soft("zone", skew)), cluster(*around(), *crowd(a=9)), PodTopologySpread()
    assert scores(of, made, "ax") == found
    states: list[Any] = [plugin.prepare_score(one, made) for one in (of, incoming(soft("zone", 1)))]
    assert [plugin.stays_in_range(state) for state in states] == [False, True]


@pytest.mark.parametrize(
    ("number", "bits"),
    [
        (2, 0x3FE62E42FEFA39EF),
        (3, 0x3FF193EA7AAD030A),
        (14, 0x40051CCA16D7BBA8),
        (48, 0x400EF8383C50BB74),
        (5002, 0x40210901F6DC84B9),
        (200001, 0x402869830257DEC4),
    ],
)
def test_logarithms_are_those_of_go(number: int, bits: int) -> None:
    assert struct.unpack(">Q", struct.pack(">d", natural_log(number)))[0] == bits
