"""The workflows of the repository: what they run exists, and no job may write or run without an end."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.oracle.ladder.summary import OUTPUT

ROOT: Final = Path(__file__).parents[2]
WORKFLOWS: Final = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
ON: Final = True
"""The key `on` of a workflow as YAML reads it."""


def steps(workflow: Path) -> list[dict[str, Any]]:
    return [step for job in read(workflow)["jobs"].values() for step in job["steps"]]


def read(workflow: Path) -> Any:
    return yaml.safe_load(workflow.read_text("utf-8"))


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda one: one.stem)
def test_workflow_reads_only_and_its_jobs_end(workflow: Path) -> None:
    found = read(workflow)
    assert found["permissions"] == {"contents": "read"}
    assert all(0 < job["timeout-minutes"] <= 300 for job in found["jobs"].values())


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda one: one.stem)
def test_actions_have_versions_and_commands_exist(workflow: Path) -> None:
    targets = set(re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    for step in steps(workflow):
        assert ("uses" in step) != ("run" in step), step
        if "uses" in step:
            assert re.fullmatch(r"actions/[\w-]+@v\d+", step["uses"])
            continue
        program, argument, *_ = step["run"].split()
        assert (program == "make" and argument in targets) or (ROOT / argument).is_file(), step["run"]
        assert "${{" not in step["run"], "an expression in a command can inject commands: use env"


def test_ladder_runs_weekly_and_uploads_its_reports() -> None:
    [workflow] = (one for one in WORKFLOWS if one.stem == "ladder")
    [schedule] = read(workflow)[ON]["schedule"]
    minute, hour, day, month, weekday = schedule["cron"].split()
    assert (day, month) == ("*", "*")
    assert all(one.isdecimal() for one in (minute, hour, weekday))
    [upload] = (step["with"] for step in steps(workflow) if step.get("uses", "").startswith("actions/upload-artifact"))
    assert Path(upload["path"]) == OUTPUT
