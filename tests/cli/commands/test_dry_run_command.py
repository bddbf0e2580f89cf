from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from policysched.model.policy import LAST_GOOD
from tests.cli.conftest import Command, Write

POLICY = """\
apiVersion: policysched.io/v1beta1
kind: SchedulingPolicy
metadata: {name: ssd}
spec:
  filters:
  - name: only
    require: node.labels["disk"] == "ssd"
    message: no SSD
  scores:
  - name: by-name
    cases:
    - node.name == "n1" → 90
    - else → 10
"""
BROKEN = POLICY.replace('== "ssd"', '= "ssd"')
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web"},
    "spec": {"containers": [{"name": "a"}]},
}


def _node(name: str, disk: str = "ssd", cpu: str = "4") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"disk": disk}},
        "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "110"}},
    }


@pytest.fixture
def cluster(write: Write) -> None:
    write("cluster.yaml", yaml.dump_all([_node("n1"), _node("n2"), _node("n3", "hdd")]))
    write("pod.yaml", yaml.dump(POD))
    write("policy.yaml", POLICY)


ASK = ("dry-run", "--cluster", "cluster.yaml", "--pod", "pod.yaml", "--policy", "policy.yaml")


@pytest.mark.usefixtures("cluster")
def test_policies_of_both_versions_in_one_folder_apply(command: Command, write: Write, tmp_path: Path) -> None:
    (tmp_path / "policies").mkdir()
    for number, version in enumerate(("v1alpha1", "v1beta1"), 1):
        rule = {"name": "a", "require": f'node.name != "n{number}"'}
        made = yaml.safe_load(POLICY) | {"apiVersion": f"policysched.io/{version}", "spec": {"filters": [rule]}}
        write(f"policies/{version}.yaml", yaml.safe_dump(made | {"metadata": {"name": version}}))
    asked = ("dry-run", "--cluster", "cluster.yaml", "--pod", "pod.yaml", "--policy", "policies", "-o", "json")
    assert command(*asked).value["best"] == ["n3"]


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("flag", ["--cluster", "--policy"])
def test_policy_of_an_unknown_version_is_named_and_not_used(command: Command, write: Write, flag: str) -> None:
    later = write("later.yaml", POLICY.replace("v1beta1", "v2").replace('"ssd"', '"none"'))
    done = command("dry-run", "--cluster", "cluster.yaml", "--pod", "pod.yaml", flag, later)
    assert 'error[E0001]: expected policysched.io/v1beta1, got "policysched.io/v2"' in done.problem + done.out
    assert "later.yaml:1:13" in done.problem + done.out
    assert done.code == 1


@pytest.mark.usefixtures("cluster")
def test_dry_run_prints_the_record_as_json(command: Command) -> None:
    done = command(*ASK, "-o", "json")
    record = json.loads(done.out)
    assert (done.code, done.problem) == (0, "")
    assert record["pod"] == "default/web"
    assert (record["result"], record["selected"], record["best"]) == ("Scheduled", "n1", ["n1"])
    assert record["rejected"]["n3"]["reasons"] == ["policy ssd/only: no SSD"]
    assert record["rules"]["ssd"]["scores"] == {"by-name": {"n1": 90, "n2": 10}}


@pytest.mark.usefixtures("cluster")
def test_dry_run_prints_what_pull_requests_show(command: Command) -> None:
    told = command(*ASK, "-o", "markdown").out
    assert "**Scores**" in told
    assert "| n3 | SchedulingPolicy/ssd | policy ssd/only: no SSD | UnschedulableAndUnresolvable |" in told
    assert command(*ASK, "-o", "github").out == (
        "::notice title=dry-run default/web::pod default/web → node n1 (profile policysched)\n"
    )
    assert yaml.safe_load(command(*ASK, "-o", "yaml").out)["selected"] == "n1"


@pytest.mark.usefixtures("cluster")
def test_dry_run_prints_tables(command: Command) -> None:
    done = command(*ASK, "-o", "wide")
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert lines[0] == "pod default/web → node n1 (profile policysched)"
    assert "n3 SchedulingPolicy/ssd policy ssd/only: no SSD UnschedulableAndUnresolvable" in lines
    assert "ssd only rejects n3" in lines
    assert "ssd by-name gives n1 90, n2 10" in lines
    (head,) = (line for line in lines if line.startswith("node TaintToleration"))
    assert head.endswith("SchedulingPolicy/ssd total")
    (first, second) = (line.split() for line in lines if line.startswith(("n1 3", "n2 3")))
    assert (first[-2], second[-2]) == ("90", "10")
    assert int(first[-1]) - int(second[-1]) == 80
    assert "\x1b" not in done.out


