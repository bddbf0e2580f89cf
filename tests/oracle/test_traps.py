"""Corners of kube-scheduler that random cases reach too seldom, asked of both sides.

Every test says what kube-scheduler answers and that we answer the same; the case is as small as its corner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from .judge import disagreement
from .minors import AT_EACH_MINOR
from .objects import case, container, named, node, pod, required

if TYPE_CHECKING:
    from .oracle import Oracle, Record

pytestmark = [pytest.mark.oracle, AT_EACH_MINOR]

ALL = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"schedulerName": "policysched"}],
}
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
WEB = {"matchLabels": {"app": "web"}}
UNPARSABLE = {"matchExpressions": [{"key": "app", "operator": "Like"}]}
CONFLICT = {"matchFields": [*named("a")["matchFields"], *named("b")["matchFields"]]}


def agreed(oracle: Oracle, objects: list[Any], wanted: Any, config: Any = ALL) -> Record:
    """Give kube-scheduler's answer, having seen that ours is the same."""
    question = case(objects, wanted, config)
    assert disagreement(oracle, question) == []
    return oracle.decide(question)


def labelled(made: Any, **fields: Any) -> Any:
    return made | {"metadata": made["metadata"] | fields}


def web(name: str = "wanted", *, namespace: str = "default", status: Any = None, **spec: Any) -> Any:
    made = pod(name, status=status, **spec)
    return labelled(made, namespace=namespace, labels={"app": "web"})


def spread(selector: Any = WEB, key: str = ZONE, action: str = "DoNotSchedule", **fields: Any) -> Any:
    found = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": action, **fields}
    return [found if selector is None else {**found, "labelSelector": selector}]


def two_zones() -> list[Any]:
    """Two zones of a node each, one pod in the first."""
    return [*[node(name, labels={HOST: name, ZONE: f"zone-{name}"}) for name in "ab"], web("placed", nodeName="a")]


def thing(version: str, kind: str, name: str, spec: Any = None, **metadata: Any) -> Any:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, **metadata}, "spec": spec or {}}


@pytest.mark.parametrize(
    ("selector", "fields", "rejected"),
    [
        (WEB, {}, True),
        ({}, {}, False),
        (None, {}, False),
        (None, {"matchLabelKeys": ["app"]}, False),
        ({}, {"matchLabelKeys": ["app"]}, True),
    ],
    ids=["selects", "empty", "none", "none-with-keys", "empty-with-keys"],
)
def test_spreading_counts_by_selectors(oracle: Oracle, selector: Any, fields: Any, rejected: bool) -> None:
    wanted = web(topologySpreadConstraints=spread(selector, **fields))
    assert ("a" in agreed(oracle, two_zones(), wanted).get("rejected", {})) is rejected


def test_spreading_passes_over_terminating_pods_and_affinity_does_not(oracle: Oracle) -> None:
    leaving = {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30}
    objects = [*two_zones()[:2], labelled(web("placed", nodeName="a"), **leaving)]
    assert "rejected" not in agreed(oracle, objects, web(topologySpreadConstraints=spread()))
    near = web(affinity={"podAffinity": {REQUIRED: [{"topologyKey": ZONE, "labelSelector": WEB}]}})
    record = agreed(oracle, objects, near)
    assert record["best"] == ["a"]
    assert record["rejected"]["b"]["code"] == "UnschedulableAndUnresolvable"
    away = web(affinity={"podAntiAffinity": {REQUIRED: [{"topologyKey": ZONE, "labelSelector": WEB}]}})
    record = agreed(oracle, objects, away)
    assert record["best"] == ["b"]
    assert record["rejected"]["a"]["code"] == "Unschedulable"


def test_missing_label_is_unresolvable_for_spreading(oracle: Oracle) -> None:
    record = agreed(oracle, [*two_zones(), node("c")], web(topologySpreadConstraints=spread()))
    assert record["rejected"]["c"] == {
        "plugin": "PodTopologySpread",
        "code": "UnschedulableAndUnresolvable",
        "reasons": ["node(s) didn't match pod topology spread constraints (missing required label)"],
    }


@pytest.mark.parametrize(
    ("owner", "counts"),
    [
        ({"apiVersion": "apps/v1", "controller": True}, True),
        ({"apiVersion": "apps/v1"}, False),
        ({"apiVersion": "extensions/v1beta1", "controller": True}, False),
    ],
    ids=["controller", "owner", "version"],
)
def test_default_spreading_asks_controllers_of_apps_v1_alone(oracle: Oracle, owner: Any, counts: bool) -> None:
    reference = {"kind": "ReplicaSet", "name": "web", "uid": "u", **owner}
    controller = thing("apps/v1", "ReplicaSet", "web", {"selector": WEB}, namespace="default")
    wanted = labelled(web(), ownerReferences=[reference])
    record = agreed(oracle, [*two_zones(), controller], wanted)
    assert ("PodTopologySpread" in record["scores"]["a"]) is counts


