"""What policies read, and when their answers go stale."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from policysched.framework import Aspect, Resource
from policysched.model.objects import (
    ClaimSource,
    Container,
    Metadata,
    Namespace,
    OwnerReference,
    PersistentVolumeClaim,
    Pod,
    ResourceRequirements,
    Toleration,
    Volume,
)
from policysched.model.objects.pods import EphemeralSource
from policysched.model.objects.storage import PersistentVolumeClaimSpec
from policysched.rules.policy_set.policy_set import _extra_key
from tests.build import MIB, cluster, node, pod
from tests.plugins.ask import rejected, scored
from tests.rules.build import Spec, filtering, plugin, policy_set, scoring

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
        ('node.taints.value("a") == "b"', Aspect.TAINTS),
        ('node.taints.effect("a") == "NoExecute"', Aspect.TAINTS),
        ('node.taints.has_effect("NoExecute")', Aspect.TAINTS),
        ("node.ready", Aspect.CONDITIONS),
        ('node.conditions["DiskPressure"] != "True"', Aspect.CONDITIONS),
        ('node.kernel_version == "6.8.0"', Aspect.INFO),
        ('node.container_runtime == "containerd"', Aspect.INFO),
        ('node.addresses["InternalIP"] == "10.0.0.1"', Aspect.INFO),
        ("node.allocatable.cpu > 1", Aspect.CAPACITY),
        ("node.requested.cpu > 1", Aspect.USAGE),
        ("node.free.cpu > 1", Aspect.USAGE | Aspect.CAPACITY),
        ("node.cached_image_bytes > 1Gi", Aspect.IMAGES),
        ('node.name == "a"', Aspect.NONE),
        ("cluster.nodes > 1", Aspect.NONE),
        ('pod.name == "a"', Aspect.NONE),
        ("node.age > 5min", Aspect.AGE),
        ('node.pods.count(peer.labels["a"] == "b") < 2', Aspect.PODS),
        ("sum(node.requested.cpu) by node.zone > 3", Aspect.USAGE | Aspect.LABELS),
        ("avg(node.pods.sum(peer.requests.cpu)) > 3", Aspect.PODS),
        ("cluster.pods > 1", Aspect.PODS),
        ("pod.image_bytes > 1Gi", Aspect.IMAGES),
        ("metrics.load > 1", Aspect.METRICS),
    ],
)
def test_a_policy_declares_the_aspects_it_reads(text: str, aspect: Aspect) -> None:
    metrics = [{"name": "load", "query": "up"}]
    made = plugin(filters=filtering(text), scores=scoring([f"{text} → 1", "else → 0"]), metrics=metrics)
    assert (made.filter_reads, made.score_reads) == (aspect, aspect)


@pytest.mark.parametrize(
    ("spec", "moves"),
    [
        ({"filters": filtering("cluster.pods > 1 and pod.image_bytes > 1Gi")}, set()),
        ({"filters": filtering("node.ready", when="pod.image_bytes > 1Gi")}, {"image"}),
        ({"appliesTo": "pod.image_bytes > 1Gi"}, {"image"}),
        ({"namespaceSelector": {}}, {"own namespace"}),
        ({"filters": filtering('pod.namespace_labels["a"] == "b"')}, {"own namespace"}),
        ({"filters": filtering('node.pods.any(peer.namespace_labels["a"] == "b")')}, {"namespace"}),
        ({"filters": filtering("node.ready")}, set()),
    ],
)
def test_the_generation_moves_with_what_says_whether_rules_speak(spec: Spec, moves: set[str]) -> None:
    made, around = plugin(**spec), cluster(node("n1"))
    around.set_namespace(Namespace(metadata=Metadata(name="default")))
    steps: dict[str, Any] = {
        "pod": lambda: around.set_pod(pod(on="n1")),
        "label": lambda: around.set_node(node("n1", labels={"a": "b"})),
        "image": lambda: around.set_node(node("n1", labels={"a": "b"}, images={"i": 1})),
        "namespace": lambda: around.set_namespace(Namespace(metadata=Metadata(name="d", labels={"a": "b"}))),
    }
    moved = {"own namespace"} if made.reads_own_namespace else set()
    for name, step in steps.items():
        before = made.stamp(around)
        step()
        if made.stamp(around) != before:
            moved.add(name)
    assert moved == moves


@pytest.mark.parametrize(
    ("text", "reaches"),
    [
        ("node.free.cpu > pod.requests.cpu", False),
        ('node.pods.count(peer.labels["a"] == pod.labels["a"]) < 2', False),
        ("cluster.nodes > 1", True),
        ("cluster.pods > 1", True),
        ("pod.image_bytes > 1Gi", True),
        ("avg(node.free.cpu) > 1", True),
        ("sum(node.free.cpu) by node.zone > 1", True),
        ('node.pods.any(peer.labels["a"] == "b" and cluster.nodes > 3)', True),
    ],
)
def test_only_what_looks_around_reaches_other_rows(text: str, reaches: bool) -> None:
    made, around = plugin(filters=filtering(text), scores=scoring([f"{text} → 1", "else → 0"])), cluster(X)
    states = made.prepare_filter(pod(), around), made.prepare_score(pod(), around)
    assert [any(state.matrix.dependencies) for state in states] == [reaches, reaches]


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


def owned(kind: str) -> Pod:
    owners = [OwnerReference(kind="Other", name="o"), OwnerReference(kind=kind, name="c", controller=True)]
    return replace(pod("mine"), metadata=replace(pod("mine").metadata, owner_references=owners))


def claim(name: str, storage_class: str) -> PersistentVolumeClaim:
    spec = PersistentVolumeClaimSpec(storage_class_name=storage_class)
    return PersistentVolumeClaim(metadata=Metadata(name=name, namespace="default"), spec=spec)


TOLERANT = pod(
    tolerations=[
        Toleration(key="spot", operator="Exists"),
        Toleration(key="dedicated", value="ml", effect="NoSchedule"),
        Toleration(key="dedicated", value="web"),
    ]
)
_LIMITS = ResourceRequirements(limits={"cpu": "1500m", "x.io/y": 2})
LIMITED = pod(labels={"r": "cpu"}, containers=[Container(name="c", resources=_LIMITS), Container(name="d")])
CLAIMING = pod(
    "mine",
    volumes=[
        Volume(name="data", persistent_volume_claim=ClaimSource(claim_name="data")),
        Volume(name="scratch", ephemeral=EphemeralSource()),
        Volume(name="other"),
    ],
)


def test_pods_of_one_class_may_have_other_claims() -> None:
    """Two pods that differ in their claims alone are different to a policy that reads the claims' classes."""
    plugins = [*policy_set(p={"filters": filtering('"fast" in pod.storage_classes')}).active]
    around = cluster(node())
    around.take(claim("data", "fast"))
    other = pod("mine", volumes=[Volume(persistent_volume_claim=ClaimSource(claim_name="other"))])
    key = _extra_key(plugins)
    assert key is not None
    assert (key(CLAIMING, around), key(other, around)) == ((("fast",),), ((),))
    around.take(claim("other", "fast"))
    assert key(other, around) == (("fast",),)


