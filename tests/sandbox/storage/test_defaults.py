from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from policysched.sandbox import Sandbox, sandbox_nodes
from policysched.sandbox.storage.writes import qos_class
from tests.sandbox.bodies import PODS, pod

if TYPE_CHECKING:
    from tests.sandbox.conftest import Api


async def test_pods_get_what_the_api_server_fills_in(quiet_api: Api) -> None:
    limits = {"cpu": "500m", "memory": "1Gi"}
    container = {"name": "c", "image": "nginx", "resources": {"limits": limits}, "ports": [{"containerPort": 80}]}
    _, found = await quiet_api.post(PODS, pod("web", containers=[container], hostNetwork=True))
    spec, filled = found["spec"], found["spec"]["containers"][0]
    assert (spec["restartPolicy"], spec["dnsPolicy"], spec["schedulerName"]) == (
        "Always",
        "ClusterFirst",
        "default-scheduler",
    )
    assert (spec["terminationGracePeriodSeconds"], spec["serviceAccountName"]) == (30, "default")
    assert (spec["priority"], spec["preemptionPolicy"]) == (0, "PreemptLowerPriority")
    assert filled["resources"]["requests"] == limits
    assert filled["ports"] == [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]
    assert filled["imagePullPolicy"] == "Always"
    assert [(each["key"], each["tolerationSeconds"]) for each in spec["tolerations"]] == [
        ("node.kubernetes.io/not-ready", 300),
        ("node.kubernetes.io/unreachable", 300),
    ]
    assert found["status"] == {"phase": "Pending", "qosClass": "Guaranteed"}


async def test_label_keys_become_demands_of_the_selectors_beside_them(quiet_api: Api) -> None:
    keys = {"labelSelector": {"matchLabels": {"app": "web"}}, "matchLabelKeys": ["revision", "absent"]}
    apart = {"topologyKey": "zone", **keys, "mismatchLabelKeys": ["team"]}
    spread = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **keys}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    web = pod("web", affinity=affinity, topologySpreadConstraints=[spread])
    web["metadata"]["labels"] = {"revision": "2", "team": "a"}
    _, found = await quiet_api.post(PODS, web)
    spec = found["spec"]
    (term,) = spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    same = {"key": "revision", "operator": "In", "values": ["2"]}
    other = {"key": "team", "operator": "NotIn", "values": ["a"]}
    assert term["labelSelector"] == {"matchLabels": {"app": "web"}, "matchExpressions": [same, other]}
    (constraint,) = spec["topologySpreadConstraints"]
    assert constraint["labelSelector"] == {"matchLabels": {"app": "web"}, "matchExpressions": [same]}


async def test_a_toleration_of_everything_is_enough(quiet_api: Api) -> None:
    _, found = await quiet_api.post(PODS, pod("web", tolerations=[{"operator": "Exists"}]))
    assert found["spec"]["tolerations"] == [{"operator": "Exists"}]


async def test_priority_comes_from_the_class(quiet_api: Api) -> None:
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    high = {"metadata": {"name": "high"}, "value": 1000, "preemptionPolicy": "Never"}
    await quiet_api.post(classes, high)
    await quiet_api.post(classes, {"metadata": {"name": "usual"}, "value": 7, "globalDefault": True})
    cases = {"high": (1000, "Never"), "system-node-critical": (2_000_001_000, "PreemptLowerPriority")}
    for name, expected in cases.items():
        _, found = await quiet_api.post(PODS, pod(f"p-{name}", priorityClassName=name))
        assert (found["spec"]["priority"], found["spec"]["preemptionPolicy"]) == expected
    _, found = await quiet_api.post(PODS, pod("plain"))
    assert (found["spec"]["priority"], found["spec"]["priorityClassName"]) == (7, "usual")


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [("system-mine", 1, "reserved for system use"), ("huge", 2_000_000_000, "maximum allowed value")],
)
async def test_priority_classes_keep_to_their_range(quiet_api: Api, name: str, value: int, text: str) -> None:
    made = {"metadata": {"name": name}, "value": value}
    code, found = await quiet_api.post("/apis/scheduling.k8s.io/v1/priorityclasses", made)
    assert code == 422
    assert text in found["message"]