def test_services_and_controllers_select_together(oracle: Oracle) -> None:
    both = {"app": "web", "tier": "front"}
    reference = {"kind": "ReplicaSet", "name": "web", "uid": "u", "apiVersion": "apps/v1", "controller": True}
    service = thing("v1", "Service", "front", {"selector": {"tier": "front"}}, namespace="default")
    controller = thing("apps/v1", "ReplicaSet", "web", {"selector": WEB}, namespace="default")
    wanted = labelled(web(), labels=both, ownerReferences=[reference])
    record = agreed(oracle, [*two_zones(), controller, service], wanted)
    assert [record["scores"][name]["PodTopologySpread"] for name in "ab"] == [200, 200]
    placed = labelled(web("other", nodeName="b"), labels=both)
    record = agreed(oracle, [*two_zones(), placed, controller, service], wanted)
    assert record["scores"]["a"]["PodTopologySpread"] > record["scores"]["b"]["PodTopologySpread"]


def test_namespace_selector_of_absence_means_every_namespace(oracle: Oracle) -> None:
    selector = {"matchExpressions": [{"key": "env", "operator": "DoesNotExist"}]}
    term = {"topologyKey": ZONE, "labelSelector": WEB, "namespaceSelector": selector}
    labels = {"metadata": {"name": "prod", "labels": {"env": "prod"}}}
    objects = [
        {"apiVersion": "v1", "kind": "Namespace", **labels},
        *two_zones()[:2],
        web("placed", namespace="prod", nodeName="a"),
    ]
    assert agreed(oracle, objects, web(affinity={"podAntiAffinity": {REQUIRED: [term]}}))["best"] == ["b"]


def test_unparsable_selector_of_a_placed_pod_silences_its_terms_of_that_sort_alone(oracle: Oracle) -> None:
    terms = [{"topologyKey": ZONE, "labelSelector": selector} for selector in (WEB, UNPARSABLE)]
    rules = {"podAntiAffinity": {REQUIRED: terms, PREFERRED: [{"weight": 1, "podAffinityTerm": terms[0]}]}}
    objects = [*two_zones()[:2], web("placed", nodeName="a", affinity=rules)]
    record = agreed(oracle, objects, web())
    assert "rejected" not in record
    assert record["best"] == ["b"]


def test_first_unresolvable_prefilter_is_the_one_to_speak(oracle: Oracle) -> None:
    broken = {"podAffinity": {REQUIRED: [{"topologyKey": ZONE, "labelSelector": UNPARSABLE}]}}
    record = agreed(oracle, two_zones(), web(affinity=broken))
    assert record["preFilter"]["plugin"] == "InterPodAffinity"
    record = agreed(oracle, two_zones(), web(affinity=broken | required(CONFLICT)))
    assert record["preFilter"]["reasons"] == ["pod affinity terms conflict"]


def test_promised_node_is_tried_before_others_are_left_out(oracle: Oracle) -> None:
    wanted = pod(affinity=required(named("c")), status={"nominatedNodeName": "a"})
    record = agreed(oracle, [node("a"), node("b")], wanted)
    assert record["fitError"] == (
        "0/2 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, "
        "1 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    )


def test_promised_node_that_only_narrowing_leaves_out_is_taken(oracle: Oracle) -> None:
    unfiltered = {"schedulerName": "policysched", "plugins": {"filter": {"disabled": [{"name": "*"}]}}}
    wanted = pod(affinity=required(named("c")), status={"nominatedNodeName": "a"})
    record = agreed(oracle, [node("a"), node("b")], wanted, ALL | {"profiles": [unfiltered]})
    assert (record["best"], list(record["total"])) == (["a"], ["a"])


def test_several_extended_resources_are_all_named(oracle: Oracle) -> None:
    wanted = pod(containers=[container(requests={"example.com/gpu": 1, "example.com/fpga": 1, "cpu": "5"})])
    reasons = agreed(oracle, [node("a")], wanted)["rejected"]["a"]["reasons"]
    assert sorted(reasons) == ["Insufficient cpu", "Insufficient example.com/fpga", "Insufficient example.com/gpu"]


def test_preferences_that_cancel_out_are_listed_with_zero(oracle: Oracle) -> None:
    terms = [{"weight": 5, "podAffinityTerm": {"topologyKey": ZONE, "labelSelector": WEB}}]
    rules = {"podAffinity": {PREFERRED: terms}, "podAntiAffinity": {PREFERRED: terms}}
    record = agreed(oracle, two_zones(), web(affinity=rules))
    assert {found["InterPodAffinity"] for found in record["scores"].values()} == {0}
    record = agreed(oracle, two_zones()[:2], web(affinity=rules))
    assert "InterPodAffinity" not in record["scores"]["a"]
