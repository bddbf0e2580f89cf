"""NodeUnschedulable, NodeName, TaintToleration and NodeDeclaredFeatures."""

from __future__ import annotations

from typing import Any

import pytest

from policysched.framework import SKIP, Action, Change, Resource, unresolvable
from policysched.model.objects import Container, Pod, RestartRule, Taint, Toleration
from policysched.plugins.nodes.node_filters import NodeDeclaredFeatures, NodeName, NodeUnschedulable, TaintToleration
from tests.build import cluster, node, pod
from tests.plugins.ask import filtered, hinted, node_change, pod_change, rejected, scored

CORDON = Toleration(key="node.kubernetes.io/unschedulable", operator="Exists", effect="NoSchedule")
ALL = Toleration(operator="Exists")


def taint(key: str, effect: str = "NoSchedule", value: str = "") -> Taint:
    return Taint(key=key, value=value, effect=effect)


def test_node_unschedulable_rejects_cordoned_nodes_for_good() -> None:
    state = cluster(node("free"), node("cordoned", unschedulable=True))
    answer = filtered(NodeUnschedulable(), pod(), state)
    assert answer == {"cordoned": unresolvable("node(s) were unschedulable")}


@pytest.mark.parametrize("toleration", [CORDON, ALL])
def test_node_unschedulable_skips_pods_that_tolerate_it(toleration: Toleration) -> None:
    state = cluster(node("cordoned", unschedulable=True))
    assert filtered(NodeUnschedulable(), pod(tolerations=[toleration]), state) is SKIP


@pytest.mark.parametrize(
    ("change", "helps"),
    [
        (node_change(None, node()), True),
        (node_change(None, node(unschedulable=True)), False),
        (node_change(node(unschedulable=True), node(), Action.UPDATE_NODE_TAINT), True),
        (node_change(node(), node(), Action.UPDATE_NODE_TAINT), False),
        (node_change(node(), node(unschedulable=True), Action.UPDATE_NODE_TAINT), False),
        (node_change(node(unschedulable=True), node(), Action.UPDATE_NODE_LABEL), False),
    ],
)
def test_node_unschedulable_waits_for_a_node_that_is_not_cordoned(change: Change, helps: bool) -> None:
    assert hinted(NodeUnschedulable(), pod(), change) is helps


@pytest.mark.parametrize(
    ("updated", "helps"),
    [
        (pod("p", tolerations=[CORDON]), True),
        (pod("p", tolerations=[Toleration(key="other", operator="Exists")]), False),
        (pod("other", tolerations=[CORDON]), False),
    ],
)
def test_node_unschedulable_waits_for_the_pods_own_toleration(updated: Pod, helps: bool) -> None:
    change = pod_change(pod(), updated, Action.UPDATE_POD_TOLERATION, Resource.PENDING_POD)
    assert hinted(NodeUnschedulable(), pod("p"), change) is helps


def test_node_name_lets_the_pod_on_that_node_alone() -> None:
    state = cluster(node("a"), node("b"))
    reason = unresolvable("node(s) didn't match the requested node name")
    assert filtered(NodeName(), pod(on="a"), state) == {"b": reason}
    assert filtered(NodeName(), pod(), state) is SKIP


def test_node_name_state_knows_a_node_that_comes_later() -> None:
    state = cluster(node("a"))
    plugin = NodeName()
    prepared: Any = plugin.prepare_filter(pod(on="late"), state)
    state.set_node(node("late"))
    codes = plugin.filter(prepared, slice(0, state.nodes.size))
    assert codes.tolist() == [1, 0]


def test_node_name_waits_for_new_nodes() -> None:
    assert hinted(NodeName(), pod(on="a"), node_change(None, node("a")))
    assert not hinted(NodeName(), pod(on="a"), node_change(node("a"), node("a"), Action.UPDATE_NODE_LABEL))


@pytest.mark.parametrize(
    ("taints", "tolerations", "passes"),
    [
        ([], [], True),
        ([taint("k")], [], False),
        ([taint("k", "NoExecute")], [], False),
        ([taint("k", "PreferNoSchedule")], [], True),
        ([taint("k", value="v")], [Toleration(key="k", value="v", effect="NoSchedule")], True),
        ([taint("k", value="v")], [Toleration(key="k", operator="Equal", value="w")], False),
        ([taint("k", value="v")], [Toleration(key="k", operator="Exists", effect="NoExecute")], False),
        ([taint("k", value="5")], [Toleration(key="k", operator="Gt", value="1")], False),
        ([taint("k"), taint("l")], [Toleration(key="k", operator="Exists")], False),
        ([taint("k"), taint("l", "NoExecute")], [ALL], True),
    ],
)
def test_taint_toleration_needs_every_repelling_taint_tolerated(
    taints: list[Taint], tolerations: list[Toleration], passes: bool
) -> None:
    state = cluster(node("bare"), node("tainted", taints=taints))
    answer = filtered(TaintToleration(), pod(tolerations=tolerations), state)
    expected = {} if passes else {"tainted": unresolvable("node(s) had untolerated taint(s)")}
    assert answer == expected


