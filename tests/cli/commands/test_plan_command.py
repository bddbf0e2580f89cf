from __future__ import annotations

import json

import pytest
import yaml

from tests.app.dry_runs import node, policy, requiring
from tests.app.plan.test_plan import KEEP, ours
from tests.app.why.test_why import bound
from tests.cli.conftest import Command, Write

CLUSTER = ours([node("n1"), node("n2"), bound("a", "n1", 1)])


@pytest.fixture
def cluster(write: Write) -> None:
    write("cluster.yaml", yaml.dump_all(CLUSTER))
    write("keep.yaml", yaml.dump(KEEP))


@pytest.mark.usefixtures("cluster")
def test_plan_exits_as_diff_does(command: Command) -> None:
    assert command("plan", "--cluster", "cluster.yaml").code == 0
    done = command("plan", "--cluster", "cluster.yaml", "--policy", "keep.yaml")
    assert (done.code, done.problem) == (1, "")
    assert done.out.startswith("of 1 pod 1 become unschedulable: default/a (Pod) (1)\n")


@pytest.mark.usefixtures("cluster")
def test_plan_prints_values_and_markdown(command: Command) -> None:
    ask = ("plan", "--cluster", "cluster.yaml", "--policy", "keep.yaml", "-o")
    told = json.loads(command(*ask, "json").out)
    assert (told["counts"], told["pods"]) == ({"unschedulable": 1}, 1)
    done = command(*ask, "markdown")
    assert "| workload | effect | pods | for example |" in done.out
    assert command(*ask, "github").out.startswith("::notice title=plan::of 1 pod 1 become unschedulable")


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("flag", "problem"),
    [
        (("--replicas", "web"), "--replicas web: expected WORKLOAD=N"),
        (("--without-node", "n9"), "node n9 is not in the cluster"),
        (("--policy", "broken.yaml"), "policy broken would take no force"),
    ],
)
def test_plan_refuses_a_change_that_cannot_be_made(
    command: Command, write: Write, flag: tuple[str, ...], problem: str
) -> None:
    write("broken.yaml", yaml.dump(policy("broken", **requiring("node.nam"))))
    done = command("plan", "--cluster", "cluster.yaml", *flag)
    assert (done.code, done.out) == (2, "")
    assert problem in done.problem
