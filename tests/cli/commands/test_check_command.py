from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path

import pytest

from policysched.cli.formats import API_VERSION
from tests.cli.conftest import Command, Write
from tests.cli.processes import on_a_terminal

HEAD = "apiVersion: policysched.io/v1beta1\nkind: SchedulingPolicy\nmetadata: {name: p}\nspec:\n  filters:\n"
GOOD = HEAD.replace("{name: p}", "{name: good}") + '  - {name: a, require: node.zone == "a"}\n'
BAD = HEAD + "  - name: a\n    require: node.zone = 5\n"
WARNED = HEAD.replace("{name: p}", "{name: warned}") + '  - name: a\n    require: number(node.labels["x"]) > 5\n'
NODE = (
    "apiVersion: v1\nkind: Node\nmetadata:\n  name: n1\n  labels: {gpu-model: A100}\n"
    "status: {allocatable: {cpu: '4'}}\n"
)


@pytest.mark.parametrize(
    ("text", "code", "summary"),
    [
        (GOOD, 0, "1 policy: 0 errors, 0 warnings"),
        (BAD, 1, "1 policy: 1 error, 0 warnings; run `policysched explain E0101` for details"),
        (WARNED, 0, "1 policy: 0 errors, 1 warning; run `policysched explain W0701` for details"),
        (
            f"{WARNED}---\n{BAD}",
            1,
            "2 policies: 1 error, 1 warning; run `policysched explain CODE` for details on E0101 and W0701",
        ),
        (
            f"{GOOD}---\n{BAD}---\nkind: Pod\n",
            1,
            "2 policies: 1 error, 0 warnings; run `policysched explain E0101` for details",
        ),
    ],
)
def test_check_ends_with_a_summary_and_its_code(
    command: Command, write: Write, text: str, code: int, summary: str
) -> None:
    done = command("check", write("p.yaml", text))
    assert (done.code, done.out.splitlines()[-1], done.problem) == (code, summary, "")


def test_check_shows_the_mistake_in_its_line(command: Command, write: Write) -> None:
    done = command("check", write("p.yaml", BAD))
    assert done.out == (
        "error[E0101]: `=` is not an operator\n"
        "  --> p.yaml:7:24\n"
        "   |\n"
        " 7 |     require: node.zone = 5\n"
        "   |                        ^\n"
        "   = in p spec.filters[0].require:1:11\n"
        "   = help: write `==` to compare\n"
        "\n"
        "1 policy: 1 error, 0 warnings; run `policysched explain E0101` for details\n"
    )


def test_check_prints_json(command: Command, write: Write) -> None:
    done = command("check", write("p.yaml", BAD), write("good.yaml", GOOD), "-o", "json")
    assert done.code == 1
    (found,) = json.loads(done.out)["items"]
    assert (found["file"], found["fileLine"], found["fileColumn"], found["code"]) == ("p.yaml", 7, 24, "E0101")


def test_check_prints_an_empty_list_where_nothing_is_wrong(command: Command, write: Write) -> None:
    done = command("check", write("p.yaml", GOOD), "-o", "json")
    assert (done.code, json.loads(done.out)) == (0, {"apiVersion": API_VERSION, "kind": "FindingList", "items": []})


def test_check_reads_folders(command: Command, write: Write) -> None:
    write("a.yaml", GOOD)
    write("b.yml", BAD)
    assert command("check", ".").code == 1


def test_files_of_tests_in_a_folder_are_left_alone(command: Command, write: Write) -> None:
    write("a.yaml", GOOD)
    write("a-tests.yaml", "tests: []")
    write("tests.yaml", "tests: []")
    outcome = command("check", ".")
    assert (outcome.code, outcome.problem) == (0, "")
    assert command("check", "tests.yaml").code == 2


@pytest.mark.parametrize("output", ["table", "json", "github"])
@pytest.mark.parametrize("flag", ["-W", "--warnings-as-errors"])
def test_warnings_can_count_as_errors(command: Command, write: Write, flag: str, output: str) -> None:
    write("p.yaml", WARNED)
    assert command("check", "p.yaml", "-o", output).code == 0
    assert command("check", "p.yaml", flag, "-o", output).code == 1
    assert command("check", write("good.yaml", GOOD), flag, "-o", output).code == 0


def test_check_prints_workflow_commands_of_github(command: Command, write: Write) -> None:
    write("p.yaml", f"{BAD}---\n{WARNED}")
    done = command("check", "./p.yaml", "-o", "github")
    assert done.out.splitlines() == [
        "::error file=p.yaml,line=7,col=24,endColumn=25,title=E0101::`=` is not an operator%0Ahelp: "
        "write `==` to compare",
        "::warning file=p.yaml,line=15,col=14,endColumn=42,title=W0701::this condition may be unknown%0Ahelp: "
        'node.labels["x"] may be missing; append `?? true` or `?? false`, as in `(...) ?? false`',
        "2 policies: 1 error, 1 warning; run `policysched explain CODE` for details on E0101 and W0701",
    ]


