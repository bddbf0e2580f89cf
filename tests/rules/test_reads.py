"""What policies read, when their answers go stale, and which changes help a pod that they rejected."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from policysched.framework import Action, Aspect, Change, Resource
from policysched.model.objects import Metadata, Namespace, Node, OwnerReference, Pod
from tests.build import MIB, cluster, node, pod
from tests.plugins.ask import hinted, node_change, pod_change, rejected, scored
from tests.rules.build import filtering, plugin, scoring

X, Y = node("x", labels={"k": "x"}), node("y", labels={"k": "y"})
IS_X = 'node.labels["k"] == "x"'
V = 'number(node.labels["v"])'
NUMBER_ABOVE_1 = 'number(node.labels["k"]) > 1'


@pytest.mark.parametrize(
    ("text", "aspect"),
    [
        ('node.labels["a"] == "b"', Aspect.LABELS),
        ('node.zone == "b"', Aspect.LABELS),
        ('node.annotations["a"] == "b"', Aspect.LABELS),
        ("node.cordoned", Aspect.TAINTS),
        ('node.taints.has("a")', Aspect.TAINTS),
        ("node.ready", Aspect.CONDITIONS),
        ("node.allocatable.cpu > 1", Aspect.CAPACITY),
        ("node.requested.cpu > 1", Aspect.USAGE),
        ("node.free.cpu > 1", Aspect.USAGE | Aspect.CAPACITY),
        ("node.cached_image_bytes > 1Gi", Aspect.IMAGES),
        ('node.name == "a"', Aspect.NONE),
        ("cluster.nodes > 1", Aspect.NONE),
        ('pod.name == "a"', Aspect.NONE),
    ],
)
def test_a_policy_declares_the_aspects_it_reads(text: str, aspect: Aspect) -> None:
    made = plugin(filters=filtering(text), scores=scoring([f"{text} → 1", "else → 0"]))
    assert (made.filter_reads, made.score_reads) == (aspect, aspect)


@pytest.mark.parametrize(
    ("text", "moves"),
    [
        ("cluster.nodes > 1", {"node"}),
        ("cluster.pods > 1", {"pod"}),
        ("pod.image_bytes > 1Gi", {"node", "image"}),
        ("node.cordoned", set()),
    ],
)
def test_the_epoch_moves_with_what_all_rows_read(text: str, moves: set[str]) -> None:
    made = plugin(filters=filtering(text))
    around = cluster(node("n1"))
    steps: dict[str, Any] = {
        "node": lambda: around.set_node(node("n2")),
        "pod": lambda: around.set_pod(pod(on="n1")),
        "image": lambda: around.set_node(node("n1", images={"i": 1})),
        "label": lambda: around.set_node(node("n1", labels={"a": "b"}, images={"i": 1})),
    }
    moved = set()
    for name, step in steps.items():
        before = made.epoch(around)
        step()
        if made.epoch(around) != before:
            moved.add(name)
    assert moved == moves


def test_the_epoch_moves_when_a_namespace_is_labelled() -> None:
    made, around = plugin(), cluster()
    before = made.epoch(around)
    around.set_namespace(Namespace(metadata=Metadata(name="d", labels={"a": "b"})))
    assert made.epoch(around) != before


def test_answers_are_asked_again_where_something_changed() -> None:
    """Rules that placements do not change keep their answers, for all classes."""
    made, around = (
        plugin(filters=filtering(IS_X), scores=scoring(V)),
        cluster(node("n0", labels={"v": "1"}), node("n1", labels={"v": "2"})),
    )
    first, second = pod("a"), pod("b")
    assert rejected(made, first, around) == {"n0", "n1"}
    around.set_node(node("n1", labels={"k": "x", "v": "9"}))
    assert rejected(made, second, around) == {"n0"}
    assert scored(made, second, around) == {"n0": 1, "n1": 9}
    around.remove_node("n1")
    around.set_node(node("new"))
    assert rejected(made, first, around) == {"n0", "new"}


def test_values_of_columns_stay_untouched() -> None:
    made = plugin(
        filters=[*filtering("node.ready", "a"), *filtering("not node.ready", "b")],
        scores=scoring("node.free.pods", normalize="Max"),
    )
    around = cluster(X, Y)
    nodes = around.nodes
    before = [column.copy() for column in (nodes.ready.data, nodes.pods_allowed.data, nodes.labels("k"))]
    assert rejected(made, pod(), around) == {"x", "y"}
    scored(made, pod(), around)
    after = (nodes.ready.data, nodes.pods_allowed.data, nodes.labels("k"))
    assert all((one == other).all() for one, other in zip(before, after, strict=True))


def test_an_empty_cluster_is_no_problem() -> None:
    made = plugin(filters=filtering(NUMBER_ABOVE_1), scores=scoring(V, normalize="Max"))
    assert rejected(made, pod(), cluster()) == set()
    assert scored(made, pod(), cluster()) == {}


# Hints


@pytest.mark.parametrize(
    ("require", "after", "action", "helps"),
    [
        (IS_X, X, Action.ADD, True),
        (IS_X, Y, Action.ADD, False),
        (IS_X, X, Action.UPDATE_NODE_LABEL, True),
        (IS_X, X, Action.UPDATE_NODE_TAINT, False),
        ("node.cordoned", node("c", unschedulable=True), Action.UPDATE_NODE_TAINT, True),
        ("node.free.cpu > 3000m", node("c"), Action.UPDATE_NODE_ALLOCATABLE, True),
        ("node.free.cpu > 4000m", node("c"), Action.UPDATE_NODE_ALLOCATABLE, False),
        ("node.cached_image_bytes > 1Ki", node("c", images={"i:latest": MIB}), Action.UPDATE_NODE_IMAGES, True),
        ("cluster.nodes > 1 and " + IS_X, Y, Action.ADD, True),
        ("cluster.nodes < 1 and " + IS_X, Y, Action.DELETE, True),
        (IS_X, Y, Action.DELETE, False),
        ("pod.image_bytes >= 0Ki and " + IS_X, Y, Action.UPDATE_NODE_IMAGES, True),
    ],
)
def test_a_node_helps_where_the_rules_hold_on_it(require: str, after: Node, action: Action, helps: bool) -> None:
    around = cluster(after)
    change = Change(Resource.NODE, action, None, after, 0)
    assert hinted(plugin(filters=filtering(require)), pod(image="i"), change, around) is helps


def test_a_pod_that_goes_helps_where_the_rules_hold_then() -> None:
    made = plugin(filters=filtering("node.requested.pods < 1"))
    around = cluster(node("n1"), node("n2"), pod("a", on="n1"), pod("b", on="n2"))
    gone = around.remove_pod("default.a")
    assert hinted(made, pod(), gone, around)
    assert not hinted(made, pod(), replace_row(gone, around.nodes.row_of["n2"]), around)
    assert not hinted(plugin(filters=filtering(IS_X)), pod(), gone, around)
    assert hinted(plugin(filters=filtering("cluster.pods < 2 and " + IS_X)), pod(), gone, around)


def replace_row(change: Change, row: int) -> Change:
    return Change(change.resource, change.action, change.old, change.new, row)


def test_a_change_of_an_absent_row_does_not_help() -> None:
    made = plugin(filters=filtering("node.free.cpu > 1"))
    assert not hinted(made, pod(), pod_change(pod("gone"), None), cluster(node()))
    assert not hinted(made, pod(), node_change(None, X), cluster(node()))


def test_any_row_helps_where_the_policy_applies_no_more() -> None:
    made = plugin(filters=filtering(IS_X), appliesTo='pod.namespace_labels["tier"] == "gold"')
    assert hinted(made, pod(), Change(Resource.NODE, Action.ADD, None, Y, 0), cluster(Y))


def test_only_the_pods_own_update_helps() -> None:
    made, mine = plugin(filters=filtering(IS_X)), pod("mine")
    for other, helps in ((pod("mine", labels={"a": "b"}), True), (pod("other"), False)):
        change = pod_change(None, other, Action.UPDATE_POD_LABEL, Resource.PENDING_POD)
        assert hinted(made, mine, change) is helps


def test_a_namespaces_labels_may_help_any_pod() -> None:
    assert hinted(plugin(), pod(), Change(Resource.NAMESPACE, Action.UPDATE_OTHER))


def owned(kind: str) -> Pod:
    owners = [OwnerReference(kind="Other", name="o"), OwnerReference(kind=kind, name="c", controller=True)]
    return replace(pod("mine"), metadata=replace(pod("mine").metadata, owner_references=owners))


@pytest.mark.parametrize(
    ("text", "of", "holds"),
    [
        ('pod.owner_kind == "Job"', owned("Job"), True),
        ('pod.owner_name == "c"', owned("Job"), True),
        ('pod.owner_name == "c"', pod(), False),
        ('pod.service_account == "default"', pod(), True),
        ('pod.priority_class == "high"', pod(priority_class_name="high"), True),
        ("has(pod.priority_class)", pod(), False),
        ('pod.qos == "BestEffort"', pod(), True),
        ('pod.qos == "Burstable"', pod(requests={"cpu": 1}), True),
        ("pod.priority == 7", pod(priority=7), True),
        ("pod.requests.pods == 1", pod(), True),
        ('pod.requests["cpu"] == 1500m', pod(requests={"cpu": "1.5"}), True),
        ('pod.requests["x.io/y"] == 2', pod(requests={"x.io/y": 2}), True),
        ("pod.requests.memory == 1Gi", pod(requests={"memory": "1Gi"}), True),
        ('pod.requests["ephemeral-storage"] == 1Ki', pod(requests={"ephemeral-storage": "1Ki"}), True),
        ('pod.namespace == "default" and pod.name == "p"', pod(), True),
        ("pod.image_bytes == 3Mi", pod(image="i"), True),
    ],
)
def test_a_pods_values_are_read(text: str, of: Pod, holds: bool) -> None:
    around = cluster(node("n1", images={"i:latest": 3 * MIB}))
    assert (rejected(plugin(filters=filtering(text)), of, around) == set()) is holds
