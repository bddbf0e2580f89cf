"""The workflows of the repository: their commands exist, actions are pinned, no job has rights that it never uses."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.deploy.build import actionlint
from tests.oracle.ladder.summary import OUTPUT

ROOT: Final = Path(__file__).parents[2]
WORKFLOWS: Final = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
ON: Final = True
"""The key `on` of a workflow as YAML reads it."""
RIGHTS: Final = {
    ("release", "publish"): {"contents": "read", "packages": "write", "id-token": "write", "attestations": "write"},
    ("release", "python"): {"id-token": "write"},
    ("release", "page"): {"contents": "write"},
}
"""The rights of jobs that have more than reading the repository."""
PUBLISHERS: Final = {"cosign", "docker", "gh", "helm", "skopeo"}
"""Programs of the release workflow; `tests/release/test_publishing.py` runs their commands."""


def steps(workflow: Path) -> list[dict[str, Any]]:
    return [step for job in read(workflow)["jobs"].values() for step in job["steps"]]


def read(workflow: Path) -> Any:
    return yaml.safe_load(workflow.read_text("utf-8"))


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda one: one.stem)
def test_workflow_reads_only_and_its_jobs_end(workflow: Path) -> None:
    found = read(workflow)
    assert found["permissions"] == {"contents": "read"}
    assert all(0 < job["timeout-minutes"] <= 300 for job in found["jobs"].values())
    for name, job in found["jobs"].items():
        assert job.get("permissions") == RIGHTS.get((workflow.stem, name)), name


@pytest.mark.parametrize(("name", "job"), RIGHTS, ids=str)
def test_job_with_rights_runs_no_code_of_the_repository_and_only_for_a_tag(name: str, job: str) -> None:
    jobs = read(ROOT / ".github" / "workflows" / f"{name}.yml")["jobs"]
    needed = job
    while "if" not in jobs[needed]:
        needed = jobs[needed]["needs"]
    assert jobs[needed]["if"] == "github.ref_type == 'tag'"
    for step in jobs[job]["steps"]:
        assert not step.get("uses", "").startswith("actions/checkout")
        assert not re.search(r"\b(make|python|pip)\b", step.get("run", ""))
    assert "environment" in jobs[job]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda one: one.stem)
def test_actions_are_pinned_by_commit_with_their_version(workflow: Path) -> None:
    used = [line.strip() for line in workflow.read_text("utf-8").splitlines() if re.search(r"\buses:", line)]
    assert len(used) == sum("uses" in step for step in steps(workflow))
    for line in used:
        assert re.fullmatch(r"(- )?uses: [\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line), line


def test_one_action_has_one_commit() -> None:
    used = {step["uses"] for workflow in WORKFLOWS for step in steps(workflow) if "uses" in step}
    assert len({one.partition("@")[0] for one in used}) == len(used)


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda one: one.stem)
def test_commands_exist(workflow: Path) -> None:
    targets = set(re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    for step in steps(workflow):
        assert ("uses" in step) != ("run" in step), step
        if "run" not in step:
            continue
        assert "${{" not in step["run"], "an expression in a command can inject commands: use env"
        program, argument, *_ = step["run"].split()
        known = (program == "make" and argument in targets) or (ROOT / argument).is_file()
        assert known or PUBLISHERS & set(step["run"].split()) or program == "mkdir", step["run"]


def test_ladder_runs_weekly_and_uploads_its_reports() -> None:
    [workflow] = (one for one in WORKFLOWS if one.stem == "ladder")
    [schedule] = read(workflow)[ON]["schedule"]
    minute, hour, day, month, weekday = schedule["cron"].split()
    assert (day, month) == ("*", "*")
    assert all(one.isdecimal() for one in (minute, hour, weekday))
    [upload] = (step["with"] for step in steps(workflow) if step.get("uses", "").startswith("actions/upload-artifact"))
    assert Path(upload["path"]) == OUTPUT


def test_security_check_of_workflows_finds_nothing() -> None:
    command = [str(Path(sys.prefix) / "bin" / "zizmor"), "--offline", "--no-progress", str(ROOT / ".github")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.kubectl
def test_lint_of_workflows_finds_nothing() -> None:
    done = subprocess.run([str(actionlint()), *map(str, WORKFLOWS)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
