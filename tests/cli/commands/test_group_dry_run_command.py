from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from tests.cli.conftest import Command, Write

GROUP = {
    "apiVersion": "scheduling.k8s.io/v1beta1",
    "kind": "PodGroup",
    "metadata": {"name": "train"},
    "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}},
}
ALONE = "pod {} decided without pod group default/train: {}"


def _spec(cpu: str = "1500m", group: str = "train") -> dict[str, Any]:
    container = {"name": "a", "image": "a", "resources": {"requests": {"cpu": cpu}}}
    return {"containers": [container], "schedulingGroup": {"podGroupName": group}}


def _pod(name: str, group: str = "train") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": _spec(group=group)}


def _workload(kind: str, **spec: Any) -> dict[str, Any]:
    version = "batch/v1" if kind == "Job" else "apps/v1"
    labels = {"app": "train"}
    template = {"metadata": {"labels": labels}, "spec": _spec()}
    if kind == "Job":
        template["spec"] |= {"restartPolicy": "Never"}
    else:
        spec["selector"] = {"matchLabels": labels}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "train"}, "spec": {**spec, "template": template}}


def _node(name: str) -> dict[str, Any]:
    allocatable = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"allocatable": allocatable}}


@pytest.fixture
def cluster(write: Write) -> None:
    write("one.yaml", yaml.dump(_node("n1")))
    write("two.yaml", yaml.dump_all([_node("n1"), _node("n2")]))
    write("gang.yaml", yaml.dump_all([GROUP, *(_pod(f"train-{number}") for number in range(3))]))
    write("job.yaml", yaml.dump_all([GROUP, _workload("Job", parallelism=3)]))


def _asked(cluster: str, pod: str, *more: str) -> tuple[str, ...]:
    return ("dry-run", "--cluster", cluster, "--pod", pod, *more)


@pytest.mark.usefixtures("cluster")
def test_dry_run_of_a_gang_prints_the_node_of_each_pod(command: Command) -> None:
    done = command(*_asked("two.yaml", "gang.yaml", "-o", "json"))
    record = json.loads(done.out)
    assert (done.code, done.problem) == (0, "")
    assert (record["kind"], record["podGroup"], record["result"]) == ("GroupDryRun", "default/train", "Scheduled")
    nodes = {one["pod"]: one["node"] for one in record["members"]}
    assert {*nodes} == {"default/train-0", "default/train-1", "default/train-2"}
    assert {*nodes.values()} == {"n1", "n2"}


@pytest.mark.usefixtures("cluster")
def test_dry_run_of_a_gang_prints_what_stands_against_it(command: Command) -> None:
    done = command(*_asked("one.yaml", "gang.yaml", "--exit-code", "--kube-version", "1.38"))
    assert done.code == 1
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert lines[0] == "pod group default/train does not fit, no pod gets a node (profile policysched)"
    assert lines[1].startswith("scheduling policy's minimum threshold (3) cannot be satisfied: 2 scheduled")
    rows = [line for line in lines if line.startswith("default/train")]
    assert rows == [
        "default/train-2 0/1 nodes are available: 1 Insufficient cpu.",
        "default/train-0 n1 fits, waits for the group",
        "default/train-1 n1 fits, waits for the group",
    ]
    assert "n1 NodeResourcesFit Insufficient cpu Unschedulable" in lines


@pytest.mark.usefixtures("cluster")
def test_dry_run_of_a_gang_with_a_topology_prints_the_placements(command: Command, write: Write) -> None:
    racks = [{**_node(name), "metadata": {"name": name, "labels": {"rack": name[0]}}} for name in ("a1", "b1", "b2")]
    spec = {"schedulingPolicy": {"gang": {"minCount": 3}}, "schedulingConstraints": {"topology": [{"key": "rack"}]}}
    write("racks.yaml", yaml.dump_all(racks))
    pods = [_pod(f"train-{number}") for number in range(3)]
    write("racked.yaml", yaml.dump_all([{**GROUP, "spec": spec}, *pods]))
    done = command(*_asked("racks.yaml", "racked.yaml", "--kube-version", "1.38"))
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert lines[0] == "pod group default/train fits: 3 of 3 pods get nodes (profile policysched)"
    assert "b 2 3 chosen" in lines
    [other] = [line for line in lines if line.startswith("a 1 2 scheduling policy's minimum threshold (3)")]
    assert other


@pytest.mark.usefixtures("cluster")
def test_dry_run_of_a_job_places_all_its_pods(command: Command) -> None:
    done = command(*_asked("two.yaml", "job.yaml"))
    assert done.out.startswith("pod group default/train fits: 3 of 3 pods get nodes")
    assert done.problem == "note: 3 pods created from the templates in job.yaml\n"


