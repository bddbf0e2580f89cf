"""The control plane itself: it must do what a cluster does before anything else is judged by it."""

from __future__ import annotations

import contextlib
import json
import shutil
import urllib.error
import urllib.request
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from policysched.app.clock import SystemClock
from policysched.kube.connection import Connection
from policysched.kube.transport import Transport
from tests.controlplane.api import Api, Json, RefusedError
from tests.controlplane.corner import LABEL, Corner
from tests.controlplane.loading import NOT_READY, until
from tests.controlplane.plane import ControlPlane
from tests.controlplane.programs import ProgramError
from tests.controlplane.releases import chosen

pytestmark = pytest.mark.controlplane
READING = {"apiGroups": [""], "resources": ["pods", "nodes"], "verbs": ["get", "list"]}


def deployment(corner: Corner, replicas: int) -> Json:
    labels = {"app": "web"}
    template = corner.pod("")
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": corner.name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": template["spec"]},
        },
    }


def first_event(plane: ControlPlane, path: str, version: str) -> Json:
    """Give the first event of a watch from a version."""
    query = f"?watch=true&timeoutSeconds=5&resourceVersion={version}"
    request = urllib.request.Request(  # noqa: S310 - the URL is our own
        f"{plane.url}{path}{query}", headers={"Authorization": f"Bearer {plane.identities.token()}"}
    )
    opener = urllib.request.build_opener(
        urllib.request.HTTPSHandler(context=plane.identities.tls()), urllib.request.ProxyHandler({})
    )
    try:
        with opener.open(request, timeout=30) as answer:
            return dict(json.loads(answer.readline()))
    except urllib.error.HTTPError as error:
        return {"type": "ERROR", "object": {"code": error.code}}


def test_kubernetes_is_the_one_that_was_built(control_plane: ControlPlane) -> None:
    assert control_plane.api.call("GET", "/version")["gitVersion"] == chosen().version
    assert f"Server Version: {chosen().version}" in control_plane.kubectl("version")


def test_node_becomes_ready_and_untainted(corner: Corner) -> None:
    for name in corner.nodes(2):
        found = corner.plane.api.get("Node", name)
        assert "taints" not in found["spec"]
        (ready,) = [each for each in found["status"]["conditions"] if each["type"] == "Ready"]
        assert ready["status"] == "True"
        lease = until(lambda name=name: leases(corner, name), f"the lease of {name}")[0]  # type: ignore[misc]
        assert lease["spec"]["holderIdentity"] == name


def leases(corner: Corner, node: str) -> list[Json]:
    found = corner.plane.objects("Lease", "kube-node-lease")
    return [each for each in found if each["metadata"]["name"] == node]


def test_node_without_a_kubelet_runs_nothing(corner: Corner) -> None:
    without, other = f"{corner.name}-x", corner.nodes(1)[0]
    metadata = {"name": without, "labels": {"kubelet": "none", LABEL: corner.name}}
    corner.plane.load([{"apiVersion": "v1", "kind": "Node", "metadata": metadata}])
    corner.plane.load([corner.pod("idle", on=without), corner.pod("web", on=other)])
    corner.comes_to_run("web")
    assert corner.get("idle")["status"]["phase"] == "Pending"
    assert leases(corner, without) == []
    corner.plane.api.delete("Pod", "idle", corner.name, gracePeriodSeconds=0)


def test_pod_that_sleeps_before_it_stops_lingers(corner: Corner) -> None:
    (node,) = corner.nodes(1)
    container = {
        "name": "c",
        "image": "registry.k8s.io/pause:3.10",
        "lifecycle": {"preStop": {"sleep": {"seconds": 3}}},
    }
    corner.plane.load([corner.pod("web", on=node, containers=[container])])
    corner.comes_to_run("web")
    corner.plane.api.delete("Pod", "web", corner.name)
    latest = datetime.fromisoformat(corner.get("web")["metadata"]["deletionTimestamp"])
    until(lambda: not corner.pods(), "the pod is gone")
    grace, slept, cut_off = timedelta(seconds=30), timedelta(seconds=3), timedelta(seconds=1)
    assert latest - grace + slept - cut_off <= datetime.now(UTC) < latest


def test_extended_resource_that_a_node_gains_is_offered_until_it_goes(corner: Corner) -> None:
    (node,) = corner.nodes(1)
    api, gpu = corner.plane.api, "example.com/gpu"

    def offered() -> Any:
        return api.get("Node", node)["status"]["allocatable"].get(gpu)

    for amount in ("4", "2", None):
        api.patch("Node", node, {"status": {"capacity": {gpu: amount}}}, part="/status")
        until(lambda amount=amount: offered() == amount, f"{amount} allocatable")  # type: ignore[misc]


