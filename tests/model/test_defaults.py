from __future__ import annotations

import copy
from typing import Any

import pytest

from policysched.model.decode import ObjectError, decode_node, decode_pod
from policysched.model.defaults import PriorityClasses, fill_node, fill_pod, priority_classes
from policysched.model.kinds import fill
from policysched.model.release import V1_36, V1_37, Release
from policysched.model.requests import allocatable, incoming_requests

NONE = PriorityClasses()


def filled(
    spec: dict[str, Any], classes: PriorityClasses = NONE, release: Release = V1_36, **metadata: Any
) -> dict[str, Any]:
    raw = {"kind": "Pod", "metadata": {"name": "p"} | metadata, "spec": spec}
    before = copy.deepcopy(raw)
    result = fill_pod(raw, classes, release)
    assert raw == before
    return result


def filled_spec(spec: dict[str, Any], classes: PriorityClasses = NONE, **metadata: Any) -> Any:
    return filled(spec, classes, **metadata)["spec"]


def test_pod_gets_a_namespace_a_scheduler_and_a_service_account() -> None:
    pod = filled({})
    assert pod["metadata"]["namespace"] == "default"
    assert (pod["spec"]["schedulerName"], pod["spec"]["serviceAccountName"]) == ("default-scheduler", "default")
    kept = filled({"schedulerName": "mine", "serviceAccountName": "me"}, namespace="shop")
    assert kept["metadata"]["namespace"] == "shop"
    assert (kept["spec"]["schedulerName"], kept["spec"]["serviceAccountName"]) == ("mine", "me")


@pytest.mark.parametrize("where", ["containers", "initContainers"])
def test_requests_come_from_limits_where_they_are_not_given(where: str) -> None:
    resources = {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}
    spec = filled_spec({where: [{"resources": resources}, {"resources": {"limits": {"cpu": "3"}}}]})
    assert [one["resources"]["requests"] for one in spec[where]] == [{"cpu": "1", "memory": "1Gi"}, {"cpu": "3"}]


def test_ports_get_a_protocol_and_on_the_host_network_a_host_port() -> None:
    ports = [{"containerPort": 80}, {"containerPort": 81, "hostPort": 82, "protocol": "UDP"}]
    assert filled_spec({"containers": [{"ports": ports}]})["containers"][0]["ports"] == [
        {"containerPort": 80, "protocol": "TCP"},
        {"containerPort": 81, "hostPort": 82, "protocol": "UDP"},
    ]
    on_host = filled_spec({"hostNetwork": True, "initContainers": [{"ports": ports}]})
    assert [one["hostPort"] for one in on_host["initContainers"][0]["ports"]] == [80, 82]


@pytest.mark.parametrize(
    ("resources", "containers", "requests"),
    [
        ({"limits": {"cpu": "4"}}, {"cpu": "1"}, {"cpu": "1"}),
        ({"limits": {"cpu": "4"}}, {}, {"cpu": "4"}),
        ({"limits": {"cpu": "4"}, "requests": {"cpu": "2"}}, {"cpu": "1"}, {"cpu": "2"}),
        ({"limits": {"cpu": "4"}}, {"memory": "5"}, {"cpu": "4", "memory": "5"}),
        ({"requests": {"cpu": "2"}}, {"memory": "5"}, {"cpu": "2"}),
        ({"requests": {"cpu": "2"}}, {"hugepages-2Mi": "2Mi"}, {"cpu": "2"}),
        ({"limits": {"hugepages-2Mi": "4Mi"}}, {"hugepages-2Mi": "2Mi"}, {"hugepages-2Mi": "4Mi"}),
        ({}, {"cpu": "1"}, {}),
    ],
)
def test_requests_of_the_pod_as_a_whole_are_filled_in(
    resources: dict[str, Any], containers: dict[str, str], requests: dict[str, str]
) -> None:
    spec = filled_spec({"resources": resources, "containers": [{"resources": {"requests": containers}}]})
    assert spec["resources"].get("requests", {}) == requests


