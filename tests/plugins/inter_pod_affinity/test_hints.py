"""Which changes bring a pod back that InterPodAffinity turned away."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from policysched.framework import Action, Change, Resource
from policysched.model.objects import Node, Pod, PodStatus
from policysched.plugins.inter_pod_affinity.plugin import InterPodAffinity
from tests.build import node, pod
from tests.plugins.ask import hinted, node_change, pod_change
from tests.plugins.inter_pod_affinity.build import away, label, near, nodes, scene, team, term

SCAN = {"service": "scan"}
SERVICE = label("service", "scan", "other")
NEEDS, AVOIDS = near(term(SERVICE, "region")), away(term(SERVICE, "region"))
ADD, RELABEL, DELETE = Action.ADD, Action.UPDATE_POD_LABEL, Action.DELETE
TWO_NEEDS = near(term(label("a")), term(label("b")))
TWO_AVOIDED = away(term(label("a")), term(label("b")))


def needing(**fields: Any) -> Pod:
    return pod("p", **({"affinity": NEEDS} | fields))


def avoiding(**fields: Any) -> Pod:
    return pod("p", **({"affinity": AVOIDS} | fields))


def other(on: str = "n1", namespace: str = "default", affinity: Any = None, **labels: str) -> Pod:
    return pod("other", on=on, namespace=namespace, labels=labels, affinity=affinity)


def nominated(one: Pod) -> Pod:
    return replace(one, spec=replace(one.spec, node_name=""), status=PodStatus(nominated_node_name="n1"))


def come(one: Pod) -> Change:
    return pod_change(None, one, ADD)


def gone(one: Pod) -> Change:
    return pod_change(one, None)


def relabelled(old: Pod, new: Pod) -> Change:
    return pod_change(old, new, RELABEL)


PODS: dict[str, tuple[Pod, Change, bool]] = {
    "a pod comes that is needed": (needing(), come(other(service="scan")), True),
    "a pod comes that is not": (needing(), come(other(aaa="a")), False),
    "a pod comes that has no node": (needing(), come(other(on="", service="scan")), False),
    "a pod becomes one that is needed": (needing(), relabelled(other(aaa="a"), other(service="scan")), True),
    "a pod stays one that is needed": (needing(), relabelled(other(service="other"), other(service="scan")), False),
    "a pod ceases to be needed": (needing(), relabelled(other(service="scan"), other(aaa="a")), False),
    "a pod without a node becomes one": (
        needing(),
        relabelled(other(on="", aaa="a"), other(on="", service="scan")),
        False,
    ),
    "of two terms one is met no longer": (needing(affinity=TWO_NEEDS), relabelled(other(a=""), other()), False),
    "of two terms both come to be met": (needing(affinity=TWO_NEEDS), relabelled(other(a=""), other(a="", b="")), True),
    "its own labels change": (
        pod("p", labels={"foo": "baz"}),
        pod_change(pod("p", labels={"foo": "bar"}), pod("p", labels={"foo": "baz"}), RELABEL, Resource.PENDING_POD),
        True,
    ),
    "a pod ceases to be avoided": (avoiding(), relabelled(other(service="scan"), other(service="aaaa")), True),
    "a pod becomes one that is avoided": (avoiding(), relabelled(other(service="bbb"), other(service="scan")), False),
    "a pod goes that is avoided": (avoiding(), gone(other(service="scan")), True),
    "a pod goes that is not": (avoiding(), gone(other(aaa="a")), False),
    "a nominated pod goes that is avoided": (avoiding(), gone(nominated(other(service="scan"))), True),
    "a nominated pod goes that is not": (avoiding(), gone(nominated(other(aaa="a"))), False),
    "a pod goes that avoids this one": (pod("p", labels=SCAN), gone(other(affinity=AVOIDS)), True),
    "a pod goes that avoids others": (pod("p", labels={"service": "foo"}), gone(other(affinity=AVOIDS)), False),
    "neither avoids the other": (
        avoiding(labels={"service": "foo"}),
        gone(other(service="foo", affinity=AVOIDS)),
        False,
    ),
    # from here on kube-scheduler lets the pod wait
    "of two avoided sorts of pods one goes": (avoiding(affinity=TWO_AVOIDED), gone(other(a="")), True),
    "of two terms of its anti-affinity one means this pod": (
        pod("p", labels={"a": ""}),
        gone(other(affinity=TWO_AVOIDED)),
        True,
    ),
    "the last pod of the group may have gone": (needing(labels=SCAN), gone(other(service="scan")), True),
    "it may have left the group": (needing(labels=SCAN), relabelled(other(service="scan"), other(service="x")), True),
    "the group has others than this pod": (needing(), gone(other(service="scan")), False),
    "a pod comes that is needed by its namespace's labels": (
        needing(affinity=near(term(SERVICE, of=team("one")))),
        come(other(namespace="one-a", service="scan")),
        True,
    ),
    "a pod comes from a namespace of other labels": (
        needing(affinity=near(term(SERVICE, of=team("one")))),
        come(other(namespace="two-a", service="scan")),
        False,
    ),
    "a pod goes that avoids this one by its namespace's labels": (
        pod("p", namespace="one-a", labels=SCAN),
        gone(other(namespace="two-a", affinity=away(term(SERVICE, of=team("one"))))),
        True,
    ),
}


@pytest.mark.parametrize("case", PODS)
def test_pods_that_come_go_and_change_help_where_terms_mean_them(case: str) -> None:
    waiting, change, helps = PODS[case]
    assert hinted(InterPodAffinity(), waiting, change, scene()) is helps


ZONE_NEED, ZONE_AVOID = near(term(SERVICE)), away(term(SERVICE))
LABELS = Action.UPDATE_NODE_LABEL


def labelled(**labels: str) -> Node:
    return node("n1", labels=labels)


@pytest.mark.parametrize(
    ("waiting", "old", "new", "helps"),
    [
        (needing(affinity=ZONE_NEED), None, labelled(zone="z1"), True),
        (needing(), None, labelled(zone="z1"), False),
        (needing(affinity=ZONE_NEED), labelled(aaa="a"), labelled(aaa="b"), False),
        (needing(affinity=ZONE_NEED), labelled(zone="z1"), labelled(zone="z1", other="x"), False),
        (needing(affinity=ZONE_NEED), labelled(zone="z1"), labelled(zone="z2"), True),
        (needing(affinity=ZONE_NEED), labelled(aaa="a"), labelled(zone="z1"), True),
        (needing(affinity=ZONE_NEED), labelled(zone="z1"), labelled(), False),
        (avoiding(affinity=ZONE_AVOID), None, labelled(zone="z1"), True),
        (avoiding(affinity=ZONE_AVOID), None, labelled(), True),
        (avoiding(affinity=ZONE_AVOID), labelled(zone="z1"), labelled(zone="z1", other="x"), False),
        (avoiding(affinity=ZONE_AVOID), labelled(zone="z1"), labelled(zone="z2"), True),
        (avoiding(affinity=ZONE_AVOID), labelled(aaa="a"), labelled(zone="z1"), False),
        (avoiding(affinity=ZONE_AVOID), labelled(zone="z1"), labelled(aaa="a"), True),
        (avoiding(affinity=ZONE_AVOID), labelled(zone="z1"), None, False),
    ],
)
def test_nodes_that_join_or_change_their_domain_help(waiting: Pod, old: Node, new: Node, helps: bool) -> None:
    action = ADD if old is None else LABELS if new is not None else DELETE
    assert hinted(InterPodAffinity(), waiting, node_change(old, new, action), scene()) is helps


@pytest.mark.parametrize(
    ("old", "new", "helps"),
    [
        (None, labelled(), True),
        (labelled(zone="z1"), labelled(zone="z2"), True),
        (labelled(rack="r1"), labelled(rack="r2"), False),
    ],
)
def test_a_pod_that_placed_pods_avoid_may_go_to_a_node_that_joins_or_moves(old: Node, new: Node, helps: bool) -> None:
    around = scene(*nodes(n1={"zone": "z1"}), other(affinity=ZONE_AVOID), pod("needs", on="n1", affinity=NEEDS))
    change = node_change(old, new, ADD if old is None else LABELS)
    assert hinted(InterPodAffinity(), pod("p", labels=SCAN), change, around) is helps
    assert not hinted(InterPodAffinity(), pod("p", labels={"service": "x"}), change, around)


@pytest.mark.parametrize(
    ("waiting", "placed", "helps"),
    [
        (pod("p"), other(), False),
        (needing(), other(), False),
        (needing(affinity=near(term(SERVICE, of=team("one")))), other(), True),
        (avoiding(affinity=away(term(SERVICE, of=team("one")))), other(), True),
        (pod("p"), other(affinity=away(term(SERVICE, of=team("one")))), True),
    ],
)
def test_labels_of_namespaces_help_where_a_term_reads_them(waiting: Pod, placed: Pod, helps: bool) -> None:
    change = Change(Resource.NAMESPACE, Action.UPDATE_OTHER)
    assert hinted(InterPodAffinity(), waiting, change, scene(*nodes(n1={}), placed)) is helps