@pytest.mark.usefixtures("cluster")
def test_dry_run_of_a_pod_that_fits_nowhere_is_an_answer(command: Command, write: Write) -> None:
    big = {**POD, "spec": {"containers": [{"name": "a", "resources": {"requests": {"cpu": "64"}}}]}}
    done = command("dry-run", "--cluster", "cluster.yaml", "--pod", write("big.yaml", yaml.dump(big)))
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[0] == "pod default/web fits no node (profile policysched)"
    assert lines[1] == "0/3 nodes are available: 3 Insufficient cpu."


@pytest.mark.usefixtures("cluster")
def test_dry_run_without_nodes_is_an_answer(command: Command, write: Write) -> None:
    done = command("dry-run", "--cluster", write("policy-only.yaml", POLICY), "--pod", "pod.yaml")
    assert (done.code, done.out.splitlines()[1]) == (0, "no nodes available to schedule pods")


@pytest.mark.usefixtures("cluster")
def test_dry_run_leaves_out_a_broken_policy_and_says_so(command: Command, write: Write) -> None:
    done = command(*ASK[:-1], write("broken.yaml", BROKEN), "-o", "json")
    assert done.code == 1
    record = json.loads(done.out)
    assert "rules" not in record
    assert record["notApplied"]["ssd"].startswith("it does not compile: `=` is not an operator")
    assert done.problem.startswith("error[E0101]: `=` is not an operator\n  --> broken.yaml:7:")


@pytest.mark.usefixtures("cluster")
def test_dry_run_leaves_out_a_misshapen_policy_and_says_so(command: Command, write: Write) -> None:
    done = command(*ASK[:-1], write("broken.yaml", "kind: SchedulingPolicy\nmetadata: {}\nspec: 5\n"), "-o", "json")
    assert done.code == 1
    assert json.loads(done.out)["result"] == "Scheduled"


@pytest.mark.usefixtures("cluster")
def test_policy_to_try_replaces_the_clusters_one_of_its_name(command: Command, write: Write) -> None:
    write("there.yaml", BROKEN)
    done = command(*ASK, "--cluster", "there.yaml", "-o", "json")
    assert (done.code, done.problem) == (0, "")
    assert json.loads(done.out)["rules"]["ssd"]["filters"] == {"only": {"n3": "false"}}


@pytest.mark.usefixtures("cluster")
def test_last_good_generation_of_the_clusters_policy_decides(command: Command, write: Write) -> None:
    policy = yaml.safe_load(BROKEN)
    kept = {"uid": "", "generation": 3, "spec": yaml.safe_load(POLICY)["spec"]}
    policy["metadata"] |= {"generation": 4, "annotations": {LAST_GOOD: json.dumps(kept)}}
    write("there.yaml", yaml.dump(policy, allow_unicode=True))
    done = command(*ASK[:-2], "--cluster", "there.yaml", "-o", "json")
    assert done.code == 1
    assert json.loads(done.out)["rules"]["ssd"]["activeGeneration"] == 3
    assert "error[E0101]" in done.problem


@pytest.mark.usefixtures("cluster")
def test_pod_of_a_workload_is_made_of_its_template(command: Command, write: Write) -> None:
    template = {"metadata": {"labels": {"app": "w"}}, "spec": {**POD["spec"], "schedulerName": "mine"}}
    job = {"kind": "CronJob", "metadata": {"name": "nightly", "namespace": "batch"}}
    job |= {"spec": {"jobTemplate": {"spec": {"template": template}}}}
    done = command("dry-run", "--cluster", "cluster.yaml", "--pod", write("job.yaml", yaml.dump(job)), "-o", "json")
    record = json.loads(done.out)
    assert (record["pod"], record["schedulerName"]) == ("batch/nightly", "mine")
    assert done.problem == "note: pod created from the template of CronJob nightly\n"


def _replica_set_there(template: dict[str, Any]) -> dict[str, Any]:
    """The ReplicaSet that the cluster has for a Deployment's template."""
    owner = {"kind": "Deployment", "name": "w", "controller": True}
    selector = {"matchLabels": {"app": "w", "pod-template-hash": "1"}}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "w-1", "labels": {"pod-template-hash": "1"}, "ownerReferences": [owner]},
        "spec": {"selector": selector, "template": template},
    }


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "StatefulSet", "ReplicationController"])
def test_pods_of_a_workload_are_spread_as_those_of_its_controller(command: Command, write: Write, kind: str) -> None:
    template = {"metadata": {"labels": {"app": "w"}}, "spec": POD["spec"]}
    selector = {"app": "w"} if kind == "ReplicationController" else {"matchLabels": {"app": "w"}}
    of = {"kind": kind, "metadata": {"name": "w"}, "spec": {"selector": selector, "template": template}}
    labels = {"app": "w", "pod-template-hash": "1"}
    placed = {**POD, "metadata": {"name": "x", "labels": labels}, "spec": {**POD["spec"], "nodeName": "n1"}}
    objects = [_node("n1"), _node("n2"), placed, _replica_set_there(template)]
    for one in objects[:2]:
        one["metadata"]["labels"]["kubernetes.io/hostname"] = one["metadata"]["name"]
    ask = ("--cluster", write("there.yaml", yaml.dump_all(objects)), "--pod", write("of.yaml", yaml.dump(of)))
    scores = json.loads(command("dry-run", *ask, "-o", "json").out)["scores"]
    assert {node: one["PodTopologySpread"] for node, one in scores.items()} == {"n1": 132, "n2": 200}