COMPLETED = [
    # requests from the containers, then from limits
    ({"limits": {"cpu": "4"}}, [{"requests": {"memory": "5"}}], {"cpu": "4", "memory": "5"}, {"cpu": "4"}),
    ({"requests": {"cpu": "2"}}, [{"requests": {"memory": "5"}}], {"cpu": "2", "memory": "5"}, {}),
    ({"requests": {"cpu": "2"}}, [{"requests": {"a.b/c": "5"}}], {"cpu": "2"}, {}),
    # limits where all containers have some, at least as high as the request
    ({"requests": {"cpu": "2"}}, [{"limits": {"cpu": "1"}}, {"limits": {"cpu": "3"}}], {"cpu": "2"}, {"cpu": "4"}),
    ({"requests": {"cpu": "9"}}, [{"limits": {"cpu": "1"}}, {"limits": {"cpu": "3"}}], {"cpu": "9"}, {"cpu": "9"}),
    ({"requests": {"cpu": "2"}}, [{"limits": {"cpu": "1"}}, {}], {"cpu": "2"}, {}),
    ({"requests": {"cpu": "2"}}, [], {"cpu": "2"}, {}),
    (
        {"requests": {"cpu": "2"}},
        [{"limits": {"hugepages-2Mi": "2Mi"}}],
        {"cpu": "2", "hugepages-2Mi": "2097152"},
        {"hugepages-2Mi": "2097152"},
    ),
    ({}, [{"limits": {"cpu": "1"}}], None, None),
]


@pytest.mark.parametrize(("whole", "containers", "requests", "limits"), COMPLETED)
def test_resources_of_the_pod_as_a_whole_are_completed(
    whole: dict[str, Any], containers: list[dict[str, Any]], requests: dict[str, str], limits: dict[str, str]
) -> None:
    spec = {"resources": whole, "containers": [{"resources": one} for one in containers]}
    found = filled_spec(spec, release=V1_37)["resources"]
    assert (found.get("requests"), found.get("limits")) == (requests, limits or None)


def test_pod_as_a_whole_is_completed_before_or_after_admission() -> None:
    def admit(pod: dict[str, Any]) -> None:
        pod["spec"]["containers"][0]["resources"] = {"requests": {"memory": "5"}}

    raw = {"spec": {"resources": {"limits": {"cpu": "2"}}, "containers": [{"name": "c"}]}}
    found = {release.minor: fill_pod(raw, NONE, release, admit) for release in (V1_36, V1_37)}
    requests = {minor: pod["spec"]["resources"]["requests"] for minor, pod in found.items()}
    assert requests == {"1.36": {"cpu": "2"}, "1.37": {"cpu": "2", "memory": "5"}}


def test_amounts_of_the_status_are_rounded_too() -> None:
    one = {"name": "c", "resources": {"requests": {"cpu": "1000001n"}}, "allocatedResources": {"cpu": "1u"}}
    pod = fill_pod({"spec": {"containers": [{"name": "c"}]}, "status": {"containerStatuses": [one]}}, CLASSES)
    reported = pod["status"]["containerStatuses"][0]
    assert (reported["resources"]["requests"], reported["allocatedResources"]) == ({"cpu": "2e-3"}, {"cpu": "1e-3"})


def test_limits_of_huge_pages_become_requests_of_the_pod_as_a_whole() -> None:
    pages = {"hugepages-2Mi": "2Mi"}
    container = {"resources": {"limits": pages, "requests": pages}}
    spec = filled_spec({"resources": {"requests": {"cpu": "2"}}, "containers": [container]})
    assert spec["resources"]["requests"] == {"cpu": "2", "hugepages-2Mi": "2097152"}


def test_amounts_are_rounded_to_thousandths_before_they_are_added() -> None:
    one = {"resources": {"requests": {"cpu": "1500u", "memory": "1Ki"}}}
    pod = filled({"containers": [one, one], "overhead": {"cpu": "1n"}})
    assert pod["spec"]["containers"][0]["resources"]["requests"]["memory"] == "1Ki"
    assert incoming_requests(decode_pod(pod)).cpu_millis == 5