def test_taint_toleration_judges_sets_of_taints_that_come_later() -> None:
    state = cluster(node("a"))
    plugin = TaintToleration()
    prepared: Any = plugin.prepare_filter(pod(), state)
    for number in range(70):
        state.set_node(node(f"n{number}", taints=[taint(f"k{number}", "NoSchedule" if number % 2 else "Other")]))
    codes = plugin.filter(prepared, slice(0, state.nodes.size))
    assert codes.tolist() == [0, *(number % 2 for number in range(70))]


@pytest.mark.parametrize(
    ("tolerations", "scores"),
    [
        ([], {"none": 100, "one": 50, "two": 0, "hard": 100}),
        ([Toleration(key="a", operator="Exists", effect="PreferNoSchedule")], {"none": 100, "one": 100, "two": 0}),
        ([Toleration(key="a", operator="Exists", effect="NoSchedule")], {"none": 100, "one": 50, "two": 0}),
        ([ALL], {"none": 100, "one": 100, "two": 100}),
    ],
)
def test_taint_toleration_prefers_fewer_taints(tolerations: list[Toleration], scores: dict[str, int]) -> None:
    a, b = taint("a", "PreferNoSchedule"), taint("b", "PreferNoSchedule")
    state = cluster(
        node("none"), node("one", taints=[a]), node("two", taints=[a, b]), node("hard", taints=[taint("a")])
    )
    answer = scored(TaintToleration(), pod(tolerations=tolerations), state)
    assert answer == {"hard": 100} | scores


@pytest.mark.parametrize(
    ("change", "helps"),
    [
        (node_change(None, node()), True),
        (node_change(None, node(taints=[taint("k")])), False),
        (node_change(node(taints=[taint("k")]), node(), Action.UPDATE_NODE_TAINT), True),
        (node_change(node(), node(), Action.UPDATE_NODE_TAINT), False),
        (node_change(node(taints=[taint("k")]), node(taints=[taint("l")]), Action.UPDATE_NODE_TAINT), False),
    ],
)
def test_taint_toleration_waits_for_a_node_that_stops_repelling(change: Change, helps: bool) -> None:
    assert hinted(TaintToleration(), pod(), change) is helps


@pytest.mark.parametrize(("name", "helps"), [("p", True), ("other", False)])
def test_taint_toleration_waits_for_the_pods_own_tolerations(name: str, helps: bool) -> None:
    change = pod_change(pod(name), pod(name), Action.UPDATE_POD_TOLERATION, Resource.PENDING_POD)
    assert hinted(TaintToleration(), pod("p"), change) is helps


RESTARTS = Container(restart_policy_rules=(RestartRule(action="RestartAllContainers"),))
USER_NAMESPACE: dict[str, Any] = {"host_network": True, "host_users": False}


@pytest.mark.parametrize(
    ("spec", "passing"),
    [
        ({"containers": [RESTARTS]}, {"restarts", "both"}),
        ({"init_containers": [RESTARTS]}, {"restarts", "both"}),
        (USER_NAMESPACE, {"both"}),
        (USER_NAMESPACE | {"containers": [RESTARTS]}, {"both"}),
    ],
)
def test_node_declared_features_needs_all_features_declared(spec: dict[str, Any], passing: set[str]) -> None:
    restarts, network = "RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport"
    state = cluster(node("none"), node("restarts", features=[restarts]), node("both", features=[restarts, network]))
    assert rejected(NodeDeclaredFeatures(), pod(**spec), state) == {"none", "restarts", "both"} - passing


def test_node_declared_features_rejects_for_good_and_skips_other_pods() -> None:
    state = cluster(node())
    answer = filtered(NodeDeclaredFeatures(), pod(containers=[RESTARTS]), state)
    assert answer == {"n1": unresolvable("node(s) didn't match Pod's required features")}
    assert filtered(NodeDeclaredFeatures(), pod(host_network=True), state) is SKIP


@pytest.mark.parametrize(
    ("change", "helps"),
    [
        (node_change(None, node()), True),
        (node_change(node(), node(features=["F"]), Action.UPDATE_NODE_DECLARED_FEATURE), True),
        (node_change(node(), node(), Action.UPDATE_NODE_DECLARED_FEATURE), False),
        (pod_change(pod(**USER_NAMESPACE), pod(), Action.UPDATE_OTHER, Resource.PENDING_POD), True),
        (pod_change(pod(), pod(labels={"a": "b"}), Action.UPDATE_POD_LABEL, Resource.PENDING_POD), False),
        (pod_change(pod("q", **USER_NAMESPACE), pod("q"), Action.UPDATE_OTHER, Resource.PENDING_POD), False),
    ],
)
def test_node_declared_features_waits_for_other_features(change: Change, helps: bool) -> None:
    assert hinted(NodeDeclaredFeatures(), pod(**USER_NAMESPACE), change) is helps