@pytest.mark.usefixtures("cluster")
def test_generated_name_serves_as_a_name(command: Command, write: Write) -> None:
    pod = {**POD, "metadata": {"generateName": "web-"}}
    done = command("dry-run", "--cluster", "cluster.yaml", "--pod", write("p.yaml", yaml.dump(pod)), "-o", "json")
    assert json.loads(done.out)["pod"] == "default/web"


@pytest.mark.usefixtures("cluster")
def test_seed_repeats_the_draw(command: Command) -> None:
    picked = [json.loads(command(*ASK[:-2], "--seed", seed, "-o", "json").out)["selected"] for seed in "11223344556677"]
    assert picked[::2] == picked[1::2]
    assert len(set(picked)) > 1


def test_configuration_decides_the_plugins(command: Command, write: Write) -> None:
    tainted = _node("n1") | {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}
    profile = {"plugins": {"multiPoint": {"disabled": [{"name": "TaintToleration"}]}}}
    config = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    write("config.yaml", yaml.dump(config | {"profiles": [profile]}))
    write("node.yaml", yaml.dump(tainted))
    ask = ("dry-run", "--cluster", "node.yaml", "--pod", write("pod.yaml", yaml.dump(POD)), "-o", "json")
    assert json.loads(command(*ask).out)["result"] == "Unschedulable"
    assert json.loads(command(*ask, "--config", "config.yaml").out)["result"] == "Scheduled"


def test_table_shows_twenty_nodes_a_part_and_counts_the_rest(command: Command, write: Write) -> None:
    nodes = [_node(f"n{number:02}", "ssd" if number < 30 else "hdd") for number in range(60)]
    write("cluster.yaml", yaml.dump_all(nodes))
    write("pod.yaml", yaml.dump(POD))
    write("policy.yaml", POLICY.replace('"n1"', '"n01"'))
    lines = [" ".join(line.split()) for line in command(*ASK).out.splitlines()]
    starts = [line.split()[0] for line in lines if line[:1] == "n" and line[1:3].isdigit()]
    assert starts == ["n01", "n00", *(f"n{n:02}" for n in range(2, 20)), *(f"n{n}" for n in range(30, 50))]
    assert any(line.startswith("… and 10 nodes with ") for line in lines)
    assert "… and 10 nodes: 10 by SchedulingPolicy/ssd: policy ssd/only: no SSD" in lines
    assert any(line.endswith("n48, n49 and 10 more") for line in lines)


def test_texts_of_users_are_not_read_as_markup(command: Command, write: Write) -> None:
    write("cluster.yaml", yaml.dump(_node("n1", "hdd")))
    write("pod.yaml", yaml.dump(POD))
    write("policy.yaml", POLICY.replace("no SSD", '"[red]no[/red] [bold SSD :smile:"'))
    assert "policy ssd/only: [red]no[/red] [bold SSD :smile:" in command(*ASK).out


@pytest.mark.usefixtures("cluster")
def test_policies_without_a_say_are_in_a_table_of_their_own(command: Command, write: Write) -> None:
    write("policy.yaml", POLICY.replace("spec:", "spec:\n  schedulerNames: [other]"))
    lines = [" ".join(line.split()) for line in command(*ASK).out.splitlines()]
    assert lines[-4:-2] == ["Not applied", "policy reason"]
    assert lines[-1] == 'ssd schedulerNames (other) do not contain "policysched"'


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--plugin", "closed.py:Closed"), "--plugin needs --config with a configuration that enables the plugin"),
        (("--plugin", "closed", "--config", "config.yaml"), "--plugin closed: expected [NAME=]MODULE:FACTORY or "),
        (
            ("--plugin", "closed.py:Closed", "--config", "config.yaml"),
            "--plugin closed.py:Closed: cannot import: ",
        ),
    ],
)
def test_dry_run_refuses_plugins_that_cannot_be_used(
    command: Command, arguments: tuple[str, ...], problem: str
) -> None:
    done = command(*ASK, *arguments)
    assert (done.code, done.out) == (2, "")
    assert done.problem.startswith(f"error: {problem}")
