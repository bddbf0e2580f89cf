"""Which changes bring a pod back that InterPodAffinity turned away."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from policysched.framework import Action, Change, Resource
from policysched.model.objects import Node, Pod, PodStatus
from policysched.plugins.inter_pod_affinity import InterPodAffinity
from tests.build import node, pod
from tests.plugins.affinity_build import away, label, near, nodes, scene, team, term
from tests.plugins.ask import hinted, node_change, pod_change

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


PODS: dict[str, tuple[Pod, Change, bool]] = {
    "a pod comes that is needed": (needing(), pod_change(None, other(service="scan"), ADD), True),
    "a pod comes that is not": (needing(), pod_change(None, other(aaa="a"), ADD), False),
    "a pod comes that has no node": (needing(), pod_change(None, other(on="", service="scan"), ADD), False),
    "a pod becomes one that is needed": (
        needing(),
        pod_change(other(aaa="a"), other(service="scan"), RELABEL),
        True,
    ),
    "a pod stays one that is needed": (
        needing(),
        pod_change(other(service="other"), other(service="scan"), RELABEL),
        False,
    ),
    "a pod ceases to be needed": (needing(), pod_change(other(service="scan"), other(aaa="a"), RELABEL), False),
    "a pod without a node becomes one": (
        needing(),
        pod_change(other(on="", aaa="a"), other(on="", service="scan"), RELABEL),
        False,
    ),
    "of two terms one is met no longer": (
        needing(affinity=TWO_NEEDS),
        pod_change(other(a=""), other(), RELABEL),
        False,
    ),
    "of two terms both come to be met": (
        needing(affinity=TWO_NEEDS),
        pod_change(other(a=""), other(a="", b=""), RELABEL),
        True,
    ),
    "its own labels change": (
        pod("p", labels={"foo": "baz"}),
        pod_change(pod("p", labels={"foo": "bar"}), pod("p", labels={"foo": "baz"}), RELABEL, Resource.PENDING_POD),
        True,
    ),
    "a pod ceases to be avoided": (
        avoiding(),
        pod_change(other(service="scan"), other(service="aaaa"), RELABEL),
        True,
    ),
    "a pod becomes one that is avoided": (
        avoiding(),
        pod_change(other(service="bbb"), other(service="scan"), RELABEL),
        False,
    ),
    "a pod goes that is avoided": (avoiding(), pod_change(other(service="scan"), None), True),
    "a pod goes that is not": (avoiding(), pod_change(other(aaa="a"), None), False),
    "a nominated pod goes that is avoided": (avoiding(), pod_change(nominated(other(service="scan")), None), True),
    "a nominated pod goes that is not": (avoiding(), pod_change(nominated(other(aaa="a")), None), False),
    "a pod goes that avoids this one": (
        pod("p", labels=SCAN),
        pod_change(other(affinity=AVOIDS), None),
        True,
    ),
    "a pod goes that avoids others": (
        pod("p", labels={"service": "foo"}),
        pod_change(other(affinity=AVOIDS), None),
        False,
    ),
    "neither avoids the other": (
        avoiding(labels={"service": "foo"}),
        pod_change(other(service="foo", affinity=AVOIDS), None),
        False,
    ),
    # from here on kube-scheduler lets the pod wait
    "of two avoided sorts of pods one goes": (avoiding(affinity=TWO_AVOIDED), pod_change(other(a=""), None), True),
    "of two terms of its anti-affinity one means this pod": (
        pod("p", labels={"a": ""}),
        pod_change(other(affinity=TWO_AVOIDED), None),
        True,
    ),
    "the last pod of the group may have gone": (needing(labels=SCAN), pod_change(other(service="scan"), None), True),
    "it may have left the group": (
        needing(labels=SCAN),
        pod_change(other(service="scan"), other(service="x"), RELABEL),
        True,
    ),
    "the group has others than this pod": (needing(), pod_change(other(service="scan"), None), False),
    "a pod comes that is needed by its namespace's labels": (
        needing(affinity=near(term(SERVICE, of=team("one")))),
        pod_change(None, other(namespace="one-a", service="scan"), ADD),
        True,
    ),
    "a pod comes from a namespace of other labels": (
        needing(affinity=near(term(SERVICE, of=team("one")))),
        pod_change(None, other(namespace="two-a", service="scan"), ADD),
        False,
    ),
    "a pod goes that avoids this one by its namespace's labels": (
        pod("p", namespace="one-a", labels=SCAN),
        pod_change(other(namespace="two-a", affinity=away(term(SERVICE, of=team("one")))), None),
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