def test_github_s_commands_are_escaped(command: Command, write: Write, tmp_path: Path) -> None:
    (tmp_path / "50%, a:b").mkdir()
    write("50%, a:b/p.yaml", f"{HEAD}  - name: a\n    require: 10 % 3 > 1\n")
    line = command("check", "50%, a:b/p.yaml", "-o", "github").out.splitlines()[0]
    where, _, said = line.removeprefix("::").partition("::")
    assert where == "error file=50%25%2C a%3Ab/p.yaml,line=7,col=17,endColumn=18,title=E0101"
    assert said == "`%25` is not an operator%0Ahelp: there is no remainder operator; write percentages as `80%25`"


def test_files_that_cannot_be_read_are_commands_too(command: Command, write: Write) -> None:
    write("a.yaml", "kind: SchedulingPolicy\n  a: b\n")
    done = command("check", "a.yaml", "none.yaml", write("p.yaml", GOOD), "-o", "github")
    assert done.code == 2
    assert done.out.splitlines() == [
        "::error file=a.yaml,line=2,col=4::not valid YAML: mapping values are not allowed in this context; "
        "check the indentation of this line",
        "::error::none.yaml: no such file",
        "1 policy: 0 errors, 0 warnings",
    ]


def test_a_file_that_cannot_be_read_does_not_hide_the_others(command: Command, write: Write, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = command("check", "none.yaml", "empty", write("p.yaml", BAD), "-o", "json")
    assert done.code == 2
    assert [one["code"] for one in json.loads(done.out)["items"]] == ["E0101"]
    assert done.problem.splitlines() == [
        "error: none.yaml: no such file",
        "error: empty: no .yaml, .yml or .json file in the folder",
    ]


def test_check_reads_the_standard_input(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(BAD.encode())))
    done = command("check", "-")
    assert done.code == 1
    assert "  --> <stdin>:7:24\n" in done.out
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(BAD.encode())))
    assert command("check", "-", "-o", "github").out.startswith("::error title=E0101::")


@pytest.mark.parametrize("text", ["kind: Pod\n", "", "{{ .Values }}: [\n", "\t"])
def test_files_without_a_policy_may_be_allowed(command: Command, write: Write, text: str) -> None:
    write("a.yaml", text)
    assert command("check", "a.yaml").code == 2
    done = command("check", "a.yaml", "--allow-none")
    assert (done.code, done.out, done.problem) == (0, "0 policies: 0 errors, 0 warnings\n", "")
    assert command("check", "a.yaml", write("p.yaml", BAD), "--allow-none").code == 1
    assert command("check", "none.yaml", "--allow-none").code == 2