CLASSES = priority_classes(
    [
        {"kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000, "preemptionPolicy": "Never"},
        {"kind": "PriorityClass", "metadata": {"name": "base"}, "value": 20, "globalDefault": True},
        {"kind": "PriorityClass", "metadata": {"name": "less"}, "value": 10, "globalDefault": True},
        {"kind": "Node", "metadata": {"name": "n"}},
    ]
)


@pytest.mark.parametrize(
    ("spec", "classes", "expected"),
    [
        ({}, NONE, (None, 0, "PreemptLowerPriority")),
        ({}, CLASSES, ("less", 10, "PreemptLowerPriority")),
        ({"priorityClassName": "high"}, CLASSES, ("high", 1000, "Never")),
        (
            {"priorityClassName": "high", "preemptionPolicy": "PreemptLowerPriority"},
            CLASSES,
            ("high", 1000, "PreemptLowerPriority"),
        ),
        ({"priorityClassName": "high", "priority": 5}, CLASSES, ("high", 5, "Never")),
        ({"priority": 5}, CLASSES, (None, 5, "PreemptLowerPriority")),
        ({"priority": 5, "priorityClassName": "gone"}, NONE, ("gone", 5, "PreemptLowerPriority")),
        (
            {"priorityClassName": "system-node-critical"},
            CLASSES,
            ("system-node-critical", 2_000_001_000, "PreemptLowerPriority"),
        ),
        (
            {"priorityClassName": "system-cluster-critical"},
            priority_classes([]),
            ("system-cluster-critical", 2_000_000_000, "PreemptLowerPriority"),
        ),
    ],
)
def test_priority_comes_from_its_class(
    spec: dict[str, Any], classes: PriorityClasses, expected: tuple[str | None, int, str]
) -> None:
    result = filled_spec(spec, classes)
    assert (result.get("priorityClassName"), result["priority"], result["preemptionPolicy"]) == expected


def test_unknown_priority_class_is_refused() -> None:
    with pytest.raises(ObjectError, match=r'^pod "default/p": spec\.priorityClassName: no PriorityClass with name "x"'):
        filled({"priorityClassName": "x"}, CLASSES)


def test_spread_constraints_get_their_policies_and_label_keys() -> None:
    constraint = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "1"}}, "matchLabelKeys": ["v", "w"]}
    spec = filled_spec({"topologySpreadConstraints": [constraint]}, labels={"v": "7"})
    one = spec["topologySpreadConstraints"][0]
    assert (one["nodeAffinityPolicy"], one["nodeTaintsPolicy"]) == ("Honor", "Ignore")
    assert one["labelSelector"]["matchExpressions"] == [{"key": "v", "operator": "In", "values": ["7"]}]
    again = filled_spec(spec, labels={"v": "7"})
    assert again["topologySpreadConstraints"] == spec["topologySpreadConstraints"]


def test_label_keys_of_affinity_terms_become_requirements() -> None:
    term = {"labelSelector": {}, "matchLabelKeys": ["v"], "mismatchLabelKeys": ["t"]}
    when = "DuringSchedulingIgnoredDuringExecution"
    affinity = {
        "podAffinity": {f"required{when}": [term]},
        "podAntiAffinity": {f"preferred{when}": [{"weight": 1, "podAffinityTerm": term}]},
    }
    spec = filled_spec({"affinity": affinity}, labels={"v": "1", "t": "2"})
    expected = [{"key": "v", "operator": "In", "values": ["1"]}, {"key": "t", "operator": "NotIn", "values": ["2"]}]
    required = spec["affinity"]["podAffinity"][f"required{when}"][0]
    preferred = spec["affinity"]["podAntiAffinity"][f"preferred{when}"][0]["podAffinityTerm"]
    assert required["labelSelector"]["matchExpressions"] == expected
    assert preferred["labelSelector"]["matchExpressions"] == expected


