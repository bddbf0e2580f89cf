"""One decision about objects that are given: what is made of them, what is drawn, and how mistakes in them are told."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from policysched import dry_run
from policysched.errors import UsageError
from policysched.model.decode import ObjectError
from tests.app.dry_runs import Object, node, pod, policy, record, requiring


def test_a_pod_is_placed() -> None:
    made = record([node()], pod())
    assert (made["pod"], made["result"], made["selected"]) == ("default/web", "Scheduled", "n1")


def test_what_is_given_is_not_changed() -> None:
    objects, of, policies = [node(), pod("a", 1, nodeName="n1")], pod(), [policy(**requiring("node.ready"))]
    before = copy.deepcopy((objects, of, policies))
    record(objects, of, *policies)
    assert (objects, of, policies) == before


@pytest.mark.parametrize(
    ("placed", "fits"),
    [
        (pod("other", 3, nodeName="n1"), False),
        (pod("other", 3), True),
        (pod("other", 3, nodeName="n2"), True),
        (pod("other", 3, nodeName="n1") | {"status": {"phase": "Succeeded"}}, True),
        (pod("other", 3, nodeName="n1") | {"status": {"phase": "Failed"}}, True),
        (pod("other", 3, nodeName="n1") | {"status": {"phase": "Running"}}, False),
        (pod("web", 3, nodeName="n1"), True),
        (pod("web", 3, nodeName="n1") | {"metadata": {"name": "web", "namespace": "other"}}, False),
        (pod("web", 3, nodeName="n1") | {"metadata": {"name": "web", "namespace": "default", "uid": "u"}}, True),
    ],
)
def test_placed_pods_count_but_finished_ones_and_the_pod_itself(placed: Object, fits: bool) -> None:
    assert (record([node(), placed], pod(cpu=2))["result"] == "Scheduled") is fits


def test_of_objects_of_one_name_the_last_counts() -> None:
    placed = [pod("a", 3, nodeName="n1"), pod("a", 1, nodeName="n1")]
    placed[0]["metadata"]["uid"] = "u"
    assert record([node(), *placed], pod(cpu=3))["result"] == "Scheduled"
    assert record([node(labels={"a": "b"}), node()], pod(nodeSelector={"a": "b"}))["result"] == "Unschedulable"


def test_objects_get_what_the_api_server_fills_in() -> None:
    by_capacity = {**node(), "status": {"capacity": {"cpu": "1", "pods": "5", "memory": "1Gi"}}}
    limited = pod()
    limited["spec"]["containers"][0]["resources"] = {"limits": {"cpu": 2}}
    assert record([by_capacity], pod())["result"] == "Scheduled"
    assert record([by_capacity], limited)["fitError"] == "0/1 nodes are available: 1 Insufficient cpu."
    high = {"kind": "PriorityClass", "metadata": {"name": "high"}, "value": 7}
    of = pod(priorityClassName="high")
    assert record([node(), high], of, policy(**requiring("pod.priority == 7")))["result"] == "Scheduled"


@pytest.mark.parametrize("kind", ["List", "NodeList"])
def test_lists_stand_for_what_they_hold(kind: str) -> None:
    inner = node()
    if kind == "NodeList":
        del inner["kind"]
    assert record([{"kind": kind, "items": [inner]}], pod())["selected"] == "n1"
    assert record([{"kind": kind, "items": None}, node()], pod())["selected"] == "n1"


def test_a_pod_needs_no_kind() -> None:
    of = pod()
    del of["kind"]
    assert record([node()], of)["pod"] == "default/web"


def test_nulls_and_missing_specs_are_fine() -> None:
    of = {"kind": "Pod", "metadata": {"name": "web"}, "spec": None}
    assert record([node(), {"kind": "Node", "metadata": {"name": "bare"}}], of)["rejected"] == {
        "bare": {"plugin": "NodeResourcesFit", "code": "Unschedulable", "reasons": ["Too many pods"]}
    }


@pytest.mark.parametrize(
    ("priority", "nominated", "result"),
    [
        (0, {}, "Unschedulable"),  # of equal priority
        (7, {}, "Unschedulable"),
        (-1, {}, "Scheduled"),
        (0, {"phase": "Failed"}, "Scheduled"),
        (0, {"nominatedNodeName": "n2"}, "Scheduled"),
    ],
)
def test_pods_nominated_to_a_node_keep_their_place_from_those_of_no_higher_priority(
    priority: int, nominated: Object, result: str
) -> None:
    kept = pod("kept", 3, priority=priority) | {"status": {"nominatedNodeName": "n1"} | nominated}
    found = record([node(), kept], pod("web", 3))
    assert found["result"] == result
    if result == "Unschedulable":
        assert found["rejected"]["n1"]["reasons"] == ["Insufficient cpu"]


def test_a_nominated_pod_that_others_need_as_a_neighbour_does_not_count_as_one_yet() -> None:
    kept = pod("kept", priority=5) | {"status": {"nominatedNodeName": "n1"}}
    kept["metadata"]["labels"] = {"app": "db"}
    term = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "kubernetes.io/hostname"}
    near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    there = node(labels={"kubernetes.io/hostname": "n1"})
    assert record([there, kept], pod(affinity=near))["result"] == "Unschedulable"
    kept["spec"]["nodeName"] = "n1"
    assert record([there, kept], pod(affinity=near))["result"] == "Scheduled"


def test_kinds_that_nobody_reads_are_left_alone() -> None:
    assert record([node(), {"kind": "ConfigMap", "metadata": {"name": "c"}}], pod())["result"] == "Scheduled"


@pytest.mark.parametrize("listed", [True, False])
def test_a_namespace_has_its_name_as_a_label_even_if_only_objects_name_it(listed: bool) -> None:
    selector: dict[str, Any] = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}}}
    namespace = {"kind": "Namespace", "metadata": {"name": "default"}}
    of = policy(**requiring("node.cordoned"), **selector)
    objects = [node(), namespace] if listed else [node()]
    assert record(objects, pod(), of)["result"] == "Unschedulable"


def test_device_classes_are_seen() -> None:
    mapping = {"kind": "DeviceClass", "metadata": {"name": "c"}, "spec": {"extendedResourceName": "x.io/y"}}
    of = pod()
    of["spec"]["containers"][0]["resources"] = {"requests": {"x.io/y": 1}}
    assert [one["plugin"] for one in record([node()], of)["rejected"].values()] == ["NodeResourcesFit"]
    assert [one["plugin"] for one in record([node(), mapping], of)["rejected"].values()] == ["DynamicResources"]


def labelled(name: str, on: str = "") -> Object:
    made = pod(name, nodeName=on) if on else pod(name)
    made["metadata"]["labels"] = {"app": "web"}
    return made


@pytest.mark.parametrize(
    ("kind", "version", "spec", "spreads"),
    [
        ("Service", "v1", {"selector": {"app": "web"}}, True),
        ("Service", "v1", {"selector": {"app": "db"}}, False),
        ("Service", "v1", {}, False),
        ("Service", "serving.knative.dev/v1", {"selector": {"app": "web"}}, False),
        ("ReplicaSet", "apps/v1", {"selector": {"matchLabels": {"app": "web"}}}, True),
        ("StatefulSet", "apps/v1", {"selector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}}, True),
        ("ReplicationController", "v1", {"selector": {"app": "web"}}, True),
        ("ReplicationController", "v1", {"template": {"metadata": {"labels": {"app": "web"}}}}, True),
    ],
)
def test_services_and_controllers_spread_pods(kind: str, version: str, spec: Object, spreads: bool) -> None:
    given = {"kind": kind, "apiVersion": version, "metadata": {"name": "w"}, "spec": spec}
    of = labelled("of")
    of["metadata"]["ownerReferences"] = [{"apiVersion": version, "kind": kind, "name": "w", "controller": True}]
    nodes = [node(name, labels={"kubernetes.io/hostname": name}) for name in ("n1", "n2")]
    made = record([*nodes, given, labelled("placed", "n1")], of)
    found = {name: parts.get("PodTopologySpread") for name, parts in made["scores"].items()}
    assert found == ({"n1": 132, "n2": 200} if spreads else {"n1": None, "n2": None})


@pytest.mark.parametrize(
    ("kind", "spec", "field"),
    [("Service", {"selector": ["a"]}, "spec.selector"), ("ReplicationController", [], "spec")],
)
def test_a_malformed_workload_is_refused(kind: str, spec: Any, field: str) -> None:
    with pytest.raises(ObjectError) as refusal:
        record([node(), {"kind": kind, "metadata": {"name": "w"}, "spec": spec}], pod())
    assert (refusal.value.key, refusal.value.field) == ("default/w", field)


@pytest.mark.parametrize("spec", [None, {"template": []}, {"template": {"metadata": 5}}])
def test_a_strange_template_of_a_replication_controller_is_not_looked_into(spec: Any) -> None:
    given = {"kind": "ReplicationController", "metadata": {"name": "w"}, "spec": spec}
    assert record([node(), given], pod())["selected"] == "n1"


# Draws


def test_a_seed_draws_the_same_node_however_objects_are_ordered() -> None:
    names = [f"n{number}" for number in range(9)]
    drawn = [record([node(name) for name in order], pod(), seed=5)["selected"] for order in (names, names[::-1])]
    assert drawn[0] == drawn[1]
    assert len({record([node(name) for name in names], pod(), seed=seed)["selected"] for seed in range(40)}) > 5


# Mistakes


NAMED = {"metadata": {"name": "web", "namespace": "default"}}


@pytest.mark.parametrize(
    ("objects", "of", "policies", "message"),
    [
        ([], pod(priorityClassName="none"), [], r'^pod "default/web": spec.priorityClassName: no PriorityClass'),
        ([], pod(cpu="much") | NAMED, [], r'^pod "default/web": spec.containers\[0\].resources.requests.cpu: '),
        ([], {"kind": "Pod", "metadata": {"name": "x"}, "spec": []}, [], r'^pod "x": spec: expected '),
        ([{"kind": "Node", "metadata": {"name": 5}}], pod(), [], r'^node "5": metadata.name: expected text'),
        ([{**node(), "status": {"allocatable": {"cpu": "x"}}}], pod(), [], r'^node "n1": status.allocatable.cpu: '),
        ([pod("a") | {"spec": {"containers": {}}}], pod(), [], r'^pod "a": spec.containers: '),
        ([], pod(), [policy(weight=101)], r'^scheduling policy "p": spec.weight: '),
        ([policy(filters=[{"name": "r"}])], pod(), [], r'^scheduling policy "p": spec.filters'),
    ],
)
def test_a_malformed_object_is_named_with_its_field(
    objects: list[Object], of: Object, policies: list[Object], message: str
) -> None:
    with pytest.raises(ObjectError, match=message):
        record(objects, of, *policies)


@pytest.mark.parametrize(
    ("objects", "of", "policies", "message"),
    [
        ([], {"kind": "Deployment"}, [], "expected a Pod, got a Deployment"),
        ([], "web.yaml", [], "web.yaml: no such file"),
        ([], pod(), [pod()], "expected a SchedulingPolicy, got a Pod"),
        ([5], pod(), [], "expected an object with a kind, got 5"),
        ([{"metadata": {}}], pod(), [], "expected an object with a kind, got {'metadata': {}}"),
        ([{"kind": "List", "items": [{}]}], pod(), [], "expected an object with a kind, got {}"),
        ([{"kind": 5}], pod(), [], "expected an object with a kind, got {'kind': 5}"),
    ],
)
def test_what_is_no_object_of_its_place_is_refused(
    objects: list[Any], of: Any, policies: list[Any], message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        record(objects, of, *policies)
    assert str(caught.value) == message


@pytest.mark.parametrize("given", ["objects", "policies"])
def test_what_is_no_list_is_told(given: str) -> None:
    with pytest.raises(UsageError, match=f"{given} must be an object, a path, or a list of them, got NoneType"):
        dry_run(**dict[str, Any]({"objects": [], "pod": {}, given: None}))


def test_a_policy_without_a_name_is_no_crash() -> None:
    unnamed = {"kind": "SchedulingPolicy", "spec": requiring("node.cordoned")}
    assert record([node()], pod(), unnamed)["result"] == "Unschedulable"