def test_deployment_gets_its_pods(corner: Corner) -> None:
    corner.plane.load([deployment(corner, 3)])
    pods = until(lambda: len(found := corner.pods()) == 3 and found, "three pods")
    assert {each["status"]["phase"] for each in pods} == {"Pending"}
    assert not any(each["spec"].get("nodeName") for each in pods)


def test_pod_bound_by_hand_comes_to_run(corner: Corner) -> None:
    (node,) = corner.nodes(1, addresses=[{"type": "InternalIP", "address": "192.0.2.7"}])
    corner.plane.load([corner.pod("web")])
    corner.bind("web", node)
    status = corner.comes_to_run("web")["status"]
    assert status["hostIP"] == "192.0.2.7"
    assert status["podIP"].startswith("10.128.")
    assert [each["ready"] for each in status["containerStatuses"]] == [True]
    (scheduled,) = [each for each in status["conditions"] if each["type"] == "PodScheduled"]
    assert scheduled["status"] == "True"


def test_deleted_pod_goes_away_within_its_grace(corner: Corner) -> None:
    (node,) = corner.nodes(1)
    corner.plane.load([corner.pod("web", on=node, terminationGracePeriodSeconds=600)])
    corner.comes_to_run("web")
    corner.plane.kubectl("delete", "pod", "web", f"--namespace={corner.name}", "--timeout=20s")
    assert corner.pods() == []


def test_pod_with_a_finalizer_goes_away_when_that_does(corner: Corner) -> None:
    (node,) = corner.nodes(1)
    held = corner.pod("web", on=node)
    held["metadata"]["finalizers"] = ["example.com/hold"]
    corner.plane.load([held])
    corner.comes_to_run("web")
    corner.plane.api.delete("Pod", "web", corner.name)
    until(lambda: corner.get("web")["metadata"]["deletionGracePeriodSeconds"] == 0, "the kubelet let go of the pod")
    corner.plane.api.patch("Pod", "web", {"metadata": {"finalizers": None}}, corner.name)
    until(lambda: not corner.pods(), "no pods")


def test_pod_made_anew_under_its_name_is_left_alone(corner: Corner) -> None:
    (node,) = corner.nodes(1)
    for _ in range(10):
        corner.plane.load([corner.pod("web", on=node)])
        corner.plane.api.delete("Pod", "web", corner.name, gracePeriodSeconds=0)
    corner.plane.load([corner.pod("web", on=node)])
    uid = corner.get("web")["metadata"]["uid"]
    assert corner.comes_to_run("web")["metadata"]["uid"] == uid


def test_pod_of_a_node_that_comes_later_runs_then(corner: Corner) -> None:
    corner.plane.load([corner.pod("web", on=f"{corner.name}-n1")])
    corner.nodes(1)
    corner.comes_to_run("web")


def test_init_containers_are_done(corner: Corner) -> None:
    (node,) = corner.nodes(1)
    once, along = {"name": "once", "image": "i"}, {"name": "along", "image": "i", "restartPolicy": "Always"}
    corner.plane.load([corner.pod("web", on=node, initContainers=[once, along])])
    states = [each["state"] for each in corner.comes_to_run("web")["status"]["initContainerStatuses"]]
    assert [list(each) for each in states] == [["terminated"], ["running"]]


def test_restarted_apiserver_keeps_address_and_data(corner: Corner) -> None:
    (node,) = corner.nodes(1)
    corner.plane.load([corner.pod("before", on=node)])
    before = corner.comes_to_run("before")
    corner.plane.stop_apiserver()
    with pytest.raises(ConnectionError):
        corner.get("before")
    corner.plane.start_apiserver()
    assert corner.get("before")["metadata"]["uid"] == before["metadata"]["uid"]
    corner.plane.load([corner.pod("after", on=node), deployment(corner, 1)])
    corner.comes_to_run("after")
    until(lambda: len(corner.pods()) == 3, "the Deployment's pod, made by controllers that came back")


def test_history_that_expired_answers_gone(corner: Corner) -> None:
    corner.plane.load([corner.pod("old")])
    path = f"/api/v1/namespaces/{corner.name}/pods"
    version = corner.plane.api.call("GET", path)["metadata"]["resourceVersion"]
    corner.plane.load([corner.pod("new")])
    assert first_event(corner.plane, path, version)["object"]["metadata"]["name"] == "new"
    revision = corner.plane.expire()
    assert revision > int(version)
    event = first_event(corner.plane, path, version)
    assert (event["type"], event["object"]["code"]) == ("ERROR", 410)
    assert len(corner.pods()) == 2


