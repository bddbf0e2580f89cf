"""What all commands have in common: formats, kinds of values, files, seeds and the cluster."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from policysched.app.checking.sarif import SCHEMA
from policysched.cli import make_app
from policysched.cli.formats import API_VERSION
from policysched.cli.help import EXIT_CODES, default_text, exit_codes, paragraphs, value_name
from policysched.model.policy import API_GROUP
from tests.cli.conftest import Command, Write
from tests.cli.processes import COMMAND, environment

NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: n%d}\nstatus: {allocatable: {cpu: '4', memory: 8Gi, pods: '9'}}\n"
NODES = "---\n".join(NODE % number for number in (1, 2))
POD = (
    "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n"
    "spec: {schedulerName: policysched, containers: [{name: a, image: a}]}\n"
)
POLICY = (
    "apiVersion: policysched.io/v1beta1\nkind: SchedulingPolicy\nmetadata: {name: %s}\n"
    "spec:\n  filters:\n  - {name: a, require: %s}\n"
)
TESTS = "tests:\n- {name: t, policies: [good.yaml], nodes: {n1: {}}, pod: {}, expect: {node: n1}}\n"
CONFIG = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofile: 1\n"


@pytest.fixture
def files(write: Write) -> None:
    write("nodes.yaml", NODES)
    write("pod.yaml", POD)
    write("cluster.yaml", f"{NODES}---\n{POD}")
    write("good.yaml", POLICY % ("good", 'node.name != "n9"'))
    write("bad.yaml", POLICY % ("bad", "node.nam"))
    write("config.yaml", CONFIG)


VALUES = [
    (("dry-run", "--cluster", "nodes.yaml", "--pod", "pod.yaml"), "DryRun"),
    (("why", "web", "--cluster", "cluster.yaml"), "Explanation"),
    (("translate", "--cluster", "nodes.yaml", "--pod", "pod.yaml", "--policy", "good.yaml"), "Translation"),
    (("plan", "--cluster", "cluster.yaml", "--policy", "good.yaml"), "Plan"),
    (("check", "bad.yaml"), "FindingList"),
    (("test", "tests.yaml"), "TestRun"),
    (("explain",), "ErrorCodeList"),
    (("explain", "E0301"), "ErrorCode"),
    (("example",), "ExampleList"),
    (("plugins",), "PluginList"),
    (("config", "check", "config.yaml"), "ConfigurationErrorList"),
]


@pytest.mark.parametrize(("arguments", "kind"), VALUES, ids=[one[1] for one in VALUES])
@pytest.mark.parametrize(("output", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
@pytest.mark.usefixtures("files")
def test_values_for_programs_say_their_kind(
    command: Command, write: Write, arguments: tuple[str, ...], kind: str, output: str, read: Any
) -> None:
    write("tests.yaml", TESTS)
    found = read(command(*arguments, "-o", output).out)
    assert list(found)[:2] == ["apiVersion", "kind"]
    assert (found["apiVersion"], found["kind"]) == (API_VERSION, kind)
    assert isinstance(found.get("items", []), list)
    assert API_VERSION.startswith(f"output.{API_GROUP}/")


def _leaves(command: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    below = getattr(command, "commands", None)
    if below is None:
        yield name, command
    for one, found in (below or {}).items():
        yield from _leaves(found, f"{name} {one}".strip())


COMMANDS = dict(_leaves(get_command(make_app())))


def _option(name: str, flag: str) -> Any:
    return next((one for one in COMMANDS[name].params if flag in one.opts), None)


def test_commands_of_one_sort_have_the_same_formats_and_defaults() -> None:
    decisions = ("dry-run", "why", "plan", "replay", "test", "translate")
    assert {value_name(_option(one, "--output")) for one in decisions} == {"table|wide|json|yaml|markdown|github"}
    lists = ("explain", "example", "plugins", "config check")
    assert {value_name(_option(one, "--output")) for one in lists} == {"table|wide|json|yaml"}
    assert {value_name(_option(one, "--output")) for one in ("crd", "config view")} == {"yaml|json"}
    seeds = {name: default_text(one) for name in COMMANDS if (one := _option(name, "--seed"))}
    assert seeds == dict.fromkeys(("dry-run", "why", "plan"), "0")
    clusters = {name: one.required for name in COMMANDS if (one := _option(name, "--cluster"))}
    assert clusters == dict.fromkeys(("dry-run", "why", "plan", "record", "check", "translate"), False)


@pytest.mark.usefixtures("files")
def test_dry_run_repeats_its_choice_among_equal_nodes(command: Command) -> None:
    asked = ("dry-run", "--cluster", "nodes.yaml", "--pod", "pod.yaml", "-o", "json")
    assert len({json.loads(command(*asked).out)["selected"] for _ in range(10)}) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "*.yaml"),
        ("check", "[g]ood.yaml", "./b*.yaml"),
        ("fmt", "--check", "g*.yaml"),
        ("dry-run", "--cluster", "node?.yaml", "--pod", "pod.yaml"),
        ("plan", "--cluster", "clus*.yaml", "--policy", "goo*"),
        ("test", "*tests.yaml"),
    ],
)
@pytest.mark.usefixtures("files")
def test_patterns_of_file_names_are_the_files_that_match(
    command: Command, write: Write, arguments: tuple[str, ...]
) -> None:
    write("tests.yaml", TESTS)
    done = command(*arguments)
    assert "no such file" not in done.problem
    assert done.out != ""
    none = command(arguments[0], *("none*" if "*" in one or "?" in one or "[" in one else one for one in arguments[1:]))
    assert (none.code, none.problem) == (2, "error: none*: no file matches\n")


def test_file_whose_name_is_a_pattern_is_itself(command: Command, write: Write) -> None:
    write("a[1].yaml", POLICY % ("good", 'node.name != "n9"'))
    assert command("check", "a[1].yaml").code == 0


@pytest.mark.usefixtures("files")
def test_sarif_has_what_its_schema_requires(command: Command, write: Write) -> None:
    write("not.yaml", "a: [")
    done = command("check", "good.yaml", "bad.yaml", "not.yaml", "-o", "sarif")
    log = json.loads(done.out)
    assert done.code == 2
    assert (log["$schema"], log["version"]) == (SCHEMA, "2.1.0")
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert (driver["name"], driver["rules"][0]["id"]) == ("policysched", "E0202")
    assert driver["rules"][0]["helpUri"].endswith("/docs/reference/errors.md#e0202")
    (result,) = run["results"]
    assert (result["ruleId"], result["ruleIndex"], result["level"]) == ("E0202", 0, "error")
    assert "did you mean `name`" in result["message"]["text"]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "bad.yaml"}
    assert place["region"] == {"startLine": 6, "startColumn": 29, "endColumn": 32}
    (invocation,) = run["invocations"]
    assert not invocation["executionSuccessful"]
    assert invocation["toolExecutionNotifications"][0]["message"]["text"].startswith("not.yaml:")


def test_sarif_of_good_policies_has_no_results(command: Command, write: Write) -> None:
    done = command("check", write("good.yaml", POLICY % ("good", 'node.name != "n9"')), "-o", "sarif")
    (run,) = json.loads(done.out)["runs"]
    assert (done.code, run["results"], run["tool"]["driver"]["rules"]) == (0, [], [])
    assert run["invocations"] == [{"executionSuccessful": True, "toolExecutionNotifications": []}]


@pytest.mark.usefixtures("files")
def test_findings_are_a_markdown_table(command: Command) -> None:
    done = command("check", "bad.yaml", "-o", "markdown")
    lines = done.out.splitlines()
    assert (done.code, lines[0]) == (1, "| place | code | policy | message | help |")
    assert lines[2].startswith(r"| bad.yaml:6:29 | error E0202 | bad | ")
    assert lines[-1].startswith("1 policy: 1 error, 0 warnings")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_states_its_exit_codes(name: str) -> None:
    (stated,) = [one for one in paragraphs(COMMANDS[name]) if one.startswith(EXIT_CODES)]
    codes = [code for code, _ in exit_codes(stated)]
    assert codes == sorted(codes, key=int)
    assert codes[0] == "0"
    assert set(codes) <= {"0", "1", "2", "130"}


def test_exit_code_of_a_pod_that_fits_no_node(command: Command, write: Write) -> None:
    write("nodes.yaml", NODES)
    write("big.yaml", POD.replace("image: a", "image: a, resources: {requests: {cpu: '5'}}"))
    write("cluster.yaml", f"{NODES}---\n" + (POD.replace("image: a", "image: a, resources: {requests: {cpu: '5'}}")))
    for asked in (
        ("dry-run", "--cluster", "nodes.yaml", "--pod", "big.yaml"),
        ("why", "web", "--cluster", "cluster.yaml"),
    ):
        assert command(*asked).code == 0
        assert command(*asked, "--exit-code").code == 1


def test_exit_code_of_a_pod_that_fits(command: Command, write: Write) -> None:
    write("nodes.yaml", NODES)
    write("pod.yaml", POD)
    assert command("dry-run", "--cluster", "nodes.yaml", "--pod", "pod.yaml", "--exit-code").code == 0


PLUGIN = """
class Bad:
    def __init__(self, arguments, handle): ...
    def {point}(self, state, pod, node_info):
        return self.look_up("gpu")
    def look_up(self, name):
        return {{}}[name]
