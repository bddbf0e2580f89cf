"""What an API server does to a pod before the scheduler sees the pod, in all commands that read files."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Command

NODE = """apiVersion: v1
kind: Node
metadata: {name: n1, labels: {kata: "true"}}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}
"""
POD = """---
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {schedulerName: policysched, %s}
"""
CONTAINER = "containers: [{name: c, image: i, resources: {requests: {cpu: %s}}}]"


def decided(command: Command, cluster: str, pod: str) -> tuple[str, str]:
    """Return the result and the reason of a decision."""
    done = command("dry-run", "--cluster", cluster, "--pod", pod, "--seed", "0", "-o", "json")
    return done.value["result"], done.value.get("fitError", "")


def test_a_runtime_class_brings_overhead_node_selector_and_tolerations(command: Command, tmp_path: Path) -> None:
    result, reason = decided(command, "c09-node.yaml", "c10-runtimeclass.yaml")
    assert (result, "node affinity/selector" in reason) == ("Unschedulable", True)
    kata = tmp_path / "node.yaml"
    for cpu, expected in (("3750m", "Scheduled"), ("3751m", "Unschedulable")):
        kata.write_text(NODE.replace("status", "spec: {taints: [{key: kata, effect: NoSchedule}]}\nstatus"))
        text = Path("c10-runtimeclass.yaml").read_text().replace("cpu: 1", f"cpu: {cpu}")
        (tmp_path / "pod.yaml").write_text(text)
        assert decided(command, str(kata), str(tmp_path / "pod.yaml"))[0] == expected


def test_a_runtime_class_that_is_not_given_is_noted(command: Command, tmp_path: Path) -> None:
    pod = tmp_path / "pod.yaml"
    pod.write_text(POD % f"runtimeClassName: kata, {CONTAINER % 1}")
    done = command("dry-run", "--cluster", "c09-node.yaml", "--pod", str(pod))
    assert 'note: RuntimeClass "kata" is not in the cluster' in done.problem


@pytest.mark.parametrize("pod", ["c12-sts.yaml", "c12-eph.yaml"])
def test_claims_get_the_default_storage_class(command: Command, pod: str) -> None:
    assert decided(command, "c12-defsc.yaml", pod)[0] == "Scheduled"


def test_of_several_default_classes_the_newest_is_chosen(command: Command, tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.yaml"
    newer = """---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata:
  name: now
  creationTimestamp: "2026-01-01T00:00:00Z"
  annotations: {storageclass.beta.kubernetes.io/is-default-class: "true"}
provisioner: csi.example.com
volumeBindingMode: Immediate
"""
    cluster.write_text(Path("c12-defsc.yaml").read_text() + newer)
    result, reason = decided(command, str(cluster), "c12-eph.yaml")
    assert result == "Unschedulable"
    assert "immediate" in reason


def test_a_limit_range_gives_default_requests(command: Command, tmp_path: Path) -> None:
    assert decided(command, "c15-limitrange.yaml", "c15-pod.yaml") == (
        "Unschedulable",
        "0/1 nodes are available: 1 Insufficient cpu.",
    )
    # `max` is the default limit, the limit is the default request.
    cluster = tmp_path / "cluster.yaml"
    limits = "{limits: [{type: Container, max: {cpu: 1001m}}]}"
    text = Path("c15-limitrange.yaml").read_text()
    cluster.write_text(text.rpartition("spec:")[0] + f"spec: {limits}\n")
    assert decided(command, str(cluster), "c15-pod.yaml")[0] == "Unschedulable"
    cluster.write_text(text.replace("namespace: default", "namespace: other"))
    assert decided(command, str(cluster), "c15-pod.yaml")[0] == "Scheduled"


def test_pods_stay_for_a_while_on_nodes_that_are_not_ready(command: Command, tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.yaml"
    taint = "spec: {taints: [{key: node.kubernetes.io/unreachable, effect: %s}]}\nstatus"
    for effect, expected in (("NoExecute", "Scheduled"), ("NoSchedule", "Unschedulable")):
        cluster.write_text(NODE.replace("status", taint % effect))
        assert decided(command, str(cluster), "c15-pod.yaml")[0] == expected


def test_plan_and_why_and_tests_do_the_same(command: Command, tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.yaml"
    limits = Path("c15-limitrange.yaml").read_text()
    cluster.write_text(limits + POD % "containers: [{name: c, image: i}]")
    why = command("why", "web", "--cluster", str(cluster), "-o", "json").value
    assert why["state"] == "Unschedulable"
    small = tmp_path / "more.yaml"
    small.write_text(NODE.replace("n1", "n2"))
    plan = command("plan", "--cluster", str(cluster), "--nodes", str(small), "-o", "json").value
    assert [(one["pod"], one["effect"]) for one in plan["effects"]] == [("default/web", "schedulable")]
    tests = tmp_path / "tests.yaml"
    tests.write_text(
        "policies: []\ncluster: {files: [cluster.yaml]}\n"
        "tests: [{given: a default, pod: {}, expect: {reason: {contains: Insufficient cpu}}}]\n"
    )
    done = command("test", str(tests))
    assert (done.code, done.problem) == (0, "")


def test_an_admitted_pod_is_not_admitted_again(command: Command, tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.yaml"
    pod = (POD % "containers: [{name: c, image: i}]").replace("name: web", "name: web, uid: a")
    cluster.write_text(Path("c15-limitrange.yaml").read_text() + pod)
    assert command("why", "web", "--cluster", str(cluster), "-o", "json").value["state"] == "Placeable"


def test_what_admission_lacks_is_noted_by_why_and_plan_and_refused_by_tests(command: Command, tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(NODE + POD % f"runtimeClassName: gvisor, {CONTAINER % 1}")
    note = 'RuntimeClass "gvisor" is not in the cluster'
    assert f"note: {note}" in command("why", "web", "--cluster", str(cluster)).problem
    assert f"note: {note}" in command("plan", "--cluster", str(cluster), "--policy", "pol.yaml").problem
    tests = tmp_path / "tests.yaml"
    pod = "{spec: {runtimeClassName: gvisor}}"
    tests.write_text(
        f"policies: []\ncluster: {{nodes: [{{name: a}}]}}\ntests: [{{given: x, pod: {pod}, expect: {{}}}}]\n"
    )
    done = command("test", str(tests))
    assert (done.code, note in " ".join(done.out.split())) == (2, True)
