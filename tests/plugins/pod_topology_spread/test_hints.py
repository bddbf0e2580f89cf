"""Which changes may help a pod that PodTopologySpread turned away: the cases of kube-scheduler's own tables."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from policysched.framework import Action, Change, Cluster, Resource
from policysched.model.objects import Pod, PodStatus, Taint, Toleration
from policysched.plugins.pod_topology_spread.constraints import Defaults
from policysched.plugins.pod_topology_spread.plugin import PodTopologySpread
from tests.build import node, pod
from tests.plugins.ask import hinted, node_change, pod_change
from tests.plugins.pod_topology_spread.build import BAR, FOO, hard, incoming
from tests.plugins.pod_topology_spread.test_plugin import LIKE, PLAIN, like_service

WAITING = incoming(hard("zone", 1, FOO), hard("node", 1, BAR))
TOLERATING = [Toleration(key="spot", operator="Exists")]


def labelled(*keys: str, on: str = "n", **fields: Any) -> Pod:
    return pod("other", on=on, labels=dict.fromkeys(keys, ""), **fields)


def nominated(*keys: str) -> Pod:
    return replace(labelled(*keys, on=""), status=PodStatus(nominated_node_name="n"))


def waiting(*keys: str, **fields: Any) -> Pod:
    """Another version of the waiting pod."""
    made = replace(WAITING, metadata=replace(WAITING.metadata, labels=dict.fromkeys(keys, "")))
    return replace(made, spec=replace(made.spec, **fields))


@pytest.mark.parametrize(
    ("old", "new", "helps"),
    [
        (None, labelled("foo"), True),
        (None, labelled("bar"), True),
        (None, labelled("other"), False),
        (None, labelled("foo", on=""), False),
        (None, labelled("foo", namespace="other"), False),
        (labelled("foo"), None, True),
        (labelled("other"), None, False),
        (labelled("foo", on=""), None, False),
        (nominated("foo"), None, True),
        (nominated("other"), None, False),
        (labelled("foo"), labelled("foo", "other"), False),
        (labelled("other"), labelled("foo"), True),
        (labelled("foo"), labelled("other"), True),
        (labelled("foo"), labelled("bar"), True),
        (labelled("foo", "bar"), labelled("foo"), True),
        (labelled("other"), labelled("another"), False),
        (labelled("foo"), labelled("foo", tolerations=TOLERATING), False),
        (labelled("foo", on=""), labelled("bar", on=""), False),
        (waiting("foo"), waiting("foo", "bar"), True),
        (waiting("foo"), waiting("foo", "other"), False),
        (waiting("foo"), waiting("foo", tolerations=TOLERATING), False),
    ],
)
def test_pods_help_where_they_count_differently(old: Pod | None, new: Pod | None, helps: bool) -> None:
    for resource in (Resource.ASSIGNED_POD, Resource.PENDING_POD):
        action = Action.UPDATE_POD_LABEL | Action.UPDATE_POD_TOLERATION
        if old is None or new is None:
            action, resource = Action.ADD if old is None else Action.DELETE, Resource.ASSIGNED_POD  # noqa: PLW2901
        assert hinted(PodTopologySpread(), WAITING, pod_change(old, new, action, resource)) is helps


def test_the_pods_own_tolerations_help_where_taints_say_which_nodes_count() -> None:
    of = incoming(hard("zone", 1, FOO, node_taints_policy="Honor"))
    newer = replace(of, spec=replace(of.spec, tolerations=TOLERATING))
    change = pod_change(of, newer, Action.UPDATE_POD_TOLERATION, Resource.PENDING_POD)
    assert hinted(PodTopologySpread(), of, change)
    assert not hinted(PodTopologySpread(), WAITING, change)


ZONE, BOTH = {"zone": "1"}, {"zone": "1", "node": "a"}
SPOT = Taint(key="spot", effect="NoSchedule")


@pytest.mark.parametrize(
    ("old", "new", "helps"),
    [
        (None, node(labels=BOTH), True),
        (None, node(labels=ZONE), False),
        (None, node(labels={"foo": ""}), False),
        (node(labels=BOTH), None, True),
        (node(labels=ZONE), None, False),
        (node(labels=ZONE), node(labels=BOTH), True),
        (node(labels=BOTH), node(labels=ZONE), True),
        (node(labels=BOTH), node(labels=BOTH | {"zone": "2"}), True),
        (node(labels=BOTH), node(labels=BOTH | {"foo": ""}), False),
        (node(labels=ZONE), node(labels={"zone": "2"}), False),
        (node(labels=BOTH), node(labels=BOTH, taints=[SPOT]), True),
        (node(labels=ZONE), node(labels=ZONE, taints=[SPOT]), False),
    ],
)
def test_nodes_help_where_they_have_all_labels_and_change(old: Any, new: Any, helps: bool) -> None:
    action = Action.UPDATE_NODE_LABEL if old and new else Action.ADD if new else Action.DELETE
    assert hinted(PodTopologySpread(), WAITING, node_change(old, new, action)) is helps


def test_other_parts_of_a_node_do_not_help() -> None:
    change = node_change(node(), node(labels=BOTH), Action.UPDATE_NODE_ALLOCATABLE)
    assert not hinted(PodTopologySpread(), WAITING, change)
    assert not hinted(PodTopologySpread(), WAITING, Change(Resource.NAMESPACE, Action.UPDATE_OTHER))


def test_default_constraints_are_derived_when_the_change_comes() -> None:
    plugin = PodTopologySpread(Defaults((hard("zone", 1, None),)))
    change = pod_change(labelled("foo"), None)
    assert not hinted(plugin, PLAIN, change, Cluster())
    assert hinted(plugin, PLAIN, change, like_service(Cluster()))


@pytest.mark.parametrize("change", [pod_change(labelled("other"), None), node_change(None, node())])
def test_where_a_selector_is_not_valid_everything_may_help(change: Change) -> None:
    assert hinted(PodTopologySpread(), incoming(hard(selector=LIKE)), change)