"""
PLUGIN_CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: policysched
  plugins: {multiPoint: {enabled: [{name: Bad}]}}
"""


@pytest.mark.parametrize("point", ["filter", "score"])
@pytest.mark.parametrize(
    "asked",
    [
        ("dry-run", "--cluster", "nodes.yaml", "--pod", "pod.yaml"),
        ("why", "web", "--cluster", "cluster.yaml"),
        ("plan", "--cluster", "cluster.yaml"),
    ],
    ids=lambda one: one[0],
)
def test_decision_that_a_plugin_fails_ends_with_2_and_its_traceback(
    write: Write, tmp_path: Path, point: str, asked: tuple[str, ...]
) -> None:
    write("nodes.yaml", NODES)
    write("pod.yaml", POD)
    write("cluster.yaml", f"{NODES}---\n{POD}---\n{POD.replace('web', 'web-2')}")
    write("bad.py", PLUGIN.format(point=point))
    write("plugins.yaml", PLUGIN_CONFIG)
    arguments = [*asked, "--config", "plugins.yaml", "--plugin", "Bad=bad.py:Bad"]
    done = subprocess.run(
        [*COMMAND, *arguments], cwd=tmp_path, capture_output=True, text=True, env=environment(), check=False
    )
    assert done.returncode == 2
    lines = [one for one in done.stderr.splitlines() if not one.startswith("note: ")]
    assert lines[:2] == [f'error: {point.title()} plugin "Bad" failed', "Traceback (most recent call last):"]
    assert f'bad.py", line 5, in {point}' in lines[2]
    assert lines[-1] == "KeyError: 'gpu'"
    assert done.stderr.count("Traceback") == 1
    assert "policysched/framework" not in done.stderr
    assert "KeyError('gpu')" in done.stdout + done.stderr


@pytest.mark.parametrize("name", ["plugins", "example"])
def test_a_list_begins_with_its_header(command: Command, name: str) -> None:
    assert command(name).out.startswith(("name ", "example "))
