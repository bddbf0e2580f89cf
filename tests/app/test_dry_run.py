from __future__ import annotations

import copy
from typing import Any

import pytest

import policysched
from policysched.errors import UsageError
from policysched.model.decode import ObjectError
from tests.app.test_configuration import HEAD
from tests.app.test_profiles import disabled

Object = dict[str, Any]


def node(name: str = "n1", **fields: Any) -> Object:
    status = {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}}
    metadata = {"name": name, "labels": fields.pop("labels", {})}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status, **fields}


def pod(name: str = "web", cpu: Any = None, **spec: Any) -> Object:
    requests = {"requests": {"cpu": cpu}} if cpu else {}
    containers = [{"name": "c", "image": "i", "resources": requests}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": containers, **spec}}


def policy(name: str = "p", status: Object | None = None, **spec: Any) -> Object:
    metadata = {"name": name, "generation": 2}
    made = {"apiVersion": "policysched.io/v1alpha1", "kind": "SchedulingPolicy", "metadata": metadata, "spec": spec}
    return made | ({"status": status} if status else {})


def requiring(condition: str) -> Object:
    return {"filters": [{"name": "r", "require": condition}]}


def record(objects: list[Object], of: Object, *policies: Object, **options: Any) -> Object:
    return policysched.dry_run(objects, of, policies, **options).to_dict()


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


def test_kinds_that_nobody_reads_are_left_alone() -> None:
    assert record([node(), {"kind": "ConfigMap", "metadata": {"name": "c"}}], pod())["result"] == "Scheduled"


def test_a_namespace_has_its_name_as_a_label() -> None:
    selector = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}}}
    namespace = {"kind": "Namespace", "metadata": {"name": "default"}}
    of = policy(**requiring("node.cordoned"), **selector)
    assert record([node(), namespace], pod(), of)["result"] == "Unschedulable"


def test_device_classes_are_seen() -> None:
    mapping = {"kind": "DeviceClass", "metadata": {"name": "c"}, "spec": {"extendedResourceName": "x.io/y"}}
    of = pod()
    of["spec"]["containers"][0]["resources"] = {"requests": {"x.io/y": 1}}
    assert "preFilter" not in record([node()], of)
    assert record([node(), mapping], of)["preFilter"]["plugin"] == "DynamicResources"


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


# Policies


def test_policies_among_the_objects_apply_and_given_ones_replace_them() -> None:
    standing = policy(**requiring("node.cordoned"))
    assert record([node(), standing], pod())["rejected"]["n1"]["plugin"] == "SchedulingPolicy/p"
    assert record([node(), standing], pod(), policy(**requiring("not node.cordoned")))["result"] == "Scheduled"
    made = record([node(), standing], pod(), policy("q", **requiring("not node.cordoned")))
    assert list(made["rules"]) == ["p", "q"]
    assert made["result"] == "Unschedulable"


def test_a_broken_policy_does_nothing_and_says_why() -> None:
    report = policysched.dry_run([node()], pod(), [policy(**requiring("nod.ready"))])
    assert (report.to_dict()["result"], "rules" in report.to_dict()) == ("Scheduled", False)
    assert [(one.code, one.field) for one in report.diagnostics] == [("E0201", "spec.filters[0].require")]


def test_a_broken_policy_of_the_cluster_acts_as_its_status_remembers() -> None:
    status = {"activeGeneration": 1, "activeSpec": requiring("node.cordoned")}
    made = record([node(), policy(status=status, **requiring("nod.ready"))], pod())
    assert made["result"] == "Unschedulable"
    assert made["rules"]["p"]["activeGeneration"] == 1


def test_a_policy_in_the_shadow_is_told_and_does_not_decide() -> None:
    made = record([node()], pod(), policy(mode="Shadow", **requiring("node.cordoned")))
    assert made["result"] == "Scheduled"
    assert made["rules"]["p"] == {"activeGeneration": 2, "mode": "Shadow", "filters": {"r": {"n1": "false"}}}


# Profiles


def config(*profiles: Object) -> Object:
    return {**HEAD, "profiles": list(profiles)}


@pytest.mark.parametrize(
    ("stated", "configuration", "name"),
    [
        (None, None, "policysched"),
        ("default-scheduler", None, "default-scheduler"),
        ("any", None, "any"),
        ("a", config({"schedulerName": "a"}, {"schedulerName": "b"}), "a"),
        ("b", config({"schedulerName": "a"}, {"schedulerName": "b"}), "b"),
        ("other", config({"schedulerName": "a"}), "a"),
        (None, config({"schedulerName": "a"}), "a"),
        (None, config({"schedulerName": "a"}, {"schedulerName": "default-scheduler"}), "default-scheduler"),
        (None, config(), "default-scheduler"),
    ],
)
def test_the_pod_or_the_configuration_chooses_the_profile(stated: str | None, configuration: Any, name: str) -> None:
    of = pod(**({"schedulerName": stated} if stated else {}))
    assert record([node()], of, config=configuration)["schedulerName"] == name


@pytest.mark.parametrize("stated", ["other", None])
def test_a_pod_has_to_name_one_of_several_profiles(stated: str | None) -> None:
    of = pod(**({"schedulerName": stated} if stated else {}))
    message = f'no profile is named "{stated or "default-scheduler"}": the pod has to name one of a, b'
    with pytest.raises(UsageError, match=message):
        record([node()], of, config=config({"schedulerName": "b"}, {"schedulerName": "a"}))


def test_policies_see_the_name_of_the_chosen_profile() -> None:
    of = policy(schedulerNames=["a"], **requiring("node.cordoned"))
    assert record([node()], pod(), of, config=config({"schedulerName": "a"}))["result"] == "Unschedulable"
    assert record([node()], pod(), of)["result"] == "Scheduled"


@pytest.mark.parametrize(
    ("point", "result", "scored", "told"),
    [
        ("multiPoint", "Scheduled", False, False),
        ("filter", "Scheduled", True, True),
        ("score", "Unschedulable", False, True),
    ],
)
def test_a_configuration_takes_policies_away(point: str, result: str, scored: bool, told: bool) -> None:
    of = policy(**requiring("node.cordoned"), scores=[{"name": "s", "value": 50}])
    made = record([node()], pod(), of, config=config({"plugins": {point: disabled("SchedulingPolicy")}}))
    scores = made.get("scores", {}).get("n1", {})
    assert (made["result"], "SchedulingPolicy/p" in scores, "rules" in made) == (result, scored, told)


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
        ([], "web", [], "expected a Pod, got 'web'"),
        ([], pod(), [pod()], "expected a SchedulingPolicy, got a Pod"),
        (["x"], pod(), [], "expected an object with a kind, got 'x'"),
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


def test_a_policy_without_a_name_is_no_crash() -> None:
    unnamed = {"kind": "SchedulingPolicy", "spec": requiring("node.cordoned")}
    assert record([node()], pod(), unnamed)["result"] == "Unschedulable"
