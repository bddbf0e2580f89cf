"""Plans name the pods that they evaluate, the true cause of an effect, and treat DaemonSet pods as Kubernetes does."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Command

POLICY = """apiVersion: policysched.io/v1alpha1
kind: SchedulingPolicy
metadata: {name: own}
spec: {%s}
"""
FILTER = 'filters: [{name: a, require: \'node.labels["zone"] == "%s"\'}]'
TAINTED = """apiVersion: v1
kind: Node
metadata: {name: n9}
spec: {taints: [{key: dedicated, effect: NoSchedule}]}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}
"""


@pytest.mark.parametrize("cluster", ["c21-plan-attr.yaml", "c21b-plan-default.yaml"])
def test_plan_evaluates_all_scheduler_names_of_the_pods(command: Command, cluster: str) -> None:
    done = command("plan", "--cluster", cluster, "--policy", "pol.yaml", "-o", "json")
    assert (done.code, done.value["pods"], done.value["otherPods"]) == (1, 2, 0)
    assert done.value["policies"] == [{"policy": "zone-a", "pods": 2}]


def test_plan_without_pods_is_an_error_that_counts_scheduler_names(command: Command) -> None:
    done = command(
        "plan", "--cluster", "c21b-plan-default.yaml", "--policy", "pol.yaml", "--scheduler-name", "policysched"
    )
    assert (done.code, done.out) == (2, "")
    assert done.problem == (
        "error: no pods to evaluate: schedulerName is default-scheduler (2 pods), but only policysched "
        "(from --scheduler-name) is evaluated; set --scheduler-name\n"
    )
    done = command("plan", "--cluster", "nodes3.yaml", "--policy", "pol.yaml")
    assert (done.code, done.problem) == (2, "error: no pods to evaluate: the cluster has no pods\n")


@pytest.mark.parametrize("extra", [(), ("--scheduler-name", "default-scheduler")])
def test_plan_of_a_cluster_without_nodes_is_an_error(command: Command, extra: tuple[str, ...]) -> None:
    done = command("plan", "--cluster", "h1-no-nodes.yaml", "--policy", "pol.yaml", *extra)
    needs = "--cluster needs objects such as the output of `kubectl get nodes,pods -A -o json`"
    assert (done.code, done.out, done.problem) == (2, "", f"error: cluster has no nodes; {needs}\n")


def test_why_and_dry_run_note_a_cluster_without_nodes(command: Command) -> None:
    for ask in (("why", "pending"), ("dry-run", "--pod", "c15-pod.yaml")):
        done = command(*ask, "--cluster", "h1-no-nodes.yaml")
        assert (done.code, done.problem.startswith("note: cluster has no nodes; --cluster needs ")) == (0, True)


def test_plan_counts_pods_on_nodes_that_are_not_in_the_cluster(command: Command) -> None:
    ask = ("plan", "--cluster", "h1-no-nodes.yaml", "--cluster", "nodes3.yaml", "--policy", "pol.yaml")
    done = command(*ask, "-o", "json")
    assert [done.value[name] for name in ("pods", "strandedPods", "otherPods", "gatedPods")] == [1, 1, 0, 0]
    assert "1 pod not evaluated (on nodes that are not in the cluster)\n" in command(*ask).out
    done = command(*ask[:2], "h1-stranded.yaml", *ask[3:])
    reason = "1 with scheduling gates; 2 on nodes that are not in the cluster"
    assert (done.code, done.problem) == (2, f"error: no pods to evaluate: {reason}\n")


def test_plan_takes_the_names_of_the_policies_and_of_the_configuration(command: Command, tmp_path: Path) -> None:
    policy, config = tmp_path / "policy.yaml", tmp_path / "config.yaml"
    policy.write_text(POLICY % ("schedulerNames: [gpu], " + FILTER % "a"))
    done = command("plan", "--cluster", "c21b-plan-default.yaml", "--policy", str(policy))
    assert (done.code, "but only gpu (from the policies) is evaluated" in done.problem) == (2, True)
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{schedulerName: gpu}, {schedulerName: default-scheduler}]\n"
    )
    ask = ("plan", "--cluster", "c21b-plan-default.yaml", "--policy", str(policy), "--config", str(config))
    done = command(*ask, "-o", "json")
    assert (done.code, done.value["pods"], done.value["idlePolicies"]) == (
        0, 2, ['own: is evaluated for none of 2 pods: schedulerNames (gpu) do not contain "default-scheduler"'],
    )  # fmt: skip
    done = command(*ask, "--scheduler-name", "gpx")
    assert (done.code, 'no profile "gpx" in the configuration; did you mean `gpu`?' in done.problem) == (2, True)


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("podSelector: {matchLabels: {app: x}}, " + FILTER % "a",
         "is evaluated for none of 2 pods: podSelector does not match the pod's labels"),
        (FILTER % "b", "is evaluated for 2 of 2 pods but rejects no node and scores all nodes equally"),
        ("mode: Shadow, " + FILTER % "a", "mode is Shadow"),
    ],
)  # fmt: skip
def test_reason_of_an_idle_policy_is_the_true_one(command: Command, tmp_path: Path, spec: str, reason: str) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY % spec)
    done = command(
        "plan", "--cluster", "c21b-plan-default.yaml", "--policy", str(tmp_path / "policy.yaml"), "-o", "json"
    )
    assert (done.code, done.value["idlePolicies"]) == (0, [f"own: {reason}"])


def test_cause_is_what_prevents_preemption(command: Command, tmp_path: Path) -> None:
    by = causes(command, "c21-plan-attr.yaml", "pol.yaml")
    assert by["a/hi"] == "preemption no longer helps: policy zone-a/a"
    (tmp_path / "policy.yaml").write_text(POLICY % "preemption: {require: 'false'}")
    by = causes(command, "c21-plan-attr.yaml", str(tmp_path / "policy.yaml"))
    assert by["a/hi"] == "preemption no longer helps: SchedulingPolicy/own protects the victims"


def causes(command: Command, cluster: str, policy: str) -> dict[str, str]:
    """Return what decides that pods get no node."""
    found = command("plan", "--cluster", cluster, "--policy", policy, "-o", "json").value["effects"]
    return {one["pod"]: one["by"] for one in found if one["effect"] == "unschedulable"}


def test_daemon_set_pods_are_deleted_with_their_node(command: Command) -> None:
    done = command("plan", "--cluster", "c24-drain.yaml", "--without-node", "n1")
    assert (done.code, done.problem) == (0, "")
    assert done.out.splitlines()[:2] == ["no changes for 1 pod", "1 DaemonSet pod deleted with its node"]


@pytest.mark.parametrize(("nodes", "created"), [("nodes3.yaml", 1), ("n9.yaml", 0)])
def test_new_nodes_get_the_pods_of_daemon_sets_that_tolerate_them(
    command: Command, tmp_path: Path, nodes: str, created: int
) -> None:
    (tmp_path / "n9.yaml").write_text(TAINTED)
    file = str(tmp_path / nodes) if nodes == "n9.yaml" else nodes
    done = command("plan", "--cluster", "c24-drain.yaml", "--nodes", file, "-o", "json")
    assert done.value["daemonPods"] == {"created": created, "deleted": 0}
    assert done.value["pods"] == 2


@pytest.mark.parametrize(
    ("workload", "reason"),
    [("mon/agent", "a DaemonSet has one pod per node"), ("kube-system/n1", "static pods belong to their node")],
)
def test_replicas_of_pods_that_belong_to_nodes_are_refused(command: Command, workload: str, reason: str) -> None:
    done = command("plan", "--cluster", "c24-drain.yaml", "--replicas", f"{workload}=3")
    assert (done.code, f"--replicas {workload}: {reason}" in done.problem) == (2, True)


@pytest.mark.parametrize(("rule", "is_noted"), [("node.pods.count(true) < 5", True), ("node.ready", False)])
def test_plan_notes_that_rules_about_pods_see_them_where_they_are(
    command: Command, tmp_path: Path, rule: str, is_noted: bool
) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY % f"filters: [{{name: a, require: '{rule}'}}]")
    done = command("plan", "--cluster", "c21b-plan-default.yaml", "--policy", str(tmp_path / "policy.yaml"))
    said = "note: policy own reads the pods on nodes: for a running pod, all other pods stay where they are\n"
    assert done.problem == (said if is_noted else "")


def test_plan_of_pods_of_several_schedulers_names_them(command: Command) -> None:
    done = command("plan", "--cluster", "c20-why.yaml", "--policy", "pol.yaml")
    absent, several = done.problem.splitlines()
    assert absent.startswith("note: pol.yaml:")
    assert several == (
        "note: pods of several schedulers are evaluated: schedulerName is default-scheduler (5 pods) or volcano "
        "(1 pod); choose with --scheduler-name"
    )
