"""What a command is given and cannot use is refused with a line that says why, never taken in silence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import Command, Write

NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {allocatable: {cpu: '4', memory: 8Gi, pods: '110'}}\n"
POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: a}]}\n"
POLICY = "apiVersion: policysched.io/v1beta1\nkind: SchedulingPolicy\nmetadata: {name: p}\nspec: {}\n"
ASK = ("dry-run", "--cluster", "node.yaml", "--pod", "pod.yaml")


@pytest.fixture(autouse=True)
def files(write: Write) -> None:
    write("node.yaml", NODE)
    write("pod.yaml", POD)
    write("a.yaml", POLICY)
    write("b.yaml", POLICY)
    write("both.yaml", f"{POLICY}---\n{POLICY}")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((*ASK, "--pod", "pod.yaml"), "--pod is given 2 times but takes one value"),
        ((*ASK, "--seed", "1", "--seed=2"), "--seed is given 2 times but takes one value"),
        ((*ASK, "-o", "json", "--output", "table"), "--output is given 2 times but takes one value"),
        (("check", "a.yaml", "-o", "json", "-o", "json"), "--output is given 2 times but takes one value"),
        (("sandbox", "--port", "1", "--port", "2"), "--port is given 2 times but takes one value"),
        (("run", "--context", "a", "--context", "b"), "--context is given 2 times but takes one value"),
        (("run", "--leader-elect=maybe"), '--leader-elect "maybe" is not true or false'),
        (("run", "--leader-elect", "--leader-elect=false"), "--leader-elect is given 2 times but takes one value"),
        (("run", "--scheduler-name", ""), "--scheduler-name: name is empty"),
        (("run", "--scheduler-name", "a", "--scheduler-name", " "), "--scheduler-name: name is empty"),
        ((*ASK, "--policy", "both.yaml"), 'both.yaml:6:1: policy "p" is also defined at both.yaml:1:1'),
        ((*ASK, "--policy", "a.yaml", "--policy", "b.yaml"), 'b.yaml:1:1: policy "p" is also defined at a.yaml:1:1'),
        ((*ASK, "--cluster", "both.yaml"), 'both.yaml:6:1: policy "p" is also defined at both.yaml:1:1'),
        (
            ("check", "a.yaml", "-o", "xml"),
            "invalid value for '--output' / '-o': 'xml' is not one of 'table', 'json', 'yaml', 'markdown', "
            "'github', 'sarif'",
        ),
        (
            (*ASK, "-o", "xml"),
            "invalid value for '--output' / '-o': 'xml' is not one of 'table', 'wide', 'json', 'yaml', 'markdown', "
            "'github'",
        ),
        (("check", "both.yaml"), 'both.yaml:6:1: policy "p" is also defined at both.yaml:1:1'),
        (("check", "a.yaml", "b.yaml"), 'b.yaml:1:1: policy "p" is also defined at a.yaml:1:1'),
    ],
)
def test_what_cannot_be_used_is_refused(command: Command, arguments: tuple[str, ...], said: str) -> None:
    done = command(*arguments)
    assert (done.code, done.problem.splitlines()[0]) == (2, f"error: {said}")


def test_options_of_several_values_and_flags_may_be_repeated(command: Command) -> None:
    assert command(*ASK, "--cluster", "a.yaml").code == 0
    assert command("check", "-W", "-W", "a.yaml").code in {0, 1}


def test_a_cluster_without_nodes_is_told_what_it_should_hold(command: Command, write: Write) -> None:
    write("other.yaml", POD.replace("web", "other"))
    done = command("dry-run", "--cluster", "other.yaml", "--pod", "pod.yaml")
    assert (done.code, done.out.splitlines()[1]) == (0, "no nodes available to schedule pods")
    takes = "objects such as the output of `kubectl get nodes,pods -A -o json`"
    assert done.problem == f"note: cluster has no nodes; --cluster needs {takes}\n"
    assert command(*ASK, "--cluster", "other.yaml").problem == ""


def test_policies_of_one_name_in_several_folders_may_be_checked_together(
    command: Command, write: Write, tmp_path: Path
) -> None:
    one = POLICY.replace("spec: {}", "spec: {filters: [{name: f, require: node.ready}]}")
    for folder in ("test", "production"):
        (tmp_path / folder).mkdir()
        write(f"{folder}/p.yaml", one)
    assert command("check", "test", "production").code == 0


def test_a_pod_without_a_schedulers_name_is_refused(command: Command, write: Write) -> None:
    write("pod.yaml", POD.replace("spec: {", 'spec: {schedulerName: "", '))
    done = command(*ASK)
    assert done.code == 2
    assert 'pod "default/web": spec.schedulerName: name is empty' in done.problem


def test_a_pod_that_runs_is_decided_about_as_a_new_one(command: Command, write: Write) -> None:
    running = yaml.safe_load(POD) | {"status": {"phase": "Running"}}
    running["metadata"] |= {"uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}
    running["spec"]["nodeName"] = "elsewhere"
    write("pod.yaml", yaml.dump(running))
    done = command(*ASK, "-o", "json")
    assert json.loads(done.out)["selected"] == "n1"
    assert done.problem == "note: pod is already on node elsewhere; the decision is for a new pod with the same spec\n"
    del running["status"]
    write("pod.yaml", yaml.dump(running))
    assert json.loads(command(*ASK, "-o", "json").out)["result"] == "Unschedulable"


def test_a_pod_with_scheduling_gates_is_decided_about_without_them(command: Command, write: Write) -> None:
    gated = yaml.safe_load(POD)
    gated["spec"]["schedulingGates"] = [{"name": "example.com/quota"}, {"name": "b"}]
    write("pod.yaml", yaml.dump(gated))
    done = command(*ASK, "-o", "json")
    assert json.loads(done.out)["selected"] == "n1"
    assert done.problem == (
        "note: pod has scheduling gates: example.com/quota, b; the decision is for the pod without gates\n"
    )
    gated["spec"]["schedulingGates"] = [{"name": "\x1b[2J"}]
    write("pod.yaml", yaml.dump(gated))
    done = command(*ASK)
    assert (done.code, "\x1b" in done.problem) == (2, False)
    gated["spec"]["schedulingGates"] = ["a"]
    write("pod.yaml", yaml.dump(gated))
    assert command(*ASK).code == 2


@pytest.mark.parametrize(
    "arguments", [("dry-run", "--cluster", "live", "--pod", "pod.yaml"), ("check", "a.yaml", "--cluster", "live")]
)
def test_a_server_that_is_down_ends_with_2_and_words(
    command: Command, write: Write, arguments: tuple[str, ...]
) -> None:
    cluster = {"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    user = {"name": "u", "user": {}}
    content = {"kind": "Config", "current-context": "c", "clusters": [cluster], "contexts": [context], "users": [user]}
    done = command(*arguments, "--kubeconfig", write("kubeconfig", yaml.dump(content)))
    assert done.code == 2
    assert done.problem == "error: cannot connect to http://127.0.0.1:9: connection refused by 127.0.0.1:9\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("why", "web", "--cluster", "odd.yaml"), "metadata: expected object, got str"),
        (("plan", "--cluster", "node.yaml", "--policy", "odd-policy.yaml"), "metadata: expected object, got array"),
        (("run", "--kubeconfig", "odd-config.yaml"), "kubeconfig odd-config.yaml: contexts: expected array, got int"),
        (("test", "long.yaml"), "no such file"),
        (("test", "tests.yaml"), "Node of the cluster has no name"),
    ],
)
def test_what_is_of_another_shape_than_it_should_be_is_told_in_words(
    command: Command, write: Write, arguments: tuple[str, ...], said: str
) -> None:
    odd = NODE.replace("{name: n1}", "x")
    write("odd.yaml", f"{POD}---\n{odd}")
    write("odd-policy.yaml", POLICY.replace("{name: p}", "[1]"))
    write("odd-config.yaml", "{apiVersion: v1, kind: Config, current-context: a, contexts: 5}")
    asks = "policies: [a.yaml]\ntests:\n- given: a\n  pod: {name: web}\n  expect: {best: []}\n"
    write("long.yaml", f"cluster: {'a' * 300}\n{asks}")
    write("tests.yaml", f"cluster: odd.yaml\n{asks}")
    done = command(*arguments)
    assert done.code in {1, 2}
    assert said in done.problem + done.out