@pytest.mark.parametrize(
    ("kind", "spec", "count"),
    [
        ("Job", {}, 1),
        ("Job", {"parallelism": 4}, 4),
        ("Deployment", {"replicas": 3}, 3),
        ("StatefulSet", {"replicas": 2}, 2),
        ("DaemonSet", {}, 1),
    ],
)
@pytest.mark.usefixtures("cluster")
def test_pods_of_a_workload_are_as_many_as_it_creates(
    command: Command, write: Write, kind: str, spec: dict[str, Any], count: int
) -> None:
    if kind == "StatefulSet":
        spec = {**spec, "serviceName": "train"}
    write("workload.yaml", yaml.dump_all([GROUP, _workload(kind, **spec)]))
    record = json.loads(command(*_asked("two.yaml", "workload.yaml", "-o", "json")).out)
    assert len({one["pod"] for one in record["members"]}) == count


@pytest.mark.usefixtures("cluster")
def test_gang_without_its_quorum_is_not_tried(command: Command, write: Write) -> None:
    write("few.yaml", yaml.dump_all([GROUP, _pod("train-0")]))
    lines = command(*_asked("two.yaml", "few.yaml")).out.splitlines()
    assert lines[0] == "pod group default/train waits, no pod is tried (profile policysched)"
    assert lines[1] == "waiting for minCount pods from a gang to appear in scheduling queue"
    assert lines[-1].split() == ["default/train-0", "not", "evaluated"]


@pytest.mark.usefixtures("cluster")
def test_pod_joins_the_group_of_the_cluster(command: Command, write: Write) -> None:
    write("cluster.yaml", yaml.dump_all([_node("n1"), _node("n2"), GROUP, _pod("train-0"), _pod("train-1")]))
    write("pod.yaml", yaml.dump(_pod("train-2")))
    record = json.loads(command(*_asked("cluster.yaml", "pod.yaml", "-o", "json")).out)
    assert record["result"] == "Scheduled"
    assert [one["pod"] for one in record["members"]] == [f"default/train-{number}" for number in range(3)]


@pytest.mark.usefixtures("cluster")
def test_pod_without_its_group_is_decided_alone_with_a_note(command: Command, write: Write) -> None:
    write("pod.yaml", yaml.dump(_pod("train-0")))
    done = command(*_asked("one.yaml", "pod.yaml"))
    assert done.out.startswith("pod default/train-0 → node n1")
    assert ALONE.format("train-0", "the group is neither in the file nor in the cluster") in done.problem


@pytest.mark.usefixtures("cluster")
def test_minor_without_pod_groups_decides_a_pod_alone_with_a_note(command: Command) -> None:
    done = command(*_asked("one.yaml", "gang.yaml", "--kube-version", "1.36"))
    assert done.out.startswith("pod default/train-0 → node n1")
    assert ALONE.format("train-0", "this Kubernetes minor does not schedule pod groups") in done.problem


@pytest.mark.usefixtures("cluster")
def test_one_pod_of_the_file_can_be_chosen(command: Command) -> None:
    record = json.loads(command(*_asked("two.yaml", "gang.yaml#train-1", "-o", "json")).out)
    assert [one["pod"] for one in record["members"]] == ["default/train-1"]


@pytest.mark.usefixtures("cluster")
def test_several_pods_need_one_group_that_exists(command: Command, write: Write) -> None:
    write("lost.yaml", yaml.dump_all([_pod("a"), _pod("b")]))
    done = command(*_asked("one.yaml", "lost.yaml"))
    assert (done.code, done.out) == (2, "")
    assert "lost.yaml: pod group default/train is neither in the file nor in the cluster" in done.problem
    write("mixed.yaml", yaml.dump_all([GROUP, _pod("a"), _pod("b", group="other")]))
    assert "expected one pod or workload, got 2" in command(*_asked("one.yaml", "mixed.yaml")).problem


@pytest.mark.usefixtures("cluster")
def test_workload_with_too_many_pods_is_refused(command: Command, write: Write) -> None:
    write("huge.yaml", yaml.dump_all([GROUP, _workload("Job", parallelism=5001)]))
    done = command(*_asked("one.yaml", "huge.yaml"))
    assert (done.code, done.out) == (2, "")
    assert done.problem == "error: huge.yaml:15:16: a dry-run creates at most 5000 pods, got 5001\n"


@pytest.mark.usefixtures("cluster")
def test_invalid_pod_of_a_group_has_its_place(command: Command, write: Write) -> None:
    bad = _pod("train-1")
    bad["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "lots"}}
    write("bad.yaml", yaml.dump_all([GROUP, _pod("train-0"), bad]))
    done = command(*_asked("one.yaml", "bad.yaml"))
    assert done.code == 2
    assert "bad.yaml:" in done.problem
    assert "cpu" in done.problem