def test_findings_are_coloured_on_a_terminal(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(f"{BAD}---\n{WARNED}", "utf-8")
    said = on_a_terminal("check", str(path), code=1)
    assert re.search(r"\x1b\[1;31merror\[E0101\]", said)
    assert re.search(r"\x1b\[1;33mwarning\[W0701\]", said)
    assert "\x1b[3" not in on_a_terminal("check", str(path), code=1, NO_COLOR="1")


MODELS = HEAD + '  - {name: a, require: \'node.labels["gpu_model"] == "A100"\'}\n'
VALUES = HEAD + '  - {name: a, require: \'node.labels["gpu-model"] == "A10"\'}\n'
METRICS = HEAD.replace("{name: p}", "{name: loads}").replace(
    "  filters", "  metrics: [{name: load, query: q}]\n  filters"
) + ("  - {name: a, require: '(metrics.load < 1) ?? true'}\n")


@pytest.mark.parametrize(
    ("policy", "help_text"),
    [(MODELS, "did you mean `gpu-model`?"), (VALUES, "did you mean `A100`?"), (GOOD, None)],
)
def test_check_warns_of_what_no_node_of_a_cluster_has(
    command: Command, write: Write, policy: str, help_text: str | None
) -> None:
    write("p.yaml", policy)
    write("nodes.yaml", f"{NODE}---\nkind: Pod\nspec: broken\n")
    assert command("check", "p.yaml").out.startswith("1 policy: 0 errors, 0 warnings")
    done = command("check", "p.yaml", "--cluster", "nodes.yaml", "-o", "json")
    (found,) = json.loads(done.out)["items"]
    assert (done.code, found["code"], found["severity"], found["help"]) == (0, "W0705", "warning", help_text)
    assert (found["fileLine"], found["field"]) == (6, "spec.filters[0].require")
    assert command("check", "p.yaml", "--cluster", "nodes.yaml", "-W").code == 1


POD = "kind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c, image: i}]}\n"
TEAMS = HEAD.replace("  filters", '  appliesTo: pod.namespace_labels["taem"] == "a"\n  filters') + (
    "  - {name: a, require: node.ready}\n"
)


def test_labels_of_namespaces_need_namespaces(command: Command, write: Write) -> None:
    write("p.yaml", TEAMS)
    assert command("check", "p.yaml", "--cluster", write("nodes.yaml", NODE)).out.startswith("1 policy: 0 errors, 0 ")
    write("nodes.yaml", f"{NODE}---\nkind: Namespace\nmetadata: {{name: a, labels: {{team: a}}}}\n---\n{POD}")
    plan = command("plan", "--policy", "p.yaml", "--cluster", "nodes.yaml")
    assert "note: p.yaml:5:14: no namespace has the label `taem`; did you mean `team`?" in plan.problem
    done = command("check", "p.yaml", "--cluster", "nodes.yaml", "-o", "json")
    (found,) = json.loads(done.out)["items"]
    assert (found["code"], found["field"], found["help"]) == ("W0705", "spec.appliesTo", "did you mean `team`?")


PLACEMENTS = """\
apiVersion: policysched.io/v1beta1
kind: SchedulingPolicy
metadata: {name: p}
spec: {placement: {filters: [{name: a, require: placement.size > 1}]}}
"""
ON = "GenericWorkload=true,TopologyAwareWorkloadScheduling=true"


@pytest.mark.parametrize(
    ("arguments", "warned"),
    [
        ([], False),
        (["--cluster", "nodes.yaml"], False),
        (["--feature-gates", ON], False),
        (["--feature-gates", "GenericWorkload=true"], True),
        (["--feature-gates", "GenericWorkload=false", "--cluster", "nodes.yaml"], True),
        (
            ["--feature-gates", "TopologyAwareWorkloadScheduling=true,GenericWorkload=1", "--cluster", "nodes.yaml"],
            False,
        ),
        (["--feature-gates", "GenericWorkload=true", "--feature-gates", "TopologyAwareWorkloadScheduling=true"], False),
    ],
)
def test_placement_rules_without_the_stated_feature_gates_are_warned_about(
    command: Command, write: Write, arguments: list[str], warned: bool
) -> None:
    write("nodes.yaml", NODE)
    found = json.loads(command("check", write("p.yaml", PLACEMENTS), *arguments, "-o", "json").out)["items"]
    assert [one["code"] for one in found] == ["W0715"] * warned


def test_topology_key_that_no_node_has_is_warned_about_at_its_place(command: Command, write: Write) -> None:
    policy = PLACEMENTS.replace("placement: {", "placement: {topologyKey: gpu_model, ")
    done = command("check", write("p.yaml", policy), "--cluster", write("nodes.yaml", NODE))
    assert "W0705" in done.out
    assert "p.yaml:4:33" in done.out
    assert "did you mean `gpu-model`?" in done.out


def test_check_refuses_feature_gates_that_run_refuses(command: Command, write: Write) -> None:
    done = command("check", write("p.yaml", PLACEMENTS), "--feature-gates", "NoSuchGate=true")
    assert (done.code, "unrecognized feature gate: NoSuchGate" in done.problem) == (2, True)


def test_check_with_a_cluster_that_has_everything_says_nothing(command: Command, write: Write) -> None:
    write("p.yaml", f"{MODELS.replace('gpu_model', 'gpu-model')}---\n{METRICS}")
    done = command("check", "p.yaml", "--cluster", write("nodes.yaml", NODE))
    assert (done.code, done.out) == (0, "2 policies: 0 errors, 0 warnings\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "nodes.yaml: no such file"),
        (
            "kind: Pod\n",
            "no Node in nodes.yaml; --cluster needs nodes, such as the output of `kubectl get nodes -o json`",
        ),
        (NODE.replace("'4'", "4x"), 'nodes.yaml:6:29: node "n1": status.allocatable.cpu: '),
    ],
)
def test_check_says_what_is_wrong_with_a_cluster(
    command: Command, write: Write, text: str | None, message: str
) -> None:
    if text is not None:
        write("nodes.yaml", text)
    done = command("check", write("p.yaml", GOOD), "--cluster", "nodes.yaml")
    assert (done.code, done.out) == (2, "")
    assert done.problem.startswith(f"error: {message}")


def test_what_a_file_says_never_controls_the_terminal(command: Command, write: Write) -> None:
    bad = BAD.replace("{name: p}", '{name: "p\\e[2J\\u202e"}').replace("node.zone = 5", '"nod\\e == 1"')
    for arguments in (("check",), ("check", "-o", "github"), ("fmt",)):
        done = command(*arguments, write("p.yaml", bad))
        assert "\\x1b" in done.out + done.problem
        assert not {"\x1b", "\u202e"} & {*done.out, *done.problem}
    done = command("check", write("p.yaml", '"\\e[2J": 1\n"\\e[2J": 2\n'))
    assert done.problem == 'error: p.yaml:2:1: duplicate key "\\x1b[2J"\n'
