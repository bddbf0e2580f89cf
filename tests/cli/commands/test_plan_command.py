from __future__ import annotations

import json

import pytest
import yaml

from policysched.cli.commands.decisions.plan import NO_CHANGE
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
    same = command("plan", "--cluster", "cluster.yaml")
    assert (same.code, same.out, same.problem) == (0, "no changes for 1 pod\n", f"note: {NO_CHANGE}\n")
    done = command("plan", "--cluster", "cluster.yaml", "--policy", "keep.yaml")
    assert (done.code, done.problem.count("note: keep.yaml:"), len(done.problem.splitlines())) == (1, 1, 1)
    assert done.out.startswith(
        "1 of 1 pod would get no node (Pod default/a) if recreated\n1 of these is running and would not move\n"
    )


def test_plan_notes_labels_and_values_that_no_node_has_as_check_does(command: Command, write: Write) -> None:
    nodes = [node("n1", labels={"gpu": "A100", "zone": "a"}), node("n2", labels={"gpu": "T4"})]
    write("cluster.yaml", yaml.dump_all(ours([*nodes, bound("a", "n1", 1)])))
    write("typo.yaml", yaml.dump(policy("typo", **requiring('node.labels["gpus"] == "A100"'))))
    done = command("plan", "--cluster", "cluster.yaml", "--policy", "typo.yaml")
    [note] = done.problem.splitlines()
    assert note.startswith("note: typo.yaml:")
    assert 'node.labels["gpus"]' in note
    assert "gpu" in note.partition("did you mean")[2]
    checked = command("check", "--cluster", "cluster.yaml", "typo.yaml").out
    assert note.removeprefix("note: ").split(": ")[0] in checked
    rules = " and ".join(f'node.labels["none{number}"] == "x"' for number in range(5))
    write("many.yaml", yaml.dump(policy("many", **requiring(rules))))
    notes = command("plan", "--cluster", "cluster.yaml", "--policy", "many.yaml").problem.splitlines()
    assert len(notes) == 4
    assert notes[-1] == "note: 2 more; `policysched check --cluster cluster.yaml many.yaml` shows all"
    write("zone.yaml", yaml.dump(policy("zone", **requiring('node.labels["zone"] == "a"'))))
    assert command("plan", "--cluster", "cluster.yaml", "--policy", "zone.yaml").problem == ""


@pytest.mark.usefixtures("cluster")
def test_plan_prints_values_and_markdown(command: Command) -> None:
    ask = ("plan", "--cluster", "cluster.yaml", "--policy", "keep.yaml", "-o")
    told = json.loads(command(*ask, "json").out)
    assert (told["counts"], told["pods"]) == ({"unschedulable": 1}, 1)
    done = command(*ask, "markdown")
    assert "| workload | effect | pods | decided by | examples: node without → with change |" in done.out
    assert command(*ask, "github").out.startswith(
        "::notice title=plan::1 of 1 pod would get no node (Pod default/a) if recreated"
    )


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("output", ["table", "json", "yaml", "markdown", "github"])
def test_every_format_says_that_what_runs_stays(command: Command, output: str) -> None:
    done = command("plan", "--cluster", "cluster.yaml", "--policy", "keep.yaml", "-o", output)
    assert "if recreated" in done.out
    assert {"json": '"runs": true', "yaml": "runs: true"}.get(
        output, "1 of these is running and would not move"
    ) in done.out


def test_piped_tables_have_no_blanks_at_the_ends_of_lines(command: Command, write: Write) -> None:
    pods = [bound(f"p{number}", "n1", "50m") for number in range(25)]
    for number, one in enumerate(pods):
        one["metadata"]["namespace"] = f"team-{number}"
    write("cluster.yaml", yaml.dump_all(ours([node("n1"), *pods])))
    write("off.yaml", yaml.dump(policy("off", **requiring('node.labels["disk"] == "ssd"'))))
    done = command("plan", "--cluster", "cluster.yaml", "--policy", "off.yaml")
    lines = done.out.splitlines()
    assert "Workloads" in lines
    assert "… and 5 more" in lines
    assert [line for line in lines if line != line.rstrip()] == []


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("flag", "problem"),
    [
        (("--scheduler-name", ""), "--scheduler-name: name is empty"),
        (("--scheduler-name", " "), "--scheduler-name: name is empty"),
        (("--replicas", "web"), '--replicas "web" is not WORKLOAD=N'),
        (("--without-node", "n9"), 'no node "n9" in the cluster'),
        (("--policy", "broken.yaml"), "error: policy broken does not compile\n"),
    ],
)
def test_plan_refuses_a_change_that_cannot_be_made(
    command: Command, write: Write, flag: tuple[str, ...], problem: str
) -> None:
    write("broken.yaml", yaml.dump(policy("broken", **requiring("node.nam"))))
    done = command("plan", "--cluster", "cluster.yaml", *flag)
    assert (done.code, done.out) == (2, "")
    assert problem in done.problem