def test_label_keys_that_an_api_server_has_merged_are_left_as_they_were_then() -> None:
    merged = {"key": "v", "operator": "In", "values": ["before"]}
    term = {"labelSelector": {"matchExpressions": [merged]}, "matchLabelKeys": ["v", "w"], "topologyKey": "zone"}
    spec = filled_spec({"topologySpreadConstraints": [term]}, labels={"v": "now", "w": "2"})
    one = spec["topologySpreadConstraints"][0]
    assert one["labelSelector"]["matchExpressions"] == [merged, {"key": "w", "operator": "In", "values": ["2"]}]


def test_label_keys_without_a_selector_add_none() -> None:
    constraint = {"topologyKey": "zone", "matchLabelKeys": ["v"]}
    spec = filled_spec({"topologySpreadConstraints": [constraint]}, labels={"v": "7"})
    assert "labelSelector" not in spec["topologySpreadConstraints"][0]


def test_pod_of_a_wrong_shape_is_refused() -> None:
    with pytest.raises(ObjectError, match=r"spec\.containers: expected array"):
        filled({"containers": {}})


def test_node_gives_what_it_has_where_it_does_not_say() -> None:
    node = fill_node(
        {"kind": "Node", "metadata": {"name": "n"}, "status": {"capacity": {"cpu": "4", "memory": "1500u"}}}
    )
    assert node["status"]["allocatable"]["cpu"] == "4"
    assert allocatable(decode_node(node)).cpu_millis == 4000
    kept = fill_node({"status": {"capacity": {"cpu": "4"}, "allocatable": {"cpu": "3"}}})
    assert kept["status"]["allocatable"] == {"cpu": "3"}
    assert fill_node({"metadata": {"name": "n"}}).get("status") == {}
    assert "taints" not in kept.get("spec", {})


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({"kind": "Pod"}, {"metadata": {"namespace": "default"}}),
        (
            {"kind": "Node", "status": {"capacity": {"cpu": "1"}}},
            {"status": {"capacity": {"cpu": "1"}, "allocatable": {"cpu": "1"}}},
        ),
        ({"kind": "Service", "spec": None}, {"metadata": {"namespace": "default"}}),
        (
            {"kind": "Namespace", "metadata": {"name": "x"}},
            {"metadata": {"name": "x", "labels": {"kubernetes.io/metadata.name": "x"}}},
        ),
        ({"kind": "StorageClass"}, {"volumeBindingMode": "Immediate", "metadata": {}}),
        ({"kind": "PersistentVolume"}, {"metadata": {}, "spec": {"volumeMode": "Filesystem"}}),
        (
            {"kind": "PersistentVolumeClaim", "spec": {"volumeMode": "Block"}},
            {"metadata": {"namespace": "default"}, "spec": {"volumeMode": "Block"}},
        ),
        ({"kind": "SchedulingPolicy", "metadata": {"name": "x"}}, {"metadata": {"name": "x"}}),
    ],
)
def test_objects_of_every_kind_are_filled_in(raw: dict[str, Any], expected: dict[str, Any]) -> None:
    result = fill(raw, NONE)
    assert {key: result[key] for key in expected} == expected


def test_metadata_that_is_no_object_is_refused() -> None:
    with pytest.raises(ObjectError, match="metadata: expected an object"):
        fill({"kind": "Service", "metadata": "x"}, NONE)


@pytest.mark.parametrize("kind", ["Pod", "Node", "Service"])
def test_what_is_nested_too_deeply_is_malformed(kind: str) -> None:
    deep: dict[str, Any] = {}
    for _ in range(5000):
        deep = {"a": deep}
    with pytest.raises(ObjectError, match="nested too deeply"):
        fill({"kind": kind, "apiVersion": "v1", "metadata": {"name": "a", "deep": deep}}, priority_classes(()))