def test_compacted_history_is_gone_from_etcd(corner: Corner) -> None:
    version = int(corner.plane.api.call("GET", "/api/v1/pods")["metadata"]["resourceVersion"])
    corner.plane.load([corner.pod("web")])
    assert corner.plane.etcd.knows(version)
    revision = corner.plane.compact()
    assert not corner.plane.etcd.knows(version)
    assert corner.plane.etcd.knows(revision)


def test_token_of_a_restricted_user_may_do_what_its_role_says(
    control_plane: ControlPlane, corner: Corner, tmp_path: Path
) -> None:
    config = control_plane.token_kubeconfig(tmp_path / "config", "nobody")
    assert "Forbidden" in control_plane.kubectl("get", "pods", f"--kubeconfig={config}", code=1)
    role = control_plane.allow("nobody", READING)
    control_plane.kubectl("get", "pods,nodes", f"--kubeconfig={config}")
    assert "Forbidden" in control_plane.kubectl("get", "namespaces", f"--kubeconfig={config}", code=1)
    control_plane.api.delete("ClusterRoleBinding", role)
    control_plane.api.delete("ClusterRole", role)


def test_user_without_a_token_is_named(control_plane: ControlPlane, tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="no token for stranger: the control plane was started with admin, scheduler"):
        control_plane.token_kubeconfig(tmp_path / "config", "stranger")


async def test_certificates_carry_user_and_groups(control_plane: ControlPlane, tmp_path: Path) -> None:
    config = control_plane.certificate_kubeconfig(tmp_path / "config", "eve", ["readers", "writers"])
    review = '{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}'
    connection = await Connection.open(SystemClock(), kubeconfig=str(config))
    try:
        path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        answer = await Transport(connection).request("POST", path, review.encode())
    finally:
        await connection.close()
    assert b'"username":"eve"' in answer
    assert b'"groups":["readers","writers","system:authenticated"]' in answer


def test_wrong_token_is_refused(control_plane: ControlPlane) -> None:
    port = int(control_plane.url.rpartition(":")[2])
    stranger = Api(port, control_plane.identities.tls(), "wrong")
    with contextlib.closing(stranger), pytest.raises(RefusedError) as refused:
        stranger.objects("Pod")
    assert refused.value.status == 401


def test_wiped_control_plane_is_as_good_as_new(control_plane: ControlPlane, corner: Corner) -> None:
    (node,) = corner.nodes(1)
    held = corner.pod("held", on=node)
    held["metadata"]["finalizers"] = ["example.com/hold"]
    group = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 7}
    control_plane.load([deployment(corner, 2), held, group | {"metadata": {"name": "high"}}])
    until(lambda: len(corner.pods()) == 3, "three pods")
    control_plane.wipe()
    for kind in ("Pod", "Node", "Deployment", "ReplicaSet"):
        assert control_plane.objects(kind) == [], kind
    assert {each["metadata"]["name"] for each in control_plane.objects("PriorityClass")} == {
        "system-cluster-critical",
        "system-node-critical",
    }
    until(lambda: corner.name not in control_plane.kubectl("get", "namespaces"), "the namespace is gone")
    control_plane.load([corner.pod("again")])


def test_failed_start_keeps_the_logs_and_ends_what_began() -> None:
    plane = ControlPlane(apiserver_flags=["--no-such-flag"], kubelets=False)
    with pytest.raises(ProgramError, match=r"(?s)kube-apiserver ended with code 1:.*no-such-flag"):
        plane.__enter__()
    assert not any(program.running for program in plane._programs.values())
    assert sorted(path.name for path in plane.folder.iterdir()) == ["logs"]
    assert "no-such-flag" in (plane.logs / "kube-apiserver.log").read_text("utf-8")
    shutil.rmtree(plane.folder)


def test_chosen_controllers_run_alone_and_nothing_is_left() -> None:
    with ControlPlane(controllers=["serviceaccount-controller"], kubelets=False) as plane:
        plane.load([{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": {"kubelet": "none"}}}])
        assert plane.api.get("Node", "n1")["spec"]["taints"][0]["key"] == NOT_READY
        programs = tuple(plane._programs.values())
    assert not any(program.running for program in programs)
    assert not plane.folder.exists()
