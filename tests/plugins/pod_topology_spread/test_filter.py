"""Where PodTopologySpread lets a pod go: the cases of kube-scheduler's own tables, and what its code says besides."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from policysched.framework import Cluster, unresolvable, unschedulable
from policysched.model.objects import (
    Affinity,
    LabelSelector,
    NodeAffinitySpec,
    NodeSelector,
    NodeSelectorTerm,
    Pod,
    Requirement,
    Taint,
    Toleration,
)
from policysched.plugins.pod_topology_spread.filter import HardState
from policysched.plugins.pod_topology_spread.plugin import PodTopologySpread
from policysched.state.tables import sparse
from tests.build import cluster, node, pod
from tests.plugins.ask import filtered, rejected, scored
from tests.plugins.pod_topology_spread.build import BAR, HOST, UNEVEN, ZONES, around, crowd, hard, incoming, soft

SPOT = Taint(key="spot", effect="NoSchedule")


def fitting(of: Pod, *objects: Any) -> str:
    made = cluster(*objects)
    away = rejected(PodTopologySpread(), of, made)
    return "".join(sorted(set(made.nodes.row_of) - away))


@pytest.mark.parametrize(
    ("constraint", "pods", "fits"),
    [
        (hard(), crowd(), "abxy"),
        (hard(selector=BAR), crowd(), "abxy"),
        (hard(), crowd(x=1, y=1), "ab"),
        (hard(), crowd(a=2, b=1, y=3), "abxy"),
        (hard("node"), crowd(a=2, b=1, y=3), "x"),
        (hard("node", 2), crowd(a=2, b=1, y=3), "bx"),
        (hard("node", 3), crowd(a=2, b=1, y=3), "abx"),
        (hard("node", 4), crowd(a=2, b=1, y=3), "abxy"),
        (hard("zone", 2, min_domains=3), crowd(a=1, b=1, y=1), "xy"),
        (hard("zone", 2, min_domains=2), crowd(a=1, b=1, y=1), "abxy"),
        (hard("zone", 2, min_domains=1), crowd(a=1, b=1, y=1), "abxy"),
        (hard("node", 1, min_domains=5), crowd(a=1), "bxy"),
        (hard("zone", 1, None), crowd(x=5), "abxy"),
        (hard("zone", 1, None, match_label_keys=["foo"]), crowd(x=5), "abxy"),
        (hard("node", 1, LabelSelector(), match_label_keys=["foo"]), crowd(x=1), "aby"),
        (hard("node", 1, LabelSelector(), match_label_keys=["absent"]), crowd(x=1), "abxy"),
        (hard("zone", 0), crowd(), ""),
    ],
)
def test_domains_that_would_become_too_full_are_rejected(constraint: Any, pods: Any, fits: str) -> None:
    assert fitting(incoming(constraint), *around(), *pods) == fits


def test_a_pod_that_does_not_count_itself_leaves_room_for_one_more() -> None:
    pods = crowd(a=2, b=1, y=3)
    assert fitting(incoming(hard("node"), labels="bar"), *around(), *pods) == "bx"


def test_an_empty_selector_counts_no_placed_pod_but_the_pod_itself() -> None:
    everything = hard("zone", 1, LabelSelector())
    assert fitting(incoming(everything), *around(), *crowd(a=5)) == "abxy"
    assert fitting(incoming(replace(everything, max_skew=0)), *around(), *crowd(a=5)) == ""
    assert fitting(incoming(hard("zone", 0, None)), *around(), *crowd(a=5)) == "abxy"


def test_an_empty_selector_counts_the_pods_of_the_namespace_where_a_release_does() -> None:
    plugin, everything = PodTopologySpread(empty_counts=True), hard("zone", 1, LabelSelector())
    other = pod("other", namespace="other", on="x")
    assert rejected(plugin, incoming(everything), cluster(*around(), *crowd(a=5), other)) == {"a", "b"}
    made = cluster(*around(), *crowd(a=5), other)
    assert scored(plugin, incoming(soft("zone", 1, LabelSelector())), made) == {"a": 0, "b": 0, "x": 100, "y": 100}
    assert rejected(plugin, incoming(hard("zone", 1, None)), cluster(*around(), *crowd(a=5))) == set()


def test_pods_of_other_namespaces_and_terminating_pods_do_not_count() -> None:
    other = pod("other", namespace="other", on="a", labels={"foo": ""})
    (leaving,) = crowd(b=1)
    leaving = replace(leaving, metadata=replace(leaving.metadata, deletion_timestamp="2026-01-01T00:00:00Z"))
    assert fitting(incoming(hard()), *around(), other, leaving, *crowd(x=1, y=1)) == "ab"


def test_nodes_without_the_label_are_rejected_for_good_and_their_pods_do_not_count() -> None:
    nodes = around(b={"zon": "1", "node": "b"})
    made = cluster(*nodes, *crowd(a=1, b=1, x=1, y=1))
    assert filtered(PodTopologySpread(), incoming(hard()), made) == {
        "b": unresolvable(f"{UNEVEN} (missing required label)"),
        "x": unschedulable(UNEVEN),
        "y": unschedulable(UNEVEN),
    }


def test_a_label_that_no_node_has_rejects_all_for_good() -> None:
    missing = unresolvable(f"{UNEVEN} (missing required label)")
    answer = filtered(PodTopologySpread(), incoming(hard("rack")), cluster(*around("ax")))
    assert answer == {"a": missing, "x": missing}


@pytest.mark.parametrize(
    ("key", "operator", "values", "pods", "fits"),
    [
        ("node", "In", ("a", "y"), crowd(a=2, b=1, y=3), "abx"),
        ("zone", "NotIn", ("b",), crowd(b=2, y=1), "ab"),
    ],
)
def test_nodes_that_the_pods_affinity_leaves_out_count_for_nothing(
    key: str, operator: str, values: tuple[str, ...], pods: Any, fits: str
) -> None:
    chosen = Requirement(key="node", operator=operator, values=values)
    terms = NodeSelector(node_selector_terms=[NodeSelectorTerm(match_expressions=(chosen,))])
    affinity = Affinity(node_affinity=NodeAffinitySpec(required=terms))
    assert fitting(incoming(hard(key), affinity=affinity), *around(), *pods) == fits


def test_without_any_eligible_node_the_least_is_0_unless_no_domain_is_asked_for() -> None:
    unlikely: dict[str, Any] = {"node_selector": {"absent": ""}}
    assert fitting(incoming(hard("node", 1), **unlikely), *around(), *crowd(a=1)) == "abxy"
    assert fitting(incoming(hard("node", 0), **unlikely), *around(), *crowd(a=1)) == ""
    assert fitting(incoming(hard("node", 0, min_domains=0), **unlikely), *around(), *crowd(a=1)) == "abxy"


def policies(affinity: str | None, taints: str | None) -> dict[str, Any]:
    return {"node_affinity_policy": affinity, "node_taints_policy": taints}


SELECTED = {"foo": "", "node": "a"}, {"foo": "", "node": "b"}, {"foo": "", "node": "x"}, {"node": "y"}


@pytest.mark.parametrize(
    ("wanted", "selector", "tolerated", "fits"),
    [
        (policies(None, None), {"foo": ""}, False, "xy"),
        (policies("Honor", None), {"foo": ""}, False, "xy"),
        (policies("Ignore", None), {"foo": ""}, False, "x"),
        (policies("Other", None), {"foo": ""}, False, "x"),
        (policies(None, None), {}, False, "x"),
        (policies(None, "Ignore"), {}, False, "x"),
        (policies(None, "Honor"), {}, False, "xy"),
        (policies(None, "Honor"), {}, True, "x"),
    ],
)
def test_inclusion_policies_say_which_nodes_count(
    wanted: dict[str, Any], selector: dict[str, str], tolerated: bool, fits: str
) -> None:
    """Node y is tainted and lacks the label foo; where it does not count, no pod is in its domain."""
    nodes = [node(name, labels=own, taints=[SPOT] * (name == "y")) for name, own in zip("abxy", SELECTED, strict=True)]
    tolerations = [Toleration(key="spot", operator="Exists")] * tolerated
    of = incoming(hard("node", **wanted), node_selector=selector, tolerations=tolerations)
    assert fitting(of, *nodes, *crowd(a=1, b=1, y=1)) == fits


@pytest.mark.parametrize(
    ("by_zone", "by_node", "tainted", "unselected", "fits"),
    [
        (policies("Honor", "Ignore"), policies("Ignore", "Ignore"), "", "y", "x"),
        (policies("Honor", "Honor"), policies("Honor", "Ignore"), "y", "", "x"),
        (policies("Honor", "Ignore"), policies("Honor", "Ignore"), "y", "b", "bx"),
        (policies("Honor", "Honor"), policies("Ignore", "Ignore"), "y", "b", "x"),
    ],
)
def test_each_constraint_has_policies_of_its_own(
    by_zone: dict[str, Any], by_node: dict[str, Any], tainted: str, unselected: str, fits: str
) -> None:
    labels = {
        name: {"zone": ZONES[name], "node": name} | ({} if name in unselected else {"foo": ""}) for name in "abxy"
    }
    nodes = [node(name, labels=own, taints=[SPOT] * (name in tainted)) for name, own in labels.items()]
    of = incoming(hard("zone", **by_zone), hard("node", **by_node), node_selector={"foo": ""})
    assert fitting(of, *nodes, *crowd(a=1, b=1, y=1)) == fits


@pytest.mark.parametrize(
    ("constraints", "pods", "fits"),
    [
        ((hard("zone"), hard("node")), crowd(a=2, b=1, y=3), "x"),
        ((hard("zone"), hard("node")), crowd(a=2, b=1, y=4), ""),
        ((hard("zone"), hard("node", 1, BAR)), [*crowd(a=1), *crowd("bar", a=1, y=1)], "x"),
        ((hard("zone"), hard("node", 1, BAR)), [*crowd(y=1), *crowd("bar", x=1, y=1)], "ab"),
        ((hard("zone"), hard("zone", 1, BAR)), [*crowd("foo bar", a=2, x=1), *crowd(b=1, y=2)], "xy"),
        ((hard("zone"), hard("zone", 1, BAR)), [*crowd("foo bar", a=2, x=1), *crowd(b=1, y=3)], ""),
    ],
)
def test_several_constraints_must_all_hold(constraints: Any, pods: Any, fits: str) -> None:
    assert fitting(incoming(*constraints, labels="foo bar"), *around(), *pods) == fits


def test_a_node_that_lacks_one_of_the_labels_counts_for_none_of_the_constraints() -> None:
    nodes = around(y={"zone": "2"})
    made = cluster(*nodes, *crowd(a=1, y=1))
    assert filtered(PodTopologySpread(), incoming(hard("zone"), hard("node")), made) == {
        "a": unschedulable(UNEVEN),
        "b": unschedulable(UNEVEN),
        "y": unresolvable(f"{UNEVEN} (missing required label)"),
    }


def test_two_nodes_of_one_host_name_are_one_domain_to_the_filter_and_two_to_the_score() -> None:
    nodes = around("abx", b={HOST: "a"})
    pods = crowd(a=1, b=1)
    assert fitting(incoming(hard(HOST, 2)), *nodes, *pods) == "x"
    assert scored(PodTopologySpread(), incoming(soft(HOST)), cluster(*nodes, *pods)) == {"a": 0, "b": 0, "x": 100}


def reached(plugin: PodTopologySpread, state: HardState, made: Cluster) -> str:
    """The nodes that would be asked again though nothing of their own changed."""
    rows = plugin.affected_rows(state, np.zeros(0, np.int32))
    return "".join(sorted(made.nodes.names[row] for row in np.arange(made.nodes.size)[rows]))


def test_only_domains_whose_verdict_became_another_are_asked_again() -> None:
    plugin, made = PodTopologySpread(), cluster(*around())
    state: Any = plugin.prepare_filter(incoming(hard("zone", 2)), made)
    plugin.filter(state, slice(0, 4))
    one, two, other = crowd(a=2)[0], crowd(a=2)[1], crowd(x=1)[0]
    made.set_pod(one)
    assert reached(plugin, state, made) == ""
    made.set_pod(two)
    assert reached(plugin, state, made) == "ab"
    assert reached(plugin, state, made) == ""
    made.set_pod(other)
    assert reached(plugin, state, made) == "ab"
    assert not plugin.filter(state, slice(0, 4)).any()


def test_verdicts_that_changed_in_several_steps_are_all_asked_again() -> None:
    plugin, made = PodTopologySpread(), cluster(*around())
    state: Any = plugin.prepare_filter(incoming(hard("node")), made)
    some = np.array([made.nodes.row_of["y"]], np.intp)
    plugin.filter(state, slice(0, 4))
    for one in crowd(a=1, b=1):
        made.set_pod(one)
        plugin.filter(state, some)
    assert reached(plugin, state, made) == "ab"


def test_when_domains_get_other_numbers_all_rows_are_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    plugin, made = PodTopologySpread(), cluster(*around())
    state: Any = plugin.prepare_filter(incoming(hard("node")), made)
    some = np.array([made.nodes.row_of["y"]], np.intp)
    made.domains.of("node").number("a value that no node has")
    plugin.filter(state, slice(0, 4))
    made.set_pod(crowd(a=1)[0])
    plugin.filter(state, some)
    monkeypatch.setattr(sparse, "SPARE", -50)
    made.set_node(node("y", labels={"node": "z"}))
    plugin.filter(state, some)
    made.set_pod(crowd(b=1)[0])
    plugin.filter(state, some)
    assert reached(plugin, state, made) == "abxy"
    plugin.filter(state, slice(0, 4))
    assert reached(plugin, state, made) == ""
