from __future__ import annotations

import json

import pytest
import yaml

from tests.app.dry_runs import node, pod
from tests.cli.conftest import Command, Write

CLUSTER = [node("n1"), node("n2", labels={"disk": "ssd"}), pod("web", nodeSelector={"disk": "nvme"}), pod("small")]


@pytest.fixture
def cluster(write: Write) -> None:
    write("cluster.yaml", yaml.dump_all(CLUSTER))


@pytest.mark.usefixtures("cluster")
def test_why_prints_groups_and_repairs_as_tables(command: Command) -> None:
    done = command("why", "web", "--cluster", "cluster.yaml")
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert (done.code, done.problem) == (0, "")
    assert lines[0] == "pod default/web fits none of 2 nodes: 2 nodes lack only nodeSelector disk=nvme"
    assert "nodeSelector disk=nvme NodeAffinity 2 0 2" in lines
    assert "pod without nodeSelector disk=nvme 2 of 2 n1" in lines
    assert "node label disk=nvme on n1 1 of 2 n1" in lines


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(("output", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_why_prints_plain_values_for_programs(command: Command, output: str, read: object) -> None:
    done = command("why", "default/web", "n2", "--cluster", "cluster.yaml", "-o", output)
    told = read(done.out)  # type: ignore[operator]
    assert (told["state"], told["groups"][0]["lacks"]) == ("Unschedulable", ["nodeSelector disk=nvme"])
    assert told["groups"][0]["examples"] == ["n2"]


@pytest.mark.usefixtures("cluster")
def test_why_prints_markdown_and_annotations(command: Command) -> None:
    done = command("why", "small", "--cluster", "cluster.yaml", "-o", "markdown", "--seed", "1")
    assert done.out.startswith("**pod default/small would go to ")
    assert "| plugin | weight | n" in done.out
    done = command("why", "web", "--cluster", "cluster.yaml", "-o", "github")
    assert done.out.startswith("::notice title=why default/web::pod default/web fits none of 2 nodes")


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("wen",), "pod default/wen is not in the cluster, which has 2 pods"),
        (("web", "n9"), "node n9 is not in the cluster, which has 2 nodes"),
        (("web", "-n", "other"), "pod other/web is not in the cluster, which has 2 pods"),
    ],
)
def test_why_refuses_what_the_cluster_does_not_have(command: Command, arguments: tuple[str, ...], problem: str) -> None:
    done = command("why", *arguments, "--cluster", "cluster.yaml")
    assert (done.code, done.out) == (2, "")
    assert problem in done.problem


@pytest.mark.usefixtures("cluster")
def test_why_says_which_policy_took_no_part(command: Command, write: Write) -> None:
    broken = {"apiVersion": "policysched.io/v1beta1", "kind": "SchedulingPolicy", "metadata": {"name": "broken"},
              "spec": {"filters": [{"name": "r", "require": "node.nam"}]}}  # fmt: skip
    done = command("why", "small", "--cluster", "cluster.yaml", "--policy", write("p.yaml", yaml.dump(broken)))
    assert done.code == 1
    assert "policy broken does not apply" in done.problem


def test_why_names_the_place_of_a_malformed_object(command: Command, write: Write) -> None:
    write("cluster.yaml", yaml.dump_all([*CLUSTER, {**node("bad"), "status": {"allocatable": {"cpu": "x"}}}]))
    done = command("why", "web", "--cluster", "cluster.yaml")
    assert done.code == 2
    assert "cluster.yaml" in done.problem