ONE = {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "0"}}, "BestEffort"),
        ({"requests": {"nvidia.com/gpu": "1"}}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"requests": ONE, "limits": ONE}, "Guaranteed"),
        ({"requests": ONE, "limits": ONE | {"cpu": "2"}}, "Burstable"),
    ],
)
def test_qos_class_follows_requests_and_limits(resources: dict[str, Any], expected: str) -> None:
    assert qos_class({"containers": [{"name": "c", "resources": resources}]}) == expected


async def test_nodes_get_allocatable_from_capacity(quiet_api: Api) -> None:
    status = {"capacity": {"cpu": "4", "pods": "110"}, "allocatable": {"cpu": "3"}}
    _, found = await quiet_api.post("/api/v1/nodes", {"metadata": {"name": "n"}, "status": status})
    assert found["status"]["allocatable"] == {"cpu": "3", "pods": "110"}


async def test_node_status_is_written_by_its_subresource(quiet_api: Api, quiet: Sandbox) -> None:
    quiet.load(sandbox_nodes(1))
    change = {"status": {"allocatable": {"cpu": "9"}}}
    await quiet_api.strategic("/api/v1/nodes/node-1", change)
    assert quiet.objects("Node")[0]["status"]["allocatable"]["cpu"] == "4"
    await quiet_api.strategic("/api/v1/nodes/node-1/status", change)
    assert quiet.objects("Node")[0]["status"]["allocatable"]["cpu"] == "9"


async def test_services_get_an_address(quiet_api: Api) -> None:
    path = "/api/v1/namespaces/default/services"
    addresses = set()
    for name in ("a", "b"):
        made = {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}]}}
        _, found = await quiet_api.post(path, made)
        addresses.add(found["spec"]["clusterIP"])
        assert found["spec"]["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80}]
    assert len(addresses) == 2
    headless = {"metadata": {"name": "h"}, "spec": {"clusterIP": "None"}}
    assert (await quiet_api.post(path, headless))[1]["spec"]["clusterIPs"] == ["None"]
    code, found = await quiet_api.post(path, {"metadata": {"name": "n"}, "spec": {}})
    assert (code, found["details"]["causes"][0]["field"]) == (422, "spec.ports")


async def test_claims_get_the_default_class(quiet_api: Api) -> None:
    mark = {"storageclass.kubernetes.io/is-default-class": "true"}
    made = {"metadata": {"name": "fast", "annotations": mark}, "provisioner": "x"}
    await quiet_api.post("/apis/storage.k8s.io/v1/storageclasses", made)
    path = "/api/v1/namespaces/default/persistentvolumeclaims"
    _, found = await quiet_api.post(path, {"metadata": {"name": "c"}, "spec": {"accessModes": ["ReadWriteOnce"]}})
    assert (found["spec"]["storageClassName"], found["status"]["phase"]) == ("fast", "Pending")


def test_load_keeps_node_and_status_and_takes_lists_apart(quiet: Sandbox) -> None:
    running = pod("web", nodeName="node-1") | {"status": {"phase": "Running"}}
    running["metadata"] |= {"namespace": "team", "uid": "u", "creationTimestamp": "2020-01-01T00:00:00Z"}
    classed = pod("c", priorityClassName="later")
    late = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "later"}, "value": 5}
    nodes = {"apiVersion": "v1", "kind": "NodeList", "items": sandbox_nodes(2)}
    quiet.load([{"apiVersion": "v1", "kind": "List", "items": [running, classed, late]}, nodes])
    first, second = quiet.objects("Pod")
    assert second["status"] == {"phase": "Running", "qosClass": "BestEffort"}
    assert second["metadata"]["uid"] == "u"
    assert first["spec"]["priority"] == 5
    assert "team" in [each["metadata"]["name"] for each in quiet.objects("Namespace")]
    assert len(quiet.objects("Node")) == 2
    with pytest.raises(KeyError, match="does not serve kind Job"):
        quiet.load([{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}}])