def test_a_claim_with_another_class_wakes_a_rejected_pod() -> None:
    made, around = plugin(filters=filtering('"fast" in pod.storage_classes')), cluster(node())
    around.take(claim("data", "slow"))
    made.on_rejected(CLAIMING, around)
    [helps] = [hint.helps for hint in made.events() if hint.resource is Resource.CLAIM]
    assert helps is not None
    assert not helps(CLAIMING, around.take(claim("other", "fast")), around)
    assert helps(CLAIMING, around.take(claim("data", "fast")), around)


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
        ('"i:latest" in pod.images and pod.containers == 1', pod(image="i"), True),
        ('all(pod.images, starts_with(item, "registry/"))', pod(image="i"), False),
        ('pod.tolerations.has("spot") and pod.tolerations.effect("spot") == ""', TOLERANT, True),
        ('pod.tolerations.value("dedicated") == "ml"', TOLERANT, True),
        ('pod.tolerations.has("other") or has(pod.tolerations.value("other"))', TOLERANT, False),
        ('pod.tolerations.has(concat("sp", "ot"))', TOLERANT, True),
        ('pod.limits.cpu == 1500m and pod.limits["x.io/y"] == 2 and not has(pod.limits.memory)', LIMITED, True),
        ('pod.limits[pod.labels["r"]] == 1.5', LIMITED, True),
        ('"data" in pod.claims and "mine-scratch" in pod.claims', CLAIMING, True),
        ('any(pod.storage_classes, item == "fast")', CLAIMING, True),
        ('"slow" in pod.storage_classes', CLAIMING, False),
    ],
)
def test_a_pods_values_are_read(text: str, of: Pod, holds: bool) -> None:
    around = cluster(node("n1", images={"i:latest": 3 * MIB}))
    around.take(claim("data", "fast"))
    assert (rejected(plugin(filters=filtering(text)), of, around) == set()) is holds
