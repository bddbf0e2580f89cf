"""The pod of a workload is the one that its controllers would make."""

from __future__ import annotations

from typing import Any

import pytest

from policysched.app.files.workload_pods import HASH, ControlledPod, controlled

Object = dict[str, Any]
KINDS = ("Deployment", "ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet", "Job", "CronJob")
TEMPLATE: Object = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "a", "image": "a"}]}}


def workload(kind: str, **spec: Any) -> Object:
    selector = {"selector": {"matchLabels": {"app": "web"}}}
    return {"kind": kind, "metadata": {"name": "web"}, "spec": {**selector, "template": TEMPLATE, **spec}}


def made(of: Object, *objects: Object) -> ControlledPod:
    pod = {"kind": "Pod", "metadata": {"labels": {"app": "web"}, "name": "web", "namespace": "default"}}
    return controlled(of, {**pod, "spec": TEMPLATE["spec"]}, objects)


def owner(found: ControlledPod) -> Object:
    [one] = found.pod["metadata"]["ownerReferences"]
    return dict(one)


@pytest.mark.parametrize("kind", KINDS)
def test_every_pod_has_its_controller_and_a_generated_name(kind: str) -> None:
    found = made(workload(kind))
    metadata = found.pod["metadata"]
    assert owner(found)["controller"] is True
    assert metadata["labels"]["app"] == "web"
    assert metadata["generateName"].startswith("web-")


def test_a_deployments_pod_belongs_to_a_new_replica_set() -> None:
    found = made(workload("Deployment"))
    [replica_set] = found.beside
    digest = found.pod["metadata"]["labels"][HASH]
    assert (owner(found)["apiVersion"], owner(found)["kind"]) == ("apps/v1", "ReplicaSet")
    assert owner(found)["name"] == replica_set["metadata"]["name"] == f"web-{digest}"
    assert replica_set["spec"]["selector"]["matchLabels"] == {"app": "web", HASH: digest}
    other = workload("Deployment", template={**TEMPLATE, "spec": {"containers": []}})
    assert made(other).pod["metadata"]["labels"][HASH] != digest


def _running(name: str, image: str, **metadata: Any) -> Object:
    filled = {"name": "a", "image": image, "imagePullPolicy": "Always"}
    template = {"metadata": {"labels": {"app": "web", HASH: name}}, "spec": {"containers": [filled], "dnsPolicy": "x"}}
    owners = [{"kind": "Deployment", "name": "web", "controller": True}]
    return {
        "kind": "ReplicaSet",
        "metadata": {"name": f"web-{name}", "labels": {HASH: name}, "ownerReferences": owners, **metadata},
        "spec": {"template": template},
    }


def test_a_deployments_pod_belongs_to_the_replica_set_that_is_there_for_its_template() -> None:
    there = [
        _running("elsewhere", "a", namespace="other"),
        _running("strange", "a", ownerReferences=[{"kind": "Deployment", "name": "b", "controller": True}]),
        _running("old", "b"),
        _running("now", "a"),
    ]
    found = made(workload("Deployment"), *there)
    assert (owner(found)["name"], found.pod["metadata"]["labels"][HASH]) == ("web-now", "now")


def test_a_stateful_sets_pod_is_the_next_one_with_its_claims() -> None:
    template = {"metadata": {"name": "data"}, "spec": {"storageClassName": "fast"}}
    of = workload("StatefulSet", volumeClaimTemplates=[template], ordinals={"start": 2})
    there = [{"kind": "Pod", "metadata": {"name": "web-2"}}, {"kind": "Pod", "metadata": {"name": "web-3"}}]
    found = made(of, there[0])
    metadata = found.pod["metadata"]
    assert (metadata["name"], metadata["labels"]["apps.kubernetes.io/pod-index"]) == ("web-3", "3")
    assert found.pod["spec"]["volumes"] == [{"name": "data", "persistentVolumeClaim": {"claimName": "data-web-3"}}]
    [_, claim] = found.beside
    assert (claim["metadata"]["name"], claim["spec"]) == ("data-web-3", {"storageClassName": "fast"})
    assert made(of, *there).pod["metadata"]["name"] == "web-4"


def test_a_daemon_sets_pod_tolerates_what_its_controller_adds() -> None:
    keys = [one["key"] for one in made(workload("DaemonSet")).pod["spec"]["tolerations"]]
    assert "node.kubernetes.io/unschedulable" in keys
    assert "node.kubernetes.io/network-unavailable" not in keys
    host = workload("DaemonSet")
    pod = {"metadata": {"name": "web", "namespace": "default"}, "spec": {"hostNetwork": True, "tolerations": [{}]}}
    tolerations = controlled(host, pod, ()).pod["spec"]["tolerations"]
    assert {
        "key": "node.kubernetes.io/network-unavailable",
        "operator": "Exists",
        "effect": "NoSchedule",
    } in tolerations
    assert {} in tolerations


@pytest.mark.parametrize("kind", ["Job", "CronJob"])
def test_a_jobs_pod_is_labelled_with_its_job(kind: str) -> None:
    found = made(workload(kind))
    assert owner(found)["kind"] == "Job"
    assert found.pod["metadata"]["labels"]["job-name"] == "web"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("spec", [None, 5, {"selector": 5, "template": {}, "volumeClaimTemplates": [5], "ordinals": 5}])
def test_nonsense_is_left_to_whoever_decodes_it(kind: str, spec: Any) -> None:
    nonsense: list[dict[str, Any]] = [
        {"kind": "ReplicaSet", "metadata": {"ownerReferences": [5]}},
        {"kind": "Pod", "metadata": 5},
    ]
    found = made({"kind": kind, "metadata": {"name": "web"}, "spec": spec}, *nonsense)
    assert found.pod["metadata"]["namespace"] == "default"


def test_a_template_that_nobody_controls_stays_as_it_is() -> None:
    found = made({"kind": "PodTemplate", "metadata": {"name": "web"}, "template": TEMPLATE})
    assert (found.beside, "ownerReferences" in found.pod["metadata"]) == ((), False)
