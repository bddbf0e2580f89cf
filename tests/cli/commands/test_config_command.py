"""`policysched config`: what is printed, and exit codes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml

from policysched.app.configuration.printing import to_dict
from policysched.app.configuration.reading import load_configuration
from tests.cli.conftest import Command, Write

BASE = Path(__file__).parents[3] / "deploy" / "base"
HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
BROKEN = f"""{HEAD}parallelism: 0
profiles:
- schedulerName: ours
  plugins:
    filter:
      enabled:
      - name: NotThere
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: Fullest
"""
FAULTS = [
    ("parallelism", 3, 14),
    ("profiles[0].plugins.filter.enabled[0]", 9, 9),
    ("profiles[0].pluginConfig[0].args.scoringStrategy.type", 14, 15),
]


@pytest.mark.parametrize(("arguments", "read"), [((), yaml.safe_load), (("-o", "json"), json.loads)])
def test_view_prints_the_completed_form_which_reads_as_the_same(
    command: Command, write: Write, arguments: tuple[str, ...], read: object
) -> None:
    file = write("c.yaml", f"{HEAD}podMaxBackoffSeconds: 20\n")
    done = command("config", "view", "--config", file, *arguments)
    assert (done.code, done.problem) == (0, "")
    made = read(done.out)  # type: ignore[operator]
    assert made["podMaxBackoffSeconds"] == 20
    assert made["profiles"][0]["schedulerName"] == "default-scheduler"
    assert load_configuration(made).completed.profiles[0].plugins.enabled_anywhere >= {"NodeName", "SchedulingPolicy"}
    again = to_dict(load_configuration(made).completed)
    assert to_dict(load_configuration(again).completed) == again


def test_view_of_a_configuration_that_cannot_be_used_says_all_that_is_wrong(command: Command, write: Write) -> None:
    done = command(
        "config", "view", "--config", write("c.yaml", f"{HEAD}parallelism: 0\npodInitialBackoffSeconds: 0\n")
    )
    assert (done.code, done.out) == (2, "")
    assert done.problem == (
        "error: c.yaml:3:14: parallelism: 0 is not greater than 0; "
        "c.yaml:4:27: podInitialBackoffSeconds: 0 is not greater than 0\n"
    )


def test_check_names_every_fault_with_its_place(command: Command, write: Write) -> None:
    done = command("config", "check", write("c.yaml", BROKEN), write("d.yaml", HEAD))
    lines = done.out.splitlines()
    assert (done.code, done.problem, lines[-1]) == (1, "", "2 configurations: 3 errors")
    assert [line.split(" ")[0] for line in lines[:-1]] == [f"c.yaml:{line}:{at}:" for _, line, at in FAULTS]
    assert [line.split(": ")[1] for line in lines[:-1]] == [field for field, _, _ in FAULTS]


def test_check_as_json_lists_faults(command: Command, write: Write) -> None:
    done = command("config", "check", write("c.yaml", BROKEN), "-o", "json")
    assert done.code == 1
    found = json.loads(done.out)["items"]
    assert [(one["field"], one["line"], one["column"]) for one in found] == FAULTS
    assert found[0] == {
        "file": "c.yaml",
        "line": 3,
        "column": 14,
        "field": "parallelism",
        "message": "0 is not greater than 0",
    }


def test_check_lists_all_fields_that_are_unknown_or_of_the_wrong_type(command: Command, write: Write) -> None:
    text = (
        f"{HEAD}parallel: 3\nparallelism: x\nprofiles:\n- schedulerName: 5\n  plugins: {{filter: {{enabled: [x]}}}}\n"
    )
    done = command("config", "check", write("c.yaml", text), "-o", "json")
    assert [one["field"] for one in json.loads(done.out)["items"]] == [
        "parallel",
        "parallelism",
        "profiles[0].schedulerName",
        "profiles[0].plugins.filter.enabled[0]",
    ]


def test_check_of_what_is_valid_ends_with_0(command: Command, write: Write) -> None:
    done = command("config", "check", write("c.yaml", HEAD))
    assert (done.code, done.out) == (0, "1 configuration: 0 errors\n")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("kind: [", "error: c.yaml:2:1: not valid YAML"),
        ("5", "error: c.yaml:1:1: expected an object"),
        ("", "error: c.yaml"),
    ],
)
def test_check_of_a_file_that_cannot_be_read_ends_with_2(
    command: Command, write: Write, text: str, problem: str
) -> None:
    done = command("config", "check", write("c.yaml", text))
    assert done.code == 2
    assert done.problem.startswith(problem)


def test_check_of_another_kind_is_a_fault(command: Command, write: Write) -> None:
    done = command("config", "check", write("c.yaml", "apiVersion: v1\nkind: Pod\n"))
    assert (done.code, done.out.splitlines()[1]) == (
        1,
        "c.yaml:2:7: kind: expected an object of kind KubeSchedulerConfiguration",
    )


def test_view_wants_one_configuration(command: Command, write: Write) -> None:
    done = command("config", "view", "--config", write("c.yaml", f"{HEAD}---\n{HEAD}"))
    assert (done.code, done.problem) == (
        2,
        "error: c.yaml:4:1: expected one KubeSchedulerConfiguration, got several objects\n",
    )


def test_run_with_a_configuration_takes_no_scheduler_names(command: Command, write: Write) -> None:
    done = command("run", "--config", write("c.yaml", HEAD), "--scheduler-name", "ours")
    assert (done.code, done.problem) == (
        2,
        "error: --scheduler-name cannot be used with --config; set schedulerName in the profiles\n",
    )


def test_check_of_a_folder_ignores_objects_of_other_kinds(command: Command, write: Write, tmp_path: Path) -> None:
    shutil.copytree(BASE, tmp_path / "base")
    done = command("config", "check", "base")
    assert (done.code, done.out, done.problem) == (0, "1 configuration: 0 errors\n", "")
    write("base/scheduler.yaml", HEAD.replace("Configuration", "Configuratoin"))
    done = command("config", "check", "base")
    assert (done.code, done.out.splitlines()[-1]) == (1, "1 configuration: 1 error")
    (tmp_path / "base" / "scheduler.yaml").unlink()
    done = command("config", "check", "base")
    assert (done.code, done.out) == (2, "")
    assert done.problem.startswith("error: base: no KubeSchedulerConfiguration in the folder")
    assert command("config", "check", "base/service.yaml").code == 1
